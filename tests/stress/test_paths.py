"""tradeoff_path: every point is the least error at its disparity, from PCA to the fairest."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from stress.checks import ROUNDING
from stress.generators import KINDS, any_rank
from stress.oracles import Moments, Relaxation, TwoGroups

from fairpca import tradeoff_path
from fairpca.exceptions import DualityGapWarning

pytestmark = pytest.mark.stress


def path_of(X, groups, rank):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DualityGapWarning)
        warnings.filterwarnings("ignore", ".*rounding of float64", RuntimeWarning)
        return tradeoff_path(X, groups, n_components=rank, n_points=5)


@pytest.mark.parametrize("kind", KINDS)
def test_two_groups(kind, rng, within):
    X, groups = KINDS[kind](rng, 2)
    rank = any_rank(rng, X)
    path = path_of(X, groups, rank)
    moments = Moments.of_rows(X, groups)
    oracle = TwoGroups(moments, rank)
    disparity = 2.0 * (path.groups == path.harmed_group) - 1
    for D, R in zip(path.disparity, path.reconstruction_error, strict=True):
        low, high = oracle.between(moments.shares, disparity, D, 1e-11 * oracle.scale)
        within("point of a path", (R - high) / oracle.scale, ROUNDING)
        within("point of a path", (low - R) / oracle.scale, ROUNDING)
    within("path that turns back", np.diff(path.disparity).max() / oracle.scale, ROUNDING)
    within("path that gains", -np.diff(path.reconstruction_error).min() / oracle.scale, ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
def test_more_groups(kind, rng, within):
    X, groups = KINDS[kind](rng, int(rng.integers(3, 6)))
    rank = any_rank(rng, X)
    path = path_of(X, groups, rank)
    moments = Moments.of_rows(X, groups)
    relaxed = Relaxation(moments, rank)
    scale = relaxed.scale
    for D, R, gap in zip(
        path.disparity[:-1], path.reconstruction_error[:-1], path.duality_gap[:-1], strict=True
    ):
        low = relaxed.least(relaxed.overall, (relaxed.spread, D + 1e-8 * scale))[0]
        within("point of a path below the relaxation's", low - R / scale, 1e-7)
        high = relaxed.least(relaxed.overall, (relaxed.spread, D))[1]
        within("bound of a path above the relaxation's", (R - gap) / scale - high, 1e-7)
