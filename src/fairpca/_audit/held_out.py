"""Errors of rows under projections that were fitted without them.

The question is what a fitted projection will do to new rows of the same population. In the rows it
was fitted to the answer is flattered: fair PCA has a disparity of exactly zero there, whatever it
is elsewhere, and PCA's errors are too small as well, most of all in the smaller group. Fitting
again in every bootstrap resample does not help, since each fit is fair to its own resample.

So every row gets its error from a projection fitted without it (cross-fitting; standardisation and
mean included), and the difference of the group means of these errors estimates the disparity on new
rows. :mod:`fairpca._audit.intervals` says how well it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairpca._audit.fits import chooses_by_folds
from fairpca._audit.influence import LargestErrors, n_kept
from fairpca._audit.refits import refit_effects
from fairpca._estimators.base import FairProjection
from fairpca._moments.fold_labels import FoldLabel, have_folds
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.small_groups import SettledGroups
from fairpca._progress import Progress, silent
from fairpca._typing import Array, Codes, Mask
from fairpca.exceptions import quietly
from fairpca.metrics import row_reconstruction_errors


def assign_folds(
    codes: Codes, n_folds: int | Codes, rng: np.random.Generator, before: Codes | None = None
) -> Codes:
    """A fold for each row, at random, every group spread as evenly as it can be.

    Groups may have different numbers of folds; ``before`` counts their rows in earlier blocks.
    """
    fold = np.empty(len(codes), np.intp)
    for g in np.unique(codes).tolist():
        members = rng.permutation(np.flatnonzero(codes == g))
        first = 0 if before is None else before[g]
        n_of_group = n_folds if isinstance(n_folds, int) else n_folds[g]
        fold[members] = (first + np.arange(len(members))) % n_of_group
    return fold


@dataclass(frozen=True)
class HeldOut:
    """Errors under projections fitted without the row; rows may be summed up in units.

    Attributes
    ----------
    errors : ndarray of shape (n_estimators, n_units)
        Weighted squared reconstruction errors.
    distances : ndarray of shape (n_units,)
        Weighted squared distances from the mean of the rows fitted to: errors of keeping nothing.
    weights : ndarray of shape (n_units,)
    codes : ndarray of shape (n_units,)
        The group of each unit.
    refits : ndarray of shape (n_estimators, n_folds, k)
        What leaving out each fold does to its rows (:func:`refit_effects`).
    largest : list of LargestErrors
        The rows with the largest errors, for each estimator.
    """

    errors: Array
    distances: Array
    weights: Array
    codes: Codes
    refits: Array
    largest: list[LargestErrors]


@dataclass(frozen=True)
class FoldFit:
    """Projections fitted without the rows of one fold; the last of them keeps nothing."""

    scale: Array | None
    projections: list[SimpleNamespace]

    @classmethod
    def of(cls, estimators: Sequence[FairProjection], mean: Array, scale: Array | None) -> FoldFit:
        """The projections of fitted estimators, which may be fitted again."""
        kept = [SimpleNamespace(components_=e.components_, mean_=e.mean_) for e in estimators]
        nothing = SimpleNamespace(components_=np.empty((0, len(mean))), mean_=mean)
        return cls(scale, [*kept, nothing])

    def errors(self, X: Any) -> Array:
        """Squared errors of rows of the fold, of shape (n_estimators + 1, n_rows)."""
        if self.scale is not None:
            is_sparse: bool = sp.issparse(X)
            X = X @ sp.diags_array(1.0 / self.scale) if is_sparse else X / self.scale
        return np.array([row_reconstruction_errors(fitted, X) for fitted in self.projections])


def fit_folds(
    parts: Sequence[GroupMoments],
    estimators: Sequence[FairProjection],
    standardize: bool,
    compared: Mask | None = None,
    progress: Progress = silent,
) -> list[FoldFit]:
    """Fit to the moments of all folds but one, for each fold.

    ``parts`` are the moments of each fold, with codes for groups. The estimators are refitted in
    place; one that chooses by cross-validation does so again, by the folds that are left. All folds
    have the same groups ``compared`` (by default all groups), although a group that is large enough
    may be too small in a fold.
    """
    fits, parts = [], _kept_apart(parts, estimators)
    for k in range(len(parts)):
        progress("cross-validation", k / len(parts))
        rest = reduce(GroupMoments.merge, [*parts[:k], *parts[k + 1 :]])
        fits.append(fit_moments(rest, estimators, standardize, compared))
    return fits


def _kept_apart(
    parts: Sequence[GroupMoments], estimators: Sequence[FairProjection]
) -> list[GroupMoments]:
    """The moments of folds, labelled by fold if an estimator chooses by cross-validation."""
    if not any(map(chooses_by_folds, estimators)):
        return list(parts)
    return [
        part.relabel({g: FoldLabel(0, k, g) for g in part.groups.tolist()})
        for k, part in enumerate(parts)
    ]


def fit_moments(
    moments: GroupMoments,
    estimators: Sequence[FairProjection],
    standardize: bool,
    compared: Mask | None = None,
) -> FoldFit:
    """Fit the estimators, in place, to the same moments."""
    scale, by_fold = None, None
    if standardize:
        moments, scale = moments.standardize()
    if have_folds(moments.groups.tolist()):
        moments, by_fold = moments.without_folds(), moments
    codes = moments.groups
    present = np.ones(len(codes), bool) if compared is None else compared[codes]
    for estimator in estimators:
        with quietly():
            settled = SettledGroups(moments, present, [], by_fold=by_fold)
            estimator._fit_settled(moments, settled)
    return FoldFit.of(estimators, moments.mean, scale)


def cross_fit(
    X: Any,
    codes: Codes,
    fold: Codes,
    estimators: Sequence[FairProjection],
    standardize: bool,
    *,
    whole: FoldFit | None = None,
    sample_weight: Array | None = None,
    compared: Mask | None = None,
    progress: Progress = silent,
) -> HeldOut:
    """Squared error of each row under projections fitted to the other folds.

    X, an array or CSR matrix, is read once for the moments and once for the errors. ``whole`` holds
    the projections fitted to all rows; without it they are fitted here. The other parameters are
    those of :func:`fit_folds`.
    """
    n_folds = int(fold.max()) + 1
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    parts = [
        GroupMoments.from_data(X[fold == k], codes[fold == k], weights[fold == k])
        for k in range(n_folds)
    ]
    fits = fit_folds(parts, estimators, standardize, compared, progress)
    if whole is None:
        everything = reduce(GroupMoments.merge, _kept_apart(parts, estimators))
        whole = fit_moments(everything, estimators, standardize, compared)
    errors = np.empty((len(estimators) + 1, len(codes)))
    for k, fit in enumerate(fits):
        errors[:, fold == k] = fit.errors(X[fold == k])
    errors *= weights
    refits, numbers = refit_effects(parts, fits, whole), np.arange(len(codes))
    largest = largest_errors(numbers, codes, errors, weights, n_kept(len(codes)))
    return HeldOut(errors[:-1], errors[-1], weights, codes, refits, largest)


def largest_errors(
    rows: Codes, codes: Codes, errors: Array, weights: Array, n: int
) -> list[LargestErrors]:
    """The n largest errors of each group for each estimator; the last errors keep nothing."""
    return [LargestErrors(rows, codes, e, weights, errors[-1]).keep(n) for e in errors[:-1]]
