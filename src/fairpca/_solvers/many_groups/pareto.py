"""Efficient fairness for more than two groups: from PCA towards the least largest error.

The efficient frontier holds, for every ``c`` between PCA's largest error and the least possible
one, the projection of least overall error among those with ``R_g <= c`` for all groups compared.
Weights on it are not negative: no group is made worse for the sake of equality alone. Its end is
the least overall error among the projections of least largest error, a lexicographic pair.

* At the end either all groups compared are equal, or the worst-off one is at its best.
* ``max_error_increase`` stops where the overall error is spent.
* ``max_disparity`` stops where the spread is small enough, the first time that it is, looked at
  after every eighth of the way in ``c``: with more than two groups the spread may rise in between.
* ``fraction`` stops at a part of the way in ``c``.

What is certified: at the end and within an error budget that no projection has a smaller largest
error; elsewhere that none with as small a largest error has a smaller overall error. The latter is
known at the end as well, as ``error_gap_``.
"""

from __future__ import annotations

from dataclasses import replace
from math import isinf, nan
from typing import Any

import numpy as np

from fairpca._problems.fair import FairProblem
from fairpca._problems.linear import least_error, least_maximum
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.growing import Spaces
from fairpca._solvers.many_groups.dual import EQUAL, Minimum, Start, minimise, minimise_in_face
from fairpca._solvers.many_groups.workspace import Workspace
from fairpca._solvers.pca import solve_pca
from fairpca._threads import computed_once
from fairpca._typing import Array

_LOOKS = 8  # at the spread, on the way from PCA to the end
_NARROWINGS = 30
_HIGH_PRICES = np.array([1.0, 0.1, 10.0])  # of the largest error, for one of the overall error


def solve_pareto(spaces: Spaces, problem: FairProblem, tol: float = 1e-9) -> Solution:
    """Walk the efficient frontier from PCA to its end, or to the first limit that binds."""
    frontier = EfficientFrontier(spaces, tol)
    if problem.fraction is not None:
        return frontier.part(problem.fraction)
    if frontier.spread(frontier.pca.errors) <= problem.max_disparity + frontier.rounding:
        return replace(frontier.pca, status=Status.ALREADY_FAIR)
    if not isinf(problem.max_error_increase):
        return frontier.within_budget(problem.max_error_increase)
    if problem.max_disparity > 0:
        return frontier.first_within(problem.max_disparity)
    return frontier.end


