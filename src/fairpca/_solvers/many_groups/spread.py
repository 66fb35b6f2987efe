"""Equal errors for more than two groups: the spread takes the place of the disparity.

The spread is ``max_g R_g - min_g R_g`` over the groups compared. Groups that are not compared count
in the overall error only. The solver of two groups cannot leave groups out: its cap needs ``C`` to
consist of the two groups and nothing else.

The first search is for the least overall error at the spread asked for. Where that spread is out of
reach, or was not reached, searches for the least spread and for the least overall error at this
spread follow. Should the second search reach the spread asked for after all, the bound of the first
one proves how good its projection is.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import inf, nan

import numpy as np

from fairpca._problems.linear import LinearProblem, least_error, least_spread
from fairpca._problems.problems import FairProblem
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Spaces
from fairpca._solvers.many_groups.barrier import balanced
from fairpca._solvers.many_groups.dual import (
    Minimum,
    Start,
    minimise,
    minimise_below,
    minimise_in_face,
)
from fairpca._solvers.many_groups.pareto import is_fair, largest_error_allowed
from fairpca._solvers.many_groups.workspace import MAX_STEPS, Workspace
from fairpca._solvers.pca import solve_pca
from fairpca._typing import Array


def solve_spread(spaces: Spaces, problem: FairProblem, tol: float = 1e-9) -> Solution:
    """Least spread, then least overall error, within the limits of the problem."""
    frontier = SpreadFrontier(spaces, problem, tol)
    return frontier.end if problem.fraction is None else frontier.part(problem.fraction)


class SpreadFrontier:
    """Least overall error at falling spread, from PCA to where the limits of a problem end it."""

    def __init__(self, spaces: Spaces, problem: FairProblem, tol: float) -> None:
        self.pca = replace(solve_pca(spaces), alpha=nan, extras={"error_gap_": 0.0})
        self.work = Workspace(spaces)
        self.limits = _Limits(self.work, problem)
        self.tol = tol
        self._near = Start()

    @cached_property
    def end(self) -> Solution:
        """The projection at the spread asked for, or as near to it as the limits allow."""
        pca, work, limits, tol = self.pca, self.work, self.limits, self.tol
        if is_fair(limits.spread(pca.errors), limits.max_spread, work):
            return replace(pca, status=Status.ALREADY_FAIR)
        if limits.max_error is not None and limits.max_error <= pca.value + limits.rounding:
            return _at_no_cost(work, limits, tol)
        first = minimise_below(work, limits.least_error(limits.max_spread), tol, limits.ceiling)
        if first is not None and limits.kept_by(first):
            return first.solution(work, "error", limits.status(first.errors))
        nearest, least_error = _nearest(work, limits, tol, first)
        status = limits.status(nearest.errors, _least_spread_of_any(work, limits, nearest))
        error = float(limits.shares @ nearest.errors)
        if first is not None and status in (Status.PARITY, Status.DISPARITY_BUDGET):
            return replace(first, **nearest.found, value=error).solution(work, "error", status)
        return nearest.solution(work, "disparity", status, error - least_error)

    def part(self, fraction: float) -> Solution:
        """The projection at a fraction of the way from PCA's spread to that of the end."""
        first, last = self.limits.spread(self.pca.errors), self.limits.spread(self.end.errors)
        max_spread = first + fraction * (last - first)
        if fraction == 1.0:
            return self.end
        if max_spread >= first - self.limits.rounding:
            return replace(self.pca, status=Status.STOPPED)
        problem = self.limits.least_error(max_spread)
        found = minimise(self.work, problem, self.tol, self._near)
        self._near = Start(found.basis, found.prices)
        return found.or_instead(self.end, self.work).solution(self.work, "error", Status.STOPPED)


class _Limits:
    """What a problem allows, given PCA, and which limit ended the search."""

    def __init__(self, work: Workspace, problem: FairProblem) -> None:
        spaces, before = work.spaces, work.pca.errors
        self.shares, self.compared = spaces.shares, spaces.compared
        self.max_spread = problem.max_disparity
        self.cap = float(before[self.compared].max()) if problem.constraint == "no_worse" else None
        max_error = largest_error_allowed(problem, work)
        self.max_error = max_error if max_error < inf else None
        self.work, self.rounding = work, work.rounding
        # No overall error is above this, so a higher bound proves that the spread is out of reach.
        most = spaces.traces.copy()
        if self.cap is not None:
            most[self.compared] = np.minimum(self.cap, most[self.compared])
        total = float(self.shares @ most) + self.rounding
        self.ceiling = total if self.max_error is None else self.max_error

    def spread(self, errors: Array) -> float:
        return float(np.ptp(errors[self.compared]))

    def least_error(self, max_spread: float) -> LinearProblem:
        return least_error(self.shares, self.compared, max_spread=max_spread, cap=self.cap)

    def kept_by(self, solution: Minimum) -> bool:
        within = solution.violation <= self.rounding
        return within and solution.value <= self.ceiling + self.rounding

    def status(self, errors: Array, bound: float = 0.0) -> Status:
        """Which limit binds; no projection has a spread below ``bound``."""
        if is_fair(self.spread(errors), self.max_spread, self.work):
            return Status.DISPARITY_BUDGET if self.max_spread > 0 else Status.PARITY
        left = {
            Status.CAPPED: inf if self.cap is None else self.cap - errors[self.compared].max(),
            Status.ERROR_BUDGET: (
                inf if self.max_error is None else self.max_error - self.shares @ errors
            ),
        }
        tightest = min(left, key=lambda limit: float(left[limit]))
        if left[tightest] <= self.work.parity:
            return tightest
        infeasible = bound > self.max_spread + self.work.parity
        return Status.INFEASIBLE if infeasible else Status.UNPROVEN


