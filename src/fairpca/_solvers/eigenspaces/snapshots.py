"""A basis that grows by whole eigenspaces, each decomposed densely.

For features so few, or components so many, that residuals would take many rounds. The first
eigenspaces of the point that is furthest from right hold all of its answer and nearly all of its
neighbours', so two or three of them replace all those of a search among all features.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairpca._problems.solution import Point
from fairpca._solvers.eigenspaces.dense import is_top, top_eigenvectors
from fairpca._solvers.eigenspaces.growing import SPARE, GrowingBasis
from fairpca._typing import Array

_NEW = 1e-9  # of a unit vector: what a snapshot adds to a basis


class SnapshotBasis(GrowingBasis):
    """A growing basis for operands with matrices; what it finds is proven by Cholesky."""

    tolerance = 5e-8  # a further eigenspace squares the residual

    def _begin(self, start: Array) -> None:
        self._expand(self._snapshot(self.shares))

    def _missing(self, points: Sequence[Point], residuals: Sequence[Array], least: float) -> Array:
        """The eigenspace of the worst point, as far as it lies outside of the basis."""
        lengths = [float(np.linalg.norm(e, axis=1).max()) for e in residuals]
        worst = int(np.argmax(lengths))
        if lengths[worst] <= least:
            return np.zeros((0, self.n_features))
        return self._new_part(points[worst])

    def _overlooked(self, points: Sequence[Point], least: float) -> Array:
        """The eigenspace of a point that is proven not to be the first one."""
        for point in points:
            if np.array_equal(point.weights, self.shares):
                continue  # whose first eigenspace the basis started from
            M, basis = self._matrix(point.weights), self._V[: self._size].T @ point.basis
            if not is_top(M, basis):
                return self._new_part(point)
        return np.zeros((0, self.n_features))

    def _new_part(self, point: Point) -> Array:
        """What of the point's eigenspace lies outside of the basis."""
        V, block = self._V[: self._size], self._snapshot(point.weights)
        block -= (block @ V.T) @ V
        return np.asarray(block[np.linalg.norm(block, axis=1) > _NEW])

    def _snapshot(self, weights: Array) -> Array:
        self.n_eigensolves += 1
        size = min(self.rank + SPARE, self.n_features)
        return top_eigenvectors(self._matrix(weights), size)[1].T

    def _matrix(self, weights: Array) -> Array:
        assert self.operand.matrices is not None
        return np.asarray(np.tensordot(weights, self.operand.matrices, axes=1))
