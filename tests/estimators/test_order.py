"""order="fair": the same span, in an order in which the first components are fair too."""

from __future__ import annotations

import os

import numpy as np
import pytest
from helpers.data import make_groups
from helpers.inside import products_only
from sklearn.base import clone

from fairpca import FairPCA, FairPCACV, MinMaxPCA, load_model
from fairpca.datasets import load_checkup, load_lsac, load_rand_health, load_tcred
from fairpca.exceptions import quietly
from fairpca.metrics import group_reconstruction_errors

EVERY = {
    "fair": FairPCA(4),
    "relative": FairPCA(4, relative_errors=True),
    "standardized": FairPCA(4, standardize=True),
    "by folds": FairPCACV(4, cv=5),
    "loss": MinMaxPCA(4),
    "about the overall mean": MinMaxPCA(4, center="overall"),
    "largest error": MinMaxPCA(4, criterion="error", center="overall"),
    "least variance": MinMaxPCA(4, criterion="variance"),
}
PAPER_DATA = pytest.mark.skipif(
    not os.environ.get("FAIRPCA_DATA"), reason="needs the paper's data files"
)
TWO = (90, 60)
FOUR = (90, 60, 70, 50)


def both_orders(estimator, X, groups):
    fair = clone(estimator).set_params(order="fair")
    with quietly():
        return (fit.fit(X, sensitive_features=groups) for fit in (clone(estimator), fair))


@pytest.mark.parametrize("sizes", [TWO, FOUR])
@pytest.mark.parametrize("name", EVERY)
def test_the_span_and_its_figures_stay(name, sizes):
    X, groups = make_groups(sizes, d=7)
    usual, fair = both_orders(EVERY[name], X, groups)
    U, V = usual.components_, fair.components_
    np.testing.assert_allclose(V @ V.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(V.T @ V, U.T @ U, atol=1e-12)
    np.testing.assert_allclose(fair.group_errors_, usual.group_errors_, rtol=1e-12)
    assert fair.status_ == usual.status_
    scores = np.cov(fair.transform(X).T, ddof=1)
    np.testing.assert_allclose(fair.score_covariance_, scores, atol=1e-9)
    np.testing.assert_allclose(fair.explained_variance_, np.diagonal(scores))
    np.testing.assert_allclose(fair.score_samples(X), usual.score_samples(X))
    np.testing.assert_allclose(fair.get_covariance(), usual.get_covariance(), atol=1e-9)
    np.testing.assert_allclose(fair.get_precision(), usual.get_precision(), atol=1e-9)
    np.testing.assert_allclose(fair.to_sklearn().transform(X), fair.transform(X), atol=1e-9)


@pytest.mark.parametrize("load", [load_checkup, load_rand_health, load_lsac, load_tcred])
@pytest.mark.parametrize(
    "estimator", [FairPCA(8, standardize=True), FairPCACV(8, standardize=True)]
)
def test_prefixes_are_fair(load, estimator):
    people = load()
    usual, fair = both_orders(estimator, people.data, people.sensitive_features)
    is_pca = getattr(fair, "stop_", 1) == 0  # then the order is by variance
    assert is_pca or fair.prefix_gaps_.max() <= 0.025
    for r in range(1, 8):
        best = FairPCA(r, standardize=True).fit(fair.moments_)
        with quietly():  # a prefix may help nobody
            prefix = fair.truncated(r)
        excess = prefix.group_errors_.max() / best.group_errors_.max() - 1
        assert fair.prefix_gaps_[r - 1] == pytest.approx(excess, abs=1e-9)
        assert prefix.group_errors_.max() == pytest.approx(largest_error(fair, people, r))
    if not is_pca and load is not load_tcred:
        assert largest_error(usual, people, 7) > 1.05 * largest_error(fair, people, 7)


def largest_error(fair, people, r):
    """The largest error under the first components, from the rows."""
    Z = (people.data - fair.mean_) / fair.scale_
    left = np.square(Z - Z @ fair.components_[:r].T @ fair.components_[:r]).sum(axis=1)
    return max(left[people.sensitive_features == g].mean() for g in fair.groups_)


@pytest.mark.parametrize("sizes", [TWO, FOUR])
def test_the_last_component_is_the_one_to_leave_out(sizes):
    """Against all directions of a three-dimensional span, on a grid."""
    X, groups = make_groups(sizes, d=6)
    fair = FairPCA(3, order="fair").fit(X, sensitive_features=groups)
    theta, phi = np.meshgrid(np.linspace(0, np.pi / 2, 200), np.linspace(0, 2 * np.pi, 800))
    directions = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)])
    centred = X - X.mean(axis=0)
    labels = np.unique(groups)
    inside = [centred[groups == g] @ fair.components_.T for g in labels]
    moments = np.array([Z.T @ Z / len(Z) for Z in inside])
    lost = np.einsum("iab,gij,jab->gab", directions, moments, directions)
    best = (lost + fair.group_errors_[:, None, None]).max(axis=0).min()
    worst = fair.truncated(2).group_errors_.max()
    assert worst <= best * (1 + 1e-6)
    assert worst >= best * (1 - 1e-3)


