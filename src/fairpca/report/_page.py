"""The page from its template, style, script and charts.

The charts' JavaScript comes from the installed vl-convert package and is written into the page,
which loads nothing.
"""

from __future__ import annotations

from importlib.resources import files

import jinja2
from markupsafe import Markup  # comes with jinja2

from fairpca._audit.result import Audit
from fairpca.report._charts import charts, javascript
from fairpca.report._provenance import Provenance
from fairpca.report._view import view


def page(audit: Audit, provenance: Provenance) -> str:
    """The page about an audit, as HTML."""
    folder = files("fairpca.report")
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment.get_template("page.html").render(
        **view(audit, provenance),
        charts=charts(audit),
        # Our own files and the installed package's JavaScript: the only things not escaped.
        style=Markup(folder.joinpath("page.css").read_text("utf-8")),
        script=Markup(folder.joinpath("page.js").read_text("utf-8")),
        vega=Markup(javascript().replace("</script", r"<\/script")),
    )
