"""FairPCA: identities, attributes and options."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from helpers.data import make_groups
from helpers.inside import base, growing_bases, products_only, solve
from helpers.many_groups import QUIET
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from fairpca import FairPCA, GroupMoments, LevellingDownWarning, ParityInfeasibleWarning
from fairpca.exceptions import quietly
from fairpca.metrics import group_reconstruction_errors


def fit(X, groups, *args, **kwargs):
    with quietly():
        return FairPCA(*args, **kwargs).fit(X, sensitive_features=groups)


def subspace(estimator):
    return estimator.components_.T @ estimator.components_


def assert_certified(estimator):
    scale = estimator.pca_group_errors_.max() + estimator.explained_variance_.sum()
    assert abs(estimator.duality_gap_) <= 1e-10 * scale


OPTIONS = [
    {},
    {"constraint": "parity"},
    {"alpha": 0.7},
    {"max_disparity": 0.05},
    {"max_error_increase": 0.01},
    {"constraint": "parity", "max_error_increase": 0.01},
]


each_option = pytest.mark.parametrize("options", OPTIONS, ids=str)


def test_alpha_one_is_pca(two_groups):
    X, groups = two_groups
    for r in range(1, 7):
        fair, pca = fit(X, groups, r, alpha=1.0), PCA(r).fit(X)
        np.testing.assert_allclose(fair.components_, pca.components_, atol=1e-10)
        np.testing.assert_allclose(fair.mean_, pca.mean_, atol=1e-14)
        np.testing.assert_allclose(fair.explained_variance_, pca.explained_variance_)
        np.testing.assert_allclose(fair.explained_variance_ratio_, pca.explained_variance_ratio_)
        np.testing.assert_allclose(fair.noise_variance_, pca.noise_variance_, atol=1e-12)
        np.testing.assert_allclose(fair.transform(X), pca.transform(X), atol=1e-9)
        np.testing.assert_allclose(fair.score(X), pca.score(X))
        np.testing.assert_allclose(fair.score_samples(X), pca.score_samples(X))


@each_option
def test_attributes_agree_with_the_data(two_groups, options):
    X, groups = two_groups
    fair = fit(X, groups, 2, **options)
    assert_certified(fair)
    np.testing.assert_allclose(fair.components_ @ fair.components_.T, np.eye(2), atol=1e-12)
    scores = fair.transform(X)
    covariance = np.cov(scores.T)
    np.testing.assert_allclose(covariance, np.diag(fair.explained_variance_), atol=1e-10)
    assert fair.explained_variance_[0] >= fair.explained_variance_[1]
    np.testing.assert_allclose(
        fair.explained_variance_ratio_, fair.explained_variance_ / X.var(axis=0, ddof=1).sum()
    )
    largest = np.abs(fair.components_).argmax(axis=1)
    assert (fair.components_[[0, 1], largest] > 0).all()
    assert fair.groups_.tolist() == ["g0", "g1"]
    assert fair.group_sizes_.tolist() == [90, 60]
    rest = np.sum((X - fair.inverse_transform(scores)) ** 2, axis=1)
    errors = [rest[groups == g].mean() for g in fair.groups_]
    np.testing.assert_allclose(fair.group_errors_, errors)
    np.testing.assert_allclose(fair.reconstruction_error_, rest.mean())
    totals = [
        np.sum((X - X.mean(axis=0))[groups == g] ** 2) / (groups == g).sum() for g in fair.groups_
    ]
    np.testing.assert_allclose(fair.group_explained_variance_ratio_, 1 - np.divide(errors, totals))
    by_group = dict(zip(fair.groups_, fair.group_errors_, strict=True))
    assert fair.disparity_ == pytest.approx(
        by_group[fair.harmed_group_] - by_group[fair.privileged_group_], abs=1e-12
    )
    pca = group_reconstruction_errors(PCA(2).fit(X), X, groups)
    np.testing.assert_allclose(fair.pca_group_errors_, list(pca.values()))
    assert pca[fair.harmed_group_] > pca[fair.privileged_group_]
    assert fair.pca_reconstruction_error_ <= fair.reconstruction_error_ + 1e-12
    assert isinstance(fair.status_, str)
    assert 0 <= fair.alpha_ <= 1
    assert fair.n_eigensolves_ <= 25
    assert (fair.n_components_, fair.n_features_in_) == (2, 6)


@each_option
@pytest.mark.parametrize("seed", range(3))
def test_identities(options, seed):
    X, groups = make_groups(seed=seed, alike=0.5)
    rng = np.random.default_rng(seed)
    fair = fit(X, groups, 3, **options)
    Q = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    rotated = fit(X @ Q, groups, 3, **options)
    np.testing.assert_allclose(rotated.group_errors_, fair.group_errors_, rtol=1e-9)
    np.testing.assert_allclose(Q @ subspace(rotated) @ Q.T, subspace(fair), atol=1e-6)
    renamed = fit(X, np.where(groups == "g0", "z", "a"), 3, **options)
    np.testing.assert_allclose(renamed.group_errors_, fair.group_errors_[::-1], rtol=1e-10)
    np.testing.assert_allclose(renamed.components_, fair.components_, atol=1e-7)
    order = rng.permutation(len(X))
    shuffled = fit(X[order], groups[order], 3, **options)
    np.testing.assert_allclose(shuffled.components_, fair.components_, atol=1e-7)
    moved = fit(np.round(X * 64) / 64 + 2.0**30, groups, 3, **options)
    still = fit(np.round(X * 64) / 64, groups, 3, **options)
    np.testing.assert_allclose(moved.group_errors_, still.group_errors_, rtol=1e-9)
    np.testing.assert_allclose(moved.components_, still.components_, atol=1e-6)
    weights = np.where(groups == "g1", 3.0, 1.0)
    repeated = np.repeat(np.arange(len(X)), weights.astype(int))
    weighted = FairPCA(3, **options).fit(X, sensitive_features=groups, sample_weight=weights)
    many = fit(X[repeated], groups[repeated], 3, **options)
    np.testing.assert_allclose(weighted.group_errors_, many.group_errors_, rtol=1e-9)
    np.testing.assert_allclose(weighted.components_, many.components_, atol=1e-6)
    np.testing.assert_allclose(weighted.mean_, many.mean_, atol=1e-12)
    scaled_options = dict(options)
    if "max_disparity" in options:
        scaled_options["max_disparity"] *= 9
    scaled = fit(3 * X, groups, 3, **scaled_options)
    np.testing.assert_allclose(scaled.group_errors_, 9 * fair.group_errors_, rtol=1e-9)
    np.testing.assert_allclose(scaled.components_, fair.components_, atol=1e-7)
    assert_certified(fair)


@each_option
def test_weights_scale_freely(two_groups, options):
    X, groups = two_groups
    w = np.random.default_rng(0).uniform(0.5, 2, len(X))
    one = FairPCA(2, **options).fit(X, sensitive_features=groups, sample_weight=w)
    other = FairPCA(2, **options).fit(X, sensitive_features=groups, sample_weight=1e-6 * w)
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-8)
    np.testing.assert_allclose(one.explained_variance_, other.explained_variance_)


@pytest.mark.parametrize("constraint", ["parity", "no_worse", "efficient"])
@pytest.mark.parametrize(
    "case",
    ["constant", "duplicated", "one_feature", "full_rank", "few_rows", "rank_deficient", "alone"],
)
def test_degenerate_data(case, constraint):
    X, groups = make_groups(d=5)
    ranks = [1, 2, 4, 5]
    if case == "constant":
        X = np.column_stack([X, np.full(len(X), 7.0), np.zeros(len(X))])
        ranks = [1, 3, 5, 6, 7]
    elif case == "duplicated":
        X = np.column_stack([X, X[:, :2]])
        ranks = [1, 3, 5, 6, 7]
    elif case == "one_feature":
        X, ranks = X[:, :1], [1]
    elif case == "full_rank":
        ranks = [5]
    elif case == "few_rows":
        X, groups = make_groups(n=(7, 4), d=20)
        ranks = [1, 3, 9, 10, 11]
    elif case == "rank_deficient":
        X = X @ np.random.default_rng(0).normal(size=(5, 9))
        ranks = [1, 4, 5, 7, 9]
    elif case == "alone":
        groups = np.where(np.arange(len(X)) == 0, "alone", "others")
    for r in ranks:
        fair = fit(X, groups, r, constraint=constraint)
        np.testing.assert_allclose(fair.components_ @ fair.components_.T, np.eye(r), atol=1e-10)
        scale = X.var(axis=0).sum()
        errors = list(group_reconstruction_errors(fair, X, groups).values())
        np.testing.assert_allclose(fair.group_errors_, errors, atol=1e-11 * scale)
        assert np.isfinite(fair.transform(X)).all()
        assert np.isfinite(fair.score(X))
        if constraint == "no_worse":
            assert fair.group_errors_.max() <= fair.pca_group_errors_.max() + 1e-11 * scale
        if r >= np.linalg.matrix_rank(X - X.mean(axis=0)):
            assert fair.status_ == "already fair"
            np.testing.assert_allclose(fair.group_errors_, 0, atol=1e-11 * scale)


def test_constant_data_are_already_fair():
    X = np.full((10, 3), 4.0)
    fair = fit(X, np.arange(10) % 2, 2)
    assert fair.status_ == "already fair"
    np.testing.assert_array_equal(fair.group_errors_, 0)
    np.testing.assert_array_equal(fair.explained_variance_ratio_, 0)


@pytest.mark.parametrize("fraction", [0.3, 0.6, 0.9, 0.999])
@pytest.mark.parametrize("constraint", ["parity", "no_worse"])
def test_fraction_of_every_groups_variance(two_groups, fraction, constraint):
    X, groups = two_groups
    fair = fit(X, groups, fraction, constraint=constraint)
    assert (fair.group_explained_variance_ratio_ >= fraction).all()
    for r in range(1, fair.n_components_):
        smaller = fit(X, groups, r, constraint=constraint)
        assert (smaller.group_explained_variance_ratio_ < fraction).any()


@QUIET
@pytest.mark.parametrize(
    "params",
    [
        {"constraint": "parity"},
        {"constraint": "no_worse"},
        {"max_disparity": 0.5},
        {"max_error_increase": 0.05},
        {"constraint": "parity", "relative_errors": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(2))
def test_fraction_skips_ranks_that_cannot_do(params, seed, monkeypatch):
    """The smallest rank of all, as when every rank is tried, at a part of the solves."""
    X, groups = make_groups(d=24, seed=seed, alike=0.3 * seed)
    X[groups == groups[0]] *= 1.6
    moments = GroupMoments.from_data(X, groups)
    solved = []

    def counted(problem, operand, rank, tol):
        solved.append(rank)
        return solve(problem, operand, rank, tol)

    monkeypatch.setattr(base, "solve", counted)
    quick = FairPCA(0.85, **params).fit(moments)
    n_quick = len(solved)
    for rank in range(1, 25):
        slow = FairPCA(rank, **params).fit(moments)
        if slow.group_explained_variance_ratio_.min() >= 0.85 - 1e-12:
            break
    assert quick.n_components_ == rank
    np.testing.assert_allclose(quick.group_errors_, slow.group_errors_)
    assert n_quick <= 2 + rank // 4


def test_fraction_is_kept_even_with_fewer_rows_than_features():
    rng = np.random.default_rng(3)
    X, groups = rng.normal(size=(5, 30)), ["a", "a", "b", "b", "b"]
    fair = FairPCA(0.95, alpha=0.5).fit(X, sensitive_features=groups)
    assert (fair.group_explained_variance_ratio_ >= 0.95).all()


def test_none_keeps_everything(two_groups):
    X, groups = two_groups
    fair = fit(X, groups)
    assert fair.n_components_ == 6
    np.testing.assert_allclose(fair.inverse_transform(fair.transform(X)), X, atol=1e-10)
    assert fit(X[:4], ["a", "b", "a", "b"]).n_components_ == 4


def test_a_fit_to_moments_is_a_fit_to_their_rows(two_groups):
    X, groups = two_groups
    whole = fit(X, groups, 2)
    moments = GroupMoments.from_data(X[:70], groups[:70]).merge(
        GroupMoments.from_data(X[70:], groups[70:])
    )
    merged = FairPCA(2).fit(moments)
    np.testing.assert_allclose(merged.components_, whole.components_, atol=1e-9)
    assert merged.n_features_in_ == 6
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = FairPCA(2).fit(GroupMoments.from_data(frame, groups))
    assert named.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_allclose(named.transform(frame), merged.transform(X), atol=1e-9)
    with pytest.raises(ValueError, match="hold the sensitive_features of their rows"):
        FairPCA(2).fit(moments, sensitive_features=groups)
    with pytest.raises(TypeError, match="merge moments"):
        FairPCA(2).partial_fit(moments)


@pytest.mark.parametrize(
    "form", [np.asarray, sp.csr_array, sp.csc_matrix, pd.DataFrame, pl.DataFrame]
)
def test_containers_give_the_same_fit(two_groups, form):
    X, groups = two_groups
    expected = fit(X, groups, 2)
    fair = fit(form(X), groups, 2)
    np.testing.assert_allclose(fair.components_, expected.components_, atol=1e-8)
    np.testing.assert_allclose(fair.transform(form(X)), expected.transform(X), atol=1e-8)
    np.testing.assert_allclose(fair.score(form(X)), expected.score(X))


def test_float32_in_float32_out(two_groups):
    X, groups = two_groups
    single = X.astype(np.float32)
    fair = fit(single, groups, 2)
    expected = fit(single.astype(np.float64), groups, 2)
    np.testing.assert_allclose(fair.group_errors_, expected.group_errors_, rtol=1e-12)
    assert abs(fair.disparity_) < 1e-12
    scores = fair.transform(single)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected.transform(single.astype(np.float64)), atol=1e-5)
    assert fair.inverse_transform(scores).dtype == np.float32


def test_input_is_not_modified(two_groups):
    X, groups = two_groups
    kept = X.copy()
    X.flags.writeable = False
    fit(X, groups, 2).transform(X)
    np.testing.assert_array_equal(X, kept)


def test_pickle_and_clone(two_groups):
    X, groups = two_groups
    fair = fit(X, groups, 2, max_disparity=0.1)
    again = pickle.loads(pickle.dumps(fair))
    np.testing.assert_array_equal(again.transform(X), fair.transform(X))
    fresh = clone(fair)
    assert fresh.get_params() == fair.get_params()
    with pytest.raises(NotFittedError):
        fresh.transform(X)
    half = FairPCA(2).partial_fit(X, sensitive_features=groups)
    np.testing.assert_allclose(
        pickle.loads(pickle.dumps(half)).components_, half.components_, atol=0
    )


def test_golden_is_close_to_exact(two_groups):
    X, groups = two_groups
    for constraint in ("parity", "no_worse"):
        exact = fit(X, groups, 2, constraint=constraint)
        golden = fit(X, groups, 2, constraint=constraint, solver="golden")
        assert abs(exact.disparity_) <= abs(golden.disparity_) + 1e-12
        np.testing.assert_allclose(golden.group_errors_, exact.group_errors_, rtol=1e-4)
        assert golden.n_eigensolves_ == 2 * 29 + 2
        assert np.isnan(golden.duality_gap_)
        assert exact.n_eigensolves_ < golden.n_eigensolves_


def test_budgets_keep_their_promise():
    """Without a constraint, also where c-FPCA would be capped before the budget is met."""
    met = 0
    for seed in range(6):
        X, groups = make_groups(seed=seed, alike=0.9)
        capped = fit(X, groups, 3, constraint="no_worse")
        budget = 0.5 * capped.disparity_
        if capped.status_ != "capped":
            continue
        fair = fit(X, groups, 3, constraint="parity", max_disparity=budget)
        if fair.status_ == "disparity budget met":
            met += 1
            assert fair.disparity_ == pytest.approx(budget, rel=1e-9)
        costly = fit(X, groups, 3, constraint="parity", max_error_increase=0.005)
        assert costly.reconstruction_error_ <= 1.005 * costly.pca_reconstruction_error_ + 1e-12
        assert_certified(costly)
    assert met >= 2


def test_levelling_down_warns_and_the_default_stops_before_it():
    X, groups = make_groups(seed=1, alike=0.9)
    efficient = FairPCA(3).fit(X, sensitive_features=groups)
    with pytest.warns(LevellingDownWarning, match="no group is better off") as caught:
        capped = FairPCA(3, constraint="no_worse").fit(X, sensitive_features=groups)
    assert caught[0].filename == __file__
    assert (efficient.status_, capped.status_) == ("worst-off group at its best", "capped")
    harmed = efficient.groups_.tolist().index(efficient.harmed_group_)
    assert efficient.group_errors_[harmed] < 0.99 * capped.group_errors_[harmed]
    assert (efficient.group_errors_ < capped.group_errors_).all()
    assert_certified(efficient)


def test_a_disparity_budget_out_of_efficient_reach_is_said():
    X, groups = make_groups(seed=1, alike=0.9)
    least = FairPCA(3).fit(X, sensitive_features=groups)
    with pytest.warns(ParityInfeasibleWarning, match="max_disparity=.* is not met"):
        stopped = FairPCA(3, max_disparity=0.5 * least.disparity_).fit(X, sensitive_features=groups)
    assert stopped.status_ == least.status_
    np.testing.assert_allclose(stopped.group_errors_, least.group_errors_)
    with pytest.warns(ParityInfeasibleWarning, match="max_disparity=0 is not met"):
        FairPCA(3, max_disparity=0).fit(X, sensitive_features=groups)


@pytest.mark.filterwarnings("ignore::fairpca.exceptions.LevellingDownWarning")
def test_a_disparity_budget_beyond_the_cap_is_said():
    X, groups = make_groups(seed=1, alike=0.9)
    capped = FairPCA(3, constraint="no_worse").fit(X, sensitive_features=groups)
    assert capped.status_ == "capped"
    with pytest.warns(ParityInfeasibleWarning, match="larger error than PCA's worst"):
        FairPCA(3, constraint="no_worse", max_disparity=0.5 * capped.disparity_).fit(
            X, sensitive_features=groups
        )


def test_infeasible_parity_warns_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    groups = np.arange(200) % 2 == 0
    X[groups] *= 4
    with (
        pytest.warns(LevellingDownWarning, match="no group is better off"),
        pytest.warns(ParityInfeasibleWarning, match="least possible") as caught,
    ):
        fair = FairPCA(1, constraint="parity").fit(X, sensitive_features=groups)
    assert [w.category for w in caught] == [ParityInfeasibleWarning, LevellingDownWarning]
    assert caught[0].filename == __file__
    with pytest.warns(LevellingDownWarning), pytest.warns(ParityInfeasibleWarning) as caught:
        FairPCA(1, constraint="parity").fit(fair.moments_)
    assert caught[0].filename == __file__
    assert fair.status_ == "parity infeasible at this rank"
    assert fair.alpha_ == 0
    assert_certified(fair)


def test_many_features():
    X, groups = make_groups(n=(150, 90), d=400, alike=0.5)
    fair = fit(X, groups, 4)
    assert_certified(fair)
    errors = list(group_reconstruction_errors(fair, X, groups).values())
    np.testing.assert_allclose(fair.group_errors_, errors, rtol=1e-9)
    small = fit(X, groups, 4, alpha=1.0)
    np.testing.assert_allclose(
        np.abs(small.components_), np.abs(PCA(4, svd_solver="full").fit(X).components_), atol=1e-6
    )


@cache
def one_large_feature(spread):
    """Rows and groups, their fit by dense matrices, and the singular values."""
    X, groups = make_groups((250, 150), d=620)
    X *= np.r_[spread, 10 * 0.9 ** np.arange(619)]
    with pytest.MonkeyPatch.context() as patch:
        growing_bases(patch, start=10**6)
        whole = FairPCA(4).fit(X, sensitive_features=groups)
    return X, groups, whole, np.linalg.svd(X - X.mean(axis=0), compute_uv=False)


@pytest.mark.parametrize("kind", ["matrices", "rows", "sparse"])
@pytest.mark.parametrize("spread", [1e3, 1e5])
def test_one_feature_of_far_larger_variance_hides_no_other(spread, kind, monkeypatch):
    """An income beside answers of yes and no: the search must not stop at what is little to it."""
    X, groups, whole, values = one_large_feature(spread)
    if kind != "matrices":
        products_only(monkeypatch)
    fair = FairPCA(4).fit(sp.csr_array(X) if kind == "sparse" else X, sensitive_features=groups)
    Z = X - X.mean(axis=0)
    assert fair.pca_reconstruction_error_ == pytest.approx(
        np.square(values[4:]).sum() / len(X), rel=1e-5
    )
    np.testing.assert_allclose(fair.group_errors_, whole.group_errors_, rtol=1e-5)
    left = Z - Z @ fair.components_.T @ fair.components_
    errors = [np.square(left[groups == g]).sum(axis=1).mean() for g in ("g0", "g1")]
    np.testing.assert_allclose(fair.group_errors_, errors, rtol=1e-5)


def test_a_group_at_the_mean_has_no_share_to_lose():
    """Its variance is rounding, and so would be a share of it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * [3, 2, 1, 0.3]
    groups = np.repeat(["a", "b", "at the mean"], [20, 34, 6])
    X[54:] = X[:54].mean(axis=0)
    X[54:] += 1e-16 * rng.normal(size=(6, 4))
    fair = FairPCA(2, relative_errors=True).fit(X + 0.1, sensitive_features=groups)
    assert fair.group_errors_[fair.groups_ == "at the mean"] == 0.0
    without = FairPCA(2, relative_errors=True).fit(X[:54] + 0.1, sensitive_features=groups[:54])
    np.testing.assert_allclose(fair.group_errors_[:1], without.group_errors_[:1], rtol=1e-6)
