"""The charts of the page, as Vega-Lite specifications."""

from __future__ import annotations

from functools import cache
from typing import Any

import altair as alt
import vl_convert

from fairpca._audit.result import Audit
from fairpca.report import _giveaway
from fairpca.report._charts.frontier import convergence_chart, frontier_chart
from fairpca.report._charts.new_rows import (
    changes_chart,
    estimates_chart,
    intervals_chart,
    left_out_chart,
)
from fairpca.report._charts.projection import features_chart, loadings_chart, score_charts
from fairpca.report._charts.ranks import gaps_chart, ranks_chart
from fairpca.report._marks import MOST_FEATURES
from fairpca.report._size import lossless
from fairpca.report._slider import Stops


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
        "ranks": ranks_chart(audit),
        "gaps": gaps_chart(audit),
        "loadings": loadings_chart(audit),
        **score_charts(audit),
    }
    if Stops.of(audit).moves:
        made |= {"frontier": frontier_chart(audit), "convergence": convergence_chart(audit)}
    if not lossless(audit):
        made["features"] = features_chart(audit)
    if audit.bootstrap is not None:
        made |= {
            "intervals": intervals_chart(audit),
            "changes": changes_chart(audit),
            "left-out": left_out_chart(audit),
        }
    if audit.representation is not None and audit.representation.pca.probes:
        made["probes"] = estimates_chart(_giveaway.probe_marks(audit), "AUC of the probe", 0.5)
    if audit.outcomes is not None:
        made["rates"] = estimates_chart(_giveaway.gap_marks(audit), "gap between the groups", 0.0)
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
