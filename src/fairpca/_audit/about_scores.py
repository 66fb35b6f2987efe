"""What scores give away about the group, and what a classifier makes of them, in lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from fairpca.metrics import Estimate, Outcomes, Probe

_SEEN = {"scores": "the scores", "pca": "PCA’s scores", "features": "all features"}
_RATES = {
    "selection_rate": "selection rate",
    "true_positive_rate": "true positive rate",
    "false_positive_rate": "false positive rate",
}

_FEW = 0.5  # of the rows of a class: a classifier that picks fewer has small gaps for this alone


def guess_line(own: Probe, pca: Probe | None = None) -> str:
    """How well a probe guesses the group from the scores, and from PCA's."""
    line = f"group guessed by a {own.name} probe: AUC {auc_range(own)}"
    if pca is None:
        return line
    return f"{line} from the scores, {auc_range(pca)} from PCA’s scores"


def outcomes_lines(found: Sequence[Outcomes]) -> list[str]:
    """What classifiers make of the scores, of PCA's and of all features."""
    few = few_picked(found)
    return [*map(_outcomes_line, found), *([few] if few else [])]


def few_picked(found: Sequence[Outcomes]) -> str:
    """A warning of classifiers that hardly ever pick one of the classes; nothing if none does."""
    few = [_SEEN[one.name] for one in found if _picks_few(one)]
    if not few:
        return ""
    return (
        f"with a threshold of one half, a classifier on {' or '.join(few)} picks one of the "
        "classes for fewer than half as many rows as have it, so gaps between groups look small; "
        'classifier_outcomes takes another classifier, such as one with class_weight="balanced"'
    )


def _picks_few(outcomes: Outcomes) -> bool:
    selected, positive = outcomes.overall["selection_rate"], outcomes.base_rate
    return selected < _FEW * positive or 1 - selected < _FEW * (1 - positive)


def _outcomes_line(outcomes: Outcomes) -> str:
    """How good a classifier is, how many it selects, and how far apart the groups' rates are."""
    gaps = ", ".join(f"{name} {_range(outcomes.difference[rate])}" for rate, name in _RATES.items())
    auc, selected = outcomes.overall["auc"], 100 * outcomes.overall["selection_rate"]
    return (
        f"classifier on {_SEEN[outcomes.name]}: AUC {auc:.3f}; selects {selected:.1f} % where "
        f"{100 * outcomes.base_rate:.1f} % are positive; gaps between groups: {gaps}"
    )


def auc_range(probe: Probe) -> str:
    """The AUC of a probe and its interval."""
    return _range(Estimate(probe.auc, probe.low, probe.high))


def _range(found: Estimate) -> str:
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
