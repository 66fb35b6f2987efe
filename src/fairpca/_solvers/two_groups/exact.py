"""Parity, caps and budgets for two groups, solved exactly by root finding.

On the way from PCA to least disparity (see :mod:`fairpca._solvers.two_groups.frontier`) the slacks

    D - max_disparity,    (1 + b) R(PCA) - R,    (1 + b') R_A(PCA) - R_A,
    and below alpha_B also    R_B(PCA) - R_B    or    (1 + b') R_B(PCA) - R_B

only shrink, and so does their minimum. Its root is the answer, found by a few
eigendecompositions. At a jump of the eigenspace the answer lies on the path between both sides.
Efficient fairness ends at alpha_B, where the harmed group is at its best.

A limit may be used up before the walk begins: no more error is allowed than PCA's, or PCA is
already the best for B. Then D can fall only among the projections that are equally good there.

Certificate. ``phi(alpha) = min_U alpha R + (1 - alpha) D`` is known from the eigenvalues, so for
ANY projection V that respects the limit that binds:

* ``D(V) <= eps`` implies ``R(V) >= (phi - (1 - alpha) eps) / alpha``;
* ``R(V) <= c`` implies ``D(V) >= (phi - alpha c) / (1 - alpha)``;
* ``R_B(V) <= c`` implies ``D(V) >= (phi - alpha c) / (1 - alpha (1 + p_A))``, because
  ``R = R_B - p_A D``; and ``R_B(V) >= phi(alpha_B) / alpha_B`` always;
* ``R_A(V) <= c`` implies ``D(V) >= (phi - alpha c) / (1 - alpha p_A)``, because
  ``R = R_A + p_B D``;
* among equally good projections the least D is a sum of eigenvalues within their span.

The gap is how far the projection found lies above that bound: zero up to rounding.
"""

from functools import partial
from math import inf

from fairpca._moments.tolerances import KEPT, moment_noise, parity_tolerance
from fairpca._problems.problems import FairProblem
from fairpca._problems.solution import Objective, Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.two_groups.frontier import Frontier
from fairpca._solvers.two_groups.root import Line, Sample, between
from fairpca._typing import Array


def solve_exact(spaces: Eigenspaces, problem: FairProblem) -> Solution:
    """Walk the frontier to the first limit that binds, by root finding."""
    frontier = Frontier(spaces)
    limits = Limits(frontier, problem)
    pca = frontier.pca
    alpha_B = frontier.alpha_B
    allowed = limits.max_disparity + max(spaces.rounding, moment_noise(spaces.traces))
    if limits.pca_disparity <= max(allowed, parity_tolerance(pca.errors, spaces.traces)):
        return frontier.solution(pca, 1.0, Status.ALREADY_FAIR, "error", pca.bound)

    without: tuple[Status, ...] = (Status.CAPPED,)  # the cap cannot bind above alpha_B
    capped = problem.constraint == "no_worse" or problem.max_group_increase < inf
    end = 0.0 if problem.constraint == "parity" and not capped else alpha_B
    on_frontier = partial(Line, spaces, frontier.at, direction=frontier.direction)
    line = on_frontier(lambda _, errors: limits.tightest(errors, *without)[0], ends=(end, 1.0))
    start = line.sample(1.0)
    if start.value <= 2 * KEPT * spaces.rounding:
        if limits.tightest(pca.errors, *without)[1] is Status.GROUP_LIMIT:
            return limits.certify(pca, start, Status.GROUP_LIMIT)
        return limits.among_ties(start, Status.ERROR_BUDGET)
    above, below = line.approach(start)
    if below.value > spaces.rounding and problem.constraint == "efficient":
        status = Status.WORST_OFF_BEST
        bound = below.point.bound / alpha_B
        return frontier.solution(below.point, alpha_B, status, "harmed", bound)
    if below.value > spaces.rounding and capped:
        if limits.cap - below.point.errors[frontier.harmed] <= 2 * KEPT * spaces.rounding:
            return limits.among_ties(below, Status.CAPPED)
        # Below alpha_B the cap is one more shrinking slack.
        without = ()
        line = on_frontier(lambda _, errors: limits.tightest(errors)[0])
        above, below = line.approach(line.sample(alpha_B, below.point))
    if below.value > spaces.rounding:
        bound = below.point.bound
        return frontier.solution(below.point, 0.0, Status.INFEASIBLE, "disparity", bound)
    crossing = line.cross(below, above)
    binding = limits.tightest(crossing.found.errors, *without)[1]
    return limits.certify(crossing.found, crossing.at, binding, crossing.at.point)


