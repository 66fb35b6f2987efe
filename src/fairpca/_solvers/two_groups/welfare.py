"""The welfare of the groups: what its solvers share, and the one for two groups.

Only groups that are compared and that vary take part: a group that does not vary keeps no variance
under any projection.

Two groups are solved exactly, by root finding on the efficient frontier. For weights ``x`` and
``1 - x`` of the groups' *shares* of variance ``v_g = V_g / tr C_g`` let ``U(x)`` be the best
projection. As x rises, ``v_0`` never falls and ``v_1`` never rises. Welfare is largest where the
weights are those of its gradient, and that is where

    x t_0^(a-1) v_0^a  =  (1 - x) t_1^(a-1) v_1^a,        t_g = tr C_g.

The left side rises with x and the right side falls, so there is one root; at a jump of the
eigenspace the answer lies on the path between both sides. The a-th root of both sides is taken
where a is above one, so that a large aversion does no harm: both sides tend to ``V_g``.
"""

from __future__ import annotations

import numpy as np

from fairpca._moments.tolerances import varying_groups
from fairpca._problems.problems import WelfareProblem
from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Eigenspaces, Spaces
from fairpca._solvers.two_groups.root import Line
from fairpca._typing import Array

_EDGE = 2.0**-50  # distance from the ends of the interval, where a weight would be zero


class Welfare:
    """The groups, and their welfare under a projection."""

    def __init__(self, spaces: Spaces, problem: WelfareProblem) -> None:
        self.spaces, self.problem = spaces, problem
        self.members = np.flatnonzero(spaces.compared & varying_groups(spaces.traces))

    def kept(self, errors: Array) -> Array:
        """``V_g`` of the groups that take part."""
        return np.asarray(np.maximum((self.spaces.traces - errors)[self.members], 0.0))

    def weights(self, of_members: Array | float) -> Array:
        """Weights of all groups."""
        weights = np.zeros(len(self.spaces.traces))
        weights[self.members] = of_members
        return weights

    def best_average(self) -> Solution:
        """The largest mean variance, which one eigenproblem solves; PCA where no group varies."""
        n = len(self.members)
        point = self.spaces.top(self.weights(1 / n)) if n else self.spaces.pca
        return self._solution(point, point, np.inf)

    def certified(
        self, found: Point, *rests_on: Point, proof: Point | None = None, tol: float = np.inf
    ) -> Solution:
        """A projection, with the bound at its own gradient or that of ``proof``, the better one.

        The projection counts as the best up to a gap of ``tol`` times the largest trace.
        """
        own = self.spaces.top(self.weights(self.problem.gradient(self.kept(found.errors))))
        best = own if proof is None else min(own, proof, key=self.most)
        return self._solution(found, best, tol, *rests_on)

    def most(self, point: Point) -> float:
        """The largest welfare that the weights of a point leave possible."""
        return float(point.weights @ self.spaces.traces) - point.bound

    def _solution(self, found: Point, proof: Point, tol: float, *rests_on: Point) -> Solution:
        kept, most = self.kept(found.errors), self.most(proof)
        value = self.problem.measure(kept) if len(kept) else 0.0
        proven = most - value <= tol * float(self.spaces.traces.max())
        status = Status.WELFARE_BEST if proven else Status.WELFARE_UNPROVEN
        rests_on = (proof, *rests_on)
        return self.spaces.solution(
            found, status, "welfare", -value, -most, weights=proof.weights, rests_on=rests_on
        )


def solve_welfare_of_two(spaces: Eigenspaces, problem: WelfareProblem) -> Solution:
    """Find the weights at which the welfare of two groups is largest."""
    welfare = Welfare(spaces, problem)
    a = problem.inequality_aversion
    if a == 0.0 or len(welfare.members) < 2:
        return welfare.best_average()
    traces, scale = spaces.traces, float(spaces.traces.max())
    coefficients = (traces / scale) ** ((a - 1.0) / max(a, 1.0))
    coefficients = scale * coefficients / coefficients.max()

    def at(x: float) -> Point:
        return spaces.top(np.array([x, 1.0 - x]) * (scale / traces))

    def difference(x: float, errors: Array) -> float:
        """The left side minus the right side."""
        shares = np.maximum(1.0 - errors / traces, 0.0)
        sides = np.array([x, 1.0 - x]) ** (1.0 / max(a, 1.0)) * shares ** min(a, 1.0)
        return float(coefficients[0] * sides[0] - coefficients[1] * sides[1])

    # This near to an end one group decides, and the other one only among ties.
    line = Line(spaces, at, difference, np.array([1.0, -1.0]) * (scale / traces))
    only_0, only_1 = (spaces.top(unit, 1.0 - unit) for unit in np.eye(2))
    below, above = line.sample_of(_EDGE, only_1), line.sample_of(1.0 - _EDGE, only_0)
    if below.value >= 0.0 or above.value <= 0.0:
        found = (below if below.value >= 0.0 else above).point
        return welfare.certified(found, found)
    found, crossing = line.cross(below, above)
    return welfare.certified(found, *crossing.ends)
