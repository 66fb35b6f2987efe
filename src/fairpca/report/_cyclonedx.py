"""An audit as the model card of a CycloneDX bill of materials."""

from __future__ import annotations

from typing import Any

from scipy.stats import norm

import fairpca
from fairpca._audit.model import ModelAudit
from fairpca._audit.result import Audit
from fairpca.report._card import limits
from fairpca.report._changes import change_text, changed_groups
from fairpca.report._methods import method_texts
from fairpca.report._model import model_verdict
from fairpca.report._provenance import Provenance
from fairpca.report._size import unit
from fairpca.report._text import figure, percent, printable
from fairpca.report._words import verdict

_VERSION = "1.6"


def cyclonedx_card(
    audit: Audit | ModelAudit, provenance: Provenance | None = None
) -> dict[str, Any]:
    """A CycloneDX bill of materials with a model card, ready for ``json.dump``.

    One fairness assessment for each group says what the projection does for it, and to it, against
    plain PCA; or, of a fitted model, how it fares beside the others.

    Parameters
    ----------
    audit : Audit or ModelAudit
    provenance : Provenance, optional
        Where the data come from.

    Returns
    -------
    dict

    Examples
    --------
    >>> from fairpca import audit
    >>> from fairpca.datasets import make_two_groups
    >>> from fairpca.report import cyclonedx_card
    >>> made = make_two_groups(random_state=0)
    >>> card = cyclonedx_card(audit(made.data, made.sensitive_features))
    >>> considerations = card["components"][0]["modelCard"]["considerations"]
    >>> [one["groupAtRisk"] for one in considerations["fairnessAssessments"]]
    ['group = majority', 'group = minority']
    """
    origin = provenance or Provenance()
    if isinstance(audit, ModelAudit):
        model, found = audit.model, _fitted_figures(audit, origin)
    else:
        model, found = audit.estimator, _fair_figures(audit, origin)
    card = {"modelParameters": _parameters(model, origin), **found}
    tool = {"type": "application", "name": "fairpca", "version": fairpca.__version__}
    name = f"{model.partition('(')[0]} of {printable(origin.source)}"
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{_VERSION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": _VERSION,
        "version": 1,
        "metadata": {"timestamp": f"{origin.date}T00:00:00Z", "tools": {"components": [tool]}},
        "components": [{"type": "machine-learning-model", "name": name, "modelCard": card}],
    }


def _fair_figures(audit: Audit, origin: Provenance) -> dict[str, Any]:
    groups = range(len(audit.groups))
    cost = f"The overall error is {percent(audit.cost)} above that of PCA with as many components"
    return {
        "quantitativeAnalysis": {"performanceMetrics": _metrics(audit, origin)},
        "considerations": {
            "technicalLimitations": [
                *verdict(audit).notices,
                *audit.about_scores,
                *limits(audit, origin),
            ],
            "performanceTradeoffs": [f"{cost}, on the rows fitted to."],
            "fairnessAssessments": [_assessment(audit, origin, g) for g in groups],
        },
    }


def _fitted_figures(audit: ModelAudit, origin: Provenance) -> dict[str, Any]:
    """Of a model that was judged as it is."""
    names, errors = _slices(audit, origin), audit.errors
    margins = norm.ppf((1 + audit.level) / 2) * audit.standard_errors
    what, said = "average squared error of the model", model_verdict(audit)
    metrics: list[dict[str, Any]] = [
        {
            "type": what,
            "value": _as_text(error),
            "slice": name,
            "confidenceInterval": _interval(error - margin, error + margin),
        }
        for name, error, margin in zip(names, errors.group_errors, margins, strict=True)
    ]
    metrics += [
        {"type": what, "value": _as_text(errors.overall)},
        {
            "type": "disparity of the model",
            "value": _as_text(errors.disparity),
            "confidenceInterval": _interval(*audit.disparity_interval),
        },
    ]
    assessments = [
        {
            "groupAtRisk": name,
            "benefits": "Not known: the model was judged as it is, and compared with no other.",
            "harms": f"Its error is {_as_text(error)}. {said.headline} {said.evidence}",
            "mitigationStrategy": "None is known.",
        }
        for name, error in zip(names, errors.group_errors, strict=True)
    ]
    return {
        "quantitativeAnalysis": {"performanceMetrics": metrics},
        "considerations": {
            "technicalLimitations": [*audit.about_scores, *limits(audit, origin)],
            "fairnessAssessments": assessments,
        },
    }


