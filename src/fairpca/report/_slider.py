"""The stops of the slider: points of the trade-off path, the fair projection among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._audit.result import Audit
from fairpca._typing import Array
from fairpca.report._text import figure, percent, without_dust


def unit(audit: Audit) -> float:
    """The size of errors: that of a projection onto nothing."""
    return float(audit.group_variances.max())


def lossless(audit: Audit) -> bool:
    """Whether there are so many components that nothing is lost."""
    return audit.pca.overall <= 1e-12 * unit(audit)


def certified(audit: Audit) -> bool:
    """Whether the duality gap is FairPCA's: the golden section only searches."""
    return audit.estimator.startswith("FairPCA(") and "golden" not in audit.estimator


@dataclass(frozen=True)
class Frontier:
    """Errors at every stop, from plain PCA to the least disparity.

    Attributes
    ----------
    alpha, disparity, overall : ndarray of shape (n_stops,)
    group_errors : ndarray of shape (n_stops, k)
    start : int
        The stop of the fair projection, or the one nearest to it.
    unit : float
        The size of errors.
    """

    alpha: Array
    disparity: Array
    overall: Array
    group_errors: Array
    start: int
    unit: float

    @classmethod
    def of(cls, audit: Audit) -> Frontier:
        """The path of an audit, and its projection where that lies on the path between points."""
        path, fair = audit.path, audit.fair
        i = int(np.searchsorted(-path.disparity, -fair.disparity))
        stops = (path.alpha, path.disparity, path.reconstruction_error, path.group_errors)
        between = 0 < i < len(path.alpha) and (
            path.reconstruction_error[i - 1] < fair.overall < path.reconstruction_error[i]
        )
        if between and certified(audit):
            here = (audit.alpha, fair.disparity, fair.overall, fair.group_errors)
            alpha, disparity, overall, errors = (
                np.concatenate([stop[:i], np.asarray(value)[None], stop[i:]])
                for stop, value in zip(stops, here, strict=True)
            )
            return cls(alpha, disparity, overall, errors, i, unit(audit))
        nearest = int(abs(path.disparity - fair.disparity).argmin())
        return cls(*stops, nearest, unit(audit))

    @property
    def cost(self) -> Array:
        """Overall error above that of PCA, as a share."""
        R = self.overall[0]
        return self.overall / R - 1 if R > 0 else np.zeros(len(self.overall))

    @property
    def moves(self) -> bool:
        """Whether there is more than one place to be."""
        return bool(np.ptp(self.disparity) > 1e-9 * self.unit)

    def to_dict(self) -> dict[str, Any]:
        """For the page."""

        def clean(values: Array) -> list[float]:
            return [float(f"{without_dust(v, self.unit):.9g}") for v in values.tolist()]

        return {
            "unit": self.unit,
            "start": self.start,
            "last": len(self.alpha) - 1,
            "moves": self.moves,
            "alpha": self.alpha.tolist() if self.group_errors.shape[1] == 2 else None,
            "disparity": clean(self.disparity),
            "overall": clean(self.overall),
            "cost": self.cost.tolist(),
            "group_errors": [clean(errors) for errors in self.group_errors],
        }

    def best_for(self, g: int, label: str) -> str:
        """Where a group itself is reconstructed best, if that is not at the start."""
        best = int(self.group_errors[:, g].argmin())
        gain = self.group_errors[self.start, g] - self.group_errors[best, g]
        if gain <= 0.05 * self.disparity[0]:
            return ""
        error, disparity = (
            figure(value, unit=self.unit)
            for value in (self.group_errors[best, g], self.disparity[best])
        )
        return (
            f"“{label}” itself is reconstructed best (error {error}) where the disparity is "
            f"{disparity}, at a cost of {percent(float(self.cost[best]))}."
        )
