"""Metrics on any projection and any data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.data import make_groups
from sklearn.decomposition import PCA, FactorAnalysis, IncrementalPCA, TruncatedSVD

from fairpca import FairPCA
from fairpca.metrics import (
    fairness_measure,
    group_reconstruction_errors,
    reconstruction_disparity,
)


@pytest.mark.parametrize("make", [PCA, IncrementalPCA])
def test_scikit_learns_projections(make, two_groups):
    X, groups = two_groups
    pca = make(n_components=2).fit(X)
    rest = np.sum((X - pca.inverse_transform(pca.transform(X))) ** 2, axis=1)
    expected = {g: rest[groups == g].mean() for g in ("g0", "g1")}
    errors = group_reconstruction_errors(pca, X, groups)
    assert errors == pytest.approx(expected, rel=1e-10)
    spread = abs(expected["g0"] - expected["g1"])
    assert reconstruction_disparity(pca, X, groups) == pytest.approx(spread, rel=1e-9)
    assert fairness_measure(pca, X, groups) == pytest.approx(spread**2, rel=1e-9)


def test_held_out_data_and_more_groups():
    X, groups = make_groups(n=(50, 40, 30, 2), d=4)
    fair = FairPCA(2).fit(X[:60], sensitive_features=np.arange(60) % 3 == 0)
    errors = group_reconstruction_errors(fair, X[60:], groups[60:])
    assert list(errors) == sorted(set(groups[60:]))
    rest = np.sum((X - fair.inverse_transform(fair.transform(X))) ** 2, axis=1)[60:]
    for label, error in errors.items():
        assert error == pytest.approx(rest[groups[60:] == label].mean())
    assert reconstruction_disparity(fair, X[60:], groups[60:]) == pytest.approx(
        max(errors.values()) - min(errors.values())
    )


def test_containers_and_weights(two_groups):
    X, groups = two_groups
    pca = PCA(2).fit(X)
    expected = group_reconstruction_errors(pca, X, groups)
    for form in (sp.csr_array, pd.DataFrame, np.asfortranarray):
        assert group_reconstruction_errors(pca, form(X), groups) == pytest.approx(expected)
    w = np.arange(len(X)) % 3
    twice = np.repeat(np.arange(len(X)), w)
    assert group_reconstruction_errors(pca, X, groups, sample_weight=w) == pytest.approx(
        group_reconstruction_errors(pca, X[twice], groups[twice])
    )


def test_refusals(two_groups):
    X, groups = two_groups
    pca = PCA(2).fit(X)
    with pytest.raises(TypeError, match="no components_ and mean_"):
        group_reconstruction_errors(TruncatedSVD(2).fit(X), X, groups)
    with pytest.raises(ValueError, match="not orthonormal"):
        group_reconstruction_errors(FactorAnalysis(2).fit(X), X, groups)
    with pytest.raises(ValueError, match=r"3 features, but PCA was fitted to 6"):
        group_reconstruction_errors(pca, X[:, :3], groups)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = PCA(2).fit(frame)
    with pytest.raises(ValueError, match="the same names in another order"):
        group_reconstruction_errors(named, frame[list("fedcba")], groups)
    with pytest.raises(ValueError, match="one group only"):
        reconstruction_disparity(pca, X, ["a"] * len(X))
    bad = X.copy()
    bad[5, 1] = np.inf
    with pytest.raises(ValueError, match="infinity in column 1, first in row 5"):
        group_reconstruction_errors(pca, bad, groups)
    with pytest.raises(ValueError, match="total weight zero"):
        group_reconstruction_errors(pca, X, groups, sample_weight=(groups == "g0").astype(float))
