"""Where results go: files that appear whole, standard output, and lines that are safe to print."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from io import TextIOWrapper
from os.path import realpath, splitext
from pathlib import Path
from threading import Timer, current_thread, main_thread
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from fairpca.report.text import printable

if TYPE_CHECKING:
    from fairpca._progress import Progress


def put(text: str, stream: TextIO | None = None) -> None:
    """Print lines that may hold anything: the one place that prints, and it strips.

    Control characters of names and labels do not reach the terminal.
    """
    lines = (printable(line) for line in text.split("\n"))
    print("\n".join(lines), file=sys.stdout if stream is None else stream)


def print_line(line: str) -> None:
    """Print one line on standard error."""
    if sys.stderr is not None:
        put(f"fairpca: {' '.join(line.split())}", sys.stderr)


@contextmanager
def with_streams() -> Iterator[None]:
    """Have a standard output even if it was closed, and print "?" for what its encoding lacks."""
    stream = sys.stdout
    if stream is None:  # started with >&-
        with open(os.devnull, "w") as sys.stdout:
            try:
                yield
            finally:
                sys.stdout = stream
        return
    if not isinstance(stream, TextIOWrapper):
        yield
        return
    errors = stream.errors
    stream.reconfigure(errors="replace")
    try:
        yield
    finally:
        with suppress(BrokenPipeError):  # it flushes
            stream.reconfigure(errors=errors)


def discard_output() -> None:
    """Send the rest of our output nowhere, so that Python does not flush it to a closed pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def output(
    path: str, reads: Sequence[str], endings: Sequence[str] = (), what: str = ""
) -> AbstractContextManager[Path]:
    """A file to write; once complete it becomes ``path``, or standard output for ``-``.

    It must be none of the files that the command reads, and its ending must not promise another
    format than ``what``.
    """
    from fairpca._tables.atomic import handing_over, refuse_inputs, replacing

    refuse_inputs(path, reads)
    name, ending = splitext(path)
    if endings and ending and ending.lower() not in endings:
        raise ValueError(f"{path}: this writes {what}; pass {name}{endings[0]} as its name.")
    return replacing(path, reads) if path != "-" else handing_over(_to_standard_output)


def _to_standard_output(content: Path) -> None:
    with content.open("rb") as source:
        shutil.copyfileobj(source, sys.stdout.buffer)
    sys.stdout.buffer.flush()


@contextmanager
def outputs(reads: Sequence[str], **names: str | None) -> Iterator[dict[str, Path]]:
    """A file to write for each name that is not None; no two names may be of one file."""
    known = {
        "out": ((".html", ".htm"), "a page (print it from a browser to get a PDF)"),
        "json": ((), ""),
        "model_card": ((".md",), "a card in Markdown"),
    }
    seen: dict[str, str] = {}
    for option, name in names.items():
        if name is not None and (other := seen.setdefault(realpath(name), option)) != option:
            first, second = (f"--{word.replace('_', '-')}" for word in (other, option))
            raise ValueError(f"{first} and {second} both name {name!r}; give each its own file.")
    with ExitStack() as stack:
        made = {
            option: output(name, reads, *known[option]) for option, name in names.items() if name
        }
        yield {option: stack.enter_context(file) for option, file in made.items()}


def write_text(path: Path, text: str) -> None:
    """Write a text; names of files in it need not be text."""
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, figures: dict[str, Any]) -> None:
    """Write figures."""
    write_text(path, json.dumps(figures, indent=1) + "\n")


@contextmanager
def progress(quiet: bool) -> Iterator[Progress]:
    """Show a bar on a terminal when the work takes longer than a second."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    bar = Bar(
        BarColumn(bar_width=20),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task("reading", total=None)
    after_a_second = Timer(1.0, bar.start)
    if console.is_terminal and not quiet:
        after_a_second.start()
    try:
        with _noted_interrupts() as interrupts:

            def show(doing: str, fraction: float | None = None) -> None:
                if interrupts:
                    raise KeyboardInterrupt
                percent = "" if fraction is None else f" {fraction:.0%}"
                bar.update(task, description=f"{doing}{percent}", completed=fraction or 0.0)
                bar.tasks[task].total = None if fraction is None else 1.0

            yield show
    finally:
        after_a_second.cancel()
        if bar.live.is_started:
            bar.stop()


@contextmanager
def _noted_interrupts() -> Iterator[list[int]]:
    """A list that grows with each Ctrl-C.

    Ctrl-C raises KeyboardInterrupt as usual, but Python drops that exception where C code calls
    Python back. Whoever looks at the list can raise it again.
    """
    interrupts: list[int] = []
    if current_thread() is not main_thread():  # only the main thread may handle signals
        yield interrupts
        return

    def interrupt(number: int, frame: object) -> NoReturn:
        interrupts.append(number)
        raise KeyboardInterrupt

    earlier = signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, earlier)
