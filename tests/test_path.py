"""The trade-off path."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.data import make_groups
from sklearn.decomposition import PCA
from sklearn.model_selection import PredefinedSplit

from fairpca import FairPCA, GroupMoments, tradeoff_path
from fairpca.exceptions import quietly
from fairpca.metrics import row_reconstruction_errors


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("d", "r"), [(6, 2), (310, 3)])
def test_frontier(seed, d, r):
    X, groups = make_groups(d=d, seed=seed, alike=0.5)
    path = tradeoff_path(X, groups, n_components=r, n_points=12)
    assert path.alpha[0] == 1.0
    assert (np.diff(path.alpha) <= 1e-12).all()
    assert (np.diff(path.reconstruction_error) >= -1e-9).all()
    np.testing.assert_allclose(
        path.disparity, np.linspace(path.disparity[0], path.disparity[-1], 12), atol=1e-9
    )
    shares = np.array([90, 60]) / 150
    np.testing.assert_allclose(path.group_errors @ shares, path.reconstruction_error)
    pca = FairPCA(r, alpha=1.0).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(path.group_errors[0], pca.group_errors_, rtol=1e-9)
    assert (path.privileged_group, path.harmed_group) == (pca.privileged_group_, pca.harmed_group_)
    with quietly():
        fair = FairPCA(r, constraint="parity").fit(X, sensitive_features=groups)
    assert path.parity_reached == (fair.status_ == "parity reached")
    assert path.parity_reached == (d == 6)
    np.testing.assert_allclose(path.group_errors[-1], fair.group_errors_, rtol=1e-8)
    budget = FairPCA(r, constraint="parity", max_disparity=path.disparity[5])
    budget.fit(X, sensitive_features=groups)
    assert path.reconstruction_error[5] == pytest.approx(budget.reconstruction_error_, rel=1e-9)
    centred = X - X.mean(axis=0)
    for i in (0, 4, 11):
        W = path.components[i]
        rest = np.sum((centred - centred @ W.T @ W) ** 2, axis=1)
        errors = [rest[groups == g].mean() for g in path.groups]
        np.testing.assert_allclose(path.group_errors[i], errors, rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_methods_are_marked_and_efficient_points_told_apart(seed):
    X, groups = make_groups(d=6, seed=seed, alike=0.9)
    path = tradeoff_path(X, groups, n_components=3, n_points=9)
    constraints = {"efficient": "efficient", "c-FPCA": "no_worse", "u-FPCA": "parity"}
    for name, constraint in constraints.items():
        with quietly():
            fair = FairPCA(3, constraint=constraint).fit(X, sensitive_features=groups)
        mark = path.marks[name]
        np.testing.assert_allclose(mark.group_errors, fair.group_errors_, rtol=1e-9)
        assert mark.reconstruction_error == pytest.approx(fair.reconstruction_error_)
        assert mark.disparity == pytest.approx(fair.disparity_, abs=1e-9)
    assert path.marks["PCA"].disparity == path.disparity[0]
    before = path.disparity >= path.marks["efficient"].disparity - 1e-9
    np.testing.assert_array_equal(path.efficient, before)
    assert path.efficient.any()
    assert not path.efficient.all()


def test_moments_instead_of_data(two_groups):
    X, groups = two_groups
    moments = GroupMoments.from_data(X, groups)
    left = tradeoff_path(moments, n_components=2, n_points=5)
    right = tradeoff_path(X, groups, n_components=2, n_points=5)
    np.testing.assert_array_equal(left.group_errors, right.group_errors)


def test_already_fair_and_infeasible_ends():
    X, groups = make_groups(d=4)
    full = tradeoff_path(X, groups, n_components=4, n_points=3)
    np.testing.assert_allclose(full.reconstruction_error, 0, atol=1e-12)
    X = np.random.default_rng(0).normal(size=(100, 3))
    groups = np.arange(100) % 4 == 0
    X[groups] *= 5
    path = tradeoff_path(X, groups, n_components=1, n_points=4)
    assert not path.parity_reached
    assert path.disparity[-1] > 0
    assert path.alpha[-1] == 0


def test_small_groups_are_left_out_or_refused():
    X, groups = make_groups(d=4)
    names = np.where(np.arange(len(X)) < 7, "tiny", groups)
    path = tradeoff_path(
        X, names, n_components=2, n_points=3, min_group_size=8, small_groups="ignore"
    )
    assert path.groups.tolist() == [*np.unique(groups).tolist(), "tiny"]
    gap = path.group_errors[:, 0] - path.group_errors[:, 1]
    np.testing.assert_allclose(np.abs(gap), np.abs(path.disparity), atol=1e-12)
    fair = FairPCA(2, constraint="parity", min_group_size=8, small_groups="ignore")
    fair.fit(X, sensitive_features=names)
    assert path.reconstruction_error[-1] == pytest.approx(fair.reconstruction_error_)
    with pytest.raises(ValueError, match=r"'tiny' \(7 rows\)"):
        tradeoff_path(X, names, n_components=2, min_group_size=8)
    with pytest.raises(ValueError, match=r"small_groups.*'drop'"):
        tradeoff_path(X, names, n_components=2, small_groups="drop")


def test_refusals(two_groups):
    X, groups = two_groups
    with pytest.raises(TypeError, match="sensitive_features is missing"):
        tradeoff_path(X, n_components=2)
    with pytest.raises(ValueError, match="one group only"):
        tradeoff_path(X, np.zeros(len(X)), n_components=2)
    for bad in (0, 7, 1.5):
        with pytest.raises(ValueError, match=f"n_components={bad}"):
            tradeoff_path(X, groups, n_components=bad)
    with pytest.raises(ValueError, match="n_points=1"):
        tradeoff_path(X, groups, n_components=2, n_points=1)


@pytest.mark.parametrize("sizes", [(90, 60), (90, 60, 50)])
def test_held_out_points_are_those_of_the_folds(sizes):
    X, g = make_groups(sizes, d=5)
    cv = PredefinedSplit(np.arange(len(X)) % 3)
    path = tradeoff_path(X, g, n_components=2, n_points=4, cv=cv)
    held_out = path.held_out
    assert held_out.group_errors.shape == path.group_errors.shape
    np.testing.assert_allclose(
        held_out.group_errors @ np.bincount(np.unique(g, return_inverse=True)[1]) / len(X),
        held_out.reconstruction_error,
    )
    np.testing.assert_allclose(held_out.changes, held_out.group_errors - held_out.group_errors[0])
    for values, interval in (
        (held_out.group_errors, held_out.group_errors_interval),
        (held_out.disparity, held_out.disparity_interval),
        (held_out.reconstruction_error, held_out.reconstruction_error_interval),
        (held_out.changes[1:], held_out.changes_interval[1:]),
    ):
        assert (interval[..., 0] < values).all()
        assert (values < interval[..., 1]).all()
    errors = []
    for train, test in cv.split():
        pca = PCA(2).fit(X[train])
        errors.append(((X[test] - pca.inverse_transform(pca.transform(X[test]))) ** 2).sum(1))
    assert held_out.reconstruction_error[0] == pytest.approx(np.concatenate(errors).mean())
    assert list(held_out.marks) == list(path.marks)
    for name, point in (("PCA", 0), ("u-FPCA", -1)):
        mark = held_out.marks[name]
        np.testing.assert_array_equal(mark.group_errors, held_out.group_errors[point])
        assert mark.disparity == held_out.disparity[point]
        assert mark.reconstruction_error == held_out.reconstruction_error[point]
    errors = np.empty(len(X))
    for train, test in cv.split():
        alpha = path.marks["efficient"].alpha if len(sizes) == 2 else None
        fair = FairPCA(2, alpha=alpha, tol=1e-3).fit(X[train], sensitive_features=g[train])
        errors[test] = row_reconstruction_errors(fair, X[test])
    expected = [errors[g == label].mean() for label in path.groups]
    np.testing.assert_allclose(held_out.marks["efficient"].group_errors, expected, rtol=1e-3)
    if len(sizes) == 2:
        fair = FairPCA(2, alpha=path.alpha[2])
        errors = [
            row_reconstruction_errors(fair.fit(X[a], sensitive_features=g[a]), X[b])
            for a, b in cv.split()
        ]
        assert np.concatenate(errors).mean() == pytest.approx(held_out.reconstruction_error[2])


def test_held_out_needs_folds():
    X, g = make_groups()
    with pytest.raises(ValueError, match="folds"):
        tradeoff_path(GroupMoments.from_data(X, g), n_components=2, cv=3)
    with pytest.raises(ValueError, match=r"'cv' parameter .* Got 1"):
        tradeoff_path(X, g, n_components=2, cv=1)
    with pytest.raises(ValueError, match=r"'cv' parameter .* Got 'ten'"):
        tradeoff_path(X, g, n_components=2, cv="ten")
    moments = GroupMoments.from_data(X, g, folds=3)
    assert tradeoff_path(moments, n_components=2, n_points=2, cv=3).held_out is not None
    assert tradeoff_path(moments, n_components=2, n_points=2).held_out is None


def test_held_out_figures_stay_possible():
    rng = np.random.default_rng(0)
    X, groups = rng.standard_t(2.1, (24, 4)) * [4, 3, 2, 1], np.repeat(["a", "b"], [14, 10])
    found = tradeoff_path(X, groups, n_components=2, n_points=4, cv=3, random_state=0).held_out
    assert (found.group_errors_interval >= 0).all()
    errors = found.group_errors[0]
    assert (found.changes_interval[..., 0] >= -errors).all()
    wide = found.changes_interval[..., 1] - found.changes
    assert (found.changes - wide < -errors).any()  # so the limit is needed here


def test_the_repr_leads_with_held_out_rows():
    X, g = make_groups((60, 40))
    path = tradeoff_path(X, g, n_components=2, n_points=3, cv=3, random_state=0)
    lines = repr(path).splitlines()
    for first, marks in ((3, path.held_out.marks), (9, path.marks)):
        for line, (name, mark) in zip(lines[first : first + 4], marks.items(), strict=True):
            shown, D, R, _, _, *errors = line.replace("\N{MINUS SIGN}", "-").split()
            assert shown == name
            expected = [mark.disparity, mark.reconstruction_error, *mark.group_errors]
            assert [float(figure) for figure in (D, R, *errors)] == pytest.approx(expected, 0.01)


def test_standardised():
    X, g = make_groups((60, 40))
    X = X * np.logspace(0, 3, X.shape[1])
    path = tradeoff_path(X, g, n_components=2, n_points=3, standardize=True)
    scaled = tradeoff_path(X / X.std(axis=0), g, n_components=2, n_points=3)
    np.testing.assert_allclose(path.group_errors, scaled.group_errors, rtol=1e-9)


def test_as_a_data_frame():
    pytest.importorskip("pandas")
    X, g = make_groups((60, 40))
    path = tradeoff_path(X, g, n_components=2, n_points=3, cv=3)
    frame = path.to_frame()
    np.testing.assert_array_equal(frame["disparity"], path.disparity)
    for i, label in enumerate(path.groups.tolist()):
        np.testing.assert_array_equal(frame[f"group_errors_{label}"], path.group_errors[:, i])
        held_out = frame[f"held_out_group_errors_{label}"]
        np.testing.assert_array_equal(held_out, path.held_out.group_errors[:, i])


def test_held_out_points_and_marks_share_the_searches_of_a_fold(monkeypatch):
    # Groups that differ by chance only: c-FPCA ends where u-FPCA does, but for rounding.
    rng, calls, eigh = np.random.default_rng(2), [], np.linalg.eigh
    X, groups = rng.normal(size=(360, 10)), np.repeat(np.arange(6), 60)
    monkeypatch.setattr(np.linalg, "eigh", lambda M: calls.append(len(M)) or eigh(M))
    with quietly():
        path = tradeoff_path(X, groups, n_components=4, n_points=4, cv=3)
    ends = [path.held_out.marks[name].disparity for name in ("c-FPCA", "u-FPCA")]
    assert ends[0] == pytest.approx(ends[1], rel=1e-3)
    assert ends[1] == pytest.approx(path.held_out.disparity[-1])
    assert len(calls) <= 8000  # about 6,000


@pytest.mark.parametrize("limit", ["3 %", True, -0.1, float("nan")])
def test_bad_limits_are_named(limit):
    X, groups = make_groups()
    with pytest.raises(ValueError, match="max_group_increase"):
        tradeoff_path(X, groups, n_components=2, max_group_increase=limit)
