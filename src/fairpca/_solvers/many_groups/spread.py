"""Equal errors for more than two groups: the spread takes the place of the disparity.

The spread is ``max_g R_g - min_g R_g`` over the groups compared. Groups that are not compared count
in the overall error only.

The first search is for the least overall error at the spread asked for. Where that spread is out of
reach, or was not reached, searches for the least spread and for the least overall error at this
spread follow. Should the second search reach the spread asked for after all, the bound of the first
one proves how good its projection is.
"""

from dataclasses import replace
from functools import cached_property
from math import inf

import numpy as np

from fairpca._problems.linear import LinearProblem, least_error, least_spread
from fairpca._problems.problems import FairProblem
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.between import last_allowed
from fairpca._solvers.eigenspaces.dense import Spaces
from fairpca._solvers.many_groups.barrier import balanced
from fairpca._solvers.many_groups.dual import FrontierOfMany, Minimum, minimise, minimise_in_face
from fairpca._typing import Array


def solve_spread(spaces: Spaces, problem: FairProblem, tol: float = 1e-9) -> Solution:
    """Least spread, then least overall error, within the limits of the problem."""
    frontier = SpreadFrontier(spaces, problem, tol)
    if problem.fraction is None:
        return frontier.end
    return frontier.part(problem.fraction)


