"""What the scores give away, and what a classifier makes of them: tables and marks of the page."""

from __future__ import annotations

from typing import Any

from fairpca._audit.about_scores import auc_range, few_picked
from fairpca._audit.model import ModelAudit
from fairpca._audit.representation import MOST_ROWS, GivenAway
from fairpca._audit.result import Audit
from fairpca.metrics import Estimate, Outcomes
from fairpca.report._text import display_names

_OTHERS = {"pca": "PCA", "features": "all features"}
_RATES = {
    "auc": "AUC",
    "accuracy": "Accuracy",
    "selection_rate": "Selection rate",
    "true_positive_rate": "True positive rate",
    "false_positive_rate": "False positive rate",
    "calibration": "Predicted minus observed",
}
_PROBES = {"logistic": "logistic regression", "boosted": "gradient-boosted trees"}
_GAPS = ("selection_rate", "true_positive_rate", "false_positive_rate")


def giveaway(audit: Audit | ModelAudit) -> dict[str, Any] | None:
    """The section "What the scores give away"; None where nothing is known about that."""
    sides = _sides(audit)
    if not sides:
        return None
    found = None if isinstance(audit, ModelAudit) else audit.representation
    n_compared = len(audit.groups) if isinstance(audit, ModelAudit) else sum(audit.compared)
    return {
        "sides": list(sides),
        "rows": _measures(list(sides.values())),
        "n_rows": "" if found is None else f"{found.n_rows:,}",
        "probes": " and ".join(_PROBES[probe.name] for probe in next(iter(sides.values())).probes),
        "several": n_compared > 2,
    }


def _sides(audit: Audit | ModelAudit) -> dict[str, GivenAway | ModelAudit]:
    """What is known about the scores of each projection, by its name."""
    if isinstance(audit, ModelAudit):
        return {"the model": audit} if audit.probes else {}
    found = audit.representation
    return {} if found is None else {"PCA": found.pca, "fair PCA": found.fair}


def _measures(sides: list[GivenAway | ModelAudit]) -> dict[str, list[str]]:
    """The rows of the table: a value for each projection."""
    known = [side.separation for side in sides]
    rows = {
        "Share of the scores’ variance between the groups": [
            f"{100 * found['centroid_share']:.1f} %" for found in known
        ],
        "AUC of a linear discriminant, by the means and covariances": [
            f"{found['discriminant_auc']:.3f}" for found in known
        ],
    }
    if "rbf_mmd2" in known[0]:
        name = "Kernel distance between the groups’ scores (RBF-MMD²), 0 if they are alike"
        rows[name] = [f"{found['rbf_mmd2']:.3f}" for found in known]
    for probes in zip(*(side.probes for side in sides), strict=True):
        rows[f"AUC of the probe: {_PROBES[probes[0].name]}"] = list(map(auc_range, probes))
    return rows


def made_of_it(audit: Audit | ModelAudit) -> dict[str, Any] | None:
    """The section "What a classifier makes of it": a table for each rate; None without a target."""
    if audit.outcomes is None:
        return None
    labels = dict(zip(audit.groups, display_names(audit.groups), strict=True))
    first, methods = audit.outcomes[0], _methods(audit)
    sampled = isinstance(audit, Audit) and sum(audit.group_sizes) > MOST_ROWS
    few = few_picked(audit.outcomes)
    return {
        "positive": str(first.positive),
        "own": methods["scores"],
        "seen": isinstance(audit, ModelAudit),
        "base_rate": f"{100 * first.base_rate:.1f} %",
        "few": f"{few[0].upper()}{few[1:]}." if few else "",
        "sampled": f"{MOST_ROWS:,}" if sampled else "",
        "groups": [labels[group] for group in first.by_group["auc"]],
        "tables": [
            {
                "name": name,
                "rows": [_rate_row(methods[seen.name], seen, metric) for seen in audit.outcomes],
            }
            for metric, name in _RATES.items()
        ],
    }


def _methods(audit: Audit | ModelAudit) -> dict[str, str]:
    """What a classifier may have seen, as the page calls it."""
    return {"scores": "the model" if isinstance(audit, ModelAudit) else "fair PCA", **_OTHERS}


def _rate_row(method: str, result: Outcomes, metric: str) -> dict[str, Any]:
    """One metric of one classifier: overall, of each group, the gap and the ratio."""
    return {
        "method": method,
        "overall": _signed(result.overall[metric]),
        "values": [_value_and_range(value) for value in result.by_group[metric].values()],
        "gap": _value_and_range(result.difference[metric]),
        "ratio": _value_and_range(result.ratio[metric]) if metric in result.ratio else None,
    }


def probe_marks(audit: Audit | ModelAudit) -> list[dict[str, Any]]:
    """The AUC of each probe, with its interval."""
    return [
        {
            "what": probe.name,
            "method": method,
            "low": probe.low,
            "estimate": probe.auc,
            "high": probe.high,
        }
        for method, side in _sides(audit).items()
        for probe in side.probes
    ]


def gap_marks(audit: Audit | ModelAudit) -> list[dict[str, Any]]:
    """The gaps between the groups' rates, with their intervals."""
    methods = _methods(audit)
    return [
        {
            "what": _RATES[metric],
            "method": methods[result.name],
            "low": result.difference[metric].low,
            "estimate": result.difference[metric].value,
            "high": result.difference[metric].high,
        }
        for metric in _GAPS
        for result in audit.outcomes or ()
        if result.name != "features"
    ]


def beyond_chance(audit: ModelAudit) -> str:
    """A sentence on the rates that differ between groups beyond chance; nothing if none does."""
    own = {found.name: found.difference for found in audit.outcomes or ()}.get("scores", {})
    named = (*_GAPS, "calibration")
    gaps = {_RATES[m].lower(): own[m] for m in named if m in own and own[m].low > 0}
    if not gaps:
        return ""
    listed = "; ".join(f"{rate} {' ('.join(_value_and_range(gap))})" for rate, gap in gaps.items())
    return f" A classifier on the scores treats the groups differently, beyond chance: {listed}."


def _value_and_range(estimate: Estimate) -> tuple[str, str]:
    return _signed(estimate.value), f"{_signed(estimate.low)} to {_signed(estimate.high)}"


def _signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}".replace("-", "−")  # no minus before zero
