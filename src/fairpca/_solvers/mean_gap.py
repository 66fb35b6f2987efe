"""The least overall error at a limited variance between the groups' mean scores, exactly.

For ``M(alpha) = alpha C - (1 - alpha) B`` let ``U(alpha)`` be its top-r eigenspace. As alpha falls
from 1 (PCA) to 0, ``tr U'BU`` never rises and R never falls, by the exchange argument of
:mod:`fairpca._solvers.two_groups.frontier`. The answer is the root of ``tr U'BU = max_mean_gap``,
whatever the number of groups: they share one multiplier.

Certificate. ``phi(alpha) = min_U alpha R + (1 - alpha) tr U'BU`` is known from the eigenvalues, so
any projection V within the budget has ``R(V) >= (phi - (1 - alpha) max_mean_gap) / alpha``.
"""

from __future__ import annotations

import numpy as np

from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.two_groups.root import Line, Sample
from fairpca._typing import Array

_ERROR_ONLY = np.array([1.0, 0.0])


def solve_mean_gap(spaces: Eigenspaces, max_mean_gap: float) -> Solution:
    """Walk from PCA until the gap is within its budget, by root finding."""
    total = float(spaces.traces[1])  # tr B

    def at(alpha: float) -> Point:
        weights = np.array([alpha, alpha - 1.0])  # of R and of tr B - tr U'BU
        return spaces.top(weights, None if alpha else _ERROR_ONLY)

    def slack(_: float, errors: Array) -> float:
        return max_mean_gap - (total - float(errors[1]))

    line = Line(spaces, at, slack, np.ones(2))
    pca = line.sample(1.0)
    if pca.value >= 0:
        return _solution(pca.point, pca, Status.ALREADY_FAIR, pca.point.bound, pca.point)
    hidden = line.sample(0.0)
    if hidden.value < -spaces.rounding:
        return _solution(hidden.point, hidden, Status.INFEASIBLE, np.nan, pca.point)
    point, crossing = line.cross(below=pca, above=hidden)
    alpha, phi = crossing.at.x, crossing.at.point.bound + (1 - crossing.at.x) * total
    bound = (phi - (1 - alpha) * max_mean_gap) / alpha if alpha else np.nan
    ends = crossing.below.point, crossing.above.point
    return _solution(point, crossing.at, Status.MEAN_GAP_BUDGET, bound, pca.point, *ends)


def _solution(point: Point, at: Sample, status: Status, bound: float, *rests_on: Point) -> Solution:
    return Solution(
        basis=point.basis,
        errors=point.errors,
        status=status,
        objective="error",
        value=float(point.errors[0]),
        bound=bound,
        weights=at.point.weights,
        pca=rests_on[0],
        privileged=0,
        harmed=1,
        alpha=at.x,
        rests_on=rests_on,
    )
