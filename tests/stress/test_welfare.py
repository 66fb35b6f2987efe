"""WelfarePCA: welfare is concave, so its slope at the answer bounds every other projection's."""

from __future__ import annotations

import numpy as np
import pytest
from stress.checks import check_figures, check_pca, fit
from stress.generators import KINDS, any_rank
from stress.oracles import Moments

from fairpca import WelfarePCA
from fairpca.exceptions import DualityGapWarning

pytestmark = pytest.mark.stress


def power_mean(V, a):
    if a == 1:
        return float(np.exp(np.log(V).mean()))
    unit = V.max()
    return float(unit * np.mean((V / unit) ** (1 - a)) ** (1 / (1 - a)))


@pytest.mark.parametrize("kind", KINDS)
def test_welfare(kind, rng, within):
    X, groups = KINDS[kind](rng, int(rng.choice([2, 2, 3, 4])))
    rank, a = any_rank(rng, X), float(rng.choice([0.0, 0.5, 1.0, 2.0, 5.0]))
    moments = Moments.of_rows(X, groups)
    fair = fit(WelfarePCA(rank, inequality_aversion=a), X, groups)
    check_figures(fair, X, groups, moments, within)
    check_pca(fair, moments, within)
    scale = moments.scale
    V = moments.traces - moments.errors(fair.components_)
    if V.min() < 1e-6 * scale:
        return  # a group keeps next to nothing, whatever is done: its slope is next to infinite
    welfare = power_mean(V, a)
    within("welfare of the projection", abs(fair.welfare_ - welfare) / scale, 1e-9)
    slope = (V / welfare) ** -a / len(V)
    best = moments.traces - moments.best(rank, slope)
    proven = float(slope @ (best - V)) / scale
    if len(V) == 2:
        within("welfare of two groups below its best", proven, 1e-7)
        within("gap of welfare", fair.duality_gap_ / scale, 1e-7)
    elif fair.duality_gap_ > fair.tol * scale:
        assert DualityGapWarning in fair.heard_ or "not proven" in fair.status_
    for weights in (moments.shares, *np.eye(len(V)), *rng.dirichlet(np.ones(len(V)), 10)):
        other = np.maximum(moments.traces - moments.best(rank, weights), 0.0)
        if other.min() > 0:
            more = power_mean(other, a) - welfare - fair.duality_gap_
            within("welfare beyond its bound", more / scale, 1e-9)
