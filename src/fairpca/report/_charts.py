"""The charts of the page, as Vega-Lite specifications.

Names from the data are values in the charts' data, never names of fields, titles or expressions,
so whatever they contain is drawn as text. Colours come from the page, light or dark.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import altair as alt
import vl_convert

from fairpca._audit.result import Audit
from fairpca.report import _giveaway, _marks
from fairpca.report._marks import MOST_FEATURES, Marks
from fairpca.report._size import lossless
from fairpca.report._slider import Stops
from fairpca.report._text import display_names

_METHODS = ["PCA", "fair PCA"]
_METHOD_COLORS = ["var(--pca)", "var(--fair)"]  # defined in page.css
# Of the groups, in the order of the page's legends, where colours and shapes repeat after 7 too.
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left"]


@cache
def javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed, from the installed package; bundled once per process."""
    wanted = alt.SCHEMA_VERSION.lstrip("v").split(".")
    installed = [version.split(".") for version in vl_convert.get_vegalite_versions()]
    same = [version for version in installed if version[0] == wanted[0]]
    best = max(same or installed, key=lambda version: [int(part) for part in version])
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=".".join(best))


def charts(audit: Audit) -> dict[str, Any]:
    """Specification of every chart, by the id of its place on the page."""
    made = {
        "ranks": _ranks(audit),
        "gaps": _gaps(audit),
        "loadings": _loadings(audit),
        **_scores(audit),
    }
    if Stops.of(audit).moves:
        made |= {"frontier": _frontier(audit), "convergence": _convergence(audit)}
    if not lossless(audit):
        made["features"] = _features(audit)
    if audit.bootstrap is not None:
        made |= {
            "intervals": _intervals(audit),
            "changes": _changes(audit),
            "left-out": _left_out(audit),
        }
    if audit.representation is not None and audit.representation.pca.probes:
        made["probes"] = _estimate_chart(_giveaway.probe_marks(audit), "AUC of the probe", 0.5)
    if audit.outcomes is not None:
        made["rates"] = _estimate_chart(_giveaway.gap_marks(audit), "gap between the groups", 0.0)
    by_feature = 24 * min(len(audit.feature_names), MOST_FEATURES)
    heights = {
        "intervals": 90,
        "probes": 110,
        "rates": 160,
        "changes": 34 * len(audit.groups),
        "left-out": 180,
        "loadings": by_feature,
        "features": by_feature,
    }
    return {name: _finished(chart, heights.get(name, 280)) for name, chart in made.items()}


def _finished(chart: Any, height: int) -> dict[str, Any]:
    chart = chart.properties(
        width="container",
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
    )
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)  # the page brings its own, light or dark
    return spec


def _data(marks: Marks) -> Any:
    return alt.Chart(alt.InlineData(values=[_rounded(mark) for mark in marks]))


def _rounded(mark: dict[str, Any]) -> dict[str, Any]:
    """Six digits are enough to draw."""
    return {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in mark.items()}


def _quantity(field: str, title: str | None, **options: Any) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", "title": title, **options}


def _position(audit: Audit) -> Any:
    return alt.param(name="position", value=Stops.of(audit).start)


def _disparity_axis() -> Any:
    return alt.X(**_quantity("disparity", "remaining disparity", sort="descending"))


def _frontier(audit: Audit) -> Any:
    base = _data(_marks.path(audit)).encode(
        x=_disparity_axis(),
        y=alt.Y(**_quantity("cost", "overall error, % above PCA")),
        tooltip=[
            alt.Tooltip(**_quantity("disparity", "disparity", format=".4g")),
            alt.Tooltip(**_quantity("overall", "overall error", format=".5g")),
            alt.Tooltip(**_quantity("cost", "% above PCA", format=".3f")),
        ],
    )
    stop = base.mark_point(filled=True, size=160, opacity=1).transform_filter("datum.i == position")
    named = _data(_marks.named_points(audit)).encode(
        x=_disparity_axis(), y=alt.Y(**_quantity("cost", "overall error, % above PCA"))
    )
    labels = named.mark_text(align="right", baseline="bottom", dx=-6, dy=-3, fontSize=12)
    layers = [
        base.mark_line(strokeWidth=2.5),
        named.mark_point(filled=False, size=80, strokeWidth=2),
        labels.encode(text=alt.Text(field="name", type="nominal")),
        stop,
    ]
    if new_rows := _marks.path_of_new_rows(audit):
        dashed = _data(new_rows).mark_line(strokeWidth=2, strokeDash=[5, 4]).encode(
            x=_disparity_axis(),
            y=alt.Y(**_quantity("cost", "overall error, % above PCA")),
            order=alt.Order(field="i", type="quantitative"),
        )  # fmt: skip
        layers.insert(0, dashed)
    return alt.layer(*layers).add_params(_position(audit))


