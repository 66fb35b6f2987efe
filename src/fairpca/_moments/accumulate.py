"""One pass over rows: the sums and Gram matrices of every group, about provisional shifts.

It costs about n d^2 multiplications (Gram matrices are symmetric), in blocks that stay in cache,
each thread with a single-threaded BLAS.
"""

from functools import partial
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fairpca._blas import WORK_WORTH_A_THREAD, blas_threads, parallel_map
from fairpca._input.device import ENTRIES_AT_A_TIME, DeviceRows
from fairpca._input.rows import DenseRows, MadeRows, Rows, SparseRows, refuse_unusable_numbers
from fairpca._moments.operand import refuse_large_matrices
from fairpca._moments.sums import Sums
from fairpca._moments.tolerances import SAFE_TO_SQUARE
from fairpca._typing import Array, Codes

_ROWS_A_GROUP = 2048  # rows of a block for each group: products of fewer rows are slower
_PARTS_A_THREAD = 4  # with several small parts, no thread waits long for one that is late


@np.errstate(over="ignore", invalid="ignore")  # sums that are not finite are refused at the end
def accumulate(rows: Rows, codes: Codes, k: int, weights: Array | None = None) -> Sums:
    """Sums of k groups of rows, from parts added in a fixed order, so that results repeat."""
    n = rows.n_rows
    d = rows.n_features
    if d * d > ENTRIES_AT_A_TIME:  # the matrices may not fit into memory
        refuse_large_matrices(k, d, copies=1 + max(blas_threads(), 2))
    if isinstance(rows, SparseRows):
        shifts = np.zeros((k, d))  # zeros stay zeros
    else:
        shifts = _provisional_shifts(rows, codes, k, weights)

    if isinstance(rows, DeviceRows):
        sums, grams = rows.sums_and_grams(codes, weights, shifts)
    else:
        n_threads = max(min(blas_threads(), n, int(n * d * d // WORK_WORTH_A_THREAD)), 1)
        n_parts = n_threads
        if n_threads > 1 and d * d <= ENTRIES_AT_A_TIME:  # each part has matrices of its own
            n_parts *= min(max(n // (n_threads * k * _ROWS_A_GROUP), 1), _PARTS_A_THREAD)
        edges = pairwise([n * i // n_parts for i in range(n_parts + 1)])
        if isinstance(rows, SparseRows):
            sum_up = partial(_sparse_sums, rows, codes, weights, shifts)
        else:
            sum_up = partial(_dense_sums, rows, codes, weights, shifts)
        parts = parallel_map(sum_up, edges, n_threads)
        sums, grams = next(parts)
        for more_sums, more_grams in parts:
            sums += more_sums
            grams += more_grams
    squares = np.diagonal(grams, axis1=1, axis2=2)  # no entry overflows where these do not
    finite = np.isfinite(sums).all() and np.isfinite(squares).all()
    if not finite or np.abs(shifts).max() > SAFE_TO_SQUARE:
        refuse_unusable_numbers(rows)
    counted = codes
    if weights is not None:
        counted = codes[weights > 0]
    n_rows = np.bincount(counted, minlength=k)
    totals = np.bincount(codes, weights, minlength=k).astype(np.float64)
    total = Sums(n_rows, totals, shifts, sums, grams)
    if isinstance(rows, SparseRows) and _lost_digits(total):
        dense = MadeRows(n, d, lambda start, stop: rows.block(start, stop).toarray())
        return accumulate(dense, codes, k, weights)
    return total


def _lost_digits(total: Sums) -> bool:
    """Whether sparse rows, which are not shifted, lost digits because of means far from zero."""
    weighted = total.weights > 0
    n = total.weights[weighted, None]
    squares = (total.sums[weighted] / n) ** 2
    variances = np.diagonal(total.grams[weighted], axis1=1, axis2=2) / n - squares
    lost = 1e-15 * squares
    whole = np.abs(variances).sum(axis=1, keepdims=True)
    # A constant column costs nothing that matters beside the variance of the others.
    return bool(((lost > 1e-9 * np.abs(variances)) & (lost > 1e-12 * whole)).any())


def _provisional_shifts(
    rows: DenseRows | DeviceRows, codes: Codes, k: int, weights: Array | None
) -> Array:
    """The mean of the first rows of each group, or zero where it is within a deviation of zero."""
    if weights is not None:
        codes = np.where(weights > 0, codes, -1)
    first = min(rows.n_rows, _ROWS_A_GROUP // 8)
    head = np.asarray(rows.block(0, first), np.float64)
    counted = codes[:first] >= 0
    if not counted.all():
        head = np.where(counted[:, None], head, 0.0)  # rows of weight zero may hold anything
    members = (codes[:first] == np.arange(k)[:, None]).astype(np.float64)
    n = np.maximum(members.sum(axis=1), 1.0)[:, None]
    shifts = members @ head / n
    squares = members @ (head * head) / n
    for g in np.flatnonzero(~members.any(axis=1)):
        start = int(np.argmax(codes == g))  # any row if all of them have weight zero
        shifts[g] = rows.block(start, start + 1)[0]
    needed = np.isfinite(shifts) & (2 * shifts**2 > squares)
    return np.where(needed, shifts, 0.0)


@np.errstate(over="ignore", invalid="ignore")
def _dense_sums(
    rows: DenseRows, codes: Codes, weights: Array | None, shifts: Array, part: tuple[int, int]
) -> tuple[Array, Array]:
    """Sums and Gram matrices of each group about its shift, over a part of the rows."""
    start, stop = part
    k, d = shifts.shape
    sums = np.zeros((k, d))
    grams = np.zeros((k, d, d))
    size = min(k * _ROWS_A_GROUP, max(64, ENTRIES_AT_A_TIME // d), stop - start)
    buffer = np.empty(size * d)
    ones = np.ones(size)
    shifted = [bool(shift.any()) for shift in shifts]
    for low in range(start, stop, size):
        high = min(low + size, stop)
        order, groups = by_group(codes[low:high], k)
        Z = rows.gather(low, order, buffer)
        w = ones
        if weights is not None:
            w = np.sqrt(weights[low:high][order])
        for g, members in groups:
            Z_g = Z[members]
            w_g = w[members]
            if shifted[g]:
                Z_g -= shifts[g]
            if weights is not None:
                Z_g *= w_g[:, None]
            sums[g] += w_g @ Z_g
            grams[g] += Z_g.T @ Z_g
    return sums, grams


@np.errstate(over="ignore", invalid="ignore")
def _sparse_sums(
    rows: SparseRows, codes: Codes, weights: Array | None, shifts: Array, part: tuple[int, int]
) -> tuple[Array, Array]:
    """Like :func:`_dense_sums`, with all shifts zero."""
    start, stop = part
    k, d = shifts.shape
    sums = np.zeros((k, d))
    grams = np.zeros((k, d, d))
    for low in range(start, stop, 8 * _ROWS_A_GROUP):
        high = min(low + 8 * _ROWS_A_GROUP, stop)
        order, groups = by_group(codes[low:high], k)
        block = rows.block(low, high)[order]
        w = np.ones(high - low)
        if weights is not None:
            w = weights[low:high][order]
        for g, members in groups:
            Z_g = block[members]
            w_g = w[members]
            sums[g] += Z_g.T @ w_g
            grams[g] += (Z_g.T @ sp.diags_array(w_g) @ Z_g).toarray()
    return sums, grams


def by_group(codes: Codes, k: int) -> tuple[NDArray[np.intp], list[tuple[int, slice]]]:
    """The order that sorts a block by group, and the slice of each group in that order."""
    short: NDArray[np.generic] = codes
    if k <= 256:
        short = codes.astype(np.uint8)  # for a radix sort
    order = np.argsort(short, kind="stable")
    edges = [0, *np.cumsum(np.bincount(codes, minlength=k)).tolist()]
    return order, [(g, slice(a, b)) for g, (a, b) in enumerate(pairwise(edges)) if a < b]
