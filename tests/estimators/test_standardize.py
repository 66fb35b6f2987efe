"""``standardize=True`` is a StandardScaler before the estimator, wherever the rows come from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.data import make_groups
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import fairpca
from fairpca import BlindPCA, FairPCA, FairPLS, GroupMoments, MinMaxPCA, WelfarePCA, metrics
from fairpca.baselines import RobustFairPCA, SubsetFairPCA

ESTIMATORS = [
    FairPCA(2),
    FairPCA(2, whiten=True, constraint="no_worse"),
    FairPCA(2, relative_errors=True),
    MinMaxPCA(2, center="group"),
    WelfarePCA(2),
    RobustFairPCA(2),
    SubsetFairPCA(2),
    BlindPCA(2),
    BlindPCA(2, notion="equalized_odds"),
    FairPLS(2, notion="demographic_parity"),
]
NAMES = [f"x{j}" for j in range(6)]


@pytest.fixture
def rows():
    """Columns of very different units, one of them constant, with weights and classes."""
    X, groups = make_groups((160, 90), d=6)
    X = X * [1e3, 1, 1e-3, 20, 1, 0] + [5e4, 0, 1, -3, 2, 7]
    rng = np.random.default_rng(1)
    return X, groups, rng.integers(1, 4, len(X)).astype(float), X[:, 1] + rng.normal(size=250) > 0


def standardised(estimator, X, y, groups, weight=None):
    """The same estimator after a StandardScaler."""
    scaler = StandardScaler().fit(X, sample_weight=weight)
    Z = scaler.transform(X)
    fitted = estimator.fit(Z, y, sensitive_features=groups, sample_weight=weight)
    return make_pipeline(scaler, fitted)


def assert_equal(found, pipeline, X):
    scaler, expected = pipeline
    np.testing.assert_allclose(found.scale_, scaler.scale_, rtol=1e-11)
    np.testing.assert_allclose(found.mean_, scaler.mean_, rtol=1e-11)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-7)
    np.testing.assert_allclose(found.group_errors_, expected.group_errors_, rtol=1e-8)
    np.testing.assert_allclose(found.pca_group_errors_, expected.pca_group_errors_, rtol=1e-8)
    scores = pipeline.transform(X)
    np.testing.assert_allclose(found.transform(X), scores, atol=1e-7)
    back = pipeline.inverse_transform(scores)
    np.testing.assert_allclose(found.inverse_transform(scores), back, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_a_scaler_before_the_estimator(estimator, weighted, rows):
    X, groups, weight, y = rows
    weight = weight if weighted else None
    expected = standardised(estimator, X, y, groups, weight)
    found = type(estimator)(**estimator.get_params(deep=False) | {"standardize": True})
    found.fit(X, y, sensitive_features=groups, sample_weight=weight)
    assert_equal(found, expected, X)
    assert found.scale_[5] == 1.0
    assert (expected[1].scale_ == 1.0).all()


def test_blocks_and_moments_give_the_same(rows):
    X, groups, _, _ = rows
    expected = standardised(FairPCA(2), X, None, groups)
    blocks = FairPCA(2, standardize=True)
    for part in np.array_split(np.arange(len(X)), 4):
        blocks.partial_fit(X[part], sensitive_features=groups[part])
    assert_equal(blocks, expected, X)
    moments = GroupMoments.from_data(X, groups)
    assert_equal(FairPCA(2, standardize=True).fit(moments), expected, X)


def test_dask_gives_the_same(rows):
    da = pytest.importorskip("dask.array")
    X, groups, weight, _ = rows
    expected = standardised(FairPCA(2), X, None, groups, weight)
    blocks = da.from_array(X, chunks=(60, 6))
    fitted = FairPCA(2, standardize=True).fit(
        blocks, sensitive_features=groups, sample_weight=weight
    )
    assert_equal(fitted, expected, X)
    np.testing.assert_allclose(fitted.transform(blocks).compute(), expected.transform(X), atol=1e-7)


def test_sparse_rows_of_very_many_features_give_the_same():
    rng = np.random.default_rng(0)
    X = sp.random_array((1100, 5200), density=0.01, rng=rng, format="csr") * 10
    X = X @ sp.diags_array(rng.uniform(0.5, 2, 5200))
    groups = np.arange(1100) % 2
    scaler = StandardScaler(with_mean=False).fit(X)
    expected = FairPCA(2).fit(scaler.transform(X), sensitive_features=groups)
    found = FairPCA(2, standardize=True).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(found.scale_, scaler.scale_, rtol=1e-10)
    np.testing.assert_allclose(found.group_errors_, expected.group_errors_, rtol=1e-6)
    np.testing.assert_allclose(found.pca_group_errors_, expected.pca_group_errors_, rtol=1e-6)


def test_a_target_of_numbers_is_not_scaled(rows):
    X, groups, weight, _ = rows
    Y = np.column_stack([X[:, 1] + 0.1, 1e3 * X[:, 3] + 0.1])
    expected = standardised(FairPLS(2, notion="demographic_parity"), X, Y, groups, weight)
    found = FairPLS(2, notion="demographic_parity", standardize=True)
    found.fit(X, Y, sensitive_features=groups, sample_weight=weight)
    assert_equal(found, expected, X)
    assert found.target_r2_ == pytest.approx(expected[1].target_r2_, rel=1e-9)


def test_likelihood_and_covariance_are_about_raw_rows(rows):
    X, groups, _, _ = rows
    X = X[:, :5]
    scaler, expected = standardised(FairPCA(2), X, None, groups)
    found = FairPCA(2, standardize=True).fit(X, sensitive_features=groups)
    change_of_units = np.log(scaler.scale_).sum()
    by_pipeline = expected.score_samples(scaler.transform(X)) - change_of_units
    np.testing.assert_allclose(found.score_samples(X), by_pipeline, rtol=1e-7)
    covariance = expected.get_covariance() * np.outer(scaler.scale_, scaler.scale_)
    np.testing.assert_allclose(found.get_covariance(), covariance, rtol=1e-6)
    identity = found.get_precision() @ found.get_covariance()
    np.testing.assert_allclose(identity, np.eye(5), atol=1e-5)


def test_as_scikit_learn_and_in_a_file(rows, tmp_path):
    X, groups, _, _ = rows
    frame = pd.DataFrame(X, columns=NAMES)
    fair = FairPCA(2, standardize=True, whiten=True).fit(frame, sensitive_features=groups)
    pipeline = fair.to_sklearn()
    assert isinstance(pipeline, Pipeline)
    np.testing.assert_allclose(pipeline.transform(frame), fair.transform(frame), atol=1e-9)
    sparse = sp.csr_array(X)
    fair_to_array = FairPCA(2, standardize=True).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(
        fair_to_array.to_sklearn().transform(sparse), fair_to_array.transform(X), atol=1e-7
    )
    pytest.importorskip("safetensors")
    fair.save(tmp_path / "model.safetensors")
    loaded = fairpca.load_model(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.transform(frame), fair.transform(frame))
    np.testing.assert_array_equal(
        loaded.inverse_transform(X[:, :2]), fair.inverse_transform(X[:, :2])
    )


def test_metrics_are_in_standardised_units(rows):
    X, groups, _, _ = rows
    fair = FairPCA(2, standardize=True).fit(X, sensitive_features=groups)
    errors = metrics.group_reconstruction_errors(fair, X, sensitive_features=groups)
    np.testing.assert_allclose(list(errors.values()), fair.group_errors_, rtol=1e-9)
