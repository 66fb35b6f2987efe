"""Where results go, and a bar while they are made."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from os.path import splitext
from pathlib import Path
from threading import Timer, current_thread, main_thread
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from fairpca._progress import Progress

#: Endings that other programs go by.
_OF_OTHER_FORMATS = {
    ".csv", ".tsv", ".tab", ".txt", ".parquet", ".pq", ".arrow", ".feather", ".ipc", ".xlsx",
    ".xls", ".ods", ".json", ".html", ".htm", ".pdf", ".md", ".onnx", ".pkl", ".pickle", ".joblib",
    ".npy", ".npz", ".gz", ".zip",
}  # fmt: skip


def output(path: str, reads: Sequence[str] | None) -> AbstractContextManager[Path]:
    """A file to write; once complete it becomes ``path``, or standard output for ``-``.

    It must be none of the files that the command reads.
    """
    from fairpca._tables.atomic import handing_over, refuse_inputs, replacing

    if path != "-":
        return replacing(path, reads or ())
    refuse_inputs(path, reads or ())
    return handing_over(_to_standard_output)


@contextmanager
def model_output(path: str, reads: Sequence[str] | None) -> Iterator[Path]:
    """The same for a model; refuses names that promise something else than a model."""
    with output(path, reads) as temporary:
        name, ending = splitext(path)
        if ending.lower() in _OF_OTHER_FORMATS:
            raise ValueError(
                f"--out {path}: a model is a safetensors file; pass --out {name}.safetensors."
            )
        yield temporary


def _to_standard_output(content: Path) -> None:
    with content.open("rb") as source:
        shutil.copyfileobj(source, sys.stdout.buffer)
    sys.stdout.buffer.flush()


@contextmanager
def text_output(path: str | None, reads: Sequence[str] | None) -> Iterator[Any]:
    """A text file, which goes to standard output for ``-``, or None."""
    if path is None:
        yield None
        return
    with (
        output(path, reads) as temporary,
        temporary.open(
            "w",
            encoding="utf-8",
            errors="backslashreplace",  # names of files need not be text
        ) as stream,
    ):
        yield stream


@contextmanager
def json_output(path: str | None, reads: Sequence[str] | None) -> Iterator[Any]:
    """The same for numbers, with a last line that ends."""
    with text_output(path, reads) as stream:
        yield stream
        if stream is not None:
            stream.write("\n")


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

    Ctrl-C raises KeyboardInterrupt as usual, but Python drops that exception where C code, such as
    pyarrow's, calls Python back. Whoever looks at the list can raise it again.
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


def say(line: str) -> None:
    """Print one line on standard error."""
    print(f"fairpca: {' '.join(line.split())}", file=sys.stderr)
