"""The least robust error of two groups."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest
from helpers.families import diagonal, sampled, spaces_of
from helpers.inside import (
    Eigenspaces,
    GrowingBasis,
    Operand,
    RobustProblem,
    growing_bases,
    search_in_basis,
    solve_robust,
)


def objective(errors, shares, problem):
    """As it is written in the paper."""
    S = (np.sqrt(errors) + np.sqrt(problem.radius / np.sqrt(problem.sizes))) ** 2
    return shares @ S + problem.penalty * shares.min() * abs(S[0] - S[1])


@cache
def errors_on_a_grid(make, seed):
    spaces = make(seed, 2, 6, 2)
    return [spaces.top(np.array([t, 1 - t])).errors for t in np.linspace(0, 1, 401)]


@pytest.mark.parametrize("penalty", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("radius", [0.0, 0.15, 40.0])
@pytest.mark.parametrize(("make", "seed"), [(sampled, 1), (sampled, 3), (diagonal, 4)])
def test_no_weights_do_better_and_the_gap_is_rounding(make, seed, radius, penalty):
    spaces = make(seed, 2, 6, 2)
    problem = RobustProblem(radius, penalty, sizes=(120, 30))
    solution = solve_robust(spaces, problem)
    assert solution.value == pytest.approx(objective(solution.errors, spaces.shares, problem))
    assert 0 <= solution.gap < 1e-11 * solution.value
    least = min(objective(e, spaces.shares, problem) for e in errors_on_a_grid(make, seed))
    assert solution.value <= least + 1e-12 * least
    if make is sampled:  # few jumps: the grid comes near
        assert solution.value >= least - 1e-2 * least


def test_random_projections_never_do_better():
    rng = np.random.default_rng(0)
    spaces, problem = sampled(8, 2, 5, 2), RobustProblem(3.0, 1.0, sizes=(50, 10))
    solution = solve_robust(spaces, problem)
    for _ in range(300):
        U = np.linalg.qr(solution.basis + rng.normal(size=(5, 2)) * rng.random())[0]
        value = objective(spaces.errors(U), spaces.shares, problem)
        assert value >= solution.bound - 1e-12


def test_without_radius_and_penalty_it_is_pca():
    spaces = sampled(2, 2, 6, 3)
    solution = solve_robust(spaces, RobustProblem(0.0, 0.0))
    assert solution.value == pytest.approx(spaces.shares @ solution.pca.errors)


def test_a_kink_on_a_jump():
    # Each group varies along its own axis. Equal errors lie between both sides of the jump.
    C = [np.diag([4.0, 0, 0.1]), np.diag([0, 4.0, 0.1])]
    solution = solve_robust(spaces_of(C, [0.5, 0.5], 1), RobustProblem(0.0, 1.0))
    assert solution.errors == pytest.approx([2.1, 2.1])
    assert solution.gap == pytest.approx(0, abs=1e-12)


def test_growing_basis_finds_what_the_dense_solver_does(monkeypatch):
    growing_bases(monkeypatch, start=200)
    d = 320
    rng = np.random.default_rng(4)
    factors = rng.normal(size=(2, 40, d)) * np.geomspace(4, 0.1, d)
    operand = Operand(np.einsum("gna,gnb->gab", factors, factors) / 40, np.array([0.7, 0.3]))
    problem = RobustProblem(50.0, 1.0, sizes=(140, 60))
    grown = search_in_basis(partial(solve_robust, problem=problem), operand, 3)
    assert isinstance(grown.found_in, GrowingBasis)
    dense = solve_robust(Eigenspaces(operand, 3), problem)
    assert grown.value == pytest.approx(dense.value, rel=1e-10)


@pytest.mark.parametrize("rank", [104, 105, 106])
def test_errors_that_vanish_do_not_keep_the_search_busy(rank):
    """The slope of the objective is infinite there, so rounding is all that divisions see."""
    d = 230
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(d, d)))[0]
    spectra = (
        np.append(np.linspace(top, 1, m), np.zeros(d - m)) for m, top in ((100, 3), (105, 4))
    )
    operand = Operand(np.stack([Q * values @ Q.T for values in spectra]), np.array([0.6, 0.4]))
    problem = RobustProblem(0.1, 0.5)
    solution = search_in_basis(partial(solve_robust, problem=problem), operand, rank)
    assert solution.n_eigensolves < 30
    lost = np.array([0.0, 1.0 if rank == 104 else 0.0])
    assert solution.value == pytest.approx(objective(lost, operand.shares, problem), abs=1e-6)
    assert 0 <= solution.gap < 1e-6
