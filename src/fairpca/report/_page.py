"""The page from its template, style, script and charts.

The charts' JavaScript comes from the installed vl-convert package and is written into the page,
which loads nothing.
"""

from __future__ import annotations

from importlib.resources import files

import jinja2
from markupsafe import Markup  # comes with jinja2

from fairpca._audit.model import ModelAudit
from fairpca._audit.result import Audit
from fairpca.report._charts import charts, javascript
from fairpca.report._model import gap_chart, model_chart, model_view, probe_chart
from fairpca.report._provenance import Provenance
from fairpca.report._view import view


def page(audit: Audit, provenance: Provenance) -> str:
    """The page about an audit, as HTML."""
    folder = files("fairpca.report")
    return _template("page.html").render(
        **view(audit, provenance),
        charts=charts(audit),
        # Our own files and the installed package's JavaScript: the only things not escaped.
        style=Markup(folder.joinpath("page.css").read_text("utf-8")),
        script=Markup(folder.joinpath("page.js").read_text("utf-8")),
        vega=Markup(javascript().replace("</script", r"<\/script")),
    )


def model_page(audit: ModelAudit, provenance: Provenance) -> str:
    """The page about a fitted model, as HTML."""
    return _template("model.html").render(
        **model_view(audit, provenance),
        chart=Markup(model_chart(audit)),  # escaped there, as those below
        probe_chart=Markup(probe_chart(audit) if audit.probes else ""),
        gap_chart=Markup(gap_chart(audit) if audit.outcomes else ""),
        style=Markup(files("fairpca.report").joinpath("page.css").read_text("utf-8")),
    )


def _template(name: str) -> jinja2.Template:
    folder = files("fairpca.report")
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment.get_template(name)
