"""SubsetFairPCA: its front is that of all subsets of PCA's components."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from stress.checks import ROUNDING, check_figures, check_pca, fit
from stress.generators import KINDS, any_rank
from stress.oracles import Moments

from fairpca.baselines import SubsetFairPCA

pytestmark = pytest.mark.stress

RULES = ("balanced", "weighted", "least_error", "fairest")


@pytest.mark.parametrize("kind", KINDS)
def test_front(kind, rng, within):
    X, groups = KINDS[kind](rng, 2)
    rank, rule = any_rank(rng, X), RULES[rng.integers(4)]
    fair = fit(SubsetFairPCA(rank, selection=rule), X, groups)
    moments = Moments.of_rows(X, groups)
    check_figures(fair, X, groups, moments, within)
    check_pca(fair, moments, within)
    scale = moments.scale

    # Where eigenvalues are equal there are many PCAs; only what holds for each can be checked.
    values, vectors = np.linalg.eigh(np.tensordot(moments.shares, moments.matrices, 1))
    if np.diff(values).min() < 1e-6 * scale:
        assert fair.duality_gap_ == 0.0
        return
    points = []
    for subset in combinations(range(len(values)), rank):
        errors = moments.errors(vectors[:, subset].T)
        points.append((moments.shares @ errors / scale, (np.diff(errors)[0] / scale) ** 2))
    points = np.array(points)
    for R, F in zip(fair.front_.errors / scale, fair.front_.fairness / scale**2, strict=True):
        better = (points[:, 0] < R - 1e-7) & (points[:, 1] < F - 1e-7)
        assert not better.any(), "a point of the front is dominated"
        within("front off the subsets", np.abs(points - (R, F)).sum(axis=1).min(), 1e-8)
    front_F = fair.front_.fairness.min() / scale**2
    within("fairest of the front", abs(front_F - points[:, 1].min()), ROUNDING)
    within(
        "least error of the front",
        abs(fair.front_.errors.min() / scale - points[:, 0].min()),
        ROUNDING,
    )
