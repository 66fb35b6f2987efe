"""What the templates are given: facts in rounded numbers, made from an audit and its origin."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite, nan
from typing import Any

import numpy as np

import fairpca
from fairpca._audit.record import Audit, GroupResult, Interval
from fairpca._audit.verdict import Case, Reason, Remedy
from fairpca.path import TradeoffPath
from fairpca.report import sentences
from fairpca.report.charts import RATES, charts, methods
from fairpca.report.sentences import AnyAudit
from fairpca.report.text import (
    counted,
    display_names,
    figure,
    percent,
    printable,
    some_names,
    worse,
)

_TONES = {-1: "good", 0: "plain", 1: "bad"}
_PROBES = {"logistic": "logistic regression", "boosted": "gradient-boosted trees"}
_MORE_RATES = {"auc": "AUC", "accuracy": "Accuracy"} | RATES


def _versions() -> dict[str, str]:
    others = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"fairpca": fairpca.__version__, "Python": platform.python_version(), **others}


@dataclass(frozen=True)
class Origin:
    """Where the data of a report come from, and how to repeat it.

    Attributes
    ----------
    source : str
        Name of the file, or what the data are.
    sha256 : str
        Checksum of the data.
    n_read : int or None
        Rows in the source.
    streamed : bool
        Whether the rows were too many to be kept in memory.
    notes : list of str
        What became of the data when they were read, a sentence each.
    model_file : str
        The file of the model that was judged, if there is one.
    command, code : str
        The command, and Python code, that give the same page.
    fit_command, step_command : str
        The command that fits the fair version, and one with ``{step}`` in the place of the overall
        error that a smaller step may cost.
    versions : dict of str to str
    date : str
    """

    source: str = "data passed to fairpca.audit"
    sha256: str = ""
    n_read: int | None = None
    streamed: bool = False
    notes: list[str] = field(default_factory=list)
    model_file: str = ""
    command: str = ""
    code: str = ""
    fit_command: str = ""
    step_command: str = ""
    versions: dict[str, str] = field(default_factory=_versions)
    date: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d"))

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


def group_rows(audit: AnyAudit) -> list[dict[str, Any]]:
    """A row of the table of groups for each of them, worst off first; then all people."""
    names = display_names([row.name for row in audit.groups])
    rows = [
        (row, {"g": g, "name": name} | _group_row(audit, row))
        for g, (row, name) in enumerate(zip(audit.groups, names, strict=True))
    ]
    rows.sort(key=lambda pair: (not pair[0].judged, -_sorted_by(audit, pair[0])))
    return [cells for _, cells in rows]


def _sorted_by(audit: AnyAudit, row: GroupResult) -> float:
    own = row.baseline
    value = own.share_gap_estimate if audit.verdict.by_share else own.gap_estimate
    return value if isfinite(value) else 0.0


def _group_row(audit: AnyAudit, row: GroupResult) -> dict[str, Any]:
    before = row.baseline
    both = [own for own in (before, row.alternative) if own is not None]
    can_judge = audit.verdict.case is not Case.CANNOT_JUDGE
    pairs: list[tuple[Interval | None, float]] = [
        (before.gap, before.gap_estimate),
        (before.share_gap, before.share_gap_estimate),
        (row.change, row.change_estimate),
    ]
    if audit.verdict.reason is Reason.NOTHING_COMPRESSED:  # these are ratios of rounding errors
        pairs = [(None, nan)] * 3
    found = [_compared(*pair) for pair in pairs]
    (gap, gap_range, tone), (share_gap, share_range, _), (change, change_range, change_tone) = found
    return {
        "n": f"{row.n:,}",
        "judged": row.judged,
        "gap": gap,
        "gap_range": gap_range,
        "gap_tone": tone if can_judge else "plain",
        "error": " → ".join(figure(own.error) for own in both),
        "share": " → ".join(f"{100 * own.share:.1f} %" for own in both),
        "share_gap": share_gap,
        "share_range": share_range,
        "change": change,
        "change_range": change_range,
        "change_tone": change_tone if can_judge else "plain",
        "better_off": "" if row.better_off is None else percent(row.better_off),
    }


def _compared(interval: Interval | None, estimate: float) -> tuple[str, str, str]:
    """How much worse, its interval, and a tone; without a tone where nothing is judged."""
    if interval is not None:
        return *worse(*interval), _TONES[interval.direction]
    return (
        (worse(estimate, estimate, estimate)[0], "", "plain")
        if isfinite(estimate)
        else ("", "", "")
    )


def stops(audit: AnyAudit, origin: Origin) -> dict[str, Any] | None:
    """The steps of the slider: plain PCA, the frontier as far as somebody gains, this report's own.

    None if there is nothing to choose. Every step but the report's can be fitted again by its
    overall error on the rows fitted to.
    """
    if not isinstance(audit, Audit):
        return None
    path = audit.path
    errors, labels = path.group_errors, path.groups.tolist()
    if np.ptp(path.disparity) <= 1e-9 * float(errors.max()):
        return None
    seen = path if path.held_out is None else path.held_out
    rows = {row.label: row for row in audit.groups}
    order = [labels.index(row.label) if row.label in labels else None for row in audit.groups]
    n = int(np.flatnonzero(path.efficient).max(initial=0)) + 1
    steps: list[dict[str, Any]] = [
        {
            "disparity": float(seen.disparity[i]),
            "cost": _relative_change(seen.reconstruction_error[i], seen.reconstruction_error[0]),
            "changes": [
                None
                if j is None
                else _relative_change(seen.group_errors[i, j], seen.group_errors[0, j])
                for j in order
            ],
            "step": _relative_change(path.reconstruction_error[i], path.reconstruction_error[0]),
        }
        for i in range(n)
    ]
    cost = _relative_change(audit.overall.alternative_error, audit.overall.error)
    own = {
        "disparity": _difference(rows, path),
        "cost": cost,
        "changes": [row.change_estimate for row in audit.groups],
        "step": None,
    }
    place = 0 if audit.verdict.remedy is Remedy.IS_PCA else _place(steps, cost)
    if place:
        steps.insert(place, own)
    call = f"FairPCA({audit.n_components}, max_error_increase={{}}, standardize={{}})"
    for step in steps:
        budget = step.pop("step")
        step["command"], step["python"] = origin.fit_command, audit.provenance.alternative
        if budget is not None:
            step["command"] = origin.step_command.replace("{step}", f"{budget:.4g}")
            step["python"] = call.format(f"{budget:.4g}", audit.provenance.standardized)
    lists = {name: [step[name] for step in steps] for name in steps[0]}
    last = len(steps) - 1
    beyond = bool(place == last and path.parity_reached and place > 0)
    return {"start": place, "last": last, "held_out": seen is not path, "beyond": beyond} | lists


def _place(steps: list[dict[str, Any]], cost: float) -> int:
    """Where a step with this overall cost belongs; PCA stays first."""
    return max(1, int(np.searchsorted([step["cost"] for step in steps], cost)))


def _difference(rows: dict[Any, GroupResult], path: TradeoffPath) -> float:
    """How far the errors of the fair version are apart, as the frontier measures it."""
    errors = {label: row.alternative.error for label, row in rows.items() if row.alternative}
    if len(path.groups) == 2:
        return errors.get(path.harmed_group, 0.0) - errors.get(path.privileged_group, 0.0)
    known = [errors[label] for label in path.groups.tolist() if label in errors]
    return max(known) - min(known)


def _relative_change(value: float, first: float) -> float:
    return float(f"{value / first - 1:.6g}") if first > 0 else 0.0


def context(audit: AnyAudit, origin: Origin, with_rows: bool = False) -> dict[str, Any]:
    """Everything the templates need."""
    slider, provenance, overall = stops(audit, origin), audit.provenance, audit.overall.change
    drawn, (judged, other) = charts(audit, slider, with_rows), methods(audit)
    can_judge = audit.verdict.case is not Case.CANNOT_JUDGE
    sections = {
        "groups": True,
        "price": slider is not None and can_judge,
        "ranks": "ranks" in drawn and len(drawn["ranks"]["marks"]) > 1,
        "unusual": can_judge and any(row.baseline.robust for row in audit.groups if row.judged),
        "guessed": audit.leakage is not None,
        "outcomes": audit.outcomes is not None,
        "scores": "scores-pca" in drawn,
        "annex": True,
    }
    group_columns = " and ".join(provenance.group_columns) or "group"
    return {
        "audit": audit,
        "about": about(audit),
        "origin": origin,
        "verdict": sentences.say(audit),
        "is_model": not isinstance(audit, Audit),
        "sections": [name for name, wanted in sections.items() if wanted],
        "title": printable(f"{origin.model_file or origin.source}, by {group_columns}"),
        "group_columns": printable(group_columns),
        "judged": judged,
        "alternative": other,
        "judged_title": judged[0].upper() + judged[1:],
        "other_title": other[0].upper() + other[1:],
        "n_components": provenance.n_components,
        "n_features": len(provenance.feature_names),
        "features": some_names(provenance.feature_names, 30),
        "names": display_names([row.name for row in audit.groups]),
        "rows": group_rows(audit),
        "small": [row.name for row in audit.groups if not row.judged],
        "against": "all others" if provenance.reference is None else str(provenance.reference),
        "level": f"{100 * provenance.thresholds.level:g} %",
        "overall": "" if overall is None else worse(*overall)[0],
        "cannot_show": sentences.what_it_cannot_show(audit),
        "unusual": sentences.about_unusual(audit),
        "robust": _robust_rows(audit),
        "guessing": sentences.about_guessing(audit),
        "guessed": _guessed_rows(audit),
        "outcomes": _outcomes(audit),
        "harmed": sentences.name(audit, audit.verdict.group) if audit.verdict.group else "",
        "charts": drawn,
        "slider": slider,
        "certificate": _certificate(audit),
        "marks": _method_ends(audit),
    }


def _robust_rows(audit: AnyAudit) -> list[list[str]]:
    """Gaps that a few unusual people cannot move."""
    rows = []
    for row, name in zip(audit.groups, display_names([g.name for g in audit.groups]), strict=True):
        own = row.baseline.robust
        if row.judged and own is not None:
            gaps = [row.baseline.gap_estimate, *own.trimmed_gaps.values(), own.median_gap]
            rows.append([name, *(worse(gap, gap, gap)[0] for gap in gaps), percent(own.pairs)])
    return rows


def _guessed_rows(audit: AnyAudit) -> list[list[str]]:
    leakage = audit.leakage
    if leakage is None:
        return []
    sides = [side for side in (leakage.baseline, leakage.alternative) if side]
    rows = [
        ["Share of the output’s variance between the groups"]
        + [f"{100 * side['centroid_share']:.1f} %" for side in sides if "centroid_share" in side],
        ["AUC of a linear discriminant, by means and covariances"]
        + [f"{side['discriminant_auc']:.2f}" for side in sides if "discriminant_auc" in side],
    ]
    probes = [found for found in (leakage.baseline_probes, leakage.alternative_probes) if found]
    for own in zip(*probes, strict=True):
        title = f"AUC of {_PROBES.get(own[0].name, own[0].name)}"
        rows.append([title, *(f"{p.auc:.2f} ({p.low:.2f} to {p.high:.2f})" for p in own)])
    return [row for row in rows if len(row) > 1]


def _outcomes(audit: AnyAudit) -> dict[str, Any] | None:
    """Rates of the classifiers: overall, by group, and the largest difference."""
    if not audit.outcomes:
        return None
    own = "the fair version" if isinstance(audit, Audit) else "the model"
    seen = {"scores": own, "pca": "PCA", "features": "all columns"}
    known = dict(
        zip(
            [row.label for row in audit.groups],
            display_names([r.name for r in audit.groups]),
            strict=True,
        )
    )
    first = audit.outcomes[0]
    labels = list(first.by_group["selection_rate"])
    return {
        "positive": printable(first.positive),
        "base_rate": f"{100 * first.base_rate:.1f} %",
        "groups": [known.get(label, printable(label)) for label in labels],
        "rates": [
            {
                "name": title,
                "rows": [
                    {
                        "on": seen[result.name],
                        "overall": f"{result.overall[metric]:.2f}",
                        "gap": _estimate(result.difference[metric]),
                        "values": [_estimate(result.by_group[metric][label]) for label in labels],
                    }
                    for result in audit.outcomes
                ],
            }
            for metric, title in _MORE_RATES.items()
            if metric in first.by_group
        ],
    }


def _estimate(found: Any) -> tuple[str, str]:
    value, low, high = (f"{v:.2f}".replace("-", "−") for v in (found.value, found.low, found.high))
    return value, f"{low} to {high}"


def _certificate(audit: AnyAudit) -> dict[str, Any] | None:
    if not isinstance(audit, Audit):
        return None
    fit = audit.fit
    unit = float(np.max(fit.pca_errors, initial=0.0))
    gap = figure(abs(fit.duality_gap), unit) if isfinite(fit.duality_gap) else ""
    alpha = f"{fit.alpha:.4g}" if isfinite(fit.alpha) else ""
    return {"status": fit.status, "gap": gap, "alpha": alpha, "certified": fit.certified}


def _method_ends(audit: AnyAudit) -> list[list[str]]:
    """Where the methods of the paper end on the frontier, for people left out if there are any."""
    if not isinstance(audit, Audit):
        return []
    path = audit.path
    found = path.marks if path.held_out is None else path.held_out.marks
    start = found["PCA"].reconstruction_error
    return [
        [
            name,
            f"{point.alpha:.4g}" if isfinite(point.alpha) else "",
            figure(point.disparity, start),
            percent(_relative_change(point.reconstruction_error, start)),
            *(figure(error) for error in point.group_errors),
        ]
        for name, point in found.items()
    ]


def about(audit: AnyAudit) -> str:
    """What was judged, in a line."""
    own = audit.provenance
    columns = counted(len(own.feature_names), "column")
    kept = f"{columns} kept in {counted(own.n_components, 'component')}"
    whose = "PCA fitted here" if own.fitted_here else "a model judged as it is"
    return f"{counted(own.n_rows, 'row')}, {kept}, {whose}"
