"""What the command line prints: compact tables of errors by group, and notes about the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairpca._audit.figures import Change
from fairpca._audit.run import AuditSettings
from fairpca.report._changes import change_text
from fairpca.report._model import model_rows, model_verdict
from fairpca.report._tables import rows_by_group
from fairpca.report._text import (
    change,
    display_names,
    figure,
    gap,
    percent,
    printable,
    with_notes,
)
from fairpca.report._words import components, verdict

if TYPE_CHECKING:
    from fairpca._audit.model import ModelAudit
    from fairpca._audit.result import Audit
    from fairpca._estimators.base import FairProjection
    from fairpca._moments.prepare import Prepared
    from fairpca._typing import Array

_NAME_WIDTH = 28
_NARROWEST_NAME = 12
_BETWEEN_COLUMNS = 2
_NO_LIMIT = 10_000
_MOST_GROUPS_ABREAST = 6
_STYLES = {"good": "bold green", "bad": "bold red", "open": "bold"}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def print_table(table: Table) -> None:
    """Print to standard output, in colour if that is a terminal.

    In a narrow terminal names go on in the next line. Numbers stay whole, even if the lines get too
    long.
    """
    console, least = _Console(highlight=False), 0
    for column in table.columns:
        widest = max(cell_len(str(cell)) for cell in (column.header, *column.cells))
        least += _BETWEEN_COLUMNS + (widest if column.no_wrap else min(widest, _NARROWEST_NAME))
    console.width = max(console.width, least)
    console.print(table)


def _fits(table: Table) -> bool:
    """Whether all columns are as wide as they want to be."""
    console = _Console()
    wanted = console.measure(table, options=console.options.update(max_width=_NO_LIMIT)).maximum
    return wanted <= console.width


def print_line(text: str, style: str | None = None) -> None:
    """Print one line of text that may come from the data: no markup, no control characters."""
    _Console(highlight=False).print(Text(printable(text)), style=style, soft_wrap=True)


def print_notes(prepared: Prepared, small: list[Any], options: Mapping[str, Any]) -> None:
    """What was left out of the data, merged or not compared, and why.

    ``options`` say what becomes of small groups.
    """
    if prepared.not_numbers:
        names = _some_names(prepared.not_numbers)
        print_line(f"left out, not numbers: {names} (--encode)")
    numerals = set(prepared.table.files[0].text.numerals) & {*prepared.roles.columns}
    if numerals:
        hint = "" if options.get("model") else " (--drop)"
        print_line(f"read as numbers: {_some_names(sorted(numerals))}{hint}")
    if prepared.roles.identifiers:
        names = _some_names(list(prepared.roles.identifiers))
        hint = " (--keep-ids)" if any(prepared.roles.identifiers) else ""  # not without a name
        print_line(f"left out, looks like row numbers or ids: {names}{hint}")
    if prepared.constant:
        print_line(f"does not vary: {_some_names(prepared.constant)}")
    if prepared.n_dropped:
        read = f"{prepared.n_dropped} of {prepared.n_read} rows"
        print_line(f"left out, missing values: {read}")
    if prepared.filled:
        filled = dict(prepared.filled.most_common())
        counts = [f"({n})" for n in filled.values()]
        print_line(f"missing numbers filled in: {_some_names([*filled], counts)}")
        shares = [percent(share) for share in prepared.filled_shares.values()]
        names = _some_names([*prepared.filled_shares], shares)
        print_line(f"filled in, share of each group's numbers: {names}")
        mostly = [
            name for name, n in prepared.filled.items() if n > prepared.moments.counts.sum() / 2
        ]
        if mostly and not options.get("model"):
            print_line(f"mostly filled in: {_some_names(mostly)} (--drop)")
    if prepared.lost_groups:
        print_line(f"groups lost with them: {_some_names(prepared.lost_groups)}")
    moments = prepared.moments
    single = moments.groups[moments.counts == 1].tolist()
    least = options["min_group_size"]
    if single and least == 1:
        print_line(f"groups of one row: {_some_names(single)} (--min-group-size)")
    if small:
        done = "merged into 'rest'" if options["small_groups"] == "merge" else "not compared"
        print_line(f"{done}, fewer than {least} rows: {_some_names(small)}")


def print_audit(result: Audit, group_name: str) -> None:
    """The verdict, errors by group on new rows, and how the fit ended on the rows fitted to."""
    said, name = verdict(result), display_names([group_name], 40)[0]
    print_line(said.headline, style=_STYLES[said.tone])
    for line in (said.before, said.after, *(f"! {notice}" for notice in said.notices)):
        print_line(line)
    if few := _fewer_folds(result):
        print_line(few)
    where = "on the rows fitted to" if result.changes is None else "on new rows"
    scaled = _said_of_columns(result.standardized)
    print_line(f"{where}, {components(result)}, {scaled}, groups by {name}", style="dim")
    table = _new_table("group", "PCA", "fair PCA", "change", "variance lost", "rows")
    for row in rows_by_group(result):
        before, after = row["pca_share"], row["fair_share"]
        lost = after if before == after else f"{before.removesuffix(' %')} to {after}"
        label = display_names([row["label"]], _NAME_WIDTH)[0]
        table.add_row(Text(label), row["pca"], row["fair"], row["change"], lost, row["size"])
    print_table(table)
    unit = float(result.group_variances.max())
    before, after = (figure(by.disparity, unit=unit) for by in (result.pca, result.fair))
    cost = f"cost of fairness {change(result.fair.overall, result.pca.overall, unit) or '0 %'}"
    ended = f"{result.status}; disparity {before} to {after}; {cost}"
    print_line(f"on the rows fitted to: {ended}; {_certificate(result.duality_gap, unit)}")
    for line in result.about_scores:
        print_line(line)


def _fewer_folds(result: Audit) -> str:
    """A line where a small group leaves fewer folds than usual; otherwise empty."""
    if result.cross_validation is None:
        return ""
    folds = result.cross_validation.n_folds
    sizes = zip(result.groups, result.group_sizes, result.compared, strict=True)
    smallest = [label for label, n, compared in sizes if compared and n == folds]
    if not smallest or folds >= AuditSettings().n_folds:
        return ""
    return f"{folds} folds only, one for each row of {_some_names(smallest)} (--min-group-size)"


def print_model_audit(result: ModelAudit, group_name: str) -> None:
    """The verdict on a fitted model, and its errors by group."""
    said, name = model_verdict(result), display_names([group_name], 40)[0]
    print_line(said.headline, style=_STYLES[said.tone])
    print_line(said.evidence)
    size = f"{result.n_components} of {result.n_features} dimensions"
    print_line(f"the model as it is, {size}, groups by {name}", style="dim")
    interval = f"{100 * result.level:g} % interval"
    table = _new_table("group", "error", interval, "variance lost", "rows")
    for row in model_rows(result):
        label = display_names([row["label"]], _NAME_WIDTH)[0]
        table.add_row(Text(label), row["error"], row["interval"], row["share"], row["size"])
    print_table(table)
    for line in result.about_scores:
        print_line(line)


def print_ranks(result: dict[str, Any], found: Sequence[dict[str, Any]], where: str) -> None:
    """Errors for each number of components; with more groups than fit, the best and the worst.

    Rows that exceed a limit are marked. ``where`` says of which rows the errors are.
    """
    names, compared = display_names(result["groups"], _NAME_WIDTH), result["compared"]
    by_group = [[f"{error:.4g}" for error in row["group_errors"]] for row in found]
    table = _rank_table([(name, False) for name in names], by_group, found)
    k = len(names)
    if k > _MOST_GROUPS_ABREAST or (k > 2 and not _fits(table)):
        ends = [_best_and_worst(row["group_errors"], names, compared) for row in found]
        heads = [("best served", True), ("error", False), ("worst served", True), ("error", False)]
        table = _rank_table(heads, ends, found)
    print_table(table)
    what = "shares of variance lost" if result["normalized"] else "average squared errors"
    print_line(f"{what} {where}, {_said_of_columns(result['standardized'])}", style="dim")


def _best_and_worst(
    errors: Sequence[float], names: Sequence[str], compared: Sequence[bool]
) -> list[str]:
    """Name and error of the groups with the least and the largest one, of those compared."""
    order = sorted((g for g in range(len(names)) if compared[g]), key=errors.__getitem__)
    return [cell for g in (order[0], order[-1]) for cell in (names[g], f"{errors[g]:.4g}")]


def _rank_table(
    heads: Sequence[tuple[str, bool]],
    cells: Sequence[Sequence[str]],
    found: Sequence[dict[str, Any]],
) -> Table:
    """A row for each rank: these cells, and the disparity; a head says if names are below it."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, of_names in [("components", False), *heads, ("disparity", False)]:
        table.add_column(Text(name), justify="right", no_wrap=not of_names, overflow="fold")
    for row, own in zip(found, cells, strict=True):
        over = row["exceeded"]
        disparity = f"{row['disparity']:.4g}{' !' if over else ''}"
        shown = (str(row["n_components"]), *own, disparity)
        table.add_row(*map(Text, shown), style="bold red" if over else None)
    return table


