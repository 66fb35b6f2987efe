"""An audit as one self-contained HTML page.

The audit's numbers become a plain dict (:mod:`fairpca.report._view`) and Vega-Lite charts
(:mod:`fairpca.report._charts`); an autoescaped template puts them on a page. The charts' JavaScript
comes from the installed vl-convert package and is written into the page, which loads nothing.
"""

from __future__ import annotations

from importlib.resources import files

import jinja2
from markupsafe import Markup  # comes with jinja2

from fairpca._audit.result import Audit
from fairpca.report._charts import charts, javascript
from fairpca.report._provenance import Provenance
from fairpca.report._reading import read_table
from fairpca.report._view import view

__all__ = ["Provenance", "read_table", "render"]


def render(audit: Audit, provenance: Provenance | None = None) -> str:
    """The page about an audit.

    Parameters
    ----------
    audit : Audit
    provenance : Provenance, optional
        Where the data come from and how to repeat the analysis.

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
    here = files("fairpca.report")
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(lambda name: here.joinpath(name).read_text("utf-8")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment.get_template("page.html").render(
        **view(audit, provenance or Provenance()),
        charts=charts(audit),
        # Our own files and the installed package's JavaScript: the only things not escaped.
        style=Markup(here.joinpath("page.css").read_text("utf-8")),
        script=Markup(here.joinpath("page.js").read_text("utf-8")),
        vega=Markup(javascript().replace("</script", r"<\/script")),
    )
