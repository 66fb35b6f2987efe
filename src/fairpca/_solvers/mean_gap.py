"""The least overall error at a limited variance between the groups' mean scores, exactly.

Let C hold the second moments of all rows, ``tr U'BU`` be the variance between the mean scores, and
``s = tr C / tr B``. ``U(x)`` is the top-r eigenspace of ``x C - (1 - x) s B``. As x falls from 1
(PCA) to 0, ``tr U'BU`` never rises and R never falls, by the exchange argument of
:mod:`fairpca._solvers.two_groups.frontier`. The answer is the root of ``tr U'BU = max_mean_gap``,
whatever the number of groups: they share one multiplier. The factor s makes both matrices equally
large, so that a small B is not lost in the rounding of C.

Certificate. ``phi(x) = min_U x R + (1 - x) s tr U'BU`` is known from the eigenvalues, so any
projection V within the budget has ``R(V) >= (phi - (1 - x) s max_mean_gap) / x``. At x = 0 the
least R among the projections that hide most is a sum of eigenvalues as well.
"""

import numpy as np

from fairpca._moments.tolerances import TINY, varying_groups
from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.two_groups.root import Line
from fairpca._typing import Array


def solve_mean_gap(spaces: Eigenspaces, max_mean_gap: float) -> Solution:
    """Walk from PCA until the gap is within its budget, by root finding."""
    total = float(spaces.traces[1])  # tr B
    scale = float(spaces.traces[0]) / max(total, TINY)
    aim = max(max_mean_gap - 4 * spaces.rounding / scale, 0.0)  # leaves room for rounding

    def at(x: float) -> Point:
        if x == 1.0:
            return spaces.pca
        weights = np.array([x, (x - 1.0) * scale])  # weights of R and of tr B - tr U'BU
        return spaces.top(weights, None if x else spaces.shares)

    def slack(_: float, errors: Array) -> float:
        return scale * (aim - (total - float(errors[1])))

    def solution(found: Point, x: float, status: Status, bound: float, *ends: Point) -> Solution:
        alpha = x / (x + (1 - x) * scale)  # the matrix is a multiple of alpha C - (1 - alpha) B
        error = float(found.errors[0])
        return spaces.solution(found, status, "error", error, bound, rests_on=ends, alpha=alpha)

    line = Line(spaces, at, slack, np.array([1.0, scale]))
    pca = line.sample(1.0)
    if pca.value >= 0 or not varying_groups(spaces.traces)[1]:  # or B is only rounding
        return solution(pca.point, 1.0, Status.ALREADY_FAIR, pca.point.bound)
    hidden = line.sample(0.0)
    if hidden.value < -spaces.rounding:
        if hidden.value + scale * (max_mean_gap - aim) < -spaces.rounding:
            return solution(hidden.point, 0.0, Status.INFEASIBLE, np.nan)
        return solution(hidden.point, 0.0, Status.MEAN_GAP_BUDGET, hidden.point.tied_bound)
    crossing = line.cross(below=pca, above=hidden)
    x = crossing.at.x
    bound = hidden.point.tied_bound
    if x:
        phi = crossing.at.point.bound + (1 - x) * scale * total
        bound = (phi - (1 - x) * scale * max_mean_gap) / x
    return solution(crossing.found, x, Status.MEAN_GAP_BUDGET, bound, crossing.at.point)
