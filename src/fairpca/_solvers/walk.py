"""The way from PCA towards parity, to be stopped anywhere: 0 is PCA, 1 is its end.

Two groups: alpha falls from 1, evenly, to where the harmed group is at its best
(``constraint="pareto"``) or to 0. The groups that are harmed and privileged are those of all rows,
also in the folds of a cross-validation, whatever PCA does there.

More groups: the largest error falls evenly, from PCA's to the least possible one, or the spread
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairpca._moments.folds import FoldStack
from fairpca._moments.operand import Operand
from fairpca._problems.fair import PLAIN_PCA, Constraint, FairProblem
from fairpca._problems.solution import Solution
from fairpca._solvers import solve_fractions
from fairpca._solvers.eigenspaces.choose import spaces_of
from fairpca._solvers.eigenspaces.decompose import eigen
from fairpca._typing import Array, Mask

_FEW_FEATURES = 200
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

    def bases(self, folds: FoldStack, rank: int, stops: Sequence[float]) -> tuple[Array, int]:
        """The projections at these stops for the rows fitted to in each fold.

        They have the shape (n_folds, n_stops, d, rank), and come with the number of
        eigendecompositions that they took.
        """
        if len(self.shares) == 2 and folds.matrices.shape[-1] <= _FEW_FEATURES:
            return self._decomposed(folds, rank, stops)
        found = [self._one_by_one(operand, rank, stops) for operand in folds.operands()]
        bases = np.array([[basis for basis, _ in fold] for fold in found])
        return bases, sum(n for fold in found for _, n in fold)

    def _decomposed(self, folds: FoldStack, rank: int, stops: Sequence[float]) -> tuple[Array, int]:
        """Two groups and few features: all at once."""
        f, k, d, _ = folds.matrices.shape
        alphas = np.array([self._alpha(stop) for stop in stops])[:, None]
        weights = alphas * folds.shares[:, None] + (1 - alphas) * self._towards_parity
        M = (weights @ folds.matrices.reshape(f, k, d * d)).reshape(f, len(stops), d, d)
        return np.ascontiguousarray(eigen(M)[1][..., d - rank :]), f * len(stops)

    def _one_by_one(
        self, operand: Operand, rank: int, stops: Sequence[float]
    ) -> list[tuple[Array, int]]:
        if len(self.shares) > 2:
            way = FairProblem(constraint=self._constraint)
            solved = solve_fractions(way, operand, rank, stops, max(self.tol, _ROUGHLY))
            return [(found.basis, found.n_eigensolves) for found in solved]
        spaces = spaces_of(operand, rank)
        alphas = map(self._alpha, stops)
        line = [a * operand.shares + (1 - a) * self._towards_parity for a in alphas]
        return [(spaces.top(weights).basis, 1) for weights in line]

    @property
    def _towards_parity(self) -> Array:
        towards_parity = np.zeros(2)
        towards_parity[[self.pca.privileged, self.pca.harmed]] = -1.0, 1.0
        return towards_parity

    @property
    def _constraint(self) -> Constraint:
        """Where the way ends; limits on the errors of other rows do not end it."""
        return "pareto" if self.problem.constraint == "pareto" else None

    def _alpha(self, stop: float) -> float:
        p_A = float(self.shares[self.pca.privileged])
        end = 1.0 / (1.0 + p_A) if self._constraint == "pareto" else 0.0
        return 1.0 - stop * (1.0 - end)
