"""The worse-off of two groups made as well off as possible, exactly.

The slope of ``phi`` in t is the difference of the two groups at ``U(t)``, so the largest phi is at
a root of that difference, where it equals the value. Or it is at an end, where one group is worse
off even under a projection of its own. The gap is therefore zero up to rounding.
"""

from __future__ import annotations

import numpy as np

from fairpca._problems.problems import Criterion
from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.balance import Balance
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.two_groups.root import Line, Sample
from fairpca._typing import Array


def solve_minmax(spaces: Eigenspaces, criterion: Criterion) -> Solution:
    """Find the largest phi for two groups by root finding."""
    # At the ends of the interval of t ties decide.
    own = tuple(spaces.top(unit, 1.0 - unit) for unit in np.eye(2))
    balance = Balance(spaces, criterion, own)

    def at(t: float) -> Point:
        return spaces.top(np.array([t, 1.0 - t]))

    def difference(_: float, errors: Array) -> float:
        """Group 0 minus group 1; it falls as t rises."""
        first, second = balance.values(errors)
        return float(first - second)

    below, above = (
        Sample(t, difference(t, point.errors), point)
        for t, point in zip((1.0, 0.0), own, strict=True)
    )
    for end, excess in ((below, below.value), (above, -above.value)):
        if excess >= -spaces.rounding:
            equal = excess <= spaces.rounding
            status = Status.GROUPS_EQUAL if equal else Status.ONE_GROUP_DECIDES
            point = end.point
            bound = balance.phi(point)
            return balance.solution(point.basis, point.errors, status, point.weights, bound)
    line = Line(spaces, at, difference, np.array([1.0, -1.0]))
    point, crossing = line.cross(below, above)
    best = crossing.at.point
    ends = crossing.below.point, crossing.above.point
    return balance.solution(
        point.basis, point.errors, Status.GROUPS_EQUAL, best.weights, balance.phi(best), *ends
    )
