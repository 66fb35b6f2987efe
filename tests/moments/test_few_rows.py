"""Few rows of many columns: kept instead of matrices, with the same results."""

from __future__ import annotations

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import assert_same, make_groups
from helpers.inside import FewRows, few_rows, operand

from fairpca import (
    BlindPCA,
    FairPCA,
    FairPCACV,
    FairPLS,
    GroupMoments,
    MinMaxPCA,
    audit,
    tradeoff_path,
)
from fairpca.baselines import SubsetFairPCA
from fairpca.exceptions import quietly
from fairpca.metrics import group_reconstruction_errors

D = 60


def wide(n=(9, 6), d=D, seed=0, apart=3.0):
    """Fewer rows than half of the columns, far from the origin, with groups apart."""
    X, groups = make_groups(n, d, seed)
    return X + apart * (groups == "g1")[:, None] * np.linspace(0, 1, d) + 1e5, groups


@pytest.fixture(autouse=True)
def few_from_small_tables(monkeypatch):
    monkeypatch.setattr(few_rows, "FEW_FEATURES", 7)


def dense(X, groups, weights=None):
    """Moments of the same rows with matrices."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_rows, "FEW_FEATURES", np.inf)
        return GroupMoments.from_data(X, groups, weights)


def keeps_rows(moments):
    return isinstance(moments._sums, FewRows)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_moments_are_those_of_matrices(make, weighted):
    X, groups = wide(apart=1e3)
    weights = np.arange(len(X)) % 4 * 0.5 if weighted else None
    moments, expected = GroupMoments.from_data(make(X), groups, weights), dense(X, groups, weights)
    assert keeps_rows(moments)
    assert not keeps_rows(expected)
    assert_same(moments, expected, rtol=1e-11)
    for center in ("overall", "group"):
        ours, theirs = moments.operand(center), expected.operand(center)
        V = np.random.default_rng(0).normal(size=(D, 3))
        scale = theirs.traces.max()
        np.testing.assert_allclose(ours.products(V), theirs.products(V), atol=1e-10 * scale)
        np.testing.assert_allclose(ours.matrices, theirs.matrices, atol=1e-11 * scale)
        by_column = [m.group_sums().lost(V, V.T, m.mean) for m in (moments, expected)]
        np.testing.assert_allclose(*by_column, rtol=1e-9, atol=1e-9 * scale)
        axes = ours.frame.axes
        np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-12)
    for left, right in zip(moments.variances(), expected.variances(), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-9)


@pytest.mark.parametrize("sizes", [[15], [1] * 15, [4, 11], [2, 0, 5, 8]])
def test_merged_in_any_order_also_beyond_few(sizes):
    X, groups = wide()
    more, other_groups = wide((40, 30, 10), seed=1)  # too many to be kept
    updated, merged = GroupMoments(), GroupMoments()
    for rows in np.split(np.arange(len(X)), np.cumsum(sizes)[:-1]):
        if len(rows):
            updated.update(X[rows], groups[rows])
            merged = GroupMoments.from_data(X[rows], groups[rows]).merge(merged)
    expected = dense(X, groups)
    for moments in (updated, merged):
        assert keeps_rows(moments)
        assert_same(moments, expected, rtol=1e-10)
        both = moments.merge(GroupMoments.from_data(more, other_groups))
        assert not keeps_rows(both)
        everything = dense(np.vstack([X, more]), np.concatenate([groups, other_groups]))
        assert_same(both, everything, rtol=1e-10)
        assert_same(moments, expected, rtol=1e-10)  # as it was


def test_renamed_divided_and_copied():
    X, groups = wide((6, 5, 4))
    moments, expected = GroupMoments.from_data(X, groups), dense(X, groups)
    names = {"g2": "g1"}
    assert_same(moments.renamed(names), expected.renamed(names), rtol=1e-10)
    scale = np.sqrt(np.add(*expected.variances()))
    np.testing.assert_allclose(np.sqrt(np.add(*moments.variances())), scale, rtol=1e-10)
    assert_same(moments.divided(scale), expected.divided(scale), rtol=1e-9)
    for twin in (copy.copy(moments), copy.deepcopy(moments), pickle.loads(pickle.dumps(moments))):
        assert_same(twin, expected, rtol=1e-10)
        twin.update(X[:3], groups[:3])
        assert moments.counts.sum() == 15


def test_no_row_of_the_data_is_pickled():
    X, groups = wide()
    again = pickle.loads(pickle.dumps(FairPCA(2).fit(X, sensitive_features=groups)))
    F, codes = again.moments_._sums.factor, again.moments_._sums.codes
    for g, label in enumerate(again.groups_):
        own = X[groups == label]
        centred = own - own.mean(axis=0)
        cosines = (F[codes == g] / np.linalg.norm(F[codes == g], axis=1, keepdims=True) @ centred.T
                   ) / np.linalg.norm(centred, axis=1)  # fmt: skip
        assert np.abs(cosines[:-2]).max() < 0.999
    again.partial_fit(X, sensitive_features=groups)


@pytest.mark.parametrize(
    "estimator",
    [
        FairPCA(3, constraint="parity"),
        FairPCA(3, constraint="no_worse", relative_errors=True),
        FairPCA(0.8, constraint="parity"),
        FairPCA(None),
        FairPCA(2, max_error_increase=0.1),
        FairPCA(2, alpha=0.7),
        FairPCA(2, constraint="parity", solver="golden"),
        MinMaxPCA(2),
        MinMaxPCA(2, center="group"),
        SubsetFairPCA(2),
    ],
    ids=repr,
)
def test_fits_are_those_with_matrices(estimator):
    X, groups = wide()
    ours = copy.deepcopy(estimator).fit(X, sensitive_features=groups)
    theirs = copy.deepcopy(estimator).fit(dense(X, groups))
    assert ours.status_ == theirs.status_
    scale = float(theirs.moments_.operand().traces.max())
    np.testing.assert_allclose(ours.group_errors_, theirs.group_errors_, atol=1e-8 * scale)
    if not ours.relative_errors:
        measured = list(group_reconstruction_errors(ours, X, groups).values())
        np.testing.assert_allclose(ours.group_errors_, measured, atol=1e-8 * scale)
    np.testing.assert_allclose(
        ours.explained_variance_, theirs.explained_variance_, atol=1e-7 * scale
    )
    r = ours.n_components_
    assert ours.components_.shape == (r, D)
    np.testing.assert_allclose(ours.components_ @ ours.components_.T, np.eye(r), atol=1e-10)
    np.testing.assert_allclose(ours.duality_gap_, theirs.duality_gap_, atol=1e-9 * scale)
    np.testing.assert_allclose(ours.mean_, theirs.mean_)
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_, abs=1e-9 * scale)


@pytest.mark.parametrize(
    "estimator",
    [
        BlindPCA(2),
        BlindPCA(2, max_mean_gap=5.0),
        BlindPCA(2, notion="equal_opportunity"),
        FairPLS(2, notion=None),
        FairPLS(2, notion="demographic_parity"),
        FairPLS(2, notion="demographic_parity", max_mean_gap=5.0),
    ],
    ids=repr,
)
def test_blind_and_supervised_fits_are_those_with_matrices(estimator, monkeypatch):
    X, groups = wide((16, 11))
    y = (X[:, 0] + X[:, 5] > np.median(X[:, 0] + X[:, 5])).astype(int)
    ours = copy.deepcopy(estimator).fit(X, y, sensitive_features=groups)
    assert keeps_rows(ours.moments_)
    monkeypatch.setattr(few_rows, "FEW_FEATURES", np.inf)
    theirs = copy.deepcopy(estimator).fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(ours.group_errors_, theirs.group_errors_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(ours.components_ @ theirs.components_.T), np.eye(2),
                               atol=1e-5)  # fmt: skip


@pytest.mark.parametrize("n", [(11, 8), (7, 6, 6), (16, 11)])  # the last are few only by fold
def test_cross_validated_choice_is_that_with_matrices(n, monkeypatch):
    X, groups = wide(n)
    estimator = FairPCACV(2, cv=3)
    with quietly():
        ours = copy.deepcopy(estimator).fit(X, sensitive_features=groups)
        monkeypatch.setattr(few_rows, "FEW_FEATURES", np.inf)
        theirs = copy.deepcopy(estimator).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(
        ours.held_out_group_errors_, theirs.held_out_group_errors_, rtol=1e-6
    )
    np.testing.assert_allclose(ours.group_errors_, theirs.group_errors_, rtol=1e-5)


def test_three_groups_path_and_audit():
    X, groups = wide((8, 6, 5))
    ours = tradeoff_path(X, groups, n_components=2, n_points=4)
    theirs = tradeoff_path(dense(X, groups), n_components=2, n_points=4)
    scale = theirs.group_errors.max()
    np.testing.assert_allclose(ours.group_errors, theirs.group_errors, atol=1e-5 * scale)
    assert ours.components.shape == (4, 2, D)
    small = {"n_points": 3, "cv": 2, "ranks": [1, 2]}
    X, groups = wide((12, 9))
    audited = audit(FairPCA(2, constraint="parity"), X, groups, **small)
    fair = FairPCA(2, constraint="parity").fit(dense(X, groups))
    assert audited.fit.status == fair.status_
    assert audited.fit.alpha == pytest.approx(fair.alpha_, rel=1e-8)


def test_unusable_rows_are_refused_by_their_place():
    X, groups = wide()
    X[5, 7] = np.nan
    with pytest.raises(ValueError, match="NaN in column 7, first in row 5"):
        FairPCA(2).fit(X, sensitive_features=groups)
    X[5, 7] = 1e200
    with pytest.raises(ValueError, match="overflow"):
        GroupMoments.from_data(X, groups)


@pytest.mark.parametrize("n_columns", [20_000, 200_000])
def test_memory_is_that_of_the_rows(n_columns):
    X = np.random.default_rng(0).normal(size=(4, n_columns))
    X[1::2] *= 2
    groups = ["a", "b"] * 2
    tracemalloc.start()
    fair = FairPCA(2, constraint="parity").fit(X, sensitive_features=groups)
    streamed = FairPCA(2, constraint="parity")
    for i in range(4):
        streamed.partial_fit(X[i : i + 1], sensitive_features=groups[i : i + 1])
    np.testing.assert_allclose(streamed.group_errors_, fair.group_errors_, rtol=1e-8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * X.nbytes
    assert fair.status_ == "parity reached"


def test_an_audit_forms_no_matrix_of_features(monkeypatch):
    X, groups = wide((8, 7))
    for module in (operand, few_rows):
        monkeypatch.setattr(module, "refuse_large_matrices", pytest.fail)
    audited = audit(FairPCA(2), X, groups, n_points=3, cv=2, ranks=[1, 2])
    assert audited.path.components.shape == (3, 2, D)


def test_without_memory_it_is_refused_with_the_figure(monkeypatch):
    X, groups = wide()
    monkeypatch.setattr(operand, "free_memory", lambda: 8e3)
    with pytest.raises(MemoryError, match="15 rows of 60 columns"):
        FairPCA(2).fit(X, sensitive_features=groups)


def test_free_memory_is_known_here():
    assert 0 < operand.free_memory() < np.inf
