"""Long work as a generator: it yields what it is doing and returns its result.

The command line shows the texts; everyone else just finishes the work.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def finish(steps: Generator[str, None, T]) -> T:
    """Run all steps and return the result.

    Examples
    --------
    >>> def work():
    ...     yield "thinking"
    ...     return 42
    >>> finish(work())
    42
    """
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
