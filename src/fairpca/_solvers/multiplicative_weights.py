"""The iteration of Samadi et al. (2018) for the worst-off group, as published: for comparison.

Start from equal weights. In each of T rounds take the best projection for the weights, then
multiply each weight by ``exp(eta * value of its group)`` and normalise. The published code compares
the average P of the T projection matrices with the last one and keeps that of the smaller largest
value. An average of projections has no rank r, so the code goes on with ``I - sqrt(I - P)``, of
full rank. Here the top-r eigenspace of P stands for it, and that is also what is compared. The best
``phi`` of all rounds bounds what is left to gain.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from fairpca._problems.problems import WorstOffProblem
from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.balance import Balance
from fairpca._solvers.eigenspaces.decompose import top_eigenvectors
from fairpca._solvers.eigenspaces.dense import Eigenspaces


def solve_multiplicative_weights(spaces: Eigenspaces, problem: WorstOffProblem) -> Solution:
    """Run the published iteration for ``n_iter`` rounds."""
    balance = Balance(spaces, problem.criterion)
    # Logarithms, because a weight that underflowed would never come back.
    logarithms = np.where(spaces.compared, 0.0, -np.inf)
    average = np.zeros((spaces.n_features, spaces.n_features))
    rounds: list[Point] = []
    for _ in range(problem.n_iter):
        last = spaces.top(softmax(logarithms))
        rounds.append(last)
        average += last.basis @ last.basis.T / problem.n_iter
        logarithms += problem.eta * balance.values(last.errors)
    mean_basis = top_eigenvectors(average, spaces.rank)[1]
    candidates = [(mean_basis, spaces.errors(mean_basis)), (last.basis, last.errors)]
    basis, errors = min(candidates, key=lambda candidate: balance.worst(candidate[1]))
    best = max(rounds, key=balance.phi)
    return balance.solution(
        basis, errors, Status.ITERATED, best.weights, balance.phi(best), rounds[0], last, best
    )
