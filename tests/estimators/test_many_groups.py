"""More than two groups: relative errors, certificates, and what must not matter."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from helpers.data import make_groups
from helpers.inside import (
    FairProblem,
    _solvers,
    growing_bases,
    products_only,
    solve_spread,
    solve_worst,
)
from helpers.many_groups import ESTIMATORS, QUIET, SIZES, open_gap, several
from sklearn.base import clone
from stress.oracles import Moments, Relaxation

from fairpca import (
    DualityGapWarning,
    FairPCA,
    GroupMoments,
    MinMaxPCA,
    ParityInfeasibleWarning,
    WelfarePCA,
    load_model,
    tradeoff_path,
)
from fairpca.baselines import MultiplicativeWeightsPCA, SubsetFairPCA
from fairpca.datasets import load_lfw, load_lsac, load_tcred
from fairpca.metrics import group_reconstruction_errors, reconstruction_disparity

# Relative errors


@QUIET
@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (FairPCA, SIZES),
        (MinMaxPCA, SIZES),
        (WelfarePCA, SIZES),
        (FairPCA, (90, 60)),
        (MinMaxPCA, (90, 60)),
        (WelfarePCA, (90, 60)),
        (SubsetFairPCA, (90, 60)),
    ],
)
def test_relative_errors_are_those_of_the_metrics(kind, sizes):
    X, groups = several(sizes)
    fair = kind(2, relative_errors=True).fit(X, sensitive_features=groups)
    errors = group_reconstruction_errors(fair, X, groups, relative_errors=True)
    np.testing.assert_allclose(list(errors.values()), fair.group_errors_, rtol=1e-9)
    np.testing.assert_allclose(1 - fair.group_errors_, fair.group_explained_variance_ratio_)
    overall = group_reconstruction_errors(fair, X, np.zeros(len(X)), relative_errors=True)[0.0]
    assert overall == pytest.approx(fair.reconstruction_error_)
    assert overall == pytest.approx(1 - fair.explained_variance_ratio_.sum())
    disparity = reconstruction_disparity(fair, X, groups, relative_errors=True)
    assert disparity == pytest.approx(abs(fair.disparity_), abs=1e-12)


@QUIET
@pytest.mark.parametrize("sizes", [(90, 60), SIZES])
def test_relative_pca_is_still_pca(sizes):
    X, groups = several(sizes)
    plain, relative = (
        FairPCA(2, relative_errors=flag).fit(X, sensitive_features=groups) for flag in (False, True)
    )
    variances = relative.moments_.second_moments().trace(axis1=1, axis2=2)
    np.testing.assert_allclose(
        relative.pca_group_errors_, plain.pca_group_errors_ / variances, rtol=1e-10
    )


def test_relative_parity_means_the_same_share_kept_whatever_a_groups_scale():
    X, groups = several()
    kept = FairPCA(3, constraint="parity", relative_errors=True).fit(X, sensitive_features=groups)
    assert kept.status_ == "parity reached"
    assert np.ptp(kept.group_explained_variance_ratio_) < 1e-10
    assert np.ptp(kept.moments_.second_moments().trace(axis1=1, axis2=2)) > 1.0
    constant = np.tile(kept.mean_, (2, 1))
    assert group_reconstruction_errors(kept, constant, [0, 1], relative_errors=True) == {
        0: 0.0,
        1: 0.0,
    }


# What must not matter


@QUIET
@pytest.mark.parametrize("name", ESTIMATORS)
def test_labels_and_the_order_of_groups_do_not_matter(name):
    X, groups = several()
    renamed = pd.Series(groups).map({"g0": "z", "g1": "b", "g2": "y", "g3": "a"}).to_numpy()
    first = ESTIMATORS[name].fit(X, sensitive_features=groups)
    errors = first.group_errors_
    second = ESTIMATORS[name].fit(X, sensitive_features=renamed)
    np.testing.assert_allclose(second.group_errors_[[3, 1, 2, 0]], errors, rtol=1e-8)
    assert second.harmed_group_ in "zbya"


@QUIET
@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - {"own means", "welfare"}))
def test_splitting_a_group_into_identical_parts_does_not_matter(name):
    X, groups = several()
    twice, labels = np.vstack([X, X]), np.concatenate([groups, groups])
    split = np.where((labels == "g1") & (np.arange(len(labels)) < len(X)), "g1 again", labels)
    first = ESTIMATORS[name].fit(twice, sensitive_features=labels)
    errors, overall, status = first.group_errors_, first.reconstruction_error_, first.status_
    second = ESTIMATORS[name].fit(twice, sensitive_features=split)
    np.testing.assert_allclose(second.group_errors_[[0, 1, 3, 4]], errors, rtol=1e-8)
    np.testing.assert_allclose(second.group_errors_[2], errors[1], rtol=1e-8)
    assert second.reconstruction_error_ == pytest.approx(overall, rel=1e-8)
    assert second.status_ == status


@QUIET
def test_two_groups_go_to_the_exact_solver():
    X, groups = several((90, 60))
    fair = FairPCA(2, constraint="parity").fit(X, sensitive_features=groups)
    assert 0 < fair.alpha_ <= 1
    assert fair.n_eigensolves_ < 20
    many = FairPCA(2, constraint="parity").fit(*(several()[:1]), sensitive_features=several()[1])
    assert np.isnan(many.alpha_)


REAL = {"TCRED": load_tcred, "LSAC": load_lsac, "LFW": load_lfw}


@pytest.fixture(scope="module")
def real_solvers():
    """Solvers for the paper's data and its two groups; one data set is kept at a time."""
    if not os.environ.get("FAIRPCA_DATA"):
        pytest.skip("FAIRPCA_DATA names no folder with the paper's data files")
    kept = {}

    def solver(name, rank):
        if name not in kept:
            data = REAL[name]()
            kept.clear()
            kept[name] = GroupMoments.from_data(data.data, data.sensitive_features)
        moments = kept[name]
        return moments, _solvers.spaces_of(moments.operand(), rank)

    return solver


