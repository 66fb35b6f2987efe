"""The exact solver against dense grids, crossings of eigenvalues, and its own certificate."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.two_groups import (
    PROBLEMS,
    check,
    diagonal_family,
    grid,
    random_family,
    values,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from fairpca._problems.fair import FairProblem
from fairpca._problems.status import Status
from fairpca._solvers.two_groups.exact import solve_exact
from fairpca._solvers.two_groups.frontier import solve_fixed
from fairpca._solvers.two_groups.golden import solve_golden
from fairpca._solvers.two_groups.subspace_path import SubspacePath


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("rank", "alike"), [(1, 0.0), (2, 0.0), (2, 0.8), (3, 0.9), (4, 0.0)])
def test_no_grid_point_is_better(problem, seed, rank, alike):
    family = random_family(seed, rank=rank, alike=alike)
    solution = solve_exact(family, problem)
    check(family, solution, problem, gap_scale=1 / max(solution.alpha, 1e-3))
    assert family.n_eigensolves <= 40
    R, D = values(family, solution, solution.errors)
    R_pca, _ = values(family, solution, solution.pca.errors)
    _, errors = grid(family)
    grid_R = errors @ family.shares
    grid_D = errors[:, solution.harmed] - errors[:, solution.privileged]
    allowed = (grid_R <= (1 + problem.max_error_increase) * R_pca + 1e-12) & (
        grid_D >= problem.max_disparity - 1e-12
    )
    if problem.no_worse:
        allowed &= errors.max(axis=1) <= solution.pca.errors.max() + 1e-12
    assert grid_D[allowed].min() + 1e-9 >= D
    fair_enough = allowed & (grid_D <= D + 1e-12)
    assert not fair_enough.any() or grid_R[fair_enough].min() + 1e-9 >= R


def test_random_projections_never_beat_parity():
    family = random_family(3, rank=2)
    best = solve_exact(family, FairProblem())
    assert best.status is Status.PARITY
    rng = np.random.default_rng(0)
    for _ in range(300):
        U = np.linalg.qr(rng.normal(size=(6, 2)))[0]
        other = np.linalg.qr(rng.normal(size=(6, 2)))[0]
        path = SubspacePath(family, U, other)
        D = [path.errors(s) @ [1, -1] for s in np.linspace(0, 1, 50)]
        for i in np.flatnonzero(np.diff(np.sign(D))):
            fair = path.errors((i + 0.5) / 49)
            if abs(fair @ [1, -1]) < 1e-2:
                assert family.shares @ fair >= family.shares @ best.errors - 1e-2


def test_exact_crossing_is_the_diagonal():
    """A varies along e1 only, B along e2 only: the fair direction is between them."""
    family = diagonal_family([4.0, 0, 0], [0, 1.0, 0])
    solution = solve_exact(family, FairProblem())
    check(family, solution, FairProblem())
    assert solution.status is Status.PARITY
    # 4 (1 - c^2) = 1 (1 - s^2) with c^2 + s^2 = 1
    np.testing.assert_allclose(np.abs(solution.basis[:, 0]) ** 2, [0.8, 0.2, 0], atol=1e-12)
    equal = solve_exact(diagonal_family([1.0, 0, 0], [0, 1.0, 0]), FairProblem())
    np.testing.assert_allclose(equal.errors, equal.errors[0])


def test_where_the_eigenspace_jumps_golden_section_fails():
    family = diagonal_family([4.0, 0, 0], [0, 1.0, 0])
    searched = solve_golden(family)
    assert abs(searched.errors[0] - searched.errors[1]) > 0.5
    solution = solve_exact(family, FairProblem())
    assert abs(solution.errors[0] - solution.errors[1]) <= 1e-14


def test_a_flat_measure_does_not_hide_the_least_disparity():
    """F is constant on both sides of a jump; a search that breaks ties towards PCA stays there."""
    family = diagonal_family([4, 0.5, 0.5], [2, 5, 3.5])
    solution = solve_exact(family, FairProblem())
    check(family, solution, FairProblem())
    assert solution.status is Status.INFEASIBLE
    np.testing.assert_allclose(solution.pca.errors @ [-1, 1], 7.5)
    # Ky Fan: D(U) = 5.5 - u'(C_B - C_A)u, and the largest eigenvalue of C_B - C_A is 4.5
    np.testing.assert_allclose(solution.errors @ [-1, 1], 1.0)


def test_several_eigenvalues_crossing_at_once():
    a, b = [4.0, 4, 4, 1, 1, 1, 0.3], [1.0, 1, 1, 3, 3, 3, 0.3]
    for rank in (1, 2, 3, 4):
        family = diagonal_family(a, b, (0.6, 0.4), rank)
        for problem in (FairProblem(), FairProblem(no_worse=True)):
            solution = solve_exact(family, problem)
            check(family, solution, problem)


@settings(deadline=None, max_examples=200)
@given(
    seed=st.integers(0, 2**32 - 1), rank=st.integers(1, 5), share=st.sampled_from([0.5, 0.2, 0.9])
)
def test_random_diagonal_cases(seed, rank, share):
    """Eigenvalues cross exactly: only the jump rule finds these."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 6, 6).astype(float), rng.integers(0, 6, 6).astype(float)
    if not a.any() or not b.any():
        return
    family = diagonal_family(a, b, (share, 1 - share), rank)
    solution = solve_exact(family, FairProblem())
    check(family, solution, FairProblem(), gap_scale=1 / max(solution.alpha, 1e-3))
    D = solution.errors[solution.harmed] - solution.errors[solution.privileged]
    signed = np.sort((b - a) if solution.harmed == 1 else (a - b))[::-1]
    least = signed.sum() - signed[:rank].sum()  # over all projections, Ky Fan
    assert pytest.approx(max(least, 0.0), abs=1e-11) == D


