"""How long-running work reports its progress: it calls a function with what it is doing."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A function that is told how far the work is, such as one that shows a bar."""

    def __call__(self, doing: str, fraction: float | None = None) -> object:
        """Take what is being done and the fraction of it that is done; None if it is unknown."""


def silent(doing: str, fraction: float | None = None) -> None:
    """Ignore the progress."""
