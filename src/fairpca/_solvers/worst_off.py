"""Make the worst-off group as well off as possible: for two groups, and for many.

========  ==================================================================
symbol    meaning
========  ==================================================================
R_g(U)    error of group g
b_g       what group g is measured against, by the criterion
w         weights of the groups, not negative, of sum one; ``(t, 1 - t)`` for two
phi(w)    ``min_U sum_g w_g (R_g - b_g)``: one top-r eigenproblem
========  ==================================================================

``phi`` is concave, and ``phi(w) <= min_U max_g (R_g - b_g)`` for all weights: every eigenproblem
gives a bound. For two groups the slope of ``phi`` in t is the difference of their ``R_g - b_g`` at
``U(t)``. The largest phi is at a root of this difference, or at an end, where one group is worse
off even under its own best projection. There phi equals the value, so the gap is rounding.
"""

from dataclasses import replace
from math import nan

import numpy as np

from fairpca._moments.tolerances import varying_groups
from fairpca._problems.linear import least_maximum
from fairpca._problems.problems import Criterion
from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Eigenspaces, Spaces
from fairpca._solvers.many_groups.dual import minimise
from fairpca._solvers.many_groups.workspace import Workspace
from fairpca._solvers.two_groups.root import Line
from fairpca._typing import Array


class Balance:
    """The groups, compared by a criterion.

    ``own`` are the groups' own best projections, ``least`` their errors, ``offsets`` the ``b_g``.
    A group that does not vary keeps no variance under any projection, so it is not compared where
    the least variance decides.
    """

    def __init__(
        self, spaces: Spaces, criterion: Criterion, own: tuple[Point, ...] | None = None
    ) -> None:
        self.spaces = spaces
        k = len(spaces.shares)
        self.own = own or tuple(spaces.top(unit) for unit in np.eye(k))
        self.least = np.array([point.errors[g] for g, point in enumerate(self.own)])
        offsets = {"loss": self.least, "error": np.zeros(k), "variance": spaces.traces}
        self.offsets = offsets[criterion]
        self.compared = spaces.compared
        varying = spaces.compared & varying_groups(spaces.traces)
        if criterion == "variance" and varying.any():
            self.compared = varying

    def worst(self, errors: Array) -> float:
        """The largest ``R_g - b_g`` of a group that is compared."""
        return float((errors - self.offsets)[self.compared].max())

    def phi(self, point: Point) -> float:
        """``phi`` at the weights of a point."""
        return point.bound - float(point.weights @ self.offsets)

    def solution(
        self, found: Point, status: Status, weights: Array, bound: float, *rests_on: Point
    ) -> Solution:
        """Package a projection with the bound that the weights prove."""
        losses = np.maximum(found.errors - self.least, 0.0)
        value = self.worst(found.errors)
        extras = {"group_losses_": losses, "group_weights_": weights}
        found = replace(found, weights=weights)
        rests_on = (*self.own, *rests_on)
        return self.spaces.solution(
            found, status, "worst", value, bound, rests_on=rests_on, extras=extras
        )


def solve_minmax(spaces: Eigenspaces, criterion: Criterion) -> Solution:
    """Find the largest phi for two groups by root finding."""
    # At the ends of t, the other group breaks ties.
    own = tuple(spaces.top(unit, 1.0 - unit) for unit in np.eye(2))
    balance = Balance(spaces, criterion, own)
    if balance.compared.sum() == 1:
        only = own[int(balance.compared.argmax())]
        return balance.solution(only, Status.GROUPS_EQUAL, only.weights, balance.phi(only))

    def difference(_: float, errors: Array) -> float:
        """Group 0 minus group 1; it falls as t rises."""
        first, second = errors - balance.offsets
        return float(first - second)

    line = Line(spaces, spaces.top_of_two, difference, np.array([1.0, -1.0]))
    below = line.sample(1.0, own[0])
    above = line.sample(0.0, own[1])
    for point, excess in ((own[0], below.value), (own[1], -above.value)):
        if excess >= -spaces.rounding:
            status = Status.GROUPS_EQUAL
            if excess > spaces.rounding:
                status = Status.ONE_GROUP_DECIDES
            return balance.solution(point, status, point.weights, balance.phi(point))
    crossing = line.cross(below, above)
    best = crossing.at.point
    return balance.solution(
        crossing.found, Status.GROUPS_EQUAL, best.weights, balance.phi(best), best
    )


def solve_worst(spaces: Spaces, criterion: Criterion, tol: float = 1e-9) -> Solution:
    """Minimise the largest loss or error of the groups compared, or maximise the least variance."""
    balance = Balance(spaces, criterion)
    pca = spaces.pca
    work = Workspace(spaces)
    compared = balance.compared
    if spaces.rank == spaces.n_features or not varying_groups(spaces.traces).any():
        found = pca
        bound = balance.worst(pca.errors)
        tolerance = 0.0  # nothing is ever lost
    else:
        best = minimise(work, least_maximum(balance.offsets, compared), tol)
        found = Point(best.weights, best.basis, best.errors, nan)
        bound = best.bound
        tolerance = tol * abs(best.value)
    least = balance.worst(found.errors) - max(work.parity, tolerance)
    worst = compared & (found.errors - balance.offsets >= least)
    weights = found.weights
    if found is pca:
        weights = worst / np.count_nonzero(worst)
    status = Status.WORST_EQUAL
    if (worst == compared).all():
        status = Status.GROUPS_EQUAL
    elif worst.sum() == 1:
        status = Status.ONE_GROUP_DECIDES
    return balance.solution(found, status, weights, bound)
