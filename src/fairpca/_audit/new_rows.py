"""What can be said about new rows: held-out errors, what changes for each group, and intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairpca._audit.fits import Fits
from fairpca._audit.held_out import HeldOut
from fairpca._audit.influence import Sides, row_influence
from fairpca._audit.intervals import (
    Resampling,
    change_interval,
    disparity_interval,
    group_ratios,
    spread_interval,
)
from fairpca._audit.refits import refit_variance
from fairpca._audit.result import Change, Changes, Errors, Influence, RowInfluence
from fairpca._typing import Array, Codes

PCA, FAIR = 0, 1  # the order of the projections in held-out errors


@dataclass(frozen=True)
class NewRows:
    """Held-out errors of PCA and the fair projection, and what they say about new rows.

    Attributes
    ----------
    fits : Fits
    held_out : HeldOut
        Of PCA and the fair projection, in this order.
    relative : bool
        Whether errors are divided by the group's own squared distances from the mean.
    """

    fits: Fits
    held_out: HeldOut
    relative: bool

    @property
    def _totals(self) -> Array:
        """What sums of errors are divided by."""
        return self.held_out.distances if self.relative else self.held_out.weights

    @property
    def _refits(self) -> Array:
        """What leaving out a fold does to the mean errors of its rows, as errors are measured."""
        codes, held_out = self.held_out.codes, self.held_out
        units = np.bincount(codes, self._totals) / np.bincount(codes, held_out.weights)
        return held_out.refits / np.where(units > 0, units, 1.0)

    def errors(self, method: int) -> Errors:
        """Average held-out errors of each group, and their disparity."""
        of_rows = self.held_out.errors[method]
        of_groups = group_ratios(of_rows, self._totals, self.held_out.codes)[0]
        return self.fits.errors(of_groups, float(of_rows.sum() / self._totals.sum()))

    def disparity_interval(self, method: int, how: Resampling) -> tuple[float, float]:
        """Interval of the disparity of one of the projections."""
        codes = self.held_out.codes
        shares = group_ratios(self.held_out.errors[method], self._totals, codes)[1]
        compared = np.flatnonzero(self.fits.settled.compared)
        effects = self._refits[method]
        if len(compared) == 2:
            return self._between(shares, effects, how)
        pairs = effects[:, compared, None] - effects[:, None, compared]
        groups = [shares[codes == g] for g in compared]
        return spread_interval(groups, how, refit_variance(pairs))

    def changes(self, how: Resampling) -> Changes:
        """Fair minus PCA, for the same held-out rows: of groups, overall, and of the disparity."""
        held_out, effects = self.held_out, self._refits[FAIR] - self._refits[PCA]
        differences, codes = held_out.errors[FAIR] - held_out.errors[PCA], held_out.codes
        shares = group_ratios(differences, self._totals, codes)[1]
        n_compared = int(self.fits.settled.compared.sum())
        each = how.for_each_of(n_compared) if n_compared > 2 else how
        weights = np.bincount(codes, self._totals)
        overall = effects @ (weights / weights.sum())
        everyone: Codes = np.zeros(len(codes), np.intp)
        return Changes(
            [
                _paired_change(shares[codes == g], effects[:, g], each)
                for g in range(len(self.fits.settled.compared))
            ],
            _paired_change(group_ratios(differences, self._totals, everyone)[1], overall, how),
            Change(
                float(shares[codes == self.fits.harmed].mean())
                - float(shares[codes == self.fits.privileged].mean()),
                *self._between(shares, effects, how),
            ),
        )

    def influence(self) -> Influence:
        """Which rows the disparity between the harmed and the privileged group hangs on."""
        return Influence(*(self._row_influence(method) for method in (PCA, FAIR)))

    def _row_influence(self, method: int) -> RowInfluence:
        groups, held_out = [self.fits.privileged, self.fits.harmed], self.held_out
        errors, totals = (
            np.bincount(held_out.codes, values)[groups].astype(np.float64)
            for values in (held_out.errors[method], self._totals)
        )
        n_rows = int(self.fits.settled.moments.counts[groups].sum())
        largest = held_out.largest[method]
        own_totals = largest.distances if self.relative else largest.weights
        sides = Sides((groups[0], groups[1]), errors, totals, n_rows)
        return row_influence(largest, own_totals, sides)

    def _between(self, shares: Array, effects: Array, how: Resampling) -> tuple[float, float]:
        """Interval of the difference between the harmed and the privileged group."""
        codes, A, B = self.held_out.codes, self.fits.privileged, self.fits.harmed
        variance = refit_variance(effects[:, B] - effects[:, A])
        return disparity_interval(shares[codes == A], shares[codes == B], how, float(variance))


def _paired_change(shares: Array, effects: Array, how: Resampling) -> Change:
    variance = float(refit_variance(effects))
    return Change(float(shares.mean()), *change_interval(shares, how, variance))
