"""The k-group solver against a semidefinite solver, and against itself.

A few random problems of each kind by default; ``FAIRPCA_CASES=5`` draws five times as many.
"""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from helpers.families import (
    CALLS,
    CASES,
    alike,
    family,
    least_errors,
    random_family,
    relative_gap,
    sampled,
    scatter,
    spaces_of,
)
from helpers.inside import FairProblem, Solution, Workspace, minimise, solve_spread, solve_worst
from helpers.inside import linear as _group_problems
from helpers.inside import workspace as _workspace
from helpers.marks import slow_case


def reference(fam, name, objective):
    """Value of the relaxation and its P, by Clarabel."""
    cp = pytest.importorskip("cvxpy")
    d, k = fam.n_features, len(fam.traces)
    pca = fam.top(fam.shares)
    unit = float(fam.traces.max())
    P = cp.Variable((d, d), symmetric=True)
    R = cp.hstack(
        [
            (t - cp.sum(cp.multiply(C, P))) / unit
            for t, C in zip(fam.traces, fam.matrices, strict=True)
        ]
    )
    spread = cp.max(R) - cp.min(R)
    constraints = [P >> 0, np.eye(d) - P >> 0, cp.trace(P) == fam.rank]
    if name == "no_worse":
        constraints.append(pca.errors.max() / unit >= R)
    if name == "max_error":
        constraints.append(fam.shares @ R <= 1.05 * (fam.shares @ pca.errors) / unit)
    if objective == "worst":
        scales = 1.0 / fam.traces if name == "variance" else np.ones(k) / unit
        offsets = least_errors(fam) / unit if name == "loss" else np.zeros(k)
        target = cp.max(cp.multiply(scales * unit, R) - offsets)
        unit = 1.0 if name == "variance" else unit
    elif objective == "disparity":
        target = spread
    else:
        target = fam.shares @ R
        if name == "max_spread":
            constraints.append(spread <= 0.5 * np.ptp(pca.errors) / unit)
        else:
            constraints.append(R[1:] == R[:-1])
    problem = cp.Problem(cp.Minimize(target), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return problem.value * unit, P.value


def check(fam, solution: Solution, rounding=1e-12):
    """Every solution passes these checks."""
    largest = max(float(fam.traces.max()), 1e-300)
    r = fam.rank
    assert np.abs(solution.basis.T @ solution.basis - np.eye(r)).max() < 1e-12
    assert np.abs(fam.errors(solution.basis) - solution.errors).max() <= rounding * largest
    assert solution.violation <= rounding * largest
    unit = max(abs(solution.value), abs(solution.bound))
    assert solution.bound <= solution.value + 1e-12 * unit + rounding * largest


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("kind", "seed"), [(k, s) for k in ("general", "diagonal", "alike") for s in range(3 * CASES)]
)
def test_bound_is_the_optimum_of_the_relaxation(kind, seed, name):
    fam = random_family(seed, kind)
    solution = CALLS[name](fam, fam.top(fam.shares))
    check(fam, solution)
    optimum, P = reference(fam, name, solution.objective)
    unit = 1.0 if name == "variance" else float(fam.traces.max())
    assert abs(solution.bound - optimum) <= 1e-6 * max(abs(solution.bound), 0.1 * unit)
    occupations = np.linalg.eigvalsh(P)
    if np.abs(occupations - np.round(occupations)).max() < 1e-5:
        assert relative_gap(fam, solution) < 1e-6


@pytest.mark.parametrize("name", CALLS)
def test_diagonal_moments_leave_no_gap(name):
    # Schur and Horn: every diagonal in [0, 1] with trace r is that of a projection of rank r.
    for seed in range(100, 100 + 2 * CASES):
        fam = random_family(seed, "diagonal")
        solution = CALLS[name](fam, fam.top(fam.shares))
        check(fam, solution)
        assert relative_gap(fam, solution) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_gap_is_closed_for_few_components_of_groups_alike(name):
    # Over 200 such problems the share below 1e-6 was 0.975 (max_spread) to 1.0 (four of the seven).
    # With groups less alike, fewer features or ranks up to d - 1 it is lower:
    # test_global_optimum.py shows that no projection attains the bound then.
    gaps = []
    for seed in range(40 * CASES):
        fam = alike(seed)
        solution = CALLS[name](fam, fam.top(fam.shares))
        check(fam, solution)
        gaps.append(relative_gap(fam, solution))
    assert np.mean(np.array(gaps) < 1e-6) >= 0.95
    assert max(gaps) < 0.05


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("seed", range(CASES))
def test_two_groups_leave_no_gap(name, seed):
    fam = sampled(seed, 2, 9, 3 + seed)
    solution = CALLS[name](fam, fam.top(fam.shares))
    check(fam, solution)
    assert solution.gap <= 1e-9 * fam.traces.max()
    assert solution.violation <= 1e-12 * fam.traces.max()


