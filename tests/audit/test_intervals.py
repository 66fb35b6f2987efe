"""Intervals of the disparity: they cover the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from fairpca import FairPCA, GroupMoments
from fairpca._audit.dealt import Dealt
from fairpca._audit.fits import fit_both
from fairpca._audit.held_out import FoldFit, cross_fit
from fairpca._audit.intervals import (
    Resampling,
    change_interval,
    disparity_interval,
    group_ratios,
    spread_interval,
)
from fairpca._audit.new_rows import NewRows
from fairpca._moments.dealing import deal_folds


def test_interval_of_a_weighted_mean_and_of_a_ratio_covers_it():
    rng = np.random.default_rng(0)
    codes, hits = np.zeros(150, np.intp), np.zeros(2)
    for _ in range(200):
        weights, sizes = rng.uniform(0.2, 2, 150), rng.exponential(3.0, 150)
        errors = rng.exponential(1.0, 150) * weights  # of mean 1; weights and errors go together
        for i, (a, b) in enumerate([(weights * errors, weights), (errors * sizes, sizes)]):
            shares = group_ratios(a, b, codes)[1]
            low, high = change_interval(shares, Resampling(0.9, 200, rng))
            truth = [(4.0 + 0.4 + 0.04) / 3 / 1.1, 1.1][i]
            hits[i] += low <= truth <= high
    assert (hits >= 0.84 * 200).all(), hits
    assert (hits <= 0.96 * 200).all(), hits


def test_interval_of_the_spread_of_two_groups_is_that_of_their_difference():
    rng = np.random.default_rng(0)
    errors = rng.exponential(2.0, 80), rng.exponential(6.0, 60)
    expected = disparity_interval(*errors, Resampling(0.9, 500, np.random.default_rng(1)))
    found = spread_interval(errors, Resampling(0.9, 500, np.random.default_rng(1)))
    assert found == pytest.approx(expected)


def test_interval_of_the_spread_covers_it():
    rng = np.random.default_rng(0)
    for means in ([1.0, 1.0, 1.0, 1.0], [1.0, 1.5, 2.0, 2.0]):
        hits = 0
        for _ in range(600):
            errors = [rng.exponential(mean, 60) for mean in means]
            low, high = spread_interval(errors, Resampling(0.9, 200, rng))
            hits += low <= np.ptp(means) <= high
        assert hits >= 0.86 * 600


def test_blocks_change_the_interval_little():
    rng = np.random.default_rng(0)
    few, many = rng.chisquare(3, 1900), rng.chisquare(3, 9999)
    low, high = disparity_interval(many, few, Resampling(0.95, 2000, rng))
    se = np.sqrt(few.var() / 1900 + many.var() / 9999)
    assert low == pytest.approx(few.mean() - many.mean() - 1.96 * se, abs=0.3 * se)
    assert high == pytest.approx(few.mean() - many.mean() + 1.96 * se, abs=0.3 * se)


@pytest.mark.slow
@pytest.mark.parametrize(("degrees", "constraint"), [(None, None), (5, "pareto")])
def test_intervals_cover_what_these_projections_do_to_new_rows(degrees, constraint):
    """Nominal 95 %, in at least 90 % of 100 data sets; benchmarks/coverage.py has more of them."""
    loadings, sizes, n = random_loadings(), (300, 100), 100
    codes, covered = np.repeat([0, 1], sizes), np.zeros(5)
    for seed in range(n):
        rng = np.random.default_rng(seed)
        X = np.vstack([draw(rng, m, degrees) @ L.T for L, m in zip(loadings, sizes, strict=True)])
        fits = fit_both(FairPCA(3, constraint=constraint), GroupMoments.from_data(X, codes))
        fitted = [fits.pca, fits.fair]
        whole = FoldFit.of(fitted, fits.pca.mean_, None)
        dealt, clones = Dealt.of(X, codes, [deal_folds(codes, 6, rng)]), [clone(e) for e in fitted]
        new = NewRows(fits, cross_fit(X, codes, dealt, clones, False, whole=whole), False)
        truth, how = [population_errors(e, loadings) for e in fitted], Resampling(0.95, 300, rng)
        changes, A, B = new.changes(how), fits.privileged, fits.harmed
        checks = [(truth[i][B] - truth[i][A], new.disparity_interval(i, how)) for i in (0, 1)]
        for g in (0, 1):
            change = changes.groups[g]
            checks.append((truth[1][g] - truth[0][g], (change.low, change.high)))
        narrowing = checks[1][0] - checks[0][0]
        checks.append((narrowing, (changes.disparity.low, changes.disparity.high)))
        covered += [low <= value <= high for value, (low, high) in checks]
    assert (covered >= 0.9 * n).all(), covered


def random_loadings():
    """Two groups that share a part of their directions, none of which stands out."""
    rng = np.random.default_rng(2)
    A, own = (np.linalg.qr(rng.normal(size=(8, 8)))[0] * np.linspace(2, 0.7, 8) for _ in range(2))
    return [A, 0.5 * A + 0.8 * own]


def draw(rng, n, degrees):
    if degrees is None:
        return rng.normal(size=(n, 8))
    return rng.standard_t(degrees, (n, 8)) / np.sqrt(degrees / (degrees - 2))


def population_errors(fitted, loadings):
    """What this fitted projection does to new rows of each group, in expectation."""
    across = np.eye(8) - fitted.components_.T @ fitted.components_
    away = np.sum((across @ fitted.mean_) ** 2)
    return [np.sum((across @ L) ** 2) + away for L in loadings]


def test_errors_without_spread_have_an_interval_without_width():
    rng = np.random.default_rng(0)
    flat = [np.full(5, 2.0), np.full(3, 7.0), np.full(4, 3.0)]
    assert disparity_interval(*flat[:2], Resampling(0.95, 50, rng)) == (5.0, 5.0)
    assert spread_interval(flat, Resampling(0.95, 50, rng)) == (5.0, 5.0)


def test_swapped_groups_turn_the_interval_round():
    rng = np.random.default_rng(0)
    a, b = rng.exponential(2.0, 80), rng.exponential(6.0, 80)
    low, high = disparity_interval(a, b, Resampling(0.9, 400, np.random.default_rng(1)))
    back, forth = disparity_interval(b, a, Resampling(0.9, 400, np.random.default_rng(1)))
    assert high - low == pytest.approx(forth - back, rel=0.2)
    assert (low + high) / 2 == pytest.approx(-(back + forth) / 2)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_intervals_have_the_unit_of_the_errors(unit):
    rng = np.random.default_rng(0)
    groups = [rng.exponential(mean, 50) for mean in (1.0, 2.0, 2.5)]
    expected = spread_interval(groups, Resampling(0.9, 200, np.random.default_rng(1)))
    scaled = spread_interval(
        [unit * e for e in groups], Resampling(0.9, 200, np.random.default_rng(1))
    )
    assert scaled == pytest.approx([unit * end for end in expected], rel=1e-9)
