"""The path from the PCA of all rows, at stop 0, to where FairPCA ends, at stop 1.

With two groups alpha falls evenly along the path. It ends at the solution of efficient fairness for
all rows; where ``"parity"`` or ``"no_worse"`` is asked of held-out rows, it goes on to alpha = 0,
because parity of the training rows is not parity of others. With more groups the largest error
(``constraint="efficient"``) or the spread falls evenly. Budgets do not apply: stops take their
place. A limit for each group makes the path of the spread end sooner.

Each fold has a path of its own, which its training rows decide: with two groups the projections for
the alphas of all rows, with more groups the fold's own frontier. Searches on that frontier start
from the weights of all rows at the same stop. That saves time and decides nothing, because they end
where the fold's own rows say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from fairpca._blas import single_threaded_blas
from fairpca._moments.operand import Operand
from fairpca._problems.problems import PLAIN_PCA, FairProblem
from fairpca._problems.solution import Solution
from fairpca._solvers import solve, spaces_of
from fairpca._solvers.eigenspaces.dense import Spaces
from fairpca._solvers.many_groups.dual import FrontierOfMany
from fairpca._solvers.many_groups.pareto import EfficientFrontier
from fairpca._solvers.many_groups.spread import SpreadFrontier
from fairpca._typing import Array

_LEAST_TOL = 1e-4  # gap at which a fold's search may end: held-out errors are far less certain


@dataclass(frozen=True)
class FoldPath:
    """The projections of a fold at the stops of its path."""

    operand: Operand  # the second moments of its training rows
    spaces: Spaces
    basis: Callable[[float], Array]  # at a stop, in the coordinates of the spaces

    @property
    def n_eigensolves(self) -> int:
        """The number of decompositions so far."""
        return self.spaces.n_eigensolves

    def bases(self, stops: Sequence[float]) -> list[Array]:
        """The projections at these stops."""
        with single_threaded_blas():
            bases = [self.basis(stop) for stop in stops]
            if self.operand.frame is not None:
                bases = [self.operand.frame.lift(basis) for basis in bases]
        return bases


# -- two groups ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PathOfTwo:
    """Alpha falls evenly from 1 to ``end``. All rows decide which group is harmed."""

    pca: Solution
    operand: Operand
    last: FairProblem  # whose solution for all rows lies at stop 1
    end: float  # the alpha of this solution

    def alpha(self, stop: float) -> float:
        """The alpha at a stop."""
        return 1.0 - stop * (1.0 - self.end)

    def at(self, stop: float) -> FairProblem:
        """The problem whose solution for all rows lies at this stop."""
        if stop == 0:
            return PLAIN_PCA
        if stop == 1:
            return self.last
        return FairProblem(alpha=self.alpha(stop))

    def prepare(self, stops: Sequence[float]) -> int:
        """Find what the folds share at these stops: nothing, after no eigensolve."""
        return 0

    def of_fold(self, operand: Operand) -> FoldPath:
        """The projections of a fold for the alphas of all rows."""
        spaces = spaces_of(operand.compact, self.pca.basis.shape[1])

        def basis(stop: float) -> Array:
            alpha = self.alpha(stop)
            weights = alpha * spaces.shares
            weights[self.pca.harmed] += 1 - alpha
            weights[self.pca.privileged] -= 1 - alpha
            return spaces.leading(weights)

        return FoldPath(operand, spaces, basis)


# -- more groups -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PathOfMany:
    """The largest error or the spread falls evenly from PCA to the end of the frontier."""

    problem: FairProblem
    pca: Solution
    operand: Operand
    tol: float

    @property
    def efficient(self) -> bool:
        """Whether the largest error falls evenly, and not the spread."""
        return self.problem.constraint == "efficient"

    def at(self, stop: float) -> FairProblem:
        """The problem whose solution for all rows lies at this stop."""
        if stop == 0:
            return PLAIN_PCA
        return FairProblem(constraint="efficient" if self.efficient else "parity", fraction=stop)

    @cached_property
    def frontier(self) -> FrontierOfMany:
        """The frontier of all rows."""
        return self._frontier_of(self.operand)

    def prepare(self, stops: Sequence[float]) -> int:
        """Find what the folds share at these stops; returns how many eigensolves it took."""
        before = self.frontier.work.spaces.n_eigensolves
        with single_threaded_blas():
            for stop in stops:
                if stop not in self.frontier.prices:
                    self.frontier.basis(stop)
        return self.frontier.work.spaces.n_eigensolves - before

    def of_fold(self, operand: Operand) -> FoldPath:
        """The projections on the frontier of a fold."""
        frontier = self._frontier_of(operand, self.frontier)
        return FoldPath(operand, frontier.work.spaces, frontier.basis)

    def _frontier_of(self, operand: Operand, like: FrontierOfMany | None = None) -> FrontierOfMany:
        spaces = spaces_of(operand.compact, self.pca.basis.shape[1])
        with single_threaded_blas():
            if self.efficient:
                return EfficientFrontier(spaces, self.tol, like)
            limits = FairProblem(max_group_increase=self.problem.max_group_increase)
            return SpreadFrontier(spaces, limits, self.tol, like)


Path = PathOfTwo | PathOfMany


def path_of(problem: FairProblem, pca: Solution, operand: Operand, tol: float) -> Path:
    """The path that a problem prescribes."""
    if len(operand.shares) > 2:
        return PathOfMany(problem, pca, operand, max(tol, _LEAST_TOL))
    if problem.constraint != "efficient":
        return PathOfTwo(pca, operand, FairProblem(alpha=0.0), 0.0)
    last = FairProblem(constraint="efficient")
    rank = pca.basis.shape[1]
    return PathOfTwo(pca, operand, last, solve(last, operand, rank, tol, pca).alpha)
