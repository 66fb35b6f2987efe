"""The way from PCA to the fair projection: overall error and group errors against disparity."""

from __future__ import annotations

from typing import Any

import altair as alt

from fairpca._audit.result import Audit
from fairpca.report import _marks
from fairpca.report._charts.vega import drawn, drawn_by_group, group_color, group_params, quantity
from fairpca.report._slider import Stops


def frontier_chart(audit: Audit) -> Any:
    """Overall error against disparity, with the slider's stop."""
    base = drawn(_marks.path(audit)).encode(
        x=_disparity_axis(),
        y=alt.Y(**quantity("cost", "overall error, % above PCA")),
        tooltip=[
            alt.Tooltip(**quantity("disparity", "disparity", format=".4g")),
            alt.Tooltip(**quantity("overall", "overall error", format=".5g")),
            alt.Tooltip(**quantity("cost", "% above PCA", format=".3f")),
        ],
    )
    stop = base.mark_point(filled=True, size=160, opacity=1).transform_filter("datum.i == position")
    named = drawn(_marks.named_points(audit)).encode(
        x=_disparity_axis(), y=alt.Y(**quantity("cost", "overall error, % above PCA"))
    )
    above = alt.ExprRef("-3 - 14 * datum.level")
    labels = named.mark_text(align="right", baseline="bottom", dx=-6, dy=above, fontSize=12)
    layers = [
        base.mark_line(strokeWidth=2.5),
        named.mark_point(filled=False, size=80, strokeWidth=2),
        labels.encode(text=alt.Text(field="name", type="nominal")),
        stop,
    ]
    if new_rows := _marks.path_of_new_rows(audit):
        dashed = drawn(new_rows).mark_line(strokeWidth=2, strokeDash=[5, 4]).encode(
            x=_disparity_axis(),
            y=alt.Y(**quantity("cost", "overall error, % above PCA")),
            order=alt.Order(field="i", type="quantitative"),
        )  # fmt: skip
        layers.insert(0, dashed)
    return alt.layer(*layers).add_params(_position(audit))


def convergence_chart(audit: Audit) -> Any:
    """Group errors against disparity, with the slider's stop."""
    base = drawn_by_group(_marks.path_by_group(audit)).encode(
        x=_disparity_axis(),
        y=alt.Y(**quantity("error", "group error", scale=alt.Scale(zero=False))),
        **group_color(audit),
        tooltip=[
            alt.Tooltip(field="group", type="nominal"),
            alt.Tooltip(**quantity("error", "error", format=".4g")),
        ],
    )
    stop = base.mark_point(filled=True, size=120).transform_filter("datum.i == position")
    rule = base.mark_rule(strokeDash=[3, 3]).transform_filter("datum.i == position")
    unset = dict.fromkeys(("y", "color", "tooltip"), alt.Undefined)
    rule = rule.encode(**unset, opacity=alt.value(0.5))
    layers = [base.mark_line(strokeWidth=2.5), rule, stop]
    if new_rows := _marks.new_rows_by_group(audit):
        dashed = drawn_by_group(new_rows).mark_line(strokeWidth=1.5, strokeDash=[5, 4]).encode(
            x=_disparity_axis(),
            y=alt.Y(**quantity("error", "group error", scale=alt.Scale(zero=False))),
            **group_color(audit),
            order=alt.Order(field="i", type="quantitative"),
        )  # fmt: skip
        layers.insert(0, dashed)
    return alt.layer(*layers).add_params(_position(audit), *group_params(audit))


def _position(audit: Audit) -> Any:
    return alt.param(name="position", value=Stops.of(audit).start)


def _disparity_axis() -> Any:
    return alt.X(**quantity("disparity", "remaining disparity", sort="descending"))
