"""What the commands print: the verdict, and compact tables of the groups."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairpca.cli.streams import put

if TYPE_CHECKING:
    from fairpca._audit.record import Audit, ModelAudit
    from fairpca._estimators.base import FairProjection

_STYLES = {"bad": "\x1b[1;31m", "warn": "\x1b[1;33m", "plain": "\x1b[1m"}


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
    heads = [", ".join(own.group_columns) or "group", "people", "against others"]
    heads += ["own variation lost", "fair version" if own.fitted_here else "plain PCA"]
    rows = [
        [
            row["name"],
            row["n"],
            str(row["gap"]) if row["judged"] else f"too few to judge ({row['gap']})",
            row["share"],
            str(row["change"]),
        ]
        for row in group_rows(audit)
    ]
    _put_table(heads, rows)
    scaled = "standardised" if own.standardized else "columns as they are"
    judged = "judged on people not used to build it" if own.n_folds else "on these rows"
    folds = f" ({own.n_folds} folds)" if own.n_folds else ""
    level = f"{100 * own.thresholds.level:g} % intervals"
    put("\n".join([f"{about(audit)}, {scaled}, {judged}{folds}, {level}", *about_scores(audit)]))


def _put_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their cells: names to the left, numbers to the right.

    In a terminal that is too narrow, each cell is printed in a line of its own: no number is cut.
    """
    from fairpca.report.text import display_names

    names = display_names([row[0] for row in rows], 28)
    cells = [list(heads), *([name, *row[1:]] for name, row in zip(names, rows, strict=True))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if sum(widths) + 2 * len(widths) > shutil.get_terminal_size().columns and sys.stdout.isatty():
        for name, *others in cells[1:]:
            put(name)
            for head, cell in zip(heads[1:], others, strict=True):
                put(f"  {head} {cell}")
        return
    for name, *others in cells:
        aligned = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        put("  ".join([name.ljust(widths[0]), *aligned]).rstrip())


def print_model(model: FairProjection) -> None:
    """Errors by group of a fitted projection, for people who were left out if there were any."""
    from fairpca.report.text import figure, percent, worse

    held_out = hasattr(model, "held_out_changes_")
    before = model.held_out_pca_group_errors_ if held_out else model.pca_group_errors_
    after = model.held_out_group_errors_ if held_out else model.group_errors_
    unit = float(max(before.max(), after.max()))
    columns = model.groups_.tolist(), model.group_sizes_.tolist(), before.tolist(), after.tolist()
    rows = []
    for label, n, old, new in zip(*columns, strict=True):
        change = worse(new / old - 1 if old > 1e-12 * unit else 0.0)[0]
        rows.append([str(label), f"{n:,}", figure(old, unit), figure(new, unit), change])
    _put_table(["group", "people", "PCA", "fair version", "change"], rows)
    where = "for people not used to build it" if held_out else "on the rows fitted to"
    cost = model.reconstruction_error_ / model.pca_reconstruction_error_ - 1 if unit > 0 else 0.0
    put(f"average squared errors {where}; overall error {percent(cost)} above PCA; {model.status_}")
