"""An audit as people see it: a page, a model card, a table in a notebook, a few lines of text.

``sentences`` puts the verdict into words, ``charts`` and ``context`` make numbers for the templates
in ``templates/``, one for each section. ``README.md`` says where to change what.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairpca.report.context import Origin
    from fairpca.report.notebook import as_html, as_text, path_as_html, path_as_text
    from fairpca.report.rendering import model_card, render

__all__ = [
    "Origin",
    "as_html",
    "as_text",
    "model_card",
    "path_as_html",
    "path_as_text",
    "render",
]

# Loaded when first used: the command prints an error without waiting for numpy.
_HOMES = {
    "Origin": "context",
    "as_html": "notebook",
    "as_text": "notebook",
    "model_card": "rendering",
    "path_as_html": "notebook",
    "path_as_text": "notebook",
    "render": "rendering",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fairpca.report' has no attribute {name!r}")
    return getattr(import_module(f"fairpca.report.{_HOMES[name]}"), name)
