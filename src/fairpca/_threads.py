"""BLAS threads: how many there are, and how to do with one.

Many small products on several BLAS threads spend their time waiting for each other, and on a busy
machine a hundred times as much. Block loops and small eigenproblems therefore run on one, and
blocks are spread over Python threads instead.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")


@cache
def _libraries() -> list[Any]:
    """The BLAS libraries in this process, asked directly: a block must not wait for the answer."""
    controllers: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return controllers


class _SharedLimit:
    """Limit BLAS to one thread while anybody holds this.

    The limit belongs to the whole process: the first thread that enters sets it and the last that
    leaves lifts it, otherwise one would restore what another had limited.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._holders = 0
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._before = [library.num_threads for library in _libraries()]
                self._set([1] * len(self._before))
            self._holders += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._set(self._before)

    def _set(self, numbers: list[int]) -> None:
        for library, before, number in zip(_libraries(), self._before, numbers, strict=True):
            if before != 1:
                library.set_num_threads(number)


_shared_limit = _SharedLimit()


def single_threaded_blas() -> AbstractContextManager[None]:
    """A context in which BLAS uses one thread."""
    return _shared_limit


def blas_threads() -> int:
    """As many threads as BLAS would use now, so that the usual limits on it hold here too."""
    return max([library.num_threads for library in _libraries()], default=1)


def shared_pool(n_threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work, so that a block need not start its own; one pool per process."""
    return _pool_of(os.getpid(), n_threads)


@cache
def _pool_of(process: int, n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="fairpca")


def ordered_map(
    work: Callable[[T], R], items: Iterable[T], n_threads: int | None = None
) -> Iterator[R]:
    """``work`` of every item, in their order, by default on as many threads as BLAS would use.

    Items are drawn in the calling thread, only a few ahead of the results, so that a stream of
    large blocks needs memory for a few of them.
    """
    n_threads = n_threads or blas_threads()
    pending = deque[Future[R]]()
    with single_threaded_blas(), ThreadPoolExecutor(n_threads) as pool:
        for item in items:
            pending.append(pool.submit(work, item))
            if len(pending) > n_threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
