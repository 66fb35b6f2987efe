"""Separation of the groups from moments, against the definitions on rows."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.data import make_groups
from scipy.stats import norm
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from fairpca import BlindPCA, FairPCA, FairPLS, GroupMoments
from fairpca.metrics import group_separation


def test_definitions_on_rows():
    X, groups = make_groups((90, 60, 70), d=6)
    pca = PCA(3).fit(X)
    Z = pca.transform(X)
    found = group_separation(pca, X, groups)
    labels = np.unique(groups)
    parts = [Z[groups == g] for g in labels]
    means = np.array([part.mean(axis=0) for part in parts])
    own = [np.cov(part.T, bias=True) for part in parts]
    p = np.array([len(part) for part in parts]) / len(Z)
    between = p @ np.sum((means - Z.mean(axis=0)) ** 2, axis=1)
    assert found.centroid_share == pytest.approx(between / Z.var(axis=0).sum(), rel=1e-9)
    within = np.tensordot(p, own, axes=1)
    d = means[0] - means[2]
    distance = np.sqrt(d @ np.linalg.solve(within, d))
    assert found.discriminant_auc[2, 0] == pytest.approx(norm.cdf(distance / 2**0.5), rel=1e-9)
    assert (np.diagonal(found.discriminant_auc) == 0.5).all()


def test_auc_of_the_discriminant_of_gaussians():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4)) @ rng.normal(size=(4, 4))
    groups = rng.random(len(X)) < 0.3
    X[groups] += [1.0, 0.5, 0.0, -0.5]
    pca = PCA(2).fit(X)
    linear = LinearDiscriminantAnalysis().fit(pca.transform(X), groups)
    auc = roc_auc_score(groups, linear.decision_function(pca.transform(X)))
    found = group_separation(pca, GroupMoments.from_data(X, groups))
    assert found.discriminant_auc[0, 1] == pytest.approx(auc, abs=0.01)


def test_blind_scores_are_not_told_apart_by_their_means():
    X, groups = make_groups((90, 60), d=6)
    found = group_separation(BlindPCA(2).fit(X, sensitive_features=groups), X, groups)
    assert found.centroid_share == pytest.approx(0, abs=1e-20)
    assert found.discriminant_auc[0, 1] == pytest.approx(0.5)


@pytest.mark.parametrize("numbers", [False, True])
def test_moments_with_outcomes_or_folds_tell_of_groups(numbers):
    X, groups = make_groups((90, 60, 70), d=6)
    y = X[:, 0] if numbers else X[:, 0] > np.median(X[:, 0])
    pls = FairPLS(2, notion="demographic_parity").fit(X, y, sensitive_features=groups)
    folded = GroupMoments.from_data(X, groups, folds=np.arange(len(X)) % 4)
    for moments in (pls.moments_, folded):
        found = group_separation(pls, moments)
        expected = group_separation(pls, X, groups)
        assert found.groups.tolist() == expected.groups.tolist()
        close = {"rel": 1e-7, "abs": 1e-9}
        assert found.centroid_share == pytest.approx(expected.centroid_share, **close)
        assert found.discriminant_auc == pytest.approx(expected.discriminant_auc, **close)


@pytest.mark.parametrize("whiten", [False, True])
def test_moments_of_raw_rows_under_an_estimator_that_standardises(whiten):
    X, groups = make_groups((90, 60, 70), d=6)
    X = X * [1, 10, 100, 1, 1, 3] + 5.0
    fair = FairPCA(2, standardize=True, whiten=whiten).fit(X, sensitive_features=groups)
    found, expected = (
        group_separation(fair, *rows)
        for rows in ((GroupMoments.from_data(X, groups),), (X, groups))
    )
    assert found.centroid_share == pytest.approx(expected.centroid_share)
    assert found.discriminant_auc == pytest.approx(expected.discriminant_auc)


def test_scores_that_do_not_vary_within_groups():
    X = np.random.default_rng(0).normal(size=(40, 3))
    groups = np.repeat(["a", "b", "c", "d"], 10)
    X[:, 0] = np.where(groups == "d", 9.0, 3.0)
    found = group_separation(PCA(3).fit(X), X, groups)
    assert (found.discriminant_auc[3, :3] == 1).all()
    assert (found.discriminant_auc[:3, :3] < 1).all()


def test_refusals():
    X, groups = make_groups((30, 20), d=4)
    pca = PCA(2).fit(X)
    with pytest.raises(TypeError, match=r"group_separation\(estimator, X, groups\)"):
        group_separation(pca, X)
    with pytest.raises(ValueError, match="moments know their groups"):
        group_separation(pca, GroupMoments.from_data(X, groups), groups)
    with pytest.raises(ValueError, match="one group only"):
        group_separation(pca, X, np.zeros(50))
    with pytest.raises(ValueError, match="3 features, but PCA was fitted to 4"):
        group_separation(pca, X[:, :3], groups)
    with pytest.raises(TypeError, match=r"pass the projection itself, for example pipeline\[-1\]"):
        group_separation(make_pipeline(PCA(2)).fit(X), GroupMoments.from_data(X, groups))
