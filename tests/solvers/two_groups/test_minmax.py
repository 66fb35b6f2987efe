"""The least largest criterion of two groups."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.inside import (
    Eigenspaces,
    GrowingBasis,
    Operand,
    WorstOffProblem,
    growing_bases,
    solve,
    solve_minmax,
)
from helpers.worst_off import CRITERIA

from fairpca import GroupMoments


def family_of(a, b, rank):
    C = np.array([np.diag(a), np.diag(b)], dtype=float)
    return Eigenspaces(Operand(C, np.array([0.4, 0.6])), rank)


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_eigenvalues_that_cross(criterion, rank):
    # Each group varies along its own axes, so U(t) jumps and the answer lies between both sides.
    family = family_of([4.0, 0, 0, 3, 0], [0, 4.0, 0, 0, 3], rank)
    solution = solve_minmax(family, criterion)
    assert solution.extras["group_losses_"][0] == pytest.approx(
        solution.extras["group_losses_"][1], abs=1e-12
    )
    assert abs(solution.gap) < 1e-12
    assert solution.weights == pytest.approx([0.5, 0.5])
    if rank == 1:
        assert np.abs(solution.basis[:2, 0]) == pytest.approx([np.sqrt(0.5)] * 2)


def test_ties_go_to_the_other_group_when_one_decides():
    # Group 0 varies along the first axis only: the second component is free, and group 1 gets it.
    solution = solve_minmax(family_of([9.0, 0, 0, 0], [1.0, 0, 2, 0.5], 2), "loss")
    assert solution.extras["group_losses_"] == pytest.approx([0, 0], abs=1e-12)
    decided = solve_minmax(family_of([9.0, 8, 7, 0], [0.1, 0, 0, 0.2], 1), "error")
    assert decided.status == "one group decides"
    assert decided.basis[:, 0] == pytest.approx([1, 0, 0, 0], abs=1e-12)
    assert decided.gap == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_growing_basis_finds_what_the_dense_solver_does(criterion, monkeypatch):
    growing_bases(monkeypatch, start=200)
    d, r = 320, 3
    rng = np.random.default_rng(9)
    X = rng.normal(size=(500, d)) * np.geomspace(5, 0.01, d)
    groups = np.where(np.arange(500) < 180, "a", "b")
    X[:180] = X[:180][:, rng.permutation(d)] + 0.3
    moments = GroupMoments.from_data(X, groups)
    operand = moments.operand()
    grown = solve(WorstOffProblem(criterion), operand, r)
    assert isinstance(grown.found_in, GrowingBasis)
    dense = solve_minmax(Eigenspaces(operand, r), criterion)
    np.testing.assert_allclose(
        grown.extras["group_losses_"],
        dense.extras["group_losses_"],
        atol=1e-9 * operand.traces.max(),
    )
    assert abs(grown.gap) < 1e-9 * operand.traces.max()
