"""Predictions from one decomposition agree with decompositions nearby."""

import numpy as np
import pytest
from helpers.data import make_groups
from helpers.inside import (
    Eigenspaces,
    FairProblem,
    Operand,
    RootPrediction,
    Slack,
    WelfareProblem,
    WorstOffProblem,
    is_top,
    root_prediction,
    solve,
    solve_exact,
    values_within,
)

from fairpca import GroupMoments

WEIGHTS, DIRECTION = np.array([0.3, 0.9]), np.array([0.5, -0.2])


def operand_of(d, rank):
    X, groups = make_groups((6 * d, 2 * d), d=d, seed=rank)
    moments = GroupMoments.from_data(X / np.sqrt(np.arange(1, d + 1)), groups)
    return Operand(moments.second_moments(), moments.weights / moments.weights.sum())


def near(operand, rank, error=0.0, reach=0.1):
    """The line of weights, on which the first group is to have this error."""
    spaces = Eigenspaces(operand, rank)
    slack = Slack(lambda _, errors: errors[0] - error, spaces.rounding, (-reach, reach))
    spaces.top(WEIGHTS)
    decomposition = spaces.kept[-1]
    return spaces, RootPrediction(spaces, decomposition, DIRECTION, slack)


def errors_at(spaces, t):
    return spaces.top(WEIGHTS + t * DIRECTION).errors


@pytest.mark.parametrize("rank", [1, 4, 20])
def test_slopes_are_those_of_small_steps(rank):
    spaces, line = near(operand_of(24, rank), rank)
    step = 1e-5
    ahead, behind = (errors_at(spaces, t) for t in (step, -step))
    np.testing.assert_allclose(line.slopes, (ahead - behind) / (2 * step), rtol=1e-4)


@pytest.mark.parametrize("rank", [1, 4, 20])
def test_what_is_expected_ahead_is_right_to_first_order(rank):
    spaces, line = near(operand_of(48, rank), rank)
    here = spaces.top(WEIGHTS).errors
    np.testing.assert_allclose(line.predicted_errors(0.0)[0], here, rtol=1e-12)
    np.testing.assert_allclose(line.predicted_errors(0.0)[1], line.slopes, rtol=1e-9)
    for t in (-2e-3, 2e-3):
        wrong = [
            np.abs(line.predicted_errors(u)[0] - errors_at(spaces, u)).max() for u in (t, t / 2)
        ]
        assert wrong[1] < wrong[0] / 3  # a quarter, if the second order is what is missing
        change = (line.predicted_errors(t + 1e-6)[0] - line.predicted_errors(t - 1e-6)[0]) / 2e-6
        np.testing.assert_allclose(line.predicted_errors(t)[1], change, rtol=1e-4)


def test_a_single_pair_is_foreseen_exactly():
    spaces, line = near(operand_of(2, 1), 1)
    for t in (-2.0, -0.5, 0.5, 2.0):
        np.testing.assert_allclose(line.predicted_errors(t)[0], errors_at(spaces, t), rtol=1e-12)


@pytest.mark.parametrize("rank", [1, 4, 11])
def test_vectors_that_all_mix_freely_are_foreseen_exactly(rank, monkeypatch):
    monkeypatch.setattr(root_prediction, "_DECOMPOSED_TOGETHER", 1)
    spaces, line = near(operand_of(12, rank), rank)
    for t in (-2.0, -0.5, 0.5, 2.0):
        np.testing.assert_allclose(line.predicted_errors(t)[0], errors_at(spaces, t), rtol=1e-11)


@pytest.mark.parametrize("t0", [1e-3, -2e-2])
@pytest.mark.parametrize("rank", [1, 5, 40])
def test_root_has_the_eigenspace_that_a_decomposition_finds(rank, t0):
    operand = operand_of(60, rank)
    aim = Eigenspaces(operand, rank).top(WEIGHTS + t0 * DIRECTION)
    _, line = near(operand, rank, aim.errors[0])
    assert line.predicted == pytest.approx(t0, rel=0.1)
    t, point = line.root()
    assert t == pytest.approx(t0, abs=1e-9)
    np.testing.assert_allclose(point.weights, WEIGHTS + t * DIRECTION, rtol=1e-15)
    np.testing.assert_allclose(point.basis.T @ point.basis, np.eye(rank), atol=1e-13)
    np.testing.assert_allclose(point.basis @ point.basis.T, aim.basis @ aim.basis.T, atol=1e-8)
    np.testing.assert_allclose(point.errors, aim.errors, rtol=1e-9)
    assert point.bound == pytest.approx(point.weights @ point.errors, rel=1e-9)


def test_root_out_of_reach_is_left_to_others():
    operand = operand_of(30, 3)
    _, line = near(operand, 3, 0.9 * operand.traces[0], reach=0.01)
    assert np.isnan(line.predicted)
    assert line.root() is None


def test_a_least_eigenvalue_is_not_hidden_by_the_basis():
    """Mixed eigenvectors have larger quotients than the least eigenvalue among them."""
    M = np.diag([4.0, 2.0, 2.5, 1.0])
    mixed = np.zeros((4, 2))
    mixed[:2] = np.sqrt(0.5) * np.array([[1.0, 1.0], [1.0, -1.0]])
    assert np.einsum("ij,ij->j", mixed, M @ mixed).min() > 2.5
    assert not is_top(M, mixed, np.array([2.0, 4.0]))


@pytest.mark.parametrize("constraint", ["efficient", "no_worse", "parity"])
@pytest.mark.parametrize("rank", [3, 10, 60])
def test_corrections_find_what_decompositions_alone_find(rank, constraint, monkeypatch):
    operand, problem = operand_of(120, rank), FairProblem(constraint=constraint)
    spaces = Eigenspaces(operand, rank)
    found = solve_exact(spaces, problem)
    monkeypatch.setattr(Eigenspaces, "predict_above", 10**6)
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
    for problem in (FairProblem(), FairProblem(constraint="parity", max_disparity=0.1)):
        found = solve_exact(Eigenspaces(operand, rank), problem)
        for point in found.rests_on:
            M, U = np.tensordot(point.weights, operand.matrices, axes=1), point.basis
            assert is_top(M, U, values_within(M, U))
        assert abs(found.gap) < 1e-12


COMMUTING = [*map(WelfareProblem, (0.5, 1.0, 3.0)), WorstOffProblem("loss"), FairProblem()]


@pytest.mark.parametrize("problem", COMMUTING, ids=str)
def test_corrections_that_are_exact_at_once_end_well(problem):
    """Matrices that commute leave nothing to correct."""
    values = 1.0 / np.arange(1, 101)
    operand = Operand(np.stack([np.diag(values), 1.7 * np.diag(values[::-1])]), np.full(2, 0.5))
    found = solve(problem, operand, 4)
    np.testing.assert_allclose(found.errors, operand.errors(found.basis), rtol=1e-12)
    assert -1e-9 < found.gap < 1e-6
