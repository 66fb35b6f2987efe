"""What a decomposition tells of its neighbours agrees with decompositions there."""

import numpy as np
import pytest
from helpers.data import make_groups

from fairpca import GroupMoments
from fairpca._moments.operand import Operand
from fairpca._problems.fair import FairProblem
from fairpca._problems.robust import RobustProblem
from fairpca._problems.welfare import WelfareProblem
from fairpca._problems.worst_off import WorstOffProblem
from fairpca._solvers import solve
from fairpca._solvers.eigenspaces.dense import Eigenspaces, is_top
from fairpca._solvers.eigenspaces.nearby import Limit
from fairpca._solvers.two_groups import root
from fairpca._solvers.two_groups.exact import solve_exact

WEIGHTS, DIRECTION = np.array([0.3, 0.9]), np.array([0.5, -0.2])


def operand_of(d, rank):
    X, groups = make_groups((6 * d, 2 * d), d=d, seed=rank)
    moments = GroupMoments.from_data(X / np.sqrt(np.arange(1, d + 1)), groups)
    return Operand(moments.second_moments(), moments.weights / moments.weights.sum())


def near(operand, rank):
    spaces = Eigenspaces(operand, rank)
    return spaces, spaces.near(spaces.top(WEIGHTS), DIRECTION)


@pytest.mark.parametrize("rank", [1, 4, 20])
def test_slopes_are_those_of_small_steps(rank):
    operand = operand_of(24, rank)
    spaces, line = near(operand, rank)
    step = 1e-5
    ahead, behind = (spaces.top(WEIGHTS + t * DIRECTION).errors for t in (step, -step))
    np.testing.assert_allclose(line.slopes, (ahead - behind) / (2 * step), rtol=1e-4)


@pytest.mark.parametrize("rank", [1, 5, 40])
def test_root_has_the_eigenspace_that_a_decomposition_finds(rank):
    operand = operand_of(60, rank)
    spaces, line = near(operand, rank)
    t0 = 1e-3
    aim = spaces.top(WEIGHTS + t0 * DIRECTION)
    limit = Limit(lambda t, e: e[0] - aim.errors[0], spaces.rounding, (-0.1, 0.1))
    t, basis, errors, captured = line.root(limit, spaces.errors)
    assert t == pytest.approx(t0, abs=1e-9)
    np.testing.assert_allclose(basis.T @ basis, np.eye(rank), atol=1e-13)
    np.testing.assert_allclose(basis @ basis.T, aim.basis @ aim.basis.T, atol=1e-9)
    np.testing.assert_allclose(errors, aim.errors, rtol=1e-9)
    bound = (WEIGHTS + t * DIRECTION) @ operand.traces - captured
    assert bound == pytest.approx(aim.bound, rel=1e-9)


def test_root_out_of_reach_is_left_to_others():
    spaces, line = near(operand_of(30, 3), 3)
    far = Limit(lambda t, e: e[0] - 0.9 * spaces.traces[0], spaces.rounding, (-0.01, 0.01))
    assert line.root(far, spaces.errors) is None


@pytest.mark.parametrize("constraint", ["pareto", "no_worse", None])
@pytest.mark.parametrize("rank", [3, 10, 60])
def test_corrections_find_what_decompositions_alone_find(rank, constraint, monkeypatch):
    operand, problem = operand_of(120, rank), FairProblem(constraint=constraint)
    spaces = Eigenspaces(operand, rank)
    found = solve_exact(spaces, problem)
    monkeypatch.setattr(root, "_CORRECTED_FROM", 10**6)
    alone = Eigenspaces(operand, rank)
    exact = solve_exact(alone, problem)
    assert found.status is exact.status
    assert spaces.n_eigensolves <= alone.n_eigensolves
    assert found.alpha == pytest.approx(exact.alpha, abs=1e-12)
    np.testing.assert_allclose(found.errors, exact.errors, rtol=1e-12)
    assert abs(found.gap) < 1e-12


def test_an_eigenspace_that_is_not_the_first_is_never_the_answer():
    """Matrices that commute: followed across a crossing, an eigenspace stays one, but not first."""
    d, rank = 120, 4
    values = np.random.default_rng(0).exponential(size=(2, d)) * [[1.0], [1.4]]
    operand = Operand(np.stack([np.diag(v) for v in values]), np.array([0.6, 0.4]))
    for problem in (FairProblem(), FairProblem(constraint=None, max_disparity=0.1)):
        found = solve_exact(Eigenspaces(operand, rank), problem)
        for point in found.rests_on:
            assert is_top(np.tensordot(point.weights, operand.matrices, axes=1), point.basis)
        assert abs(found.gap) < 1e-12


COMMUTING = [
    *map(WelfareProblem, (0.5, 1.0, 3.0)),
    WorstOffProblem("loss"),
    FairProblem(),
    RobustProblem(0.1, 0.5),
]


@pytest.mark.parametrize("problem", COMMUTING, ids=str)
def test_corrections_that_are_exact_at_once_end_well(problem):
    """Matrices that commute leave nothing to correct."""
    values = 1.0 / np.arange(1, 101)
    operand = Operand(np.stack([np.diag(values), 1.7 * np.diag(values[::-1])]), np.full(2, 0.5))
    found = solve(problem, operand, 4)
    np.testing.assert_allclose(found.errors, operand.errors(found.basis), rtol=1e-12)
    assert -1e-9 < found.gap < 1e-6
