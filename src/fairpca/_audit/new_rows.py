"""What can be said about new rows: held-out errors, what changes for each group, and intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from fairpca._audit.dealt import Dealt
from fairpca._audit.figures import Change, Changes, Errors, Influence, RowInfluence
from fairpca._audit.fits import Fits, fit_both, most_folds, rows_for
from fairpca._audit.held_out import FoldFit, HeldOut
from fairpca._audit.influence import Sides, row_influence
from fairpca._audit.intervals import (
    Resampling,
    change_interval,
    disparity_interval,
    group_ratios,
    spread_interval,
)
from fairpca._audit.refits import refit_variance
from fairpca._audit.rows import AuditedRows
from fairpca._estimators.base import FairProjection
from fairpca._progress import Progress
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
        before = self.errors(PCA)
        return Changes(
            [
                _paired_change(shares[codes == g], effects[:, g], each, float(R))
                for g, R in enumerate(before.group_errors)
            ],
            _paired_change(
                group_ratios(differences, self._totals, everyone)[1], overall, how, before.overall
            ),
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


def _paired_change(shares: Array, effects: Array, how: Resampling, before: float) -> Change:
    """The mean change; an error cannot fall by more than all of it."""
    low, high = change_interval(shares, how, float(refit_variance(effects)))
    return Change(float(shares.mean()), max(low, -before), high)


def cross_fitted(
    rows: AuditedRows, fits: Fits, scale: Array | None, dealt: Dealt, progress: Progress
) -> NewRows:
    """Errors under projections fitted without the row."""
    whole = FoldFit.of([fits.pca, fits.fair], fits.pca.mean_, scale)
    estimators = clone(fits.pca), clone(fits.fair)
    held_out = rows.cross_fit(fits.settled, dealt, estimators, whole, progress)
    return NewRows(fits, held_out, fits.fair.normalize)


def can_judge(dealt: Dealt, r: int) -> bool:
    """Whether every fold leaves rows that r components do not reproduce anyway."""
    return dealt.fewest_fitted_to >= rows_for(r)


def held_out_pca(
    estimator: FairProjection,
    rows: AuditedRows,
    standardize: bool,
    n_folds: int,
    random_state: int,
    progress: Progress,
) -> tuple[int, Errors]:
    """Errors of PCA for rows that were not fitted to, and the number of folds."""
    moments, scale = rows.moments.standardize() if standardize else (rows.moments, None)
    fits = fit_both(estimator, moments)
    folds = most_folds(fits.settled, n_folds)
    dealt = rows.deal(fits.settled, folds, random_state, progress) if folds else None
    if dealt is None or not can_judge(dealt, fits.pca.n_components_):
        counts, labels = fits.settled.moments.counts, fits.settled.moments.groups.tolist()
        g = int(np.where(fits.settled.compared, counts, np.inf).argmin())
        raise ValueError(
            f"held-out errors need more rows than these {counts.sum()}, {counts[g]} of them of "
            f"group {labels[g]!r}; merge small groups (--min-group-size and --small-groups), keep "
            "fewer components, or judge by the rows fitted to."
        )
    return folds, cross_fitted(rows, fits, scale, dealt, progress).errors(PCA)
