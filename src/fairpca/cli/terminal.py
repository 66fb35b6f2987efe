"""Output: files that appear only when complete, and text on the terminal."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from os.path import realpath, splitext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from fairpca._progress import Progress, printable

if TYPE_CHECKING:
    from fairpca._audit.record import Audit, ModelAudit

_COLOURS = {"bad": "red", "warn": "yellow", "plain": None}


def put(text: str, stream: TextIO | None = None, **style: Any) -> None:
    """Print lines without the control characters that names and labels may hold."""
    stream = stream or sys.stdout
    lines = "\n".join(printable(line) for line in text.split("\n"))
    encoding = stream.encoding or "utf-8"  # characters that it lacks are printed as "?"
    click.secho(lines.encode(encoding, "replace").decode(encoding), file=stream, **style)


def print_line(line: str) -> None:
    """Print one line on standard error."""
    if sys.stderr is not None:
        put(f"fairpca: {' '.join(line.split())}", sys.stderr)


@contextmanager
def standard_output() -> Iterator[None]:
    """Replace a standard output that was closed (``>&-``)."""
    if sys.stdout is not None:
        yield
        return
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        yield


def discard_output() -> None:
    """Send the rest of our output nowhere, so that Python does not flush it to a closed pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


#: How the name of an output ends, if it has an ending.
_ENDINGS = {"out": ".html", "model_card": ".md", "model": ".safetensors"}


@contextmanager
def outputs(asked: Any, **names: str | None) -> Iterator[dict[str, Path]]:
    """Temporary files that, once complete, get the given names or are printed for ``-``.

    Refuses two names for one file, files that the command reads, and endings of another format.
    """
    from fairpca._tables.atomic import refuse_inputs, replacing

    seen, paths = dict[str, str](), dict[str, Path]()
    models = (vars(asked).get(name) for name in ("model", "loadings"))
    reads = [*asked.data, *filter(None, models)]
    with ExitStack() as stack:
        for option, name in names.items():
            if name is None:
                continue
            if (other := seen.setdefault(realpath(name), option)) != option:
                both = f"--{other} and --{option}".replace("_", "-")
                raise ValueError(f"{both} both name {name!r}; give each its own file.")
            refuse_inputs(name, reads)
            (stem, given), ending = splitext(name), _ENDINGS.get(option, "")
            if ending and given.lower() not in ("", ending):
                raise ValueError(f"{name}: this writes {ending}; pass {stem}{ending} as its name.")
            paths[option] = stack.enter_context(replacing(name) if name != "-" else _printing())
        yield paths


@contextmanager
def _printing() -> Iterator[Path]:
    """A temporary file that is printed if the block ends without an error."""
    with tempfile.TemporaryDirectory(prefix="fairpca-") as folder:
        content = Path(folder, "content")
        yield content
        sys.stdout.buffer.write(content.read_bytes())


def write_text(path: Path, text: str) -> None:
    """Write a text; bytes of file names that are not UTF-8 are escaped."""
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextmanager
def progress(quiet: bool) -> Iterator[Progress]:
    """Show on a terminal what is being done."""
    shown = not quiet and sys.stderr is not None and sys.stderr.isatty()

    def show(doing: str, fraction: float | None = None) -> None:
        percent = "" if fraction is None else f" {fraction:.0%}"
        if shown:  # over what was shown before
            print(f"\r\x1b[K{printable(doing)}{percent}", end="", file=sys.stderr, flush=True)

    show("reading")
    try:
        yield show
    finally:
        show("")


