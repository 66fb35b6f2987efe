"""Rows in blocks: each call fits to all rows seen so far."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from helpers.data import make_groups
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairpca import FairPCA, ParityInfeasibleWarning
from fairpca.baselines import RobustFairPCA


def test_partial_fit_is_fit(two_groups):
    X, groups = two_groups
    whole = FairPCA(2).fit(X, sensitive_features=groups)
    parts = FairPCA(2)
    for rows in np.array_split(np.argsort(groups, kind="stable"), 7):  # the first: one group only
        parts.partial_fit(X[rows], sensitive_features=groups[rows])
    np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-9)
    np.testing.assert_allclose(parts.group_errors_, whole.group_errors_, rtol=1e-10)
    assert parts.group_sizes_.tolist() == [90, 60]
    more = clone(parts).fit(X, sensitive_features=groups)
    more.partial_fit(X, sensitive_features=groups)
    assert more.group_sizes_.tolist() == [180, 120]
    more.fit(X, sensitive_features=groups)
    assert more.group_sizes_.tolist() == [90, 60]


def test_each_call_gives_a_projection(two_groups):
    X, groups = two_groups
    fair = FairPCA(2)
    for n in (50, 100, 150):
        fair.partial_fit(X[n - 50 : n], sensitive_features=groups[n - 50 : n])
        whole = FairPCA(2).fit(X[:n], sensitive_features=groups[:n])
        np.testing.assert_allclose(vars(fair)["components_"], whole.components_, atol=1e-9)


def test_rows_that_allow_no_fit_yet(two_groups):
    X, _ = two_groups
    fair = FairPCA(2).partial_fit(X, sensitive_features=["a"] * len(X))
    assert not hasattr(fair, "components_")
    with pytest.raises(ValueError, match="one group only"):
        fair.transform(X)
    fair.partial_fit(X[:1], sensitive_features=["b"])
    assert fair.group_sizes_.tolist() == [len(X), 1]
    few = FairPCA(5)
    for i in range(4):
        few.partial_fit(X[i : i + 1], sensitive_features=[i % 2])
        with pytest.raises(ValueError, match=r"one group only|n_components=5"):
            few.transform(X)
    assert few.partial_fit(X[4:6], sensitive_features=[0, 1]).components_.shape == (5, 6)
    assert not hasattr(FairPCA(2), "components_")


def test_only_rows_that_are_missing_may_wait(two_groups):
    """A block that no further rows can mend is refused, and changes nothing."""
    X, groups = two_groups
    robust = RobustFairPCA(2).partial_fit(X, sensitive_features=groups)
    before = vars(robust).copy()
    with pytest.raises(ValueError, match="compares two groups"):
        robust.partial_fit(X, sensitive_features=["other"] * len(X))
    assert vars(robust) == before
    new = FairPCA(50)
    with pytest.raises(ValueError, match="n_components=50"):
        new.partial_fit(X, sensitive_features=groups)
    assert vars(new) == vars(FairPCA(50))
    waiting = FairPCA(2, min_group_size=10).partial_fit(X, sensitive_features=groups)
    waiting.partial_fit(X[:1], sensitive_features=["other"])  # more of them may come
    with pytest.raises(NotFittedError):
        check_is_fitted(waiting)
    with pytest.raises(ValueError, match="min_group_size"):
        waiting.transform(X)
    assert waiting.partial_fit(X[:9], sensitive_features=["other"] * 9).n_samples_ == len(X) + 10


def test_results_of_an_earlier_fit_are_gone(two_groups):
    X, groups = two_groups
    three = np.array([f"{label}{i % 2}" for i, label in enumerate(groups)])
    fair = FairPCA(2).fit(X, sensitive_features=three)
    assert hasattr(fair, "error_gap_")
    assert not hasattr(fair.fit(X, sensitive_features=groups), "error_gap_")


def test_copies_are_fitted_alone():
    X, groups = make_groups((90, 60), d=4)
    fair = FairPCA(2).partial_fit(X, sensitive_features=groups)
    other = copy.copy(fair).partial_fit(X + 5, sensitive_features=groups)
    assert fair.group_sizes_.tolist() == [90, 60]
    assert other.group_sizes_.tolist() == [180, 120]
    np.testing.assert_allclose(fair.mean_, X.mean(axis=0))


def test_a_warning_as_error_after_partial_fit_loses_no_moments():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(200, 3)), np.arange(200) % 2 == 0
    X[groups] *= 4
    fair = FairPCA(1, constraint="parity")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ParityInfeasibleWarning)
        with pytest.raises(ParityInfeasibleWarning):
            fair.partial_fit(X, sensitive_features=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fair.partial_fit(X, sensitive_features=groups)
    assert fair.moments_.counts.sum() == 400
