"""Efficient fairness for more than two groups: from PCA towards the least largest error.

The efficient frontier holds, for every ``c`` between PCA's largest error and the least possible
one, the projection of least overall error among those with ``R_g <= c`` for all groups compared.
Weights on it are not negative: no group is made worse for the sake of equality alone. Its end is
the least overall error among the projections of least largest error, a lexicographic pair.

* At the end either all groups compared are equal, or the worst-off one is at its best.
* ``max_group_increase`` limits the error of each group by a multiple of its error under PCA.
* ``max_error_increase`` stops where the error budget is spent.
* ``max_disparity`` stops at the first ``c`` at which the spread is small enough. The way is sampled
  in eight steps, because the spread of more than two groups may rise in between. The projections
  on it are found by descent, each from the one before; a proof is sought for the last one only.
* ``fraction`` stops at a part of the way in ``c``.

The certificate says, at the end and within an error budget, that no projection has a smaller
largest error; elsewhere that no projection with as small a largest error has a smaller overall
error. At the end, ``error_gap_`` says how far the overall error can be from the least one.
"""

from dataclasses import replace
from functools import cached_property
from math import inf

import numpy as np

from fairpca._problems.linear import least_error, least_maximum
from fairpca._problems.problems import FairProblem
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Spaces
from fairpca._solvers.many_groups.dual import FrontierOfMany, Minimum, minimise, minimise_in_face
from fairpca._solvers.many_groups.workspace import MAX_STEPS
from fairpca._typing import Array


def solve_pareto(spaces: Spaces, problem: FairProblem, tol: float = 1e-9) -> Solution:
    """Walk the efficient frontier from PCA to its end, or to the first limit that binds."""
    frontier = EfficientFrontier(spaces, tol)
    if problem.fraction is not None:
        return frontier.part(problem.fraction)
    if frontier.is_fair(frontier.pca.errors, problem.max_disparity or 0.0):
        return replace(frontier.pca, status=Status.ALREADY_FAIR)
    if problem.max_group_increase == 0:  # the errors of PCA are the only ones that keep it
        return replace(frontier.pca, status=Status.GROUP_LIMIT)
    if problem.max_group_increase < inf:
        return frontier.within(frontier.group_errors_allowed(problem))
    max_error = frontier.largest_error_allowed(problem)
    if max_error < inf:
        return frontier.within_budget(max_error)
    if problem.max_disparity:
        return frontier.first_within(problem.max_disparity)
    return frontier.end


