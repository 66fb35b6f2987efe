"""The welfare of two groups, exactly, by root finding on the efficient frontier.

For weights ``x`` and ``1 - x`` of the groups' *shares* of variance ``v_g = V_g / tr C_g`` let
``U(x)`` be the best projection. As x rises, ``v_0`` never falls and ``v_1`` never rises. Welfare is
largest where the weights are those of its gradient, and that is where

    x t_0^(a-1) v_0^a  =  (1 - x) t_1^(a-1) v_1^a,        t_g = tr C_g.

The left side rises with x and the right side falls, so there is one root; at a jump of the
eigenspace the answer lies on the path between both sides. The a-th root of both sides is taken
where a is above one, so that a large aversion does no harm: both sides tend to ``V_g``.
"""

from __future__ import annotations

import numpy as np

from fairpca._problems.problems import WelfareProblem
from fairpca._problems.solution import Point, Solution
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.two_groups.root import Line, Sample
from fairpca._solvers.welfare import Welfare
from fairpca._typing import Array

_EDGE = 2.0**-50  # distance from the ends of the interval, where a weight would be zero


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
    ends = []
    for x, unit in ((_EDGE, np.array([0.0, 1.0])), (1.0 - _EDGE, np.array([1.0, 0.0]))):
        point = spaces.top(unit, 1.0 - unit)
        ends.append(Sample(x, difference(x, point.errors), point))
    below, above = ends
    if below.value >= 0.0 or above.value <= 0.0:
        found = (below if below.value >= 0.0 else above).point
        return welfare.certified(found, found)
    line = Line(spaces, at, difference, np.array([1.0, -1.0]) * (scale / traces))
    found, crossing = line.cross(below, above)
    return welfare.certified(found, crossing.below.point, crossing.above.point)
