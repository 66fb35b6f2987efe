"""The numbers of the page's charts; ``templates/charts.js`` says how each kind is drawn.

Groups that are too small to be judged are not drawn, and single people only if asked for.
"""

import os
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._audit.record import AnyAudit, Audit
from fairpca._audit.verdict import Case
from fairpca._typing import Array, Codes
from fairpca.report.sentences import group_names, methods
from fairpca.report.text import display_names

#: How many columns and components a chart has room for.
_MOST_COLUMNS = 20
_MOST_COMPONENTS = 10
#: How many groups have a colour of their own; the others share one.
MOST_HUES = 7
RATES = {
    metric: metric.replace("_", " ").capitalize()
    for metric in ("selection_rate", "true_positive_rate", "false_positive_rate")
}


def javascript() -> str:
    """Vega and its helpers, bundled by vl-convert in two seconds, then kept in the cache folder."""
    import vl_convert

    from fairpca._atomic import replacing

    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    kept = Path(home).expanduser() / "fairpca" / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError):
        return kept.read_text("utf-8")
    made = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    with suppress(OSError):  # without a cache it is bundled again next time
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replacing(kept) as temporary:
            temporary.write_text(made, "utf-8")
    return made


def charts(audit: AnyAudit, with_rows: bool) -> dict[str, Any]:
    """The kind and the numbers of each chart, by the id of its element on the page.

    The charts of the frontier take their numbers from the steps of the slider.
    """
    made: dict[str, Any] = {"gaps": _gaps(audit), "rates": _rates(audit)}
    if not isinstance(audit, Audit):
        weights = []
        if audit.loadings is not None:
            weights.append(audit.loadings)
        return made | _columns(audit, weights, [audit.column_errors])
    made |= {kind: {"kind": kind} for kind in ("frontier", "errors")}
    made["ranks"] = _ranks(audit)
    fit = audit.fit
    errors = [fit.pca_column_errors, fit.fair_column_errors]
    made |= _columns(audit, [fit.pca_loadings, fit.fair_loadings], errors)
    if audit.kept is not None:
        made.pop("loadings")  # only zeros and ones
    if with_rows and audit.rows is not None:
        made["scores-pca"] = _scores(audit, audit.rows.group, audit.rows.pca)
        made["scores-fair"] = _scores(audit, audit.rows.group, audit.rows.fair)
    return made


def hues_of(audit: AnyAudit) -> dict[Any, int]:
    """The colour and shape of each judged group; the last one is for all but the worst off."""
    judged = [row for row in audit.groups if row.judged]
    judged.sort(key=lambda row: -row.baseline.read(audit.verdict.by_share)[1])
    return {row.label: min(place, MOST_HUES) for place, row in enumerate(judged)}


def _ranks(audit: Audit) -> dict[str, Any]:
    """The largest gap by number of components; a run is as long as one group has it."""
    curve = audit.ranks
    names = group_names(audit)
    hues = hues_of(audit)
    marks: list[dict[str, Any]] = []
    run = 0
    last = None
    for r, label, gap in zip(curve.n_components.tolist(), curve.group, curve.pca_gap, strict=True):
        if gap is None:
            continue
        run += label != last
        last = label
        own = {"r": r, "g": hues.get(label, MOST_HUES), "group": names[label], "run": run}
        marks.append(own | gap._asdict())
    return {"kind": "ranks", "r": audit.n_components, "marks": marks}


def _scores(audit: Audit, codes: Codes, scores: Array) -> dict[str, Any]:
    """Single people on the first two components."""
    names = list(group_names(audit).values())
    hues = hues_of(audit)
    marks = [
        {"g": hues[audit.groups[g].label], "group": names[g], "one": point[0], "two": point[-1]}
        for g, point in zip(codes.tolist(), scores.tolist(), strict=True)
    ]
    return {"kind": "scores", "marks": marks}


def _gaps(audit: AnyAudit) -> dict[str, Any]:
    """How much worse off each judged group is than all others, before and after."""
    names = group_names(audit, 24)
    by_share = audit.verdict.by_share
    reference = audit.provenance.reference  # which is compared with all others instead
    rows = [row for row in audit.groups if row.judged and row.label != reference]
    rows.sort(key=lambda row: -row.baseline.read(by_share)[1])
    marks = [
        {"what": names[row.label], "method": method, **gap._asdict()}
        for row in rows
        for method, own in zip(methods(audit), (row.baseline, row.alternative), strict=True)
        if (gap := own.read(by_share)[0]) and audit.verdict.case is not Case.CANNOT_JUDGE
    ]
    others = "all others"
    if reference is not None:
        others = "the reference group"
    measure = "error"
    if by_share:
        measure = "share lost"
    title = f"{measure} against {others}, %"
    return {"kind": "intervals", "title": title, "unit": 100, "marks": marks}


def _rates(audit: AnyAudit) -> dict[str, Any]:
    """How much the classifiers' rates differ between the groups."""
    shown = ("pca", "scores") if isinstance(audit, Audit) else ("scores", "pca")
    names = dict(zip(shown, methods(audit), strict=True))
    marks = [
        {"what": title, "method": names[seen.name], **seen.difference[metric]._asdict()}
        for metric, title in RATES.items()
        for seen in audit.outcomes or ()
        if seen.name in names
    ]
    return {"kind": "intervals", "title": "difference between groups", "unit": 1, "marks": marks}


def _columns(audit: AnyAudit, weights: list[Array], errors: list[Array]) -> dict[str, Any]:
    """Weights of the columns in the components, and what the group of the verdict loses on each."""
    names = display_names(audit.provenance.feature_names, 24)
    made: dict[str, Any] = {}
    if weights:
        heaviest = np.argsort(-np.abs(weights).max(axis=(0, 1)), kind="stable")
        heavy = np.sort(heaviest[:_MOST_COLUMNS])
        drawn = [V[:_MOST_COMPONENTS, heavy].tolist() for V in weights]
        shown = [names[j] for j in heavy]
        made["loadings"] = {"kind": "loadings", "columns": shown, "weights": drawn}
    for g, row in enumerate(audit.groups):
        if row.label == audit.verdict.group:
            lossy = np.argsort(-errors[0][g], kind="stable")[:_MOST_COLUMNS]
            losses = [own[g, lossy].tolist() for own in errors]
            shown = [names[j] for j in lossy]
            made["columns"] = {"kind": "columns", "columns": shown, "errors": losses}
    return made
