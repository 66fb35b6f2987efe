"""What the page says in sentences: the verdict, who pays for it, and whether it holds elsewhere."""

from __future__ import annotations

from typing import Any

from fairpca._audit.result import Audit
from fairpca._problems.status import Status
from fairpca.report._text import figure, percent


def verdict(audit: Audit, harmed: str, privileged: str) -> dict[str, str]:
    """What PCA does, what fair PCA changes, and whether the harmed group gains by it."""
    under = f"Under PCA with {_components(audit)}"
    if audit.status == Status.ALREADY_FAIR and audit.pca.disparity <= 1e-9 * audit.pca.overall:
        return {
            "before": f"{under} {all_groups(audit)} groups are reconstructed equally well.",
            "after": "There is nothing for fair PCA to repair.",
            "note": "",
        }
    k = sum(audit.compared)
    before = (
        f"{under} the rows of “{harmed}” are reconstructed "
        f"{_worse(audit, audit.pca.disparity, audit.pca.group_errors)} worse than those of "
        f"“{privileged}”{f', the worst and the best served of {k} groups' if k > 2 else ''}."
    )
    return {
        "before": before,
        "after": _after(audit, harmed),
        "note": _note(audit, harmed, privileged),
    }


def _after(audit: Audit, harmed: str) -> str:
    cost = f"at a cost of {percent(audit.cost)} in overall error"
    remaining = _worse(audit, audit.fair.disparity, audit.fair.group_errors)
    if audit.status == Status.PARITY:
        return f"For these rows, fair PCA removes the difference {cost}."
    if audit.status == Status.CAPPED:
        return (
            f"Fair PCA narrows this to {remaining} {cost}: as far as is possible without making "
            f"any group worse off than “{harmed}” was."
        )
    if audit.status == Status.INFEASIBLE:
        return (
            f"No projection onto {_components(audit)} treats the groups alike; the fairest one "
            f"leaves {remaining}, {cost}."
        )
    return f"Fair PCA leaves {remaining} {cost} ({audit.status})."


def _note(audit: Audit, harmed: str, privileged: str) -> str:
    """Say so where fairness does not help the harmed group but only makes others worse off."""
    g = audit.groups.index(audit.harmed_group)
    before, after = audit.pca.group_errors[g], audit.fair.group_errors[g]
    closed = audit.pca.disparity - audit.fair.disparity
    if closed <= 0 or before - after > 0.05 * closed:
        return ""
    others = f"“{privileged}” is" if sum(audit.compared) == 2 else "the others are"
    if after - before <= 0.05 * closed:
        effect = f"“{harmed}” gains nothing by this"
    else:
        effect = f"“{harmed}” is reconstructed {percent(after / before - 1)} worse than under PCA"
    return f"{effect}: the difference shrinks because {others} reconstructed worse."


def evidence(audit: Audit, unit: float) -> str:
    """What can be said about rows that were not fitted to."""
    if audit.cross_validation is None or audit.bootstrap is None:
        return (
            "A group has too few rows to leave some out, so nothing can be said about rows other "
            "than these."
        )
    held_out, interval = audit.cross_validation, audit.bootstrap

    def measured(name: str, disparity: float, ends: tuple[float, float]) -> str:
        shown, low, high = (figure(value, 3, unit) for value in (disparity, *ends))
        return f"{shown} under {name} ({low} to {high})"

    before, after = (low > 0 or high < 0 for low, high in (interval.pca, interval.fair))
    conclusion = {
        (True, False): "The first is more than chance can explain, the second is not.",
        (True, True): "Both are more than chance can explain.",
        (False, False): "With this many rows, chance can explain both.",
        (False, True): "The second is more than chance can explain, the first is not.",
    }[before, after]
    return (
        "On rows not used for fitting, the disparity is "
        f"{measured('PCA', held_out.pca.disparity, interval.pca)} and "
        f"{measured('fair PCA', held_out.fair.disparity, interval.fair)}; "
        f"{interval.level * 100:.0f} % intervals are in brackets. {conclusion}"
    )


def all_groups(audit: Audit) -> str:
    """The word for all groups: "both" if there are two."""
    return "both" if sum(audit.compared) == 2 else "all"


def small_groups(names: list[str], compared: list[bool]) -> str:
    """A sentence about groups that were too small to compare; empty if there are none."""
    if not names:
        return ""
    listed = ", ".join(f"“{name}”" for name in names)
    if all(compared):
        return f"Merged into “rest” for having too few rows: {listed}."
    return f"Too small to be compared, counted in the overall error only: {listed}."


def _components(audit: Audit) -> str:
    r = audit.n_components
    return f"{r} component{'s' if r > 1 else ''}"


def _worse(audit: Audit, disparity: float, errors: Any) -> str:
    """How much worse the harmed group is, relative to the privileged one: the worst to the best."""
    least = float(errors[audit.groups.index(audit.privileged_group)])
    least = least if sum(audit.compared) == 2 else float(errors[audit.compared].min())
    return percent(disparity / least) if least > 0 else figure(disparity)
