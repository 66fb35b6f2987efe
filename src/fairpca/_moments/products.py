"""Products of the groups' second moments with thin matrices, formed from the rows themselves.

With ``c`` the centre (the overall mean, or the group's own) and ``W_g`` the weights of group g, a
product with a thin V is

    C_g V = (X_g - 1 c')' W_g ((X_g - 1 c') V) / n_g

which takes 4 n_g d m operations for m columns (over the non-zeros only where X is sparse) and
memory of order d m. Dense rows are centred block by block, so that large offsets lose no digits;
sparse ones by a correction of rank two, so that zeros stay zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array

from fairpca._input.device import DeviceRows
from fairpca._input.rows import DenseRows, FrameRows, as_rows
from fairpca._moments.accumulate import by_group
from fairpca._threads import blas_threads, ordered_map, share_out
from fairpca._typing import Array, Codes

_ENTRIES_PER_BLOCK = 1 << 21
_SLICE_COLUMNS = 6000  # of which 20 or 30 numbers each fit into the cache of a core
_ENTRIES_PER_SLICE = 6  # of a row, at the least
_FAR = 100  # a squared mean against the variance; beyond it, one entry in a hundred may be zero


class DenseProducts:
    """Dense rows in blocks, each put into the order of the groups and centred."""

    def __init__(
        self, rows: DenseRows | DeviceRows, codes: Codes, k: int, weights: Array | None
    ) -> None:
        # A frame becomes an array once, because every product passes over it.
        self._source = as_rows(rows.block(0, rows.n_rows)) if isinstance(rows, FrameRows) else rows
        self._codes = codes
        self._k = k
        self._weights = weights
        self._n_threads = blas_threads()

    def sums(self) -> Array:
        """Weighted sum of each group, of shape (k, d)."""
        origin = np.asarray(self._source.block(0, 1)[0], dtype=np.float64)
        total = self._reduce(lambda Z, w: w @ Z, np.tile(origin, (self._k, 1)), 1)[:, 0]
        weights = np.bincount(self._codes, self._weights, minlength=self._k)
        return np.asarray(total + weights[:, None] * origin)

    def squares(self, centers: Array) -> Array:
        """Weighted sum of squared distances to the centre, by group and column."""
        return self._reduce(lambda Z, w: np.einsum("ij,ij,i->j", Z, Z, w), centers, 1)[:, 0]

    def products(self, V: Array, centers: Array) -> Array:
        """``(X_g - 1 c')' W_g ((X_g - 1 c') V)``, of shape (k, d, m)."""

        def product(Z: Array, w: Array) -> Array:
            return np.asarray((w[:, None] * (Z @ V)).T @ Z)

        return np.ascontiguousarray(self._reduce(product, centers, V.shape[1]).transpose(0, 2, 1))

    def _reduce(self, function: Callable[[Array, Array], Array], centers: Array, m: int) -> Array:
        """For each group, the sum of ``function(Z, w)``, m x d, over its centred rows Z."""
        n, d = self._source.n_rows, self._source.n_features
        size = max(64, _ENTRIES_PER_BLOCK // d)

        def part(edges: tuple[int, int]) -> Array:
            total = np.zeros((self._k, m, d))
            for low in range(*edges, size):
                high = min(low + size, edges[1])
                order, bounds = by_group(self._codes[low:high], self._k)
                block = self._source.block(low, high)[order]
                w = np.ones(high - low) if self._weights is None else self._weights[low:high][order]
                for g, (a, b) in enumerate(pairwise(bounds)):
                    if a < b:
                        total[g] += function(block[a:b] - centers[g], w[a:b])
            return total

        edges = np.linspace(0, n, self._n_threads + 1).astype(int).tolist()
        return _sum(share_out(part, pairwise(edges), self._n_threads))


class SparseProducts:
    """Sparse rows times the roots of their weights, copied group by group once.

    Each group is in as many parts as there are threads, and each part in slices of columns: the
    rows of V that belong to a slice stay in the cache, which saves up to half of the time.
    """

    def __init__(self, X: Any, codes: Codes, k: int, weights: Array | None) -> None:
        roots = np.ones(len(codes)) if weights is None else np.sqrt(weights)
        self._n_threads = blas_threads()
        self._slices = _column_slices(X)
        self._parts: list[tuple[int, list[Any], Array]] = []
        for g in range(k):
            for members in np.array_split(np.flatnonzero(codes == g), self._n_threads):
                part = X[members]
                if weights is not None:
                    part = diags_array(roots[members]) @ part
                self._parts.append((g, [part[:, s] for s in self._slices], roots[members]))
        self._k = k
        self._totals = np.bincount(codes, weights, minlength=k)
        self._sums = self._per_group(self._backward)

    def sums(self) -> Array:
        """Weighted sum of each group, of shape (k, d)."""
        return self._sums

    def squares(self, centers: Array) -> Array:
        """Weighted sum of squared distances to the centre, by group and column."""
        raw = self._per_group(
            lambda part, root: np.hstack([np.asarray(X.power(2).sum(axis=0)).ravel() for X in part])
        )
        crossed = centers * (self._totals[:, None] * centers - 2 * self._sums)
        return np.asarray(raw + crossed)

    def products(self, V: Array, centers: Array) -> Array:
        """``(X_g - 1 c')' W_g ((X_g - 1 c') V)``, of shape (k, d, m)."""
        blocks = [V[s] for s in self._slices]

        def product(part: list[Any], root: Array) -> Array:
            forward = _sum(X @ block for X, block in zip(part, blocks, strict=True))
            return self._backward(part, forward)

        products = self._per_group(product)
        for g, c in enumerate(centers):
            left = np.stack([self._sums[g], c])
            sums_V, c_V = left @ V
            products[g] -= left.T @ np.stack([c_V, sums_V - self._totals[g] * c_V])
        return products

    def _backward(self, part: list[Any], Y: Array) -> Array:
        """``X' Y`` for the rows X of a part."""
        product = np.empty((self._slices[-1].stop, *Y.shape[1:]))
        for s, X in zip(self._slices, part, strict=True):
            product[s] = X.T @ Y
        return product

    def _per_group(self, function: Callable[[list[Any], Array], Any]) -> Array:
        def on_part(item: tuple[int, list[Any], Array]) -> Any:
            with np.errstate(over="ignore", invalid="ignore"):  # callers check the result
                return function(item[1], item[2])

        results = ordered_map(on_part, self._parts, self._n_threads)
        total: Any = None
        for (g, _, _), result in zip(self._parts, results, strict=True):
            if total is None:
                total = np.zeros((self._k, *np.shape(result)))
            total[g] += result
        return np.asarray(total)


def _column_slices(X: Any) -> list[slice]:
    """Columns in slices for the cache, but no more than a row's entries are worth."""
    n, d = X.shape
    most = X.nnz // (_ENTRIES_PER_SLICE * max(n, 1))
    edges = np.linspace(0, d, max(1, min(most, d // _SLICE_COLUMNS)) + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(edges.tolist())]


def shift_far_columns(X: Any, weights: Array | None) -> tuple[Any, Array]:
    """Shift columns whose mean is far from zero for their spread; also returns the shifts.

    Sparse rows are centred by subtracting products of means, which would cost these columns their
    digits. Hardly an entry of theirs is zero, so moving them stores hardly more.
    """
    counted = X if weights is None else X[weights > 0]
    n, d = counted.shape
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.asarray(counted.sum(axis=0)).ravel() / n
        variances = np.asarray(counted.power(2).sum(axis=0)).ravel() / n - means**2
        far = np.flatnonzero(means**2 > _FAR * np.abs(variances))
    shift = np.zeros(d)
    if not len(far):
        return X, shift
    shift[far] = means[far]
    others = np.ones(d)
    others[far] = 0.0
    moved = csr_array(X[:, far].toarray() - means[far])
    back = csr_array((np.ones(len(far)), (np.arange(len(far)), far)), shape=(len(far), d))
    return (X @ diags_array(others) + moved @ back).tocsr(), shift


def _sum(arrays: Iterable[Array]) -> Array:
    arrays = iter(arrays)
    total = next(arrays)
    for array in arrays:
        total += array
    return total
