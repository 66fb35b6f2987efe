"""Rows in blocks: fitted when results are asked for."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from helpers.data import make_groups
from sklearn.base import clone

from fairpca import FairPCA, ParityInfeasibleWarning


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


def test_partial_fit_solves_when_asked(two_groups, monkeypatch):
    X, groups = two_groups
    solves = []
    original = FairPCA._solve_rank
    monkeypatch.setattr(FairPCA, "_solve_rank", lambda *args: solves.append(1) or original(*args))
    fair = FairPCA(2)
    for _ in range(5):
        fair.partial_fit(X, sensitive_features=groups)
    assert not solves
    fair.transform(X)
    assert fair.status_
    assert len(solves) == 1
    one_group = FairPCA(2).partial_fit(X, sensitive_features=["a"] * len(X))
    with pytest.raises(ValueError, match="one group only"):
        one_group.transform(X)
    assert not hasattr(one_group, "components_")
    assert not hasattr(FairPCA(2), "components_")
    assert not hasattr(fair, "no_such_attribute_")


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
    fair = FairPCA(1, constraint=None).partial_fit(X, sensitive_features=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ParityInfeasibleWarning)
        with pytest.raises(ParityInfeasibleWarning):
            _ = fair.components_
    fair.partial_fit(X, sensitive_features=groups)
    assert fair.moments_.counts.sum() == 400


def test_only_results_are_computed_on_demand(two_groups):
    X, groups = two_groups
    fair = FairPCA(2).partial_fit(X, sensitive_features=groups)
    fair.note_ = "mine"
    assert not hasattr(fair, "classes_")
    assert "components_" not in vars(fair)
    assert fair.status_ == "parity reached"
    assert fair.partial_fit(X, sensitive_features=groups).note_ == "mine"