@pytest.mark.slow
@QUIET
@pytest.mark.parametrize(
    ("name", "rank"),
    [("TCRED", 3), ("TCRED", 8), ("TCRED", 15), ("LSAC", 2), ("LSAC", 5), ("LSAC", 7), ("LFW", 5)],
)
def test_two_groups_of_the_paper_as_the_exact_solver_has_them(real_solvers, name, rank):
    moments, spaces = real_solvers(name, rank)
    unit = 1e-8 * spaces.traces.max()
    exact = FairPCA(rank, constraint="no_worse").fit(moments)
    dual = solve_spread(spaces, FairProblem(constraint="no_worse"))
    np.testing.assert_allclose(dual.errors, exact.group_errors_, atol=unit)
    exact = FairPCA(rank, constraint="parity").fit(moments)
    dual = solve_spread(spaces, FairProblem())
    np.testing.assert_allclose(dual.errors, exact.group_errors_, atol=unit)
    exact = MinMaxPCA(rank, center="overall").fit(moments)
    dual = solve_worst(spaces, "loss")
    np.testing.assert_allclose(dual.value, exact.group_losses_.max(), atol=unit)


# Unusual groups


@QUIET
@pytest.mark.parametrize("estimator", [FairPCA(3), MinMaxPCA(3)])
def test_fifty_groups(estimator):
    X, groups = several(tuple(range(20, 70)), d=8, apart=0.1)
    fair = estimator.fit(X, sensitive_features=groups)
    assert len(fair.groups_) == 50
    variance = fair.moments_.second_moments().trace(axis1=1, axis2=2).max()
    assert fair.duality_gap_ < 0.05 * variance
    if isinstance(estimator, FairPCA):
        assert fair.group_errors_.max() <= fair.pca_group_errors_.max() * (1 + 1e-9)
        assert fair.disparity_ < np.ptp(fair.pca_group_errors_)