def test_jumps_need_no_bisection_down_to_rounding():
    family = diagonal_family([4.0, 1, 0, 2], [0, 1.5, 2, 0.3], (0.7, 0.3), rank=2)
    solution = solve_exact(family, FairProblem())
    assert solution.status is Status.PARITY
    assert family.n_eigensolves <= 15


@pytest.mark.parametrize("seed", range(60))
def test_equal_eigenvalues_of_the_harmed_group_leave_the_least_disparity(seed):
    """Diagonal matrices with ties: the best mixture of coordinates, by a linear program."""
    rng = np.random.default_rng(seed)
    kept = np.stack([0.5 * rng.integers(0, 4, 5), np.sort(rng.integers(1, 4, 5))[::-1]]).astype(
        float
    )
    solution = solve_exact(diagonal_family(*kept, rank=2), FairProblem(no_worse=True))
    A, B = solution.privileged, solution.harmed
    traces, cap = kept.sum(axis=1), solution.pca.errors[B]
    best = linprog(
        kept[A] - kept[B],
        A_ub=[-kept[B], -kept[A], kept[B] - kept[A]],
        b_ub=[cap - traces[B], cap - traces[A], traces[B] - traces[A]],
        A_eq=[np.ones(5)],
        b_eq=[2],
        bounds=(0, 1),
    )
    least = best.fun + traces[B] - traces[A] if best.success else np.inf
    assert solution.errors.max() <= cap + 1e-9
    assert solution.errors[B] - solution.errors[A] <= least + 1e-8


def test_status_of_every_ending():
    family = random_family(0, rank=1)
    assert solve_exact(family, FairProblem(max_disparity=1e9)).status is Status.ALREADY_FAIR
    assert solve_fixed(family, 0.5).status is Status.FIXED
    assert solve_golden(family).status is Status.SEARCHED
    infeasible = solve_exact(diagonal_family([1, 1, 1], [2, 3, 4.0]), FairProblem())
    assert infeasible.status is Status.INFEASIBLE
    assert infeasible.alpha == 0.0
    np.testing.assert_allclose(infeasible.errors, [2.0, 5.0])
    statuses = {
        solve_exact(random_family(seed, rank=rank, alike=0.8), problem).status
        for seed in range(6)
        for rank in (1, 2, 4)
        for problem in PROBLEMS
    }
    assert statuses >= {
        Status.PARITY,
        Status.CAPPED,
        Status.DISPARITY_BUDGET,
        Status.ERROR_BUDGET,
    }
