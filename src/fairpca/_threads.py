"""BLAS threads: how many there are, and how to do with one.

Many small products on several BLAS threads spend their time waiting for each other, and on a busy
machine a hundred times as much. Block loops and small eigenproblems therefore run on one, and
blocks are spread over Python threads instead.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def single_threaded_blas() -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


def blas_threads() -> int:
    """As many threads as BLAS would use now, so that the usual limits on it hold here too."""
    libraries = _controller().select(user_api="blas").info()
    return max([library["num_threads"] for library in libraries], default=1)