def test_two_groups_agree_with_the_root_of_the_disparity():
    fam = sampled(3, 2, 9, 3)
    difference = np.array([-1.0, 1.0]) * np.sign(np.diff(fam.top(fam.shares).errors)[0])
    low, high = 0.0, 1.0
    for _ in range(200):
        alpha = (low + high) / 2.0
        errors = fam.top(alpha * fam.shares + (1.0 - alpha) * difference).errors
        low, high = (low, alpha) if difference @ errors > 0.0 else (alpha, high)
    solution = solve_spread(fam, FairProblem())
    assert solution.objective == "error"
    np.testing.assert_allclose(solution.errors, errors, rtol=1e-8)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("seed", [1, 3])
def test_labels_and_copies_of_groups_do_not_matter(name, seed):
    fam = sampled(seed, 4, 12, 3)
    expected = CALLS[name](fam, fam.top(fam.shares))
    order = np.array([2, 0, 3, 1])
    permuted = spaces_of(fam.matrices[order], fam.shares[order], fam.rank)
    copies = np.array([0, 1, 1, 2, 3, 3, 3])
    parts = np.array([1.0, 0.3, 0.7, 1.0, 0.2, 0.3, 0.5])
    doubled = spaces_of(fam.matrices[copies], fam.shares[copies] * parts, fam.rank)
    for other, index in ((permuted, order), (doubled, copies)):
        solution = CALLS[name](other, other.top(other.shares))
        check(other, solution)
        assert solution.objective == expected.objective
        np.testing.assert_allclose(solution.value, expected.value, rtol=1e-8)
        np.testing.assert_allclose(solution.bound, expected.bound, rtol=1e-8)
        np.testing.assert_allclose(
            solution.errors, expected.errors[index], atol=1e-8 * fam.traces.max()
        )


@pytest.mark.parametrize("seed", range(2 * CASES))
def test_constraints_hold_to_rounding(seed):
    fam = random_family(200 + seed, "general")
    pca = fam.top(fam.shares)
    rounding = 1e-13 * float(fam.traces.max())
    cap, error = float(pca.errors.max()), float(fam.shares @ pca.errors)
    assert solve_spread(fam, FairProblem(constraint="no_worse")).errors.max() <= cap + rounding
    limited = solve_spread(fam, FairProblem(max_error_increase=0.03))
    assert fam.shares @ limited.errors <= 1.03 * error + rounding
    close = solve_spread(fam, FairProblem(max_disparity=0.7 * float(np.ptp(pca.errors))))
    if close.objective == "error":
        assert np.ptp(close.errors) <= 0.7 * np.ptp(pca.errors) + rounding
    equal = solve_spread(fam, FairProblem())
    if equal.objective == "error":
        assert np.ptp(equal.errors) <= rounding


def degenerate():
    rng = np.random.default_rng(0)
    d = 8
    A, B = scatter(rng, d, 20), scatter(rng, d, 9)
    return {
        "one group": family([A], 3),
        "a constant group": family([A, 2.0 * B, np.zeros((d, d)), scatter(rng, d, 5)], 3),
        "only constant groups": family(np.zeros((3, d, d)), 3),
        "groups of one row": family([A, scatter(rng, d, 1), scatter(rng, d, 1), B], 2),
        "disjoint supports": family(
            [
                np.diag([3.0, 2, 1, 0, 0, 0, 0]),
                np.diag([0.0, 0, 0, 5, 4, 0, 0]),
                np.diag([0.0] * 5 + [2, 2]),
            ],
            3,
        ),
        "alike": family([A, A, A], 3),
        "all directions kept": family([A, B, scatter(rng, d, 30)], d),
        "all but one kept": family([A, B, scatter(rng, d, 30)], d - 1),
        "one component": family([A, B, scatter(rng, d, 30)], 1),
        "far from parity": family([A, 9.0 * B, 0.1 * scatter(rng, d, 9)], 1),
        "round": family([np.eye(6), 2.0 * np.eye(6), 3.0 * np.eye(6)], 2),
        "jump": family([np.diag([4.0, 0.5, 0.5]), np.diag([2.0, 5.0, 3.5])], 1),
        "rank deficient": family([scatter(rng, 20, 3) for _ in range(5)], 4),
        "fewer directions than components": family([scatter(rng, 20, 2) for _ in range(3)], 8),
        "large numbers": family([1e9 * A, 1e9 * B, 2e9 * A], 3),
        "small numbers": family([1e-9 * A, 1e-9 * B, 2e-9 * A], 3),
    }


