"""The exact solver against dense grids, crossings of eigenvalues, and its own certificate."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from helpers.inside import (
    FairProblem,
    Operand,
    Status,
    SubspacePath,
    best_and_worst,
    solve,
    solve_exact,
    solve_fixed,
    solve_golden,
)
from helpers.two_groups import (
    PROBLEMS,
    check,
    diagonal_family,
    family_of,
    grid,
    random_family,
    values,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from fairpca import FairPCA


@cache
def grid_of(seed, rank, alike):
    return grid(random_family(seed, rank=rank, alike=alike))


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
    alphas, errors = grid_of(seed, rank, alike)
    grid_R = errors @ family.shares
    grid_D = errors[:, solution.harmed] - errors[:, solution.privileged]
    allowed = (grid_R <= (1 + problem.max_error_increase) * R_pca + 1e-12) & (
        grid_D >= (problem.max_disparity or 0.0) - 1e-12
    )
    if problem.constraint == "no_worse":
        allowed &= errors.max(axis=1) <= solution.pca.errors.max() + 1e-12
    if problem.constraint == "efficient":
        allowed &= alphas >= 1 / (1 + family.shares[solution.privileged])
    assert grid_D[allowed].min() + 1e-9 >= D
    fair_enough = allowed & (grid_D <= D + 1e-12)
    assert not fair_enough.any() or grid_R[fair_enough].min() + 1e-9 >= R


def test_random_projections_never_beat_parity():
    family = random_family(3, rank=2)
    best = solve_exact(family, FairProblem())
    assert best.status is Status.PARITY
    rng = np.random.default_rng(0)
    for _ in range(100):
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
        for problem in (FairProblem(), FairProblem(constraint="no_worse")):
            solution = solve_exact(family, problem)
            check(family, solution, problem)


@settings(deadline=None, max_examples=100)
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
    solution = solve_exact(diagonal_family(*kept, rank=2), FairProblem(constraint="no_worse"))
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


@pytest.mark.parametrize("seed", range(40))
def test_an_isotropic_harmed_group_leaves_the_least_disparity(seed):
    """Every projection is equally good for B, so A's error decides: its largest is a sum."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 9))
    rank = int(rng.integers(1, d))
    variances = rng.integers(0, 4, d).astype(float)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    family = family_of([rotation * variances @ rotation.T, 4.0 * np.eye(d)], (0.5, 0.5), rank)
    solution = solve_exact(family, FairProblem(constraint="no_worse"))
    assert solution.status is Status.CAPPED
    least = 4.0 * (d - rank) - np.sort(variances)[rank:].sum()
    D = solution.errors[1] - solution.errors[0]
    assert pytest.approx(least, abs=1e-12 * family.traces.max()) == D
    assert abs(solution.gap) <= 1e-13 * family.traces.max()


@pytest.mark.parametrize("seed", range(40))
def test_a_tied_leading_block_of_the_harmed_group_is_used(seed):
    """No choice of weights proves a larger disparity than the one found."""
    rng = np.random.default_rng(seed)
    d, rank = 6, int(rng.integers(1, 4))
    first, second = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
    B = np.array([4.0, 4, 4, 4, *rng.integers(0, 3, 2)])
    A = rng.integers(0, 3, d).astype(float)
    # Half of the problems turn A with B, so that PCA is often the best projection for B already.
    turned = first if seed % 2 else second
    family = family_of([turned * A @ turned.T, first * B @ first.T], (0.5, 0.5), rank)
    solution = solve_exact(family, FairProblem(constraint="no_worse"))
    a, b = solution.privileged, solution.harmed
    cap, p_A = solution.pca.errors[b], family.shares[a]
    proven = 0.0
    for alpha in np.linspace(0, 1 / (1 + p_A), 400)[:-1]:
        weights = alpha * family.shares
        weights[[a, b]] += (alpha - 1, 1 - alpha)
        left = np.linalg.eigvalsh(np.tensordot(weights, family.matrices, 1))[: d - rank].sum()
        proven = max(proven, (left - alpha * cap) / (1 - alpha * (1 + p_A)))
    D = solution.errors[b] - solution.errors[a]
    assert solution.errors.max() <= cap + 1e-12 * family.traces.max()
    assert proven - 1e-9 <= D
    assert proven - 0.01 * family.traces.max() <= D <= proven + 0.01 * family.traces.max()
    assert solution.value - solution.bound <= 1e-8 * family.traces.max()


