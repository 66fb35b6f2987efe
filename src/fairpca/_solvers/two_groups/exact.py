"""Parity, caps and budgets for two groups, solved exactly by root finding.

On the way from PCA to least disparity (see :mod:`fairpca._solvers.two_groups.frontier`) the slacks

    D - max_disparity,    (1 + b) R(PCA) - R,    and below alpha_B also    R_B(PCA) - R_B

only shrink, and so does their minimum. Its root is the answer, found by about ten
eigendecompositions. At a jump of the eigenspace the answer lies on the path between both sides.

Certificate. ``phi(alpha) = min_U alpha R + (1 - alpha) D`` is known from the eigenvalues, so for
ANY projection V that respects the limit that binds:

* ``D(V) <= eps`` implies ``R(V) >= (phi - (1 - alpha) eps) / alpha``;
* ``R(V) <= c`` implies ``D(V) >= (phi - alpha c) / (1 - alpha)``;
* ``R_B(V) <= c`` implies ``D(V) >= (phi - alpha c) / (1 - alpha (1 + p_A))``, because
  ``R = R_B - p_A D``.

The gap is how far the projection found lies above that bound: zero up to rounding.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf, isfinite

from fairpca._problems.fair import FairProblem
from fairpca._problems.solution import Objective, Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.two_groups.frontier import Frontier
from fairpca._solvers.two_groups.root import Sample, cross_slack
from fairpca._typing import Array

_NEGLIGIBLE = 1e-12  # of the largest trace: where PCA is this fair, data of lower rank are noise
_NUDGE = 1e-6  # of alpha: breaks ties


def solve_exact(spaces: Eigenspaces, problem: FairProblem) -> Solution:
    """Walk the frontier to the first limit that binds, by root finding."""
    frontier = Frontier(spaces)
    limits = Limits(frontier, problem)
    negligible = max(spaces.rounding, _NEGLIGIBLE * float(spaces.traces.max()))
    if limits.pca_disparity - problem.max_disparity <= negligible:
        bound = frontier.pca.bound
        return frontier.solution(frontier.pca, 1.0, Status.ALREADY_FAIR, "error", bound)

    def sample(alpha: float, capped: bool) -> Sample:
        point = frontier.at(alpha)
        return Sample(alpha, limits.slack(point.errors, capped), point)

    capped, above, end = False, sample(1.0, capped=False), 0.0
    if problem.no_worse:
        # Above alpha_B the cap holds by itself, below it the cap is one more shrinking slack.
        best_for_B = sample(frontier.alpha_B, capped=False)
        if best_for_B.value > 0:
            capped = True
            above = replace(best_for_B, value=limits.slack(best_for_B.point.errors, capped=True))
        else:
            end = frontier.alpha_B
    below = best_for_B if end else sample(end, capped)
    if below.value > spaces.rounding:
        bound = below.point.bound
        return frontier.solution(below.point, 0.0, Status.INFEASIBLE, "disparity", bound)
    if above.value <= spaces.rounding and capped:
        # PCA is the best for B. Only where B has equal eigenvalues to choose from can D still fall.
        nudged = sample(frontier.alpha_B * (1 - _NUDGE), capped=False)
        indifferent = nudged.point.errors[frontier.harmed] <= limits.cap + spaces.rounding
        if indifferent and nudged.value >= 0:
            return limits.certify(nudged.point, nudged, capped)
        if indifferent:
            capped, below, above = False, nudged, best_for_B
    if above.value <= spaces.rounding:
        return limits.certify(above.point, above, capped)

    point, crossing = cross_slack(
        spaces, frontier.at, partial(limits.slack, capped=capped), below, above
    )
    ends = (crossing.below.point, crossing.above.point) if crossing.below.x else ()
    return limits.certify(point, crossing.at, capped, *ends)


class Limits:
    """The slacks of a problem on a frontier, and what they certify once one is used up."""

    def __init__(self, frontier: Frontier, problem: FairProblem) -> None:
        self.frontier = frontier
        self.max_disparity = problem.max_disparity
        self.cap = float(frontier.pca.errors[frontier.harmed])
        R, self.pca_disparity = frontier.error_and_disparity(frontier.pca.errors)
        limited = isfinite(problem.max_error_increase)
        self.error_limit = R * (1 + problem.max_error_increase) if limited else inf

    def slack(self, errors: Array, capped: bool) -> float:
        """What is left of the tightest limit; ``capped`` includes the cap on the harmed group."""
        R_A, R_B = errors[self.frontier.privileged], errors[self.frontier.harmed]
        R = self.frontier.spaces.shares @ errors
        left = min(R_B - R_A - self.max_disparity, self.error_limit - R)
        return float(min(left, self.cap - R_B) if capped else left)

    def certify(self, point: Point, at: Sample, capped: bool, *ends: Point) -> Solution:
        """The solution with its bound, by the limit that binds."""
        frontier, alpha, phi = self.frontier, at.x, at.point.bound
        R, D = frontier.error_and_disparity(point.errors)
        left = {
            Status.DISPARITY_BUDGET if self.max_disparity else Status.PARITY: (
                D - self.max_disparity
            ),
            Status.CAPPED: self.cap - point.errors[frontier.harmed] if capped else inf,
            Status.ERROR_BUDGET: self.error_limit - R,
        }
        status = min(left, key=lambda limit: float(left[limit]))
        objective: Objective = "disparity"
        if status is Status.CAPPED and alpha < frontier.alpha_B:
            bound = (phi - alpha * self.cap) / (1 - alpha / frontier.alpha_B)
        elif status is Status.CAPPED:  # PCA is already the best for B
            objective, bound = "harmed", phi / alpha
        elif status is Status.ERROR_BUDGET and alpha < 1:
            bound = (phi - alpha * self.error_limit) / (1 - alpha)
        elif alpha > 0:
            objective, bound = "error", (phi - (1 - alpha) * self.max_disparity) / alpha
        else:
            bound = phi
        return frontier.solution(point, alpha, status, objective, bound, *ends)
