"""The worst-off group made as well off as possible: what its solvers share, and an old iteration.

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

from math import nan

import numpy as np
from scipy.special import softmax

from fairpca._problems.problems import Criterion, WorstOffProblem
from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Eigenspaces, Spaces, top_eigenvectors
from fairpca._typing import Array


class Balance:
    """The groups, compared by a criterion.

    ``own`` are the groups' own best projections, ``least`` their errors, ``offsets`` the ``b_g``.
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

    def worst(self, errors: Array) -> float:
        """The largest ``R_g - b_g`` of a group that is compared."""
        return float((errors - self.offsets)[self.spaces.compared].max())

    def phi(self, point: Point) -> float:
        """The bound that the projection for some weights gives."""
        return point.bound - float(point.weights @ self.offsets)

    def solution(
        self, found: Point, status: Status, weights: Array, bound: float, *rests_on: Point
    ) -> Solution:
        """Package a projection with the bound that the weights prove."""
        losses = np.maximum(found.errors - self.least, 0.0)
        return self.spaces.solution(
            found,
            status,
            "worst",
            self.worst(found.errors),
            bound,
            weights=weights,
            rests_on=(*self.own, *rests_on),
            extras={"group_losses_": losses, "group_weights_": weights},
        )


def solve_multiplicative_weights(spaces: Eigenspaces, problem: WorstOffProblem) -> Solution:
    """Run the iteration of Samadi et al. (2018) as published: for comparison.

    Start from equal weights. In each of T rounds take the best projection for the weights, then
    multiply each weight by ``exp(eta * value of its group)`` and normalise. The published code
    compares the average P of the T projection matrices with the last one and keeps that of the
    smaller largest value. An average of projections has no rank r, so the code goes on with
    ``I - sqrt(I - P)``, of full rank. Here the top-r eigenspace of P stands for it, and that is
    also what is compared. The best ``phi`` of all rounds bounds what is left to gain.
    """
    balance = Balance(spaces, problem.criterion)
    # Logarithms, because a weight that underflowed would never come back.
    logarithms = np.where(spaces.compared, 0.0, -np.inf)
    average = np.zeros((spaces.n_features, spaces.n_features))
    rounds: list[Point] = []
    for _ in range(problem.n_iter):
        last = spaces.top(softmax(logarithms))
        rounds.append(last)
        average += last.basis @ last.basis.T / problem.n_iter
        logarithms += problem.eta * (last.errors - balance.offsets)
    basis = top_eigenvectors(average, spaces.rank)[1]
    mean = Point(last.weights, basis, spaces.errors(basis), nan)
    found = min(mean, last, key=lambda point: balance.worst(point.errors))
    best = max(rounds, key=balance.phi)
    status, bound = Status.ITERATED, balance.phi(best)
    return balance.solution(found, status, best.weights, bound, rounds[0], last, best)
