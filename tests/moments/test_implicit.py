"""Products formed from X give what matrices give, and very many features form no matrix."""

import pickle
import tracemalloc
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.data import make_groups
from helpers.inside import (
    FrameRows,
    ImplicitMoments,
    _solvers,
    advice,
    as_rows,
    few_rows,
    operand,
    products_only,
)
from helpers.inside import implicit as implicit_moments
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fairpca import FairPCA, GroupMoments, MinMaxPCA, WelfarePCA, tradeoff_path
from fairpca.baselines import MultiplicativeWeightsPCA

D = 60


@pytest.fixture
def data():
    X, groups = make_groups((190, 120), d=D)
    X *= np.arange(1, D + 1) ** -0.8
    X[np.abs(X) < 0.3] = 0.0
    X[groups == "g1"] *= 0.9
    return X, groups


@pytest.fixture
def no_matrices(monkeypatch):
    products_only(monkeypatch)


def in_a_file(X, folder):
    stored = np.memmap(folder / "X", X.dtype, "w+", shape=X.shape)
    stored[:] = X
    return stored


KINDS = {
    "array": lambda X, folder: X,
    "columns first": lambda X, folder: np.asfortranarray(X),
    "memory map": in_a_file,
    "csr": lambda X, folder: sp.csr_array(X),
    "csc matrix": lambda X, folder: sp.csc_matrix(X),
    "frame": lambda X, folder: pd.DataFrame(X, columns=[f"c{j}" for j in range(D)]),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("center", ["overall", "group"])
def test_products_and_traces(center, kind, weighted, data, tmp_path, monkeypatch):
    monkeypatch.setattr(implicit_moments, "ENTRIES_AT_A_TIME", 64 * D)
    X, groups = data
    weights = np.arange(len(X)) % 4 * 0.5 if weighted else None
    expected = GroupMoments.from_data(X, groups, weights)
    implicit = ImplicitMoments(as_rows(KINDS[kind](X, tmp_path)), groups, weights)
    np.testing.assert_allclose(implicit.means, expected.means, atol=1e-12)
    np.testing.assert_allclose(implicit.mean, expected.mean, atol=1e-12)
    np.testing.assert_array_equal(implicit.counts, expected.counts)
    np.testing.assert_allclose(implicit.weights, expected.weights)
    assert implicit.groups.tolist() == expected.groups.tolist()
    operand, dense = implicit.operand(center), expected.operand(center)
    V = np.random.default_rng(0).normal(size=(D, 5))
    np.testing.assert_allclose(operand.traces, dense.traces, rtol=1e-12)
    np.testing.assert_allclose(operand.products(V), dense.products(V), atol=1e-10)
    np.testing.assert_allclose(operand.shares, dense.shares)


@pytest.mark.parametrize("constraint", ["no_worse", "parity"])
@pytest.mark.parametrize("kind", KINDS)
def test_fit_equals_the_fit_with_matrices(kind, constraint, data, tmp_path, monkeypatch):
    X, groups = data
    given = KINDS[kind](X, tmp_path)
    expected = FairPCA(3, constraint=constraint).fit(X, sensitive_features=groups)
    products_only(monkeypatch)
    fair = FairPCA(3, constraint=constraint).fit(given, sensitive_features=groups)
    assert fair.status_ == expected.status_
    assert fair.alpha_ == pytest.approx(expected.alpha_, abs=1e-6)
    np.testing.assert_allclose(fair.group_errors_, expected.group_errors_, rtol=1e-10)
    np.testing.assert_allclose(fair.components_, expected.components_, atol=1e-7)
    np.testing.assert_allclose(fair.explained_variance_, expected.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(fair.transform(given), expected.transform(X), atol=1e-5)
    assert abs(fair.duality_gap_) < 1e-9 * fair.reconstruction_error_


SEVERAL = {
    "no worse": FairPCA(3),
    "parity": FairPCA(3, constraint="parity"),
    "disparity budget": FairPCA(3, max_disparity=0.1),
    "relative": FairPCA(3, relative_errors=True),
    "ignored": FairPCA(3, min_group_size=60, small_groups="ignore"),
    "merged": FairPCA(3, min_group_size=90, small_groups="merge"),
    "loss": MinMaxPCA(3),
    "own means": MinMaxPCA(3, center="group", relative_errors=True),
    "weights": MultiplicativeWeightsPCA(3, center="overall"),
    "nash": WelfarePCA(3, center="group"),
}


@cache
def fit_several(name):
    X, groups = make_groups((190, 120, 80, 50), d=80)
    X *= np.arange(1, 81) ** -0.8
    return X, groups, clone(SEVERAL[name]).fit(X, sensitive_features=groups)


@pytest.mark.filterwarnings("ignore::fairpca.DualityGapWarning")
@pytest.mark.parametrize("make", [sp.csr_array, np.asarray])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_groups(name, make, monkeypatch):
    """On a basis that grows from products alone, as on matrices."""
    X, groups, expected = fit_several(name)
    products_only(monkeypatch)
    fair = clone(SEVERAL[name]).fit(make(X), sensitive_features=groups)
    near = 1e-6 * (1.0 if expected.relative_errors else X.var(axis=0).sum())
    assert fair.status_ == expected.status_
    assert fair.disparity_ == pytest.approx(expected.disparity_, abs=near)
    assert fair.reconstruction_error_ == pytest.approx(expected.reconstruction_error_, abs=near)
    assert fair.duality_gap_ == pytest.approx(expected.duality_gap_, abs=near)


@pytest.mark.parametrize("relative_errors", [False, True])
def test_relative_errors_of_two_groups(relative_errors, data, monkeypatch):
    X, groups = data
    expected = FairPCA(3, relative_errors=relative_errors).fit(X, sensitive_features=groups)
    products_only(monkeypatch)
    fair = FairPCA(3, relative_errors=relative_errors).fit(
        sp.csr_array(X), sensitive_features=groups
    )
    np.testing.assert_allclose(fair.group_errors_, expected.group_errors_, rtol=1e-10)
    assert fair.reconstruction_error_ == pytest.approx(expected.reconstruction_error_)


@pytest.mark.usefixtures("no_matrices")
def test_large_offsets_lose_no_digits(data):
    X, groups = data
    near = FairPCA(3).fit(X, sensitive_features=groups)
    far = FairPCA(3).fit(X + 1e7, sensitive_features=groups)
    np.testing.assert_allclose(far.group_errors_, near.group_errors_, rtol=1e-7)


def test_tradeoff_path(data, monkeypatch):
    X, groups = data
    expected = tradeoff_path(X, groups, n_components=2, n_points=5)
    products_only(monkeypatch)
    path = tradeoff_path(sp.csr_array(X), groups, n_components=2, n_points=5)
    np.testing.assert_allclose(path.group_errors, expected.group_errors, rtol=1e-9)


@pytest.fixture
def no_few_rows(monkeypatch):
    """However few rows there are, they are not kept."""
    monkeypatch.setattr(few_rows, "FEW_FEATURES", np.inf)


@pytest.mark.usefixtures("no_few_rows")
@pytest.mark.parametrize("make", [sp.csr_array, lambda X: X])
def test_chosen_by_itself_and_forms_no_matrix(make):
    rng = np.random.default_rng(0)
    d = 6000
    X = sp.random_array((300, d), density=0.01, rng=rng, format="csr").toarray()
    X[:, :3] += rng.normal(size=(300, 3)) * 5
    groups = np.repeat(["a", "b"], [200, 100])
    X[200:, 1] *= 0.3
    given = make(X)
    tracemalloc.start()
    fair = FairPCA(2).fit(given, sensitive_features=groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * d * d / 2
    np.testing.assert_allclose(fair.components_ @ fair.components_.T, np.eye(2), atol=1e-10)
    R = ((X - fair.mean_ - fair.transform(X) @ fair.components_) ** 2).sum(axis=1)
    errors = [R[groups == g].mean() for g in ("a", "b")]
    np.testing.assert_allclose(fair.group_errors_, errors, rtol=1e-10)
    assert len(pickle.dumps(fair)) < 8 * d * 10, "X went along"


@pytest.mark.usefixtures("no_few_rows")
def test_what_very_many_features_do_not_allow(monkeypatch):
    monkeypatch.setattr(operand, "free_memory", lambda: 4e9)
    X = sp.random_array((40, 40_000), density=0.01, rng=np.random.default_rng(0), format="csr")
    groups = np.arange(40) % 3 == 0
    need = r"matrices of 2 groups need 77 GB of memory, and 4 GB are free; .* fit\(X"
    with pytest.raises(MemoryError, match=need):
        FairPCA(2).partial_fit(X, sensitive_features=groups)
    for n_components in (None, 0.9):
        with pytest.raises(ValueError, match="pass an integer"):
            FairPCA(n_components).fit(X, sensitive_features=groups)
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match="has no moments"):
        fair.partial_fit(X, sensitive_features=groups)


@pytest.mark.usefixtures("no_matrices")
@pytest.mark.parametrize("make", [sp.csr_array, np.asarray])
def test_what_is_refused(make, data):
    X, groups = data
    X[5, 7] = np.nan
    with pytest.raises(ValueError, match="NaN in column 7, first in row 5"):
        FairPCA(2).fit(make(X), sensitive_features=groups)
    X[5, 7] = 1e200
    with pytest.raises(ValueError, match="overflow"):
        FairPCA(2).fit(make(X), sensitive_features=groups)
    with pytest.raises(ValueError, match="total weight zero"):
        FairPCA(2).fit(make(X), sensitive_features=groups, sample_weight=groups == "g0")


@pytest.mark.usefixtures("no_matrices")
def test_search_that_does_not_converge_says_so(monkeypatch):
    monkeypatch.setattr(advice, "_GAP_WORTH_A_WARNING", 1e-5)
    monkeypatch.setattr(_solvers, "_GROWING_BASIS_PER_RANK", 1)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 900)) * np.linspace(1, 1.05, 900)
    groups = np.arange(4000) % 3 == 0
    X[groups, :300] *= 1.02
    exact = FairPCA(2, alpha=1.0).fit(GroupMoments.from_data(X, groups))
    with pytest.warns(ConvergenceWarning, match="900 features"):
        fair = FairPCA(2, alpha=1.0).fit(X, sensitive_features=groups)
    excess = fair.reconstruction_error_ - exact.reconstruction_error_
    assert 0 < excess <= fair.duality_gap_


