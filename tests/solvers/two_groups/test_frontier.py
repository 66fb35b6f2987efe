"""Errors along alpha, and one alpha that is given."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.inside import Frontier, solve_fixed
from helpers.two_groups import diagonal_family, grid, random_family


@pytest.mark.parametrize("seed", range(8))
def test_monotone_along_the_frontier(seed):
    family = random_family(seed, d=7, rank=3)
    frontier = Frontier(family)
    points = [frontier.at(alpha) for alpha in np.linspace(0, 1, 101)]
    errors = np.array([p.errors for p in points])
    R, D = errors @ family.shares, [frontier.error_and_disparity(e)[1] for e in errors]
    R_B = errors[:, frontier.harmed]
    tolerance = 1e-12 * family.traces.max()
    assert (np.diff(D) >= -tolerance).all()
    assert (np.diff(R) <= tolerance).all()
    assert (np.diff(errors[:, frontier.privileged]) <= tolerance).all()
    after = np.linspace(0, 1, 101)[:-1] >= frontier.alpha_B
    assert (np.diff(R_B)[after] >= -tolerance).all()
    before = np.linspace(0, 1, 101)[1:] <= frontier.alpha_B
    assert (np.diff(R_B)[before] <= tolerance).all()


def test_fixed_alpha():
    family = random_family(1)
    alphas, errors = grid(family, 11)
    for alpha, expected in zip(alphas, errors, strict=True):
        solution = solve_fixed(family, float(alpha))
        np.testing.assert_allclose(solution.errors, expected, atol=1e-10)
        assert abs(solution.gap) <= 1e-12
        assert solution.alpha == alpha


def test_ties_at_alpha_zero_go_to_the_least_overall_error():
    # C_B - C_A is zero along e2 and e3 alike; e2 carries more variance.
    family = diagonal_family([1, 2, 1, 0], [3.0, 2, 1, 0], rank=2)
    solution = solve_fixed(family, 0.0)
    np.testing.assert_allclose(np.abs(solution.basis).sum(axis=1), [1, 1, 0, 0], atol=1e-12)