@pytest.mark.parametrize("seed", range(20))
def test_parity_at_the_lower_side_of_a_jump_is_not_missed(seed):
    """Matrices that commute, rotated: rounding decides which side of the jump has no slack."""
    values = np.array([[0.0, 2, 3, 3, 4, 4], [1, 3, 4, 5, 3, 3]])
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(6, 6)))[0]
    operand = Operand(np.stack([Q.T @ np.diag(v) @ Q for v in values]), np.array([0.4, 0.6]))
    found = solve(FairProblem(constraint="no_worse"), operand, 4)
    assert found.status in (Status.PARITY, Status.CAPPED)  # the cap is met there as well
    assert abs(found.errors[1] - found.errors[0]) < 1e-12


@pytest.mark.parametrize("constraint", ["parity", "no_worse", "efficient"])
def test_no_more_error_than_pca_still_leaves_a_choice_between_equal_eigenvalues(constraint):
    family = diagonal_family([4.0, 0], [0.0, 4], rank=1)
    for budget in (0.0, np.inf):
        problem = FairProblem(constraint=constraint, max_error_increase=budget)
        solution = solve_exact(family, problem)
        assert solution.status is Status.PARITY
        np.testing.assert_allclose(solution.errors, [2.0, 2.0], atol=1e-12)
        assert abs(solution.gap) <= 1e-12
    unique = solve_exact(
        diagonal_family([4.0, 1, 1], [2.0, 7, 5], rank=1),  # no ties
        FairProblem(constraint=constraint, max_error_increase=0.0),
    )
    assert unique.status is Status.ERROR_BUDGET
    np.testing.assert_allclose(unique.errors, unique.pca.errors, atol=1e-12)


def test_the_efficient_end_is_the_best_for_the_harmed_group_and_then_for_the_other():
    """Among the projections that are best for B, the one that is best for A is taken."""
    family = diagonal_family([3.0, 1, 0, 0], [0.0, 5, 5, 9], rank=2)
    solution = solve_exact(family, FairProblem(constraint="efficient"))
    assert solution.status is Status.WORST_OFF_BEST
    np.testing.assert_allclose(solution.errors, [3.0, 5.0])
    assert abs(solution.gap) <= 1e-12
    assert solution.objective == "harmed"


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
        for seed in range(3)
        for rank in (1, 2, 4)
        for problem in PROBLEMS
    }
    assert statuses >= {
        Status.PARITY,
        Status.WORST_OFF_BEST,
        Status.CAPPED,
        Status.DISPARITY_BUDGET,
        Status.ERROR_BUDGET,
    }


@pytest.mark.parametrize("seed", [9, 24])
@pytest.mark.parametrize("share", [0.001, 0.999])
def test_a_group_that_is_served_alike_by_all_projections_is_not_levelled_down(seed, share):
    """The best for it is any projection, PCA too; beside alpha_B rounding makes up others."""
    d = 100
    X = np.random.default_rng(seed).normal(size=(2 * d, d))
    operand = Operand(np.array([np.eye(d), X.T @ X / (2 * d)]), np.array([share, 1 - share]))
    found = solve(FairProblem(constraint="efficient"), operand, d - 1)
    if found.harmed == 0:
        assert found.status is Status.WORST_OFF_BEST
        np.testing.assert_allclose(found.errors, found.pca.errors, rtol=1e-9)


def rows_with_covariance(variances):
    half = np.diag(np.sqrt(np.array(variances) * len(variances)))
    return np.vstack([half, -half])


