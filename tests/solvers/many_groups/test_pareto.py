"""Efficient fairness for more than two groups, against identities and the two-group solver."""

from __future__ import annotations

from functools import cache
from math import isclose

import numpy as np
import pytest
from helpers.families import alike, diagonal, family, sampled, spaces_of
from helpers.inside import (
    EfficientFrontier,
    Eigenspaces,
    FairProblem,
    Operand,
    SpreadFrontier,
    Status,
    Workspace,
    least_error,
    minimise,
    solve_exact,
    solve_pareto,
    solve_spread,
    solve_worst,
)

FAMILIES = {
    "tight": lambda: alike(3),
    "parity": lambda: sampled(4, 3, 9, 3),
    "gap": lambda: sampled(4, 4, 5, 2),
    "crossing": lambda: diagonal(2, 4, 7, 3),
}


@cache
def pareto(fam, **limits):
    return solve_pareto(fam, FairProblem(constraint="efficient", **limits), 1e-6)


def path(fam, fractions, constraint="efficient", tol=1e-6):
    fresh = Eigenspaces(Operand(fam.matrices, fam.shares), fam.rank)
    if constraint == "efficient":
        way = EfficientFrontier(fresh, tol)
    else:
        way = SpreadFrontier(fresh, FairProblem(constraint=constraint), tol)
    return [way.part(fraction) for fraction in fractions]


@pytest.fixture(params=FAMILIES, scope="module")
def fam(request):
    return FAMILIES[request.param]()


@pytest.mark.parametrize(
    "limits",
    [{}, {"max_disparity": 0.3}, {"max_error_increase": 0.002}, {"max_error_increase": 0.0}],
)
@pytest.mark.parametrize("seed", range(4))
def test_two_groups_as_the_solver_of_two_groups(seed, limits):
    fam = sampled(seed, 2, 8, 3)
    found = pareto(fam, **limits)
    expected = solve_exact(fam, FairProblem(constraint="efficient", **limits))
    assert found.status == expected.status
    np.testing.assert_allclose(found.errors, expected.errors, atol=1e-8 * fam.traces.max())


def test_the_end_is_the_least_largest_error_then_the_least_overall_error(fam):
    found, least = pareto(fam), solve_worst(fam, "error")
    assert isclose(found.value, least.value, rel_tol=1e-7)
    assert found.value == found.errors.max()
    assert found.bound <= found.value
    # Both largest errors are known to within the tolerance; neither end may be worse in both ways.
    extra = fam.shares @ (found.errors - least.errors)
    assert found.value < least.value or extra <= 1e-12 * fam.traces.max()
    # Whoever allows a little more of the largest error cannot have a much smaller overall error.
    cap = found.value * (1 + 1e-6)
    everyone = np.ones(len(fam.shares), dtype=bool)
    problem = least_error(fam.shares, everyone, cap=cap)
    nearly = minimise(Workspace(fam), problem, 1e-9)
    R = float(fam.shares @ found.errors)
    assert found.extras["error_gap_"] >= R - fam.shares @ nearly.errors - 1e-2 * R
    assert nearly.bound <= R * (1 + 1e-9)


def test_overall_error_decides_among_equally_good_projections_for_the_worst_off():
    fam = family([np.diag([5.0, 5, 5, 0]), np.diag([0.0, 2, 0, 0]), np.diag([1.0, 1.9, 0.1, 0])], 1)
    found = pareto(fam)
    assert found.status is Status.WORST_OFF_BEST
    np.testing.assert_allclose(found.errors, [10.0, 0.0, 1.1], atol=1e-8)
    assert found.gap < 1e-8
    assert found.extras["error_gap_"] < 1e-5


def test_nobody_is_made_worse_for_equality_alone(fam):
    found, before = pareto(fam), fam.top(fam.shares).errors
    assert (found.weights >= 0).all()
    assert found.errors.max() <= before.max()
    equal = solve_spread(fam, FairProblem())
    assert fam.shares @ found.errors <= fam.shares @ equal.errors * (1 + 1e-6)


def test_groups_not_compared_count_in_the_overall_error_only():
    three = sampled(1, 3, 8, 3)
    compared = np.array([True, True, False])
    fam = Eigenspaces(Operand(three.matrices, three.shares, compared), 3)
    found = pareto(fam)
    least = solve_worst(fam, "error")
    assert isclose(found.errors[compared].max(), least.value, rel_tol=1e-7)


def test_pca_that_cannot_be_improved_on_is_the_answer():
    fam = family([np.diag([9.0, 1, 1]), np.diag([3.0, 1, 0]), np.diag([2.0, 0, 0])], 1)
    found = pareto(fam)
    assert found.status is Status.WORST_OFF_BEST
    np.testing.assert_allclose(found.errors, fam.top(fam.shares).errors)
    assert found.gap < 1e-12
    assert pareto(fam, max_disparity=2.5).status is Status.ALREADY_FAIR