@pytest.mark.usefixtures("no_matrices")
@pytest.mark.parametrize("make", [sp.csr_array, np.asarray])
def test_features_lost_in_rounding_are_warned_of(make, data):
    X, groups = data
    X[:, 7] *= 1e9
    with pytest.warns(RuntimeWarning, match="feature 7"):
        FairPCA(2, alpha=1.0).fit(make(X), sensitive_features=groups)


@pytest.mark.usefixtures("no_matrices")
@pytest.mark.parametrize("make", [sp.csr_array, np.asarray])
def test_variances_are_those_of_the_matrices(make, data):
    X, groups = data
    weights = np.arange(len(X)) % 3 * 0.5
    expected = GroupMoments.from_data(X, groups, weights).variances()
    found = ImplicitMoments(as_rows(make(X)), groups, weights).variances()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def nearly_equal_eigenvalues():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 300)) * np.linspace(1, 1.05, 300)
    groups = np.arange(800) % 3 == 0
    X[groups, :100] *= 1.02
    return X, groups


@pytest.mark.usefixtures("no_matrices")
def test_a_budget_counts_from_the_best_projection():
    """Even where PCA is hard to find."""
    X, groups = nearly_equal_eigenvalues()
    budgeted = FairPCA(8, max_error_increase=1e-5, constraint="parity")
    fair = clone(budgeted).fit(X, sensitive_features=groups)
    exact = clone(budgeted).fit(GroupMoments.from_data(X, groups))
    least = exact.pca_reconstruction_error_
    assert fair.pca_reconstruction_error_ == pytest.approx(least, rel=1e-10)
    assert fair.reconstruction_error_ <= least * (1 + 1e-5 * (1 + 1e-6))
    assert fair.disparity_ == pytest.approx(exact.disparity_, rel=1e-6)
    assert fair.harmed_group_ == exact.harmed_group_


