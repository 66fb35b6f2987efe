"""Small blocks of rows: gathered at once, multiplied in the background.

A block of a few thousand rows is too small to be split over threads: waking them takes as long as
the work. The caller therefore only copies its rows, group by group, into one of two buffers, and
goes on while a thread adds the full one to the sums. Many small blocks also share the cost of
passing over Gram matrices.

An interrupt (Ctrl-C) reaches the caller's thread only. There a block is taken by one assignment,
and sums change in the other thread alone, so no interrupt leaves half a block behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from operator import add
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from fairpca._input.rows import ArrayRows, FrameRows, Rows
from fairpca._moments.accumulate import SAFE_TO_SQUARE, Sums, gather, weigh
from fairpca._moments.gram import add_gram, mirror
from fairpca._threads import blas_threads, shared_pool, single_threaded_blas
from fairpca._typing import Array

Members = Sequence[NDArray[np.intp]]  # the rows of each group

_BUFFER_ENTRIES = 1 << 21  # 16 MiB
_LEAST_ROOM = 256  # rows of each group, unless its Gram matrix is smaller than they are
_CHUNK_ENTRIES = 3 << 16  # 1.5 MiB, which stay in cache while they are shifted and summed


def may_wait(rows: Rows, k: int) -> bool:
    """Whether these rows are of a kind that is gathered on the host, and not too many of them."""
    on_host = isinstance(rows, (ArrayRows, FrameRows))
    return on_host and k > 0 and rows.n_rows <= _room(k, rows.n_features)


def _room(k: int, d: int) -> int:
    """For as many rows of each group."""
    return max(_BUFFER_ENTRIES // (k * d), min(_LEAST_ROOM, d))


@dataclass(frozen=True)
class _Tally:
    """What a buffer holds, without its Gram matrices."""

    filled: list[int]  # rows of each group
    rows: list[int]  # of these, with positive weight
    weights: list[float]
    sums: Array

    @classmethod
    def nothing(cls, k: int, d: int) -> _Tally:
        return cls([0] * k, [0] * k, [0.0] * k, np.zeros((k, d)))

    def plus(self, members: Members, weights: Array | None, sums: Array) -> _Tally:
        """With a block more."""
        sizes = n_rows = [len(m) for m in members]
        weight: list[float] = [*sizes]
        if weights is not None:
            n_rows = [int(np.count_nonzero(weights[m])) for m in members]
            weight = [float(weights[m].sum()) for m in members]
        return _Tally(
            filled=[*map(add, self.filled, sizes)],
            rows=[*map(add, self.rows, n_rows)],
            weights=[*map(add, self.weights, weight)],
            sums=self.sums + sums,
        )


class _Buffer:
    """Rows of each group about its shift, times the square roots of their weights."""

    def __init__(self, k: int, d: int) -> None:
        self.Z = np.empty((k, _room(k, d), d))
        self.tally = _Tally.nothing(k, d)
        self.lock = Lock()
        self.at_work: Future[None] | None = None

    def has_room(self, members: Members) -> bool:
        room = self.Z.shape[1]
        return all(n + len(m) <= room for n, m in zip(self.tally.filled, members, strict=True))

    def places(self, members: Members) -> Iterator[tuple[int, NDArray[np.intp], Array]]:
        """Of each chunk of a block: its group, its rows and where to put them."""
        size = max(64, _CHUNK_ENTRIES // self.Z.shape[2])
        for g, rows in enumerate(members):
            for a in range(0, len(rows), size):
                chunk = rows[a : a + size]
                first = self.tally.filled[g] + a
                yield g, chunk, self.Z[g, first : first + len(chunk)]


class PendingRows:
    """Rows that are yet to be added to ``total``, about its shifts."""

    def __init__(self, total: Sums) -> None:
        self._total = total
        self._buffers: list[_Buffer] = []  # the first one is being filled
        self._lock = Lock()

    def take(self, rows: Rows, members: Members, weights: Array | None) -> bool:
        """Copy the rows; False, and nothing is taken, when their squares may not be finite."""
        with self._lock:
            buffer = self._buffer_for(members)
            with buffer.lock:
                return self._fill(buffer, rows, members, weights)

    def _fill(self, buffer: _Buffer, rows: Rows, members: Members, weights: Array | None) -> bool:
        shifts, values = self._total.shifts, rows.block(0, rows.n_rows)
        sums = np.zeros(shifts.shape)
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
            for g, chunk, Z in buffer.places(members):
                gather(values, chunk, Z)
                if shifts[g].any():
                    Z -= shifts[g]
                sums[g] += weigh(Z, None if weights is None else weights[chunk])
                if not Z.max() < SAFE_TO_SQUARE:
                    return False
                if weights is not None and not Z.min() > -SAFE_TO_SQUARE:
                    return False
        # Unweighted, a number far below zero shows in the sum of its column: none is far above.
        if not np.abs(sums).max() < SAFE_TO_SQUARE:
            return False
        buffer.tally = buffer.tally.plus(members, weights, sums)
        return True

    def settle(self) -> None:
        """Complete ``total``."""
        with self._lock:
            if self._buffers:
                for buffer in self._buffers:
                    _finish(buffer)
                _in_background(self._complete).result()
                self._buffers = []

    def _buffer_for(self, members: Members) -> _Buffer:
        """One with room for these rows; a full one is handed over to be added."""
        if not self._buffers:
            self._buffers = [_Buffer(*self._total.sums.shape) for _ in range(2)]
        if not self._buffers[0].has_room(members):
            full, other = self._buffers
            full.at_work = _in_background(self._add, full)
            if blas_threads() == 1:  # nobody wants a second thread at work
                _finish(full)
            self._buffers = [other, full]
            _finish(other)
            if not other.has_room(members):  # its work was interrupted before it began
                _in_background(self._add, other).result()
        return self._buffers[0]

    # -- in the background -------------------------------------------------------------------------

    def _add(self, buffer: _Buffer) -> None:
        """Add what a buffer holds, if anything, to the sums; of Gram matrices the lower halves."""
        with buffer.lock:
            total, tally = self._total, buffer.tally
            for G, Z, n in zip(total.grams, buffer.Z, tally.filled, strict=True):
                if n:
                    add_gram(G, Z[:n])
            total.rows += tally.rows
            total.weights += tally.weights
            total.sums += tally.sums
            buffer.tally = _Tally.nothing(*total.sums.shape)

    def _complete(self) -> None:
        for buffer in self._buffers:
            self._add(buffer)
        mirror(self._total.grams)


_latest: Future[None] | None = None  # of all objects; they are done one after the other


def _in_background(work: Callable[..., None], *arguments: object) -> Future[None]:
    global _latest
    try:
        _latest = shared_pool(1).submit(work, *arguments)
    except RuntimeError:  # the interpreter is on its way out and starts nothing any more
        work(*arguments)
        _latest = Future()
        _latest.set_result(None)
    return _latest


def _finish(buffer: _Buffer) -> None:
    if buffer.at_work is not None:
        buffer.at_work.result()


def _finish_all() -> None:
    if _latest is not None:
        _latest.result()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish_all)  # a child has none of our threads
