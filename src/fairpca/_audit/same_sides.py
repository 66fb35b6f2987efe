"""Fair PCA at a weight that was found before, for the group that it was found for."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from fairpca._estimators.base import FairProjection
from fairpca._moments.operand import Operand, RowSpaceOperand
from fairpca._moments.small_groups import SettledGroups
from fairpca._problems.fair import PLAIN_PCA
from fairpca._problems.solution import Solution
from fairpca._solvers import Problem, solve


class SameSides(FairProjection):
    """``FairPCA(alpha=...)`` for a given group, whichever PCA harms in fewer rows.

    Where PCA hardly tells two groups apart, some halves of the rows have the one and some the other
    as the harmed one, and a weight for one is none for the other.

    Parameters
    ----------
    n_components : int
    alpha : float
    harmed : label
    normalize, whiten : bool
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FairProjection._parameter_constraints,
        "alpha": [object],
        "harmed": [object],
    }

    def __init__(
        self,
        n_components: int,
        alpha: float,
        harmed: Any,
        normalize: bool = False,
        whiten: bool = False,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.harmed = harmed
        self.normalize = normalize
        self.whiten = whiten

    def _problem(self) -> Problem:
        return PLAIN_PCA  # what warnings compare with

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        side = np.where(settled.moments.groups == self.harmed, 1.0, -1.0)
        weights = self.alpha * operand.shares + (1 - self.alpha) * side
        # PCA of groups that weigh this much has the first eigenvectors of M(alpha).
        found = solve(PLAIN_PCA, _with_shares(operand, weights), rank)
        return found.beside(solve(PLAIN_PCA, operand, rank), operand.errors(found.basis))


def _with_shares(operand: Operand, shares: Any) -> Operand:
    assert operand.compact.matrices is not None
    weighted = Operand(operand.compact.matrices, shares, operand.compared)
    return weighted if operand.frame is None else RowSpaceOperand(weighted, operand.frame)
