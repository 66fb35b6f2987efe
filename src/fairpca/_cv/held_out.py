"""Errors of rows under projections that were fitted without them, and intervals for new rows.

========  ==================================================================
symbol    meaning
========  ==================================================================
e_fpg     summed squared errors of the rows of group g in fold f under projection p, which was
          fitted to the other folds
w_fg      total weight of these rows
v_fg      their summed squared distances from the mean of the training rows: the error of
          keeping nothing
R_pg      held-out error of group g, ``sum_f e_fpg / sum_f w_fg``
odds      rows left out for each row fitted to: 1/9 for ten folds
========  ==================================================================

Projection 0 is PCA. Nothing deeper than these sums is needed, so it does not matter where they come
from: moments, files, or a pipeline in which every fold has a space of its own.

**Intervals.** A figure is a function h of the sums over folds. Leaving fold f out of the *sums* (no
fit is repeated) shows what the fold contributes, ``c_f = (F - 1) (h - h_without_f)``: the jackknife
form of the delta method, exact for means. Folds share training rows, so the variance s^2
of the c_f is not divided by F. The corrected variance of Nadeau and Bengio (2003) is

    s^2 (1 / F + odds)

and the interval is ``h +- t se`` with F - 1 degrees of freedom; for ratios, on the scale of log h.

**Choices.** Where the projection was chosen by these very sums, its own figures are flattered.
:meth:`HeldOut.choices` makes the choice for each fold again from the other folds' sums, and
:meth:`HeldOut.judged_at` takes the fold's errors from that choice. It costs no fit. That estimate
leans the other way, because the choices differ from the one that all folds make together. So an
interval covers both: from the lower of the two low ends to the higher of the two high ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from fairpca._moments.tolerances import TINY
from fairpca._typing import Array, Codes, Mask

BASELINE = 0  # the index of plain PCA among the projections

#: A group reliably gains if its held-out change is better than zero by more than this many
#: corrected standard errors, each fold judged at the stop that the other folds choose. Of simulated
#: tables without harm, at most 5 % pass, with two, three or six groups (benchmarks/gates).
RELIABLE = 1.2


class Intervals(NamedTuple):
    """An estimate and the two ends of its interval, three arrays of one shape."""

    estimate: Array
    low: Array
    high: Array

    def clipped(self, least: Array | float) -> Intervals:
        """The same interval without impossible values below ``least``."""
        return self._replace(low=np.maximum(self.low, least))

    @property
    def ends(self) -> Array:
        """Both ends, along a new last axis."""
        return np.stack([self.low, self.high], axis=-1)


@dataclass(frozen=True)
class Totals:
    """Sums over folds, and the figures that follow from them."""

    errors: Array  # of shape (n_projections, k)
    weights: Array  # of shape (k,)

    @property
    def group_errors(self) -> Array:
        """``R_pg``, of shape (n_projections, k)."""
        return np.asarray(self.errors / np.maximum(self.weights, TINY))

    @property
    def overall(self) -> Array:
        """The error of all rows together, of shape (n_projections,)."""
        return np.asarray(self.errors.sum(axis=1) / max(float(self.weights.sum()), TINY))

    def largest(self, compared: Mask) -> Array:
        """The largest error of the groups compared, of shape (n_projections,)."""
        return np.asarray(self.group_errors[:, compared].max(axis=1))

    @property
    def changes(self) -> Array:
        """``R_pg - R_0g``: by how much the error is larger than under PCA, (n_projections, k)."""
        return np.asarray(self.group_errors - self.group_errors[BASELINE])


#: A smooth function of the sums; any shape.
Figure = Callable[[Totals], Array]


@dataclass(frozen=True)
class HeldOut:
    """Sums of held-out errors by fold, projection and group; folds of all repeats are stacked.

    Where these sums belong to projections that the other folds choose, ``chosen_together`` holds
    the sums of those that all folds choose together. Intervals then cover both.

    Examples
    --------
    >>> import numpy as np
    >>> errors = np.array([[[4.0, 6.0], [3.0, 7.0]], [[6.0, 8.0], [5.0, 9.0]]])
    >>> held_out = HeldOut(errors, np.full((2, 2), 2.0), np.full((2, 2), 9.0), odds=1.0)
    >>> held_out.totals.group_errors
    array([[2.5, 3.5],
           [2. , 4. ]])
    >>> held_out.interval(lambda totals: totals.changes[1]).estimate
    array([-0.5,  0.5])
    """

    errors: Array  # e_fpg, of shape (n_folds, n_projections, k); projection 0 is PCA
    weights: Array  # w_fg, of shape (n_folds, k)
    variation: Array  # v_fg
    odds: float
    repeats: Codes | None = None  # which repeat of the splitter each fold belongs to
    chosen_together: HeldOut | None = None

    @property
    def totals(self) -> Totals:
        """The sums over all folds."""
        return Totals(self.errors.sum(axis=0), self.weights.sum(axis=0))

    def worst_off(self, compared: Mask) -> int:
        """The group that PCA serves worst: the largest held-out error, of the groups compared.

        This is the definition for the stop, for the gate and for every verdict about a gain.
        """
        errors = self.totals.group_errors[BASELINE]
        return int(np.where(compared, errors, -np.inf).argmax())

    def gain_t(self, compared: Mask, projection: int = 1) -> float:
        """What the worst-off group gains over PCA, in corrected standard errors of this gain.

        A gain above ``RELIABLE`` is reliable where each fold is judged at the stop that the other
        folds choose (:meth:`judged_at`), or where the projection was not chosen by these sums.
        """
        worst = self.worst_off(compared)
        gain = -float(self.totals.changes[projection, worst])
        error = float(self.standard_error(lambda totals: totals.changes[projection, worst]))
        if gain == 0:
            return 0.0
        return gain / error if error > 0 else np.copysign(np.inf, gain)

    def largest_change(self, compared: Mask, projection: int = 1) -> Intervals:
        """The share by which the largest error differs from PCA's, with its interval.

        It can rise although the group that PCA serves worst gains: another may become the worst.
        """

        def ratio(totals: Totals) -> Array:
            largest = np.maximum(totals.largest(compared), TINY)
            return np.asarray(largest[projection] / largest[BASELINE])

        return Intervals(*(end - 1 for end in self.interval(ratio, log=True)))

    def relative(self) -> HeldOut:
        """The same with errors as shares of each group's own variation."""
        together = self.chosen_together and self.chosen_together.relative()
        return replace(self, weights=self.variation, chosen_together=together)

    def projections(self, which: list[int]) -> HeldOut:
        """Some of the projections, in this order; the first one then counts as PCA."""
        together = self.chosen_together and self.chosen_together.projections(which)
        return replace(self, errors=self.errors[:, which], chosen_together=together)

    def choices(self, choose: Callable[[HeldOut], int]) -> Codes:
        """The projection that the other folds of the same repeat choose, for each fold."""
        n_folds = len(self.errors)
        repeats = np.zeros(n_folds) if self.repeats is None else self.repeats
        chosen = []
        for fold, repeat in enumerate(repeats):
            other = (repeats == repeat) & (np.arange(n_folds) != fold)
            sums = self.errors[other], self.weights[other], self.variation[other]
            chosen.append(choose(HeldOut(*sums, self.odds)))
        return np.array(chosen)

    def judged_at(self, chosen: Codes, together: int) -> HeldOut:
        """PCA, and the projection chosen for each fold; ``together`` is the choice of all folds."""
        at = self.errors[np.arange(len(chosen)), chosen]
        errors = np.stack([self.errors[:, BASELINE], at], axis=1)
        return replace(self, errors=errors, chosen_together=self.projections([BASELINE, together]))

    # -- intervals ---------------------------------------------------------------------------------

    def interval(
        self, figure: Figure, *, level: float = 0.95, comparisons: int = 1, log: bool = False
    ) -> Intervals:
        """The interval of a figure; with ``log`` on the log scale, for ratios.

        ``comparisons`` is how many intervals are to hold together at this level (Bonferroni).
        """
        if log:
            ends = self.interval(
                lambda totals: np.log(np.maximum(figure(totals), TINY)),
                level=level,
                comparisons=comparisons,
            )
            with np.errstate(over="ignore"):  # an end may be infinite for a group of one row
                return Intervals(*map(np.exp, ends))
        estimate = np.asarray(figure(self.totals), np.float64)
        quantile = stdtrit(len(self.errors) - 1, 1 - (1 - level) / (2 * comparisons))
        margin = quantile * self.standard_error(figure)
        low = estimate - margin
        high = estimate + margin
        if self.chosen_together is not None:
            _, lower, higher = self.chosen_together.interval(
                figure, level=level, comparisons=comparisons
            )
            low = np.minimum(low, lower)
            high = np.maximum(high, higher)
        return Intervals(estimate, low, high)

    def contributions(self, figure: Figure) -> Array:
        """What each fold contributes to a figure: ``(F - 1) (h - h_without_f)``, folds first."""
        n = len(self.errors)
        without = []
        for fold in range(n):  # added up, not subtracted: a fold may hold nearly all of the weight
            other = np.arange(n) != fold
            totals = Totals(self.errors[other].sum(axis=0), self.weights[other].sum(axis=0))
            without.append(figure(totals))
        return np.asarray((n - 1) * (figure(self.totals) - np.array(without)))

    def standard_error(self, figure: Figure, *, corrected: bool = True) -> Array:
        """The standard error of a figure; uncorrected, it treats the folds as independent."""
        overlap = self.odds / (1 + self.odds)
        if corrected:
            overlap = 1 / len(self.errors) + self.odds
        return np.asarray(spread(self.contributions(figure)) * np.sqrt(overlap))

    def spread_interval(self, projection: int, compared: Mask) -> Intervals:
        """The largest minus the smallest error of the groups compared.

        All differences between two groups get intervals that hold together. The spread, the
        largest of them, lies between the largest lower and the largest upper end.
        """
        first, second = np.triu_indices(int(np.count_nonzero(compared)), 1)

        def differences(totals: Totals) -> Array:
            errors = totals.group_errors[projection, compared]
            return np.asarray(errors[first] - errors[second])

        pairs = self.interval(differences, comparisons=len(first))
        return Intervals(
            np.abs(pairs.estimate).max(),
            np.maximum(np.maximum(pairs.low, -pairs.high).max(), 0.0),
            np.maximum(pairs.high, -pairs.low).max(),
        )


def spread(contributions: Array) -> Array:
    """The standard deviation of what the folds contribute."""
    variance = (contributions**2).sum(axis=0) / max(len(contributions) - 1, 1)
    return np.asarray(np.sqrt(variance))
