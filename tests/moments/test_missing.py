"""Moments of rows with missing values, however they are read."""

import pickle

import numpy as np
import polars as pl
import pytest

from fairpca import GroupMoments

N = 600


def incomplete(seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b"], N, p=[0.3, 0.7])
    X = rng.normal(size=(N, 4)) @ rng.normal(size=(4, 4)) + 3
    X[rng.random((N, 4)) < np.where(groups == "a", 0.3, 0.05)[:, None]] = np.nan
    return X, groups


def test_nan_is_refused_unless_it_may_miss():
    X, groups = incomplete()
    with pytest.raises(ValueError, match="contains NaN"):
        GroupMoments.from_data(X, groups)
    with pytest.raises(ValueError, match="pass 'error' or 'available'"):
        GroupMoments.from_data(X, groups, missing="drop")
    moments = GroupMoments.from_data(X, groups, missing="available")
    expected = [np.isnan(X[groups == g]).mean() for g in ("a", "b")]
    np.testing.assert_allclose(moments.share_missing, expected)


def test_complete_rows_are_as_without_it():
    X, groups = incomplete()
    X = np.nan_to_num(X)
    plain = GroupMoments.from_data(X, groups, folds=4)
    available = GroupMoments.from_data(X, groups, folds=4, missing="available")
    for center in ("overall", "group"):
        np.testing.assert_array_equal(
            available.second_moments(center), plain.second_moments(center)
        )
    assert not available.share_missing.any()


@pytest.mark.parametrize("kind", ["blocks", "frame", "stream", "pickle"])
def test_merged_is_as_at_once(kind):
    X, groups = incomplete()
    whole = GroupMoments.from_data(X, groups, folds=3, missing="available")
    frame = pl.DataFrame({f"x{j}": X[:, j] for j in range(4)} | {"g": groups})
    options = {"folds": 3, "missing": "available"}
    if kind == "blocks":
        moments = GroupMoments()
        X[:50] = np.nan_to_num(X[:50])  # a block without missing values
        whole = GroupMoments.from_data(X, groups, **options)
        for block in (slice(0, 50), slice(50, 70), slice(70, N)):
            moments.update(X[block], groups[block], **options)
    elif kind == "frame":
        nulls = frame.with_columns(pl.selectors.numeric().fill_nan(None))
        moments = GroupMoments.from_data(nulls, "g", **options)
    elif kind == "stream":
        batches = frame.with_columns(pl.selectors.numeric().fill_nan(None)).to_arrow()
        moments = GroupMoments.from_data(iter(batches.to_batches(100)), "g", **options)
    else:
        moments = pickle.loads(pickle.dumps(whole))
    for center in ("overall", "group"):
        np.testing.assert_allclose(
            moments.second_moments(center), whole.second_moments(center), rtol=1e-10, atol=1e-12
        )
    np.testing.assert_allclose(moments.share_missing, whole.share_missing)


def test_a_pair_of_columns_hardly_ever_observed_is_refused():
    X, groups = incomplete()
    X[(groups == "a") & ~np.isnan(X[:, 1]), 3] = np.nan
    moments = GroupMoments.from_data(X, groups, missing="available")
    with pytest.raises(ValueError, match="group 'a' has 'column 1' and 'column 3' together in 0"):
        moments.refuse_rare_pairs(np.array([True, True]))
    moments.refuse_rare_pairs(np.array([False, True]))
