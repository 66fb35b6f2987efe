"""Estimators that take rows with missing values."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from fairpca import (
    BlindPCA,
    FairColumns,
    FairPCA,
    FairPCACV,
    GroupMoments,
    MinMaxPCA,
    WelfarePCA,
    load_model,
    tradeoff_path,
)
from fairpca.datasets import load_checkup

TAKE_MISSING = [
    FairPCA(2, missing="available"),
    FairPCACV(2, missing="available"),
    MinMaxPCA(2, missing="available"),
    WelfarePCA(2, missing="available"),
    FairColumns(2, missing="available"),
]


def complete(n=1500, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d) * 5
    groups = rng.choice(["a", "b"], n, p=[0.3, 0.7])
    X[groups == "a"] = X[groups == "a"][:, ::-1]
    return X, groups


def incomplete(share=0.15, **options):
    X, groups = complete(**options)
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < np.where(groups == "a", share, share / 3)[:, None]] = np.nan
    return X, groups


def named(estimator):
    return type(estimator).__name__


@pytest.mark.parametrize("estimator", TAKE_MISSING, ids=named)
def test_complete_rows_are_as_without_it(estimator):
    X, groups = complete()
    plain = type(estimator)(2).fit(X, sensitive_features=groups)
    fitted = estimator.fit(X, sensitive_features=groups)
    np.testing.assert_array_equal(fitted.group_errors_, plain.group_errors_)
    np.testing.assert_array_equal(fitted.transform(X), plain.transform(X))
    np.testing.assert_array_equal(fitted.clipped_variance_, [0.0, 0.0])


@pytest.mark.parametrize("estimator", TAKE_MISSING, ids=named)
def test_missing_values_are_refused_unless_they_may_miss(estimator):
    X, groups = incomplete()
    with pytest.raises(ValueError, match="missing='available'"):
        type(estimator)(2).fit(X, sensitive_features=groups)
    moments = GroupMoments.from_data(X, groups, missing="available", folds=10)
    with pytest.raises(ValueError, match="rows with missing values"):
        type(estimator)(2).fit(moments)
    with pytest.raises(ValueError, match="'available'"):
        type(estimator)(2, missing="drop").fit(X, sensitive_features=groups)
    again = estimator.fit(moments).group_errors_
    np.testing.assert_allclose(estimator.fit(X, sensitive_features=groups).group_errors_, again)


@pytest.mark.parametrize("estimator", TAKE_MISSING, ids=named)
def test_rows_are_completed_by_what_is_expected(estimator):
    X, groups = incomplete()
    fitted = estimator.fit(X, sensitive_features=groups)
    rows = X[:300].copy()
    rows[0] = np.nan
    m, C = fitted.mean_, fitted.covariance_
    expected = rows.copy()
    for row in expected:
        lost = np.isnan(row)
        if lost.any():
            seen = ~lost
            row[lost] = (
                m[lost]
                + C[np.ix_(lost, seen)]
                @ np.linalg.lstsq(C[np.ix_(seen, seen)], row[seen] - m[seen], rcond=None)[0]
            )
    np.testing.assert_allclose(
        fitted.transform(rows), fitted.transform(expected), rtol=1e-6, atol=1e-8
    )
    frame = pd.DataFrame(rows)
    np.testing.assert_array_equal(fitted.transform(frame), fitted.transform(rows))
    with pytest.raises(ValueError, match="infinity"):
        fitted.transform(np.where(np.isnan(rows), np.inf, rows))


@pytest.mark.parametrize("estimator", TAKE_MISSING, ids=named)
def test_model_files_keep_what_is_expected(estimator, tmp_path):
    X, groups = incomplete()
    fitted = estimator.fit(X, sensitive_features=groups)
    fitted.save(tmp_path / "model.safetensors")
    read = load_model(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(read.transform(X), fitted.transform(X))
    np.testing.assert_array_equal(read.clipped_variance_, fitted.clipped_variance_)


def test_blocks_and_streams_are_as_at_once():
    X, groups = incomplete()
    whole = FairPCA(2, standardize=True, missing="available").fit(X, sensitive_features=groups)
    blocks = FairPCA(2, standardize=True, missing="available")
    for part in np.array_split(np.arange(len(X)), 7):
        blocks.partial_fit(X[part], sensitive_features=groups[part])
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    frame = pl.DataFrame(columns | {"g": groups}).with_columns(
        pl.selectors.numeric().fill_nan(None)
    )
    streamed = FairPCA(2, standardize=True, missing="available")
    streamed.fit(iter(frame.to_arrow().to_batches(200)), sensitive_features="g")
    for fitted, rows in ((blocks, X), (streamed, pd.DataFrame(columns))):
        np.testing.assert_allclose(fitted.group_errors_, whole.group_errors_, rtol=1e-10)
        np.testing.assert_allclose(fitted.transform(rows), whole.transform(X), rtol=1e-7, atol=1e-7)
    scores = streamed.transform(iter(frame.to_arrow().to_batches(200))).read_all()
    np.testing.assert_allclose(scores["fairpca0"], whole.transform(X)[:, 0], rtol=1e-8, atol=1e-8)


def test_the_truth_is_found_where_filling_in_hides_it():
    """Half of the values of older people are deleted from a table that is known whole."""
    people = load_checkup()
    X = np.asarray(people.data, dtype=float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    old = np.asarray(people.sensitive_features) == "75 and older"
    truth = FairPCA(5, alpha=1).fit(X, sensitive_features=old)
    gap = np.ptp(np.log(truth.group_errors_))
    found, hidden = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        holes = X.copy()
        holes[rng.random(X.shape) < np.where(old, 0.5, 0.05)[:, None]] = np.nan
        available = FairPCA(5, alpha=1, missing="available").fit(holes, sensitive_features=old)
        found.append(np.diff(np.log(available.group_errors_))[0])
        filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
        mean = FairPCA(5, alpha=1).fit(filled, sensitive_features=old)
        hidden.append(np.diff(np.log(mean.group_errors_))[0])
    assert np.mean(found) == pytest.approx(gap, abs=0.06)
    assert np.mean(hidden) < 0.3 * gap


def test_what_was_clipped_is_reported():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 25)) @ np.diag(np.linspace(0.01, 3, 25))
    groups = np.repeat(["a", "b"], [60, 340])
    X[rng.random(X.shape) < np.where(groups == "a", 0.3, 0.0)[:, None]] = np.nan
    fitted = FairPCA(3, missing="available").fit(X, sensitive_features=groups)
    of_a = fitted.moments_.second_moments()[0]
    values = np.linalg.eigvalsh(of_a)
    assert values[0] < 0
    added = -values[values < 0].sum()
    expected = [added / (np.trace(of_a) + added), 0.0]
    np.testing.assert_allclose(fitted.clipped_variance_, expected, atol=1e-12)


def test_held_out_figures_are_on_average_those_of_complete_rows():
    X, groups = complete(3000)
    truth = FairPCACV(2).fit(X, sensitive_features=groups).held_out_pca_group_errors_
    rng = np.random.default_rng(5)
    found = []
    for _ in range(6):
        holes = X.copy()
        holes[rng.random(X.shape) < np.where(groups == "a", 0.3, 0.05)[:, None]] = np.nan
        fitted = FairPCACV(2, missing="available").fit(holes, sensitive_features=groups)
        found.append(fitted.held_out_pca_group_errors_)
    np.testing.assert_allclose(np.mean(found, axis=0), truth, rtol=0.06)


def test_paths_take_missing_values():
    X, groups = incomplete()
    path = tradeoff_path(X, groups, n_components=2, n_points=5, missing="available", cv=5)
    ends = FairPCA(2, constraint="parity", missing="available").fit(X, sensitive_features=groups)
    np.testing.assert_allclose(path.group_errors[-1], ends.group_errors_, rtol=1e-8)
    assert path.held_out.group_errors.shape == (5, 2)


def test_what_cannot_be_done_is_refused():
    X, groups = incomplete()
    fair = FairPCA(2, missing="available")
    with pytest.raises(ValueError, match="sparse"):
        fair.fit(csr_array(X), sensitive_features=groups)
    together = X.copy()
    together[(groups == "a") & ~np.isnan(X[:, 1]), 3] = np.nan
    with pytest.raises(ValueError, match="'column 1' and 'column 3' together in 0 rows"):
        fair.fit(together, sensitive_features=groups)
    with pytest.raises(ValueError, match="up to 5000 features"):
        fair.fit(np.ones((3000, 6000)), sensitive_features=np.resize(["a", "b"], 3000))
    with pytest.raises(ValueError, match="BlindPCA does not take"):
        BlindPCA(2).fit(GroupMoments.from_data(X, groups, missing="available"))
    fitted = fair.fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match="contains NaN"):
        fitted.score(X)
    with pytest.raises(ValueError, match="NaN"):
        fitted.to_sklearn().transform(X)
    reconstructed = fitted.to_sklearn().transform(np.nan_to_num(X))
    np.testing.assert_allclose(reconstructed, fitted.transform(np.nan_to_num(X)))
