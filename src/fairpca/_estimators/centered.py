"""Estimators whose criterion may be measured about the groups' own means."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

from fairpca._estimators.base import FairProjection
from fairpca._moments.operand import TINY, Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._problems.fair import PLAIN_PCA
from fairpca._problems.solution import Solution
from fairpca._sklearn import StrOptions
from fairpca._solvers import solve
from fairpca._typing import Array, Center


class CenteredProjection(FairProjection):
    """Base of the estimators whose criterion is measured about either mean.

    ``center`` decides about the choice of the projection and what the problem itself measures.
    Errors are about the overall mean either way.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FairProjection._parameter_constraints,
        "center": [StrOptions({"overall", "group"})],
    }

    center: Center
    group_weights_: Array

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        if self.center == "overall":
            solution = self._solve_measured(operand, rank)
        else:
            pca = solve(PLAIN_PCA, operand, rank)
            about_own_means = settled.moments.operand("group", settled.compared)
            measured = about_own_means.relative() if self.normalize else about_own_means
            solution = self._solve_measured(measured, rank)
            solution = solution.beside(pca, operand.errors(solution.basis))
        alpha = alpha_of(operand.shares, solution.weights, solution.privileged)
        return replace(solution, alpha=alpha)

    def _solve_measured(self, measured: Operand, rank: int) -> Solution:
        """Solve with the moments about the mean asked for."""
        return solve(self._problem(), measured, rank, self.tol)


def alpha_of(shares: Array, weights: Array, privileged: int) -> float:
    """Where ``M(w)`` is a multiple of ``M(alpha) = alpha C + (1 - alpha)(C_B - C_A)``."""
    if len(shares) != 2:
        return math.nan
    in_all = max(float(weights.sum()), TINY)
    return float(1 / (1 + (shares - weights / in_all)[privileged]))
