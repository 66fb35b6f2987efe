"""Errors of rows under projections fitted without them, along the way from PCA towards parity.

========  ==================================================================
symbol    meaning
========  ==================================================================
t         stop: how far the projection is from PCA, 0 to 1
e_fg(t)   summed errors of the rows of group g in fold f, fitted to the other folds
w_fg      their weight or, for errors relative to variance, their squared distances
R_g(t)    held-out error of group g, ``sum_f e_fg / sum_f w_fg``
========  ==================================================================

A *change* is ``R_g(t) - R_g(0)``, against PCA fitted to the same rows. It is paired: what is
special about a row mostly cancels. The variance s^2 of a figure between folds gives two standard
errors of it, with ``odds`` the ratio of rows left out to rows fitted to (1/9 for ten folds) and F
folds in all: the usual one, ``s^2 odds / (1 + odds)``, as if folds were independent; and the
corrected one of Nadeau and Bengio (2003), ``s^2 (1/F + odds)``, because the rows fitted to overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import stdtrit
from scipy.stats import studentized_range

from fairpca._moments.folds import Folds, FoldStack
from fairpca._moments.operand import TINY
from fairpca._problems.solution import disparity
from fairpca._solvers.walk import Walk
from fairpca._threads import computed_once, share_out
from fairpca._typing import Array

INTERVAL_LEVEL = 0.95


@cache
def spread_quantile(level: float, n_groups: int, degrees: float) -> float:
    """How many standard errors hold all differences between groups at once (Tukey and Kramer).

    Of two groups it is the quantile of t, with infinitely many degrees of freedom the normal one.

    Examples
    --------
    >>> [round(spread_quantile(0.95, k, float("inf")), 2) for k in (2, 4, 16)]
    [1.96, 2.57, 3.43]
    """
    if n_groups <= 2:
        return float(stdtrit(degrees, 0.5 + level / 2))
    return float(studentized_range.ppf(level, n_groups, degrees) / np.sqrt(2))


class CrossFit:
    """The held-out errors at stops, computed where they are asked for.

    Parameters
    ----------
    folds : Folds
    walk : Walk
    rank : int
    normalize : bool
        Whether errors are shares of the variance.
    """

    def __init__(self, folds: Folds, walk: Walk, rank: int, normalize: bool) -> None:
        self._folds, self.walk, self._rank, self._normalize = folds, walk, rank, normalize
        self._sums: dict[float, Array] = {}
        self._totals: Array
        self.n_eigensolves = 0

    def at(self, stops: Iterable[float]) -> HeldOutErrors:
        """Held-out errors at PCA, at these stops, and at those asked for before."""
        new = sorted({0.0, *map(float, stops)} - self._sums.keys())
        if new:
            measured, self._totals = self._measure(new)
            self._sums |= {stop: measured[:, i] for i, stop in enumerate(new)}
        known = sorted(self._sums)
        sums = np.stack([self._sums[stop] for stop in known], axis=1)
        return HeldOutErrors(np.array(known), sums, self._totals, self._folds.odds, self.walk)

    def _measure(self, stops: Sequence[float]) -> tuple[Array, Array]:
        """Summed errors of the rows left out, of shape (n_folds, n_stops, k), and their totals."""

        def measure(folds: FoldStack) -> tuple[Array, Array, int]:
            fitted_to = folds.relative() if self._normalize else folds
            bases, n_eigensolves = self.walk.bases(fitted_to, self._rank, stops)
            totals = folds.distances if self._normalize else folds.weights
            return folds.errors(bases), totals, n_eigensolves

        found = share_out(measure, self._folds, self._folds.n_threads)
        errors, totals, counts = zip(*found, strict=True)
        self.n_eigensolves += sum(counts)
        return np.concatenate(errors), np.concatenate(totals)


@dataclass(frozen=True)
class HeldOutErrors:
    """Errors of rows left out, at several stops, the first of which is PCA.

    Attributes
    ----------
    stops : ndarray of shape (n_stops,)
    sums : ndarray of shape (n_folds, n_stops, k)
        ``e_fg(t)``.
    totals : ndarray of shape (n_folds, k)
        ``w_fg``.
    odds : float
    walk : Walk
    """

    stops: Array
    sums: Array
    totals: Array
    odds: float
    walk: Walk

    @computed_once
    def group_errors(self) -> Array:
        """``R_g(t)``, of shape (n_stops, k)."""
        return np.asarray(self.sums.sum(axis=0) / np.maximum(self.totals.sum(axis=0), TINY))

    @property
    def changes(self) -> Array:
        """``R_g(t) - R_g(0)``, of shape (n_stops, k)."""
        return np.asarray(self.group_errors - self.group_errors[0])

    @property
    def overall(self) -> Array:
        """The error over all groups, of shape (n_stops,)."""
        return np.asarray(self.group_errors @ self.walk.shares)

    @property
    def disparity(self) -> Array:
        """Between the groups compared, of shape (n_stops,)."""
        pca = self.walk.pca
        D = disparity(self.group_errors, self.walk.compared, pca.harmed, pca.privileged)
        return np.asarray(D)

    @computed_once
    def _departures(self) -> Array:
        """How far each fold is from the held-out errors, of shape (n_folds, n_stops, k).

        Its share in the sums, not its own error: a fold counts by its size.
        """
        departures = self.sums - self.group_errors * self.totals[:, None, :]
        return np.asarray(departures / np.maximum(self.totals.mean(axis=0), TINY))

    @property
    def _changing(self) -> Array:
        """The same for the changes."""
        return np.asarray(self._departures - self._departures[:, :1])

    @property
    def standard_errors(self) -> Array:
        """Of the changes, as if the folds were independent; of shape (n_stops, k)."""
        return np.sqrt(self._variances(self._changing) * self.odds / (1 + self.odds))

    @property
    def corrected_errors(self) -> Array:
        """Standard errors of the changes that allow for the overlap; of shape (n_stops, k)."""
        return self._corrected(self._changing)

    def changes_margin(self, level: float) -> Array:
        """Half the width of intervals for the changes; of shape (n_stops, k)."""
        return self._margin(self._changing, level)

    def errors_margin(self, level: float) -> Array:
        """Half the width of intervals for the group errors; of shape (n_stops, k)."""
        return self._margin(self._departures, level)

    def overall_margin(self, level: float) -> Array:
        """Half the width of intervals for the overall error; of shape (n_stops,)."""
        return self._margin(self._departures @ self.walk.shares, level)

    def disparity_margin(self, level: float) -> Array:
        """Half the width of intervals for the disparity; of shape (n_stops,).

        Of more than two groups, for the difference between the two that are furthest apart, and
        wide enough for the choice of these two.
        """
        members = np.flatnonzero(self.walk.compared)
        errors = self.group_errors[:, members]
        highest, lowest = members[errors.argmax(axis=1)], members[errors.argmin(axis=1)]
        at = np.arange(len(self.stops))
        between = self._departures[:, at, highest] - self._departures[:, at, lowest]
        quantile = spread_quantile(level, len(members), len(self.sums) - 1)
        return np.asarray(quantile * self._corrected(between))

    def _variances(self, departures: Array) -> Array:
        """``s^2``."""
        return np.asarray((departures**2).sum(axis=0) / (len(self.sums) - 1))

    def _corrected(self, departures: Array) -> Array:
        return np.sqrt(self._variances(departures) * (1 / len(self.sums) + self.odds))

    def _margin(self, departures: Array, level: float) -> Array:
        quantile = stdtrit(len(self.sums) - 1, 0.5 + level / 2)
        return np.asarray(quantile * self._corrected(departures))

    def published(self, stop: int) -> dict[str, Any]:
        """Fitted attributes of an estimator that ends at this stop."""
        D, level = float(self.disparity[stop]), INTERVAL_LEVEL
        wide = float(self.disparity_margin(level)[stop])
        changes, margins = self.changes[stop], self.changes_margin(level)[stop]
        least = np.maximum(changes - margins, -self.group_errors[0])  # all of the error
        return {
            "stop_": float(self.stops[stop]),
            "held_out_group_errors_": self.group_errors[stop],
            "held_out_pca_group_errors_": self.group_errors[0],
            "held_out_reconstruction_error_": float(self.overall[stop]),
            "held_out_disparity_": D,
            "held_out_disparity_interval_": np.array([D - wide, D + wide]),
            "held_out_changes_": changes,
            "held_out_changes_interval_": np.stack([least, changes + margins], axis=1),
        }
