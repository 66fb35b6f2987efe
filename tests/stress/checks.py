"""Checks that every fit passes, whatever it minimises."""

from __future__ import annotations

import warnings

import numpy as np
from stress.oracles import varies

from fairpca.exceptions import (
    DualityGapWarning,
    FewRowsWarning,
    LevellingDownWarning,
    ParityInfeasibleWarning,
)

ROUNDING = 1e-9  # of the largest variance of a group: far more than arithmetic, far less than harm
_OURS = (DualityGapWarning, FewRowsWarning, LevellingDownWarning, ParityInfeasibleWarning)


def fit(estimator, X, groups, **options):
    """Fit; only warnings of ours may be heard, and infeasibility whenever it is the status."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, sensitive_features=groups, **options)
    for heard in caught:
        lost_digits = "rounding of float64" in str(heard.message)
        assert issubclass(heard.category, _OURS) or lost_digits, heard
    kinds = [heard.category for heard in caught]
    infeasible = estimator.status_ == "parity infeasible at this rank"
    warned, budget = ParityInfeasibleWarning in kinds, getattr(estimator, "max_disparity", None)
    missed = 0.0 if budget is None else estimator.disparity_ - budget
    size = 1.0 if estimator.relative_errors else np.square(X - X.mean(axis=0)).sum(1).max()
    if infeasible or missed > 1e-6 * size:  # in between, rounding decides
        assert warned
    elif missed <= 0:
        assert not warned
    estimator.heard_ = kinds
    return estimator


def check_figures(fair, X, groups, moments, within):
    """The projection is one, and the figures about it are those of the rows themselves."""
    r = fair.n_components_
    within("orthonormality", np.abs(fair.components_ @ fair.components_.T - np.eye(r)).max(), 1e-9)
    centred = X - X.mean(axis=0)
    left = centred - centred @ fair.components_.T @ fair.components_
    errors = np.array([np.square(left[groups == g]).sum(1).mean() for g in fair.groups_])
    if fair.relative_errors:
        variances = np.array([np.square(centred[groups == g]).sum(1).mean() for g in fair.groups_])
        errors = np.divide(errors, variances, out=np.zeros(len(errors)), where=varies(variances))
    scale = moments.scale
    within("group errors against rows", np.abs(fair.group_errors_ - errors).max() / scale, 1e-9)
    overall = moments.shares @ fair.group_errors_
    within("overall error", abs(fair.reconstruction_error_ - overall) / scale, 1e-9)
    scores = centred @ fair.components_.T
    covariance = scores.T @ scores / len(X)
    size = np.square(centred).sum(1).mean() or 1.0  # all rows may be alike
    off = covariance - np.diag(np.diag(covariance))
    within("correlation of scores", np.abs(off).max() / size, 1e-9)
    within("order of scores", (np.diff(np.diag(covariance)) / size).max(initial=0.0), 1e-9)


def check_pca(fair, moments, within, compared=slice(None)):
    """The baseline is PCA, and the harmed group the one that PCA treats worst."""
    scale, r = moments.scale, fair.n_components_
    values = np.linalg.eigvalsh(np.tensordot(moments.shares, moments.matrices, 1))
    least = values[: len(values) - r].sum()
    within("error of PCA", abs(fair.pca_reconstruction_error_ - least) / scale, 1e-9)
    own = fair.groups_[compared].tolist()
    errors = dict(zip(own, fair.pca_group_errors_[compared], strict=True))
    # Of groups that are equal to rounding, the order of the labels decides.
    below = max(errors.values()) - errors[fair.harmed_group_]
    above = errors[fair.privileged_group_] - min(errors.values())
    within("harmed or privileged group is another one", max(below, above) / scale, 1e-12)