def print_audit(audit: Audit | ModelAudit, notes: Sequence[str] = ()) -> None:
    """Print the verdict, what must not be overlooked, and the table of the groups."""
    from fairpca.report.context import group_rows
    from fairpca.report.sentences import about, about_scores, group_names, say

    said, own = say(audit), audit.provenance
    put(said.headline, fg=_COLOURS[said.tone], bold=True)
    notices = [f"! {notice}" for notice in said.notices]
    put("\n".join([said.lead, said.to_do, *notices, *lines_left_out(audit), *notes]))
    others = "others" if own.reference is None else group_names(audit)[own.reference]
    reading = "share lost" if audit.verdict.by_share else "error"
    heads = [", ".join(own.group_columns) or "group", "people", f"{reading} against {others}"]
    heads += ["own variation lost", "fair version" if own.fitted_here else "plain PCA"]
    rows = []
    for row in group_rows(audit):
        gap, note = str(row["gap"]), row["note"]
        gap = f"{gap} ({note})" if gap and note else gap or note
        rows.append([row["name"], row["n"], gap, row["share"], str(row["change"])])
    put(_table(heads, rows))
    how = about(audit)
    if own.fitted_here:
        how += ", standardised" if own.standardized else ", columns as they are"
        how += f", judged on held-out people ({own.n_folds} folds)"
    else:
        how += ", plain PCA judged on held-out people"
    how += f", {100 * own.thresholds.level:g} % intervals"
    put("\n".join([how, *about_scores(audit)]))


def lines_left_out(audit: Audit | ModelAudit) -> list[str]:
    """Which columns and how many rows are not used, and why."""
    from fairpca.report.text import counted

    left_out = [(name or counted(n_rows, "row"), why) for _, name, n_rows, why in audit.left_out]
    return [f"left out: {what}, {why}" for what, why in left_out]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their cells: names aligned left, numbers right."""
    from fairpca.report.text import display_names

    names = display_names([row[0] for row in rows], 40)
    cells = [list(heads), *([name, *row[1:]] for name, row in zip(names, rows, strict=True))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for name, *others in cells:
        aligned = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *aligned]).rstrip())
    return "\n".join(lines)


def print_columns(audit: Any) -> None:
    """Print the columns that the usual and the fair choice keep, and the bound."""
    from fairpca.report.text import figure

    kept, fit = audit.kept, audit.fit
    usual, fair = figure(fit.pca_errors.max()), figure(fit.fair_errors.max())
    proof = "the best there is" if fit.certified else "not proven the best"
    put(f"usual choice: {', '.join(kept.usual)}\nfair choice: {', '.join(kept.fair)}")
    put(f"largest error, on the training rows: usual choice {usual}, fair choice {fair}, {proof}")
    put(f"no projection to {len(kept.fair)} numbers has less than {figure(kept.lower_bound)}")


def about_model(model: Any, columns: Sequence[str]) -> list[str]:
    """The errors of a model by group, of held-out people if known; ``columns`` name the groups."""
    from fairpca._audit.record import group_name
    from fairpca.report.text import figure, percent, worse

    names = [group_name(label, columns) for label in model.groups_]
    rows = [[name, f"{n:,}"] for name, n in zip(names, model.group_sizes_, strict=True)]
    heads = [", ".join(columns) or "group", "people"]
    if hasattr(model, "change_"):  # an eraser
        raw = model.raw_mean_gap_
        gap, before = figure(model.mean_gap_, raw), figure(raw)
        between = f"variance between the group means: {gap}, before {before}"
        return [_table(heads, rows), f"{between}; {percent(model.change_)} of the variance moved"]
    keeps_columns, held_out = hasattr(model, "columns_"), hasattr(model, "held_out_changes_")
    start = "baseline" if keeps_columns else "held_out_pca" if held_out else "pca"
    first = getattr(model, f"{start}_group_errors_")
    last = model.held_out_group_errors_ if held_out else model.group_errors_
    unit = float(max(first.max(), last.max()))
    for row, before, after in zip(rows, first, last, strict=True):
        change = after / before - 1 if before > 1e-12 * unit else 0.0
        row += [figure(before, unit), figure(after, unit), worse(change)[0]]
    heads += ["usual choice" if keeps_columns else "PCA", "fair version", "change"]
    errors = f"average squared errors{' of held-out people' * held_out}; {model.status_}"
    if keeps_columns:
        end = f"columns kept: {', '.join(model.get_feature_names_out())}"
    else:
        pca = model.pca_reconstruction_error_
        cost = model.reconstruction_error_ / pca - 1 if pca > 0 else 0.0
        end = f"overall error on the training rows: {percent(cost)} above PCA"
    return [_table(heads, rows), errors, end]
