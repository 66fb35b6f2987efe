"""The exact solver against dense grids, crossings of eigenvalues, and its own certificate."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.data import make_groups
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from fairpca import GroupMoments
from fairpca._moments.operand import Operand
from fairpca._problems.fair import FairProblem
from fairpca._problems.status import Status
from fairpca._solvers import solve
from fairpca._solvers.eigenspaces import choose, snapshots
from fairpca._solvers.eigenspaces.dense import Eigenspaces, is_top, top_eigenvectors
from fairpca._solvers.eigenspaces.growing import GrowingBasis
from fairpca._solvers.eigenspaces.snapshots import SnapshotBasis
from fairpca._solvers.two_groups.exact import solve_exact
from fairpca._solvers.two_groups.frontier import Frontier, solve_fixed
from fairpca._solvers.two_groups.golden import solve_golden
from fairpca._solvers.two_groups.subspace_path import SubspacePath


def family_of(C, shares, rank):
    return Eigenspaces(Operand(np.asarray(C, dtype=float), np.asarray(shares)), rank)


def random_family(seed, d=6, rank=2, alike=0.0):
    X, groups = make_groups(d=d, seed=seed, alike=alike)
    moments = GroupMoments.from_data(X, groups)
    return family_of(moments.second_moments(), moments.weights / moments.weights.sum(), rank)


def diagonal_family(a, b, shares=(0.5, 0.5), rank=1):
    return family_of([np.diag(a), np.diag(b)], shares, rank)


def grid(family, n=501):
    """Errors along a dense grid of alpha, computed with numpy alone."""
    C_A, C_B = family.matrices[[0, 1]]
    p = family.shares
    C = p[0] * C_A + p[1] * C_B
    U = np.linalg.eigh(C)[1][:, -family.rank :]
    errors = [np.trace(M) - np.trace(U.T @ M @ U) for M in (C_A, C_B)]
    difference = C_A - C_B if errors[0] > errors[1] else C_B - C_A
    alphas = np.linspace(0, 1, n)
    weights = alphas[:, None, None]
    U = np.linalg.eigh(weights * C + (1 - weights) * difference)[1][:, :, -family.rank :]
    kept = [np.trace(np.swapaxes(U, 1, 2) @ G @ U, axis1=1, axis2=2) for G in (C_A, C_B)]
    return alphas, np.column_stack([np.trace(C_A) - kept[0], np.trace(C_B) - kept[1]])


def check(family, solution, problem, gap_scale=1.0):
    """What must hold of every exact solution."""
    scale = family.traces.max()
    U = solution.basis
    np.testing.assert_allclose(U.T @ U, np.eye(family.rank), atol=1e-12)
    by_definition = family.traces - [np.trace(U.T @ C @ U) for C in family.matrices]
    np.testing.assert_allclose(solution.errors, by_definition, atol=1e-12 * scale)
    R, D = values(family, solution, solution.errors)
    R_pca, D_pca = values(family, solution, solution.pca.errors)
    assert solution.pca.errors[solution.harmed] >= solution.pca.errors[solution.privileged]
    assert problem.max_disparity - 1e-12 * scale <= D or solution.status is Status.ALREADY_FAIR
    if problem.no_worse:
        assert solution.errors.max() <= solution.pca.errors.max() + 1e-12 * scale
    if np.isfinite(problem.max_error_increase):
        assert (1 + problem.max_error_increase) * R_pca + 1e-12 * scale >= R
    assert R_pca - 1e-12 * scale <= R
    assert D_pca + 1e-12 * scale >= D
    assert abs(solution.gap) <= 1e-11 * scale * gap_scale


def values(family, solution, errors):
    return family.shares @ errors, errors[solution.harmed] - errors[solution.privileged]


PROBLEMS = [
    FairProblem(),
    FairProblem(no_worse=True),
    FairProblem(max_disparity=0.05),
    FairProblem(max_disparity=0.05, no_worse=True),
    FairProblem(max_error_increase=0.01),
    FairProblem(max_error_increase=0.02, no_worse=True),
    FairProblem(max_error_increase=0.0),
]


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


@pytest.mark.parametrize("rank", [1, 3, 8])
@pytest.mark.parametrize("problem", [*PROBLEMS[:3], PROBLEMS[4]], ids=str)
@pytest.mark.parametrize("kind", [GrowingBasis, SnapshotBasis])
def test_bases_agree_with_dense(rank, problem, kind):
    rng = np.random.default_rng(rank)
    d = 300
    decay = np.arange(1, d + 1) ** -1.0
    A = rng.normal(size=(400, d)) * decay
    B = rng.normal(size=(250, d)) * rng.permutation(decay[:40].tolist() + [0.01] * (d - 40))
    moments = GroupMoments.from_data(np.vstack([A, B + 0.1]), np.repeat(["a", "b"], [400, 250]))
    operand = Operand(moments.second_moments(), moments.weights / moments.weights.sum())
    basis = kind(operand, rank, limit=d)
    grown = basis.solve(lambda family: solve_exact(family, problem))
    dense = Eigenspaces(operand, rank)
    exact = solve_exact(dense, problem)
    check(dense, grown, problem, gap_scale=10 / max(exact.alpha, 1e-3))
    assert grown.status is exact.status
    np.testing.assert_allclose(grown.errors, exact.errors, atol=1e-10)
    assert grown.alpha == pytest.approx(exact.alpha, abs=1e-6)
    again = solve(problem, operand, rank)
    np.testing.assert_allclose(again.errors, exact.errors, atol=1e-10)
    assert again.n_eigensolves > 0


def test_snapshots_take_few_decompositions_of_all_features(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 300)) * np.arange(1, 301) ** -0.5
    groups = np.arange(900) % 3 == 0
    X[groups] = 1.2 * X[groups][:, ::-1]
    moments = GroupMoments.from_data(X, groups)
    operand = Operand(moments.second_moments(), moments.weights / moments.weights.sum())
    decomposed = []

    def counted(M, r):
        decomposed.append(M)
        return top_eigenvectors(M, r)

    monkeypatch.setattr(snapshots, "top_eigenvectors", counted)
    basis = SnapshotBasis(operand, 10, limit=150)
    solution = basis.solve(lambda family: solve_exact(family, FairProblem()))
    assert basis.converged
    assert solution.status is Status.PARITY
    family = Eigenspaces(operand, 10)
    solve_exact(family, FairProblem())
    assert len(decomposed) <= 5 < family.n_eigensolves


@pytest.mark.parametrize("rank", [3, 12])
@pytest.mark.parametrize("kind", ["diagonal", "disjoint", "multiple"])
@pytest.mark.parametrize("problem", [FairProblem(), FairProblem(no_worse=True)], ids=str)
def test_eigenvectors_outside_of_an_invariant_basis_are_not_overlooked(rank, kind, problem):
    """Matrices that commute leave no residual whatever is missing."""
    rng = np.random.default_rng(rank)
    d = 320
    values = rng.exponential(size=(2, d)) * [[1.0], [1.4]]
    if kind == "disjoint":
        values[0, d // 2 :] = values[1, : d // 2] = 0
    if kind == "multiple":
        values = np.ceil(2 * values)
    C = np.stack([np.diag(v) for v in values])
    operand = Operand(C, np.array([0.6, 0.4]))
    first, *_ = choose._bases(operand, rank, None)
    assert isinstance(first, SnapshotBasis)
    solution = solve(problem, operand, rank)
    exact = solve_exact(Eigenspaces(operand, rank), problem)
    assert solution.status is exact.status
    np.testing.assert_allclose(solution.pca.errors @ operand.shares, exact.pca.bound)
    if kind != "multiple":  # where subspaces are equally good, another one may be found
        np.testing.assert_allclose(solution.errors, exact.errors, atol=1e-9)
    assert abs(solution.gap) < 1e-9


def test_first_eigenspace_is_told_from_others():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 40))
    C = A.T @ A / 50
    vectors = np.linalg.eigh(C)[1][:, ::-1]
    for sign in (1.0, -1.0):
        ordered = vectors if sign > 0 else vectors[:, ::-1]
        assert is_top(sign * C, ordered[:, :6])
        assert not is_top(sign * C, ordered[:, [0, 1, 2, 3, 4, 6]])
        assert not is_top(sign * C, ordered[:, 1:7])


@pytest.mark.parametrize("kind", [GrowingBasis, SnapshotBasis])
def test_bases_give_up_where_dense_is_faster(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 320))
    moments = GroupMoments.from_data(X, np.arange(700) % 3 == 0)
    operand = Operand(moments.second_moments(), moments.weights / moments.weights.sum())
    basis = kind(operand, 5, limit=30 if kind is GrowingBasis else 10)
    rough = basis.solve(lambda family: solve_exact(family, FairProblem()))
    assert not basis.converged
    solution = solve(FairProblem(), operand, 5)
    dense = Eigenspaces(operand, 5)
    exact = solve_exact(dense, FairProblem())
    np.testing.assert_allclose(solution.errors, exact.errors, atol=1e-9)
    # The rough answer is as fair, its errors are exact, and its gap covers what it misses.
    np.testing.assert_allclose(rough.errors, dense.errors(rough.basis), atol=1e-10)
    np.testing.assert_allclose(rough.errors[0], rough.errors[1], atol=1e-10)
    assert 0 < operand.shares @ (rough.errors - exact.errors) <= rough.gap


def test_growing_basis_restarts_within_its_capacity():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 310)) * np.arange(1, 311) ** -0.7
    moments = GroupMoments.from_data(X, np.arange(500) % 3 == 0)
    operand = Operand(moments.second_moments(), moments.weights / moments.weights.sum())
    basis = GrowingBasis(operand, 4, limit=2000, capacity=48)
    solution = basis.solve(lambda family: solve_exact(family, FairProblem()))
    assert basis.converged
    exact = solve_exact(Eigenspaces(operand, 4), FairProblem())
    np.testing.assert_allclose(solution.errors, exact.errors, atol=1e-10)


def test_growing_basis_needs_products_and_traces_only():
    """An operand without matrices, fed from X, gives the same answer."""
    X, groups = make_groups(n=(80, 50), d=400, seed=4)
    moments = GroupMoments.from_data(X, groups)
    dense = Operand(moments.second_moments(), moments.weights / moments.weights.sum())
    centred = X - X.mean(axis=0)

    class FromRows(Operand):
        matrices = None
        shares, compared, n_features = dense.shares, dense.compared, 400
        traces = np.array(
            [np.mean(np.sum(centred[groups == g] ** 2, axis=1)) for g in moments.groups]
        )

        def __init__(self):
            pass

        def products(self, V):
            parts = [centred[groups == g] for g in moments.groups]
            return np.array([Z.T @ (Z @ V) / len(Z) for Z in parts])

    def problem(family):
        return solve_exact(family, FairProblem(no_worse=True))

    left = GrowingBasis(FromRows(), 4, limit=400).solve(problem)
    right = GrowingBasis(dense, 4, limit=400).solve(problem)
    np.testing.assert_allclose(left.errors, right.errors, rtol=1e-9)


def test_path_between_subspaces():
    family = random_family(2, d=8, rank=3)
    rng = np.random.default_rng(1)
    U, V = (np.linalg.qr(rng.normal(size=(8, 3)))[0] for _ in range(2))
    path = SubspacePath(family, U, V)
    for s, end in ((0.0, U), (1.0, V)):
        np.testing.assert_allclose(path.basis(s) @ path.basis(s).T, end @ end.T, atol=1e-12)
    for s in np.linspace(0, 1, 7):
        basis = path.basis(s)
        np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
        np.testing.assert_allclose(path.errors(s), family.errors(basis), atol=1e-12)
    still = SubspacePath(family, U, U @ np.linalg.qr(rng.normal(size=(3, 3)))[0])
    np.testing.assert_allclose(still.basis(0.5) @ still.basis(0.5).T, U @ U.T, atol=1e-12)
