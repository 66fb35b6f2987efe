"""Which r of the d columns to keep, so that all columns can be rebuilt from them.

Kept columns S rebuild a row by pooled least squares, ``x_hat = m + B (x - m)_S`` with
``B = C_{.S} C_{SS}^-1``. The map ``A = I - B E_S'`` leaves the residuals, whose second moments in
group g are ``M_g = A C_g A'``, and the error is ``R_g(S) = tr M_g``.

Keeping one more column j takes its part out of all residuals. With ``Q = sum_g p_g M_g`` and
``c = Q_{.j} / Q_jj``,

    M_g <- (I - c e_j') M_g (I - e_j c'),    R_g <- R_g - 2 c' (M_g)_{.j} + |c|^2 (M_g)_jj,

so the errors after each possible next column cost O(k d^2) together. A column whose residuals are
rounding adds nothing, so c is zero. Dropping a column i of S loses the part of it that the others
do not explain: with ``K = C_SS^-1`` and ``u = K_{.i} / K_ii`` residuals become
``A x + B_{.i} u' x``.

All subsets are tried while they are few. Otherwise a search goes forward one column at a time, or
backward from twice as many, and swaps columns until no swap helps.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np

from fairpca._moments.operand import Operand
from fairpca._typing import Array, Codes

_BATCH_ENTRIES = 1 << 20  # numbers in the matrices that are worked on together
_STARTS = 3  # number of first columns to search forward from
_REDUNDANT = 1e-12  # residuals below this share of a column's variance are rounding
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

    def best(self, r: int, max_subsets: int) -> tuple[ColumnChoice, ColumnChoice]:
        """The best r columns for the largest error, and those for the overall error."""
        proven = comb(len(self._noise), r) <= max_subsets
        choices, tried = [], self._try_all(r) if proven else None
        for self._overall in (False, True):
            kept = np.sort(self._climb(r) if tried is None else tried[self._overall])
            order = self._forward(np.empty(0, dtype=int), r, among=kept)
            inside = np.linalg.pinv(self._pooled[np.ix_(kept, kept)], _REDUNDANT, hermitian=True)
            errors = np.maximum(_errors(self._residuals(order)), 0.0)
            choices.append(ColumnChoice(order, errors, inside @ self._pooled[kept], proven))
        return choices[0], choices[1]

    def _values(self, errors: Array) -> tuple[Array, Array]:
        """Both criteria for errors of shape (..., k); smaller is better."""
        average = np.asarray(errors @ self._shares)
        return errors[..., self._compared].max(axis=-1) + _TIEBREAK * average, average

    def _value(self, errors: Array) -> Array:
        """The criterion that the search uses now."""
        return self._values(errors)[self._overall]

    # -- one column more or less -------------------------------------------------------------------

    def _errors_with(self, M: Array) -> Array:
        """Errors after each possible next column, of shape (..., d, k)."""
        Q = np.einsum("k,...kij->...ij", self._shares, M)
        variances = np.diagonal(Q, axis1=-2, axis2=-1)
        useful = variances > self._noise
        c = Q * (useful / np.where(useful, variances, 1.0))[..., None, :]
        own = np.diagonal(M, axis1=-2, axis2=-1)
        gained = 2 * np.einsum("...ij,...kij->...kj", c, M)
        gained -= np.einsum("...ij,...ij->...j", c, c)[..., None, :] * own
        return np.swapaxes(_errors(M)[..., None] - gained, -1, -2)

    def _keep(self, M: Array, j: Codes) -> Array:
        """Residual moments of a batch of subsets, of shape (m, k, d, d), with one more column."""
        m = np.arange(len(M))
        column = M[m, :, :, j]
        own, q = column[m, :, j][..., None], self._shares @ column
        useful = q[m, j] > self._noise[j]
        c = (q * (useful / np.where(useful, q[m, j], 1.0))[:, None])[:, None, :]
        return np.asarray(M - _both(c, column - 0.5 * own * c))

    def _residuals(self, columns: Codes) -> Array:
        """``M_g`` of a subset, of shape (k, d, d)."""
        M = self._C[None]
        for j in columns:
            M = self._keep(M, np.array([j]))
        return np.asarray(M[0])

    def _lost_without(self, columns: Codes) -> tuple[Array, Array, Array]:
        """For each column i of a subset: ``B_{.i}``, ``A C_g u`` and ``u' C_g u``."""
        K = np.linalg.pinv(self._pooled[np.ix_(columns, columns)], hermitian=True)
        B = self._pooled[:, columns] @ K
        u = K / np.where(np.diagonal(K) > 0, np.diagonal(K), 1.0)
        across = self._C[:, :, columns] @ u
        inside = across[:, columns, :]
        return B, across - B @ inside, np.einsum("cs,kcs->ks", u, inside)

    # -- all subsets -------------------------------------------------------------------------------

    def _try_all(self, r: int) -> list[Codes]:
        """The best of all subsets by each criterion."""
        least, best = [np.inf, np.inf], [np.arange(r)] * 2
        for subsets, M in self._prefixes(np.empty((1, 0), dtype=int), self._C[None], r):
            last = subsets[:, -1:] if r > 1 else -1
            later = np.arange(len(self._noise)) > last
            for which, values in enumerate(self._values(self._errors_with(M))):
                values = np.where(later, values, np.inf)
                i, j = np.unravel_index(values.argmin(), values.shape)
                if values[i, j] < least[which]:
                    least[which], best[which] = values[i, j], np.append(subsets[i], j)
        return best

    def _prefixes(self, subsets: Codes, M: Array, r: int) -> Iterator[tuple[Codes, Array]]:
        """All increasing subsets of r - 1 columns that begin with these, in batches."""
        size = subsets.shape[1]
        if size == r - 1:
            yield subsets, M
            return
        last = subsets[:, -1:] if size else np.array([[-1]])
        parents, j = np.nonzero(np.arange(len(self._noise) - (r - size) + 1) > last)
        step = max(1, _BATCH_ENTRIES // M[0].size)
        for start in range(0, len(j), step):
            i, added = parents[start : start + step], j[start : start + step]
            grown = np.column_stack([subsets[i], added])
            yield from self._prefixes(grown, self._keep(M[i], added), r)

    # -- a search among too many subsets -----------------------------------------------------------

    def _climb(self, r: int) -> Codes:
        """The best subset that a greedy search with swaps finds, from several starts."""
        firsts = self._value(self._errors_with(self._C)).argsort()[:_STARTS]
        starts = [self._forward(firsts[i : i + 1], r) for i in range(len(firsts))]
        twice = self._forward(np.empty(0, dtype=int), min(len(self._noise), 2 * r))
        starts.append(self._backward(twice, r))
        return min(map(self._swapped, starts), key=lambda found: found[1])[0]

    def _next(self, M: Array, columns: Codes) -> tuple[int, float]:
        """The column that helps most in addition to these, and the value with it."""
        values = self._value(self._errors_with(M))
        values[columns] = np.inf
        return int(values.argmin()), float(values.min())

    def _forward(self, columns: Codes, size: int, among: Codes | None = None) -> Codes:
        """Add the column that helps most, until there are enough."""
        M, never = self._residuals(columns), np.empty(0, dtype=int)
        if among is not None:
            never = np.setdiff1d(np.arange(len(self._noise)), among)
        while len(columns) < size:
            j, _ = self._next(M, np.append(columns, never))
            columns, M = np.append(columns, j), self._keep(M[None], np.array([j]))[0]
        return columns

    def _backward(self, columns: Codes, size: int) -> Codes:
        """Leave out the column that helps least, until few enough are left."""
        errors = _errors(self._residuals(columns))
        while len(columns) > size:
            B, crossed, own = self._lost_without(columns)
            lost = 2 * np.einsum("ds,kds->ks", B, crossed) + (B**2).sum(axis=0) * own
            i = int(self._value(errors + lost.T).argmin())
            columns, errors = np.delete(columns, i), errors + lost[:, i]
        return columns

    def _swapped(self, columns: Codes) -> tuple[Codes, float]:
        """Exchange one column at a time until no exchange helps; also returns the final value."""
        M, lost = self._residuals(columns), self._lost_without(columns)
        least, i, unchanged = float(self._value(_errors(M))), 0, 0
        while unchanged < len(columns):
            B, crossed, own = (part[..., i] for part in lost)
            without = M + _both(B, crossed + 0.5 * own[:, None] * B)
            j, value = self._next(without, np.delete(columns, i))
            unchanged += 1
            if value < least - self._margin:
                columns[i], least, unchanged = j, value, 0
                M = self._keep(without[None], columns[i : i + 1])[0]
                lost = self._lost_without(columns)
            i = (i + 1) % len(columns)
        return columns, least


def _errors(M: Array) -> Array:
    return np.asarray(np.trace(M, axis1=-2, axis2=-1))


def _both(a: Array, b: Array) -> Array:
    """``a b' + b a'`` over the last axis."""
    outer = a[..., :, None] * b[..., None, :]
    return outer + np.swapaxes(outer, -1, -2)
