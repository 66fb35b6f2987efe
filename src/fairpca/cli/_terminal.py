"""What the command line prints: compact tables of errors by group, and notes about the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairpca.report._tables import rows_by_group
from fairpca.report._text import display_names, gap, printable, zero_if_rounding
from fairpca.report._words import components, verdict

if TYPE_CHECKING:
    from fairpca._audit.result import Audit
    from fairpca._estimators.base import FairProjection
    from fairpca._moments.prepare import Prepared

_NAME_WIDTH = 28
_MOST_GROUPS_ABREAST = 6
_STYLES = {"good": "bold green", "bad": "bold red", "open": "bold"}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def print_table(content: Table | str) -> None:
    """Print a table or a line of our own to standard output, in colour if that is a terminal."""
    _Console(highlight=False).print(content)


def print_line(text: str, style: str | None = None) -> None:
    """Print one line of text that may come from the data: no markup, no control characters."""
    _Console(highlight=False).print(Text(printable(text)), style=style, soft_wrap=True)


def print_notes(prepared: Prepared, small: list[Any], model: FairProjection) -> None:
    """What was left out of the data, merged or not compared, and why."""
    if prepared.not_numbers:
        names = _some_names(prepared.not_numbers)
        print_line(f"left out, not numbers: {names} (--encode)")
    if prepared.roles.identifiers:
        names = _some_names(list(prepared.roles.identifiers))
        print_line(f"left out, looks like row numbers or ids: {names} (--keep-ids)")
    if prepared.constant:
        print_line(f"does not vary: {_some_names(prepared.constant)}")
    if prepared.n_dropped:
        read = f"{prepared.n_dropped} of {prepared.n_read} rows"
        print_line(f"left out, missing values: {read}")
    if prepared.lost_groups:
        print_line(f"groups lost with them: {_some_names(prepared.lost_groups)}")
    moments = prepared.moments
    single = moments.groups[moments.counts == 1].tolist()
    if single and model.min_group_size == 1:
        print_line(f"groups of one row: {_some_names(single)} (--min-group-size)")
    if small:
        done = "merged into 'rest'" if model.small_groups == "merge" else "not compared"
        limit = f"fewer than {model.min_group_size} rows"
        print_line(f"{done}, {limit}: {_some_names(small)}")


def print_audit(result: Audit, group_name: str) -> None:
    """The verdict, errors by group on new rows, and how the fit ended on the rows fitted to."""
    said, name = verdict(result), display_names([group_name], 40)[0]
    print_line(said.headline, style=_STYLES[said.tone])
    for line in (said.before, said.after, *(f"! {notice}" for notice in said.notices)):
        print_line(line)
    where = "on the rows fitted to" if result.changes is None else "on new rows"
    print_line(f"{where}, {components(result)}, groups by {name}", style="dim")
    table = _new_table("group", "PCA", "fair PCA", "change", "variance lost", "rows")
    for row in rows_by_group(result):
        lost = f"{row['pca_share'].removesuffix(' %')} to {row['fair_share']}"
        label = display_names([row["label"]], _NAME_WIDTH)[0]
        table.add_row(Text(label), row["pca"], row["fair"], row["change"], lost, row["size"])
    print_table(table)
    unit = float(result.group_variances.max())
    before, after = _figures((result.pca.disparity, result.fair.disparity), unit)
    cost = f"cost of fairness {_change(result.fair.overall, result.pca.overall, unit) or '0 %'}"
    ended = f"{result.status}; disparity {before} to {after}; {cost}"
    print_line(f"on the rows fitted to: {ended}; {_certificate(result.duality_gap, unit)}")


def print_ranks(result: dict[str, Any], limit: float) -> None:
    """Errors of plain PCA for each number of components; with many groups, the best and the worst.

    Rows whose disparity exceeds ``limit`` are marked.
    """
    names, compared = display_names(result["groups"], _NAME_WIDTH), result["compared"]
    abreast = len(names) <= _MOST_GROUPS_ABREAST
    table = _new_table("components", *(names if abreast else ("best served", "worst served")))
    table.columns[0].justify = "right"
    table.add_column("disparity", justify="right", no_wrap=True)
    for row in result["pca"]:
        over, errors = row["disparity"] > limit, row["group_errors"]
        if abreast:
            cells = [f"{error:.4g}" for error in errors]
        else:
            order = sorted((g for g in range(len(names)) if compared[g]), key=errors.__getitem__)
            ends = (order[0], order[-1])
            cells = [f"{names[g]} {errors[g]:.4g}" for g in ends]
        disparity = f"{row['disparity']:.4g}{' !' if over else ''}"
        style = "bold red" if over else None
        table.add_row(str(row["n_components"]), *map(Text, cells), disparity, style=style)
    print_table(table)


def print_model(model: FairProjection) -> None:
    """Errors by group, status and certificate of a fitted projection."""
    lost = 1 - model.group_explained_variance_ratio_
    g = int(lost.argmax())
    unit = float(model.group_errors_[g] / lost[g]) if lost[g] > 1e-9 else float("inf")
    errors = (model.pca_group_errors_, model.group_errors_)
    print_table(_error_table(model.groups_.tolist(), model.group_sizes_.tolist(), *errors, unit))
    print_table(f"{model.status_}; {_certificate(model.duality_gap_, unit)}")


def _some_names(names: list[Any]) -> str:
    shown = ", ".join(display_names(names[:6], 24))
    return f"{shown}{f' and {len(names) - 6} more' if len(names) > 6 else ''}"


def _new_table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first)
    for name in others:
        table.add_column(Text(name), justify="right", no_wrap=True)
    return table


def _error_table(labels: list[Any], sizes: Any, before: Any, after: Any, unit: float) -> Table:
    table = _new_table("group", "size", "PCA", "fair PCA", "change")
    names = display_names(labels, _NAME_WIDTH)
    for name, size, *errors in zip(names, sizes, before, after, strict=True):
        old, new = errors
        table.add_row(Text(name), str(size), *_figures(errors, unit), _change(new, old, unit))
    return table


def _figures(values: Sequence[float], unit: float, digits: int = 4) -> list[str]:
    return [f"{zero_if_rounding(value, unit):.{digits}g}" for value in values]


def _change(after: float, before: float, unit: float) -> str:
    return f"{(after / before - 1) * 100:+.2f} %" if zero_if_rounding(before, unit) > 0 else ""


def _certificate(value: float, unit: float) -> str:
    return f"certificate: optimal to {gap(value, unit)}"