@pytest.mark.parametrize("sizes", [TWO, FOUR])
@pytest.mark.parametrize("name", EVERY)
def test_prefixes_as_estimators(name, sizes):
    X, groups = make_groups(sizes, d=7)
    _, fair = both_orders(EVERY[name], X, groups)
    gaps = fair.prefix_gaps_
    assert gaps.shape == (4,)
    assert gaps[-1] < 1e-3 or name == "by folds"
    with quietly():
        first = fair.truncated(2)
        again = fair.truncated(3).truncated(2)
    assert type(first) is (FairPCA if name == "by folds" else type(fair))
    assert (first.n_components, first.status_) == (2, "prefix of a fair order")
    np.testing.assert_allclose(first.components_, fair.components_[:2], atol=1e-12)
    np.testing.assert_allclose(again.components_, first.components_, atol=1e-9)
    np.testing.assert_allclose(first.transform(X), fair.transform(X)[:, :2], atol=1e-9)
    errors = group_reconstruction_errors(first, X, groups, relative_errors=first.relative_errors)
    if not first.standardize:
        np.testing.assert_allclose(list(errors.values()), first.group_errors_, rtol=1e-9)
    with quietly():
        best = clone(first).set_params(n_components=2).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(first.pca_group_errors_, best.pca_group_errors_)
    if name in ("fair", "relative", "largest error"):
        assert first.duality_gap_ / best.group_errors_.max() == pytest.approx(gaps[1], abs=1e-9)
        assert gaps[1] >= first.group_errors_.max() / best.group_errors_.max() - 1 - 1e-9


def test_groups_that_are_ignored_count_in_no_prefix():
    X, groups = make_groups((90, 60, 70, 12), d=7)
    fair = FairPCA(4, order="fair", min_group_size=30, small_groups="ignore")
    fair.fit(X, sensitive_features=groups)
    for r in range(1, 4):
        best = FairPCA(r, min_group_size=30, small_groups="ignore").fit(fair.moments_)
        excess = fair.truncated(r).group_errors_[:3].max() / best.group_errors_[:3].max() - 1
        assert excess - 1e-9 <= fair.prefix_gaps_[r - 1] <= excess + 1e-5


def test_rows_fewer_than_features_and_products_only(monkeypatch):
    X, groups = make_groups((14, 10), d=60)
    usual, fair = both_orders(FairPCA(4), X, groups)
    np.testing.assert_allclose(
        fair.components_.T @ fair.components_, usual.components_.T @ usual.components_, atol=1e-12
    )
    assert fair.prefix_gaps_.max() < 0.1
    X, groups = make_groups((90, 60), d=30)
    expected = FairPCA(3, order="fair").fit(X, sensitive_features=groups)
    products_only(monkeypatch)
    fair = FairPCA(3, order="fair").fit(X, sensitive_features=groups)
    np.testing.assert_allclose(fair.components_, expected.components_, atol=1e-6)
    with pytest.raises(AttributeError, match="has no moments"):
        fair.truncated(1)


def test_where_pca_is_kept_the_order_is_by_variance():
    X = np.random.default_rng(0).normal(size=(300, 6)) * [6, 5, 4, 3, 2, 1]
    groups = np.repeat(["a", "b"], [200, 100])
    fair = FairPCACV(3, order="fair").fit(X, sensitive_features=groups)
    assert fair.status_ == "no gain on held-out rows: PCA"
    np.testing.assert_allclose(fair.components_, FairPCA(3, alpha=1).fit(fair.moments_).components_)
    assert fair.prefix_gaps_.shape == (3,)


@pytest.mark.parametrize(
    ("estimator", "named"),
    [
        (FairPCA(2, whiten=True), "whiten=True"),
        (MinMaxPCA(2, whiten=True), "whiten=True"),
        (FairPCA(2, constraint="parity"), "constraint='parity'"),
        (FairPCA(2, alpha=0.5), r"alpha=0\.5"),
        (FairPCA(2, max_disparity=0.1), r"max_disparity=0\.1"),
        (FairPCACV(2, max_error_increase=0.1), r"max_error_increase=0\.1"),
    ],
)
def test_what_does_not_go_with_it(estimator, named):
    X, groups = make_groups(TWO)
    with pytest.raises(ValueError, match=f"does not go with {named}; pass"):
        estimator.set_params(order="fair").fit(X, sensitive_features=groups)


def test_by_variance_there_are_no_fair_prefixes():
    X, groups = make_groups(TWO)
    usual = FairPCA(3).fit(X, sensitive_features=groups)
    assert not hasattr(usual, "prefix_gaps_")
    assert not hasattr(usual, "score_covariance_")
    with pytest.raises(AttributeError, match=r"FairPCA\(order='fair'\)"):
        usual.truncated(2)
    fair = FairPCA(3, order="fair").fit(X, sensitive_features=groups)
    for n_components in (0, 4, 1.5):
        with pytest.raises(ValueError, match="pass an integer"):
            fair.truncated(n_components)


def test_model_files_keep_the_order(tmp_path):
    pytest.importorskip("safetensors", reason="needs the model extra")
    X, groups = make_groups(TWO)
    fair = FairPCA(3, order="fair").fit(X, sensitive_features=groups)
    fair.save(tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.components_, fair.components_)
    np.testing.assert_allclose(loaded.score_samples(X), fair.score_samples(X))
    with pytest.raises(AttributeError, match="has no moments"):
        loaded.truncated(1)
