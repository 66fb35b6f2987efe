"""The way from PCA towards parity, to be stopped anywhere: 0 is PCA, 1 is its end.

With two groups alpha falls evenly from 1 to where the harmed group is at its best
(``constraint="pareto"``) or to 0. All rows decide which group is harmed, also for the folds of a
cross-validation. With more groups the largest error or the spread falls evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairpca._blas import single_threaded_blas
from fairpca._moments.operand import Operand
from fairpca._problems.problems import PLAIN_PCA, FairProblem
from fairpca._problems.solution import Solution
from fairpca._solvers import spaces_of
from fairpca._solvers.many_groups.pareto import EfficientFrontier
from fairpca._solvers.many_groups.spread import SpreadFrontier
from fairpca._typing import Array


@dataclass(frozen=True)
class Walk:
    """The way that a problem prescribes from the PCA of all rows.

    Budgets of the problem do not apply: stops take their place. A limit for each group makes the
    way of the spread end sooner.
    """

    problem: FairProblem
    pca: Solution
    operand: Operand  # of all rows
    tol: float

    def at(self, stop: float) -> FairProblem:
        """The problem whose solution is the projection at this stop."""
        if stop == 0:
            return PLAIN_PCA
        if len(self.operand.shares) > 2:
            efficient = self.problem.constraint == "pareto"
            return FairProblem(constraint="pareto" if efficient else None, fraction=stop)
        return FairProblem(alpha=self._alpha(stop))

    def bases(self, operand: Operand, rank: int, stops: Sequence[float]) -> tuple[list[Array], int]:
        """The projections at these stops for other rows, and how many eigensolves they took.

        For more than two groups each search starts where the one before it ended, so take the
        stops in order.
        """
        tol = max(self.tol, 1e-4)  # held-out errors are far less certain than this
        with single_threaded_blas():
            spaces = spaces_of(operand.compact, rank)
            if len(self.operand.shares) == 2:
                towards_parity = np.zeros(2)
                towards_parity[[self.pca.privileged, self.pca.harmed]] = -1.0, 1.0
                alphas = [self._alpha(stop) for stop in stops]
                line = [a * spaces.shares + (1 - a) * towards_parity for a in alphas]
                bases = [spaces.top(weights).basis for weights in line]
            elif self.problem.constraint == "pareto":
                efficient = EfficientFrontier(spaces, tol)
                bases = [efficient.part(stop).basis for stop in stops]
            else:
                way = FairProblem(max_group_increase=self.problem.max_group_increase)
                frontier = SpreadFrontier(spaces, way, tol)
                bases = [frontier.part(stop).basis for stop in stops]
        frame = operand.frame
        return (bases if frame is None else [frame @ U for U in bases]), spaces.n_eigensolves

    def _alpha(self, stop: float) -> float:
        p_A = float(self.operand.shares[self.pca.privileged])
        end = 1.0 / (1.0 + p_A) if self.problem.constraint == "pareto" else 0.0
        return 1.0 - stop * (1.0 - end)
