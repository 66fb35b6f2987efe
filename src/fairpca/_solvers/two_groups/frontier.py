"""The projections between PCA and least disparity, for two groups.

For ``M(alpha) = alpha C + (1 - alpha)(C_B - C_A)`` let ``U(alpha)`` be its top-r eigenspace. It
minimises ``alpha R + (1 - alpha) D`` (theorem 1 of the paper, whose printed sign is wrong). As
alpha falls from 1 to 0, ``D`` never rises and ``R`` and ``R_A`` never fall. ``R_B`` falls down to
``alpha_B = 1 / (1 + p_A)``, where M is a multiple of ``C_B``, and rises after it.
"""

from math import nan, sqrt

import numpy as np

from fairpca._problems.problems import Constraint
from fairpca._problems.solution import Objective, Point, Solution, best_and_worst
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._typing import Array

_GOLDEN_TOLERANCE = 1e-6  # length of the last interval, and how far errors may exceed the cap


class Frontier:
    """The projections ``U(alpha)`` between PCA (alpha = 1) and least disparity (alpha = 0)."""

    def __init__(self, spaces: Eigenspaces) -> None:
        self.spaces = spaces
        self.pca = spaces.pca
        self.privileged, self.harmed = best_and_worst(
            self.pca.errors, spaces.traces, spaces.compared
        )
        self.alpha_B = 1.0 / (1.0 + float(spaces.shares[self.privileged]))
        self._towards_parity = np.zeros(2)
        self._towards_parity[[self.privileged, self.harmed]] = -1.0, 1.0
        self.direction = spaces.shares - self._towards_parity  # the weights' change with alpha

    def at(self, alpha: float, *, fairest: bool = False) -> Point:
        """``U(alpha)``; where ``D`` or ``R_B`` is least, ties go to the least R.

        With ``fairest`` all ties go to the least D, which is then the ``tied_bound``.
        """
        shares = self.spaces.shares
        towards_parity = self._towards_parity
        if alpha == 1.0 and not fairest:
            return self.pca
        tiebreak = None
        if fairest:
            tiebreak = towards_parity
        elif alpha in (0.0, self.alpha_B):
            tiebreak = shares
        return self.spaces.top(alpha * shares + (1 - alpha) * towards_parity, tiebreak)

    def error_and_disparity(self, errors: Array) -> tuple[float, float]:
        """``R`` and ``D``."""
        D = errors[self.harmed] - errors[self.privileged]
        return float(self.spaces.shares @ errors), float(D)

    def solution(
        self,
        point: Point,
        alpha: float,
        status: Status,
        objective: Objective,
        bound: float,
        *others: Point,
    ) -> Solution:
        """Package a projection; it rests on itself, on PCA and on the ``others``."""
        R, D = self.error_and_disparity(point.errors)
        values = {
            "error": R,
            "disparity": D,
            "harmed": float(point.errors[self.harmed]),
            "weighted": alpha * R + (1 - alpha) * D,
            "fairness": D**2,
        }
        value = values[objective]
        rests_on = others or (point,)
        return self.spaces.solution(
            point, status, objective, value, bound, rests_on=rests_on, alpha=alpha
        )


def solve_fixed(spaces: Eigenspaces, alpha: float) -> Solution:
    """The closed form for a given alpha: one eigendecomposition."""
    frontier = Frontier(spaces)
    point = frontier.at(alpha)
    return frontier.solution(point, alpha, Status.FIXED, "weighted", point.bound)


def solve_golden(spaces: Eigenspaces, constraint: Constraint = "parity") -> Solution:
    """Run algorithms 1 and 2 of the paper, golden section on ``F = D^2``, for comparison.

    Corrected here: the sign of ``C_B - C_A`` and the direction of the loop's test. As printed: on a
    tie the search moves towards alpha = 0, and the result is the midpoint of the last interval. As
    in the authors' code: both tolerances. The search proves nothing, so there is no gap.
    """
    frontier = Frontier(spaces)
    cap = float(frontier.pca.errors[frontier.harmed]) + _GOLDEN_TOLERANCE
    alpha_0 = 0.0
    if constraint == "efficient":
        alpha_0 = frontier.alpha_B
    alpha_1 = 1.0
    g_ratio = (sqrt(5) + 1) / 2
    while alpha_1 - alpha_0 > _GOLDEN_TOLERANCE:
        alpha_1a = alpha_0 + (alpha_1 - alpha_0) / g_ratio
        alpha_0a = alpha_1 - (alpha_1 - alpha_0) / g_ratio
        errors_1 = frontier.at(alpha_1a).errors
        errors_0 = frontier.at(alpha_0a).errors
        F_1, F_0 = (frontier.error_and_disparity(e)[1] ** 2 for e in (errors_1, errors_0))
        if F_0 <= F_1 and (constraint != "no_worse" or errors_0.max() <= cap):
            alpha_1 = alpha_1a
        else:
            alpha_0 = alpha_0a
    alpha = (alpha_1 + alpha_0) / 2
    return frontier.solution(frontier.at(alpha), alpha, Status.SEARCHED, "fairness", nan)
