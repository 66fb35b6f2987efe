"""What the projection looks like: scores of the rows, weights and errors of the features."""

from __future__ import annotations

from typing import Any

import altair as alt

from fairpca._audit.result import Audit
from fairpca.report import _marks
from fairpca.report._charts.vega import (
    drawn,
    drawn_by_group,
    group_color,
    group_params,
    group_shape,
    method_color,
    method_shape,
    quantity,
)
from fairpca.report._marks import Marks


def score_charts(audit: Audit) -> dict[str, Any]:
    """One chart for PCA and one for fair PCA, on the same axes."""
    ends = _marks.score_ends(audit)
    made = {}
    for name, scores in (("scores-pca", audit.scores.pca), ("scores-fair", audit.scores.fair)):
        x = alt.X(**quantity("c1", "component 1", scale=alt.Scale(domain=ends[0])))
        tooltip = [alt.Tooltip(field="group", type="nominal")]
        chart = drawn_by_group(_marks.scores(audit, scores)).add_params(*group_params(audit))
        chart = chart.encode(x=x, **group_color(audit), tooltip=tooltip)
        if len(ends) == 1:
            axis = alt.Axis(labelExpr="labels[datum.value]")
            y = alt.Y(field="g", type="nominal", title=None, axis=axis)
            made[name] = chart.mark_tick(strokeOpacity=0.4, fillOpacity=0.4).encode(y=y)
        else:
            y = alt.Y(**quantity("c2", "component 2", scale=alt.Scale(domain=ends[1])))
            points = chart.mark_point(filled=True, size=28, fillOpacity=0.6, strokeWidth=0)
            made[name] = points.encode(y=y, shape=group_shape(audit))
    return made


def loadings_chart(audit: Audit) -> Any:
    """Weights of the features in the component that the page chooses."""
    return (
        _dumbbells(_marks.loadings(audit), "weight", "weight in the component")
        .transform_filter("datum.component == component")
        .add_params(alt.param(name="component", value=1))
    )


def features_chart(audit: Audit) -> Any:
    """Errors of the harmed group by feature; ticks are those of the privileged group under PCA."""
    marks = _marks.features(audit)
    base = _dumbbells(marks, "weight", "average squared error")
    ticks = (
        drawn(marks)
        .mark_tick(thickness=2, opacity=0.6)
        .encode(
            y=_feature_axis(),
            x=alt.X(**quantity("other", "average squared error")),
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
    base = drawn(marks).encode(y=_feature_axis())
    between = base.mark_rule(opacity=0.4).encode(
        x=alt.X(**quantity("low", title)), x2=alt.X2(field="high")
    )
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X(**quantity(field, title, axis=alt.Axis(tickCount=6))),
        color=method_color(),
        shape=method_shape(),
        tooltip=[
            alt.Tooltip(field="feature", type="nominal"),
            alt.Tooltip(field="method", type="nominal"),
            alt.Tooltip(**quantity(field, title, format=".4g")),
        ],
    )
    return alt.layer(between, points)
