"""What to expect of new rows: estimates with intervals."""

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
    method_shape,
    quantity,
)
from fairpca.report._marks import Marks


def changes_chart(audit: Audit) -> Any:
    """Of each group's error on new rows, with intervals."""
    title = "change of the error on new rows, %"
    axis = alt.Axis(labelExpr="labels[datum.value]")
    base = drawn_by_group(_marks.changes(audit)).encode(
        y=alt.Y(field="g", type="nominal", title=None, axis=axis),
        **group_color(audit),
        tooltip=[
            alt.Tooltip(field="group", type="nominal"),
            *(alt.Tooltip(**quantity(k, k, format=".3g")) for k in ("low", "estimate", "high")),
        ],
    )
    zero = alt.Chart(alt.InlineData(values=[{"x": 0}])).mark_rule(strokeDash=[3, 3])
    return alt.layer(
        zero.encode(x=alt.X(**quantity("x", title))),
        base.mark_rule(strokeWidth=3).encode(x=alt.X(**quantity("low", title)), x2="high"),
        base.mark_point(filled=True, size=110).encode(x=alt.X(**quantity("estimate", title))),
    ).add_params(*group_params(audit))


def left_out_chart(audit: Audit) -> Any:
    """The disparity without the rows that have the largest shares in it."""
    title = "disparity on new rows"
    axis = alt.Axis(tickMinStep=1, format="d")
    lines = (
        drawn(_marks.left_out(audit))
        .mark_line(point=alt.OverlayMarkDef(size=40, filled=True), strokeWidth=2)
        .encode(
            x=alt.X(**quantity("rows", "rows left out", axis=axis)),
            y=alt.Y(**quantity("disparity", title)),
            color=method_color(),
            tooltip=[
                alt.Tooltip(field="method", type="nominal"),
                alt.Tooltip(**quantity("rows", "rows left out")),
                alt.Tooltip(**quantity("disparity", "disparity", format=".4g")),
            ],
        )
    )
    zero = alt.Chart(alt.InlineData(values=[{"y": 0}])).mark_rule(strokeDash=[3, 3])
    return alt.layer(zero.encode(y=alt.Y(**quantity("y", title))), lines)


def intervals_chart(audit: Audit) -> Any:
    """The disparity of PCA and of fair PCA, with intervals."""
    title = "disparity on rows not used for fitting"
    base = drawn(_marks.intervals(audit)).encode(
        y=alt.Y(**by_method(), title=None),
        color=method_color(),
        tooltip=[
            alt.Tooltip(field="method", type="nominal"),
            *(alt.Tooltip(**quantity(k, k, format=".4g")) for k in ("low", "estimate", "high")),
        ],
    )
    zero = alt.Chart(alt.InlineData(values=[{"x": 0}])).mark_rule(strokeDash=[3, 3])
    return alt.layer(
        zero.encode(x=alt.X(**quantity("x", title))),
        base.mark_rule(strokeWidth=3).encode(x=alt.X(**quantity("low", title)), x2="high"),
        base.mark_point(filled=True, size=110, opacity=1).encode(
            x=alt.X(**quantity("estimate", title))
        ),
    )


def estimates_chart(marks: Marks, title: str, none: float) -> Any:
    """Estimates with intervals, PCA and fair PCA side by side; the dashed line is no difference."""
    base = drawn(marks).encode(
        y=alt.Y(field="what", type="nominal", title=None, sort=None),
        yOffset=alt.YOffset(field="method", type="nominal", sort=METHODS),
        color=method_color(),
        tooltip=[
            alt.Tooltip(field="what", type="nominal"),
            alt.Tooltip(field="method", type="nominal"),
            *(alt.Tooltip(**quantity(k, k, format=".3g")) for k in ("low", "estimate", "high")),
        ],
    )
    line = alt.Chart(alt.InlineData(values=[{"x": none}])).mark_rule(strokeDash=[3, 3])
    axis = alt.Axis(tickCount=6, labelFlush=True)  # so that the last label is not cut off
    options = {"scale": alt.Scale(zero=False), "axis": axis}
    return alt.layer(
        line.encode(x=alt.X(**quantity("x", title, **options))),
        base.mark_rule(strokeWidth=3).encode(
            x=alt.X(**quantity("low", title, **options)), x2="high"
        ),
        base.mark_point(filled=True, size=90, opacity=1).encode(
            x=alt.X(**quantity("estimate", title, **options)), shape=method_shape()
        ),
    )