def _parameters(model: str, origin: Provenance) -> dict[str, Any]:
    return {
        "approach": {"type": "unsupervised"},
        "task": "dimensionality reduction",
        "architectureFamily": "linear projection",
        "modelArchitecture": " ".join(model.split()),
        "datasets": [{"type": "dataset", "name": printable(origin.source)}],
    }


def _metrics(audit: Audit, origin: Provenance) -> list[dict[str, Any]]:
    """Errors of each group and overall, under PCA and under fair PCA, and the disparities."""
    held_out, interval = audit.cross_validation, audit.bootstrap
    what = "share of variance lost" if audit.normalized else "average squared error"
    where = "on the rows fitted to" if held_out is None else "on held-out rows"
    sides = {
        "PCA": audit.pca if held_out is None else held_out.pca,
        "fair PCA": audit.fair if held_out is None else held_out.fair,
    }
    metrics = []
    for side, errors in sides.items():
        of = f"of {side} {where}"
        metrics += [
            {"type": f"{what} {of}", "value": _as_text(error), "slice": name}
            for name, error in zip(_slices(audit, origin), errors.group_errors, strict=True)
        ]
        metrics.append({"type": f"{what} {of}", "value": _as_text(errors.overall)})
        disparity: dict[str, Any] = {
            "type": f"disparity {of}",
            "value": _as_text(errors.disparity),
        }
        if interval is not None:
            ends = interval.pca if side == "PCA" else interval.fair
            disparity["confidenceInterval"] = _interval(*ends)
        metrics.append(disparity)
    return metrics


def _assessment(audit: Audit, origin: Provenance, g: int) -> dict[str, str]:
    """What the projection does for a group and to it, on new rows."""
    changes, held_out, method = audit.changes, audit.cross_validation, method_texts(audit)
    benefits = harms = "Not known: a group has too few rows to leave some out."
    if changes is not None and held_out is not None:
        base, none = float(held_out.pca.group_errors[g]), "None beyond chance, against PCA."
        by = change_text(changes.groups[g], base, unit(audit))
        said = f"Its error on new rows changes by {by} against PCA."
        benefits = said if g in changed_groups(audit, -1) else none
        harms = said if g in changed_groups(audit, 1) else none
    return {
        "groupAtRisk": _slices(audit, origin)[g],
        "benefits": benefits,
        "harms": f"{harms} {_place(audit, g)}".rstrip(),
        "mitigationStrategy": f"{method['aim']} The fit ended with “{audit.status}”.".strip(),
    }


def _place(audit: Audit, g: int) -> str:
    """Whether a group is the worst off, for which it must be compared."""
    held_out = audit.cross_validation
    errors = (audit.fair if held_out is None else held_out.fair).group_errors
    among = [float(error) for error, there in zip(errors, audit.compared, strict=True) if there]
    if not audit.compared[g]:
        return "Too small to be compared with the other groups."
    if errors[g] < max(among):
        return ""
    high, low = (figure(error, 3, unit(audit)) for error in (max(among), min(among)))
    return f"No group has a larger error: {high}; the least is {low}."


def _slices(audit: Audit | ModelAudit, origin: Provenance) -> list[str]:
    name = printable(origin.group_name)
    return [f"{name} = {printable(label)}" for label in audit.groups]


def _interval(low: float, high: float) -> dict[str, str]:
    return {"lowerBound": _as_text(low), "upperBound": _as_text(high)}


def _as_text(value: float) -> str:
    """CycloneDX has its figures as text."""
    return f"{float(value):.6g}"
