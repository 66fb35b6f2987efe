"""Threads: ours share the blocks of rows, and BLAS uses a single one meanwhile.

Many small products on several BLAS threads spend their time waiting for each other; on a busy
machine they take a hundred times as long. So block loops and small eigenproblems run with one BLAS
thread, and blocks are spread over Python threads instead.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from threading import Lock, get_ident
from typing import Any, Generic, Self, TypeVar, overload

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")

_lock = Lock()
_holders: list[int] = []  # threads that need the limit, once for each time they asked for it
_before: list[int] = []  # the number of threads of each BLAS library without the limit


class computed_once(Generic[T]):
    """``functools.cached_property`` without its lock.

    Up to Python 3.11 all objects share that lock, so a process that was forked while another thread
    computed such a property would wait for it for ever. Without it two threads may both compute the
    value, which is the same.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Learn the name under which the value is kept."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        """Compute the value; afterwards the object's own attribute is found first."""
        if instance is None:
            return self
        value = vars(instance)[self._name] = self._compute(instance)
        return value


@cache
def _libraries() -> list[Any]:
    """The BLAS libraries in this process; looking for them takes too long to do for every block."""
    controllers: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return controllers


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread.

    The limit belongs to the whole process. The first thread that asks for it sets it and the last
    one lifts it; threadpoolctl's own limits would be lifted by whichever thread ends first.
    """
    thread = get_ident()
    with _lock:
        if not _holders:
            _before[:] = [library.num_threads for library in _libraries()]
            _set_threads([1] * len(_before))
        _holders.append(thread)
    try:
        yield
    finally:
        with _lock:
            _holders.remove(thread)
            if not _holders:
                _set_threads(_before)


def _set_threads(numbers: list[int]) -> None:
    for library, number in zip(_libraries(), numbers, strict=True):
        library.set_num_threads(number)


def _after_fork() -> None:
    """Only the thread that forked lives on in the child: the others hold neither lock nor limit."""
    global _lock
    _lock = Lock()
    _pool.cache_clear()
    gone = [thread for thread in _holders if thread != get_ident()]
    for thread in gone:
        _holders.remove(thread)
    if gone and not _holders:
        _set_threads(_before)


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)


def blas_threads() -> int:
    """As many threads as BLAS would use now, so that the usual limits on it hold here too."""
    return max([library.num_threads for library in _libraries()], default=1)


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that are kept: to start one takes as long as to multiply a thousand rows."""
    return ThreadPoolExecutor(os.cpu_count(), "fairpca")


def share_out(work: Callable[[T], R], items: Iterable[T], n_threads: int) -> list[R]:
    """``work`` of every item, in their order, by this thread and up to ``n_threads - 1`` others.

    Each takes the next item when it is done with one. This thread waits for no other to begin, so
    that a busy machine costs nothing, and work that is shared out within other work cannot hang.
    """
    results: dict[int, R] = {}
    todo, lock = enumerate(items), Lock()

    def take_part() -> None:
        nonlocal todo
        try:
            while True:
                with lock:
                    i, item = next(todo, (-1, None))
                if i < 0:
                    return
                results[i] = work(item)  # type: ignore[arg-type]
        except BaseException:
            with lock:
                todo = enumerate(())  # an error ends the work of the others too
            raise

    with single_threaded_blas():
        try:
            others = [_pool().submit(take_part) for _ in range(n_threads - 1)]
        except RuntimeError:  # while Python shuts down there are no other threads
            others = []
        try:
            take_part()
        finally:
            begun = [other for other in others if not other.cancel()]
            wait(begun)
        for other in begun:
            other.result()
    return [results[i] for i in range(len(results))]


def ordered_map(
    work: Callable[[T], R], items: Iterable[T], n_threads: int | None = None
) -> Iterator[R]:
    """``work`` of every item, in their order, by default on as many threads as BLAS would use.

    Items are drawn in the calling thread, only a few ahead of the results, so that a stream of
    large blocks needs memory for a few of them.
    """
    n_threads = n_threads or blas_threads()
    if n_threads == 1:
        with single_threaded_blas():
            yield from map(work, items)
        return
    pending = deque[Future[R]]()
    with single_threaded_blas(), ThreadPoolExecutor(n_threads) as pool:
        for item in items:
            pending.append(pool.submit(work, item))
            if len(pending) > n_threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
