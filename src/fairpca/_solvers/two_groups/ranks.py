"""Which ranks need not be tried when a share of every group's variance is to be kept.

One decomposition of ``M(alpha)`` holds the optimal projections of ALL ranks. As alpha falls, the
slack of a two-group problem only shrinks and ``R_A`` never falls, and down to ``alpha_B`` the error
``R_B`` never rises (see ``exact.py``). So the sign of the slack at any alpha says on which
 side of it the answer of a rank lies, and with that a bound on one group's error: when it is
more than the group may lose, the rank is out of the question.
"""

from __future__ import annotations

from bisect import insort

import numpy as np
from numpy.typing import NDArray

from fairpca._problems.fair import FairProblem
from fairpca._solvers.eigenspaces.operand import DenseFamily, DenseOperand, Point
from fairpca._solvers.two_groups.exact import Frontier, Limits
from fairpca._typing import Array

_LOOKS = 8  # decompositions a rank at most; a solve takes more


class RankSieve:
    """Tells ranks that cannot do apart from those worth a solve."""

    def __init__(self, operand: DenseOperand, problem: FairProblem, may_lose: Array) -> None:
        self._operand = operand
        self._problem = problem
        self._may_lose = may_lose
        self._alphas = [1.0]  # that all ranks were looked at, rising
        self._tables: dict[bytes, tuple[Array, Array]] = {}

    @property
    def n_eigensolves(self) -> int:
        """Number of decompositions, each for all ranks."""
        return len(self._tables)

    def excludes(self, rank: int, alpha: float) -> bool:
        """Whether some group is proven to lose too much; the answer is thought to be near alpha."""
        alpha = alpha or 0.5  # at 0 there are ties
        frontier = Frontier(_OneRank(self._operand, rank, self._tables))
        A, B = frontier.privileged, frontier.harmed
        limits = Limits(frontier, self._problem)

        def look(alpha: float) -> tuple[float, NDArray[np.bool_]]:
            errors = frontier.at(alpha).errors
            capped = self._problem.no_worse and alpha < frontier.alpha_B
            return limits.slack(errors, capped), errors > self._may_lose

        for _ in range(_LOOKS):
            if alpha not in self._alphas:
                insort(self._alphas, alpha)
            low, high = 0.0, 1.0  # the answer lies between
            for known in self._alphas:
                if look(known)[0] > 0:
                    high = known
                    break
                low = known
            if look(high)[1][A] or (low >= frontier.alpha_B and look(low)[1][B]):
                return True
            if low and not look(low)[1][A] and not look(high)[1][B]:
                return False
            alpha = 0.5 * (low + high)
        return False


class _OneRank(DenseFamily):
    """The projections of one rank without their bases, from decompositions for all ranks."""

    def __init__(
        self, operand: DenseOperand, rank: int, tables: dict[bytes, tuple[Array, Array]]
    ) -> None:
        super().__init__(operand.C, operand.shares, operand.traces, rank)
        self._tables = tables

    def top(self, weights: Array, tiebreak: Array | None = None) -> Point:
        """Errors and bound of ``U(w)``."""
        key = weights.tobytes()
        if key not in self._tables:
            values, vectors = np.linalg.eigh(self._matrix(weights))
            kept = np.einsum("kij,ij->kj", self.C @ vectors, vectors)
            self._tables[key] = values[::-1].cumsum(), kept[:, ::-1].cumsum(axis=1)
        values, kept = self._tables[key]
        bound = float(weights @ self.traces - values[self.rank - 1])
        return Point(weights, np.empty((0, 0)), self.traces - kept[:, self.rank - 1], bound)
