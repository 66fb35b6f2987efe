"""Folds: what is fitted to the training rows, and how the rows left out are judged."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.data import make_groups
from helpers.inside import (
    PLAIN_PCA,
    CrossFit,
    FairProblem,
    LeaveOut,
    lapack,
    path_of,
    settle_small_groups,
    solve,
)
from sklearn.decomposition import PCA
from sklearn.model_selection import PredefinedSplit

from fairpca import FairPCACV, GroupMoments

STOPS = [0.0, 0.3, 0.7, 1.0]


def cross_fit(X, g, folds, problem, rank):
    """The folds of the rows, and their path for a problem."""
    moments = GroupMoments.from_data(X, g, folds=folds)
    settled = settle_small_groups(moments, 1, "error")
    operand = settled.operand
    pca = solve(PLAIN_PCA, operand, rank)
    return CrossFit(LeaveOut(settled), path_of(problem, pca, operand, 1e-6), False)


@pytest.mark.parametrize("constraint", ["efficient", "parity"])
def test_each_fold_of_many_groups_is_on_the_frontier_of_its_own_rows(constraint):
    """Where the search starts, from the weights of all rows, decides nothing."""
    X, g = make_groups((160, 120, 90), d=6, alike=0.5)
    folds = np.arange(len(X)) % 4
    problem = FairProblem(constraint=constraint)
    curve = cross_fit(X, g, folds, problem, 2).at(STOPS)
    for fold in range(4):
        train, test = folds != fold, folds == fold
        operand = GroupMoments.from_data(X[train], g[train]).operand()
        Z = X[test] - X[train].mean(axis=0)
        for i, stop in enumerate(STOPS):
            at = FairProblem(constraint=constraint, fraction=stop) if stop else PLAIN_PCA
            U = solve(at, operand, 2).basis
            squares = (Z**2).sum(axis=1) - ((Z @ U) ** 2).sum(axis=1)
            sums = [squares[g[test] == label].sum() for label in np.unique(g)]
            np.testing.assert_allclose(curve.held_out.errors[fold, i], sums, rtol=1e-4)


@pytest.mark.parametrize("constraint", ["efficient", "parity"])
def test_stops_asked_for_later_get_the_same_errors(constraint):
    X, g = make_groups((160, 120, 90), d=6, alike=0.5)
    folds = np.arange(len(X)) % 4
    problem = FairProblem(constraint=constraint)
    at_once = cross_fit(X, g, folds, problem, 2).at(STOPS)
    one_by_one = cross_fit(X, g, folds, problem, 2)
    for stop in reversed(STOPS):
        curve = one_by_one.at([stop])
    np.testing.assert_allclose(curve.held_out.errors, at_once.held_out.errors, rtol=1e-9)


@pytest.mark.parametrize("largest", [1.0, 1e3, 1e6])
def test_single_precision_moves_held_out_errors_by_next_to_nothing(monkeypatch, largest):
    rng = np.random.default_rng(0)
    g = np.repeat(["a", "b"], [300, 150])
    X = rng.normal(size=(450, 120)) * 0.97 ** np.arange(120)
    X[g == "b"] = rng.normal(size=(150, 120)) * 0.97 ** np.arange(120)[::-1]
    X[:, 0] *= largest
    problem = FairProblem(constraint="efficient")
    found = cross_fit(X, g, np.arange(450) % 3, problem, 20).at(STOPS).held_out
    monkeypatch.setattr(lapack, "_in_single_precision", lambda M, rank: None)
    exact = cross_fit(X, g, np.arange(450) % 3, problem, 20).at(STOPS).held_out
    moved = np.abs(found.totals.group_errors / exact.totals.group_errors - 1)
    assert moved.max() < 2e-6
    assert largest > 1 or moved.max() > 0


@pytest.mark.parametrize("heavy", [1e13, 1e17, 1e20])
def test_weights_that_leave_no_digits_of_other_rows_are_refused(heavy):
    X, g = make_groups((60, 40), d=4)
    with pytest.raises(
        ValueError, match=r"sample_weight: the rows of one fold weigh .* times as much"
    ):
        FairPCACV(2).fit(X, sensitive_features=g, sample_weight=np.r_[heavy, np.ones(99)])


@pytest.mark.parametrize(("heavy", "digits"), [(1e6, 8), (1e10, 4)])
def test_one_row_may_weigh_more_than_all_others(heavy, digits):
    """The sums of the other folds are added up, not subtracted from those of all rows."""
    X, g = make_groups((60, 40), d=4)
    folds = np.arange(len(X)) % 5
    weights = np.ones(len(X))
    weights[3] = heavy
    fair = FairPCACV(2, cv=PredefinedSplit(folds))
    fair.fit(X, sensitive_features=g, sample_weight=weights)
    sums, totals = np.zeros(2), np.zeros(2)
    for fold in range(5):
        train, test = folds != fold, folds == fold
        w = weights[train] / weights[train].sum()
        mean = w @ X[train]
        Z = (X[train] - mean) * np.sqrt(w)[:, None]
        U = np.linalg.svd(Z, full_matrices=False)[2][:2].T
        Z = X[test] - mean
        squares = weights[test] * ((Z**2).sum(axis=1) - ((Z @ U) ** 2).sum(axis=1))
        codes = (g[test] == np.unique(g)[1]).astype(int)
        sums += np.bincount(codes, squares, minlength=2)
        totals += np.bincount(codes, weights[test], minlength=2)
    np.testing.assert_allclose(fair.held_out_pca_group_errors_, sums / totals, rtol=10.0**-digits)


def test_folds_of_few_rows_are_those_of_refits():
    X, g = make_groups((30, 20), d=110)
    folds = np.arange(50) % 5
    fair = FairPCACV(2, cv=PredefinedSplit(folds)).fit(X, sensitive_features=g)
    errors = np.empty(50)
    for fold in range(5):
        pca = PCA(2).fit(X[folds != fold])
        rows = X[folds == fold]
        errors[folds == fold] = ((rows - pca.inverse_transform(pca.transform(rows))) ** 2).sum(1)
    expected = [errors[g == label].mean() for label in fair.groups_]
    np.testing.assert_allclose(fair.held_out_pca_group_errors_, expected, rtol=1e-6)


def test_more_components_than_a_fold_has_directions_are_refused():
    """Their held-out errors would depend on the order of the rows."""
    X, g = np.random.default_rng(0).normal(size=(12, 8)), np.repeat(["a", "b"], 6)
    with pytest.raises(ValueError, match=r"n_components=7, .* pass n_components=5 or fewer"):
        FairPCACV(7, cv=2).fit(X, sensitive_features=g)
    FairPCACV(5, cv=2).fit(X, sensitive_features=g)
    rare = np.zeros((100, 3))
    rare[:, 0], rare[:, 1] = np.random.default_rng(1).normal(size=(2, 100))
    rare[7, 2] = 1.0  # one row alone has the third direction
    X = rare @ np.linalg.qr(np.random.default_rng(2).normal(size=(4, 4)))[0][:3]
    folds = PredefinedSplit(np.arange(100) % 5)
    with pytest.raises(ValueError, match="pass n_components=2 or fewer"):
        FairPCACV(3, cv=folds).fit(X, sensitive_features=np.repeat(["a", "b"], 50))


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_where_pca_loses_nothing_it_is_the_answer(rank):
    X, g = make_groups((60, 40), d=3)
    X = X @ np.random.default_rng(0).normal(size=(3, 5))
    order = np.random.default_rng(0).permutation(100)
    for rows in (slice(None), order, order[::-1]):
        fair = FairPCACV(rank).fit(X[rows], sensitive_features=g[rows])
        assert fair.stop_ == 0
        assert not fair.held_out_changes_.any()
        np.testing.assert_allclose(fair.held_out_group_errors_, 0.0, atol=1e-9)
