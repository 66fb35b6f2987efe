"""Where results go, and a bar while they are made."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from fairpca._progress import Step

T = TypeVar("T")


def output(path: str) -> AbstractContextManager[Path]:
    """A file to write that becomes ``path``, or goes to standard output for ``-``, when whole."""
    from fairpca._tables.atomic import handing_over, replacing

    return handing_over(_to_standard_output) if path == "-" else replacing(path)


def _to_standard_output(content: Path) -> None:
    with content.open("rb") as source:
        shutil.copyfileobj(source, sys.stdout.buffer)
    sys.stdout.buffer.flush()


@contextmanager
def json_output(path: str | None) -> Iterator[Any]:
    """A text file for the numbers, which goes to standard output for ``-``, or None."""
    if path is None:
        yield None
        return
    with output(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        yield stream
        stream.write("\n")


@contextmanager
def progress(quiet: bool) -> Iterator[Any]:
    """A function that runs steps to their end; a bar shows what they say after a second."""
    from threading import Timer

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    bar = Progress(
        BarColumn(bar_width=20),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task("reading", total=None)
    after_a_second = Timer(1.0, bar.start)

    def follow(steps: Generator[Step, None, T]) -> T:
        while True:
            if _interrupts:
                raise KeyboardInterrupt
            try:
                step = next(steps)
                bar.update(task, description=str(step), completed=step.done, total=step.total)
            except StopIteration as end:
                result: T = end.value
                return result

    if console.is_terminal and not quiet:
        after_a_second.start()
    try:
        yield follow
    finally:
        after_a_second.cancel()
        if bar.live.is_started:
            bar.stop()


def say(line: str) -> None:
    print(f"fairpca: {' '.join(line.split())}", file=sys.stderr)


_interrupts: list[int] = []


def interrupt(number: int, frame: object) -> None:
    """Note Ctrl-C too: Python drops an exception raised while C code calls it back."""
    _interrupts.append(number)
    raise KeyboardInterrupt