@QUIET
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "own means"])
@pytest.mark.parametrize("case", ["single rows", "constant", "disjoint"])
def test_odd_groups(name, case):
    rng = np.random.default_rng(0)
    X, groups = several()
    if case == "single rows":
        X, groups = np.vstack([X, 2 * X[:2]]), np.append(groups, ["lonely", "alone"])
    elif case == "constant":
        X = X - X.mean(axis=0)
        X, groups = np.vstack([X, np.zeros((12, 6))]), np.append(groups, ["constant"] * 12)
    else:
        X, groups = np.zeros((90, 6)), np.repeat(["a", "b", "c"], [20, 30, 40])
        for g, label in enumerate("abc"):
            X[np.ix_(groups == label, [2 * g, 2 * g + 1])] = rng.normal(size=(20 + 10 * g, 2))
        X -= X.mean(axis=0)
    fair = ESTIMATORS[name].fit(X, sensitive_features=groups)
    relative = bool(fair.relative_errors)
    errors = group_reconstruction_errors(fair, X, groups, relative_errors=relative)
    np.testing.assert_allclose(list(errors.values()), fair.group_errors_, atol=1e-9)
    assert np.isfinite(fair.duality_gap_)
    np.testing.assert_allclose(fair.components_ @ fair.components_.T, np.eye(2), atol=1e-12)


# Many features


@QUIET
@pytest.mark.parametrize("name", ESTIMATORS)
def test_many_features_as_few(name, monkeypatch):
    """Eigenspaces in growing bases, and products without matrices, against dense matrices."""
    X, groups = several((70, 50, 40), d=70, apart=0.2)
    dense = clone(ESTIMATORS[name]).fit(X, sensitive_features=groups)
    growing_bases(monkeypatch, start=50)
    thin = clone(ESTIMATORS[name]).fit(X, sensitive_features=groups)
    products_only(monkeypatch, above=50)
    implicit = clone(ESTIMATORS[name]).fit(X, sensitive_features=groups)
    assert "moments_" not in vars(implicit)
    for other in (thin, implicit):
        assert other.status_ == dense.status_
        np.testing.assert_allclose(other.group_errors_, dense.group_errors_, rtol=1e-6)
        np.testing.assert_allclose(other.reconstruction_error_, dense.reconstruction_error_)


# Certificate and warnings


def test_an_open_gap_is_said_aloud():
    X, groups = open_gap()
    with pytest.warns(DualityGapWarning, match=r"duality_gap_ = [\d.]+") as caught:
        fair = MinMaxPCA(1).fit(X, sensitive_features=groups)
    assert f"{fair.duality_gap_:.3g}" in str(caught[0].message)
    assert caught[0].filename == __file__
    accepted = MinMaxPCA(1, tol=1.01 * fair.duality_gap_ / fair.group_losses_.max())
    accepted.fit(X, sensitive_features=groups)


def test_infeasible_parity_is_said_aloud():
    X, groups = several()
    X[groups == "g3"] *= 10
    with pytest.warns(ParityInfeasibleWarning, match="least possible"):
        fair = FairPCA(1, constraint="parity", tol=1.0).fit(X, sensitive_features=groups)
    assert fair.status_ == "parity infeasible at this rank"
    assert fair.disparity_ == pytest.approx(np.ptp(fair.group_errors_))
    assert fair.harmed_group_ == "g3"


def test_worst_case_is_the_least_worst_case():
    X, groups = several()
    worst = MinMaxPCA(2, criterion="error", center="overall").fit(X, sensitive_features=groups)
    assert worst.group_weights_.sum() == pytest.approx(1.0)
    for other in (FairPCA(2), MinMaxPCA(2), MinMaxPCA(2, criterion="variance")):
        other.fit(X, sensitive_features=groups)
        assert worst.group_errors_.max() <= other.group_errors_.max() + 1e-9
    published = MultiplicativeWeightsPCA(2, criterion="error", center="overall", n_iter=200)
    published.fit(X, sensitive_features=groups)
    bound = published.group_errors_.max() - published.duality_gap_
    assert bound <= worst.group_errors_.max() <= published.group_errors_.max() + 1e-9


# Path


