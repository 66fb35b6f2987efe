"""One pass over rows: weights, sums and Gram matrices of every group about provisional shifts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fairpca._input.device import DeviceRows
from fairpca._input.rows import ColumnRows, DensifiedRows, Rows, SparseRows, refuse_unusable_numbers
from fairpca._moments.gram import add_gram, mirror
from fairpca._threads import blas_threads, shared_pool, single_threaded_blas
from fairpca._typing import Array

_BLOCK_ROWS = 4096
_BLOCK_ENTRIES = 1 << 22  # at most 32 MiB of float64 a block, however many columns
_LARGEST_GRAMS = 1 << 33  # bytes
_ROWS_FOR_SHIFT = 64
SAFE_TO_SQUARE = 1e150
_WORK_WORTH_A_THREAD = 2e7  # multiplications; for less, waking a thread takes as long


@dataclass
class Sums:
    """What is added up, one entry for each of k groups."""

    rows: NDArray[np.int64]  # of positive weight
    weights: Array
    shifts: Array  # (k, d)
    sums: Array  # (k, d), about the shifts
    grams: Array  # (k, d, d), about the shifts

    @classmethod
    def zeros(cls, k: int, d: int, shifts: Array | None = None) -> Sums:
        """Nothing yet, about these shifts or about zero."""
        return cls(
            rows=np.zeros(k, np.int64),
            weights=np.zeros(k),
            shifts=np.zeros((k, d)) if shifts is None else shifts.copy(),
            sums=np.zeros((k, d)),
            grams=np.zeros((k, d, d)),
        )

    def copy(self) -> Sums:
        """Arrays of its own."""
        return Sums(*(array.copy() for array in vars(self).values()))

    def add_pieces(self, pieces: list[Sums]) -> None:
        """Add sums of the same groups about the same shifts."""
        for piece in pieces:
            self.rows += piece.rows
            self.weights += piece.weights
            self.sums += piece.sums
            self.grams += piece.grams

    def add_group(self, here: int, other: Sums, there: int) -> None:
        """Add one group of ``other``, moved to the shift of ours."""
        n, s = other.weights[there], other.sums[there]
        if self.rows[here] == 0:
            self.shifts[here] = other.shifts[there]
        e = other.shifts[there] - self.shifts[here]
        self.rows[here] += other.rows[there]
        self.weights[here] += n
        self.sums[here] += s
        self.grams[here] += other.grams[there]
        if e.any():
            self.sums[here] += n * e
            cross = np.outer(s + 0.5 * n * e, e)
            self.grams[here] += cross
            self.grams[here] += cross.T


def accumulate(
    rows: Rows,
    codes: NDArray[np.intp],
    k: int,
    weights: Array | None = None,
    shifts: Array | None = None,
) -> Sums:
    """One pass over the rows, split over threads in contiguous ranges (so results repeat)."""
    d = rows.n_features
    if k * d * d * 8 > _LARGEST_GRAMS:
        raise ValueError(
            f"the {d} x {d} matrices of {k} groups need {k * d * d * 8 / 2**30:.0f} GiB; call "
            "fit(X, sensitive_features=groups) with all of X at once (a sparse matrix or memory "
            "map, say), which forms none, or pass fewer columns."
        )
    if rows.is_sparse:
        shifts = np.zeros((k, d))
    elif shifts is None:
        counting = codes if weights is None else np.where(weights > 0, codes, -1)
        shifts = _provisional_shifts(rows, counting, k)
    threaded = rows.n_rows * d * d > _WORK_WORTH_A_THREAD and not isinstance(rows, DeviceRows)
    n_threads = blas_threads() if threaded else 1
    pieces = [Sums.zeros(k, d, shifts) for _ in range(n_threads)]

    def add(piece: Sums, start: int, stop: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(rows, DeviceRows):
                _add_device_rows(piece, rows, codes, weights)
            elif rows.is_sparse:
                _add_sparse_rows(piece, rows, codes, weights, start, stop)
            else:
                _add_dense_rows(piece, rows, codes, weights, start, stop)

    edges = [rows.n_rows * i // n_threads for i in range(n_threads + 1)]
    with single_threaded_blas():
        elsewhere = [
            shared_pool(n_threads).submit(add, piece, *part)
            for piece, part in zip(pieces[1:], pairwise(edges[1:]), strict=True)
        ]
        add(pieces[0], 0, edges[1])
        for part in elsewhere:
            part.result()
    total, *others = pieces
    total.add_pieces(others)
    if not rows.is_sparse and not isinstance(rows, DeviceRows):
        mirror(total.grams)
    finite = np.isfinite(total.sums).all() and np.isfinite(total.grams).all()
    if not finite or np.abs(total.shifts).max() > SAFE_TO_SQUARE:
        refuse_unusable_numbers(rows)
    if isinstance(rows, SparseRows) and _lost_digits(total):
        return accumulate(DensifiedRows(rows), codes, k, weights)
    return total


def _lost_digits(total: Sums) -> bool:
    """Whether means far from zero, to which sparse rows are not shifted, have cost digits.

    A constant column costs nothing that matters beside the variance of the others.
    """
    weighted = total.weights > 0
    n = total.weights[weighted, None]
    squares = (total.sums[weighted] / n) ** 2
    variances = np.diagonal(total.grams[weighted], axis1=1, axis2=2) / n - squares
    lost = 1e-15 * squares
    whole = np.abs(variances).sum(axis=1, keepdims=True)
    return bool(((lost > 1e-9 * np.abs(variances)) & (lost > 1e-12 * whole)).any())


def _provisional_shifts(rows: Rows, codes: NDArray[np.intp], k: int) -> Array:
    """The mean of the first rows of each group: near enough to its mean to save the digits.

    Rows of no group, with a code below zero, do not count.

    Columns whose mean is within a standard deviation of zero lose none without a shift.
    """
    shifts, first = np.zeros((k, rows.n_features)), min(rows.n_rows, 8 * _ROWS_FOR_SHIFT)
    head, head_codes = rows.block(0, first), codes[:first]
    for g in range(k):
        members = np.flatnonzero(head_codes == g)[:_ROWS_FOR_SHIFT]
        if len(members):
            sample = head[members]
        else:
            start = int(np.argmax(codes == g))  # any row where all have weight zero
            sample = rows.block(start, start + 1)
        with np.errstate(over="ignore", invalid="ignore"):
            shift = sample.mean(axis=0, dtype=np.float64)
            needed = np.isfinite(shift) & (np.abs(shift) > sample.std(axis=0, dtype=np.float64))
        shifts[g] = np.where(needed, shift, 0.0)
    return shifts


def _block_rows(d: int) -> int:
    return min(_BLOCK_ROWS, max(64, _BLOCK_ENTRIES // d))


def _add_dense_rows(
    piece: Sums,
    rows: Rows,
    codes: NDArray[Any],
    weights: Array | None,
    start: int,
    stop: int,
) -> None:
    k, d = len(piece.rows), rows.n_features
    size = _block_rows(d)
    # Columns are gathered as columns: copying them across into rows would take longer than BLAS.
    order_in_memory: Literal["F", "C"] = "F" if isinstance(rows, ColumnRows) else "C"
    buffer = np.empty((min(size, stop - start), d), order=order_in_memory)
    shifted: list[bool] = [bool(shift.any()) for shift in piece.shifts]
    for low in range(start, stop, size):
        high = min(low + size, stop)
        order, edges = by_group(codes[low:high], k)
        Z = buffer[: high - low]
        if isinstance(rows, ColumnRows):
            rows.gather(low, high, order, Z)
        else:
            gather(rows.block(low, high), order, Z)
        w: Array | None = None if weights is None else weights[low:high][order]
        for g in range(k):
            a, b = edges[g], edges[g + 1]
            if a == b:
                continue
            Z_g = Z[a:b]
            if shifted[g]:
                Z_g -= piece.shifts[g]
            if w is None:
                piece.rows[g] += b - a
                piece.weights[g] += b - a
            else:
                piece.rows[g] += np.count_nonzero(w[a:b])
                piece.weights[g] += w[a:b].sum()
            piece.sums[g] += weigh(Z_g, None if w is None else w[a:b])
            add_gram(piece.grams[g], Z_g)


def gather(block: NDArray[Any], order: NDArray[np.intp], out: Array) -> None:
    """Copy rows of a block, in this order."""
    if block.dtype == np.float64:
        block.take(order, axis=0, out=out, mode="clip")
    else:
        out[:] = block[order]


def weigh(Z: Array, weights: Array | None) -> Array:
    """The weighted sum of rows, which then are multiplied by the square roots of their weights."""
    if weights is None:
        return np.asarray(np.ones(len(Z)) @ Z)
    total = weights @ Z
    Z *= np.sqrt(weights)[:, None]
    return np.asarray(total)


def _add_sparse_rows(
    piece: Sums,
    rows: Rows,
    codes: NDArray[Any],
    weights: Array | None,
    start: int,
    stop: int,
) -> None:
    """As for dense rows, but with shift zero, which keeps the zeros."""
    size = 4 * _BLOCK_ROWS
    for low in range(start, stop, size):
        high = min(low + size, stop)
        block = rows.block(low, high)
        order, edges = by_group(codes[low:high], len(piece.rows))
        for g, (a, b) in enumerate(pairwise(edges)):
            if a == b:
                continue
            Z_g = block[order[a:b]]
            w = np.ones(b - a) if weights is None else weights[low:high][order[a:b]]
            piece.rows[g] += np.count_nonzero(w)
            piece.weights[g] += w.sum()
            piece.sums[g] += Z_g.T @ w
            piece.grams[g] += (Z_g.T @ sp.diags_array(w) @ Z_g).toarray()


def _add_device_rows(
    piece: Sums, rows: DeviceRows, codes: NDArray[Any], weights: Array | None
) -> None:
    k = len(piece.rows)
    counted = codes if weights is None else codes[weights > 0]
    piece.rows += np.bincount(counted, minlength=k)
    piece.weights += np.bincount(codes, weights, minlength=k)
    piece.sums, piece.grams = rows.sums_and_grams(codes, weights, piece.shifts)


def by_group(codes: NDArray[Any], k: int) -> tuple[NDArray[np.intp], list[int]]:
    """The order that puts the rows of a block group by group, and where each group starts."""
    edges = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=k))]).tolist()
    if k <= 256:
        codes = codes.astype(np.uint8)  # radix sort
    return np.argsort(codes, kind="stable"), edges
