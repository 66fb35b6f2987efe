"""Intervals of the disparity: they cover the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import FairPCA
from fairpca._audit.held_out import assign_folds, cross_fit
from fairpca._audit.intervals import disparity_interval, group_ratios, spread_interval
from fairpca.datasets import make_two_groups


def test_interval_of_a_weighted_mean_and_of_a_ratio_covers_it():
    rng = np.random.default_rng(0)
    codes, hits = np.zeros(150, np.intp), np.zeros(2)
    for _ in range(200):
        weights, sizes = rng.uniform(0.2, 2, 150), rng.exponential(3.0, 150)
        errors = rng.exponential(1.0, 150) * weights  # of mean 1; weights and errors go together
        for i, (a, b) in enumerate([(weights * errors, weights), (errors * sizes, sizes)]):
            low, high = disparity_interval(
                np.zeros(50), group_ratios(a, b, codes)[1], 0.9, 200, rng
            )
            truth = [(4.0 + 0.4 + 0.04) / 3 / 1.1, 1.1][i]
            hits[i] += low <= truth <= high
    assert (hits >= 0.84 * 200).all(), hits
    assert (hits <= 0.96 * 200).all(), hits


def test_interval_of_the_spread_of_two_groups_is_that_of_their_difference():
    rng = np.random.default_rng(0)
    errors = rng.exponential(2.0, 80), rng.exponential(6.0, 60)
    expected = disparity_interval(*errors, 0.9, 500, np.random.default_rng(1))
    found = spread_interval(errors, 0.9, 500, np.random.default_rng(1))
    assert found == pytest.approx(expected)


def test_interval_of_the_spread_covers_it():
    rng = np.random.default_rng(0)
    for means in ([1.0, 1.0, 1.0, 1.0], [1.0, 1.5, 2.0, 2.0]):
        hits = 0
        for _ in range(200):
            errors = [rng.exponential(mean, 60) for mean in means]
            low, high = spread_interval(errors, 0.9, 200, rng)
            hits += low <= np.ptp(means) <= high
        assert hits >= 0.86 * 200


def test_blocks_change_the_interval_little():
    rng = np.random.default_rng(0)
    few, many = rng.chisquare(3, 1900), rng.chisquare(3, 9999)
    low, high = disparity_interval(many, few, 0.95, 2000, rng)
    se = np.sqrt(few.var() / 1900 + many.var() / 9999)
    assert low == pytest.approx(few.mean() - many.mean() - 1.96 * se, abs=0.3 * se)
    assert high == pytest.approx(few.mean() - many.mean() + 1.96 * se, abs=0.3 * se)


def population_of_two_groups(d, shift):
    """Covariance and mean of both groups of make_two_groups, from its description."""
    moments = []
    for degrees, distance in ((20.0, 0.0), (95.0, shift)):
        turn = np.eye(d)
        cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        turn[:2, :2] = [[cos, sin], [-sin, cos]]
        spread = np.diag([9.0, *[0.36] * (d - 1)])
        moments.append((turn.T @ spread @ turn, distance * turn[0]))
    return moments


def population_disparity(estimator, population):
    """Disparity that this fitted projection has on new rows, in expectation."""
    across = np.eye(estimator.n_features_in_) - estimator.components_.T @ estimator.components_
    errors = [
        np.trace(across @ S) + np.sum((across @ (mean - estimator.mean_)) ** 2)
        for S, mean in population
    ]
    return errors[1] - errors[0]


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "d", "r"), [((250, 50), 2, 1), ((120, 60), 12, 3)])
def test_intervals_cover_the_disparity_on_new_rows(sizes, d, r):
    """Nominal 95 %: over 200 data sets between 90 and 99 % of the intervals hold the truth."""
    population = population_of_two_groups(d, shift=1.0)
    covered = np.zeros(2)
    for seed in range(200):
        made = make_two_groups(sizes, d, random_state=seed)
        codes = np.repeat([0, 1], sizes)
        rng = np.random.default_rng(seed)
        estimators = [FairPCA(r, alpha=1.0), FairPCA(r)]
        fold = assign_folds(codes, 5, rng)
        held_out = cross_fit(made.data, codes, fold, estimators, standardize=False).errors
        for i, (errors, estimator) in enumerate(zip(held_out, estimators, strict=True)):
            low, high = disparity_interval(errors[codes == 0], errors[codes == 1], 0.95, 500, rng)
            estimator.fit(made.data, sensitive_features=codes)
            covered[i] += low <= population_disparity(estimator, population) <= high
    assert (covered / 200 >= 0.90).all(), covered
    assert (covered / 200 <= 0.99).all(), covered


def test_errors_without_spread_have_an_interval_without_width():
    rng = np.random.default_rng(0)
    flat = [np.full(5, 2.0), np.full(3, 7.0), np.full(4, 3.0)]
    assert disparity_interval(*flat[:2], 0.95, 50, rng) == (5.0, 5.0)
    assert spread_interval(flat, 0.95, 50, rng) == (5.0, 5.0)


def test_swapped_groups_turn_the_interval_round():
    rng = np.random.default_rng(0)
    a, b = rng.exponential(2.0, 80), rng.exponential(6.0, 80)
    low, high = disparity_interval(a, b, 0.9, 400, np.random.default_rng(1))
    back, forth = disparity_interval(b, a, 0.9, 400, np.random.default_rng(1))
    assert high - low == pytest.approx(forth - back, rel=0.2)
    assert (low + high) / 2 == pytest.approx(-(back + forth) / 2)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_intervals_have_the_unit_of_the_errors(unit):
    rng = np.random.default_rng(0)
    groups = [rng.exponential(mean, 50) for mean in (1.0, 2.0, 2.5)]
    expected = spread_interval(groups, 0.9, 200, np.random.default_rng(1))
    scaled = spread_interval([unit * e for e in groups], 0.9, 200, np.random.default_rng(1))
    assert scaled == pytest.approx([unit * end for end in expected], rel=1e-9)
