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
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.two_groups.root import Line
from fairpca._solvers.worst_off import Balance
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
        first, second = errors - balance.offsets
        return float(first - second)

    line = Line(spaces, at, difference, np.array([1.0, -1.0]))
    below, above = line.sample_of(1.0, own[0]), line.sample_of(0.0, own[1])
    for point, excess in ((own[0], below.value), (own[1], -above.value)):
        if excess >= -spaces.rounding:
            equal = excess <= spaces.rounding
            status = Status.GROUPS_EQUAL if equal else Status.ONE_GROUP_DECIDES
            return balance.solution(point, status, point.weights, balance.phi(point))
    found, crossing = line.cross(below, above)
    best, bound = crossing.at.point.weights, balance.phi(crossing.at.point)
    return balance.solution(found, Status.GROUPS_EQUAL, best, bound, *crossing.ends)