@pytest.mark.usefixtures("no_matrices")
def test_a_budget_that_is_not_certain_is_warned_of(monkeypatch):
    monkeypatch.setattr(_solvers, "_GROWING_BASIS_PER_RANK", 10)
    X, groups = nearly_equal_eigenvalues()
    least = FairPCA(8, alpha=1.0).fit(GroupMoments.from_data(X, groups))
    with pytest.warns(ConvergenceWarning, match="max_error_increase=1e-05"):
        fair = FairPCA(8, max_error_increase=1e-5, constraint="parity").fit(
            X, sensitive_features=groups
        )
    assert fair.pca_reconstruction_error_ > least.pca_reconstruction_error_ * (1 + 1e-5)


@pytest.mark.parametrize(("mean", "spread"), [(2020.0, 1.0), (1e6, 1e3), (1e8, 1.0), (7.0, 0.0)])
@pytest.mark.usefixtures("no_matrices")
def test_sparse_columns_far_from_zero(mean, spread):
    """Years, say: centring by products of means alone would cost them their digits."""
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 60), density=0.1, rng=rng).toarray()
    X[:, 3] = mean + spread * rng.integers(-1, 2, 400)
    groups = np.arange(400) % 2
    sparse = FairPCA(3).fit(sp.csr_array(X), sensitive_features=groups)
    dense = FairPCA(3).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(sparse.group_errors_, dense.group_errors_, rtol=1e-6)
    np.testing.assert_allclose(sparse.mean_, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(sparse.components_ @ sparse.components_.T, np.eye(3), atol=1e-12)
    left = X - X.mean(axis=0)
    left -= left @ sparse.components_.T @ sparse.components_
    errors = [np.square(left[groups == g]).sum(axis=1).mean() for g in (0, 1)]
    np.testing.assert_allclose(sparse.group_errors_, errors, rtol=1e-6)


@pytest.mark.parametrize("wide", [False, True])
def test_entries_of_a_sparse_matrix_that_stand_twice(wide, monkeypatch):
    if wide:
        products_only(monkeypatch)
    X = sp.random_array((200, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    twice = sp.csr_array(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    groups = np.arange(200) % 2
    errors = [FairPCA(3).fit(A, sensitive_features=groups).group_errors_ for A in (X, twice)]
    np.testing.assert_allclose(*errors, rtol=1e-12)
    assert twice.nnz == 2 * X.nnz  # the caller's matrix stays as it was


@pytest.mark.usefixtures("no_matrices")
def test_rows_of_weight_zero_do_not_keep_a_sparse_column_far_from_zero():
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 60), density=0.1, rng=rng).toarray()
    X[:, 3] = 1e5 + rng.integers(-1, 2, 400)
    X[7, 3] = 1e9
    groups, weights = np.arange(400) % 2, (np.arange(400) != 7).astype(float)
    sparse = FairPCA(3).fit(sp.csr_array(X), sensitive_features=groups, sample_weight=weights)
    without = np.delete(X, 7, axis=0)
    dense = FairPCA(3).fit(without, sensitive_features=np.delete(groups, 7))
    np.testing.assert_allclose(sparse.group_errors_, dense.group_errors_, rtol=1e-9)


@pytest.mark.usefixtures("no_matrices")
def test_frames_are_made_arrays_once(data, monkeypatch):
    blocks = []
    block = FrameRows.block
    monkeypatch.setattr(FrameRows, "block", lambda *a: blocks.append(a) or block(*a))
    FairPCA(3).fit(pd.DataFrame(data[0]).add_prefix("c"), sensitive_features=data[1])
    whole = [(0, len(data[0]))] * 2  # once to look for a column that tells the groups
    assert [a[1:] for a in blocks if a[2] - a[1] > 1] == whole


@pytest.mark.parametrize("center", ["overall", "group", "balanced"])
def test_every_centre_is_that_of_the_matrices(center):
    X, groups = make_groups(n=(30, 20, 10), d=6)
    compared = np.array([True, False, True])
    ours = ImplicitMoments(as_rows(X), groups).operand(center, compared)
    theirs = GroupMoments.from_data(X, groups).operand(center, compared)
    np.testing.assert_allclose(ours.products(np.eye(6)), theirs.matrices, atol=1e-12)
    np.testing.assert_allclose(ours.traces, theirs.traces)
