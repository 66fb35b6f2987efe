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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairpca._audit.dealt import Dealt, FoldKey, groups_alone, kept_apart
from fairpca._audit.fits import chooses_by_folds
from fairpca._audit.influence import LargestErrors, n_kept
from fairpca._audit.refits import refit_effects
from fairpca._estimators.base import FairProjection
from fairpca._moments.fold_labels import have_folds
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.small_groups import SettledGroups
from fairpca._progress import Progress, silent
from fairpca._typing import Array, Codes, Mask
from fairpca.exceptions import quietly
from fairpca.metrics import row_reconstruction_errors


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
    dealt: Dealt,
    estimators: Sequence[FairProjection],
    standardize: bool,
    compared: Mask | None = None,
    progress: Progress = silent,
) -> dict[FoldKey, FoldFit]:
    """Fit to the moments of all folds but one, for each fold.

    The estimators are refitted in place; one that chooses by cross-validation does so again, by the
    folds that are left. All folds have the same groups ``compared`` (by default all groups),
    although a group that is large enough may be too small in a fold.
    """
    fits = {}
    for i, key in enumerate(dealt.keys):
        progress("cross-validation", i / len(dealt.keys))
        fits[key] = _fit_without(key, dealt, estimators, standardize, compared)
    return fits


def _fit_without(
    key: FoldKey,
    dealt: Dealt,
    estimators: Sequence[FairProjection],
    standardize: bool,
    compared: Mask | None,
) -> FoldFit:
    rest = _merged(dealt.rest(key), estimators)
    return fit_moments(rest, estimators, standardize, compared)


def _merged(
    parts: Mapping[FoldKey, GroupMoments], estimators: Iterable[FairProjection]
) -> GroupMoments:
    """All parts of one repeat, labelled by fold if an estimator chooses by cross-validation."""
    if any(map(chooses_by_folds, estimators)):
        return kept_apart({(0, fold): part for (_, fold), part in parts.items()})
    return reduce(GroupMoments.merge, parts.values())


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
    groups = groups_alone(moments)
    outcomes, codes = None if groups is moments else moments, groups.groups
    present = np.ones(len(codes), bool) if compared is None else compared[codes]
    for estimator in estimators:
        with quietly():
            settled = SettledGroups(groups, present, [], outcomes, by_fold)
            estimator._fit_settled(moments, settled)
    return FoldFit.of(estimators, moments.mean, scale)


def cross_fit(
    X: Any,
    codes: Codes,
    dealt: Dealt,
    estimators: Sequence[FairProjection],
    standardize: bool,
    *,
    whole: FoldFit | None = None,
    sample_weight: Array | None = None,
    compared: Mask | None = None,
    filled_in: Callable[[Codes, int], tuple[Array, Dealt]] | None = None,
    progress: Progress = silent,
) -> HeldOut:
    """Squared error of each row under projections fitted to the other folds.

    X is an array or CSR matrix. ``whole`` holds the projections fitted to all rows; without it they
    are fitted here. A row that is left out several times counts with its mean error, and one that
    never is does not count. ``filled_in`` is for rows with missing values: from the fold of each
    row and the fold left out, it gives X filled in by the other folds, and the moments of that. The
    other parameters are those of :func:`fit_folds`.
    """
    errors, times = np.zeros((len(estimators) + 1, len(codes))), np.zeros(len(codes))
    fits, seen, own = {}, X, dealt
    for i, (repeat, fold) in enumerate(dealt.keys):
        progress("cross-validation", i / len(dealt.keys))
        numbers, key = dealt.numbers[repeat], (repeat, fold)
        if filled_in is not None:
            (seen, own), key = filled_in(numbers, fold), (0, fold)
        fit = _fit_without(key, own, estimators, standardize, compared)
        rows = np.flatnonzero(numbers == fold)
        errors[:, rows] += fit.errors(seen[rows])
        times[rows] += 1
        fits[repeat, fold] = fit
    if whole is None:
        everything = _merged(dealt.of_repeat(0), estimators)
        whole = fit_moments(everything, estimators, standardize, compared)
    judged = np.flatnonzero(times)
    weights = (np.ones(len(codes)) if sample_weight is None else sample_weight)[judged]
    errors, codes = errors[:, judged] * (weights / times[judged]), codes[judged]
    largest = largest_errors(judged, codes, errors, weights, n_kept(len(judged)))
    refits = refit_effects(dealt, fits, whole)
    return HeldOut(errors[:-1], errors[-1], weights, codes, refits, largest)


def largest_errors(
    rows: Codes, codes: Codes, errors: Array, weights: Array, n: int
) -> list[LargestErrors]:
    """The n largest errors of each group for each estimator; the last errors keep nothing."""
    return [LargestErrors(rows, codes, e, weights, errors[-1]).keep(n) for e in errors[:-1]]
