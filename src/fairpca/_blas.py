"""Threads: blocks of rows are shared among Python threads, while BLAS uses a single thread.

Many small products on several BLAS threads spend their time waiting for each other; on a busy
machine they take a hundred times as long. So block loops and small eigenproblems run with one BLAS
thread, and blocks are spread over Python threads instead.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TypeVar

from threadpoolctl import LibController, ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")

WORK_WORTH_A_THREAD = 1e7  # multiplications; fewer take no longer than waking a thread

_lock = Lock()
_users = 0  # number of contexts that need the limit now
_before: list[int] = []  # the number of threads of each BLAS library without the limit


@cache
def _libraries() -> list[LibController]:
    """The BLAS libraries in this process; looking for them takes too long to do for every block."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread.

    The limit belongs to the whole process. The first context sets it and the last one lifts it;
    threadpoolctl's own limits would be lifted by whichever thread ends first.
    """
    global _users
    with _lock:
        if _users == 0:
            _before[:] = [library.num_threads for library in _libraries()]
            for library in _libraries():
                library.set_num_threads(1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users = max(_users - 1, 0)  # a fork may have reset it
            if _users == 0:
                for library, number in zip(_libraries(), _before, strict=True):
                    library.set_num_threads(number)


def _start_afresh_in_child() -> None:
    """Forget the contexts of the threads that a fork leaves behind, and their limit."""
    global _users
    for library, number in zip(_libraries(), _before if _users else [], strict=False):
        library.set_num_threads(number)
    _users = 0
    _lock.release()


# Nobody would ever release a lock that another thread held at the moment of a fork.
if hasattr(os, "register_at_fork"):  # not on Windows
    after = {"after_in_parent": _lock.release, "after_in_child": _start_afresh_in_child}
    os.register_at_fork(before=_lock.acquire, **after)


def blas_threads() -> int:
    """The number of threads that BLAS would use now; limits on BLAS thus hold for ours too."""
    return max([library.num_threads for library in _libraries()], default=1)


def parallel_map(
    work: Callable[[T], R], items: Iterable[T], n_threads: int | None = None
) -> Iterator[R]:
    """Apply ``work`` to each item, in order, by default on as many threads as BLAS would use.

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
        try:
            for item in items:
                pending.append(pool.submit(work, item))
                if len(pending) > n_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:  # after an error nobody wants the rest
                future.cancel()