def _convergence(audit: Audit) -> Any:
    base = _grouped_data(_marks.path_by_group(audit)).encode(
        x=_disparity_axis(),
        y=alt.Y(**_quantity("error", "group error", scale=alt.Scale(zero=False))),
        **_by_group(audit),
        tooltip=[
            alt.Tooltip(field="group", type="nominal"),
            alt.Tooltip(**_quantity("error", "error", format=".4g")),
        ],
    )
    stop = base.mark_point(filled=True, size=120).transform_filter("datum.i == position")
    rule = base.mark_rule(strokeDash=[3, 3]).transform_filter("datum.i == position")
    unset = dict.fromkeys(("y", "color", "tooltip"), alt.Undefined)
    rule = rule.encode(**unset, opacity=alt.value(0.5))
    layers = [base.mark_line(strokeWidth=2.5), rule, stop]
    if new_rows := _marks.new_rows_by_group(audit):
        dashed = _grouped_data(new_rows).mark_line(strokeWidth=1.5, strokeDash=[5, 4]).encode(
            x=_disparity_axis(),
            y=alt.Y(**_quantity("error", "group error", scale=alt.Scale(zero=False))),
            **_by_group(audit),
        )  # fmt: skip
        layers.insert(0, dashed)
    return alt.layer(*layers).add_params(_position(audit), *_group_params(audit))


def _by_group(audit: Audit) -> dict[str, Any]:
    """Colour by group; pale when another group is chosen in the page's legend."""
    numbers = range(len(audit.groups))
    scale = alt.Scale(domain=[*numbers], range=[f"var(--g{g % len(_SHAPES)})" for g in numbers])
    chosen = "only === null || datum.g === only"
    return {
        "color": alt.Color(field="g", type="nominal", scale=scale, legend=None),
        "opacity": alt.condition(chosen, alt.value(1), alt.value(0.1)),
    }