class Limits:
    """The slacks of a problem on a frontier, and what they certify once one is used up."""

    def __init__(self, frontier: Frontier, problem: FairProblem) -> None:
        self.frontier = frontier
        self.max_disparity = problem.max_disparity or 0.0
        self.parity = Status.DISPARITY_BUDGET if problem.max_disparity else Status.PARITY
        self.cap = float(frontier.pca.errors[frontier.harmed])
        self.cap_status = Status.CAPPED
        self.limit_A = inf
        if problem.max_group_increase < inf:
            share = 1 + problem.max_group_increase
            self.limit_A = share * float(frontier.pca.errors[frontier.privileged])
            if problem.constraint == "parity":
                self.cap = share * self.cap
                self.cap_status = Status.GROUP_LIMIT
        R, self.pca_disparity = frontier.error_and_disparity(frontier.pca.errors)
        increase = problem.max_error_increase
        self.error_limit = R * (1 + increase) if increase < inf else inf

    def tightest(self, errors: Array, *without: Status) -> tuple[float, Status]:
        """The smallest slack and the name of its limit; limits in ``without`` do not count."""
        R, D = self.frontier.error_and_disparity(errors)
        left = (
            (D - self.max_disparity, self.parity),
            (self.cap - float(errors[self.frontier.harmed]), Status.CAPPED),
            (self.error_limit - R, Status.ERROR_BUDGET),
            (self.limit_A - float(errors[self.frontier.privileged]), Status.GROUP_LIMIT),
        )
        counting = (limit for limit in left if limit[1] not in without)
        return min(counting, key=lambda limit: limit[0])

    def among_ties(self, start: Sample, used_up: Status) -> Solution:
        """The least disparity within the limits, among projections as good as the start's.

        They have the same ``alpha R + (1 - alpha) D``: at alpha = 1 the same overall error, at
        alpha_B the same error of the harmed group. So they all keep the limit that is used up. The
        other limits shrink on the way from the start to the fairest of these projections.
        """
        frontier = self.frontier
        alpha = start.x
        without = (used_up, Status.CAPPED)

        def slack(_: float, errors: Array) -> float:
            return self.tightest(errors, *without)[0]

        fairest = frontier.at(alpha, fairest=True)
        below = Sample(alpha, slack(alpha, fairest.errors), fairest)
        if below.value >= 0:
            return frontier.solution(fairest, alpha, used_up, "disparity", fairest.tied_bound)
        point = between(frontier.spaces, below, start, start, slack)
        binding = self.tightest(point.errors, *without)[1]
        return self.certify(point, start, binding, start.point, fairest)

    def certify(self, point: Point, at: Sample, status: Status, *ends: Point) -> Solution:
        """The solution, with the bound that follows from the limit that binds."""
        frontier = self.frontier
        alpha = at.x
        phi = at.point.bound
        objective: Objective = "disparity"
        if status is Status.CAPPED:
            bound = (phi - alpha * self.cap) / (1 - alpha / frontier.alpha_B)
            status = self.cap_status
        elif status is Status.GROUP_LIMIT:
            p_A = float(frontier.spaces.shares[frontier.privileged])
            bound = (phi - alpha * self.limit_A) / (1 - alpha * p_A)
        elif status is Status.ERROR_BUDGET:
            bound = (phi - alpha * self.error_limit) / (1 - alpha)
        elif alpha > 0:
            objective = "error"
            bound = (phi - (1 - alpha) * self.max_disparity) / alpha
        else:
            bound = phi
        return frontier.solution(point, alpha, status, objective, bound, *ends)
