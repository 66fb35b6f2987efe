"""The numbers of the page's charts; ``templates/charts.js`` says how each kind is drawn.

Groups that are too small to be judged are not drawn, and single people only if asked for.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._audit.record import Audit, Interval
from fairpca._typing import Array
from fairpca.report.sentences import AnyAudit, gap_of
from fairpca.report.text import display_names

Marks = list[dict[str, Any]]

_MOST_COLUMNS = 20
_MOST_COMPONENTS = 10
RATES = {
    "selection_rate": "Selection rate",
    "true_positive_rate": "True positive rate",
    "false_positive_rate": "False positive rate",
}


def javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed, bundled by the installed package vl-convert.

    Bundling takes two seconds, so the result is kept in the user's cache folder.
    """
    import vl_convert

    from fairpca._tables.atomic import replacing

    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    name = f"vega-{version('vl-convert-python')}.js"
    kept = Path(home).expanduser() / "fairpca" / name
    with suppress(OSError):
        return kept.read_text("utf-8")
    made = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    with suppress(OSError):  # no home, or no room: bundled again next time
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replacing(kept) as temporary:
            temporary.write_text(made, "utf-8")
    return made


def methods(audit: AnyAudit) -> list[str]:
    """What is judged and the alternative, as legends call them."""
    return ["PCA", "fair version"] if isinstance(audit, Audit) else ["model", "plain PCA"]


def charts(audit: AnyAudit, stops: dict[str, Any] | None, with_rows: bool) -> dict[str, Any]:
    """For each chart, by the id of its place on the page: how it is drawn, and its marks."""
    made = {"gaps": _intervals(audit, _gap_marks(audit), "error against all others, %", 0.0)}
    if stops is not None and isinstance(audit, Audit):
        made["frontier"] = {
            "kind": "frontier",
            "start": stops["start"],
            "marks": _step_marks(stops),
        }
        own = _step_marks_by_group(audit, stops)
        made["errors"] = {"kind": "errors", "start": stops["start"], "marks": own}
    if isinstance(audit, Audit):
        own = [
            {"r": int(r), **_in_percent(gap)}
            for r, gap in zip(audit.ranks.n_components, audit.ranks.pca_gap, strict=True)
            if gap is not None
        ]
        made["ranks"] = {"kind": "ranks", "r": audit.n_components, "marks": own}
    if audit.leakage is not None and audit.leakage.baseline_probes:
        probes = audit.leakage.baseline_probes, audit.leakage.alternative_probes
        own = [
            {"what": p.name, "method": method, "value": p.auc, "low": p.low, "high": p.high}
            for method, found in zip(methods(audit), probes, strict=True)
            for p in found
        ]
        made["probes"] = _intervals(audit, own, "AUC of guessing the group", 0.5)
    if audit.outcomes is not None:
        made["rates"] = _intervals(audit, _rates(audit), "difference between the groups", 0.0)
    made |= _of_columns(audit)
    if with_rows and isinstance(audit, Audit) and audit.rows is not None:
        made |= {f"scores-{which}": _scores(audit, which) for which in ("pca", "fair")}
    return made


def _intervals(audit: AnyAudit, marks: Marks, title: str, at: float) -> dict[str, Any]:
    return {
        "kind": "intervals",
        "title": title,
        "at": at,
        "methods": methods(audit),
        "marks": marks,
    }


def _gap_marks(audit: AnyAudit) -> Marks:
    """How much worse off each judged group is than all others, before and after."""
    names = display_names([row.name for row in audit.groups], 24)
    return [
        {"what": name, "method": method, **_in_percent(gap)}
        for row, name in zip(audit.groups, names, strict=True)
        for method, figures in zip(methods(audit), (row.baseline, row.alternative), strict=True)
        if row.judged and (gap := gap_of(audit, figures)) is not None
    ]


def _in_percent(interval: Interval) -> dict[str, float]:
    return {key: 100 * value for key, value in interval._asdict().items()}


def _rates(audit: AnyAudit) -> Marks:
    shown = ("pca", "scores") if isinstance(audit, Audit) else ("scores", "pca")
    names = dict(zip(shown, methods(audit), strict=True))
    return [
        {
            "what": title,
            "method": names[seen.name],
            "value": gap.value,
            "low": gap.low,
            "high": gap.high,
        }
        for metric, title in RATES.items()
        for seen in audit.outcomes or ()
        if seen.name in names
        for gap in [seen.difference[metric]]
    ]


def _step_marks(stops: dict[str, Any]) -> Marks:
    """What each step costs everyone, against how far apart the groups remain."""
    return [
        {"i": i, "disparity": disparity, "cost": 100 * cost}
        for i, (disparity, cost) in enumerate(zip(stops["disparity"], stops["cost"], strict=True))
    ]


def _step_marks_by_group(audit: Audit, stops: dict[str, Any]) -> Marks:
    """What each step does to each judged group."""
    names = display_names([row.name for row in audit.groups])
    return [
        {"i": i, "g": g, "group": names[g], "disparity": disparity, "change": 100 * changes[g]}
        for i, (disparity, changes) in enumerate(
            zip(stops["disparity"], stops["changes"], strict=True)
        )
        for g, row in enumerate(audit.groups)
        if row.judged and changes[g] is not None
    ]


def _of_columns(audit: AnyAudit) -> dict[str, Any]:
    """Weights of the columns in the components, and what the group of the verdict loses on each."""
    if isinstance(audit, Audit):
        fit = audit.fit
        weights = [fit.pca_loadings, fit.fair_loadings]
        found = [fit.pca_column_errors, fit.fair_column_errors]
    else:
        weights, found = [audit.loadings], [audit.column_errors]
    errors = [own for own in found if own is not None and own.size]
    if len(errors) < len(weights):
        return {}
    columns = display_names(audit.provenance.feature_names, 24)
    labels = [row.label for row in audit.groups]
    g = labels.index(audit.verdict.group) if audit.verdict.group in labels else 0
    heavy = sorted(_largest(np.max([np.abs(V).max(axis=0) for V in weights], axis=0)))
    lossy = _largest(errors[0][g])
    named = list(zip(methods(audit), weights, errors, strict=False))
    return {
        "loadings": {
            "kind": "loadings",
            "methods": [method for method, _, _ in named],
            "columns": [columns[j] for j in heavy],
            "marks": [
                {"method": method, "r": r + 1, "column": columns[j], "weight": float(V[r, j])}
                for method, V, _ in named
                for r in range(min(len(V), _MOST_COMPONENTS))
                for j in heavy
            ],
        },
        "columns": {
            "kind": "columns",
            "methods": methods(audit),
            "columns": [columns[j] for j in lossy],
            "marks": [
                {"method": method, "column": columns[j], "error": float(own[g, j])}
                for method, _, own in named
                for j in lossy
            ],
        },
    }


def _largest(values: Array) -> list[int]:
    """The columns with the largest values, largest first."""
    order: list[int] = np.argsort(-values, kind="stable")[:_MOST_COLUMNS].tolist()
    return order


def _scores(audit: Audit, which: str) -> dict[str, Any]:
    """Single people of judged groups on the first two components."""
    rows, names = audit.rows, display_names([row.name for row in audit.groups])
    codes = [] if rows is None else rows.group.tolist()
    points = getattr(rows, which).tolist() if rows is not None else []
    marks = [
        {"g": g, "group": names[g], "one": point[0], "two": point[-1]}
        for g, point in zip(codes, points, strict=True)
        if audit.groups[g].judged
    ]
    return {"kind": "scores", "marks": marks}
