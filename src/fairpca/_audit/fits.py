"""PCA and a fair projection, fitted to the same moments, and what is compared between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from fairpca._audit.figures import Errors
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.small_groups import SettledGroups
from fairpca._problems.solution import disparity
from fairpca._typing import Array
from fairpca.exceptions import quietly
from fairpca.metrics.projection import projection_of, seen_by_projection

FEWEST_FOLDS = 3  # to leave out one and to choose by the others


@dataclass(frozen=True)
class Fits:
    """PCA and the fair projection of the same moments, and the groups that they are compared for.

    ``privileged`` and ``harmed`` are the groups that PCA treats best and worst.
    """

    settled: SettledGroups
    pca: FairProjection
    fair: FairProjection
    privileged: int
    harmed: int

    @property
    def signs(self) -> Array:
        """What to multiply PCA's components by, so that they point the same way as the fair."""
        return agreeing_signs(self.pca.components_, self.fair.components_)

    @property
    def divisors(self) -> Array:
        """What group errors are divided by: the group's variance where errors are relative."""
        variances = self.settled.operand.traces
        return np.where(self.fair.normalize & (variances > 0), variances, 1.0)

    def errors(self, group_errors: Array, overall: float) -> Errors:
        """Group errors with their disparity."""
        D = disparity(group_errors, self.settled.compared, self.harmed, self.privileged)
        return Errors(group_errors, float(overall), float(D))

    def feature_errors(self, fitted: FairProjection) -> Array:
        """``diag((I - P) C_g (I - P))`` for the projection P."""
        U, operand = fitted.components_, self.settled.operand
        C_U = operand.products(U.T)
        once = np.einsum("kjr,rj->kj", C_U, U)
        twice = np.einsum("rj,krs,sj->kj", U, U @ C_U, U)
        errors = np.maximum(operand.diagonals - 2 * once + twice, 0.0)
        return np.asarray(errors / self.divisors[:, None])


def fit_fair(
    estimator: FairProjection, moments: GroupMoments, by_fold: GroupMoments | None = None
) -> tuple[FairProjection, SettledGroups]:
    """Fit a clone.

    ``by_fold`` are the moments of the settled groups in each fold, for an estimator that chooses
    by cross-validation (:func:`chooses_by_folds`).
    """
    fair = clone(estimator)
    settled = settle(fair, moments)
    if by_fold is not None:
        settled = replace(settled, by_fold=by_fold)
    return fair._fit_settled(moments, settled), settled


def fit_both(
    estimator: FairProjection, moments: GroupMoments, by_fold: GroupMoments | None = None
) -> Fits:
    """Fit the fair projection, and PCA with as many components; see :func:`fit_fair`.

    Without warnings: an audit says how the fit ended, and who pays for it.
    """
    with quietly():
        fair, settled = fit_fair(estimator, moments, by_fold)
    r = fair.n_components_
    fair.set_params(n_components=r)
    pca = FairPCA(r, alpha=1.0, **small_group_parameters(fair))._fit_settled(moments, settled)
    if fair.group_errors_.sum() == 0 and not settled.operand.traces.any():
        raise ValueError(
            "no column of X varies, so there is nothing to reconstruct; pass at least one column "
            "that varies."
        )
    labels = settled.moments.groups.tolist()
    sides = labels.index(fair.privileged_group_), labels.index(fair.harmed_group_)
    return Fits(settled, pca, fair, *sides)


def settle(estimator: FairProjection, moments: GroupMoments) -> SettledGroups:
    """The groups as the estimator sees them, without folds."""
    if isinstance(getattr(estimator, "cv", None), Iterator):
        raise ValueError(
            "cv can be read only once, but an audit fits several times; pass a list: "
            "cv=list(splitter.split(X, groups))."
        )
    if chooses_by_folds(estimator):
        estimator = clone(estimator).set_params(cv=None)
    return estimator._settle(moments)


def chooses_by_folds(estimator: FairProjection) -> bool:
    """Whether the estimator decides where to stop by cross-validation."""
    return getattr(estimator, "cv", None) is not None


def recommended(
    estimator: FairProjection | None,
    moments: GroupMoments,
    n_folds: int,
    *,
    standardize: bool = True,
) -> FairProjection:
    """The estimator, or without one ``FairPCA(0.7)``; where to stop is chosen by cross-validation.

    Only of an estimator that leaves this open, and where there are three folds and enough rows.
    """
    if not isinstance(estimator, FairProjection | None):
        raise _not_audited(estimator)
    model: FairProjection = clone(FairPCA(n_components=0.7) if estimator is None else estimator)
    open_end = isinstance(model, FairPCA) and model.alpha is None and model.solver == "exact"
    if not open_end or chooses_by_folds(model):
        return model
    settled = settle(model, moments)
    folds, n = most_folds(settled, n_folds), settled.moments.counts
    if folds < FEWEST_FOLDS:
        return model
    fitted_to = int((n - -(-n // folds)).sum())
    if fitted_to < rows_for(moments.n_features):  # it depends on how many components there are
        moments = moments.standardize()[0] if standardize else moments
        pca = FairPCA(model.n_components, alpha=1.0, **small_group_parameters(model))
        with quietly():
            ranks = [fit_fair(m, moments)[0].n_components_ for m in (model, pca)]
        if fitted_to < rows_for(max(ranks)):
            return model
    model.set_params(cv=folds)
    return model


def _not_audited(given: Any) -> TypeError:
    """The error for what is neither an estimator of fairpca nor a fitted linear projection."""
    if not hasattr(given, "fit"):
        return TypeError(
            "audit compares PCA with an estimator of fairpca, or judges a fitted projection, got "
            f"{type(given).__name__}; pass FairPCA(r), for example."
        )
    try:
        projection_of(seen_by_projection(given, None)[0])
    except TypeError as error:
        return error
    raise AssertionError("a linear projection would have been judged")


def most_folds(settled: SettledGroups, n_folds: int) -> int:
    """As many folds as asked for and as the smallest group allows; 0 when that is not enough."""
    folds = int(min(n_folds, *settled.moments.counts[settled.compared]))
    return folds if folds >= 2 else 0


def rows_for(r: int) -> int:
    """How many rows it takes for r components not to reproduce all of them."""
    return r + 2


def small_group_parameters(estimator: FairProjection) -> dict[str, Any]:
    """What the estimator does with small groups, as parameters."""
    return {"min_group_size": estimator.min_group_size, "small_groups": estimator.small_groups}


def agreeing_signs(components: Array, reference: Array) -> Array:
    """What to multiply each component by, so that it points the same way as its counterpart."""
    return np.where(np.einsum("ij,ij->i", components, reference) < 0, -1.0, 1.0)
