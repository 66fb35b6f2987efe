"""What the commands print: the verdict, and compact tables of the groups."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairpca.cli.streams import put
from fairpca.report.context import about, group_rows
from fairpca.report.sentences import about_scores, say
from fairpca.report.text import display_names, figure, percent, worse

if TYPE_CHECKING:
    from fairpca._audit.record import Audit, ModelAudit
    from fairpca._estimators.base import FairProjection

_NAME_WIDTH = 28
_STYLES = {"bad": "\x1b[1;31m", "good": "\x1b[1;32m", "warn": "\x1b[1;33m", "plain": "\x1b[1m"}


def print_audit(audit: Audit | ModelAudit, notes: Sequence[str] = ()) -> None:
    """The verdict, what must not be overlooked, and the table of the groups."""
    said = say(audit)
    put_headline(said.headline, said.tone)
    put(said.lead)
    put(said.to_do)
    for notice in said.notices:
        put(f"! {notice}")
    for what, name, n_rows, reason in audit.left_out:
        put(f"left out: {name or f'{n_rows:,} {what}'}, {reason}")
    for note in notes:
        put(note)
    fair = "fair version" if audit.provenance.fitted_here else "plain PCA"
    heads = ["group", "people", "against others", "", "own variation lost", fair, ""]
    rows = [
        [
            row["name"],
            row["n"],
            row["gap"] if row["judged"] else f"too few to judge ({row['gap']})",
            f"({row['gap_range']})" if row["gap_range"] else "",
            row["share"],
            row["change"],
            f"({row['change_range']})" if row["change_range"] else "",
        ]
        for row in group_rows(audit)
    ]
    put_table(heads, rows)
    put(f"{about(audit)}, {_how(audit)}")
    for line in about_scores(audit):
        put(line)


def _how(audit: Audit | ModelAudit) -> str:
    folds, own = audit.provenance.n_folds, audit.provenance
    scaled = "standardised" if own.standardized else "columns as they are"
    judged = f"judged on people not used to build it ({folds} folds)" if folds else "on these rows"
    return f"{scaled}, {judged}, {100 * own.thresholds.level:g} % intervals"


def put_headline(text: str, tone: str) -> None:
    """The headline, in colour on a terminal."""
    if sys.stdout.isatty():
        sys.stdout.write(_STYLES[tone])
        put(text)
        sys.stdout.write("\x1b[0m")
    else:
        put(text)


def put_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their cells: names to the left, numbers to the right.

    In a terminal that is too narrow, each cell is printed in a line of its own: no number is cut.
    """
    names = display_names([row[0] for row in rows], _NAME_WIDTH)
    cells = [list(heads), *([name, *row[1:]] for name, row in zip(names, rows, strict=True))]
    widths = [max(len(row[j]) for row in cells) for j in range(len(heads))]
    if sum(widths) + 2 * len(widths) > shutil.get_terminal_size().columns and sys.stdout.isatty():
        for row in cells[1:]:
            put(row[0])
            for head, cell in zip(heads[1:], row[1:], strict=True):
                if cell:
                    put(f"  {head} {cell}".rstrip() if head else f"    {cell}")
        return
    for row in cells:
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        put("  ".join([row[0].ljust(len(first)), *others]).rstrip())


def print_model(model: FairProjection) -> None:
    """Errors by group of a fitted projection, for people who were left out if there were any."""
    names = [str(label) for label in model.groups_.tolist()]
    sizes = [f"{n:,}" for n in model.group_sizes_.tolist()]
    held_out = hasattr(model, "held_out_changes_")
    before = model.held_out_pca_group_errors_ if held_out else model.pca_group_errors_
    after = model.held_out_group_errors_ if held_out else model.group_errors_
    unit = float(max(before.max(), after.max()))
    rows = []
    for name, n, old, new in zip(names, sizes, before.tolist(), after.tolist(), strict=True):
        change = new / old - 1 if old > 1e-12 * unit else 0.0
        shown = figure(old, unit), figure(new, unit), worse(change, change, change)[0]
        rows.append([name, n, *shown])
    put_table(["group", "people", "PCA", "fair version", "change"], rows)
    where = "for people not used to build it" if held_out else "on the rows fitted to"
    cost = model.reconstruction_error_ / model.pca_reconstruction_error_ - 1 if unit > 0 else 0.0
    put(f"average squared errors {where}; overall error {percent(cost)} above PCA; {model.status_}")
