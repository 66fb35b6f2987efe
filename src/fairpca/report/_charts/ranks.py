"""Errors and gaps against the number of components."""

from __future__ import annotations

from typing import Any

import altair as alt

from fairpca._audit.result import Audit
from fairpca.report import _marks
from fairpca.report._charts.vega import (
    METHODS,
    by_method,
    drawn,
    drawn_by_group,
    group_color,
    group_params,
    method_color,
    quantity,
)


def ranks_chart(audit: Audit) -> Any:
    """Group errors, PCA dashed and fair PCA solid."""
    base = drawn_by_group(_marks.ranks(audit)).encode(
        x=alt.X(**_rank_axis()),
        y=alt.Y(**quantity("error", "average squared error")),
        **group_color(audit),
        tooltip=[
            alt.Tooltip(field="method", type="nominal"),
            alt.Tooltip(field="group", type="nominal"),
            alt.Tooltip(**quantity("r", "components")),
            alt.Tooltip(**quantity("error", "error", format=".4g")),
        ],
    )
    lines = base.mark_line(point=alt.OverlayMarkDef(size=30), strokeWidth=2).encode(
        strokeDash=alt.StrokeDash(
            **by_method(),
            scale=alt.Scale(domain=METHODS, range=[[5, 4], [1, 0]]),
            legend=None,
        )
    )
    return alt.layer(_chosen_rank(audit), lines).add_params(*group_params(audit))


def gaps_chart(audit: Audit) -> Any:
    """The disparity as a share of the overall error."""
    lines = drawn(_marks.gaps(audit)).mark_line(
        point=alt.OverlayMarkDef(size=40, filled=True), strokeWidth=2
    )
    return alt.layer(
        _chosen_rank(audit),
        lines.encode(
            x=alt.X(**_rank_axis()),
            y=alt.Y(**quantity("gap", "gap, % of overall error")),
            color=method_color(),
            tooltip=[
                alt.Tooltip(field="method", type="nominal"),
                alt.Tooltip(**quantity("r", "components")),
                alt.Tooltip(**quantity("gap", "% of overall", format=".3g")),
            ],
        ),
    )


def _rank_axis() -> dict[str, Any]:
    axis = alt.Axis(tickMinStep=1, format="d")
    return quantity(
        "r", "components", axis=axis, scale=alt.Scale(zero=False, nice=False, padding=12)
    )


def _chosen_rank(audit: Audit) -> Any:
    chosen = alt.Chart(alt.InlineData(values=[{"r": audit.n_components}]))
    return chosen.mark_rule(strokeDash=[2, 3], opacity=0.5).encode(x=alt.X(**_rank_axis()))