def test_a_way_from_pca_to_the_end(fam):
    fractions = np.linspace(0, 1, 6)
    found = path(fam, fractions)
    largest = np.array([point.errors.max() for point in found])
    overall = np.array([fam.shares @ point.errors for point in found])
    unit = float(fam.traces.max())
    assert (np.diff(overall) >= -1e-9 * unit).all()
    expected = largest[0] + fractions * (largest[-1] - largest[0])
    assert (largest <= expected + 1e-9 * unit).all()
    np.testing.assert_allclose(found[0].errors, fam.top(fam.shares).errors)
    np.testing.assert_allclose(found[-1].errors, pareto(fam).errors, atol=1e-6 * unit)
    single = pareto(fam, fraction=0.4)
    assert single.status is Status.STOPPED
    assert fam.shares @ single.errors == pytest.approx(overall[2], rel=1e-6)
    # A limit counts as kept if it is exceeded by rounding, and the value falls with it.
    assert all(point.bound <= point.value + 1e-12 * unit for point in found[1:-1])


@pytest.mark.parametrize("constraint", [None, "no_worse"])
def test_a_way_from_pca_to_the_least_spread(constraint):
    fam, fractions = sampled(4, 3, 9, 3), [0.0, 0.5, 1.0]
    found = path(fam, fractions, constraint, 1e-9)
    spreads = np.array([np.ptp(point.errors) for point in found])
    np.testing.assert_allclose(
        spreads, spreads[0] + np.array(fractions) * (spreads[-1] - spreads[0]), atol=1e-9
    )
    half = solve_spread(fam, FairProblem(constraint=constraint, max_disparity=float(spreads[1])))
    np.testing.assert_allclose(found[1].errors, half.errors, atol=1e-7)


def test_a_disparity_budget_is_met_at_the_first_chance(fam):
    before = fam.top(fam.shares).errors
    rounding = 1e-11 * fam.traces.max()
    end = pareto(fam)
    budget = 0.5 * float(np.ptp(before) + np.ptp(end.errors))
    found = pareto(fam, max_disparity=budget)
    if found.status is Status.DISPARITY_BUDGET:
        assert np.ptp(found.errors) <= budget + rounding
        assert found.objective == "error"
        earlier = path(fam, np.linspace(0, 1, 9)[1:-1])
        met = [point for point in earlier if np.ptp(point.errors) <= budget]
        lowest = min((fam.shares @ point.errors for point in met), default=np.inf)
        assert fam.shares @ found.errors <= lowest * (1 + 1e-8)
    else:
        assert found.status in (Status.PARITY, Status.WORST_OFF_BEST)
        np.testing.assert_allclose(found.errors, end.errors)


def test_an_error_budget_is_kept_and_used(fam):
    unit = float(fam.traces.max())
    before = fam.top(fam.shares)
    R, end = float(fam.shares @ before.errors), pareto(fam)
    increase = 0.5 * float(fam.shares @ end.errors / R - 1)
    found = pareto(fam, max_error_increase=increase)
    assert found.status is Status.ERROR_BUDGET
    assert fam.shares @ found.errors <= (1 + increase) * R + 1e-11 * unit
    assert end.value - 1e-9 * unit <= found.value <= before.errors.max() + 1e-12 * unit
    assert found.bound <= found.value + 1e-12 * unit
    enough = pareto(fam, max_error_increase=3 * increase)
    assert enough.value == pytest.approx(end.value, rel=1e-6)


@pytest.mark.parametrize("rank", [1, 2])
def test_what_costs_nothing_is_done_within_a_budget_of_nothing(rank):
    # PCA may keep any of the axes; between them all groups are equal at the same overall error.
    axes = family([np.diag(v) for v in 4.0 * np.eye(3)], rank, np.ones(3) / 3)
    for solver, constraint in ((solve_pareto, "efficient"), (solve_spread, None)):
        problem = FairProblem(constraint=constraint, max_error_increase=0.0)
        found = solver(axes, problem)
        assert np.ptp(found.errors) < 1e-7
        assert found.status is Status.PARITY
        assert found.gap < 1e-7


def test_scale_and_order_of_groups_do_not_matter(fam):
    expected = pareto(fam)
    order = np.roll(np.arange(len(fam.shares)), 1)
    other = spaces_of(1e6 * fam.matrices[order], fam.shares[order], fam.rank)
    found = pareto(other)
    assert found.status == expected.status
    assert found.value == pytest.approx(1e6 * expected.value, rel=1e-7)
