"""What the scores give away, and what a classifier makes of them: tables and marks of the page."""

from __future__ import annotations

from typing import Any

from fairpca._audit.representation import Representation
from fairpca._audit.result import Audit
from fairpca.metrics import Estimate
from fairpca.report._text import display_names

_METHODS = {"scores": "fair PCA", "pca": "PCA", "features": "all features"}
_RATES = {
    "auc": "AUC",
    "accuracy": "Accuracy",
    "selection_rate": "Selection rate",
    "true_positive_rate": "True positive rate",
    "false_positive_rate": "False positive rate",
    "calibration": "Predicted minus observed",
}
_GAPS = ("selection_rate", "true_positive_rate", "false_positive_rate")


def giveaway(audit: Audit) -> dict[str, Any] | None:
    """The section "What the scores give away"; None with very many features."""
    found = audit.representation
    if found is None:
        return None
    return {
        "rows": [*_from_moments(found), *_from_probes(found)],
        "n_rows": f"{found.n_rows:,}",
        "probes": " and ".join(probe.name for probe in found.pca.probes),
    }


def _from_moments(found: Representation) -> list[dict[str, str]]:
    sides = found.pca.separation, found.fair.separation
    share, auc = ([side[name] for side in sides] for name in ("centroid_share", "discriminant_auc"))
    return [
        {
            "name": "Share of the scores’ variance between the groups",
            **dict(zip(("pca", "fair"), (f"{100 * x:.1f} %" for x in share), strict=True)),
        },
        {
            "name": "AUC of a linear discriminant, by the means and covariances",
            **dict(zip(("pca", "fair"), (f"{x:.3f}" for x in auc), strict=True)),
        },
    ]


def _from_probes(found: Representation) -> list[dict[str, str]]:
    return [
        {
            "name": f"AUC of the {before.name} probe",
            **{
                side: f"{probe.auc:.3f} ({probe.low:.3f} to {probe.high:.3f})"
                for side, probe in (("pca", before), ("fair", after))
            },
        }
        for before, after in zip(found.pca.probes, found.fair.probes, strict=True)
    ]


def made_of_it(audit: Audit) -> list[dict[str, Any]] | None:
    """The section "What a classifier makes of it": a table for each rate; None without a target."""
    if audit.outcomes is None:
        return None
    labels = dict(zip(audit.groups, display_names(audit.groups), strict=True))
    return [
        {
            "name": name,
            "groups": [labels[group] for group in audit.outcomes[0].by_group[metric]],
            "rows": [
                {
                    "method": _METHODS[result.name],
                    "values": [_rate_text(value) for value in result.by_group[metric].values()],
                    "gap": _with_interval(result.difference[metric]),
                    "ratio": _with_interval(result.ratio[metric]) if metric in result.ratio else "",
                }
                for result in audit.outcomes
            ],
        }
        for metric, name in _RATES.items()
    ]


def probe_marks(audit: Audit) -> list[dict[str, Any]]:
    """The AUC of each probe, with its interval."""
    assert audit.representation is not None
    return [
        {
            "what": probe.name,
            "method": method,
            "low": probe.low,
            "estimate": probe.auc,
            "high": probe.high,
        }
        for method, side in (
            ("PCA", audit.representation.pca),
            ("fair PCA", audit.representation.fair),
        )
        for probe in side.probes
    ]


def gap_marks(audit: Audit) -> list[dict[str, Any]]:
    """The gaps between the groups' rates, with their intervals."""
    assert audit.outcomes is not None
    return [
        {
            "what": _RATES[metric],
            "method": _METHODS[result.name],
            "low": result.difference[metric].low,
            "estimate": result.difference[metric].value,
            "high": result.difference[metric].high,
        }
        for metric in _GAPS
        for result in audit.outcomes
        if result.name != "features"
    ]


def _rate_text(estimate: Estimate) -> str:
    return f"{estimate.value:.3f}".replace("-", "−")


def _with_interval(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
