"""max_group_increase: no group pays more than a share of its error under PCA."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from helpers.two_groups import family_of, grid

from fairpca import FairPCA, FairPCACV, GroupMoments, audit, tradeoff_path
from fairpca.exceptions import quietly


def people(seed=0, k=2, n=600, d=6):
    rng = np.random.default_rng(seed)
    groups = rng.choice(k, n, p=np.arange(1, k + 1)[::-1] / (k * (k + 1) / 2))
    X = np.empty((n, d))
    for g in range(k):
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        own = np.geomspace(3 + g, 0.3, d)
        X[groups == g] = rng.normal(size=(np.sum(groups == g), d)) * own @ turn + 0.3 * g
    return X, np.array(list("abcdef"))[groups]


def fit(X, groups, r=2, **options):
    with quietly():
        return FairPCA(r, **options).fit(X, sensitive_features=groups)


@cache
def errors_along_alpha(seed):
    moments = GroupMoments.from_data(*people(seed))
    return grid(family_of(moments.second_moments(), moments.weights / moments.weights.sum(), 2))


@pytest.mark.parametrize("constraint", ["efficient", "no_worse", "parity"])
@pytest.mark.parametrize("b", [0.001, 0.03, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_two_groups_against_a_grid(seed, b, constraint):
    X, groups = people(seed)
    fair = fit(X, groups, constraint=constraint, max_group_increase=b)
    limits = (1 + b) * fair.pca_group_errors_
    assert (fair.group_errors_ <= limits * (1 + 1e-9)).all()
    assert fair.duality_gap_ <= 1e-9 * X.var()
    free = fit(X, groups, constraint=constraint)
    alphas, errors = errors_along_alpha(seed)
    allowed = (alphas >= free.alpha_) & (errors <= limits).all(axis=1)
    assert allowed[-1]  # PCA
    assert fair.disparity_ <= np.abs(np.diff(errors[allowed])).min() + 1e-9
    if fair.status_ == "group limit reached":
        left = (limits - fair.group_errors_) / limits
        assert np.abs(left).min() <= 1e-9
    else:
        np.testing.assert_allclose(fair.group_errors_, free.group_errors_)


def test_a_wide_limit_does_not_matter_and_none_stays_at_pca():
    for k in (2, 3):
        X, groups = people(k=k)
        wide, free = fit(X, groups, max_group_increase=50.0), fit(X, groups)
        np.testing.assert_allclose(wide.group_errors_, free.group_errors_, rtol=1e-5)
        none = fit(X, groups, max_group_increase=0.0)
        np.testing.assert_allclose(none.group_errors_, none.pca_group_errors_)
        assert none.status_ == "group limit reached"


@pytest.mark.parametrize("constraint", ["efficient", "no_worse", "parity"])
@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_more_groups_keep_the_limit_and_gain_what_is_possible(seed, k, constraint):
    X, groups = people(seed, k)
    b = 0.05
    fair = fit(X, groups, constraint=constraint, max_group_increase=b)
    assert (fair.group_errors_ <= (1 + b) * fair.pca_group_errors_ * (1 + 1e-6)).all()
    free = fit(X, groups, constraint=constraint)
    assert fair.disparity_ >= free.disparity_ - 1e-6
    assert fair.group_errors_.max() <= fair.pca_group_errors_.max() * (1 + 1e-9) or (
        constraint == "parity"
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_more_groups_against_a_semidefinite_program(seed):
    cp = pytest.importorskip("cvxpy")
    X, groups = people(seed, k=3, d=5)
    b, r = 0.04, 2
    fair = fit(X, groups, r, max_group_increase=b)
    centred = X - X.mean(axis=0)
    C = [np.cov(centred[groups == g].T, bias=True) for g in fair.groups_]
    means = [centred[groups == g].mean(axis=0) for g in fair.groups_]
    C = [c + np.outer(m, m) for c, m in zip(C, means, strict=True)]
    P, t = cp.Variable((5, 5), symmetric=True), cp.Variable()
    errors = [np.trace(c) - cp.trace(c @ P) for c in C]
    rules = [P >> 0, np.eye(5) - P >> 0, cp.trace(P) == r]
    rules += [e <= t for e in errors]
    rules += [e <= (1 + b) * e0 for e, e0 in zip(errors, fair.pca_group_errors_, strict=True)]
    least = cp.Problem(cp.Minimize(t), rules).solve(solver=cp.CLARABEL)
    largest = fair.group_errors_.max()
    assert least <= largest + 1e-6
    assert largest - fair.duality_gap_ <= least + 1e-5 * largest


def test_limits_in_shares_of_variance():
    X, groups = people()
    fair = fit(X, groups, relative_errors=True, max_group_increase=0.02)
    assert (fair.group_errors_ <= 1.02 * fair.pca_group_errors_ * (1 + 1e-9)).all()


def test_held_out_errors_keep_the_limit():
    X, groups = people(3, n=2000)
    with quietly():
        fair = FairPCACV(2, max_group_increase=0.02).fit(X, sensitive_features=groups)
    increases = fair.held_out_group_errors_ / fair.held_out_pca_group_errors_ - 1
    assert increases.max() <= 0.02 + 0.01  # each fold is judged at the stop of the other folds
    assert fair.stop_ > 0


@pytest.mark.parametrize("value", [-0.1, "3 %", True, float("nan")])
def test_bad_limits(value):
    X, groups = people()
    with pytest.raises(ValueError, match="max_group_increase"):
        FairPCA(2, max_group_increase=value).fit(X, sensitive_features=groups)


def test_one_limit_at_a_time():
    X, groups = people()
    with pytest.raises(ValueError, match="contradict"):
        fit(X, groups, max_group_increase=0.1, max_disparity=0.1)


def path_of(X, groups, **options):
    with quietly():
        return tradeoff_path(X, groups, n_components=2, n_points=6, **options)


@pytest.mark.parametrize("b", [0.001, 0.02, 50.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_frontier_of_two_groups_is_the_same_up_to_the_limit(seed, b):
    X, groups = people(seed)
    path, free = path_of(X, groups, max_group_increase=b), path_of(X, groups)
    assert (path.group_errors <= (1 + b) * path.group_errors[0] * (1 + 1e-9)).all()
    assert path.duality_gap.max() <= 1e-9 * X.var()
    end = fit(X, groups, constraint="parity", max_group_increase=b)
    np.testing.assert_allclose(path.group_errors[-1], end.group_errors_)
    for D, R in zip(path.disparity, path.reconstruction_error, strict=True):
        same = fit(X, groups, constraint="parity", max_disparity=max(D, 0.0))
        assert pytest.approx(same.reconstruction_error_) == R
    assert path.disparity[-1] >= free.disparity[-1] - 1e-9
    if b > 1:
        np.testing.assert_allclose(path.group_errors, free.group_errors)


@pytest.mark.parametrize("seed", range(2))
def test_the_frontier_of_more_groups_keeps_the_limit(seed):
    X, groups = people(seed, k=3)
    path = path_of(X, groups, max_group_increase=0.03, cv=5)
    assert (path.group_errors <= 1.03 * path.group_errors[0] * (1 + 1e-6)).all()
    assert (np.diff(path.disparity) <= 1e-9).all()
    free = path_of(X, groups)
    assert path.disparity[-1] >= free.disparity[-1] - path.duality_gap[-1]
    new = path.held_out
    assert (new.group_errors <= 1.1 * new.group_errors[0]).all()  # nearly kept for others too
    for mark in path.marks.values():
        assert (mark.group_errors <= 1.03 * path.group_errors[0] * (1 + 1e-6)).all()


def test_the_frontier_of_an_audit_keeps_the_limit():
    X, groups = people(1)
    with quietly():
        result = audit(FairPCA(2, max_group_increase=0.01), X, groups, n_points=5)
    errors = result.path.group_errors
    assert (errors <= 1.01 * errors[0] * (1 + 1e-9)).all()
    assert np.ptp(result.path.disparity) > 0
    (budget,) = result.fit.budgets
    assert (budget.name, budget.met) == ("max_group_increase", True)


@pytest.mark.parametrize("value", [-0.1, float("nan")])
def test_bad_limits_of_a_frontier(value):
    X, groups = people()
    with pytest.raises(ValueError, match="max_group_increase"):
        tradeoff_path(X, groups, n_components=2, max_group_increase=value)


def test_men_at_most_three_percent_worse():
    """A limit for each group says what a limit of the overall error does not."""
    X, groups = people(1)
    by_group = fit(X, groups, max_group_increase=0.03)
    overall = fit(X, groups, max_error_increase=0.03)
    paid = by_group.group_errors_ / by_group.pca_group_errors_ - 1
    assert by_group.status_ == "group limit reached"
    assert paid.max() == pytest.approx(0.03)
    assert paid.min() < 0
    assert (overall.group_errors_ / overall.pca_group_errors_ - 1).max() > 0.03
    assert by_group.duality_gap_ <= 1e-9 * X.var()  # nothing fairer keeps the limit