@QUIET
@pytest.mark.parametrize("relative_errors", [False, True])
def test_path_of_many_groups(relative_errors):
    X, groups = several()
    path = tradeoff_path(X, groups, n_components=2, n_points=6, relative_errors=relative_errors)
    assert path.group_errors.shape == (6, 4)
    np.testing.assert_allclose(np.diff(path.disparity, 2), 0.0, atol=1e-7)
    assert (np.diff(path.reconstruction_error) >= -1e-8).all()
    np.testing.assert_allclose(np.ptp(path.group_errors, axis=1), path.disparity)
    fair = FairPCA(2, constraint="parity", relative_errors=relative_errors).fit(
        X, sensitive_features=groups
    )
    assert path.disparity[-1] == pytest.approx(fair.disparity_, abs=1e-8)
    np.testing.assert_allclose(path.group_errors[0], fair.pca_group_errors_)
    budget = FairPCA(
        2, constraint="parity", relative_errors=relative_errors, max_disparity=path.disparity[3]
    )
    budget.fit(X, sensitive_features=groups)
    assert budget.reconstruction_error_ == pytest.approx(path.reconstruction_error[3], rel=1e-6)


def test_path_with_an_open_gap_warns():
    X, groups = open_gap()
    with pytest.warns(DualityGapWarning, match="points of the frontier") as caught:
        path = tradeoff_path(X, groups, n_components=1, n_points=4)
    assert f"{path.duality_gap.max():.3g}" in str(caught[0].message)


def test_alpha_one_is_pca_and_less_needs_two_groups():
    X, groups = several()
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    pca = FairPCA(2, alpha=1).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(pca.group_errors_, fair.pca_group_errors_, rtol=1e-12)
    assert pca.disparity_ == pytest.approx(np.ptp(fair.pca_group_errors_))
    ignoring = FairPCA(2, alpha=0.5, min_group_size=50, small_groups="ignore")
    with pytest.raises(ValueError, match="holds 4"):
        ignoring.fit(X, sensitive_features=groups)


def test_efficient_fairness_has_two_gaps(tmp_path):
    pytest.importorskip("safetensors")
    X, groups = several(SIZES)
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    assert fair.status_ in ("parity reached", "worst-off group at its best")
    assert fair.group_errors_.max() <= fair.pca_group_errors_.max()
    for gap in (fair.duality_gap_, fair.error_gap_):
        assert 0 <= gap <= 1e-4 * fair.reconstruction_error_
    blocks = FairPCA(2)
    for rows in np.array_split(np.arange(len(X)), 3):
        blocks.partial_fit(X[rows], sensitive_features=groups[rows])
    assert blocks.error_gap_ == pytest.approx(fair.error_gap_, abs=1e-5)
    fair.save(tmp_path / "fair.safetensors")
    assert load_model(tmp_path / "fair.safetensors").error_gap_ == fair.error_gap_
    two = FairPCA(2).fit(X, sensitive_features=groups == groups[0])
    assert not hasattr(two, "error_gap_")


@QUIET
@pytest.mark.parametrize(
    "options", [{}, {"max_error_increase": 0.02}, {"max_group_increase": 0.05}], ids=str
)
@pytest.mark.parametrize("seed", range(4))
def test_the_gap_of_efficient_fits_is_about_the_largest_error_of_the_groups_compared(seed, options):
    """Ignored groups count in the overall error only: of that ``error_gap_`` speaks."""
    X, groups = make_groups((90, 60, 70, 20), seed=seed)
    ignoring = {"min_group_size": 30, "small_groups": "ignore"}
    fair = FairPCA(2, **options, **ignoring).fit(X, sensitive_features=groups)
    relaxed = Relaxation(Moments.of_rows(X, groups), 2, compared=fair.group_sizes_ >= 30)
    worst = float(fair.group_errors_[:3].max())
    limits = []
    if "max_error_increase" in options:
        limits.append((relaxed.overall, 1.02 * fair.pca_reconstruction_error_))
    if "max_group_increase" in options:
        limits += zip(np.eye(4, 6)[:3], 1.05 * fair.pca_group_errors_, strict=False)
    low, high = (value * relaxed.scale for value in relaxed.least(relaxed.worst, *limits))
    assert worst - fair.duality_gap_ <= high * (1 + 1e-7)
    assert worst >= low * (1 - 1e-7)
    limits.append((relaxed.worst, worst))
    high = relaxed.least(relaxed.overall, *limits)[1] * relaxed.scale
    assert fair.reconstruction_error_ - fair.error_gap_ <= high * (1 + 1e-7)
