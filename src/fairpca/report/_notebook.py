"""An audit or a frontier in a few lines: as text, and as HTML for a notebook."""

from __future__ import annotations

from html import escape

from fairpca._audit.result import Audit
from fairpca.path import MarkedPoint, TradeoffPath
from fairpca.report import _tables
from fairpca.report._text import display_names, figure, signed_percent, zero_if_rounding
from fairpca.report._words import components, verdict

# Readable on white and on black, because a notebook may be either.
_COLORS = {"good": "#00875f", "bad": "#d6402f", "open": "inherit"}
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
    lines = [_audited(audit), said.headline, said.before, said.after, *said.notices]
    lines += audit.about_scores
    return "\n".join([*lines, "See to_html(path) for the page and to_dict() for all figures."])


def _audited(audit: Audit) -> str:
    """What was audited, in a line."""
    k, n, estimator = len(audit.groups), sum(audit.group_sizes), " ".join(audit.estimator.split())
    scaled = "standardised" if audit.standardized else "as they are"
    return f"Audit of {estimator}: {components(audit)}, columns {scaled}, {n:,} rows, {k} groups"


def as_html(audit: Audit) -> str:
    """The verdict, the table, and the intervals of the groups' changes as a small chart."""
    said, rows = verdict(audit), _tables.rows_by_group(audit)
    head = "".join(f'<th scope="col">{name}</th>' for name in _COLUMNS.values())
    body = "".join(_row([row[column] for column in _COLUMNS]) for row in rows)
    notices = "".join(f"<li>{escape(line)}</li>" for line in (*said.notices, *audit.about_scores))
    return (
        f'<div><p style="color:{_COLORS[said.tone]};font-weight:600">{escape(said.headline)}</p>'
        f"<p>{escape(said.before)} {escape(said.after)}</p>{notices and f'<ul>{notices}</ul>'}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{_chart(audit)}"
        f"<p><small>{escape(_audited(audit))}</small></p></div>"
    )


def _row(cells: list[str]) -> str:
    """A row of a table that its first cell names."""
    name, *others = map(escape, cells)
    return f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'


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
    bottom = 22 * len(changes) + 8
    return (
        f'<svg width="540" height="{bottom + 18}" role="img" font-size="12" fill="currentColor" '
        'aria-label="Change of each group’s error on new rows, with intervals">'
        f'<path d="M350 0V{bottom}" stroke="currentColor" stroke-dasharray="3 3" opacity="0.5"/>'
        f"{''.join(marks)}"
        f'<text x="344" y="{bottom + 12}" text-anchor="end">← error falls on new rows</text>'
        f'<text x="356" y="{bottom + 12}">it rises →</text></svg>'
    )


def path_as_text(path: TradeoffPath) -> str:
    """Where the methods with a name end on the frontier."""
    n, r, k = len(path.disparity), path.n_components, len(path.groups)
    lines = [f"TradeoffPath of {n} points, {r} component{'s' if r > 1 else ''}, {k} groups"]
    names = "  ".join(f"{name:>12}" for name in display_names(path.groups.tolist(), 12))
    for where, ends in _named_ends(path).items():
        lines += [where, f"{'':10}  disparity    overall  {names}"]
        for name, D, R, _, *errors in ends:
            shown = "  ".join(f"{error:>12}" for error in errors)
            lines.append(f"{name:10}  {D:>9}  {R:>9}  {shown}")
    return "\n".join(lines)


def path_as_html(path: TradeoffPath) -> str:
    """The same as a table, and the frontier as a small chart."""
    heads = ["Disparity", "Overall error", "Above PCA", *display_names(path.groups.tolist())]
    tables = ""
    for where, ends in _named_ends(path).items():
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ["", *heads])
        body = "".join(map(_row, ends))
        tables += f"<table><caption>{where}</caption><thead><tr>{head}</tr></thead>"
        tables += f"<tbody>{body}</tbody></table>"
    D, R = path.disparity, path.reconstruction_error
    wide, high = (float(values.max() - values.min()) or 1.0 for values in (D, R))
    points = " ".join(
        f"{10 + 280 * (D[0] - d) / wide:.1f},{110 - 100 * (e - R[0]) / high:.1f}"
        for d, e in zip(D.tolist(), R.tolist(), strict=True)
    )
    return (
        f"<div>{tables}"
        '<svg width="300" height="140" role="img" font-size="12" fill="currentColor" '
        'aria-label="Overall error, rising from PCA on the left to the least disparity on the '
        'right"><polyline fill="none" stroke="currentColor" stroke-width="2" '
        f'points="{points}"/><text x="10" y="20">overall error</text><text x="10" y="132">PCA'
        '</text><text x="290" y="132" text-anchor="end">least disparity</text></svg></div>'
    )


def _named_ends(path: TradeoffPath) -> dict[str, list[list[str]]]:
    """Name, disparity, overall error, share above PCA, and group errors of each marked point.

    By the rows that they are of: those not fitted to first, if there are any.
    """
    marks = {"on the rows fitted to": path.marks}
    if path.held_out is not None:
        marks = {"on held-out rows": path.held_out.marks} | marks
    unit = float(path.group_errors.max())
    return {
        where: [_end(*mark, points["PCA"], unit) for mark in points.items()]
        for where, points in marks.items()
    }


def _end(name: str, point: MarkedPoint, pca: MarkedPoint, unit: float) -> list[str]:
    start = pca.reconstruction_error
    above = point.reconstruction_error / start - 1 if start > 1e-12 * unit else 0.0
    values = point.disparity, point.reconstruction_error, *point.group_errors.tolist()
    D, R, *errors = (figure(value, unit=unit) for value in values)
    return [name, D, R, signed_percent(zero_if_rounding(above, 1.0)), *errors]
