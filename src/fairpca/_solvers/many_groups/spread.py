"""Equal errors for more than two groups: the spread takes the place of the disparity.

The spread is ``max_g R_g - min_g R_g`` over the groups compared. Groups that are not compared count
in the overall error only, which the two-group solver cannot do: its cap rests on ``C`` being made
of the two groups and nothing else.

First the least overall error at the spread asked for. Where that is out of reach, or was not
reached, the least spread, and then the least overall error that it leaves free. Should the spread
asked for turn up there after all, it is the first bound that proves how good the projection is.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, isinf, nan

import numpy as np

from fairpca._problems.fair import FairProblem
from fairpca._problems.linear import LinearProblem, least_error, least_spread
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.growing import Spaces
from fairpca._solvers.many_groups.barrier import balanced
from fairpca._solvers.many_groups.dual import EQUAL, Minimum, Start, minimise, minimise_in_face
from fairpca._solvers.many_groups.workspace import Workspace
from fairpca._solvers.pca import solve_pca
from fairpca._threads import computed_once
from fairpca._typing import Array

_HALVINGS = 50


def solve_spread(spaces: Spaces, problem: FairProblem, tol: float = 1e-9) -> Solution:
    """Least spread, then least overall error, within the limits of the problem."""
    frontier = SpreadFrontier(spaces, problem, tol)
    return frontier.end if problem.fraction is None else frontier.part(problem.fraction)


class SpreadFrontier:
    """Least overall error at falling spread, from PCA to where the limits of a problem end it."""

    def __init__(self, spaces: Spaces, problem: FairProblem, tol: float) -> None:
        self.pca = replace(solve_pca(spaces), alpha=nan)
        self.work = Workspace(spaces, self.pca.pca)
        self.limits = _Limits(self.work, problem)
        self.tol = tol
        self._near = Start()

    @computed_once
    def end(self) -> Solution:
        """At the spread asked for, or as near to it as the limits allow."""
        pca, work, limits, tol = self.pca, self.work, self.limits, self.tol
        if limits.spread(pca.errors) <= limits.max_spread + limits.rounding:
            return replace(pca, status=Status.ALREADY_FAIR)
        if limits.max_error is not None and limits.max_error <= pca.value + limits.rounding:
            return _at_no_cost(work, limits, tol)
        first = minimise(work, limits.least_error(limits.max_spread), tol, limits.ceiling)
        if first is not None and limits.kept_by(first):
            return first.solution(work, "error", limits.status(first.errors))
        nearest = _nearest(work, limits, tol, first)
        status = limits.status(nearest.errors, _least_spread_of_any(work, limits, nearest))
        if first is not None and status in (Status.PARITY, Status.DISPARITY_BUDGET):
            value = float(limits.shares @ nearest.errors)
            return replace(first, **nearest.found, value=value).solution(work, "error", status)
        return nearest.solution(work, "disparity", status)

    def part(self, fraction: float) -> Solution:
        """The projection at a fraction of the way from PCA to the end, in the spread."""
        first, last = self.limits.spread(self.pca.errors), self.limits.spread(self.end.errors)
        max_spread = first + fraction * (last - first)
        if fraction == 1.0:
            return self.end
        if max_spread >= first - self.limits.rounding:
            return replace(self.pca, status=Status.STOPPED)
        problem = self.limits.least_error(max_spread)
        found = minimise(self.work, problem, self.tol, start=self._near)
        assert found is not None  # without a ceiling there is always an answer
        self._near = Start(found.basis, found.prices)
        return found.or_instead(self.end, self.work).solution(self.work, "error", Status.STOPPED)


class _Limits:
    """What a problem allows, given PCA, and which limit ended the search."""

    def __init__(self, work: Workspace, problem: FairProblem) -> None:
        spaces, before = work.spaces, work.pca.errors
        self.shares, self.compared = spaces.shares, spaces.compared
        self.max_spread = problem.max_disparity
        self.cap = float(before[self.compared].max()) if problem.constraint == "no_worse" else None
        self.max_error: float | None = None
        if not isinf(problem.max_error_increase):
            self.max_error = float(self.shares @ before) * (1 + problem.max_error_increase)
        self.rounding = work.rounding
        self.near = self.rounding + EQUAL * work.unit
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
        """Which limit binds; ``bound`` is what the spread of any projection is at least."""
        if self.spread(errors) <= self.max_spread + self.near:
            return Status.DISPARITY_BUDGET if self.max_spread > 0 else Status.PARITY
        left = {
            Status.CAPPED: inf if self.cap is None else self.cap - errors[self.compared].max(),
            Status.ERROR_BUDGET: (
                inf if self.max_error is None else self.max_error - self.shares @ errors
            ),
        }
        tightest = min(left, key=lambda limit: float(left[limit]))
        if left[tightest] <= self.near:
            return tightest
        return Status.INFEASIBLE if bound > self.max_spread + self.near else Status.UNPROVEN


def _nearest(work: Workspace, limits: _Limits, tol: float, first: Minimum | None) -> Minimum:
    """Least spread, from the projection that just missed the spread asked for."""
    problem = least_spread(
        limits.shares, limits.compared, cap=limits.cap, max_error=limits.max_error
    )
    least = minimise(work, problem, tol, start=Start(None if first is None else first.basis))
    assert least is not None  # without a ceiling there is always an answer
    least = _kept(work, limits, problem, replace(least, bound=max(least.bound, 0.0)))
    if least.value - least.bound > tol * work.unit:
        return least  # it is not known which projections have the least spread
    return _least_error_in_face(work, limits, least, tol)


def _kept(work: Workspace, limits: _Limits, problem: LinearProblem, found: Minimum) -> Minimum:
    """The projection found, or one on the way to it from PCA, which keeps every limit.

    At a near-tie a limit may have so high a price that the search leaves it exceeded.
    """
    if found.violation <= limits.near:
        return found
    pca, end = work.basis.T @ work.pca.basis, work.basis.T @ found.basis
    left, _, right = np.linalg.svd(end.T @ pca)
    end = end @ left @ right  # the basis of the same projection that is nearest to PCA's
    best, low, high = pca, 0.0, 1.0
    for _ in range(_HALVINGS):
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
    """A bound of the spread that holds beyond cap and error budget as well."""
    free = least_spread(limits.shares, limits.compared).in_units(work.unit)
    prices = balanced(free, least.prices[: len(free.limits)])  # those of the limits come last
    return work.prove(free, prices).bound * work.unit


def _least_error_in_face(work: Workspace, limits: _Limits, least: Minimum, tol: float) -> Minimum:
    """Lower the overall error as far as the least spread leaves it free.

    It does where eigenvalue r of ``W`` is multiple: the eigenvectors above it belong to every
    solution, those equal to it are open.
    """
    spread = limits.spread(least.errors)
    problem = limits.least_error(spread + limits.rounding)
    lower = minimise_in_face(work, problem, least.weights, tol)
    if lower is None or lower.violation > limits.rounding:
        return least
    if lower.value >= limits.shares @ least.errors - limits.rounding:
        return least
    return replace(least, **lower.found, value=limits.spread(lower.errors))


def _at_no_cost(work: Workspace, limits: _Limits, tol: float) -> Solution:
    """Least spread among the projections as good as PCA: its eigenvalues may be tied."""
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
    return found.solution(work, "disparity", limits.status(found.errors))
