"""Which r of the d columns to keep, so that all columns can be rebuilt from them.

Kept columns S rebuild a row by pooled least squares, ``x_hat = m + B (x - m)_S`` with
``B = C_{.S} C_{SS}^-1``. The map ``A = I - B E_S'`` leaves the residuals, whose second moments in
group g are ``M_g = A C_g A'``, and the error is ``R_g(S) = tr M_g``.

Keeping one more column j takes its part out of all residuals. With ``Q = sum_g p_g M_g`` and
``c = Q_{.j} / Q_jj``,

    M_g <- (I - c e_j') M_g (I - e_j c'),    R_g <- R_g - 2 c' (M_g)_{.j} + |c|^2 (M_g)_jj,

so the errors after each possible next column cost O(k d^2) together. A column whose residuals are
rounding adds nothing, so c is zero. Dropping a column i of S loses the part of it that the others
do not explain: with ``K = C_SS^-1`` and ``u = K_{.i} / K_ii`` residuals become ``A x + b u' x``
with ``b = B_{.i}``. With ``h_g = A C_g u + (u' C_g u) b / 2`` and ``v = u' C u``,

    M_g <- M_g + b h_g' + h_g b',    Q <- Q + v b b',

so the errors after each possible exchange cost O(k r d^2), nearly all in products of matrices.

All subsets are tried while they are few; columns that are kept have no residuals, so the matrices
shrink by one with each. Otherwise a search goes forward one column at a time, or backward from
twice as many, and exchanges columns until that no longer helps. It does so for the largest and for
the overall error, and judges what either ends at by both.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np

from fairpca._blas import single_threaded_blas
from fairpca._moments.operand import Operand
from fairpca._typing import Array, Codes

_BATCH_ENTRIES = 1 << 20  # numbers in the matrices that are worked on together
_STARTS = 3  # number of first columns to search forward from
_REDUNDANT = 1e-12  # residuals below this share of a column's variance are rounding
_UNSURE = 1e-8  # the same where sums are less exact, in the choice of an exchange
_TIEBREAK = 1e-9  # weight of the overall error beside the largest one


class ColumnChoice(NamedTuple):
    """A choice of columns."""

    columns: Codes  # in the order in which they help
    errors: Array  # R_g
    rebuild: Array  # B', of shape (r, d): from the kept columns, in increasing order, to all
    proven: bool  # whether no choice is better


class ColumnSearch:
    """Searches for the columns of least largest group error, and of least overall error."""

    def __init__(self, operand: Operand) -> None:
        self._C, self._shares = operand.dense_matrices, operand.shares
        self._compared, self._overall = operand.compared, False
        self._pooled = np.tensordot(self._shares, self._C, axes=1)
        self._noise = _REDUNDANT * np.diagonal(self._pooled)
        self._margin = _REDUNDANT * float(_errors(self._C).max())  # smaller gains are rounding

    @single_threaded_blas()
    def best(self, r: int, max_subsets: int) -> tuple[ColumnChoice, ColumnChoice]:
        """The best r columns for the largest error, and those for the overall error."""
        proven = comb(len(self._noise), r) <= max_subsets
        choices, chosen = [], self._try_all(r) if proven else self._search(r)
        for self._overall in (False, True):
            kept = np.sort(chosen[self._overall])
            order = self._forward(np.empty(0, dtype=int), r, among=kept)
            errors = np.maximum(_errors(self._residuals(order)), 0.0)
            choices.append(ColumnChoice(order, errors, self._fit(kept)[0].T, proven))
        return choices[0], choices[1]

    def _values(self, errors: Array) -> tuple[Array, Array]:
        """Both criteria for errors of shape (..., k); smaller is better."""
        average = np.asarray(errors @ self._shares)
        return errors[..., self._compared].max(axis=-1) + _TIEBREAK * average, average

    def _value(self, errors: Array) -> Array:
        """The criterion that the search uses now."""
        return self._values(errors)[self._overall]

    # -- one column more or less -------------------------------------------------------------------

    def _errors_with(self, M: Array, noise: Array) -> Array:
        """Errors after each possible next column, of shape (..., d, k)."""
        Q = np.einsum("k,...kij->...ij", self._shares, M)
        variances = np.diagonal(Q, axis1=-2, axis2=-1)
        useful = variances > noise
        c = Q * (useful / np.where(useful, variances, 1.0))[..., None, :]
        own = np.diagonal(M, axis1=-2, axis2=-1)
        gained = 2 * np.einsum("...ij,...kij->...kj", c, M)
        gained -= np.einsum("...ij,...ij->...j", c, c)[..., None, :] * own
        return np.swapaxes(_errors(M)[..., None] - gained, -1, -2)

    def _keep(self, M: Array, j: Codes, noise: Array) -> Array:
        """Residual moments of a batch of subsets, of shape (m, k, d, d), with one more column."""
        m = np.arange(len(M))
        column = M[m, :, :, j]
        own, q = column[m, :, j][..., None], self._shares @ column
        useful = q[m, j] > noise
        c = (q * (useful / np.where(useful, q[m, j], 1.0))[:, None])[:, None, :]
        return _less_both(M, c, column - 0.5 * own * c)

    def _residuals(self, columns: Codes) -> Array:
        """``M_g`` of a subset, of shape (k, d, d)."""
        M = self._C[None]
        for j in columns:
            M = self._keep(M, np.array([j]), self._noise[j])
        return np.asarray(M[0])

    # -- all subsets -------------------------------------------------------------------------------

    def _try_all(self, r: int) -> list[Codes]:
        """The best of all subsets by each criterion."""
        least, best, d = [np.inf, np.inf], [np.arange(r)] * 2, len(self._noise)
        root = np.arange(d)[None]
        for rest, open_, M in self._prefixes(root, np.array([d]), self._C[None], r):
            possible = np.arange(rest.shape[1]) < open_[:, None]
            for which, values in enumerate(self._values(self._errors_with(M, self._noise[rest]))):
                values = np.where(possible, values, np.inf)
                i, j = np.unravel_index(values.argmin(), values.shape)
                if values[i, j] < least[which]:
                    least[which] = values[i, j]
                    best[which] = np.setdiff1d(root, np.delete(rest[i], j))
        return best

    def _prefixes(
        self, rest: Codes, open_: Codes, M: Array, r: int
    ) -> Iterator[tuple[Codes, Codes, Array]]:
        """All subsets of r - 1 columns, in batches.

        A subset is written as the columns that it leaves, ``rest``, with their residual moments M.
        Subsets grow from the last column to the first: only the first ``open_`` of the rest may
        be kept next. The last of the rest takes the place of the column kept.
        """
        missing = r - (len(self._noise) - rest.shape[1])
        if missing == 1:
            yield rest, open_, M
            return
        parents, j = np.nonzero(np.arange(missing - 1, rest.shape[1]) < open_[:, None])
        j += missing - 1
        step = max(1, _BATCH_ENTRIES // M[0].size)
        for start in range(0, len(j), step):
            i, kept = parents[start : start + step], j[start : start + step]
            m, left = np.arange(len(i)), rest[i]
            grown = self._keep(M[i], kept, self._noise[left[m, kept]])
            left[m, kept] = left[:, -1]
            grown[m, :, kept] = grown[:, :, -1]
            grown[m, :, :, kept] = grown[..., -1]
            yield from self._prefixes(left[:, :-1], kept, grown[..., :-1, :-1], r)

    # -- a search among too many subsets -----------------------------------------------------------

    def _search(self, r: int) -> list[Codes]:
        """The best subset by each criterion of all that greedy searches by either end at."""
        ends = []
        for self._overall in (False, True):
            ends += [self._exchanged(start) for start in self._starts(r)]
        for self._overall in (False, True):
            by_other = min(ends, key=lambda end: self._values(end[1])[not self._overall])
            ends.append(self._exchanged(by_other[0]))
        return [min(ends, key=lambda end: self._values(end[1])[i])[0] for i in range(2)]

    def _starts(self, r: int) -> Iterator[Codes]:
        """Subsets to begin with: forward from several first columns, and backward."""
        firsts = self._value(self._errors_with(self._C, self._noise)).argsort()[:_STARTS]
        for i in range(len(firsts)):
            yield self._forward(firsts[i : i + 1], r)
        twice = self._forward(np.empty(0, dtype=int), min(len(self._noise), 2 * r))
        yield self._backward(twice, r)

    def _forward(self, columns: Codes, size: int, among: Codes | None = None) -> Codes:
        """Add the column that helps most, until there are enough."""
        M, never = self._residuals(columns), np.empty(0, dtype=int)
        if among is not None:
            never = np.setdiff1d(np.arange(len(self._noise)), among)
        while len(columns) < size:
            values = self._value(self._errors_with(M, self._noise))
            values[np.append(columns, never)] = np.inf
            j = np.array([values.argmin()])
            columns, M = np.append(columns, j), self._keep(M[None], j, self._noise[j])[0]
        return columns

    def _backward(self, columns: Codes, size: int) -> Codes:
        """Leave out the column that helps least, until few enough are left."""
        while len(columns) > size:
            B, h, _ = self._dropping(columns)
            errors = self._errors_left(columns)[:, None] + 2 * (B * h).sum(axis=1)
            columns = np.delete(columns, self._value(errors.T).argmin())
        return columns

    def _exchanged(self, columns: Codes) -> tuple[Codes, Array]:
        """Make the best exchange of one column until none helps; also returns the errors."""
        errors = self._errors_left(columns)
        while True:
            values = self._value(self._errors_exchanged(columns))
            values[:, columns] = np.inf
            i, j = np.unravel_index(values.argmin(), values.shape)
            changed = np.append(np.delete(columns, i), j)
            after = self._errors_left(changed)
            if self._value(after) >= self._value(errors) - self._margin:
                return columns, errors
            columns, errors = changed, after

    def _fit(self, columns: Codes) -> tuple[Array, Array]:
        """B of a subset, and the Y_g with which ``M_g = C_g - B Y_g' - Y_g B'``."""
        inside = np.linalg.pinv(self._pooled[np.ix_(columns, columns)], _REDUNDANT, hermitian=True)
        B, own = self._pooled[:, columns] @ inside, self._C.take(columns, axis=2)
        return B, own - 0.5 * B @ own[:, columns]

    def _errors_left(self, columns: Codes) -> Array:
        B, Y = self._fit(columns)
        return np.asarray(_errors(self._C) - 2 * (B * Y).sum(axis=(1, 2)))

    def _dropping(self, columns: Codes) -> tuple[Array, Array, Array]:
        """For each column of a subset: b, h_g and v."""
        K = np.linalg.pinv(self._pooled[np.ix_(columns, columns)], hermitian=True)
        B = self._pooled[:, columns] @ K
        u = K / np.where(np.diagonal(K) > 0, np.diagonal(K), 1.0)
        across = self._C.take(columns, axis=2) @ u
        inside = across[:, columns]
        own = np.einsum("cs,kcs->ks", u, inside)
        return B, across - B @ inside + 0.5 * own[:, None] * B, self._shares @ own

    def _errors_exchanged(self, columns: Codes) -> Array:
        """Errors with each column of a subset exchanged for each of all, of shape (r, d, k)."""
        (B, Y), (b, h, v) = self._fit(columns), self._dropping(columns)
        M = self._C - (products := Y @ B.T) - np.swapaxes(products, 1, 2)
        Q = np.tensordot(self._shares, M, axes=1)
        Qb, norms, along = Q @ b, (b**2).sum(axis=0), (b * h).sum(axis=1)
        variances = np.diagonal(Q)[:, None] + v * b**2
        squares = (Q**2).sum(axis=0)[:, None] + v * b * (2 * Qb + v * norms * b)
        own = np.diagonal(M, axis1=1, axis2=2)[..., None] + 2 * b * h
        crossed = np.einsum("ij,kij->kj", Q, M)[..., None] + h * Qb + b * (Q @ h)
        crossed += v * b * (M @ b + norms * h + along[:, None] * b)
        useful = variances > _UNSURE * np.diagonal(self._pooled)[:, None]
        share = useful / np.where(useful, variances, 1.0)
        gained = share * (2 * crossed - squares * own * share)
        return np.asarray((_errors(M)[:, None, None] + 2 * along[:, None] - gained).T)


def _errors(M: Array) -> Array:
    return np.asarray(np.trace(M, axis1=-2, axis2=-1))


def _less_both(M: Array, a: Array, b: Array) -> Array:
    """``M - a b' - b a'`` over the last axis of a and b."""
    outer = a[..., :, None] * b[..., None, :]
    less = M - outer
    less -= np.swapaxes(outer, -1, -2)
    return np.asarray(less)
