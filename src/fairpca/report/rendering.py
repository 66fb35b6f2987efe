"""Show an audit as a page, a model card, a table in a notebook, or lines of text.

The page loads nothing: style, script and the charts' JavaScript, which comes from the installed
package vl-convert, are written into it.
"""

import re
from functools import cache
from html import escape
from math import isfinite
from typing import Any

from fairpca._audit.record import AnyAudit, Audit
from fairpca._progress import printable
from fairpca.path import TradeoffPath
from fairpca.report import text
from fairpca.report.charts import RATES, javascript
from fairpca.report.context import Origin, context
from fairpca.report.sentences import about, about_scores, say


def render(
    audit: AnyAudit,
    origin: Origin | None = None,
    *,
    with_rows: bool = False,
    columns: Audit | None = None,
) -> str:
    """The page about an audit, as HTML; needs ``pip install jinja2 vl-convert-python``.

    It draws single people only ``with_rows``. ``columns`` is an audit of ``FairColumns`` on the
    same rows, for a section on columns.
    """
    return _fill("page.html", audit, origin or Origin(), with_rows, columns)


def model_card(audit: AnyAudit, origin: Origin | None = None) -> str:
    """A model card in Markdown, with the front matter that Hugging Face reads."""
    return _fill("card.md", audit, origin or Origin())


def as_text(audit: AnyAudit) -> str:
    """The verdict, what must not be overlooked, and how to see more."""
    said = say(audit)
    notices = [f"! {notice}" for notice in said.notices]
    lines = [said.headline, said.lead, said.to_do, *notices, *about_scores(audit)]
    lines.append(f"({about(audit)}; to_html(path) writes the page, to_dict() has all figures)")
    return "\n".join(line for line in lines if line)


def as_html(audit: AnyAudit) -> str:
    """The verdict and the table of groups, for a notebook; plain text if jinja2 is missing."""
    try:
        return _fill("notebook.html", audit, Origin())
    except ImportError:
        return f"<pre>{escape(as_text(audit))}</pre>"


def path_as_text(path: TradeoffPath) -> str:
    """Where the named methods end on the frontier, as text."""
    size = f"{len(path.disparity)} points, {text.counted(path.n_components, 'component')}"
    lines = [f"TradeoffPath of {size}, {text.counted(len(path.groups), 'group')}"]
    groups = text.display_names(path.groups.tolist(), 12)
    marks = {"on the training rows": path.marks}
    if path.held_out is not None:
        marks = {"for held-out people": path.held_out.marks} | marks
    for where, points in marks.items():
        start = points["PCA"].reconstruction_error
        unit = float(points["PCA"].group_errors.max())
        rows = [["", "difference", "overall error", "above PCA", *groups]]
        for name, point in points.items():
            overall = point.reconstruction_error
            above = 0.0
            if start > 1e-12 * unit:
                above = overall / start - 1
            errors = [text.figure(error, unit) for error in point.group_errors.tolist()]
            apart = text.figure(point.disparity, unit)
            rows.append([name, apart, text.figure(overall, unit), text.percent(above), *errors])
        lines += [where, text.aligned("\n".join("\t".join(row) for row in rows)).rstrip()]
    return "\n".join(lines)


def _fill(template: str, *facts: Any) -> str:
    return str(environment().get_template(template).render(**context(*facts)))


@cache
def environment(package: str = "fairpca.report") -> Any:
    """The jinja2 environment with the templates of a package and our filters."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            f"pages and cards need {error.name}; install what they need with pip install jinja2 "
            "vl-convert-python."
        ) from error
    environment = jinja2.Environment(
        autoescape=lambda name: name is not None and name.endswith(".html"),
        loader=jinja2.PackageLoader(package),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    own = [text.aligned, text.counted, text.difference, text.display_names, text.figure]
    own += [text.in_a_row, text.percent, text.percent_range, printable, repr]
    environment.filters |= {function.__name__: function for function in own}
    environment.filters |= {"markdown": _markdown, "worse": lambda value: text.worse(value)[0]}
    # No line ends within "33 %" or "sex = 1".
    environment.filters["unbroken"] = lambda said: re.sub(" (?=%|= )|(?<= =) ", "\u00a0", said)
    environment.filters["capital"] = lambda said: said[0].upper() + said[1:]
    environment.tests["finite"] = isfinite
    environment.globals["vega"] = lambda: javascript().replace("</script", r"<\/script")
    environment.globals["rates"] = {"auc": "AUC", "accuracy": "Accuracy"} | RATES
    return environment


def _markdown(said: str) -> str:
    """Escape a text so that Markdown shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", printable(said))
