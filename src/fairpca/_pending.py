"""Small blocks of rows: gathered at once, multiplied in the background.

A block of a few thousand rows is too small to be split over threads: waking them takes as long as
the work. The caller therefore only copies its rows, group by group, into one of two buffers, and
goes on while a thread adds the Gram matrices of the full one. Many small blocks also share the cost
of passing over these matrices.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from threading import Lock
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from fairpca._accumulation import Sums, gather, weigh
from fairpca._gram import add_gram, mirror
from fairpca._threads import blas_threads, shared_pool, single_threaded_blas
from fairpca.sources.in_memory import ArrayRows, FrameRows, Rows

Array = NDArray[np.float64]
Members = Sequence[NDArray[np.intp]]  # the rows of each group

_BUFFER_ENTRIES = 1 << 21  # 16 MiB
_LEAST_ROOM = 256  # rows of each group, unless its Gram matrix is smaller than they are
_CHUNK_ENTRIES = 3 << 16  # 1.5 MiB, which stay in cache while they are shifted and summed
_SAFE_TO_SQUARE = 1e150
_WIDE = 128  # columns, from which one thread multiplies for much longer than the caller gathers


class _Buffer:
    """Rows of each group about its shift, times the square roots of their weights."""

    def __init__(self, k: int, room: int, d: int) -> None:
        self.Z = np.empty((k, room, d))
        self.filled = [0] * k

    def add_grams(self, grams: Array, part: int = 0, n_parts: int = 1) -> None:
        """Add the Gram matrices of one of several parts of the rows to the lower triangles."""
        for G, Z, n in zip(grams, self.Z, self.filled, strict=True):
            rows = slice(n * part // n_parts, n * (part + 1) // n_parts)
            if rows.start < rows.stop:
                add_gram(G, Z[rows])


def may_wait(rows: Rows, k: int) -> bool:
    """Whether these rows are of a kind that is gathered on the host, and not too many of them."""
    on_host = isinstance(rows, (ArrayRows, FrameRows))
    return on_host and k > 0 and rows.n_rows <= _room(k, rows.n_features)


def _room(k: int, d: int) -> int:
    """For as many rows of each group."""
    return max(_BUFFER_ENTRIES // (k * d), min(_LEAST_ROOM, d))


class PendingRows:
    """Rows whose Gram matrices are yet to be added to ``total``, about its shifts."""

    def __init__(self, total: Sums) -> None:
        k, d = total.sums.shape
        self._total = total
        self._filling, self._spare = (_Buffer(k, _room(k, d), d) for _ in range(2))
        self._at_work: list[Future[None]] = []
        self._parts: list[Array] = []  # further Gram matrices to be added
        self._lock = Lock()
        _all_pending.add(self)

    def take(self, rows: Rows, members: Members, weights: Array | None) -> bool:
        """Copy the rows; False, and nothing is taken, when their squares may not be finite."""
        total = self._total
        sums, highest = np.zeros_like(total.sums), 0.0
        filled = [n + len(m) for n, m in zip(self._filling.filled, members, strict=True)]
        if max(filled) > self._filling.Z.shape[1]:
            self._hand_over()
            filled = [len(m) for m in members]
        values = rows.block(0, rows.n_rows)
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
            for g, chunk, Z in self._places(members):
                gather(values, chunk, Z)
                if total.shifts[g].any():
                    Z -= total.shifts[g]
                sums[g] += weigh(Z, None if weights is None else weights[chunk])
                highest = max(highest, float(Z.max()))
        # With nothing far above zero, a number far below it shows in the sum of its column.
        if not (highest < _SAFE_TO_SQUARE and (np.abs(sums) < _SAFE_TO_SQUARE).all()):
            return False
        self._filling.filled = filled
        total.sums += sums
        for g, m in enumerate(members):
            total.rows[g] += len(m) if weights is None else np.count_nonzero(weights[m])
            total.weights[g] += len(m) if weights is None else weights[m].sum()
        return True

    def _places(self, members: Members) -> Iterator[tuple[int, NDArray[np.intp], Array]]:
        """Of each chunk of a block: its group, its rows and where to put them."""
        size = max(64, _CHUNK_ENTRIES // self._filling.Z.shape[2])
        for g, rows in enumerate(members):
            for a in range(0, len(rows), size):
                chunk = rows[a : a + size]
                first = self._filling.filled[g] + a
                yield g, chunk, self._filling.Z[g, first : first + len(chunk)]

    def settle(self) -> None:
        """Complete ``total``."""
        with self._lock:
            self._hand_over()
            self.wait()
            self._total.grams += sum(self._parts)
            self._parts = []
            mirror(self._total.grams)

    def _hand_over(self) -> None:
        """Have the filled buffer multiplied, and go on with the other."""
        self.wait()
        full, self._filling, self._spare = self._filling, self._spare, self._filling
        self._filling.filled = [0] * len(full.filled)
        grams, n_threads = self._total.grams, blas_threads()
        if n_threads == 1:
            full.add_grams(grams)
        elif grams.shape[1] < _WIDE:
            self._at_work = [shared_pool(1).submit(full.add_grams, grams)]
        else:
            self._add_parts(full, n_threads)

    def _add_parts(self, full: _Buffer, n_threads: int) -> None:
        """Multiply on all threads, each with matrices of its own."""
        with single_threaded_blas():
            while len(self._parts) < n_threads - 1:
                self._parts.append(np.zeros_like(self._total.grams))
            self._at_work = [
                shared_pool(n_threads).submit(full.add_grams, part, i, n_threads)
                for i, part in enumerate(self._parts[: n_threads - 1], start=1)
            ]
            full.add_grams(self._total.grams, 0, n_threads)
            self.wait()

    def wait(self) -> None:
        """Until no thread is at work."""
        for work in self._at_work:
            work.result()
        self._at_work = []


_all_pending = WeakSet[PendingRows]()


def _wait_for_all() -> None:
    for pending in list(_all_pending):
        pending.wait()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_all)  # a child has none of our threads
