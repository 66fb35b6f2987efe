"""An audit as people see it: a page, a model card, a table in a notebook, a few lines of text.

``sentences`` puts the verdict into words, ``charts`` and ``context`` make numbers for the templates
in ``templates/``, one for each section. ``README.md`` says where to change what.
"""

from fairpca.report.context import Origin
from fairpca.report.rendering import as_html, as_text, model_card, path_as_text, render

__all__ = ["Origin", "as_html", "as_text", "model_card", "path_as_text", "render"]
