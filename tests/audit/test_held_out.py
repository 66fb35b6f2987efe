"""Cross-fitting: each row is measured under a projection fitted without it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fairpca import FairPCA, GroupMoments, MinMaxPCA
from fairpca._audit.dealt import Dealt
from fairpca._audit.held_out import cross_fit, fit_folds, fit_moments
from fairpca._moments.dealing import deal_folds
from fairpca.datasets import make_two_groups


def dealt(X, codes, fold, weights=None):
    return Dealt.of(X, codes, [fold], weights)


def test_held_out_errors_come_from_fits_without_the_row():
    made = make_two_groups((40, 20), 4, random_state=3)
    codes = (made.sensitive_features == "minority").astype(np.intp)
    fold = deal_folds(codes, 5, np.random.default_rng(0))
    assert np.bincount(fold[codes == 1]).tolist() == [4] * 5
    errors = cross_fit(
        made.data, codes, dealt(made.data, codes, fold), [FairPCA(2)], standardize=True
    ).errors[0]
    for k in range(5):
        rest = made.data[fold != k]
        scale = rest.std(axis=0, ddof=1)
        fit = FairPCA(2).fit(rest / scale, sensitive_features=codes[fold != k])
        Z = made.data[fold == k] / scale
        back = fit.inverse_transform(fit.transform(Z))
        assert errors[fold == k] == pytest.approx(((Z - back) ** 2).sum(axis=1))


def test_a_choice_by_cross_validation_is_made_without_the_row_too():
    made = make_two_groups((60, 30), 4, random_state=3)
    X, codes = made.data, (made.sensitive_features == "minority").astype(np.intp)
    fold = deal_folds(codes, 4, np.random.default_rng(0))
    errors = cross_fit(
        X, codes, dealt(X, codes, fold), [FairPCA(2, cv=4)], standardize=False
    ).errors[0]
    for k in range(4):
        rest = fold != k
        moments = GroupMoments.from_data(X[rest], codes[rest], folds=fold[rest])
        fit = FairPCA(2, cv=3).fit_moments(moments)
        back = fit.inverse_transform(fit.transform(X[~rest]))
        assert errors[~rest] == pytest.approx(((X[~rest] - back) ** 2).sum(axis=1))


def test_folds_are_as_even_as_can_be_within_each_group_and_over_blocks():
    codes = np.repeat([0, 1, 2], [23, 11, 4])
    before = np.array([3, 0, 5])
    fold = deal_folds(codes, 4, np.random.default_rng(0), before)
    for g in range(3):
        counts = np.bincount((np.arange(before[g])) % 4, minlength=4)
        counts += np.bincount(fold[codes == g], minlength=4)
        assert np.ptp(counts) <= 1
    own = deal_folds(codes, np.array([5, 2, 3]), np.random.default_rng(0))
    assert [own[codes == g].max() + 1 for g in range(3)] == [5, 2, 3]


@pytest.mark.parametrize("standardize", [False, True])
def test_refit_effects_are_differences_of_the_rows_errors(standardize):
    """From moments, and row by row: what leaving out a fold does to its rows, beyond the others."""
    made = make_two_groups((40, 20), 4, random_state=3)
    X, codes = made.data + 5, (made.sensitive_features == "minority").astype(np.intp)
    fold, estimators = deal_folds(codes, 5, np.random.default_rng(0)), [FairPCA(2), MinMaxPCA(2)]
    found = cross_fit(X, codes, dealt(X, codes, fold), estimators, standardize).refits
    whole = fit_moments(GroupMoments.from_data(X, codes), estimators, standardize)
    for (_, k), fit in fit_folds(dealt(X, codes, fold), estimators, standardize).items():
        changed = fit.errors(X)[:-1] - whole.errors(X)[:-1]
        for g in (0, 1):
            inside, outside = (
                changed[:, (codes == g) & part].mean(axis=1) for part in (fold == k, fold != k)
            )
            assert found[:, k, g] == pytest.approx(inside - outside, abs=1e-10)


@pytest.mark.parametrize("standardize", [False, True])
def test_weights_repeat_rows_and_sparse_rows_are_rows(standardize):
    made = make_two_groups((40, 20), 4, random_state=3)
    X = np.where(np.abs(made.data) > 0.3, made.data, 0.0)
    codes = (made.sensitive_features == "minority").astype(np.intp)
    fold = deal_folds(codes, 4, np.random.default_rng(0))
    weights = 1.0 + np.arange(60) % 2
    estimators = [FairPCA(2), MinMaxPCA(2)]
    parts = dealt(X, codes, fold, weights)
    held_out = cross_fit(X, codes, parts, estimators, False, sample_weight=weights)
    twice = np.repeat(np.arange(60), weights.astype(int))
    parts = dealt(X[twice], codes[twice], fold[twice])
    repeated = cross_fit(X[twice], codes[twice], parts, estimators, False)
    for g in range(2):
        expected = repeated.errors[:, codes[twice] == g].sum(axis=1)
        assert held_out.errors[:, codes == g].sum(axis=1) == pytest.approx(expected)
    dense, sparse = (
        cross_fit(rows, codes, parts, estimators, standardize, sample_weight=weights)
        for rows in (X, sp.csr_array(X))
        for parts in [dealt(rows, codes, fold, weights)]
    )
    np.testing.assert_allclose(sparse.errors, dense.errors, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(sparse.distances, dense.distances, rtol=1e-8)
    assert (dense.distances >= dense.errors - 1e-9).all()
