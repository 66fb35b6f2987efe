"""Templates filled in: the page and the model card.

The page loads nothing: style, script and the charts' JavaScript, which comes from the installed
package vl-convert, are written into it.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import TYPE_CHECKING

from fairpca._progress import printable
from fairpca.report.charts import RATES, javascript
from fairpca.report.context import Origin, context
from fairpca.report.sentences import AnyAudit
from fairpca.report.text import display_names, figure, in_a_row, percent, worse

if TYPE_CHECKING:
    import jinja2


def render(audit: AnyAudit, origin: Origin | None = None, *, with_rows: bool = False) -> str:
    """The page about an audit; needs ``pip install "fairpca[cli]"``.

    Parameters
    ----------
    audit : Audit or ModelAudit
    origin : Origin, optional
        Where the data come from and how to repeat the analysis.
    with_rows : bool, default=False
        Also draw single people.

    Returns
    -------
    str
        HTML; write it with ``encoding="utf-8"``.

    Examples
    --------
    >>> from fairpca import audit
    >>> from fairpca.datasets import make_two_groups
    >>> from fairpca.report import render
    >>> made = make_two_groups(random_state=0)
    >>> render(audit(made.data, made.sensitive_features)).splitlines()[0]
    '<!doctype html>'
    """
    template = environment().get_template("page.html")
    from markupsafe import Markup  # comes with jinja2, which the line above asks for

    # Our own files and the installed package's JavaScript: the only things not escaped.
    return template.render(
        **context(audit, origin or Origin(), with_rows),
        style=Markup(_template_text("style.css")),
        script=Markup(_template_text("charts.js") + _template_text("page.js")),
        vega=Markup(javascript().replace("</script", r"<\/script")),
    )


def model_card(audit: AnyAudit, origin: Origin | None = None) -> str:
    """A model card in Markdown, with the front matter that Hugging Face reads.

    Examples
    --------
    >>> from fairpca import audit
    >>> from fairpca.datasets import make_two_groups
    >>> from fairpca.report import model_card
    >>> made = make_two_groups(random_state=0)
    >>> card = model_card(audit(made.data, made.sensitive_features))
    >>> [line for line in card.splitlines() if line.startswith("## ")][-1]
    '## How to repeat it'
    """
    return environment().get_template("card.md").render(**context(audit, origin or Origin()))


@cache
def environment() -> jinja2.Environment:
    """Where templates come from, and how they are filled in."""
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
    environment.filters |= {"fenced": _fenced, "inline": _inline, "markdown": _markdown}
    own = (display_names, figure, in_a_row, percent, printable)
    environment.filters |= {filter_.__name__: filter_ for filter_ in own}
    environment.filters["worse"] = lambda value: worse(value)[0]
    environment.tests["finite"] = isfinite
    environment.globals["rates"] = {"auc": "AUC", "accuracy": "Accuracy"} | RATES
    return environment


def _template_text(name: str) -> str:
    return files("fairpca.report").joinpath("templates", name).read_text("utf-8")


def _markdown(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", printable(text))


def _fenced(text: str, language: str) -> str:
    """A block of code, within more backticks than the text has in a row."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _inline(code: str) -> str:
    """Code within a line."""
    text = " ".join(printable(code).split())
    fence, space = "`" * (_longest_run(text) + 1), " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
