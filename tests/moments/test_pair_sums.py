"""Sums over the pairs of values that were observed."""

import numpy as np
import pytest

from fairpca._input.rows import as_rows
from fairpca._moments.accumulate import accumulate
from fairpca._moments.pair_sums import PairSums


def rows_with_gaps(seed=0, n=300, d=4, k=3, offset=0.0, rate=0.3):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, k, n)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + codes[:, None] + offset
    X[rng.random((n, d)) < rate * (codes[:, None] + 1) / k] = np.nan
    return X, codes, rng.integers(0, 3, n).astype(float)


def by_hand(X, codes, weights, k, center):
    """``C_g``, one pair of columns after the other."""
    d = X.shape[1]
    means = np.empty((k, d))
    for g in range(k):
        for i in range(d):
            here = (codes == g) & ~np.isnan(X[:, i])
            means[g, i] = np.average(X[here, i], weights=weights[here])
    shares = np.bincount(codes, weights, k) / weights.sum()
    C = np.empty((k, d, d))
    for g in range(k):
        m = shares @ means if center == "overall" else means[g]
        for i in range(d):
            for j in range(d):
                here = (codes == g) & ~np.isnan(X[:, [i, j]]).any(axis=1)
                products = (X[here, i] - m[i]) * (X[here, j] - m[j])
                C[g, i, j] = np.average(products, weights=weights[here])
    return C, shares @ means


@pytest.mark.parametrize("center", ["overall", "group"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_second_moments_are_those_of_the_pairs_observed(center, offset):
    X, codes, weights = rows_with_gaps(offset=offset)
    sums = PairSums.of(as_rows(X), codes, 3, weights)
    expected, mean = by_hand(X, codes, weights, 3, center)
    np.testing.assert_allclose(sums.second_moments(center), expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(sums.mean, mean, rtol=1e-12)


def test_complete_rows_are_what_they_are_without_it():
    X, codes, weights = rows_with_gaps(rate=0.0, offset=5.0)
    plain = accumulate(as_rows(X), codes, 3, weights)
    bases = [np.linalg.qr(np.random.default_rng(1).normal(size=(4, 2)))[0]]
    origin = np.array([1.0, 2.0, 3.0, 4.0])
    for sums in (PairSums.of(as_rows(X), codes, 3, weights), PairSums.of_complete(plain)):
        for center in ("overall", "group", "balanced"):
            expected = plain.second_moments(center)
            np.testing.assert_allclose(sums.second_moments(center), expected, atol=1e-9)
            np.testing.assert_allclose(sums.operand(center, None).matrices, expected, atol=1e-9)
        np.testing.assert_allclose(sums.variances(), plain.variances(), atol=1e-10)
        for ours, theirs in zip(
            sums.errors(bases, origin), plain.errors(bases, origin), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10)
        assert np.abs(sums.share_missing).max() < 1e-12
        assert sums.clipped_variance().max() < 1e-12


def test_parts_merge_to_the_sums_of_all_rows():
    X, codes, weights = rows_with_gaps(offset=100.0)
    whole = PairSums.of(as_rows(X), codes, 3, weights)
    parts = [
        (PairSums.of(as_rows(X[here]), codes[here], 3, weights[here]), [0, 1, 2])
        for here in (slice(200, 300), slice(0, 120), slice(120, 200))
    ]
    merged = PairSums.combined(3, 4, parts)
    for center in ("overall", "group"):
        np.testing.assert_allclose(
            merged.second_moments(center), whole.second_moments(center), rtol=1e-9, atol=1e-9
        )
    np.testing.assert_array_equal(merged.rows, whole.rows)
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-12)


def test_columns_and_units_can_be_changed_afterwards():
    X, codes, weights = rows_with_gaps()
    sums = PairSums.of(as_rows(X), codes, 3, weights)
    columns, scale = [2, 0], np.array([2.0, 0.5])
    changed = sums.select(columns).divided(scale).take([2, 1])
    direct = PairSums.of(as_rows(X[:, columns] / scale), codes, 3, weights).take([2, 1])
    np.testing.assert_allclose(
        changed.second_moments("overall"), direct.second_moments("overall"), atol=1e-12
    )


def test_completed_sums_add_up_over_folds_and_are_the_second_moments():
    X, codes, weights = rows_with_gaps()
    whole = PairSums.of(as_rows(X), codes, 3, weights)
    origin = np.array([0.3, -1.0, 0.0, 2.0])
    parts = [PairSums.of(as_rows(X[f::5]), codes[f::5], 3, weights[f::5]) for f in range(5)]
    folds = sum(part.completed(origin, whole).grams for part in parts)
    np.testing.assert_allclose(folds, whole.completed(origin, whole).grams, atol=1e-9)
    means = whole.shifts + whole.from_shifts
    about_mean = whole.completed(whole.mean, whole).grams / whole.weights[:, None, None]
    np.testing.assert_allclose(about_mean, whole.second_moments("overall"), atol=1e-9)
    assert means.shape == (3, 4)


def test_judged_errors_are_right_on_average():
    """Values deleted at random do not change the expected error; filling in would."""
    rng = np.random.default_rng(3)
    n, d = 40_000, 5
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    codes = np.zeros(n, np.intp)
    U = np.linalg.qr(rng.normal(size=(d, 2)))[0]
    true = np.square(X - X @ U @ U.T).sum() / n
    gaps = X.copy()
    gaps[rng.random((n, d)) < 0.4] = np.nan
    (errors,), _ = PairSums.of(as_rows(gaps), codes, 1, None).errors([U], np.zeros(d))
    assert errors[0] / n == pytest.approx(true, rel=0.03)


def test_what_is_fitted_to_has_no_negative_eigenvalue_and_says_what_was_added():
    X, codes, _ = rows_with_gaps(n=24, d=6, k=1, rate=0.5, seed=2)
    sums = PairSums.of(as_rows(X), codes, 1, None)
    raw = np.linalg.eigvalsh(sums.second_moments("overall")[0])
    clipped = np.linalg.eigvalsh(sums.operand("overall", None).matrices[0])
    assert raw[0] < -1e-3 < -1e-12 < clipped[0]
    np.testing.assert_allclose(clipped, np.maximum(raw, 0), atol=1e-12)
    assert sums.clipped_variance()[0] == pytest.approx(-raw[raw < 0].sum() / clipped.sum())


def test_the_rarest_pair_is_found():
    X, codes, _ = rows_with_gaps(n=200, k=2, rate=0.1)
    X[(codes == 1) & ~np.isnan(X[:, 0]), 3] = np.nan
    sums = PairSums.of(as_rows(X), codes, 2, None)
    assert sums.rarest_pair(1) == (0, 3, 0.0)
    seen = (~np.isnan(X[codes == 0])).astype(int)
    assert sums.rarest_pair(0)[2] == pytest.approx((seen.T @ seen).min())


def test_infinity_is_refused():
    with pytest.raises(ValueError, match="infinity"):
        PairSums.of(as_rows(np.array([[1.0, np.inf], [np.nan, 2.0]])), np.zeros(2, int), 1, None)