@pytest.mark.parametrize("name", [name for name in CALLS if name != "variance"])
@pytest.mark.parametrize("case", degenerate())
def test_degenerate_moments(case, name):
    fam = degenerate()[case]
    solution = CALLS[name](fam, fam.top(fam.shares))
    check(fam, solution)
    # In general position the relaxation of three groups may have rank r + 1.
    assert solution.gap <= (1e-4 if case == "one component" else 1e-8) * fam.traces.max()


@pytest.mark.parametrize("name", [slow_case("no_worse"), "efficient", "loss"])
def test_fifty_groups(name):
    rng = np.random.default_rng(1)
    fam = family([rng.uniform(0.9, 1.1) * scatter(rng, 12, 40) for _ in range(50)], 3)
    solution = CALLS[name](fam, fam.top(fam.shares))
    check(fam, solution)
    assert solution.gap <= 0.05 * solution.value


def test_equal_spreads_are_decided_by_the_overall_error():
    # C_2 - C_1 is the identity: the spread is 2 whatever is kept.
    fam = family([np.diag([1.0, 3.0, 2.0]), np.diag([2.0, 4.0, 3.0])], 1)
    solution = solve_spread(fam, FairProblem())
    assert solution.objective == "disparity"
    assert solution.value == pytest.approx(2.0)
    np.testing.assert_allclose(solution.errors, [3.0, 5.0], rtol=1e-9)


@pytest.mark.parametrize("name", CALLS)
def test_growing_span_agrees_with_the_whole_space(name, monkeypatch):
    fam = sampled(7, 5, 40, 3)
    whole = CALLS[name](fam, fam.top(fam.shares))
    monkeypatch.setattr(_workspace, "FEW_FEATURES", 0)
    before = fam.n_eigensolves
    grown = CALLS[name](fam, fam.top(fam.shares))
    check(fam, grown)
    assert fam.n_eigensolves - before <= 46
    np.testing.assert_allclose(grown.bound, whole.bound, rtol=1e-8)
    np.testing.assert_allclose(grown.errors, whole.errors, atol=1e-7 * fam.traces.max())


def test_few_eigensolves_with_many_features():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(300, 60)) * np.exp(-np.arange(60) / 10.0)
    own = rng.normal(size=(8, 300, 20)) * np.exp(-np.arange(20) / 4.0)
    fam = family([common @ common.T + A @ A.T + 0.1 * np.eye(300) for A in own], 3)
    for tol, most in ((1e-3, 15), (1e-9, 30)):
        before = fam.n_eigensolves
        solution = solve_worst(fam, "error", tol)
        check(fam, solution)
        assert solution.gap <= tol * fam.traces.max()
        assert fam.n_eigensolves - before <= most + 9  # PCA, and each group by itself


def test_constraints_that_do_not_bind():
    fam = family([np.eye(6), 2.0 * np.eye(6), 3.0 * np.eye(6)], 2)
    problem = _group_problems.least_error(
        fam.shares, np.ones(3, dtype=bool), max_spread=100.0, cap=100.0
    )
    solution = minimise(Workspace(fam), problem, 1e-9)
    check(fam, solution)
    assert solution.value == pytest.approx(fam.shares @ fam.top(fam.shares).errors)


def test_same_answer_twice():
    fam = random_family(4, "diagonal")
    first, second = solve_worst(fam, "error"), solve_worst(fam, "error")
    np.testing.assert_array_equal(first.basis, second.basis)


def test_weights_certify_the_bound():
    fam = sampled(5, 4, 12, 3)
    solution = solve_worst(fam, "error")
    assert (solution.weights >= 0.0).all()
    assert solution.weights.sum() == pytest.approx(1.0)
    assert fam.top(solution.weights).bound == pytest.approx(solution.bound, rel=1e-12)


def test_examples_in_docstrings():
    assert doctest.testmod(_group_problems).failed == 0
