"""The welfare of two groups."""

from __future__ import annotations

from functools import cache
from math import inf

import numpy as np
import pytest
from helpers.families import diagonal, sampled, spaces_of
from helpers.inside import (
    Eigenspaces,
    GrowingBasis,
    Operand,
    WelfareProblem,
    growing_bases,
    solve,
    solve_welfare_of_two,
)

from fairpca import GroupMoments

AVERSIONS = (0.0, 0.01, 0.5, 1.0, 3.0, 40.0, 1000.0)


@cache
def kept_on_a_grid(make, seed):
    """Variances that the projections for 401 weights keep."""
    spaces = make(seed, 2, 6, 2)
    weights = np.linspace(0, 1, 401)
    return [spaces.traces - spaces.top(np.array([t, 1 - t])).errors for t in weights]


@pytest.mark.parametrize("aversion", AVERSIONS)
@pytest.mark.parametrize(("make", "seed"), [(sampled, 1), (sampled, 2), (diagonal, 12)])
def test_no_weights_do_better_and_the_gap_is_rounding(make, seed, aversion):
    spaces, problem = make(seed, 2, 6, 2), WelfareProblem(aversion)
    solution = solve_welfare_of_two(spaces, problem)
    assert solution.status == "welfare at its best"
    assert abs(solution.gap) < 1e-12 * spaces.traces.max()
    assert -solution.value == pytest.approx(problem.measure(spaces.traces - solution.errors))
    best = max(problem.measure(kept) for kept in kept_on_a_grid(make, seed))
    assert best <= -solution.value + 1e-12 * spaces.traces.max()
    if aversion > 0:
        gradient = problem.gradient(spaces.traces - solution.errors)
        assert (gradient > 0).all()


@pytest.mark.parametrize("aversion", [0.5, 1.0, 4.0])
def test_eigenvalues_that_cross(aversion):
    # Each group varies along its own axes: U jumps, and the answer lies between both sides.
    C = [np.diag([4.0, 0, 0.5]), np.diag([0, 4.0, 0.5])]
    solution = solve_welfare_of_two(spaces_of(C, [0.3, 0.7], 1), WelfareProblem(aversion))
    assert np.abs(solution.basis[:2, 0]) == pytest.approx([np.sqrt(0.5)] * 2)
    assert -solution.value == pytest.approx(2.0)
    assert abs(solution.gap) < 1e-12


def test_a_large_aversion_tends_to_the_least_variance():
    spaces = sampled(5, 2, 7, 2)
    operand = Operand(spaces.matrices, spaces.shares)
    least = [solve(WelfareProblem(a), operand, 2).value for a in (1e2, 1e4, inf)]
    assert least[1] == pytest.approx(least[2], rel=1e-3)
    assert abs(least[1] - least[2]) < abs(least[0] - least[2])


def test_a_group_of_much_smaller_scale_counts_as_much_for_nash():
    spaces = sampled(6, 2, 6, 2)
    tiny = spaces_of(spaces.matrices * np.array([1.0, 1e-9])[:, None, None], spaces.shares, 2)
    same, scaled = (solve_welfare_of_two(s, WelfareProblem(1.0)).basis for s in (spaces, tiny))
    np.testing.assert_allclose(scaled @ scaled.T, same @ same.T, atol=1e-6)


def test_a_group_without_variance_leaves_the_choice_to_the_other():
    C = [np.diag([1.0, 2.0, 3.0]), np.zeros((3, 3))]
    for aversion in (0.0, 1.0, 2.0):
        solution = solve_welfare_of_two(spaces_of(C, [0.5, 0.5], 1), WelfareProblem(aversion))
        assert np.abs(solution.basis[:, 0]) == pytest.approx([0, 0, 1])
        assert solution.gap == pytest.approx(0)


def test_growing_basis_finds_what_the_dense_solver_does(monkeypatch):
    growing_bases(monkeypatch, start=200)
    d, r = 320, 3
    rng = np.random.default_rng(9)
    X = rng.normal(size=(500, d)) * np.geomspace(5, 0.01, d)
    X[:180] = X[:180][:, rng.permutation(d)] + 0.3
    operand = GroupMoments.from_data(X, np.arange(500) < 180).operand()
    problem = WelfareProblem(2.0)
    grown = solve(problem, operand, r)
    assert isinstance(grown.found_in, GrowingBasis)
    dense = solve_welfare_of_two(Eigenspaces(operand, r), problem)
    assert grown.value == pytest.approx(dense.value, rel=1e-9)
    assert abs(grown.gap) < 1e-9 * operand.traces.max()


def near_projector(rng, Q, tilt):
    """Eigenvalues that are nearly zero or one, so that the best projections jump."""
    H = tilt * rng.normal(size=Q.shape)
    return Q @ np.diag(rng.integers(0, 2, len(Q))) @ Q.T + H @ H.T


@pytest.mark.parametrize("tilt", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("aversion", [0.5, 1.0, 2.0])
def test_jumps_near_the_ends_where_one_weight_is_next_to_nothing(aversion, tilt):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(4, 10))
        Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
        matrices = np.array([near_projector(rng, Q, tilt) for _ in range(2)])
        spaces = Eigenspaces(Operand(matrices, np.array([0.5, 0.5])), int(rng.integers(1, d)))
        assert solve_welfare_of_two(spaces, WelfareProblem(aversion)).gap <= 1e-10
