"""An audit or a frontier in a few lines: as text, and as HTML for a notebook."""

from __future__ import annotations

from html import escape

from fairpca._audit.result import Audit
from fairpca.path import TradeoffPath
from fairpca.report import _tables
from fairpca.report._text import display_names, figure, signed_percent, zero_if_rounding
from fairpca.report._words import components, verdict

_COLORS = {"good": "#00795a", "bad": "#b3261e", "open": "inherit"}
_COLUMNS = {
    "label": "Group",
    "pca": "Error, PCA",
    "fair": "Fair PCA",
    "change": "Change",
    "pca_share": "Variance lost, PCA",
    "fair_share": "Fair PCA",
    "size": "Rows",
}


def as_text(audit: Audit) -> str:
    """The verdict, what must not be overlooked, and how to see more."""
    said = verdict(audit)
    k, n = len(audit.groups), sum(audit.group_sizes)
    head = f"Audit of {audit.estimator}: {components(audit)}, {n:,} rows, {k} groups"
    lines = [head, said.headline, said.before, said.after, *said.notices]
    return "\n".join([*lines, "See to_html(path) for the page and to_dict() for all figures."])


def as_html(audit: Audit) -> str:
    """The verdict, the table, and the intervals of the groups' changes as a small chart."""
    said, rows = verdict(audit), _tables.rows_by_group(audit)
    head = "".join(f'<th scope="col">{name}</th>' for name in _COLUMNS.values())
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(row[column])}</td>' for column in _COLUMNS)}</tr>"
        for row in rows
    )
    notices = "".join(f"<li>{escape(notice)}</li>" for notice in said.notices)
    return (
        f'<div><p style="color:{_COLORS[said.tone]};font-weight:600">{escape(said.headline)}</p>'
        f"<p>{escape(said.before)} {escape(said.after)}</p><ul>{notices}</ul>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{_chart(audit)}</div>"
    )


def _chart(audit: Audit) -> str:
    """Change of each group on new rows with its interval, as SVG; empty without held-out rows."""
    if audit.changes is None:
        return ""
    changes, names = audit.changes.groups, [row["label"] for row in _tables.rows_by_group(audit)]
    reach = max(max(abs(c.low), abs(c.high)) for c in changes) or 1.0
    marks = []
    for g, (change, name) in enumerate(zip(changes, names[:-1], strict=True)):
        low, middle, high = (
            350 + 180 * value / reach for value in (change.low, change.estimate, change.high)
        )
        y = 16 + 22 * g
        color = {-1: _COLORS["good"], 0: "currentColor", 1: _COLORS["bad"]}[change.direction]
        marks.append(
            f'<text x="160" y="{y + 4}" text-anchor="end">{escape(name[:24])}</text>'
            f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{color}" stroke-width="2"/>'
            f'<circle cx="{middle:.1f}" cy="{y}" r="4" fill="{color}"/>'
        )
    height = 22 * len(changes) + 10
    return (
        f'<svg width="540" height="{height}" role="img" font-size="12" fill="currentColor" '
        'aria-label="Change of each group’s error on new rows, with intervals">'
        f'<path d="M350 0V{height}" stroke="currentColor" stroke-dasharray="3 3" opacity="0.5"/>'
        f"{''.join(marks)}</svg>"
    )


def path_as_text(path: TradeoffPath) -> str:
    """Where the methods with a name end on the frontier."""
    n, r, k = len(path.disparity), path.n_components, len(path.groups)
    head = f"TradeoffPath of {n} points, {r} component{'s' if r > 1 else ''}, {k} groups"
    names = display_names(path.groups.tolist(), 12)
    lines = [f"{'':10}  disparity    overall  " + "  ".join(f"{name:>12}" for name in names)]
    for name, *values in _named_ends(path):
        D, R, _, *errors = values
        lines.append(f"{name:10}  {D:>9}  {R:>9}  " + "  ".join(f"{error:>12}" for error in errors))
    return "\n".join([head, *lines])


def path_as_html(path: TradeoffPath) -> str:
    """The same as a table, and the frontier as a small chart."""
    heads = ["", "Disparity", "Overall error", "Above PCA", *display_names(path.groups.tolist())]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in _named_ends(path)
    )
    D, R = path.disparity, path.reconstruction_error
    wide, high = (float(values.max() - values.min()) or 1.0 for values in (D, R))
    points = " ".join(
        f"{10 + 280 * (D[0] - d) / wide:.1f},{110 - 100 * (e - R[0]) / high:.1f}"
        for d, e in zip(D.tolist(), R.tolist(), strict=True)
    )
    return (
        f"<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        '<svg width="300" height="120" role="img" aria-label="Overall error, rising from PCA on '
        'the left to the least disparity on the right"><polyline fill="none" '
        f'stroke="currentColor" stroke-width="2" points="{points}"/></svg></div>'
    )


def _named_ends(path: TradeoffPath) -> list[list[str]]:
    """Name, disparity, overall error, share above PCA, and group errors of each marked point."""
    unit, start = float(path.group_errors.max()), float(path.reconstruction_error[0])
    rows = []
    for name, point in path.marks.items():
        above = point.reconstruction_error / start - 1 if start > 1e-12 * unit else 0.0
        values = point.disparity, point.reconstruction_error, *point.group_errors.tolist()
        D, R, *errors = (figure(value, unit=unit) for value in values)
        rows.append([name, D, R, signed_percent(zero_if_rounding(above, 1.0)), *errors])
    return rows