def _group_shape(audit: Audit) -> Any:
    k, numbers = len(_SHAPES), range(len(audit.groups))
    scale = alt.Scale(domain=[*numbers], range=[_SHAPES[(g + g // k) % k] for g in numbers])
    return alt.Shape(field="g", type="nominal", scale=scale, legend=None)


def _group_params(audit: Audit) -> list[Any]:
    """The names of the groups, and which of them is chosen in the page's legend."""
    names = alt.param(name="labels", value=display_names(audit.groups))
    return [names, alt.param(name="only", value=None)]


def _grouped_data(marks: Marks) -> Any:
    return _data(marks).transform_calculate(group="labels[datum.g]")


def _by_method() -> dict[str, Any]:
    return {"field": "method", "type": "nominal", "sort": _METHODS}


def _method_color() -> Any:
    scale = alt.Scale(domain=_METHODS, range=_METHOD_COLORS)
    return alt.Color(**_by_method(), scale=scale, legend=None)


def _method_shape() -> Any:
    scale = alt.Scale(domain=_METHODS, range=["circle", "square"])
    return alt.Shape(**_by_method(), scale=scale, legend=None)


def _ranks(audit: Audit) -> Any:
    base = _grouped_data(_marks.ranks(audit)).encode(
        x=alt.X(**_rank_axis()),
        y=alt.Y(**_quantity("error", "average squared error")),
        **_by_group(audit),
        tooltip=[
            alt.Tooltip(field="method", type="nominal"),
            alt.Tooltip(field="group", type="nominal"),
            alt.Tooltip(**_quantity("r", "components")),
            alt.Tooltip(**_quantity("error", "error", format=".4g")),
        ],
    )
    lines = base.mark_line(point=alt.OverlayMarkDef(size=30), strokeWidth=2).encode(
        strokeDash=alt.StrokeDash(
            **_by_method(),
            scale=alt.Scale(domain=_METHODS, range=[[5, 4], [1, 0]]),
            legend=None,
        )
    )
    return alt.layer(_chosen_rank(audit), lines).add_params(*_group_params(audit))


def _rank_axis() -> dict[str, Any]:
    axis = alt.Axis(tickMinStep=1, format="d")
    return _quantity(
        "r", "components", axis=axis, scale=alt.Scale(zero=False, nice=False, padding=12)
    )


def _chosen_rank(audit: Audit) -> Any:
    chosen = alt.Chart(alt.InlineData(values=[{"r": audit.n_components}]))
    return chosen.mark_rule(strokeDash=[2, 3], opacity=0.5).encode(x=alt.X(**_rank_axis()))


def _gaps(audit: Audit) -> Any:
    lines = _data(_marks.gaps(audit)).mark_line(
        point=alt.OverlayMarkDef(size=40, filled=True), strokeWidth=2
    )
    return alt.layer(
        _chosen_rank(audit),
        lines.encode(
            x=alt.X(**_rank_axis()),
            y=alt.Y(**_quantity("gap", "gap, % of overall error")),
            color=_method_color(),
            tooltip=[
                alt.Tooltip(field="method", type="nominal"),
                alt.Tooltip(**_quantity("r", "components")),
                alt.Tooltip(**_quantity("gap", "% of overall", format=".3g")),
            ],
        ),
    )


def _scores(audit: Audit) -> dict[str, Any]:
    """One chart for PCA and one for fair PCA, on the same axes."""
    ends = _marks.score_ends(audit)
    made = {}
    for name, scores in (("scores-pca", audit.scores.pca), ("scores-fair", audit.scores.fair)):
        x = alt.X(**_quantity("c1", "component 1", scale=alt.Scale(domain=ends[0])))
        tooltip = [alt.Tooltip(field="group", type="nominal")]
        chart = _grouped_data(_marks.scores(audit, scores)).add_params(*_group_params(audit))
        chart = chart.encode(x=x, **_by_group(audit), tooltip=tooltip)
        if len(ends) == 1:
            axis = alt.Axis(labelExpr="labels[datum.value]")
            y = alt.Y(field="g", type="nominal", title=None, axis=axis)
            made[name] = chart.mark_tick(strokeOpacity=0.4, fillOpacity=0.4).encode(y=y)
        else:
            y = alt.Y(**_quantity("c2", "component 2", scale=alt.Scale(domain=ends[1])))
            points = chart.mark_point(filled=True, size=28, fillOpacity=0.6, strokeWidth=0)
            made[name] = points.encode(y=y, shape=_group_shape(audit))
    return made


def _loadings(audit: Audit) -> Any:
    return (
        _dumbbells(_marks.loadings(audit), "weight", "weight in the component")
        .transform_filter("datum.component == component")
        .add_params(alt.param(name="component", value=1))
    )


def _features(audit: Audit) -> Any:
    marks = _marks.features(audit)
    base = _dumbbells(marks, "weight", "average squared error")
    ticks = (
        _data(marks)
        .mark_tick(thickness=2, opacity=0.6)
        .encode(
            y=_feature_axis(),
            x=alt.X(**_quantity("other", "average squared error")),
        )
    )
    return alt.layer(ticks, base)


def _feature_axis() -> Any:
    return alt.Y(
        field="feature",
        type="nominal",
        sort={"field": "order", "op": "min", "order": "ascending"},
        title=None,
    )


def _dumbbells(marks: Marks, field: str, title: str) -> Any:
    """PCA and fair PCA as two marks on one line for each feature."""
    base = _data(marks).encode(y=_feature_axis())
    between = base.mark_rule(opacity=0.4).encode(
        x=alt.X(**_quantity("low", title)), x2=alt.X2(field="high")
    )
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X(**_quantity(field, title, axis=alt.Axis(tickCount=6))),
        color=_method_color(),
        shape=_method_shape(),
        tooltip=[
            alt.Tooltip(field="feature", type="nominal"),
            alt.Tooltip(field="method", type="nominal"),
            alt.Tooltip(**_quantity(field, title, format=".4g")),
        ],
    )
    return alt.layer(between, points)


def _changes(audit: Audit) -> Any:
    """Of each group's error on new rows, with intervals."""
    title = "change on new rows, % of the group’s error under PCA"
    axis = alt.Axis(labelExpr="labels[datum.value]")
    base = _grouped_data(_marks.changes(audit)).encode(
        y=alt.Y(field="g", type="nominal", title=None, axis=axis),
        **_by_group(audit),
        tooltip=[
            alt.Tooltip(field="group", type="nominal"),
            *(alt.Tooltip(**_quantity(k, k, format=".3g")) for k in ("low", "estimate", "high")),
        ],
    )
    zero = alt.Chart(alt.InlineData(values=[{"x": 0}])).mark_rule(strokeDash=[3, 3])
    return alt.layer(
        zero.encode(x=alt.X(**_quantity("x", title))),
        base.mark_rule(strokeWidth=3).encode(x=alt.X(**_quantity("low", title)), x2="high"),
        base.mark_point(filled=True, size=110).encode(x=alt.X(**_quantity("estimate", title))),
    ).add_params(*_group_params(audit))


def _left_out(audit: Audit) -> Any:
    """The disparity without the rows that have the largest shares in it."""
    title = "disparity on new rows"
    axis = alt.Axis(tickMinStep=1, format="d")
    lines = (
        _data(_marks.left_out(audit))
        .mark_line(point=alt.OverlayMarkDef(size=40, filled=True), strokeWidth=2)
        .encode(
            x=alt.X(**_quantity("rows", "rows left out", axis=axis)),
            y=alt.Y(**_quantity("disparity", title)),
            color=_method_color(),
            tooltip=[
                alt.Tooltip(field="method", type="nominal"),
                alt.Tooltip(**_quantity("rows", "rows left out")),
                alt.Tooltip(**_quantity("disparity", "disparity", format=".4g")),
            ],
        )
    )
    zero = alt.Chart(alt.InlineData(values=[{"y": 0}])).mark_rule(strokeDash=[3, 3])
    return alt.layer(zero.encode(y=alt.Y(**_quantity("y", title))), lines)


def _intervals(audit: Audit) -> Any:
    title = "disparity on rows not used for fitting"
    base = _data(_marks.intervals(audit)).encode(
        y=alt.Y(**_by_method(), title=None),
        color=_method_color(),
        tooltip=[
            alt.Tooltip(field="method", type="nominal"),
            *(alt.Tooltip(**_quantity(k, k, format=".4g")) for k in ("low", "estimate", "high")),
        ],
    )
    zero = alt.Chart(alt.InlineData(values=[{"x": 0}])).mark_rule(strokeDash=[3, 3])
    return alt.layer(
        zero.encode(x=alt.X(**_quantity("x", title))),
        base.mark_rule(strokeWidth=3).encode(x=alt.X(**_quantity("low", title)), x2="high"),
        base.mark_point(filled=True, size=110, opacity=1).encode(
            x=alt.X(**_quantity("estimate", title))
        ),
    )


def _estimate_chart(marks: Marks, title: str, none: float) -> Any:
    """Estimates with intervals, PCA and fair PCA side by side; the dashed line is no difference."""
    base = _data(marks).encode(
        y=alt.Y(field="what", type="nominal", title=None, sort=None),
        yOffset=alt.YOffset(field="method", type="nominal", sort=_METHODS),
        color=_method_color(),
        tooltip=[
            alt.Tooltip(field="what", type="nominal"),
            alt.Tooltip(field="method", type="nominal"),
            *(alt.Tooltip(**_quantity(k, k, format=".3g")) for k in ("low", "estimate", "high")),
        ],
    )
    line = alt.Chart(alt.InlineData(values=[{"x": none}])).mark_rule(strokeDash=[3, 3])
    axis = alt.Axis(tickCount=6, labelFlush=True)  # so that the last label is not cut off
    options = {"scale": alt.Scale(zero=False), "axis": axis}
    return alt.layer(
        line.encode(x=alt.X(**_quantity("x", title, **options))),
        base.mark_rule(strokeWidth=3).encode(
            x=alt.X(**_quantity("low", title, **options)), x2="high"
        ),
        base.mark_point(filled=True, size=90, opacity=1).encode(
            x=alt.X(**_quantity("estimate", title, **options)), shape=_method_shape()
        ),
    )
