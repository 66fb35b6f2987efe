"""The welfare of more than two groups."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.families import diagonal, random_family, sampled, spaces_of
from helpers.inside import (
    Operand,
    ThinSpaces,
    WelfareProblem,
    solve,
    solve_welfare,
    solve_welfare_of_two,
)

AVERSIONS = (0.3, 1.0, 2.0, 20.0)


def welfare_of_the_relaxation(fam, aversion):
    """By Clarabel."""
    cp = pytest.importorskip("cvxpy")
    unit = float(fam.traces.max())
    P = cp.Variable((fam.n_features, fam.n_features), symmetric=True)
    kept = cp.hstack([cp.sum(cp.multiply(C / unit, P)) for C in fam.matrices])
    constraints = [P >> 0, np.eye(fam.n_features) - P >> 0, cp.trace(P) == fam.rank]
    objective = cp.sum(cp.log(kept)) if aversion == 1.0 else cp.pnorm(kept, 1.0 - aversion)
    problem = cp.Problem(cp.Maximize(objective), constraints)
    problem.solve(solver="CLARABEL")
    return unit * WelfareProblem(aversion).measure(kept.value)


@pytest.mark.parametrize("aversion", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(("seed", "kind"), [(0, "sampled"), (1, "diagonal"), (2, "alike")])
def test_the_bound_is_the_value_of_the_relaxation(seed, kind, aversion):
    fam = random_family(seed, kind)
    solution = solve_welfare(fam, WelfareProblem(aversion), tol=1e-9)
    expected = welfare_of_the_relaxation(fam, aversion)
    assert -solution.bound == pytest.approx(expected, rel=1e-6)
    assert -solution.value <= -solution.bound + 1e-12 * fam.traces.max()


@pytest.mark.parametrize("aversion", AVERSIONS)
@pytest.mark.parametrize("kind", ["sampled", "diagonal", "alike"])
def test_gaps_close_and_what_is_reported_is_so(kind, aversion):
    problem, n_open = WelfareProblem(aversion), 0
    for seed in range(6):
        fam = random_family(seed, kind)
        solution = solve_welfare(fam, problem, tol=1e-6)
        largest = float(fam.traces.max())
        np.testing.assert_allclose(solution.basis.T @ solution.basis, np.eye(fam.rank), atol=1e-12)
        np.testing.assert_allclose(solution.errors, fam.errors(solution.basis), atol=1e-12)
        assert -solution.value == pytest.approx(problem.measure(fam.traces - solution.errors))
        assert solution.gap >= -1e-12 * largest
        proven = solution.gap <= 1e-6 * largest
        assert (solution.status == "welfare at its best") == proven
        n_open += not proven
    assert n_open <= 2


def test_two_groups_are_solved_as_by_root_finding():
    for make in (sampled, diagonal):
        fam, problem = make(3, 2, 7, 3), WelfareProblem(1.5)
        assert solve_welfare(fam, problem, 1e-9).value == pytest.approx(
            solve_welfare_of_two(fam, problem).value, rel=1e-9
        )


def test_no_aversion_is_one_eigenproblem():
    fam = sampled(4, 5, 8, 3)
    solution = solve_welfare(fam, WelfareProblem(0.0))
    values = np.linalg.eigvalsh(fam.matrices.mean(axis=0))
    assert -solution.value == pytest.approx(values[-3:].sum())
    assert fam.n_eigensolves == 2  # the other is PCA


def test_groups_that_no_projection_of_rank_one_serves_together():
    # Three groups along three axes: the relaxation averages them, a line between all three is best.
    C = [np.diag(v) for v in np.eye(3)]
    solution = solve_welfare(spaces_of(C, np.ones(3) / 3, 1), WelfareProblem(1.0))
    assert np.abs(solution.basis[:, 0]) == pytest.approx([np.sqrt(1 / 3)] * 3)
    assert -solution.value == pytest.approx(1 / 3)
    assert solution.gap == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("aversion", [1.0, 5.0])
def test_a_group_without_variance_takes_no_part(aversion):
    fam = sampled(7, 3, 6, 2)
    with_empty = np.concatenate([fam.matrices, np.zeros((1, 6, 6))])
    shares = np.append(fam.shares, 1.0) / 2
    first, second = (
        solve_welfare(family, WelfareProblem(aversion)).value
        for family in (fam, spaces_of(with_empty, shares, 2))
    )
    assert second == pytest.approx(first, rel=1e-9)


def test_all_features_kept():
    fam = sampled(7, 3, 4, 4)
    solution = solve_welfare(fam, WelfareProblem(2.0))
    assert solution.errors == pytest.approx(np.zeros(3), abs=1e-12)
    assert solution.gap == pytest.approx(0, abs=1e-12)


def test_many_features_are_searched_in_a_small_basis():
    d = 240
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(3, 40, d)) * np.geomspace(4, 0.1, d)
    operand = Operand(np.einsum("gna,gnb->gab", factors, factors) / 40, np.ones(3) / 3)
    thin = ThinSpaces(operand, 3)
    solution = solve_welfare(thin, WelfareProblem(1.0), tol=1e-7)
    dense = solve(WelfareProblem(1.0), Operand(operand.matrices, operand.shares), 3, 1e-9)
    assert solution.value == pytest.approx(dense.value, rel=1e-6)
    assert solution.status == "welfare at its best"
