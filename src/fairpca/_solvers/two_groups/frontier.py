"""The projections between PCA and least disparity, for two groups.

For ``M(alpha) = alpha C + (1 - alpha)(C_B - C_A)`` let ``U(alpha)`` be its top-r eigenspace. It
minimises ``alpha R + (1 - alpha) D`` (theorem 1 of the paper, whose printed sign is wrong). As
alpha falls from 1 to 0, ``D`` never rises and ``R`` and ``R_A`` never fall. ``R_B`` falls down to
``alpha_B = 1 / (1 + p_A)``, where M is a multiple of ``C_B``, and rises after it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairpca._problems.solution import Objective, Point, Solution, best_and_worst
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.two_groups.root import Line
from fairpca._typing import Array


class Frontier:
    """The projections ``U(alpha)`` between PCA (alpha = 1) and least disparity (alpha = 0)."""

    def __init__(self, spaces: Eigenspaces) -> None:
        self.spaces = spaces
        self.pca = spaces.top(spaces.shares)
        self.privileged, self.harmed = best_and_worst(
            self.pca.errors, spaces.traces, spaces.compared
        )
        self.p_A = float(spaces.shares[self.privileged])
        self.alpha_B = 1.0 / (1.0 + self.p_A)
        self._towards_parity = np.zeros(2)
        self._towards_parity[[self.privileged, self.harmed]] = -1.0, 1.0

    def at(self, alpha: float) -> Point:
        """``U(alpha)``; of several where ``D`` or ``R_B`` is least the one of least R."""
        if alpha == 1.0:
            return self.pca
        shares = self.spaces.shares
        ends = alpha in (0.0, self.alpha_B)
        return self.spaces.top(self._weights(alpha), shares if ends else None)

    def fairest_at(self, alpha: float) -> Point:
        """``U(alpha)``; of several the one of least D, which is its ``tied_bound``."""
        return self.spaces.top(self._weights(alpha), self._towards_parity)

    def _weights(self, alpha: float) -> Array:
        """Weights of the groups: ``M(w) = M(alpha)``."""
        return np.asarray(alpha * self.spaces.shares + (1 - alpha) * self._towards_parity)

    def line(self, slack: Callable[[float, Array], float], end: float) -> Line:
        """A slack along the frontier, as a function of alpha from 1 down to the end."""
        direction = self.spaces.shares - self._towards_parity
        return Line(self.spaces, self.at, slack, direction, (end, 1.0))

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
        return Solution(
            basis=point.basis,
            errors=point.errors,
            status=status,
            objective=objective,
            value=values[objective],
            bound=bound,
            weights=point.weights,
            pca=self.pca,
            privileged=self.privileged,
            harmed=self.harmed,
            alpha=alpha,
            rests_on=(self.pca, *(others or (point,))),
        )


def solve_fixed(spaces: Eigenspaces, alpha: float) -> Solution:
    """The closed form for a given alpha: one eigendecomposition."""
    frontier = Frontier(spaces)
    point = frontier.at(alpha)
    return frontier.solution(point, alpha, Status.FIXED, "weighted", point.bound)
