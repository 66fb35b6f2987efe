"""From 600 features on eigenspaces are searched in a growing basis, and proven at the end."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import BlindPCA, FairPCA, GroupMoments, MinMaxPCA, WelfarePCA
from fairpca.baselines import RobustFairPCA

D, RANK = 640, 3


@pytest.fixture(scope="module")
def hidden():
    """A direction of most variance that no other mixes with, and that the basis starts without."""
    start = np.random.default_rng(0).standard_normal((RANK + 8, D))
    direction = np.random.default_rng(1).normal(size=D)
    direction -= start.T @ np.linalg.lstsq(start.T, direction, rcond=None)[0]
    return direction / np.linalg.norm(direction)


@pytest.fixture(scope="module")
def moments(hidden):
    rng, parts = np.random.default_rng(2), []
    for _ in range(2):
        half = rng.normal(size=(400, D)) * np.append([30.0, 25.0, 10.0], np.full(D - 3, 0.1))
        half -= np.outer(half @ hidden, hidden)
        along = np.outer(np.tile([15.0, -15.0], 400), hidden)
        parts.append(np.repeat(half, 2, axis=0) * np.tile([1.0, 1.0, -1.0, -1.0], 200)[:, None])
        parts[-1] += along
    return GroupMoments.from_data(np.vstack(parts), np.repeat([0, 1], 800))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        FairPCA(RANK),
        FairPCA(RANK, constraint="no_worse"),
        FairPCA(RANK, max_error_increase=0.01),
        MinMaxPCA(RANK),
        WelfarePCA(RANK),
        RobustFairPCA(RANK),
        BlindPCA(RANK),
    ],
    ids=repr,
)
def test_an_eigenvector_that_the_basis_could_miss_is_kept(estimator, moments, hidden):
    estimator.fit(moments)
    assert float(np.sum((estimator.components_ @ hidden) ** 2)) == pytest.approx(1.0)
    assert estimator.duality_gap_ <= 1e-9 * estimator.reconstruction_error_
