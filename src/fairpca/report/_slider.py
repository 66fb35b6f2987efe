"""The stops of the slider: points of the trade-off path, the fair projection among them.

Stops are told apart by differences that the page can show. Two fits of the same projection differ
by rounding errors, which depend on the machine, so these must not decide how many stops there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._audit.result import Audit
from fairpca._typing import Array
from fairpca.report._refit import fit_of_choice, fits_of_path, options_of, python_of
from fairpca.report._size import unit
from fairpca.report._text import figure, percent, zero_if_rounding

_VISIBLE = 1e-4  # of the way from PCA to the least disparity: the page shows four figures
_NEGLIGIBLE_SHARE = 1e-9  # of the size of errors: rounding


@dataclass(frozen=True)
class Stops:
    """Errors at every stop, from plain PCA to the least disparity.

    Attributes
    ----------
    alpha, disparity, overall : ndarray of shape (n_stops,)
    group_errors : ndarray of shape (n_stops, k)
    start : int
        The stop of the fair projection, or the one nearest to it if that is none.
    unit : float
        The size of errors.
    fits : list of dict
        Parameters of the FairPCA that ends at each stop.
    """

    alpha: Array
    disparity: Array
    overall: Array
    group_errors: Array
    start: int
    unit: float
    fits: list[dict[str, Any]]
    off: bool = False  # whether the fair projection is no stop

    @classmethod
    def of(cls, audit: Audit) -> Stops:
        """The points of the path, and the fair projection where it lies between two of them."""
        path, fair, size = audit.path, audit.fair, unit(audit)
        fits = fits_of_path(audit)
        points = (path.alpha, path.disparity, path.reconstruction_error, path.group_errors)
        distances = np.abs(path.disparity - fair.disparity)
        apart = distances.min() > max(_VISIBLE * np.ptp(path.disparity), _NEGLIGIBLE_SHARE * size)
        i = int(np.searchsorted(-path.disparity, -fair.disparity))
        R = np.append(path.reconstruction_error, np.inf)  # folds may have gone past the last point
        between = i > 0 and R[i - 1] < fair.overall < R[i]
        if not (apart and between and audit.certified):
            nearest = int(distances.argmin())
            errors = np.abs(path.group_errors[nearest] - fair.group_errors)
            return cls(*points, nearest, size, fits, bool(errors.max() > 1e-3 * size))._distinct()
        chosen: tuple[Any, ...] = (audit.alpha, fair.disparity, fair.overall, fair.group_errors)
        alpha, disparity, overall, errors = (
            np.insert(values, i, value, axis=0)
            for values, value in zip(points, chosen, strict=True)
        )
        fits.insert(i, fit_of_choice(audit))
        return cls(alpha, disparity, overall, errors, i, size, fits)._distinct()

    def _distinct(self) -> Stops:
        """Without stops that show the same numbers as the one before; the start always stays."""
        shown = np.column_stack([self.disparity, self.overall])
        least = np.maximum(_VISIBLE * np.ptp(shown, axis=0), _NEGLIGIBLE_SHARE * self.unit)
        kept = [0]
        for i in range(1, len(shown)):
            if (np.abs(shown[i] - shown[kept[-1]]) > least).any():
                kept.append(i)
            elif i == self.start:
                kept[-1] = i
        if len(kept) == 1:
            return self  # they do not differ at all
        at = kept.index(self.start)
        return Stops(
            self.alpha[kept],
            self.disparity[kept],
            self.overall[kept],
            self.group_errors[kept],
            at,
            self.unit,
            [self.fits[i] for i in kept],
            self.off,
        )

    @property
    def cost(self) -> Array:
        """Overall error above that of PCA, as a share."""
        R = self.overall[0]
        return self.overall / R - 1 if R > 0 else np.zeros(len(self.overall))

    @property
    def moves(self) -> bool:
        """Whether the stops differ."""
        return bool(np.ptp(self.disparity) > _NEGLIGIBLE_SHARE * self.unit)

    def to_dict(self) -> dict[str, Any]:
        """The numbers that the page's script reads."""

        def clean(values: Array) -> list[float]:
            return [float(f"{zero_if_rounding(v, self.unit):.9g}") for v in values.tolist()]

        return {
            "unit": self.unit,
            "start": self.start,
            "last": len(self.alpha) - 1,
            "moves": self.moves,
            "off": self.off,
            "beyond": bool(self.disparity[-1] < -_NEGLIGIBLE_SHARE * self.unit),
            "alpha": self.alpha.tolist() if self.group_errors.shape[1] == 2 else None,
            "disparity": clean(self.disparity),
            "overall": clean(self.overall),
            "cost": self.cost.tolist(),
            "group_errors": [clean(errors) for errors in self.group_errors],
            "python": [python_of(fit) for fit in self.fits],
            "options": [options_of(fit) for fit in self.fits],
        }

    def best_for(self, g: int, label: str) -> str:
        """Say where a group is reconstructed best, if that is not where the slider starts."""
        best = int(self.group_errors[:, g].argmin())
        gain = self.group_errors[self.start, g] - self.group_errors[best, g]
        if gain <= 0.05 * self.disparity[0]:
            return ""
        error, disparity = (
            figure(value, unit=self.unit)
            for value in (self.group_errors[best, g], self.disparity[best])
        )
        return (
            f"On the rows fitted to, “{label}” itself is reconstructed best (error {error}) where "
            f"the disparity is {disparity}, at a cost of {percent(float(self.cost[best]))}."
        )