def _said_of_columns(standardized: bool) -> str:
    return "columns standardised" if standardized else "columns as they are"


def print_model(model: FairProjection) -> None:
    """Errors by group of a fitted projection, status and certificate; held-out errors first."""
    lost = 1 - model.group_explained_variance_ratio_
    g = int(lost.argmax())
    loses = bool(lost[g] > 1e-9)  # more than rounding
    unit = float(model.group_errors_[g] / lost[g]) if loses else float("inf")
    groups = display_names(model.groups_.tolist(), _NAME_WIDTH), model.group_sizes_.tolist()
    if hasattr(model, "held_out_changes_"):
        where = "on held-out rows, by which the stop was chosen; the 95 % intervals do not account "
        print_line(f"{where}for that choice, those of fairpca report do", style="dim")
        before = model.held_out_pca_group_errors_
        found = zip(model.held_out_changes_, model.held_out_changes_interval_, strict=True)
        changes = [
            change_text(Change(estimate, *ends), base, unit)
            for (estimate, ends), base in zip(found, before, strict=True)
        ]
        print_table(_error_table(*groups, before, model.held_out_group_errors_, changes, unit))
    print_line("on the rows fitted to", style="dim")
    before, after = model.pca_group_errors_, model.group_errors_
    changes = [change(new, old, unit) for new, old in zip(after, before, strict=True)]
    print_table(_error_table(*groups, before, after, changes, unit))
    if loses:
        print_line(f"{model.status_}; {_certificate(model.duality_gap_, unit)}")
    else:
        print_nothing_lost()


def print_nothing_lost() -> None:
    """What to think of equal errors that are all zero."""
    print_line(
        "nothing is lost, so nothing was compressed: that is no proof of fairness; keep fewer "
        "components to compare the groups."
    )


def _some_names(names: list[Any], notes: Sequence[str] = ()) -> str:
    """The first names, each with its note, and how many more there are."""
    most = 6 if len(names) > 7 else 7  # one more name is no longer than to say so
    shown = ", ".join(with_notes(display_names(names[:most], 24), notes))
    return f"{shown}{f' and {len(names) - most} more' if len(names) > most else ''}"


def _new_table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(Text(name), justify="right", no_wrap=True)
    return table


def _error_table(
    names: list[str], sizes: list[int], before: Array, after: Array, changes: list[str], unit: float
) -> Table:
    table = _new_table("group", "rows", "PCA", "fair PCA", "change")
    for name, size, old, new, changed in zip(names, sizes, before, after, changes, strict=True):
        errors = figure(old, unit=unit), figure(new, unit=unit)
        table.add_row(Text(name), str(size), *errors, changed)
    return table


def _certificate(value: float, unit: float) -> str:
    return f"certificate: optimal to {gap(value, unit)}"
