"""Output: files that appear only when complete, and text on the terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from os.path import realpath, splitext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from fairpca._progress import Progress, printable

if TYPE_CHECKING:
    from fairpca._audit.record import Audit, ModelAudit

_STYLES = {"bad": "\x1b[1;31m", "warn": "\x1b[1;33m", "plain": "\x1b[1m"}


def put(text: str, stream: TextIO | None = None) -> None:
    """Print lines without the control characters that names and labels may hold."""
    lines = (printable(line) for line in text.split("\n"))
    print("\n".join(lines), file=sys.stdout if stream is None else stream)


def print_line(line: str) -> None:
    """Print one line on standard error."""
    if sys.stderr is not None:
        put(f"fairpca: {' '.join(line.split())}", sys.stderr)


@contextmanager
def with_streams() -> Iterator[None]:
    """Replace a closed standard output, and print "?" for characters its encoding lacks."""
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
    """Temporary files that, once complete, get the given names or are printed for ``-``.

    Refuses two names for one file, files that the command reads, and endings of another format.
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
    """Write a text; bytes of file names that are not UTF-8 are escaped."""
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
    """Print the verdict, what must not be overlooked, and the table of the groups."""
    from fairpca.report.context import group_rows
    from fairpca.report.sentences import about, about_scores, group_names, say

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
    others = "others" if own.reference is None else group_names(audit)[own.reference]
    reading = "share lost" if audit.verdict.by_share else "error"
    heads = [", ".join(own.group_columns) or "group", "people", f"{reading} against {others}"]
    heads += ["own variation lost", "fair version" if own.fitted_here else "plain PCA"]
    rows = []
    for row in group_rows(audit):
        gap, note = str(row["gap"]), row["note"]
        gap = f"{gap} ({note})" if gap and note else gap or note
        rows.append([row["name"], row["n"], gap, row["share"], str(row["change"])])
    _put_table(heads, rows)
    how = [about(audit), f"{100 * own.thresholds.level:g} % intervals"]
    how[1:1] = ["plain PCA judged on held-out people"]
    if own.fitted_here:
        how[1:2] = [
            "standardised" if own.standardized else "columns as they are",
            f"judged on held-out people ({own.n_folds} folds)",
        ]
    put("\n".join([", ".join(how), *about_scores(audit)]))


def _put_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns as wide as their cells: names aligned left, numbers right."""
    from fairpca.report.text import display_names

    names = display_names([row[0] for row in rows], 40)
    cells = [list(heads), *([name, *row[1:]] for name, row in zip(names, rows, strict=True))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for name, *others in cells:
        aligned = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        put("  ".join([name.ljust(widths[0]), *aligned]).rstrip())


def print_columns(audit: Audit | ModelAudit) -> None:
    """Print the columns that the usual and the fair choice keep, and the bound."""
    from fairpca.report.text import figure

    kept: Any = getattr(audit, "kept", None)
    put(f"usual choice: {', '.join(kept.usual)}")
    put(f"fair choice: {', '.join(kept.fair)}")
    fit: Any = getattr(audit, "fit", None)
    usual, fair = figure(fit.pca_errors.max()), figure(fit.fair_errors.max())
    proof = "the best there is" if fit.certified else "not proven the best"
    put(f"largest error, on the training rows: usual choice {usual}, fair choice {fair}, {proof}")
    put(f"no projection to {len(kept.fair)} numbers has less than {figure(kept.lower_bound)}")


def print_model(model: Any, columns: Sequence[str]) -> None:
    """Print the errors of a fitted estimator by group, of held-out people if there are any.

    ``columns`` name the groups.
    """
    from fairpca._audit.record import group_name
    from fairpca.report.text import figure, percent, worse

    people = [[group_name(label, columns) for label in model.groups_]]
    people.append([f"{n:,}" for n in model.group_sizes_])
    heads = [", ".join(columns) or "group", "people"]
    if hasattr(model, "change_"):  # an eraser
        _put_table(heads, list(zip(*people, strict=True)))
        put(
            f"variance between the group means: {figure(model.mean_gap_, model.raw_mean_gap_)}, "
            f"before {figure(model.raw_mean_gap_)}; {percent(model.change_)} of the variance moved"
        )
        return
    kept, held_out = hasattr(model, "columns_"), hasattr(model, "held_out_changes_")
    names = ("held_out_pca_group_errors_", "held_out_group_errors_") if held_out else None
    names = names or ("baseline_group_errors_" if kept else "pca_group_errors_", "group_errors_")
    before, after = (getattr(model, name) for name in names)
    unit, rows = float(max(before.max(), after.max())), []
    for *who, first, last in zip(*people, before, after, strict=True):
        change = last / first - 1 if first > 1e-12 * unit else 0.0
        rows.append([*who, figure(first, unit), figure(last, unit), worse(change)[0]])
    _put_table([*heads, "usual choice" if kept else "PCA", "fair version", "change"], rows)
    put(f"average squared errors{' of held-out people' if held_out else ''}; {model.status_}")
    if kept:
        put(f"columns kept: {', '.join(model.get_feature_names_out())}")
        return
    pca = model.pca_reconstruction_error_
    cost = model.reconstruction_error_ / pca - 1 if pca > 0 else 0.0
    put(f"overall error on the training rows: {percent(cost)} above PCA")
