"""The two-group problems, solved exactly by root finding or as printed by golden section.

For ``M(alpha) = alpha C + (1 - alpha)(C_B - C_A)`` let ``U(alpha)`` be its top-r eigenspace. As
alpha falls from 1 to 0, ``D`` never rises and ``R`` and ``R_A`` never fall; ``R_B`` falls down to
``alpha_B = 1 / (1 + p_A)``, where M is a multiple of ``C_B``, and rises after it. The slacks

    D - max_disparity,    (1 + b) R(PCA) - R,    and below alpha_B also    R_B(PCA) - R_B

therefore only shrink on the way, and so does their minimum: its root is the answer, found by about
ten eigendecompositions. At a jump of the eigenspace the answer lies on the path between both sides.

Certificate. ``phi(alpha) = min_U alpha R + (1 - alpha) D`` is known from the eigenvalues, so for
ANY projection V that respects the limit that binds:

* ``D(V) <= eps`` implies ``R(V) >= (phi - (1 - alpha) eps) / alpha``;
* ``R(V) <= c`` implies ``D(V) >= (phi - alpha c) / (1 - alpha)``;
* ``R_B(V) <= c`` implies ``D(V) >= (phi - alpha c) / (1 - alpha (1 + p_A))``, because
  ``R = R_B - p_A D``.

``gap`` is how far the projection found lies above that bound: zero up to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, isinf, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._problems.fair import FairProblem, FixedAlpha, Status
from fairpca._solvers.eigenspaces.operand import DenseFamily, Family, Point
from fairpca._solvers.two_groups.crossing import cross_slack
from fairpca._solvers.two_groups.root import Sample
from fairpca._typing import Array

_NEGLIGIBLE = 1e-12  # of the largest trace: where PCA is this fair, data of lower rank are noise
_NUDGE = 1e-6  # of alpha: breaks ties
_GOLDEN_TOLERANCE = 1e-6  # the authors' tol
_GOLDEN_CAP_SLACK = 1e-6  # not in the paper, but in the code that produced its results


@dataclass(frozen=True)
class Solution:
    """A projection, what it costs each group, and the proof that it is the best one.

    ``extras`` are fitted attributes that only some estimators have.
    """

    basis: Array
    errors: Array
    alpha: float
    status: Status
    gap: float
    privileged: int
    harmed: int
    pca: Point
    decisive: tuple[Point, ...]
    extras: Mapping[str, Any] = field(default_factory=dict)

    def lift(self, V: Array, slack: float) -> Solution:
        """The same solution after ``x -> V x``, its gap known up to ``slack``."""
        pca = replace(self.pca, basis=V @ self.pca.basis)
        return replace(self, basis=V @ self.basis, pca=pca, gap=self.gap + slack, decisive=())


class Frontier:
    """The projections ``U(alpha)`` between PCA (alpha = 1) and least disparity (alpha = 0)."""

    def __init__(self, family: DenseFamily) -> None:
        self.family = family
        self.pca = family.top(family.shares)
        self.privileged, self.harmed = (
            (0, 1) if self.pca.errors[0] <= self.pca.errors[1] else (1, 0)
        )
        self.p_A = float(family.shares[self.privileged])
        self.alpha_B = 1.0 / (1.0 + self.p_A)
        self._towards_parity = np.zeros(2)
        self._towards_parity[[self.privileged, self.harmed]] = -1.0, 1.0

    def weights(self, alpha: float) -> Array:
        """Group weights w with ``M(w) = M(alpha)``, so ``w @ errors = alpha R + (1-alpha) D``."""
        return np.asarray(alpha * self.family.shares + (1 - alpha) * self._towards_parity)

    def at(self, alpha: float) -> Point:
        """``U(alpha)``; at alpha = 0 the least R among those of least D."""
        if alpha == 1.0:
            return self.pca
        tiebreak = self.family.shares if alpha == 0.0 else None
        return self.family.top(self.weights(alpha), tiebreak)

    def overall(self, errors: Array) -> float:
        """``R``."""
        return float(self.family.shares @ errors)

    def disparity(self, errors: Array) -> float:
        """``D``."""
        return float(self._towards_parity @ errors)

    def solution(
        self, point: Point, alpha: float, status: Status, gap: float, *others: Point
    ) -> Solution:
        """Package a projection; it rests on itself, on PCA and on the ``others``."""
        return Solution(
            basis=point.basis,
            errors=point.errors,
            alpha=alpha,
            status=status,
            gap=gap,
            privileged=self.privileged,
            harmed=self.harmed,
            pca=self.pca,
            decisive=(self.pca, *(others or (point,))),
        )


def solve_pca(family: Family, compared: NDArray[np.bool_]) -> Solution:
    """Plain PCA, and which of the groups compared it serves best and worst."""
    pca = family.top(family.shares)
    members, errors = np.flatnonzero(compared), pca.errors[compared]
    return Solution(
        basis=pca.basis,
        errors=pca.errors,
        alpha=1.0,
        status=Status.FIXED,
        gap=float(family.shares @ pca.errors) - pca.bound,
        privileged=int(members[errors.argmin()]),
        harmed=int(members[::-1][errors[::-1].argmax()]),  # the last on a tie: not the same group
        pca=pca,
        decisive=(pca,),
    )


def solve_fixed(family: DenseFamily, problem: FixedAlpha) -> Solution:
    """The closed form for a given alpha: one eigendecomposition."""
    frontier = Frontier(family)
    point = frontier.at(problem.alpha)
    gap = float(frontier.weights(problem.alpha) @ point.errors) - point.bound
    return frontier.solution(point, problem.alpha, Status.FIXED, gap)


def solve_exact(family: DenseFamily, problem: FairProblem) -> Solution:
    """Walk the frontier to the first limit that binds, by root finding."""
    frontier = Frontier(family)
    limits = Limits(frontier, problem)
    pca = Sample(1.0, limits.slack(frontier.pca.errors, capped=False), frontier.pca)
    negligible = max(family.rounding, _NEGLIGIBLE * float(family.traces.max()))
    if frontier.disparity(frontier.pca.errors) - problem.max_disparity <= negligible:
        gap = frontier.overall(frontier.pca.errors) - frontier.pca.bound
        return frontier.solution(frontier.pca, 1.0, Status.ALREADY_FAIR, gap)

    def sample(alpha: float, capped: bool) -> Sample[Point]:
        point = frontier.at(alpha)
        return Sample(alpha, limits.slack(point.errors, capped), point)

    capped, above, end = False, pca, 0.0
    if problem.no_worse:
        # Above alpha_B the cap holds by itself, below it the cap is one more shrinking slack.
        best_for_B = sample(frontier.alpha_B, capped=False)
        if best_for_B.value > 0:
            capped = True
            above = replace(best_for_B, value=limits.slack(best_for_B.payload.errors, capped=True))
        else:
            end = frontier.alpha_B
    below = best_for_B if end else sample(end, capped)
    if below.value > family.rounding:
        D = frontier.disparity(below.payload.errors)
        return frontier.solution(below.payload, 0.0, Status.INFEASIBLE, D - below.payload.bound)
    if above.value <= family.rounding and capped:
        # PCA is the best for B. Only where B has equal eigenvalues to choose from can D still fall.
        nudged = sample(frontier.alpha_B * (1 - _NUDGE), capped=False)
        indifferent = nudged.payload.errors[frontier.harmed] <= limits.cap + family.rounding
        if indifferent and nudged.value >= 0:
            return limits.certify(nudged.payload, nudged, capped)
        if indifferent:
            capped, below, above = False, nudged, best_for_B
    if above.value <= family.rounding:
        return limits.certify(above.payload, above, capped)

    point, crossing = cross_slack(
        family, frontier.at, lambda errors: limits.slack(errors, capped), below, above
    )
    ends = (crossing.below.payload, crossing.above.payload) if crossing.below.x else ()
    return limits.certify(point, crossing.at, capped, *ends)


class Limits:
    """The slacks of a problem on a frontier, and what they certify once one is used up."""

    def __init__(self, frontier: Frontier, problem: FairProblem) -> None:
        self.frontier = frontier
        self.problem = problem
        self.cap = float(frontier.pca.errors[frontier.harmed])
        self.error_limit = inf
        if not isinf(problem.max_error_increase):
            R = frontier.overall(frontier.pca.errors)
            self.error_limit = R * (1 + problem.max_error_increase)

    def slacks(self, errors: Array, capped: bool) -> dict[Status, float]:
        """What is left of each limit; ``capped`` includes the cap on the harmed group."""
        met = Status.DISPARITY_BUDGET if self.problem.max_disparity > 0 else Status.PARITY
        left = {met: self.frontier.disparity(errors) - self.problem.max_disparity}
        if capped:
            left[Status.CAPPED] = self.cap - float(errors[self.frontier.harmed])
        if not isinf(self.error_limit):
            left[Status.ERROR_BUDGET] = self.error_limit - self.frontier.overall(errors)
        return left

    def slack(self, errors: Array, capped: bool) -> float:
        """The least of the slacks."""
        return min(self.slacks(errors, capped).values())

    def certify(self, point: Point, at: Sample[Point], capped: bool, *ends: Point) -> Solution:
        """The solution with its optimality gap, by the limit that binds."""
        left = self.slacks(point.errors, capped)
        status = min(left, key=lambda limit: left[limit])
        frontier, alpha, phi = self.frontier, at.x, at.payload.bound
        R, D = frontier.overall(point.errors), frontier.disparity(point.errors)
        if status is Status.CAPPED and alpha < frontier.alpha_B:
            gap = D - (phi - alpha * self.cap) / (1 - alpha / frontier.alpha_B)
        elif status is Status.CAPPED:  # PCA is already the best for B: the gap is that of R_B
            gap = R + frontier.p_A * D - phi / alpha
        elif status is Status.ERROR_BUDGET and alpha < 1:
            gap = D - (phi - alpha * self.error_limit) / (1 - alpha)
        elif alpha > 0:
            gap = R - (phi - (1 - alpha) * self.problem.max_disparity) / alpha
        else:
            gap = D - phi
        return frontier.solution(point, alpha, status, gap, *ends)


def solve_golden(family: DenseFamily, problem: FairProblem) -> Solution:
    """Algorithms 1 and 2 of the paper, step by step.

    Corrected here: the sign of ``C_B - C_A`` and the direction of the loop's test. As printed: on a
    tie the search moves towards alpha = 0, and the result is the midpoint of the last interval.
    As in the authors' code: errors may exceed the cap by 1e-6. The search proves nothing, so there
    is no gap.
    """
    frontier = Frontier(family)
    cap = float(frontier.pca.errors[frontier.harmed])
    alpha_0, alpha_1, g_ratio = 0.0, 1.0, (sqrt(5) + 1) / 2
    while alpha_1 - alpha_0 > _GOLDEN_TOLERANCE:
        alpha_1a = alpha_0 + (alpha_1 - alpha_0) / g_ratio
        alpha_0a = alpha_1 - (alpha_1 - alpha_0) / g_ratio
        errors_1 = frontier.at(alpha_1a).errors
        errors_0 = frontier.at(alpha_0a).errors
        F_1, F_0 = frontier.disparity(errors_1) ** 2, frontier.disparity(errors_0) ** 2
        within_cap = not problem.no_worse or errors_0.max() <= cap + _GOLDEN_CAP_SLACK
        if F_0 <= F_1 and within_cap:
            alpha_1 = alpha_1a
        else:
            alpha_0 = alpha_0a
    alpha = (alpha_1 + alpha_0) / 2
    return frontier.solution(frontier.at(alpha), alpha, Status.SEARCHED, gap=nan)
