"""Progress of long work, and text that is safe to print."""

from typing import Protocol


class Progress(Protocol):
    """A function that is told what is being done, and the fraction that is done, if known."""

    def __call__(self, doing: str, fraction: float | None = None) -> object: ...


def silent(doing: str, fraction: float | None = None) -> None:
    """Ignore the progress."""


def printable(text: object) -> str:
    """The text without characters that move the cursor or change the direction of writing."""
    return "".join(c if c.isprintable() else "\ufffd" for c in str(text))