class SpreadFrontier(FrontierOfMany):
    """Least overall error at falling spread, from PCA to where the limits of a problem end it."""

    def __init__(
        self, spaces: Spaces, problem: FairProblem, tol: float, like: FrontierOfMany | None = None
    ) -> None:
        super().__init__(spaces, tol, like)
        self.max_spread = problem.max_disparity or 0.0
        self.group_limits = self.group_errors_allowed(problem)
        self.cap = self.group_limits
        if problem.constraint == "no_worse":
            self.cap = np.minimum(self.highest, self.group_limits)
        self.max_error = self.largest_error_allowed(problem)

    @cached_property
    def end(self) -> Solution:
        """The projection at the spread asked for, or as near to it as the limits allow."""
        if self.is_fair(self.pca.errors, self.max_spread):
            return replace(self.pca, status=Status.ALREADY_FAIR)
        if (self.group_limits <= self.pca.errors).all():  # no other errors keep these limits
            return replace(self.pca, status=Status.GROUP_LIMIT)
        if self.max_error <= self.pca.value + self.rounding:
            return self._at_no_cost()
        # No overall error is above this, so a higher bound proves that the spread is out of reach.
        most = np.minimum(np.where(self.compared, self.cap, inf), self.work.spaces.traces)
        ceiling = min(self.max_error, float(self.shares @ most) + self.rounding)
        wanted = self._least_error(self.max_spread)
        known = self._known.get(1.0)
        if known is not None and known.shape != wanted.limits.shape:
            known = None
        first = minimise(self.work, wanted, self.tol, prices=known, ceiling=ceiling)
        self.prices[1.0] = first.prices
        reachable = first.bound <= ceiling
        if reachable and max(first.violation, first.value - ceiling) <= self.rounding:
            return first.solution(self.work, "error", self._status(first.errors))
        problem = least_spread(self.shares, self.compared, cap=self.cap, max_error=self.max_error)
        nearest = minimise(self.work, problem, self.tol, first.basis if reachable else None)
        nearest, least = self._least_error_at(self._kept(problem, nearest))
        # The same proof without cap and error budget, whose prices come last.
        free = least_spread(self.shares, self.compared).in_units(self.work.unit)
        prices = balanced(free, nearest.prices[: len(free.limits)])
        of_any = self.work.prove(free, prices).bound * self.work.unit
        status = self._status(nearest.errors, of_any)
        error = float(self.shares @ nearest.errors)
        if reachable and status in (Status.PARITY, Status.DISPARITY_BUDGET):
            return first.at(nearest, error).solution(self.work, "error", status)
        return nearest.solution(self.work, "disparity", status, error - least)

    def part(self, stop: float) -> Solution:
        """The projection at a stop; the spread falls evenly with it."""
        if stop == 1.0:
            return self.end
        first = self.spread(self.pca.errors)
        last = self.spread(self.end.errors)
        max_spread = first + stop * (last - first)
        if max_spread >= first - self.rounding:
            return replace(self.pca, status=Status.STOPPED)
        if max_spread <= last + self.work.parity:  # nearer to the end, the limits have no interior
            return self.end
        found = self._at_stop(stop, self._least_error(max_spread))
        return found.solution(self.work, "error", Status.STOPPED)

    def _least_error(self, max_spread: float) -> LinearProblem:
        return least_error(self.shares, self.compared, max_spread=max_spread, cap=self.cap)

    def _status(self, errors: Array, bound: float = 0.0) -> Status:
        """Which limit binds; no projection has a spread below ``bound``."""
        if self.is_fair(errors, self.max_spread):
            if self.max_spread == 0:
                return Status.PARITY
            return Status.DISPARITY_BUDGET
        left = {
            Status.GROUP_LIMIT: float((self.group_limits - errors)[self.compared].min()),
            Status.CAPPED: float((self.cap - errors)[self.compared].min()),
            Status.ERROR_BUDGET: self.max_error - float(self.shares @ errors),
        }
        tightest = min(left, key=left.__getitem__)
        if left[tightest] <= self.work.parity:
            return tightest
        if bound > self.max_spread + self.work.parity:
            return Status.INFEASIBLE
        return Status.UNPROVEN

    def _kept(self, problem: LinearProblem, found: Minimum) -> Minimum:
        """The projection found, or one on the way to it from PCA, which keeps every limit.

        At a near-tie a limit may have so high a price that the search leaves it exceeded.
        """
        work = self.work
        found = replace(found, bound=max(found.bound, 0.0))
        if found.violation <= work.parity:
            return found

        def keeps_limits(basis: Array) -> bool:
            return problem.measure(work.errors(basis) * work.unit)[1] <= self.rounding

        pca = work.basis.T @ work.pca.basis
        best = last_allowed(pca, work.basis.T @ found.basis, keeps_limits)
        best = min(pca, best, key=lambda basis: self.spread(work.errors(basis)))
        errors = work.errors(best) * work.unit
        value = self.spread(errors)
        return replace(found, basis=work.basis @ best, errors=errors, violation=0.0, value=value)

    def _least_error_at(self, least: Minimum) -> tuple[Minimum, float]:
        """Lower the overall error as far as the spread leaves it free, and bound it.

        A least spread that is proven leaves a choice only where eigenvalue r of ``W`` is multiple:
        the eigenvectors above it belong to every solution. Otherwise all projections are searched.
        """
        error = float(self.shares @ least.errors)
        problem = self._least_error(self.spread(least.errors) + self.rounding)
        if least.value - least.bound <= self.tol * self.work.unit:
            lower = minimise_in_face(self.work, problem, least.weights, self.tol)
        else:
            lower = minimise(self.work, problem, self.tol, least.basis)
        if lower is None:
            return least, error
        bound = max(lower.bound, self.work.pca.bound)
        if lower.violation > self.rounding or lower.value >= error - self.rounding:
            return least, bound
        return least.at(lower, self.spread(lower.errors)), bound

    def _at_no_cost(self) -> Solution:
        """Least spread among the projections as good as PCA; tied eigenvalues allow several."""
        work = self.work
        wanted = self._least_error(self.max_spread)
        found = minimise_in_face(work, wanted, self.shares, self.tol)
        if found is not None and found.violation <= self.rounding:
            found = replace(found, bound=work.pca.bound)
            return found.solution(work, "error", self._status(found.errors))
        problem = least_spread(self.shares, self.compared, cap=self.cap)
        found = minimise_in_face(work, problem, self.shares, self.tol)
        if found is None:  # no other projection is as good as PCA
            spread = self.spread(self.pca.errors)
            status = self._status(self.pca.errors)
            unchanged = replace(self.pca, value=spread, bound=spread)
            return replace(unchanged, status=status, objective="disparity")
        found = self._kept(problem, found)
        return found.solution(work, "disparity", self._status(found.errors), 0.0)
