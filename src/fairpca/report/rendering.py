"""Show an audit as a page, a model card, a table in a notebook, or lines of text.

The page loads nothing: style, script and the charts' JavaScript, which comes from the installed
package vl-convert, are written into it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from math import isfinite
from typing import TYPE_CHECKING, Any

from fairpca._audit.record import Audit
from fairpca._progress import printable
from fairpca.path import MarkedPoint, TradeoffPath
from fairpca.report.charts import PROBES, RATES, javascript
from fairpca.report.context import Origin, context
from fairpca.report.sentences import AnyAudit, about, about_scores, say
from fairpca.report.text import counted, display_names, figure, in_a_row, percent, worse

if TYPE_CHECKING:
    import jinja2


def render(
    audit: AnyAudit,
    origin: Origin | None = None,
    *,
    with_rows: bool = False,
    columns: Audit | None = None,
) -> str:
    """The page about an audit, as HTML; needs ``pip install "fairpca[cli]"``.

    Parameters
    ----------
    audit : Audit or ModelAudit
    origin : Origin, optional
        Where the data come from and how to repeat the analysis.
    with_rows : bool, default=False
        Also draw single people.
    columns : Audit, optional
        An audit of ``FairColumns`` on the same rows, for a section on columns.

    Examples
    --------
    >>> from fairpca import audit
    >>> from fairpca.datasets import make_two_groups
    >>> from fairpca.report import render
    >>> made = make_two_groups(random_state=0)
    >>> render(audit(made.data, made.sensitive_features)).splitlines()[0]
    '<!doctype html>'
    """
    template = _environment().get_template("page.html")
    from markupsafe import Markup  # comes with jinja2, which the line above asks for

    # Our own files and the installed package's JavaScript: the only things not escaped.
    return template.render(
        **context(audit, origin or Origin(), with_rows, columns),
        style=Markup(_template_text("style.css")),
        script=Markup(_template_text("charts.js") + _template_text("page.js")),
        vega=Markup(javascript().replace("</script", r"<\/script")),
    )


def model_card(audit: AnyAudit, origin: Origin | None = None) -> str:
    """A model card in Markdown, with the front matter that Hugging Face reads."""
    return _environment().get_template("card.md").render(**context(audit, origin or Origin()))


def as_text(audit: AnyAudit) -> str:
    """The verdict, what must not be overlooked, and how to see more."""
    said = say(audit)
    notices = [f"! {notice}" for notice in said.notices]
    lines = [said.headline, said.lead, said.to_do, *notices, *about_scores(audit)]
    lines.append(f"({about(audit)}; to_html(path) writes the page, to_dict() has all figures)")
    return "\n".join(line for line in lines if line)


def as_html(audit: AnyAudit) -> str:
    """The verdict and the table of groups, for a notebook."""
    return _notebook_html("notebook.html", as_text(audit), **context(audit, Origin()))


def path_as_text(path: TradeoffPath) -> str:
    """Where the named methods end on the frontier, as text."""
    size = f"{len(path.disparity)} points, {counted(path.n_components, 'component')}"
    lines = [f"TradeoffPath of {size}, {counted(len(path.groups), 'group')}"]
    for where, rows in _named_ends(path).items():
        lines.append(where)
        for name, *cells in (_heads(path), *rows):
            lines.append(f"{name:10}" + "".join(f"{cell:>14}" for cell in cells))
    return "\n".join(lines)


def path_as_html(path: TradeoffPath) -> str:
    """Where the named methods end on the frontier, as tables for a notebook."""
    tables = {"heads": _heads(path), "ends": _named_ends(path)}
    return _notebook_html("path.html", path_as_text(path), **tables)


def _notebook_html(name: str, text: str, **given: Any) -> str:
    """A rendered template, or the plain text if jinja2 is missing."""
    try:
        return _environment().get_template(name).render(**given)
    except ImportError:
        return f"<pre>{escape(text)}</pre>"


def _named_ends(path: TradeoffPath) -> dict[str, list[list[str]]]:
    """Where the named methods end on the frontier, for held-out people and the rows fitted to.

    Each row has the name, the difference of the errors, the overall error, its increase over PCA's,
    and the error of each group.
    """
    marks: dict[str, Mapping[str, MarkedPoint]] = {"on the training rows": path.marks}
    if path.held_out is not None:
        marks = {"for held-out people": path.held_out.marks} | marks
    found: dict[str, list[list[str]]] = {}
    for where, points in marks.items():
        start = points["PCA"].reconstruction_error
        unit = float(points["PCA"].group_errors.max())
        found[where] = [
            [
                name,
                figure(point.disparity, unit),
                figure(point.reconstruction_error, unit),
                percent(point.reconstruction_error / start - 1 if start > 1e-12 * unit else 0.0),
                *(figure(error, unit) for error in point.group_errors.tolist()),
            ]
            for name, point in points.items()
        ]
    return found


def _heads(path: TradeoffPath) -> list[str]:
    return ["", "difference", "overall", "above PCA", *display_names(path.groups.tolist(), 12)]


@cache
def _environment() -> jinja2.Environment:
    """The jinja2 environment with our templates and filters."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            f'pages and cards need {error.name}; install it with pip install "fairpca[cli]".'
        ) from error
    environment = jinja2.Environment(
        autoescape=lambda name: name is not None and name.endswith(".html"),
        loader=jinja2.FunctionLoader(_template_text),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    own = (display_names, figure, in_a_row, percent, printable)
    environment.filters |= {function.__name__: function for function in own}
    environment.filters |= {"markdown": _markdown, "worse": lambda value: worse(value)[0]}
    environment.tests["finite"] = isfinite
    environment.globals["rates"] = {"auc": "AUC", "accuracy": "Accuracy"} | RATES
    environment.globals["probe_names"] = PROBES
    return environment


def _template_text(name: str) -> str:
    return files("fairpca.report").joinpath("templates", name).read_text("utf-8")


def _markdown(text: str) -> str:
    """Escape a text so that Markdown shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", printable(text))
