"""Blocks in any order, merged in any order, give the moments of all rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from stress.estimators import EVERY, FOR_TWO_GROUPS
from stress.generators import KINDS, any_kind

from fairpca import GroupMoments
from fairpca.exceptions import quietly

pytestmark = [
    pytest.mark.stress,
    pytest.mark.filterwarnings("ignore:.*rounding of float64:RuntimeWarning"),
]


def blocks_of(rng, X, groups):
    """Consecutive rows, a random number of them, in random order; some blocks have one row."""
    n = len(X)
    cuts = np.sort(rng.choice(np.arange(1, n), size=int(rng.integers(0, min(n, 9))), replace=False))
    blocks = list(zip(np.split(X, cuts), np.split(groups, cuts), strict=True))
    return [blocks[i] for i in rng.permutation(len(blocks))]


def check_moments(moments, X, groups, within):
    """Against sums with the rows centred first; offsets cost no digits."""
    X = X.astype(np.longdouble)
    centred = X - X.mean(axis=0)
    scale = np.square(centred).sum(axis=1).mean() or 1.0
    for g, C in zip(moments.groups.tolist(), moments.second_moments(), strict=True):
        part = centred[groups == g]
        off = np.abs(C - part.T @ part / len(part)).max()
        within("streamed moments", off / max(scale, np.square(part).sum(1).mean()), 1e-10)
    size = np.abs(X).max() or 1.0
    within("streamed means", np.abs(moments.mean - X.mean(axis=0)).max() / size, 1e-13)
    assert moments.counts.tolist() == np.bincount(groups).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_updates_and_merges(kind, rng, within):
    X, groups = KINDS[kind](rng, int(rng.integers(2, 6)))
    X = X + rng.choice([0.0, 1e3]) * np.abs(X).max()
    order = rng.permutation(len(X))
    parts = []
    for block, labels in blocks_of(rng, X[order], groups[order]):
        if parts and rng.integers(2):
            parts[rng.integers(len(parts))].update(block, labels)
        else:
            parts.append(GroupMoments.from_data(block, labels))
    while len(parts) > 1:
        part = parts.pop(int(rng.integers(len(parts))))
        i = int(rng.integers(len(parts)))
        parts[i] = parts[i].merge(part)
    check_moments(parts[0], X, groups, within)


@pytest.mark.parametrize("name", EVERY)
def test_partial_fit(name, rng, within):
    X, groups = any_kind(rng, 2 if name in FOR_TWO_GROUPS else None)
    order = rng.permutation(len(X))
    streamed = clone(EVERY[name]).set_params(n_components=1)
    with quietly():
        for block, labels in blocks_of(rng, X[order], groups[order]):
            streamed.partial_fit(block, sensitive_features=labels)
        whole = clone(streamed).fit(X, sensitive_features=groups)
        off = abs(streamed.pca_reconstruction_error_ - whole.pca_reconstruction_error_)
    scale = 1.0 if whole.relative_errors else np.square(X - X.mean(axis=0)).sum(axis=1).mean()
    within("PCA of streamed rows", off / scale, 1e-10)
    check_moments(streamed.moments_, X, groups, within)
    again = clone(streamed)
    with quietly():
        again.fit(streamed.moments_)
    np.testing.assert_array_equal(again.components_, streamed.components_)