def _nearest(
    work: Workspace, limits: _Limits, tol: float, first: Minimum | None
) -> tuple[Minimum, float]:
    """A projection of least spread, and a bound of the overall error at this spread.

    The search starts from the projection that just missed the spread asked for.
    """
    problem = least_spread(
        limits.shares, limits.compared, cap=limits.cap, max_error=limits.max_error
    )
    least = minimise(work, problem, tol, Start(None if first is None else first.basis))
    least = _kept(work, limits, problem, replace(least, bound=max(least.bound, 0.0)))
    return _least_error_at(work, limits, least, tol)


def _kept(work: Workspace, limits: _Limits, problem: LinearProblem, found: Minimum) -> Minimum:
    """The projection found, or one on the way to it from PCA, which keeps every limit.

    At a near-tie a limit may have so high a price that the search leaves it exceeded.
    """
    if found.violation <= work.parity:
        return found
    pca, end = work.basis.T @ work.pca.basis, work.basis.T @ found.basis
    left, _, right = np.linalg.svd(end.T @ pca)
    end = end @ left @ right  # the basis of the same projection that is nearest to PCA's
    best, low, high = pca, 0.0, 1.0
    for _ in range(MAX_STEPS):
        share = 0.5 * (low + high)
        basis = np.linalg.qr((1.0 - share) * pca + share * end)[0]
        if problem.measure(work.errors(basis) * work.unit)[1] <= limits.rounding:
            best, low = basis, share
        else:
            high = share
    best = min(pca, best, key=lambda basis: limits.spread(work.errors(basis)))
    errors = work.errors(best) * work.unit
    value = limits.spread(errors)
    return replace(found, basis=work.basis @ best, errors=errors, violation=0.0, value=value)


def _least_spread_of_any(work: Workspace, limits: _Limits, least: Minimum) -> float:
    """A lower bound of the spread that holds without cap and error budget as well."""
    free = least_spread(limits.shares, limits.compared).in_units(work.unit)
    prices = balanced(free, least.prices[: len(free.limits)])  # prices of the limits come last
    return work.prove(free, prices).bound * work.unit


def _least_error_at(
    work: Workspace, limits: _Limits, least: Minimum, tol: float
) -> tuple[Minimum, float]:
    """Lower the overall error as far as the spread leaves it free, and bound it.

    A least spread that is proven leaves a choice only where eigenvalue r of ``W`` is multiple: the
    eigenvectors above it belong to every solution. Otherwise all projections are searched.
    """
    error = float(limits.shares @ least.errors)
    problem = limits.least_error(limits.spread(least.errors) + limits.rounding)
    if least.value - least.bound <= tol * work.unit:
        lower = minimise_in_face(work, problem, least.weights, tol)
    else:
        lower = minimise(work, problem, tol, Start(least.basis))
    if lower is None:
        return least, error
    bound = max(lower.bound, work.pca.bound)
    if lower.violation > limits.rounding or lower.value >= error - limits.rounding:
        return least, bound
    return replace(least, **lower.found, value=limits.spread(lower.errors)), bound


def _at_no_cost(work: Workspace, limits: _Limits, tol: float) -> Solution:
    """Least spread among the projections as good as PCA, whose eigenvalues may be tied."""
    wanted = limits.least_error(limits.max_spread)
    found = minimise_in_face(work, wanted, limits.shares, tol)
    if found is not None and found.violation <= limits.rounding:
        found = replace(found, bound=work.pca.bound)
        return found.solution(work, "error", limits.status(found.errors))
    spread = limits.spread(work.pca.errors)
    problem = least_spread(limits.shares, limits.compared, cap=limits.cap)
    found = minimise_in_face(work, problem, limits.shares, tol) or Minimum(
        basis=work.pca.basis,
        errors=work.pca.errors,
        value=spread,
        bound=spread,  # no other projection is as good as PCA
        prices=problem.start,
        weights=limits.shares,
        violation=0.0,
    )
    found = _kept(work, limits, problem, replace(found, bound=max(found.bound, 0.0)))
    return found.solution(work, "disparity", limits.status(found.errors), 0.0)
