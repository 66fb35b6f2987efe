"""Hundreds and thousands of features: what a small basis finds is the answer among all of them.

Few features are turned into many. Nothing is gained by the new directions, except that a component
may point where nothing varies.
"""

from __future__ import annotations

import numpy as np
import pytest
from stress.checks import ROUNDING, fit
from stress.generators import KINDS, any_rank
from stress.oracles import Moments, Relaxation, TwoGroups

from fairpca import FairPCA, MinMaxPCA

pytestmark = pytest.mark.stress

# Features, and rows at the least: a basis of leading eigenvectors, a basis of residuals, the space
# of few rows, and products with the rows themselves.
SIZES = ((310, 1), (650, 1), (5200, 1), (5200, 1001))


def spread_out(rng, kind, k):
    """Rows with many features, and the same rows with few."""
    few, groups = KINDS[kind](rng, k)
    rank = any_rank(rng, few)
    d, n = SIZES[rng.integers(len(SIZES))]
    copies = -(-n // len(few))
    few, groups = np.tile(few, (copies, 1)), np.tile(groups, copies)
    directions = np.linalg.qr(rng.normal(size=(d, few.shape[1])))[0]
    return few @ directions.T, np.hstack([few, np.zeros((len(few), rank))]), groups, rank


@pytest.mark.parametrize("kind", KINDS)
def test_two_groups(kind, rng, within):
    X, few, groups, rank = spread_out(rng, kind, 2)
    increase = 10.0 ** rng.uniform(-6, -1)
    fair = fit(FairPCA(rank, max_error_increase=increase, constraint="parity"), X, groups)
    moments = Moments.of_rows(few, groups)
    oracle = TwoGroups(moments, rank)
    scale = oracle.scale
    least = float(moments.shares @ moments.best(rank, moments.shares))
    within("PCA in a basis", (fair.pca_reconstruction_error_ - least) / scale, ROUNDING)
    R = fair.reconstruction_error_
    within("error budget in a basis", (R - (1 + increase) * least) / scale, ROUNDING)
    disparity = 2.0 * (fair.groups_ == fair.harmed_group_) - 1
    D = float(disparity @ fair.group_errors_)
    if fair.status_ == "error budget spent":
        at_most = (1 + increase) * least
        high = oracle.between(disparity, moments.shares, at_most, 1e-9 * scale)[1]
        within("disparity in a basis", (D - high) / scale, 1e-7)
        within("bound in a basis", (D - fair.duality_gap_ - high) / scale, ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
def test_worst_off(kind, rng, within):
    X, few, groups, rank = spread_out(rng, kind, int(rng.integers(2, 5)))
    fair = fit(MinMaxPCA(rank, criterion="error", center="overall"), X, groups)
    relaxed = Relaxation(Moments.of_rows(few, groups), rank)
    low, high = relaxed.least(relaxed.worst)
    value, gap = fair.group_errors_.max() / relaxed.scale, fair.duality_gap_ / relaxed.scale
    within("worst-off group in a basis, below the relaxation's", low - value, 1e-8)
    within("bound in a basis", value - gap - high, 1e-8)
    if len(fair.groups_) == 2:
        within("worst-off group in a basis, above its best", value - high, 1e-7)
