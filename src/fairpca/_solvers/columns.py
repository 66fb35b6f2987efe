"""Which r of the d columns to keep, so that all columns can be rebuilt from them.

Kept columns S rebuild a row by pooled least squares, ``x_hat = m + B (x - m)_S`` with
``B = C_{.S} C_{SS}^-1``. The map ``A = I - B E_S'`` leaves the residuals, whose second moments in
group g are ``M_g = A C_g A'``, and the error is ``R_g(S) = tr M_g``. With ``Q = sum_g p_g M_g`` and
``c = Q_{.j} / Q_jj``, or zero if that is rounding, keeping one more column j gives

    M_g <- (I - c e_j') M_g (I - e_j c'),    R_g <- R_g - 2 c' (M_g)_{.j} + |c|^2 (M_g)_jj,

so the errors after each possible next column cost O(k d^2) together. Dropping a column i of S loses
what the others do not tell of it: with ``K = C_SS^-1``, ``u = K_{.i} / K_ii`` and ``b = B_{.i}``
residuals become ``A x + b u' x``. With ``h_g = A C_g u + (u' C_g u) b / 2``,

    M_g <- M_g + b h_g' + h_g b',

so the errors after each possible exchange cost O(k r d^2): drop each column in turn, keep another.

All subsets are tried while they are few. Otherwise a search goes forward one column at a time, or
backward from twice as many, and exchanges columns until that no longer helps. It does so for the
largest and for the overall error, and judges what either ends at by both.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from fairpca._blas import single_threaded_blas
from fairpca._moments.operand import Operand
from fairpca._moments.tolerances import MEAN_NOISE, NEGLIGIBLE
from fairpca._typing import Array, Codes

_errors = partial(np.einsum, "...ii")  # R_g, the traces of the M_g
#: Columns in the order in which they help, their R_g, and B' for the same columns in rising order.
ColumnChoice = tuple[Codes, Array, Array]
_Batch = tuple[Codes, Codes, Array]  # see _prefixes


class ColumnSearch:
    """Searches for the columns of least largest group error, and of least overall error."""

    def __init__(self, operand: Operand) -> None:
        # In units of a power of two, which rounds nothing: sums of squares do not overflow.
        self._unit = np.exp2(np.frexp(operand.traces.max())[1])
        self._C = operand.dense_matrices / self._unit
        self._shares = operand.shares
        self._compared = operand.compared
        self._overall = 0  # 1 to search by the overall error
        self._pooled = np.tensordot(self._shares, self._C, axes=1)
        self._noise = MEAN_NOISE * np.diagonal(self._pooled)  # smaller residuals are rounding

    @single_threaded_blas()
    def best(self, r: int, try_all: bool) -> list[ColumnChoice]:
        """The best r columns for the largest error, and those for the overall error."""
        search = self._try_all if try_all else self._search
        chosen = search(r)
        choices = []
        for self._overall in range(2):
            kept = np.sort(chosen[self._overall])
            order, M = self._forward(r, among=kept)
            errors = np.maximum(_errors(M), 0.0) * self._unit
            choices.append((order, errors, self._left(kept)[0].T))
        return choices

    def _value(self, errors: Array) -> Array:
        """The criterion of the present search."""
        return self._values(errors)[self._overall]

    def _values(self, errors: Array) -> tuple[Array, Array]:
        """Both criteria for errors of shape (..., k); smaller is better."""
        average = np.asarray(errors @ self._shares)
        return errors[..., self._compared].max(axis=-1) + NEGLIGIBLE * average, average

    def _errors_with(self, M: Array, noise: Array) -> Array:
        """Errors after each possible next column, of shape (..., d, k)."""
        Q = np.einsum("k,...kij->...ij", self._shares, M)
        c = Q * _inverse(np.diagonal(Q, axis1=-2, axis2=-1), noise)[..., None, :]
        gained = 2 * np.einsum("...ij,...kij->...kj", c, M)
        own = np.diagonal(M, axis1=-2, axis2=-1)
        gained -= np.einsum("...ij,...ij->...j", c, c)[..., None, :] * own
        return np.swapaxes(_errors(M)[..., None] - gained, -1, -2)

    def _keep(self, M: Array, j: Codes, noise: Array) -> Array:
        """Residual moments of a batch of subsets, of shape (m, k, d, d), with one more column."""
        m = np.arange(len(M))
        column = M[m, :, :, j]
        own = column[m, :, j][..., None]
        q = self._shares @ column
        c = (q * _inverse(q[m, j], noise)[:, None])[:, None, :]
        half = c[..., :, None] * (column - 0.5 * own * c)[..., None, :]
        return np.asarray(M - half - np.swapaxes(half, -1, -2))

    def _try_all(self, r: int) -> list[Codes]:
        """The best of all subsets by each criterion."""
        d = len(self._noise)
        root = np.arange(d)[None]
        least = [np.inf, np.inf]
        best = [np.arange(r), np.arange(r)]
        for rest, open_, M in self._prefixes(root, np.array([d]), self._C[None], r):
            possible = np.arange(rest.shape[1]) < open_[:, None]
            for which, values in enumerate(self._values(self._errors_with(M, self._noise[rest]))):
                values = np.where(possible, values, np.inf)
                i, j = np.unravel_index(values.argmin(), values.shape)
                if values[i, j] < least[which]:
                    least[which] = values[i, j]
                    best[which] = np.setdiff1d(root, np.delete(rest[i], j))
        return best

    def _prefixes(self, rest: Codes, open_: Codes, M: Array, r: int) -> Iterator[_Batch]:
        """All subsets of r - 1 columns, in batches.

        A subset is written as the columns that it leaves, ``rest``, with their residual moments M.
        Subsets grow from the last column to the first: only the first ``open_`` of the rest may
        be kept next. The last of the rest takes the place of the column kept, so M shrinks.
        """
        missing = r - (len(self._noise) - rest.shape[1])
        if missing == 1:
            yield rest, open_, M
            return
        parents, j = np.nonzero(np.arange(missing - 1, rest.shape[1]) < open_[:, None])
        j += missing - 1
        step = max(1, (1 << 20) // M[0].size)  # this many subsets stay in cache
        for start in range(0, len(j), step):
            i = parents[start : start + step]
            kept = j[start : start + step]
            m = np.arange(len(i))
            left = rest[i]
            grown = self._keep(M[i], kept, self._noise[left[m, kept]])
            left[m, kept] = left[:, -1]
            grown[m, :, kept] = grown[:, :, -1]
            grown[m, :, :, kept] = grown[..., -1]
            yield from self._prefixes(left[:, :-1], kept, grown[..., :-1, :-1], r)

    def _search(self, r: int) -> list[Codes]:
        """The best subset by each criterion of all that greedy searches by either end at."""
        ends: list[tuple[Codes, Array]] = []
        for self._overall in range(2):
            alone = self._value(self._errors_with(self._C, self._noise))
            starts = [self._forward(r, first)[0] for first in alone.argsort()[:3].tolist()]
            starts.append(self._backward(self._forward(min(len(alone), 2 * r))[0], r))
            ends += map(self._exchanged, starts)
        for self._overall in range(2):
            by_other = min(ends, key=lambda end: self._values(end[1])[1 - self._overall])
            ends.append(self._exchanged(by_other[0]))
        return [min(ends, key=lambda end: self._values(end[1])[i])[0] for i in range(2)]

    def _forward(
        self, size: int, first: int | None = None, among: Codes | None = None
    ) -> tuple[Codes, Array]:
        """Add the column that helps most, until there are enough; also returns ``M_g``."""
        possible = np.full(len(self._noise), among is None)
        possible[among] = True
        columns = list[int]()
        M = self._C
        while len(columns) < size:
            values = self._value(self._errors_with(M, self._noise))
            best = int(np.where(possible, values, np.inf).argmin())
            if first is not None and not columns:
                best = first
            columns.append(best)
            possible[best] = False
            M = self._keep(M[None], np.array([best]), self._noise[[best]])[0]
        return np.array(columns), M

    def _backward(self, columns: Codes, size: int) -> Codes:
        """Leave out the column that helps least, until few enough are left."""
        while len(columns) > size:
            B, h = self._dropping(columns)
            errors = _errors(self._left(columns)[1]) + 2 * (B * h).sum(axis=1).T
            columns = np.delete(columns, self._value(errors).argmin())
        return columns

    def _exchanged(self, columns: Codes) -> tuple[Codes, Array]:
        """Make the best exchange of one column until none helps; also returns the errors."""
        margin = MEAN_NOISE * float(_errors(self._C).max())  # smaller gains are rounding
        M = self._left(columns)[1]
        while True:
            values = self._value(self._errors_exchanged(columns, M))
            values[:, columns] = np.inf
            i, j = np.unravel_index(values.argmin(), values.shape)
            changed = np.append(np.delete(columns, i), j)
            before = _errors(M)
            M = self._left(changed)[1]
            if self._value(before) - self._value(_errors(M)) <= margin:
                return columns, before
            columns = changed

    def _left(self, columns: Codes) -> tuple[Array, Array]:
        """B and the ``M_g`` of a subset."""
        inside = np.linalg.pinv(self._pooled[np.ix_(columns, columns)], MEAN_NOISE, hermitian=True)
        B = self._pooled[:, columns] @ inside
        own = self._C.take(columns, axis=2)
        half = (own - 0.5 * B @ own[:, columns]) @ B.T
        return B, self._C - half - np.swapaxes(half, 1, 2)

    def _dropping(self, columns: Codes) -> tuple[Array, Array]:
        """For each column of a subset: b, and h_g."""
        K = np.linalg.pinv(self._pooled[np.ix_(columns, columns)], hermitian=True)
        B = self._pooled[:, columns] @ K
        u = K * _inverse(np.diagonal(K), 0.0)
        across = self._C.take(columns, axis=2) @ u
        inside = across[:, columns]
        own = np.einsum("cs,kcs->ks", u, inside)
        return B, across - B @ inside + 0.5 * own[:, None] * B

    def _errors_exchanged(self, columns: Codes, M: Array) -> Array:
        """Errors with each column of a subset exchanged for each of all, of shape (r, d, k)."""
        noise = 1e4 * self._noise  # what is dropped leaves fewer digits
        B, h = self._dropping(columns)
        errors = []
        for i in range(len(columns)):
            half = B[:, [i]] * h[:, None, :, i]
            errors.append(self._errors_with(M + half + np.swapaxes(half, 1, 2), noise))
        return np.array(errors)


def _inverse(values: Array, noise: Array | float) -> Array:
    """``1 / values``, or zero where they are rounding."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > noise)