class EfficientFrontier(FrontierOfMany):
    """Least overall error subject to ``R_g <= c``, for falling ``c``."""

    @cached_property
    def lowest(self) -> Minimum:
        """A projection of least largest error."""
        problem = least_maximum(np.zeros(len(self.shares)), self.compared)
        found = minimise(self.work, problem, self.tol, prices=self._known.get(1.0))
        self.prices[1.0] = found.prices
        return found

    @cached_property
    def _last(self) -> tuple[Minimum, Array]:
        """The end of the frontier, and the prices of the groups' errors there.

        Where the least largest error is certain, the projections that have it differ in tied
        eigenvectors only. The best of these for the overall error is taken.
        """
        lowest = self.lowest
        best = lowest
        prices: Array = np.zeros(np.count_nonzero(self.compared))
        if self.highest <= lowest.value + self.rounding:
            return lowest.at(self.pca, self.highest), prices
        if lowest.value - lowest.bound <= self.tol * lowest.value:
            problem = least_error(self.shares, self.compared, cap=lowest.value + self.rounding)
            found = minimise_in_face(self.work, problem, lowest.weights, self.tol)
            if found is not None:
                prices = found.prices
                gain = self.shares @ (lowest.errors - found.errors)
                if found.violation <= self.rounding < gain:
                    best = lowest.at(found, self.largest(found.errors))
        return best, prices

    @cached_property
    def _least_error_at_the_end(self) -> float:
        """A lower bound on the overall error of the projections of least largest error.

        The price of the largest error is infinite there. A high price proves nearly as much; which
        one is best depends on how well the least largest error is known.
        """
        lowest = self.lowest
        unit = self.work.unit
        if self.highest <= lowest.value + self.rounding:
            return self.pca.bound
        prices = self._last[1]
        problem = least_error(self.shares, self.compared, cap=lowest.value).in_units(unit)
        unknown = max((lowest.value - lowest.bound) / unit, self.work.noise)
        factors = [1.0]
        if self.work.closed:
            factors = [1.0, 0.1, 10.0]
        high = lowest.weights[self.compared] / np.sqrt(unknown)
        proofs = (self.work.prove(problem, prices + factor * high) for factor in factors)
        return max(proof.bound for proof in proofs) * unit

    @property
    def end(self) -> Solution:
        """Least overall error among the projections of least largest error."""
        best = self._last[0]
        status = self._status(best, Status.WORST_OFF_BEST)
        return self._worst(best, status, self._least_error_at_the_end)

    def _status(self, found: Minimum, otherwise: Status) -> Status:
        if self.spread(found.errors) <= self.work.parity:
            return Status.PARITY
        return otherwise

    def within_budget(self, limit: float) -> Solution:
        """Least largest error at an overall error of at most ``limit``."""
        if limit <= self.pca.value + self.rounding:
            return self._at_no_cost()
        nothing = np.zeros(len(self.shares))
        problem = least_maximum(nothing, self.compared, shares=self.shares, max_error=limit)
        found = minimise(self.work, problem, self.tol)
        if found.violation > self.rounding:
            found = found.at(self.pca, self.highest)
        left = limit - float(self.shares @ found.errors)
        price = float(found.prices[-1])
        if left > self.rounding or price <= self.tol:
            end = self.end
            if self.shares @ end.errors <= limit + self.rounding:
                return end
        least = self.pca.bound
        if price > 0:
            least = max(least, limit - (found.value - found.bound) / price)
        return self._worst(found, Status.ERROR_BUDGET, least)

    def within(self, limits: Array) -> Solution:
        """Least largest error with no group compared above its limit."""
        problem = least_maximum(np.zeros(len(self.shares)), self.compared, cap=limits)
        found = minimise(self.work, problem, self.tol)
        if found.violation > self.rounding:
            found = found.at(self.pca, self.highest)
        end = self.end
        if (end.errors <= limits + self.rounding)[self.compared].all():
            return end
        return self._worst(found, Status.GROUP_LIMIT, self.pca.bound)

    def _at_no_cost(self) -> Solution:
        """Least largest error among projections as good as PCA; tied eigenvalues allow several."""
        equal = least_error(self.shares, self.compared, max_spread=0.0)
        free = minimise_in_face(self.work, equal, self.shares, self.tol)
        if free is None:  # no other projection is as good as PCA
            free = replace(self.lowest.at(self.pca, self.highest), bound=self.highest)
        elif free.violation > self.rounding or not self.compared.all():
            problem = least_maximum(np.zeros(len(self.shares)), self.compared)
            free = minimise_in_face(self.work, problem, self.shares, self.tol) or free
        return self._worst(free, self._status(free, Status.ERROR_BUDGET), self.pca.bound)

    def part(self, stop: float) -> Solution:
        """The projection at a stop; the largest error falls evenly with it."""
        if stop == 1.0:
            return self.end
        c = self.highest + stop * (self.lowest.value - self.highest)
        if c >= self.highest - self.rounding:
            return replace(self.pca, status=Status.STOPPED)
        problem = least_error(self.shares, self.compared, cap=c)
        return self._at_stop(stop, problem).solution(self.work, "error", Status.STOPPED)

    def basis(self, stop: float) -> Array:
        """A basis of the projection at a stop, without the proofs that end there."""
        if stop == 1.0:
            return self._last[0].basis
        return super().basis(stop)

    def _at(self, c: float, *, nearby_only: bool = False) -> Minimum:
        """Least overall error with no group compared above ``c``; take values of ``c`` in order."""
        problem = least_error(self.shares, self.compared, cap=c)
        return self._next(problem, nearby_only=nearby_only)

    def first_within(self, max_spread: float) -> Solution:
        """The first projection seen from PCA whose spread is at most ``max_spread``.

        Proving the projection where a walk ended may find another one with less overall error but
        too large a spread. Then another walk starts from there, at most twice.
        """
        ends: list[Minimum] = []
        c = self.highest
        errors = self.pca.errors
        for _ in range(3):
            met = self._walk(c, errors, max_spread)
            if met is None:
                break
            c, found = met
            proof = found
            if found.value - found.bound > self.tol * found.value:
                self._near = (found.basis,)
                proof = self._at(c)
            errors = proof.errors
            if self.spread(errors) <= max_spread + self.rounding:
                ends.append(proof)
                break
            ends.append(proof.at(found, found.value))
        if not ends:
            return self.end
        best = min(ends, key=lambda end: end.value)
        return best.solution(self.work, "error", Status.DISPARITY_BUDGET)

    def _walk(self, c: float, errors: Array, max_spread: float) -> tuple[float, Minimum] | None:
        """The first ``c`` below a given one, with its errors, at which the spread is met."""
        above = c
        too_wide = self.spread(errors) - max_spread
        for below in np.linspace(c, self.lowest.value, 9)[1:].tolist():
            if below == self.lowest.value:
                best = self._last[0]
                least = self._least_error_at_the_end
                found = replace(best, value=float(self.shares @ best.errors), bound=least)
            else:
                found = self._at(below, nearby_only=True)
            excess = self.spread(found.errors) - max_spread
            if excess <= self.rounding:
                return self._narrowed((below, excess, found), (above, too_wide), max_spread)
            above = below
            too_wide = excess
        return None

    def _narrowed(
        self, met: tuple[float, float, Minimum], missed: tuple[float, float], max_spread: float
    ) -> tuple[float, Minimum]:
        """The least overall error between a ``c`` that meets the spread and one that does not.

        Regula falsi with the Illinois rule: the value at the end that stays is halved.
        """
        (low, f_low, found) = met
        (high, f_high) = missed
        for _ in range(MAX_STEPS):
            exact = self.spread(found.errors) >= max_spread - self.rounding
            if exact or high - low <= self.work.parity:
                break
            c = high - f_high * (high - low) / (f_high - f_low)
            trial = self._at(c, nearby_only=True)
            excess = self.spread(trial.errors) - max_spread
            if excess <= self.rounding:
                low = c
                f_low = min(excess, 0.0)
                found = trial
                f_high = f_high / 2
            else:
                high = c
                f_high = excess
                f_low = f_low / 2
        return low, found

    def _worst(self, found: Minimum, status: Status, least_error_bound: float) -> Solution:
        """The solution certified for its largest error, with a bound on the overall error."""
        found = replace(found, value=self.largest(found.errors))
        error_gap = float(self.shares @ found.errors) - least_error_bound
        return found.solution(self.work, "worst", status, error_gap)
