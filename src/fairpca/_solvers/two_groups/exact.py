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

from math import inf

from fairpca._moments.tolerances import KEPT, moment_noise, parity_tolerance
from fairpca._problems.problems import FairProblem
from fairpca._problems.solution import Objective, Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.two_groups.frontier import Frontier
from fairpca._solvers.two_groups.root import Line, Sample
from fairpca._typing import Array


def solve_exact(spaces: Eigenspaces, problem: FairProblem) -> Solution:
    """Walk the frontier to the first limit that binds, by root finding."""
    frontier = LimitedFrontier(spaces, problem)
    pca = frontier.pca
    alpha_B = frontier.alpha_B
    if frontier.is_fair(pca.errors):
        return frontier.solution(pca, 1.0, Status.ALREADY_FAIR, "error", pca.bound)

    capped = problem.constraint == "no_worse" or problem.max_group_increase < inf
    end = alpha_B
    if problem.constraint == "parity" and not capped:
        end = 0.0
    line = frontier.line(Status.CAPPED, end=end)  # the cap cannot bind above alpha_B
    start = line.sample(1.0)
    if frontier.is_used_up(start.value):
        binding = frontier.tightest(pca.errors, Status.CAPPED)[1]
        if binding is Status.GROUP_LIMIT:
            return frontier.certify(pca, start, binding)
        return frontier.among_ties(start, Status.ERROR_BUDGET)
    above, below = line.approach(start)
    if below.value > spaces.rounding and problem.constraint == "efficient":
        bound = below.point.bound / alpha_B
        return frontier.solution(below.point, alpha_B, Status.WORST_OFF_BEST, "harmed", bound)
    without = [Status.CAPPED]
    if below.value > spaces.rounding and capped:
        if frontier.is_used_up(frontier.cap - float(below.point.errors[frontier.harmed])):
            return frontier.among_ties(below, Status.CAPPED)
        without = []  # below alpha_B the cap is one more shrinking slack
        line = frontier.line()
        above, below = line.approach(line.sample(alpha_B, below.point))
    if below.value > spaces.rounding:
        bound = below.point.bound
        return frontier.solution(below.point, 0.0, Status.INFEASIBLE, "disparity", bound)
    crossing = line.cross(below, above)
    binding = frontier.tightest(crossing.found.errors, *without)[1]
    return frontier.certify(crossing.found, crossing.at, binding, crossing.at.point)


class LimitedFrontier(Frontier):
    """A frontier with the slacks of a problem, and what they certify once one is used up."""

    def __init__(self, spaces: Eigenspaces, problem: FairProblem) -> None:
        super().__init__(spaces)
        errors = self.pca.errors
        self.max_disparity = 0.0
        self.parity = Status.PARITY
        if problem.max_disparity:
            self.max_disparity = problem.max_disparity
            self.parity = Status.DISPARITY_BUDGET
        self.cap = float(errors[self.harmed])
        self.cap_status = Status.CAPPED
        self.limit_A = inf
        if problem.max_group_increase < inf:
            share = 1 + problem.max_group_increase
            self.limit_A = share * float(errors[self.privileged])
            if problem.constraint == "parity":
                self.cap = share * self.cap
                self.cap_status = Status.GROUP_LIMIT
        self.error_limit = inf
        if problem.max_error_increase < inf:
            self.error_limit = (1 + problem.max_error_increase) * float(spaces.shares @ errors)

    def is_fair(self, errors: Array) -> bool:
        """Whether the disparity is within the one allowed, or the groups are equal to rounding."""
        traces = self.spaces.traces
        allowed = self.max_disparity + max(self.spaces.rounding, moment_noise(traces))
        D = self.error_and_disparity(errors)[1]
        return max(allowed, parity_tolerance(errors, traces)) >= D

    def is_used_up(self, slack: float) -> bool:
        """Whether nothing is left of a limit, to rounding."""
        return slack <= 2 * KEPT * self.spaces.rounding

    def tightest(self, errors: Array, *without: Status) -> tuple[float, Status]:
        """The smallest slack and the name of its limit; limits in ``without`` do not count."""
        R, D = self.error_and_disparity(errors)
        left = (
            (D - self.max_disparity, self.parity),
            (self.cap - float(errors[self.harmed]), Status.CAPPED),
            (self.error_limit - R, Status.ERROR_BUDGET),
            (self.limit_A - float(errors[self.privileged]), Status.GROUP_LIMIT),
        )
        counting = (limit for limit in left if limit[1] not in without)
        return min(counting, key=lambda limit: limit[0])

    def line(self, *without: Status, end: float = 0.0) -> Line:
        """The frontier from PCA to an end, with the smallest slack."""

        def slack(_: float, errors: Array) -> float:
            return self.tightest(errors, *without)[0]

        return Line(self.spaces, self.at, slack, self.direction, (end, 1.0))

    def among_ties(self, start: Sample, used_up: Status) -> Solution:
        """The least disparity within the limits, among projections as good as the start's.

        They have the same ``alpha R + (1 - alpha) D``: at alpha = 1 the same overall error, at
        alpha_B the same error of the harmed group. So they all keep the limit that is used up. The
        other limits shrink on the way from the start to the fairest of these projections.
        """
        alpha = start.x
        fairest = self.at(alpha, fairest=True)
        without = (used_up, Status.CAPPED)
        left = self.tightest(fairest.errors, *without)[0]
        if left >= 0:
            return self.solution(fairest, alpha, used_up, "disparity", fairest.tied_bound)
        point = self.line(*without).between(Sample(alpha, left, fairest), start, start)
        binding = self.tightest(point.errors, *without)[1]
        return self.certify(point, start, binding, start.point, fairest)

    def certify(self, point: Point, at: Sample, status: Status, *ends: Point) -> Solution:
        """The solution, with the bound that follows from the limit that binds."""
        alpha = at.x
        phi = at.point.bound
        objective: Objective = "disparity"
        bound = phi
        if status is Status.CAPPED:
            bound = (phi - alpha * self.cap) / (1 - alpha / self.alpha_B)
            status = self.cap_status
        elif status is Status.GROUP_LIMIT:
            p_A = float(self.spaces.shares[self.privileged])
            bound = (phi - alpha * self.limit_A) / (1 - alpha * p_A)
        elif status is Status.ERROR_BUDGET:
            bound = (phi - alpha * self.error_limit) / (1 - alpha)
        elif alpha > 0:
            objective = "error"
            bound = (phi - (1 - alpha) * self.max_disparity) / alpha
        return self.solution(point, alpha, status, objective, bound, *ends)
