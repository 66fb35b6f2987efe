"""Eigenspaces in growing bases agree with those of dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.data import make_groups
from helpers.inside import (
    Eigenspaces,
    FairProblem,
    GrowingBasis,
    Operand,
    growing_bases,
    is_top,
    solve,
    solve_exact,
    values_within,
)
from helpers.two_groups import PROBLEMS, check

from fairpca import GroupMoments


@pytest.mark.parametrize("rank", [1, 3, 8])
@pytest.mark.parametrize("problem", [*PROBLEMS[:3], PROBLEMS[4]], ids=str)
def test_bases_agree_with_dense(rank, problem):
    rng = np.random.default_rng(rank)
    d = 160
    decay = np.arange(1, d + 1) ** -1.0
    A = rng.normal(size=(400, d)) * decay
    B = rng.normal(size=(250, d)) * rng.permutation(decay[:40].tolist() + [0.01] * (d - 40))
    moments = GroupMoments.from_data(np.vstack([A, B + 0.1]), np.repeat(["a", "b"], [400, 250]))
    operand = Operand(moments.second_moments(), moments.weights / moments.weights.sum())
    basis = GrowingBasis(operand, rank, limit=d)
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


@pytest.mark.parametrize("rank", [10, 50])
def test_searches_that_follow_each_other_start_where_the_last_one_ended(rank):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 200)) * np.arange(1, 201) ** -0.5
    groups = np.arange(600) % 3 == 0
    X[groups] = 1.2 * X[groups][:, ::-1]
    moments = GroupMoments.from_data(X, groups)
    operand = Operand(moments.second_moments(), moments.weights / moments.weights.sum())
    first = solve(FairProblem(), operand, rank)
    of_pca = float(np.ptp(first.pca.errors))
    start, taken, alone = first, 0, 0
    for part in np.linspace(1, 0, 12)[1:-1]:
        problem = FairProblem(max_disparity=part * of_pca)
        start = solve(problem, operand, rank, start=start)
        taken += start.n_eigensolves
        exact = solve(problem, operand, rank)
        alone += exact.n_eigensolves
        np.testing.assert_allclose(start.errors, exact.errors, rtol=1e-9)
        assert abs(start.gap) < 1e-11
    assert taken < alone


@pytest.mark.parametrize("rank", [3, 12])
@pytest.mark.parametrize("kind", ["diagonal", "disjoint", "multiple"])
@pytest.mark.parametrize("problem", [FairProblem(), FairProblem(constraint="no_worse")], ids=str)
def test_eigenvectors_outside_of_an_invariant_basis_are_not_overlooked(rank, kind, problem):
    """Matrices that commute leave no residual whatever is missing."""
    rng = np.random.default_rng(rank)
    d = 160
    values = rng.exponential(size=(2, d)) * [[1.0], [1.4]]
    if kind == "disjoint":
        values[0, d // 2 :] = values[1, : d // 2] = 0
    if kind == "multiple":
        values = np.ceil(2 * values)
    C = np.stack([np.diag(v) for v in values])
    operand = Operand(C, np.array([0.6, 0.4]))
    exact = solve_exact(Eigenspaces(operand, rank), problem)
    solution = GrowingBasis(operand, rank, limit=d).solve(lambda s: solve_exact(s, problem))
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
        for chosen, first in (
            ([*range(6)], True),
            ([0, 1, 2, 3, 4, 6], False),
            ([*range(1, 7)], False),
        ):
            U = ordered[:, chosen]
            assert is_top(sign * C, U, values_within(sign * C, U)) is first


def test_bases_give_up_where_dense_is_faster():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 320))
    moments = GroupMoments.from_data(X, np.arange(700) % 3 == 0)
    operand = Operand(moments.second_moments(), moments.weights / moments.weights.sum())
    basis = GrowingBasis(operand, 5, limit=30)
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
        return solve_exact(family, FairProblem(constraint="no_worse"))

    left = GrowingBasis(FromRows(), 4, limit=400).solve(problem)
    right = GrowingBasis(dense, 4, limit=400).solve(problem)
    np.testing.assert_allclose(left.errors, right.errors, rtol=1e-9)


@pytest.mark.parametrize("difference", [1e-4, 1e-8, 1e-11])
@pytest.mark.parametrize("limits", [{}, {"max_error_increase": 0.01}], ids=str)
def test_groups_that_are_nearly_alike_are_told_apart_as_well(difference, limits, monkeypatch):
    """Far from PCA the matrices are as small as the difference; so must residuals be."""
    growing_bases(monkeypatch, start=200)
    rng = np.random.default_rng(0)
    d = 200
    A, E = (rng.normal(size=(2 * d, d)) * np.arange(1, d + 1) ** -0.5 for _ in range(2))
    C = A.T @ A / len(A)
    operand = Operand(np.stack([C, C + difference * E.T @ E]), np.array([0.6, 0.4]))
    problem = FairProblem(constraint="parity", **limits)
    exact = solve_exact(Eigenspaces(operand, 5), problem)
    found = solve(problem, operand, 5)
    assert found.status is exact.status
    of_pca = float(np.ptp(exact.pca.errors))
    np.testing.assert_allclose(np.diff(found.errors), np.diff(exact.errors), atol=1e-5 * of_pca)


@pytest.mark.parametrize("problem", [FairProblem(), FairProblem(constraint="efficient")], ids=str)
def test_an_eigenvector_that_the_start_of_the_basis_misses_is_found(problem, monkeypatch):
    """The start is orthogonal to a direction that the matrices do not mix with others."""
    growing_bases(monkeypatch, start=200)
    d, rank = 280, 3
    start = np.random.default_rng(0).standard_normal((rank + 8, d))
    rng = np.random.default_rng(1)
    hidden = rng.normal(size=d)
    hidden -= start.T @ np.linalg.lstsq(start.T, hidden, rcond=None)[0]
    hidden /= np.linalg.norm(hidden)
    beside = np.eye(d) - np.outer(hidden, hidden)
    factors = rng.normal(size=(2, d, d)) * np.geomspace(3, 0.1, d) / np.sqrt(d)
    C = np.array([beside @ F.T @ F @ beside + 400 * np.outer(hidden, hidden) for F in factors])
    operand = Operand(C, np.array([0.6, 0.4]))
    found, exact = solve(problem, operand, rank), solve_exact(Eigenspaces(operand, rank), problem)
    assert isinstance(found.found_in, GrowingBasis)
    np.testing.assert_allclose(found.errors, exact.errors, rtol=1e-9)
    np.testing.assert_allclose(found.pca.errors, exact.pca.errors, rtol=1e-9)
    assert abs(found.gap) < 1e-9
