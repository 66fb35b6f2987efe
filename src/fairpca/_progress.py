"""Long work as a generator: it yields what it is doing and returns its result.

The command line shows the steps as a bar; everyone else just finishes the work.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Whoever wants to know how long work goes on: called with what is done and how much of it."""

    def __call__(self, doing: str, fraction: float | None = None) -> object:
        """``fraction`` rises to 1 within one job; None where it is not known."""


def silent(doing: str, fraction: float | None = None) -> None:
    """Nobody wants to know."""


class Step(NamedTuple):
    """What is being done, and how much of it is done where that is known."""

    doing: str
    done: int = 0
    total: int | None = None

    def __str__(self) -> str:
        count = f" {self.done}" if self.done or self.total else ""
        return f"{self.doing}{count}{f' of {self.total}' if self.total else ''}"


def finish(steps: Generator[Step, None, T]) -> T:
    """Run all steps and return the result.

    Examples
    --------
    >>> def work():
    ...     yield Step("thinking")
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
