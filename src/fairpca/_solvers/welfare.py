"""What the solvers of welfare have in common, for any number of groups.

Only groups that are compared and that vary take part: what cannot vary keeps nothing under any
projection.
"""

from __future__ import annotations

import numpy as np

from fairpca._problems.solution import Point, Solution, best_and_worst
from fairpca._problems.status import Status
from fairpca._problems.welfare import WelfareProblem
from fairpca._solvers.eigenspaces.growing import Spaces
from fairpca._typing import Array


class Welfare:
    """The groups, and their welfare under a projection."""

    def __init__(self, spaces: Spaces, problem: WelfareProblem) -> None:
        self.spaces = spaces
        self.problem = problem
        self.pca = spaces.top(spaces.shares)
        self.members = np.flatnonzero(spaces.compared & (spaces.traces > 0))

    def kept(self, errors: Array) -> Array:
        """``V_g`` of the groups that take part."""
        return np.asarray(np.maximum((self.spaces.traces - errors)[self.members], 0.0))

    def weights(self, of_members: Array) -> Array:
        """Weights of all groups."""
        weights = np.zeros(len(self.spaces.traces))
        weights[self.members] = of_members
        return weights

    def best_average(self) -> Solution:
        """The largest mean variance, which one eigenproblem solves; nothing to share, too."""
        if not len(self.members):
            return self._solution(self.pca, self.pca, np.inf)
        point = self.spaces.top(self.weights(np.full(len(self.members), 1 / len(self.members))))
        return self._solution(point, point, np.inf)

    def certified(
        self, found: Point, *rests_on: Point, proof: Point | None = None, tol: float = np.inf
    ) -> Solution:
        """A projection with the bound at its own gradient, or that of ``proof`` if it is better.

        ``tol`` is the gap, relative to the largest trace, up to which it counts as the best.
        """
        own = self.spaces.top(self.weights(self.problem.gradient(self.kept(found.errors))))
        best = own if proof is None else min(own, proof, key=self.most)
        return self._solution(found, best, tol, *rests_on)

    def most(self, point: Point) -> float:
        """The largest welfare that the weights of a point leave possible."""
        return float(point.weights @ self.spaces.traces) - point.bound

    def _solution(self, found: Point, proof: Point, tol: float, *rests_on: Point) -> Solution:
        privileged, harmed = best_and_worst(self.pca.errors, self.spaces.compared)
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
