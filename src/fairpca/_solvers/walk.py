"""The way from PCA towards parity, to be stopped anywhere: 0 is PCA, 1 is its end.

Two groups: alpha falls from 1, evenly, to where the harmed group is at its best
(``constraint="pareto"``) or to 0. Which group is harmed is decided by all rows, in the folds of a
cross-validation too, whatever PCA does there.

More groups: the largest error falls evenly, from PCA's to the least possible one, or the spread
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairpca._blas import single_threaded_blas
from fairpca._moments.operand import Operand
from fairpca._problems.problems import PLAIN_PCA, Constraint, FairProblem
from fairpca._problems.solution import Solution
from fairpca._solvers import spaces_of
from fairpca._solvers.many_groups.pareto import EfficientFrontier
from fairpca._solvers.many_groups.spread import SpreadFrontier
from fairpca._typing import Array, Mask

_ROUGHLY = 1e-4  # gap that is good enough where errors are those of a few rows left out


@dataclass(frozen=True)
class Walk:
    """The way that a problem prescribes from the PCA of all rows.

    Parameters
    ----------
    problem : FairProblem
        Its limits do not apply: stops take their place.
    pca : Solution
    shares : ndarray of shape (k,)
    compared : ndarray of bool, shape (k,)
    tol : float
        As in :func:`fairpca._solvers.solve`.
    """

    problem: FairProblem
    pca: Solution
    shares: Array
    compared: Mask
    tol: float

    def at(self, stop: float) -> FairProblem:
        """The problem whose solution is the projection at this stop."""
        if stop == 0:
            return PLAIN_PCA
        if len(self.shares) > 2:
            return FairProblem(constraint=self._constraint, fraction=stop)
        return FairProblem(alpha=self._alpha(stop))

    def bases(self, operand: Operand, rank: int, stops: Sequence[float]) -> tuple[list[Array], int]:
        """The projections at these stops for other rows, and the eigendecompositions they took."""
        small, frame = operand.compact, operand.frame
        if len(self.shares) > 2:
            bases, n = self._of_many(small, rank, stops)
        else:
            towards_parity = np.zeros(2)
            towards_parity[[self.pca.privileged, self.pca.harmed]] = -1.0, 1.0
            spaces, alphas = spaces_of(small, rank), [self._alpha(stop) for stop in stops]
            line = [a * small.shares + (1 - a) * towards_parity for a in alphas]
            bases, n = [spaces.top(weights).basis for weights in line], len(line)
        return (bases if frame is None else [frame @ basis for basis in bases]), n

    def _of_many(
        self, operand: Operand, rank: int, stops: Sequence[float]
    ) -> tuple[list[Array], int]:
        """The same for more than two groups: each search starts where the one before it ended."""
        tol = max(self.tol, _ROUGHLY)
        with single_threaded_blas():
            spaces = spaces_of(operand, rank)
            if self.problem.constraint == "pareto":
                way: EfficientFrontier | SpreadFrontier = EfficientFrontier(spaces, tol)
            else:
                way = SpreadFrontier(spaces, FairProblem(), tol)
            return [way.part(stop).basis for stop in stops], spaces.n_eigensolves

    @property
    def _constraint(self) -> Constraint:
        """Where the way ends; limits on the errors of other rows do not end it."""
        return "pareto" if self.problem.constraint == "pareto" else None

    def _alpha(self, stop: float) -> float:
        p_A = float(self.shares[self.pca.privileged])
        end = 1.0 / (1.0 + p_A) if self._constraint == "pareto" else 0.0
        return 1.0 - stop * (1.0 - end)
