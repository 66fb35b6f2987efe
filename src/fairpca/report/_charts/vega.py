"""What the charts share: data, scales, and one look for groups and for methods.

Names from the data are values in the charts' data, never names of fields, titles or expressions,
so whatever they contain is drawn as text. Colours come from the page, light or dark.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from fairpca._audit.result import Audit
from fairpca.report._marks import Marks
from fairpca.report._text import display_names

METHODS = ["PCA", "fair PCA"]
_METHOD_COLORS = ["var(--pca)", "var(--fair)"]  # defined in page.css
# Of the groups, in the order of the page's legends, where colours and shapes repeat after 7 too.
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left"]


def drawn(marks: Marks) -> Any:
    """A chart of these marks, without an encoding."""
    return alt.Chart(alt.InlineData(values=[_rounded(mark) for mark in marks]))


def _rounded(mark: dict[str, Any]) -> dict[str, Any]:
    """Six digits are enough to draw."""
    return {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in mark.items()}


def quantity(field: str, title: str | None, **options: Any) -> dict[str, Any]:
    """An axis or a tooltip of numbers."""
    return {"field": field, "type": "quantitative", "title": title, **options}


def group_color(audit: Audit) -> dict[str, Any]:
    """Colour by group; pale when another group is chosen in the page's legend."""
    numbers = range(len(audit.groups))
    scale = alt.Scale(domain=[*numbers], range=[f"var(--g{g % len(_SHAPES)})" for g in numbers])
    chosen = "only === null || datum.g === only"
    return {
        "color": alt.Color(field="g", type="nominal", scale=scale, legend=None),
        "opacity": alt.condition(chosen, alt.value(1), alt.value(0.1)),
    }


def group_shape(audit: Audit) -> Any:
    """A shape for each group, for those who do not see the colours."""
    k, numbers = len(_SHAPES), range(len(audit.groups))
    scale = alt.Scale(domain=[*numbers], range=[_SHAPES[(g + g // k) % k] for g in numbers])
    return alt.Shape(field="g", type="nominal", scale=scale, legend=None)


def group_params(audit: Audit) -> list[Any]:
    """The names of the groups, and which of them is chosen in the page's legend."""
    names = alt.param(name="labels", value=display_names(audit.groups))
    return [names, alt.param(name="only", value=None)]


def drawn_by_group(marks: Marks) -> Any:
    """The same for marks that have the number of a group, ``g``: adds its name."""
    return drawn(marks).transform_calculate(group="labels[datum.g]")


def by_method() -> dict[str, Any]:
    """PCA first, then fair PCA."""
    return {"field": "method", "type": "nominal", "sort": METHODS}


def method_color() -> Any:
    """The page's colours of PCA and fair PCA."""
    scale = alt.Scale(domain=METHODS, range=_METHOD_COLORS)
    return alt.Color(**by_method(), scale=scale, legend=None)


def method_shape() -> Any:
    """A circle for PCA and a square for fair PCA, as the page's legend says."""
    scale = alt.Scale(domain=METHODS, range=["circle", "square"])
    return alt.Shape(**by_method(), scale=scale, legend=None)
