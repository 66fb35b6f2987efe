"""What ``fairpca audit`` compares with its limits, and the line that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DisparityLimits:
    """The largest disparities allowed: as a difference of errors, and as a share of their mean."""

    disparity: float | None = None
    relative_disparity: float | None = None

    @property
    def given(self) -> dict[str, float]:
        """Those that were asked for, by the name of what they limit."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def exceeded_by(self, found: dict[str, Any]) -> bool:
        """Whether a projection is beyond one of the limits."""
        return any(found[name] > limit for name, limit in self.given.items())


def judged(
    n_components: int,
    errors: Any,
    overall: float,
    compared: Any,
    variance: float,
    limits: DisparityLimits,
) -> dict[str, Any]:
    """The figures of one projection: group errors, their disparity, and how large that is."""
    from fairpca.report._text import zero_if_rounding

    errors = [zero_if_rounding(float(error), variance) for error in errors]
    overall = zero_if_rounding(float(overall), variance)
    among = [error for error, is_in in zip(errors, compared, strict=True) if is_in]
    D = max(among) - min(among)
    found = {
        "n_components": n_components,
        "group_errors": errors,
        "reconstruction_error": overall,
        "disparity": D,
        "relative_disparity": D / overall if overall > 0 else 0.0,
    }
    return found | {"exceeded": limits.exceeded_by(found)}


def loses_nothing(found: dict[str, Any], variance: float) -> bool:
    """Whether a projection keeps all there is, so that it says nothing about fairness."""
    import numpy as np

    from fairpca._audit.model import lose_nothing

    return lose_nothing(np.array(found["group_errors"]), variance)


def compared_with_limits(
    found: Sequence[dict[str, Any]],
    limits: DisparityLimits,
    groups: Sequence[Any],
    compared: Sequence[bool],
    variance: float,
    of: str,
) -> str:
    """One line: for each limit the worst figure, and what it is the figure of."""
    said = []
    for name, limit in limits.given.items():
        worst = max(found, key=lambda one: float(one[name]))
        value, errors = worst[name], worst["group_errors"]
        order = sorted((g for g, is_in in enumerate(compared) if is_in), key=errors.__getitem__)
        first, last = (f"{groups[g]!r} {errors[g]:.4g}" for g in (order[-1], order[0]))
        verb = "exceeds" if value > limit else "is within"
        n = worst["n_components"]
        size = f"{n} component{'s' if n > 1 else ''}"
        size += ", which lose nothing" if loses_nothing(worst, variance) else ""
        said.append(
            f"{name.replace('_', ' ')} {value:.4g} {verb} --max-{name.replace('_', '-')} {limit:g} "
            f"({of}, {size}: {first}, {last})"
        )
    return "; ".join(said) + "."
