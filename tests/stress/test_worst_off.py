"""MinMaxPCA: no projection serves the worst-off group better than the gap says."""

from __future__ import annotations

import numpy as np
import pytest
from stress.checks import ROUNDING, check_figures, check_pca, fit
from stress.generators import KINDS, any_rank
from stress.oracles import Moments, Relaxation

from fairpca import MinMaxPCA
from fairpca.exceptions import DualityGapWarning

pytestmark = pytest.mark.stress

CRITERIA = ("loss", "error", "variance")


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("kind", KINDS)
def test_worst_off(kind, criterion, rng, within):
    k = int(rng.choice([2, 2, 2, 3, 4, 5, 8]))
    X, groups = KINDS[kind](rng, k)
    rank, relative_errors = any_rank(rng, X), bool(rng.integers(4) == 0)
    several_rows = np.bincount(groups).min() > 1  # one row does not vary about itself
    center = ("overall", "group")[rng.integers(2)] if several_rows else "overall"
    estimator = MinMaxPCA(rank, criterion=criterion, relative_errors=relative_errors, center=center)
    fair = fit(estimator, X, groups)

    about_all, moments = Moments.of_rows(X, groups), Moments.of_rows(X, groups, center)
    if relative_errors:
        about_all, moments = about_all.relative(), moments.relative()
    check_figures(fair, X, groups, about_all, within)
    check_pca(fair, about_all, within)
    own = np.array([moments.best(rank, unit)[g] for g, unit in enumerate(np.eye(k))])
    offsets = {"loss": own, "error": np.zeros(k), "variance": moments.traces}[criterion]
    errors = moments.errors(fair.components_)
    if criterion == "loss":
        losses = np.abs(fair.group_losses_ - np.maximum(errors - own, 0.0)).max()
        within("losses against errors", losses / moments.scale, ROUNDING)
    relaxed = Relaxation(moments, rank, offsets)
    low, high = relaxed.least(relaxed.worst)
    value, gap = (errors - offsets).max() / relaxed.scale, fair.duality_gap_ / relaxed.scale
    within("worst-off group below the relaxation's", low - value, 1e-8)
    within("bound above the relaxation's", value - gap - high, 1e-8)
    if k == 2:
        within("worst-off of two groups above its best", value - high, 1e-8)
        within("gap", gap, ROUNDING)
    elif gap > 1.001 * fair.tol:
        assert DualityGapWarning in fair.heard_
