"""Where results go: files that appear whole, standard output, and lines that are safe to print."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import TextIOWrapper
from os.path import realpath, splitext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from fairpca._progress import printable

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
    with ExitStack() as stack:
        if stream is None:  # started with >&-
            sys.stdout = stack.enter_context(open(os.devnull, "w"))
            stack.callback(setattr, sys, "stdout", stream)
        elif isinstance(stream, TextIOWrapper):
            stack.enter_context(suppress(BrokenPipeError))  # reconfiguring flushes
            stack.callback(stream.reconfigure, errors=stream.errors)
            stream.reconfigure(errors="replace")
        yield


def discard_output() -> None:
    """Send the rest of our output nowhere, so that Python does not flush it to a closed pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


#: The endings that the name of an output may have, and what is written.
_FORMATS = {
    "out": ((".html", ".htm"), "a page (print it from a browser to get a PDF)"),
    "model_card": ((".md",), "a card in Markdown"),
    "model": ((".safetensors",), "a model, a safetensors file"),
}


@contextmanager
def outputs(reads: Sequence[str], **names: str | None) -> Iterator[dict[str, Path]]:
    """A file to write for each name; once complete it gets that name, or is printed for ``-``.

    No two names may be of one file, none of a file that the command reads, and none may promise
    another format than it gets.
    """
    from fairpca._tables.atomic import handing_over, refuse_inputs, replacing

    wanted = {option: name for option, name in names.items() if name is not None}
    seen: dict[str, str] = {}
    for option, name in wanted.items():
        if (other := seen.setdefault(realpath(name), option)) != option:
            first, second = (f"--{word.replace('_', '-')}" for word in (other, option))
            raise ValueError(f"{first} and {second} both name {name!r}; give each its own file.")
        refuse_inputs(name, reads)
        endings, what = _FORMATS.get(option, ((), ""))
        stem, ending = splitext(name)
        if endings and ending and ending.lower() not in endings:
            raise ValueError(f"{name}: this writes {what}; pass {stem}{endings[0]} as its name.")
    with ExitStack() as stack:
        yield {
            option: stack.enter_context(
                replacing(name, reads) if name != "-" else handing_over(_to_standard_output)
            )
            for option, name in wanted.items()
        }


def _to_standard_output(content: Path) -> None:
    with content.open("rb") as source:
        shutil.copyfileobj(source, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def write_text(path: Path, text: str) -> None:
    """Write a text; names of files in it need not be text."""
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, figures: dict[str, Any]) -> None:
    """Write figures."""
    write_text(path, json.dumps(figures, indent=1) + "\n")


@contextmanager
def progress(quiet: bool) -> Iterator[Progress]:
    """Show on a terminal what is being done."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, quiet=quiet)
    with console.status("reading") as status:

        def show(doing: str, fraction: float | None = None) -> None:
            percent = "" if fraction is None else f" {fraction:.0%}"
            status.update(Text(printable(f"{doing}{percent}")))

        yield show
