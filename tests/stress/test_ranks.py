"""More components never hurt, and a fraction asks for the fewest that keep it for every group."""

from __future__ import annotations

import numpy as np
import pytest
from stress.checks import ROUNDING, fit
from stress.generators import KINDS
from stress.oracles import Moments, Relaxation

from fairpca import FairPCA, MinMaxPCA

pytestmark = pytest.mark.stress


@pytest.mark.parametrize("kind", KINDS)
def test_errors_fall_with_the_rank(kind, rng, within):
    """Least errors at parity of two groups, and the least largest error, never rise."""
    X, groups = KINDS[kind](rng, 2)
    scale = Moments.of_rows(X, groups).scale
    ranks = range(1, min(X.shape) + 1)
    worst = [
        fit(MinMaxPCA(r, criterion="error", center="overall"), X, groups).group_errors_.max()
        / scale
        for r in ranks
    ]
    within("largest error that rises with the rank", np.diff(worst).max(initial=0.0), ROUNDING)
    within("error left with all components", worst[-1] if len(X) > X.shape[1] else 0.0, ROUNDING)
    fair = [fit(FairPCA(r, constraint="efficient"), X, groups) for r in ranks]
    worst = [f.group_errors_.max() / scale for f in fair]
    within("largest error that rises with the rank", np.diff(worst).max(initial=0.0), ROUNDING)


@pytest.mark.parametrize("make", [FairPCA, MinMaxPCA])
def test_fractions(make, rng, within):
    """Every group keeps its share, and with fewer components the relaxation says it cannot."""
    kind = list(KINDS)[rng.integers(len(KINDS))]
    X, groups = KINDS[kind](rng, int(rng.integers(2, 5)))
    share = float(rng.uniform(0.05, 0.99))
    fair = fit(make(share, tol=1e-9), X, groups)
    moments = Moments.of_rows(X, groups)
    kept = 1 - moments.errors(fair.components_) / np.where(moments.traces > 0, moments.traces, 1)
    within("share of variance missing", share - kept.min(), ROUNDING)
    if make is MinMaxPCA or fair.n_components_ == 1:
        return
    fewer = fit(make(fair.n_components_ - 1, tol=1e-9), X, groups)
    kept = 1 - moments.errors(fewer.components_) / np.where(moments.traces > 0, moments.traces, 1)
    assert kept.min() < share, "one component fewer would have done"


def test_a_fraction_is_never_less_than_any_projection_needs(rng):
    X, groups = KINDS["gaussian"](rng, int(rng.integers(2, 5)))
    share = float(rng.uniform(0.3, 0.95))
    fair = fit(FairPCA(share), X, groups)
    relative = Moments.of_rows(X, groups).relative()
    relaxed = Relaxation(relative, fair.n_components_)
    assert relaxed.least(relaxed.worst)[0] <= 1 - share + ROUNDING
