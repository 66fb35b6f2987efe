"""Overall error against disparity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairpca.path import MarkedPoint, TradeoffPath, tradeoff_path
from fairpca.plotting._common import (
    axes_for,
    escaped,
    fair_projection_in,
    moments_compared,
    style_of,
)


@dataclass
class TradeoffDisplay:
    """The frontier of overall error against disparity: PCA on the left, parity on the right.

    Parameters
    ----------
    path : TradeoffPath
    chosen : (float, float), optional
        Disparity and overall error of a projection to mark.

    Examples
    --------
    >>> TradeoffDisplay.from_data(X, groups, n_components=1)  # doctest: +SKIP
    """

    path: TradeoffPath
    chosen: tuple[float, float] | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_points: int = 41, ax: Any = None) -> Self:
        """Draw the frontier at the rank of a fitted estimator, which may be in a pipeline."""
        fair = fair_projection_in(estimator)
        if fair.small_groups == "ignore" and fair.small_groups_:
            raise ValueError(
                f"the frontier compares all groups, but {fair!r} left out "
                f"{fair.small_groups_}; leave out their rows, or use small_groups='merge'."
            )
        path = tradeoff_path(
            moments_compared(fair),
            n_components=fair.n_components_,
            n_points=n_points,
            normalize=fair.normalize,
            max_groups=fair.max_groups,
        )
        return cls(path, (fair.disparity_, fair.reconstruction_error_)).plot(ax)

    @classmethod
    def from_data(
        cls,
        X: Any,
        sensitive_features: Any,
        *,
        n_components: int,
        n_points: int = 41,
        ax: Any = None,
    ) -> Self:
        """Draw the frontier of the rows of X; arguments as for :func:`fairpca.tradeoff_path`."""
        path = tradeoff_path(X, sensitive_features, n_components=n_components, n_points=n_points)
        return cls(path).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure; the axes stay in ``ax_``."""
        self.ax_ = ax = axes_for(ax)
        path = self.path
        ax.plot(path.disparity, path.reconstruction_error, color="black", label="best possible")
        if len(path.groups) == 2 and not path.efficient.all():
            last = max(int(np.count_nonzero(path.efficient)) - 1, 0)
            beyond = path.disparity[last:], path.reconstruction_error[last:]
            ax.plot(*beyond, color="white")
            ax.plot(*beyond, color="black", linestyle=":", label="levelling down")
        for i, (at, names) in enumerate(_distinct(path.marks).items()):
            label = ", ".join(names)
            ax.plot(*at, style_of(i)[1], color="black", markerfacecolor="white", label=label)
        if self.chosen is not None:
            ax.plot(*self.chosen, "*", markersize=13, color=style_of(1)[0], label="this fit")
        difference = "largest minus smallest group error"
        if len(path.groups) == 2:
            sides = path.harmed_group, path.privileged_group
            difference = "error of {} minus {}".format(*map(escaped, sides))
        ax.set(xlabel=f"disparity: {difference}", ylabel="overall error")
        ax.xaxis.set_inverted(True)
        ax.legend(frameon=False)
        return self


def _distinct(marks: dict[str, MarkedPoint]) -> dict[tuple[float, float], list[str]]:
    """Disparity and overall error of each mark; methods that end at the same point share it."""
    points: dict[tuple[float, float], list[str]] = {}
    for name, mark in marks.items():
        at = mark.disparity, mark.reconstruction_error
        same = (other for other in points if np.allclose(at, other, rtol=1e-6, atol=1e-9))
        points.setdefault(next(same, at), []).append(name)
    return points
