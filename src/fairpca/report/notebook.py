"""An audit and a frontier as they show themselves: as text, and as HTML in a notebook."""

from __future__ import annotations

from html import escape

from fairpca.path import MarkedPoint, TradeoffPath
from fairpca.report.context import Origin, about, context
from fairpca.report.sentences import AnyAudit, about_scores, say
from fairpca.report.text import counted, display_names, figure, percent


def as_text(audit: AnyAudit) -> str:
    """The verdict, what must not be overlooked, and how to see more."""
    said = say(audit)
    notices = [f"! {notice}" for notice in said.notices]
    lines = [said.headline, said.lead, said.to_do, *notices, *about_scores(audit)]
    lines.append(f"({about(audit)}; to_html(path) writes the page, to_dict() has all figures)")
    return "\n".join(line for line in lines if line)


def as_html(audit: AnyAudit) -> str:
    """The verdict and the table of groups, for a notebook; plain text without jinja2."""
    from fairpca.report.rendering import environment

    try:
        template = environment().get_template("notebook.html")
    except ImportError:
        return f"<pre>{escape(as_text(audit))}</pre>"
    return template.render(**context(audit, Origin()))


def path_as_text(path: TradeoffPath) -> str:
    """Where the methods with a name end on the frontier."""
    size = f"{len(path.disparity)} points, {counted(path.n_components, 'component')}"
    lines = [f"TradeoffPath of {size}, {counted(len(path.groups), 'group')}"]
    for where, (head, *ends) in _named_ends(path).items():
        lines.append(where)
        lines += [
            f"{name:10}" + "".join(f"{cell:>14}" for cell in cells)
            for name, *cells in (head, *ends)
        ]
    return "\n".join(lines)


def path_as_html(path: TradeoffPath) -> str:
    """The same as a table."""
    tables = ""
    for where, (head, *ends) in _named_ends(path).items():
        heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
        body = "".join(
            f'<tr><th scope="row">{escape(name)}</th>'
            f"{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
            for name, *cells in ends
        )
        tables += f"<table><caption>{where}</caption><thead><tr>{heads}</tr></thead>"
        tables += f"<tbody>{body}</tbody></table>"
    return f"<div>{tables}</div>"


def _named_ends(path: TradeoffPath) -> dict[str, list[list[str]]]:
    """A head and a row for each marked point, by the people that the figures are about."""
    marks = {"on the rows fitted to": path.marks}
    if path.held_out is not None:
        marks = {"for people not used to build it": path.held_out.marks} | marks
    head = ["", "difference", "overall", "above PCA", *display_names(path.groups.tolist(), 12)]
    return {
        where: [head, *(_end(name, point, points["PCA"]) for name, point in points.items())]
        for where, points in marks.items()
    }


def _end(name: str, point: MarkedPoint, pca: MarkedPoint) -> list[str]:
    start, unit = pca.reconstruction_error, float(pca.group_errors.max())
    above = point.reconstruction_error / start - 1 if start > 1e-12 * unit else 0.0
    values = point.reconstruction_error, *point.group_errors.tolist()
    overall, *errors = (figure(value, unit) for value in values)
    return [name, figure(point.disparity, unit), overall, percent(above), *errors]
