"""Where results go: files that appear whole, and a terminal that nothing can disturb."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from os.path import realpath, splitext
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from fairpca._progress import Progress, printable

if TYPE_CHECKING:
    from fairpca import FairColumns
    from fairpca._audit.record import Audit, ModelAudit
    from fairpca._estimators.base import FairProjection
    from fairpca._typing import Array

_STYLES = {"bad": "\x1b[1;31m", "warn": "\x1b[1;33m", "plain": "\x1b[1m"}


def put(text: str, stream: TextIO | None = None) -> None:
    """Print lines, the only place that does: without control characters of names and labels."""
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
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            yield
        return
    errors = stream.errors
    reconfigure = getattr(stream, "reconfigure", lambda **how: None)
    reconfigure(errors="replace")
    try:
        yield
    finally:
        with suppress(BrokenPipeError):  # reconfiguring flushes
            reconfigure(errors=errors)


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


def print_audit(audit: Audit | ModelAudit, notes: Sequence[str] = ()) -> None:
    """The verdict, what must not be overlooked, and the table of the groups."""
    from fairpca.report.context import group_rows
    from fairpca.report.sentences import about, about_scores, say

    said, own = say(audit), audit.provenance
    coloured = sys.stdout.isatty()
    sys.stdout.write(_STYLES[said.tone] if coloured else "")
    put(said.headline)
    sys.stdout.write("\x1b[0m" if coloured else "")
    put("\n".join([said.lead, said.to_do, *(f"! {notice}" for notice in said.notices)]))
    for what, name, n_rows, reason in audit.left_out:
        put(f"left out: {name or f'{n_rows:,} {what}'}, {reason}")
    for note in notes:
        put(note)
    others = "others" if own.reference is None else str(own.reference)
    heads = [", ".join(own.group_columns) or "group", "people", f"against {others}"]
    heads += ["own variation lost", "fair version" if own.fitted_here else "plain PCA"]
    rows = []
    for row in group_rows(audit):
        gap = str(row["gap"]) if row["judged"] else f"too few to judge ({row['gap']})"
        rows.append([row["name"], row["n"], gap, row["share"], str(row["change"])])
    _put_table(heads, rows)
    how = [about(audit), f"{100 * own.thresholds.level:g} % intervals"]
    if own.fitted_here:
        how[1:1] = [
            "standardised" if own.standardized else "columns as they are",
            f"judged on held-out people ({own.n_folds} folds)",
        ]
    put("\n".join([", ".join(how), *about_scores(audit)]))


def _put_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their cells: names to the left, numbers to the right."""
    from fairpca.report.text import display_names

    names = display_names([row[0] for row in rows], 40)
    cells = [list(heads), *([name, *row[1:]] for name, row in zip(names, rows, strict=True))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for name, *others in cells:
        aligned = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        put("  ".join([name.ljust(widths[0]), *aligned]).rstrip())


def print_columns(model: FairColumns, usual: Array, fair: Array) -> None:
    """Held-out errors by group under two choices of columns."""
    _put_errors(model, usual, fair, ["usual choice", "fair choice"])
    put(f"average squared errors of the rebuilt columns for held-out people; {model.status_}")


def print_model(model: FairProjection) -> None:
    """Errors by group of a fitted projection, for held-out people if there were any."""
    from fairpca.report.text import percent

    held_out = hasattr(model, "held_out_changes_")
    before = model.held_out_pca_group_errors_ if held_out else model.pca_group_errors_
    after = model.held_out_group_errors_ if held_out else model.group_errors_
    _put_errors(model, before, after, ["PCA", "fair version"])
    put(f"average squared errors{' of held-out people' if held_out else ''}; {model.status_}")
    pca = model.pca_reconstruction_error_
    cost = model.reconstruction_error_ / pca - 1 if pca > 0 else 0.0
    put(f"overall error on the rows fitted to: {percent(cost)} above PCA")


def _put_errors(
    model: FairColumns | FairProjection, before: Array, after: Array, heads: list[str]
) -> None:
    """A table of errors by group, and their changes."""
    from fairpca.report.text import figure, worse

    unit, rows = float(max(before.max(), after.max())), []
    columns = model.groups_, model.group_sizes_, before, after
    for label, n, *errors in zip(*columns, strict=True):
        change = errors[1] / errors[0] - 1 if errors[0] > 1e-12 * unit else 0.0
        shown = [figure(error, unit) for error in errors]
        rows.append([str(label), f"{n:,}", *shown, worse(change)[0]])
    _put_table(["group", "people", *heads, "change"], rows)
