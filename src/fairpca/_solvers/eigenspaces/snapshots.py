"""A basis that grows by whole eigenspaces, each decomposed densely, and by corrections to them.

For several searches along one line of weights, among features so few that residuals would take many
rounds. The first eigenvectors of PCA tell about where an answer lies, and the eigenvectors F there
hold nearly all of it. What is missing follows from F too: ``F' M(w) F`` is nearly diagonal, so a
residual e of a vector with the eigenvalue l is made up for by ``F (F' e / (l - diagonal))``
(Davidson's correction), at the cost of a few products. What the basis holds then serves the next
search: a path of thirty points takes a dozen decompositions instead of sixty.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np

from fairpca._moments.operand import TINY
from fairpca._problems.solution import Point
from fairpca._solvers.eigenspaces.decompose import eigen, values_within
from fairpca._solvers.eigenspaces.dense import is_top
from fairpca._solvers.eigenspaces.growing import SPARE, GrowingBasis
from fairpca._typing import Array, Mask

_SLOW = 0.1  # of a residual, left over by corrections: decompose again
_NEW = 1e-9  # of a unit vector: what it adds to a basis
_SMALL = 1e-3  # of the norm of C: residuals of smaller matrices tell too little
_EPS = float(np.finfo(np.float64).eps)


class SnapshotBasis(GrowingBasis):
    """A growing basis for operands with matrices; what it finds is proven by Cholesky.

    For searches on a line of weights that starts from PCA and rests on it first of all: the first
    rows of the basis are the eigenvectors of PCA, so PCA is known in every round.
    """

    tolerance = 5e-8  # a residual leaves a gap of its square
    _diagonals: Array | None  # of F'C_g F, once they are asked for

    def _begin(self, start: Array) -> None:
        self._append(self._snapshot(self.shares, 2 * self.rank + SPARE))
        self._longest = 0.0  # a decomposition where the answer seems to be comes next
        self._has_place = False

    def _missing(self, points: Sequence[Point], residuals: Sequence[Array], least: float) -> Array:
        """Corrections of the points, or where these are slow the eigenspace of the worst."""
        lengths = [np.linalg.norm(e, axis=1) for e in residuals]
        longest = [float(length.max()) for length in lengths]
        worst = int(np.argmax(longest))
        slow, self._longest = longest[worst] > _SLOW * self._longest, longest[worst]
        if longest[worst] <= least:
            return np.zeros((0, self.n_features))
        if slow:
            self._longest = np.inf
            return self._snapshot(points[worst].weights, self.rank + SPARE)
        parts = zip(points, residuals, lengths, strict=True)
        return np.vstack([self._corrections(point, e, long > least) for point, e, long in parts])

    def _overlooked(self, points: Sequence[Point], least: float) -> Array:
        """The eigenspace of a point that is proven not to be the first one."""
        for point in points:
            if point.weights is self.shares:
                continue  # whose first eigenspace the basis started from
            if not self._is_top(point, self._matrix(point.weights)):
                return self._snapshot(point.weights, self.rank + SPARE)
        return np.zeros((0, self.n_features))

    def _make_room(self, block: Array, bases: list[Array]) -> Array:
        """What is new in the block; PCA's further eigenvectors go once they have told the place."""
        if len(block) and not self._has_place and self._frame_of is not self.shares:
            self._size, self._H = self.rank, self._H[:, : self.rank, : self.rank]
            self._has_place = True
        return super()._make_room(self._outside(block), bases)

    def _is_certain(self, points: Sequence[Point]) -> bool:
        """Whether no point is one of several equally good ones, or of a matrix next to nothing."""
        C = float(np.linalg.norm(self._matrix_inside(self.shares)))
        for point in points:
            M = self._matrix(point.weights)
            asked = not isnan(point.tied_bound)  # for the best of several
            if np.linalg.norm(M) < _SMALL * C or (asked and not self._is_top(point, M, True)):
                return False
        return True

    def _is_top(self, point: Point, M: Array, clearly: bool = False) -> bool:
        """Whether a point inside of the basis is the first eigenspace of M, that of its weights."""
        values = values_within(self._matrix_inside(point.weights), point.basis)
        return is_top(M, self._V[: self._size].T @ point.basis, values, clearly)

    def _known_pca(self) -> Point | None:
        """PCA, once its neighbours in the basis have told where to look first."""
        if not self._has_place:
            return None
        U = np.eye(self._size, self.rank)
        errors = self._errors(U)
        return Point(self.shares, U, errors, float(self.shares @ errors))

    def _snapshot(self, weights: Array, size: int) -> Array:
        """The first eigenvectors at these weights; all of them are the frame from now on."""
        self.n_eigensolves += 1
        self._frame_values, self._frame = eigen(self._matrix(weights))
        self._frame_of, self._diagonals = weights, None
        return self._frame.T[: -size - 1 : -1]

    def _corrections(self, point: Point, residuals: Array, wrong: Mask) -> Array:
        """What the vectors of a point that are wrong lack, to first order in their residuals."""
        U, F = point.basis[:, wrong], self._frame
        values = np.einsum("ij,ij->j", U, self._matrix_inside(point.weights) @ U)
        apart = values[:, np.newaxis] - self._diagonal(point.weights)
        least = max(_EPS * float(np.abs(values).max(initial=0.0)), TINY)
        apart[np.abs(apart) < least] = least
        return np.asarray((residuals[wrong] @ F / apart) @ F.T)

    def _diagonal(self, weights: Array) -> Array:
        """Of ``F' M(w) F``."""
        if self._diagonals is None:
            assert self.operand.matrices is not None
            F, known = self._frame, int(np.argmax(np.abs(self._frame_of)))
            diagonals = np.zeros((len(weights), len(F)))
            for g, C in enumerate(self.operand.matrices):
                if g != known:
                    diagonals[g] = np.einsum("ij,ij->j", F, C @ F)
            # At the weights of the frame they add up to its eigenvalues.
            others = self._frame_of @ diagonals
            diagonals[known] = (self._frame_values - others) / self._frame_of[known]
            self._diagonals = diagonals
        return np.asarray(weights @ self._diagonals)

    def _outside(self, block: Array) -> Array:
        """What of these vectors lies outside of the basis."""
        V = self._V[: self._size]
        new = block - (block @ V.T) @ V
        lengths = np.linalg.norm(block, axis=1)
        return np.asarray(new[np.linalg.norm(new, axis=1) > _NEW * lengths])

    def _matrix(self, weights: Array) -> Array:
        assert self.operand.matrices is not None
        return np.asarray(np.tensordot(weights, self.operand.matrices, axes=1))