@pytest.mark.filterwarnings("ignore::fairpca.exceptions.LevellingDownWarning")
@pytest.mark.parametrize("relative_errors", [False, True])
@pytest.mark.parametrize("budget", [0.0, 0.01, 0.1, 0.5])
def test_an_error_budget_is_kept_among_projections_that_are_equally_good_for_the_harmed_group(
    budget, relative_errors
):
    """B's leading eigenvalues are tied across the rank, so its error does not limit the walk."""
    X = np.vstack([rows_with_covariance([2, 1.5, 1, 0.5]), rows_with_covariance([3.0, 3, 3, 1])])
    fair = FairPCA(
        2, constraint="no_worse", max_error_increase=budget, relative_errors=relative_errors
    ).fit(X, sensitive_features=np.repeat(["a", "b"], 8))
    increase = fair.reconstruction_error_ / fair.pca_reconstruction_error_ - 1
    assert increase <= budget + 1e-12
    assert fair.disparity_ <= np.diff(fair.pca_group_errors_)[0] + 1e-12
    if fair.status_ == Status.ERROR_BUDGET:
        assert increase == pytest.approx(budget)
    assert fair.duality_gap_ <= 1e-12


@pytest.mark.parametrize("seed", range(60))
def test_an_error_budget_among_ties_leaves_the_least_disparity(seed):
    """Diagonal matrices with ties: the best mixture of coordinates, by a linear program."""
    rng = np.random.default_rng(seed)
    kept = np.stack([0.5 * rng.integers(0, 4, 5), np.sort(rng.integers(1, 4, 5))[::-1]]).astype(
        float
    )
    problem = FairProblem(constraint="no_worse", max_error_increase=0.05)
    solution = solve_exact(diagonal_family(*kept, rank=2), problem)
    A, B = solution.privileged, solution.harmed
    traces, cap = kept.sum(axis=1), solution.pca.errors[B]
    limit = 1.05 * 0.5 * solution.pca.errors.sum()
    best = linprog(
        kept[A] - kept[B],
        A_ub=[-kept[B], -kept[A], kept[B] - kept[A], -0.5 * kept.sum(axis=0)],
        b_ub=[cap - traces[B], cap - traces[A], traces[B] - traces[A], limit - 0.5 * traces.sum()],
        A_eq=[np.ones(5)],
        b_eq=[2],
        bounds=(0, 1),
    )
    least = best.fun + traces[B] - traces[A] if best.success else np.inf
    assert 0.5 * solution.errors.sum() <= limit + 1e-9
    assert solution.errors.max() <= cap + 1e-9
    assert solution.errors[B] - solution.errors[A] <= least + 1e-8


@pytest.mark.parametrize("constraint", ["efficient", "no_worse", "parity"])
def test_nothing_is_paid_for_groups_that_differ_by_rounding_of_the_data(constraint):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6)) * np.arange(1, 7)
    nearly = X * (1 + 1e-9 * rng.normal(size=X.shape))
    fair = FairPCA(2, constraint=constraint).fit(
        np.vstack([X, nearly]), sensitive_features=np.repeat(["a", "b"], 60)
    )
    assert 0 < abs(fair.disparity_) < 1e-7
    assert fair.status_ == Status.ALREADY_FAIR
    assert fair.reconstruction_error_ == pytest.approx(fair.pca_reconstruction_error_, rel=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_who_is_harmed_does_not_depend_on_rounding(sign):
    """Both groups lose nothing; which error is larger by an epsilon is up to the processor."""
    assert best_and_worst(sign * np.array([3e-16, -2e-16]), np.ones(2), np.ones(2, bool)) == (0, 1)
    errors = np.array([2.0, 5.0, 5.0 - sign * 1e-15, 2.0 + sign * 1e-15])
    assert best_and_worst(errors, np.full(4, 9.0), np.ones(4, bool)) == (0, 2)
