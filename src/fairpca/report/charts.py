"""The numbers of the page's charts; ``templates/charts.js`` says how each kind is drawn.

Groups that are too small to be judged are not drawn, and single people only if asked for.
"""

import os
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._audit.record import Audit, Interval
from fairpca._audit.verdict import Case
from fairpca._typing import Array
from fairpca.report.sentences import AnyAudit, group_names, keeps_columns
from fairpca.report.text import display_names

#: How many columns and components a chart has room for.
_MOST_COLUMNS, _MOST_COMPONENTS = 20, 10
PROBES = {"logistic": "logistic regression", "boosted": "gradient-boosted trees"}
RATES = {
    "selection_rate": "Selection rate",
    "true_positive_rate": "True positive rate",
    "false_positive_rate": "False positive rate",
}


def javascript() -> str:
    """Vega and its helpers, bundled by vl-convert in two seconds, then kept in the cache folder."""
    import vl_convert

    from fairpca._tables.atomic import replacing

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


def methods(audit: AnyAudit) -> list[str]:
    """Names of the judged projection and the alternative in legends."""
    if keeps_columns(audit):
        return ["usual choice", "fair choice"]
    return ["PCA", "fair version"] if isinstance(audit, Audit) else ["model", "plain PCA"]


def charts(audit: AnyAudit, slider: dict[str, Any] | None, with_rows: bool) -> dict[str, Any]:
    """The kind and the marks of each chart, by the id of its element on the page."""
    made: dict[str, Any] = {"gaps": _gaps(audit)}
    if audit.leakage is not None and audit.leakage.baseline_probes:
        probes = audit.leakage.baseline_probes, audit.leakage.alternative_probes
        marks = [
            _mark(
                PROBES.get(probe.name, probe.name),
                method,
                Interval(probe.auc, probe.low, probe.high),
            )
            for method, found in zip(methods(audit), probes, strict=True)
            for probe in found
        ]
        made["probes"] = _intervals(audit, "AUC of guessing the group", 0.5, marks)
    if audit.outcomes:
        made["rates"] = _rates(audit)
    if not isinstance(audit, Audit):
        return made | _columns(audit, [audit.loadings], [audit.column_errors])
    if slider is not None:
        made |= _steps(audit, slider)
    ranks = zip(audit.ranks.n_components, audit.ranks.pca_gap, strict=True)
    own = [{"r": int(r), **_mark("", "", gap, 100)} for r, gap in ranks if gap is not None]
    made["ranks"] = {"kind": "ranks", "r": audit.n_components, "marks": own}
    fit, rows = audit.fit, audit.rows
    errors = [fit.pca_column_errors, fit.fair_column_errors]
    made |= _columns(audit, [fit.pca_loadings, fit.fair_loadings], errors)
    if audit.kept is not None:
        made.pop("loadings")  # only zeros and ones
    if with_rows and rows is not None:
        names = list(group_names(audit).values())
        for place, scores in (("scores-pca", rows.pca), ("scores-fair", rows.fair)):
            points = [
                {"g": g, "group": names[g], "one": point[0], "two": point[-1]}
                for g, point in zip(rows.group.tolist(), scores.tolist(), strict=True)
                if audit.groups[g].judged
            ]
            made[place] = {"kind": "scores", "marks": points}
    return made


def _intervals(audit: AnyAudit, title: str, line: float, marks: list[Any]) -> dict[str, Any]:
    """A chart of figures with intervals; ``line`` marks no difference."""
    how = {"kind": "intervals", "title": title, "at": line}
    return how | {"methods": methods(audit), "marks": marks}


def _mark(what: str, method: str, found: Any, unit: float = 1.0) -> dict[str, Any]:
    """A figure with its interval."""
    ends = {end: unit * getattr(found, end) for end in ("value", "low", "high")}
    return {"what": what, "method": method} | ends


def _gaps(audit: AnyAudit) -> dict[str, Any]:
    """How much worse off each judged group is than all others, before and after."""
    names, marks = group_names(audit, 24), []
    by_share, can_judge = audit.verdict.by_share, audit.verdict.case is not Case.CANNOT_JUDGE
    # The reference is compared with all others instead.
    rows = [row for row in audit.groups if row.judged and row.label != audit.provenance.reference]
    rows.sort(key=lambda row: -row.baseline.read(by_share)[1])
    for row in rows if can_judge else ():
        for method, own in zip(methods(audit), (row.baseline, row.alternative), strict=True):
            gap, _ = own.read(by_share)
            if gap is not None:
                marks.append(_mark(names[row.label], method, gap, 100))
    others = "all others" if audit.provenance.reference is None else "the reference group"
    what = "share lost" if by_share else "error"
    return _intervals(audit, f"{what} against {others}, %", 0.0, marks)


def _rates(audit: AnyAudit) -> dict[str, Any]:
    """How much the classifiers' rates differ between the groups."""
    shown = ("pca", "scores") if isinstance(audit, Audit) else ("scores", "pca")
    names = dict(zip(shown, methods(audit), strict=True))
    marks = [
        _mark(title, names[seen.name], seen.difference[metric])
        for metric, title in RATES.items()
        for seen in audit.outcomes or ()
        if seen.name in names
    ]
    return _intervals(audit, "difference between the groups", 0.0, marks)


def _steps(audit: Audit, slider: dict[str, Any]) -> dict[str, Any]:
    """What each step costs everyone, and what it does to each judged group."""
    names = list(group_names(audit).values())
    steps = list(zip(slider["disparity"], slider["cost"], slider["changes"], strict=True))
    frontier = [
        {"i": i, "disparity": disparity, "cost": 100 * cost}
        for i, (disparity, cost, _) in enumerate(steps)
    ]
    errors = [
        {"i": i, "g": g, "group": names[g], "disparity": disparity, "change": 100 * changes[g]}
        for i, (disparity, _, changes) in enumerate(steps)
        for g, row in enumerate(audit.groups)
        if row.judged and changes[g] is not None
    ]
    what = "shares lost" if audit.verdict.by_share else "errors"
    how = {"start": slider["start"], "title": f"remaining difference of {what}"}
    both = {"frontier": frontier, "errors": errors}
    return {kind: how | {"kind": kind, "marks": marks} for kind, marks in both.items()}


def _columns(audit: AnyAudit, weights: list[Array], errors: list[Array]) -> dict[str, Any]:
    """Weights of the columns in the components, and what the group of the verdict loses on each."""
    names, used = display_names(audit.provenance.feature_names, 24), methods(audit)[: len(weights)]
    group = audit.verdict.group  # None if nobody is named: then the largest is shown
    g, _ = max(enumerate(audit.groups), key=lambda own: (own[1].label == group, own[1].n))
    heavy = sorted(_largest(np.abs(weights).max(axis=(0, 1))))
    lossy = _largest(errors[0][g])
    loadings = [
        {"method": method, "r": r + 1, "column": names[j], "weight": float(V[r, j])}
        for method, V in zip(used, weights, strict=True)
        for r in range(min(len(V), _MOST_COMPONENTS))
        for j in heavy
    ]
    losses = [
        {"method": method, "column": names[j], "error": float(own[g, j])}
        for method, own in zip(used, errors, strict=True)
        for j in lossy
    ]
    return {
        kind: {"kind": kind, "methods": used, "columns": [names[j] for j in order], "marks": marks}
        for kind, order, marks in (("loadings", heavy, loadings), ("columns", lossy, losses))
    }


def _largest(values: Array) -> list[int]:
    """The columns with the largest values, largest first."""
    return list(map(int, np.argsort(-values, kind="stable")[:_MOST_COLUMNS]))
