"""Which r of the d columns to keep, so that all columns can be rebuilt from them.

Kept columns S rebuild a row by pooled least squares, ``x_hat = m + B_S (x - m)_S`` with
``B_S = C_{.S} C_{SS}^-1``. With the map ``A_S = I - B_S E_S'`` that leaves the residuals, group g
has the second moments ``M_g = A_S C_g A_S'`` of residuals, and the error ``R_g(S) = tr M_g``.

One more column j takes its own share out of all residuals. With ``Q = sum_g p_g M_g`` and
``c = Q_{.j} / Q_jj``,

    A <- (I - c e_j') A,    M_g <- (I - c e_j') M_g (I - e_j c'),
    R_g <- R_g - 2 c' (M_g)_{.j} + |c|^2 (M_g)_jj.

So the errors after each possible next column cost O(k d^2) together, and so does keeping one. A
column whose residuals are rounding rebuilds nothing more: c is zero there.

The best subset is that of the least largest error among the groups compared, and of these the one
of least overall error. All subsets are tried while they are few; otherwise a search goes forward
one column at a time, backward from twice as many, and swaps columns until no swap helps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from fairpca._moments.operand import Operand
from fairpca._typing import Array, Codes

MOST_SUBSETS = 1_000_000  # about ten seconds
_BATCH_ENTRIES = 1 << 20  # of the matrices of subsets that are looked at together
_STARTS = 3  # first columns from which the search goes forward
_REDUNDANT = 1e-12  # share of a column's variance: smaller residuals are rounding

#: From errors of shape (..., k) to what is made small, first key first.
Criterion = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True)
class Subset:
    """Columns in the order in which they help, and the error that they leave each group."""

    columns: Codes
    errors: Array


def best_columns(operand: Operand, r: int, overall: bool = False) -> tuple[Subset, bool]:
    """The best r columns, and whether all subsets were tried.

    Parameters
    ----------
    operand : Operand
    r : int
    overall : bool
        Make the overall error small, not the largest error of a group.
    """

    def criterion(errors: Array) -> tuple[Array, Array]:
        average = errors @ operand.shares
        return (average if overall else errors[..., operand.compared].max(axis=-1)), average

    C = operand.dense_matrices
    search = _Search(C, operand.shares, criterion)
    every = comb(operand.n_features, r) <= MOST_SUBSETS
    columns = search.try_all(r) if every else search.climb(r)
    return search.ordered(columns), every


class _Search:
    """Subsets of the columns of second moments ``C_g``, compared by a criterion."""

    def __init__(self, C: Array, shares: Array, criterion: Criterion) -> None:
        self._C, self._shares, self._criterion = C, shares, criterion
        self._noise = _REDUNDANT * np.diagonal(np.tensordot(shares, C, axes=1))

    # -- one column more ---------------------------------------------------------------------------

    def _loads(self, M: Array) -> Array:
        """``c`` of every column, as the columns of a matrix; M has shape (..., k, d, d)."""
        Q = np.einsum("k,...kij->...ij", self._shares, M)
        variances = np.diagonal(Q, axis1=-2, axis2=-1)
        useful = variances > self._noise
        return np.where(useful[..., None, :], Q / np.where(useful, variances, 1.0)[..., None, :], 0)

    def _errors_with(self, M: Array) -> Array:
        """Errors after each possible next column, of shape (..., d, k)."""
        loads = self._loads(M)
        own = np.diagonal(M, axis1=-2, axis2=-1)
        left = np.trace(M, axis1=-2, axis2=-1)[..., None]
        left = left - 2 * np.einsum("...ij,...kij->...kj", loads, M)
        left = left + np.einsum("...ij,...ij->...j", loads, loads)[..., None, :] * own
        return np.swapaxes(left, -1, -2)

    def _keep(self, M: Array, j: Codes) -> Array:
        """Residual moments of a batch of subsets, of shape (m, k, d, d), with one column more."""
        m = np.arange(len(M))
        column = M[m, :, :, j]  # (m, k, d)
        own = column[m, :, j][..., None]
        q = self._shares @ column
        variance = q[m, j]
        useful = variance > self._noise[j]
        c = (q * (useful / np.where(useful, variance, 1.0))[:, None])[:, None, :]
        update = c[..., :, None] * (column - 0.5 * own * c)[..., None, :]
        return np.asarray(M - update - np.swapaxes(update, -1, -2))

    def residuals(self, columns: Codes) -> Array:
        """``M_g`` of a subset, of shape (k, d, d)."""
        M = self._C[None]
        for j in columns:
            M = self._keep(M, np.array([j]))
        return np.asarray(M[0])

    # -- all subsets -------------------------------------------------------------------------------

    def try_all(self, r: int) -> Codes:
        """The best subset of all."""
        best, columns = (np.inf, np.inf), np.arange(r)
        for subsets, M in self._prefixes(np.empty((1, 0), dtype=int), self._C[None], r):
            first, second = self._criterion(self._errors_with(M))
            last = subsets[:, -1:] if r > 1 else -1
            first = np.where(np.arange(M.shape[-1]) > last, first, np.inf)
            i, j = np.unravel_index(np.lexsort((second.ravel(), first.ravel()))[0], first.shape)
            if (first[i, j], second[i, j]) < best:
                best, columns = (first[i, j], second[i, j]), np.append(subsets[i], j)
        return columns

    def _prefixes(self, subsets: Codes, M: Array, r: int) -> Iterator[tuple[Codes, Array]]:
        """All increasing subsets of r - 1 columns that begin with these, in batches."""
        size = subsets.shape[1]
        if size == r - 1:
            yield subsets, M
            return
        d = M.shape[-1]
        nexts = np.arange(d - (r - size) + 1)
        last = subsets[:, -1] if size else np.array([-1])
        parents, j = np.nonzero(nexts > last[:, None])
        step = max(1, _BATCH_ENTRIES // M[0].size)
        for start in range(0, len(j), step):
            some = slice(start, start + step)
            grown = np.column_stack([subsets[parents[some]], j[some]])
            yield from self._prefixes(grown, self._keep(M[parents[some]], j[some]), r)

    # -- a search among too many subsets -----------------------------------------------------------

    def climb(self, r: int) -> Codes:
        """The best subset that a greedy search with swaps finds, from several starts."""
        d, none = self._C.shape[-1], np.empty(0, dtype=int)
        first, second = self._criterion(self._errors_with(self._C))
        firsts = np.lexsort((second, first))[:_STARTS]
        starts = [self._forward(firsts[i : i + 1], r) for i in range(len(firsts))]
        starts.append(self._backward(self._forward(none, min(d, 2 * r)), r))
        return min(map(self._swapped, starts), key=lambda found: found[1])[0]

    def _forward(self, columns: Codes, size: int) -> Codes:
        """Add the column that helps most, until there are enough."""
        M = self.residuals(columns)
        while len(columns) < size:
            j = self._next(M, columns)[0]
            columns, M = np.append(columns, j), self._keep(M[None], np.array([j]))[0]
        return columns

    def _next(self, M: Array, columns: Codes) -> tuple[int, tuple[float, float]]:
        """The column that helps most, and the criterion with it."""
        first, second = self._criterion(self._errors_with(M))
        first[columns] = np.inf
        j = int(np.lexsort((second, first))[0])
        return j, (float(first[j]), float(second[j]))

    def _backward(self, columns: Codes, size: int) -> Codes:
        """Leave out the column that helps least, until few enough are left."""
        errors = np.trace(self.residuals(columns), axis1=1, axis2=2)
        while len(columns) > size:
            B, crossed, own = self._lost_without(columns)
            lost = 2 * np.einsum("ds,kds->ks", B, crossed) + (B**2).sum(axis=0) * own
            first, second = self._criterion(errors + lost.T)
            i = np.lexsort((second, first))[0]
            columns, errors = np.delete(columns, i), errors + lost[:, i]
        return columns

    def _lost_without(self, columns: Codes) -> tuple[Array, Array, Array]:
        """For each column i of a subset: ``B_{.i}``, ``A C_g u_i`` and ``u_i' C_g u_i``.

        With ``K = C_SS^-1``, the part of column i that the others do not tell is ``u_i' x``, where
        ``u_i = K_{.i} / K_ii``. Without column i the residuals are ``A x + B_{.i} u_i' x``.
        """
        C = np.tensordot(self._shares, self._C, axes=1)
        K = np.linalg.pinv(C[np.ix_(columns, columns)], hermitian=True)
        B = C[:, columns] @ K
        u = K / np.where(np.diagonal(K) > 0, np.diagonal(K), 1.0)
        across = self._C[:, :, columns] @ u
        inside = across[:, columns, :]
        return B, across - B @ inside, np.einsum("cs,kcs->ks", u, inside)

    def _swapped(self, columns: Codes) -> tuple[Codes, tuple[float, float]]:
        """Exchange one column at a time for a better one, until none is."""
        best, i, unchanged = self._value(columns), 0, 0
        M, lost = self.residuals(columns), self._lost_without(columns)
        while unchanged < len(columns):
            B, crossed, own = (part[..., i] for part in lost)
            update = B[:, None] * (crossed + 0.5 * own[:, None] * B)[:, None, :]
            without = M + update + np.swapaxes(update, 1, 2)
            j, value = self._next(without, np.delete(columns, i))
            unchanged += 1
            if value[0] < best[0] * (1 - _REDUNDANT):
                columns[i], best, unchanged = j, value, 0
                M, lost = (
                    self._keep(without[None], columns[i : i + 1])[0],
                    self._lost_without(columns),
                )
            i = (i + 1) % len(columns)
        return columns, best

    def _value(self, columns: Codes) -> tuple[float, float]:
        first, second = self._criterion(np.trace(self.residuals(columns), axis1=1, axis2=2))
        return float(first), float(second)

    def ordered(self, columns: Codes) -> Subset:
        """The subset in the order in which its columns help, and its errors."""
        M, order, left = self._C, [], set(map(int, columns))
        while left:
            members = sorted(left)
            first, second = self._criterion(self._errors_with(M)[members])
            j = members[int(np.lexsort((second, first))[0])]
            order.append(j)
            left.remove(j)
            M = self._keep(M[None], np.array([j]))[0]
        return Subset(np.array(order), np.maximum(np.trace(M, axis1=1, axis2=2), 0.0))
