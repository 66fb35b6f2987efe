"""What the solvers of the worst-off group have in common, for any number of groups.

========  ==================================================================
symbol    meaning
========  ==================================================================
R_g(U)    error of group g
b_g       what group g is measured against, by the criterion
w         weights of the groups, not negative, of sum one; ``(t, 1 - t)`` for two
phi(w)    ``min_U sum_g w_g (R_g - b_g)``: one top-r eigenproblem
========  ==================================================================

``phi`` is concave, and ``phi(w) <= min_U max_g (R_g - b_g)`` for all weights: every eigenproblem
gives a bound.
"""

from __future__ import annotations

import numpy as np

from fairpca._problems.problems import Criterion
from fairpca._problems.solution import Point, Solution, best_and_worst
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.many_features import Spaces
from fairpca._typing import Array


class Balance:
    """The groups, compared by a criterion.

    ``own`` are the groups' own best projections, ``least`` their errors, ``offsets`` the ``b_g``.
    """

    def __init__(
        self,
        spaces: Spaces,
        criterion: Criterion,
        own: tuple[Point, ...] | None = None,
    ) -> None:
        self.spaces = spaces
        self.compared = spaces.compared
        self.pca = spaces.top(spaces.shares)
        k = len(spaces.shares)
        self.own = own or tuple(spaces.top(unit) for unit in np.eye(k))
        self.least = np.array([point.errors[g] for g, point in enumerate(self.own)])
        offsets = {"loss": self.least, "error": np.zeros(k), "variance": spaces.traces}
        self.offsets = offsets[criterion]

    def values(self, errors: Array) -> Array:
        """``R_g - b_g`` of each group, which is to be made small."""
        return np.asarray(errors - self.offsets)

    def worst(self, errors: Array) -> float:
        """The largest value of a group that is compared."""
        return float(self.values(errors)[self.compared].max())

    def phi(self, point: Point) -> float:
        """The bound that the projection for some weights gives."""
        return point.bound - float(point.weights @ self.offsets)

    def solution(
        self,
        basis: Array,
        errors: Array,
        status: Status,
        weights: Array,
        bound: float,
        *rests_on: Point,
    ) -> Solution:
        """Package a projection with the bound that the weights prove."""
        privileged, harmed = best_and_worst(self.pca.errors, self.spaces.traces, self.compared)
        return Solution(
            basis=basis,
            errors=errors,
            status=status,
            objective="worst",
            value=self.worst(errors),
            bound=bound,
            weights=weights,
            pca=self.pca,
            privileged=privileged,
            harmed=harmed,
            rests_on=(self.pca, *self.own, *rests_on),
            extras={
                "group_losses_": np.maximum(errors - self.least, 0.0),
                "group_weights_": weights,
            },
        )