class EfficientFrontier:
    """Least overall error subject to ``R_g <= c``, for falling ``c``."""

    def __init__(self, spaces: Spaces, tol: float) -> None:
        self.pca = replace(solve_pca(spaces), alpha=nan, extras={"error_gap_": 0.0})
        self.work = Workspace(spaces, self.pca.pca)
        self.shares, self.compared = spaces.shares, spaces.compared
        self.tol = tol
        self.rounding = self.work.rounding
        self.highest = self.largest(self.pca.errors)
        self._near = Start()

    def largest(self, errors: Array) -> float:
        return float(errors[self.compared].max())

    def spread(self, errors: Array) -> float:
        return float(np.ptp(errors[self.compared]))

    @computed_once
    def lowest(self) -> Minimum:
        """A projection of least largest error."""
        problem = least_maximum(np.zeros(len(self.shares)), self.compared)
        found = minimise(self.work, problem, self.tol)
        assert found is not None  # without a ceiling there is always an answer
        return found

    @computed_once
    def _last_point(self) -> tuple[Minimum, float]:
        """The end of the frontier, and a bound of the overall error there.

        Where the least largest error is certain, the projections that have it differ in tied
        eigenvectors only, of which the best for the overall error are taken.
        """
        lowest, best = self.lowest, self.lowest
        if self.highest <= lowest.value + self.rounding:
            return replace(lowest, **self._as_pca()), self.pca.bound
        prices: Array = np.zeros(np.count_nonzero(self.compared))
        if lowest.value - lowest.bound <= self.tol * lowest.value:
            problem = least_error(self.shares, self.compared, cap=lowest.value + self.rounding)
            found = minimise_in_face(self.work, problem, lowest.weights, self.tol)
            if found is not None:
                prices = found.prices
                gain = self.shares @ (lowest.errors - found.errors)
                if found.violation <= self.rounding < gain:
                    best = replace(lowest, **found.found)
        return best, self._least_error_at_the_end(prices)

    def _least_error_at_the_end(self, prices: Array) -> float:
        """A bound of the overall error of the projections of least largest error.

        The price of the largest error is infinite there. A high one proves nearly as much; how
        high is best depends on how well the least largest error is known.
        """
        lowest, unit = self.lowest, self.work.unit
        problem = least_error(self.shares, self.compared, cap=lowest.value).in_units(unit)
        unknown = max((lowest.value - lowest.bound) / unit, self.work.noise)
        proofs = (
            self.work.prove(problem, prices + high * lowest.weights[self.compared])
            for high in (_HIGH_PRICES if self.work.closed else _HIGH_PRICES[:1]) / np.sqrt(unknown)
        )
        return max(proof.bound for proof in proofs) * unit

    @property
    def end(self) -> Solution:
        """Least overall error among the projections of least largest error."""
        best, least = self._last_point
        return self._worst(best, self._status(best, Status.WORST_OFF_BEST), least)

    def _status(self, found: Minimum, otherwise: Status) -> Status:
        equal = self.spread(found.errors) <= self.rounding + EQUAL * self.work.unit
        return Status.PARITY if equal else otherwise

    def _as_pca(self) -> dict[str, Any]:
        """PCA as the projection of a minimum."""
        return {"basis": self.pca.basis, "errors": self.pca.errors, "violation": 0.0}

    def within_budget(self, max_increase: float) -> Solution:
        """Least largest error at an overall error of at most ``1 + max_increase`` times PCA's."""
        limit = (1 + max_increase) * self.pca.value
        if limit <= self.pca.value + self.rounding:
            return self._at_no_cost()
        nothing = np.zeros(len(self.shares))
        problem = least_maximum(nothing, self.compared, shares=self.shares, max_error=limit)
        found = minimise(self.work, problem, self.tol)
        assert found is not None  # without a ceiling there is always an answer
        if found.violation > self.rounding:
            found = replace(found, **self._as_pca())
        left, price = limit - float(self.shares @ found.errors), float(found.prices[-1])
        if left > self.rounding or price <= EQUAL:
            end = self.end
            if self.shares @ end.errors <= limit + self.rounding:
                return end
        least = limit - (found.value - found.bound) / price if price > 0 else self.pca.bound
        return self._worst(found, Status.ERROR_BUDGET, max(least, self.pca.bound))

    def _at_no_cost(self) -> Solution:
        """Least largest error among the projections as good as PCA: eigenvalues may be tied."""
        equal = least_error(self.shares, self.compared, max_spread=0.0)
        free = minimise_in_face(self.work, equal, self.shares, self.tol)
        if free is None:  # no other projection is as good as PCA
            free = replace(self.lowest, **self._as_pca(), bound=self.highest)
        elif free.violation > self.rounding or not self.compared.all():
            problem = least_maximum(np.zeros(len(self.shares)), self.compared)
            free = minimise_in_face(self.work, problem, self.shares, self.tol)
            assert free is not None  # as above
        return self._worst(free, self._status(free, Status.ERROR_BUDGET), self.pca.bound)

    def part(self, fraction: float) -> Solution:
        """The projection at a fraction of the way from PCA to the end, in the largest error."""
        c = self.highest + fraction * (self.lowest.value - self.highest)
        if fraction == 1.0:
            return self.end
        if c >= self.highest - self.rounding:
            return replace(self.pca, status=Status.STOPPED)
        return self._error(self.at(c), Status.STOPPED)

    def at(self, c: float) -> Minimum:
        """Least overall error with no group compared above ``c``; quick near the ``c`` before."""
        problem = least_error(self.shares, self.compared, cap=c)
        found = minimise(self.work, problem, self.tol, start=self._near)
        assert found is not None  # without a ceiling there is always an answer
        self._near = Start(found.basis, found.prices)
        return found if found.violation <= self.rounding else found.or_instead(self.end, self.work)

    def first_within(self, max_spread: float) -> Solution:
        """The first projection seen from PCA whose spread is at most ``max_spread``."""
        above, too_wide = self.highest, self.spread(self.pca.errors) - max_spread
        for c in np.linspace(self.highest, self.lowest.value, _LOOKS + 1)[1:].tolist():
            found = self._last_as_least_error() if c == self.lowest.value else self.at(c)
            excess = self.spread(found.errors) - max_spread
            if excess <= self.rounding:
                found = self._narrowed((c, excess, found), (above, too_wide), max_spread)
                return self._error(found, Status.DISPARITY_BUDGET)
            above, too_wide = c, excess
        return self.end

    def _last_as_least_error(self) -> Minimum:
        """The end, as a minimum of the overall error."""
        best, least = self._last_point
        return replace(best, value=float(self.shares @ best.errors), bound=least)

    def _narrowed(
        self, met: tuple[float, float, Minimum], missed: tuple[float, float], max_spread: float
    ) -> Minimum:
        """The least overall error between a ``c`` that meets the spread and one that does not.

        Regula falsi, with the Illinois rule: the end that stays counts half.
        """
        (low, f_low, found), (high, f_high) = met, missed
        for _ in range(_NARROWINGS):
            exact = self.spread(found.errors) >= max_spread - self.rounding
            if exact or high - low <= EQUAL * self.highest:
                break
            c = high - f_high * (high - low) / (f_high - f_low)
            trial = self.at(c)
            excess = self.spread(trial.errors) - max_spread
            if excess <= self.rounding:
                low, f_low, found, f_high = c, min(excess, 0.0), trial, f_high / 2
            else:
                high, f_high, f_low = c, excess, f_low / 2
        return found

    def _worst(self, found: Minimum, status: Status, least_error_bound: float) -> Solution:
        """Certified for its largest error; its overall error is at least ``least_error_bound``."""
        found = replace(found, value=self.largest(found.errors))
        gap = float(self.shares @ found.errors) - least_error_bound
        solution = found.solution(self.work, "worst", status)
        return replace(solution, extras={"error_gap_": max(gap, 0.0)})

    def _error(self, found: Minimum, status: Status) -> Solution:
        """Certified for its overall error."""
        solution = found.solution(self.work, "error", status)
        return replace(solution, extras={"error_gap_": max(solution.gap, 0.0)})
