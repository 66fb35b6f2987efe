"""An audit and a frontier as they show themselves: as text, and as HTML in a notebook."""

from __future__ import annotations

from html import escape

from fairpca.path import TradeoffPath
from fairpca.report.context import Origin, context, named_ends
from fairpca.report.rendering import environment
from fairpca.report.sentences import AnyAudit, about, about_scores, say
from fairpca.report.text import counted, display_names


def as_text(audit: AnyAudit) -> str:
    """The verdict, what must not be overlooked, and how to see more."""
    said = say(audit)
    notices = [f"! {notice}" for notice in said.notices]
    lines = [said.headline, said.lead, said.to_do, *notices, *about_scores(audit)]
    lines.append(f"({about(audit)}; to_html(path) writes the page, to_dict() has all figures)")
    return "\n".join(line for line in lines if line)


def as_html(audit: AnyAudit) -> str:
    """The verdict and the table of groups, for a notebook; plain text without jinja2."""
    try:
        template = environment().get_template("notebook.html")
    except ImportError:
        return f"<pre>{escape(as_text(audit))}</pre>"
    return template.render(**context(audit, Origin()))


def path_as_text(path: TradeoffPath) -> str:
    """Where the methods with a name end on the frontier."""
    size = f"{len(path.disparity)} points, {counted(path.n_components, 'component')}"
    lines = [f"TradeoffPath of {size}, {counted(len(path.groups), 'group')}"]
    for where, rows in named_ends(path).items():
        lines.append(where)
        for name, *cells in (_heads(path), *rows):
            lines.append(f"{name:10}" + "".join(f"{cell:>14}" for cell in cells))
    return "\n".join(lines)


def path_as_html(path: TradeoffPath) -> str:
    """The same as tables; plain text without jinja2."""
    try:
        template = environment().get_template("path.html")
    except ImportError:
        return f"<pre>{escape(path_as_text(path))}</pre>"
    return template.render(heads=_heads(path), ends=named_ends(path))


def _heads(path: TradeoffPath) -> list[str]:
    return ["", "difference", "overall", "above PCA", *display_names(path.groups.tolist(), 12)]
