"""What the solvers of welfare have in common, for any number of groups.

Only groups that are compared and that vary take part: a group that does not vary keeps no variance
under any projection.
"""

from __future__ import annotations

import numpy as np

from fairpca._moments.tolerances import varying_groups
from fairpca._problems.problems import WelfareProblem
from fairpca._problems.solution import Point, Solution, best_and_worst
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.many_features import Spaces
from fairpca._typing import Array


class Welfare:
    """The groups, and their welfare under a projection."""

    def __init__(self, spaces: Spaces, problem: WelfareProblem) -> None:
        self.spaces = spaces
        self.problem = problem
        self.pca = spaces.top(spaces.shares)
        self.members = np.flatnonzero(spaces.compared & varying_groups(spaces.traces))

    def kept(self, errors: Array) -> Array:
        """``V_g`` of the groups that take part."""
        return np.asarray(np.maximum((self.spaces.traces - errors)[self.members], 0.0))

    def weights(self, of_members: Array) -> Array:
        """Weights of all groups."""
        weights = np.zeros(len(self.spaces.traces))
        weights[self.members] = of_members
        return weights

    def best_average(self) -> Solution:
        """The largest mean variance, which one eigenproblem solves; PCA where no group varies."""
        if not len(self.members):
            return self._solution(self.pca, self.pca, np.inf)
        point = self.spaces.top(self.weights(np.full(len(self.members), 1 / len(self.members))))
        return self._solution(point, point, np.inf)

    def certified(
        self, found: Point, *rests_on: Point, proof: Point | None = None, tol: float = np.inf
    ) -> Solution:
        """A projection, with the bound at its own gradient or that of ``proof``, the better one.

        The projection counts as the best up to a gap of ``tol`` times the largest trace.
        """
        own = self.spaces.top(self.weights(self.problem.gradient(self.kept(found.errors))))
        best = own if proof is None else min(own, proof, key=self.most)
        return self._solution(found, best, tol, *rests_on)

    def most(self, point: Point) -> float:
        """The largest welfare that the weights of a point leave possible."""
        return float(point.weights @ self.spaces.traces) - point.bound

    def _solution(self, found: Point, proof: Point, tol: float, *rests_on: Point) -> Solution:
        privileged, harmed = best_and_worst(
            self.pca.errors, self.spaces.traces, self.spaces.compared
        )
        kept = self.kept(found.errors)
        value, most = self.problem.measure(kept) if len(kept) else 0.0, self.most(proof)
        proven = most - value <= tol * float(self.spaces.traces.max())
        return Solution(
            basis=found.basis,
            errors=found.errors,
            status=Status.WELFARE_BEST if proven else Status.WELFARE_UNPROVEN,
            objective="welfare",
            value=-value,
            bound=-most,
            weights=proof.weights,
            pca=self.pca,
            privileged=privileged,
            harmed=harmed,
            rests_on=(self.pca, proof, *rests_on),
        )
