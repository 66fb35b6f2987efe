"""Eigenspaces of many features, found inside a small subspace that grows until it suffices.

Keep V (d x m, orthonormal) and ``C_g V``. Find eigenspaces of the small matrices ``V' C_g V``.
Where one leaves a residual ``M(w) U - U (U' M(w) U)``, append the residual to V and repeat (block
Davidson). Errors of subspaces inside V are exact at every stage, so parity holds exactly however
early one stops; a residual e only leaves an optimality gap of order ``e^2``. Each round costs k
products ``C_g V`` of r or 2r columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fairpca._moments.operand import TINY, Operand
from fairpca._problems.solution import Point, Solution
from fairpca._solvers.eigenspaces.decompose import top_eigenvectors, values_within
from fairpca._solvers.eigenspaces.dense import Eigenspaces, is_top, rounding_of
from fairpca._typing import Array

_OUTSIDE = 0.01  # of a unit vector roughly orthogonal to a basis; with less it is noise
_LAST_PART = 0.4  # of the limit, for which the residual must halve every round
SPARE = 8  # columns to start from beyond the rank


class GrowingBasis:
    """A basis that grows by residuals, and the eigenspaces inside it.

    It gives up when it would multiply more than ``limit`` columns for one answer, or earlier when
    it comes no nearer: ``converged`` is False then. A basis of more than ``capacity`` columns is
    replaced by the eigenspaces found so far.

    Vectors of d numbers are rows here, which is the fastest way to append and to combine them.

    Parameters
    ----------
    operand : Operand
    rank : int
    limit : int
    capacity : int, optional
    start : ndarray of shape (d, m), optional
        Orthonormal columns thought to be near the answer.
    """

    tolerance = 1e-8  # of the residual, relative to the least variance of a component

    def __init__(
        self,
        operand: Operand,
        rank: int,
        limit: int,
        capacity: int | None = None,
        start: Array | None = None,
    ) -> None:
        self.operand = operand
        self.shares, self.traces = operand.shares, operand.traces
        self.compared = operand.compared
        self.rank = rank
        self.limit = limit
        self.n_features = operand.n_features
        self.n_eigensolves = 0
        self.converged = False
        most = limit + 2 * (rank + SPARE)
        room = most if capacity is None else min(capacity, most)
        self._size = 0
        self._V = np.empty((room, self.n_features))  # unused rows cost no memory
        self._CV = np.empty((len(self.shares), room, self.n_features))
        self._H = np.zeros((len(self.shares), 0, 0))
        self._random_start = start is None
        self._begin(np.zeros((0, self.n_features)) if start is None else start.T)

    def solve(
        self, search: Callable[[Eigenspaces], Solution], guess: float | None = None
    ) -> Solution:
        """What ``search`` finds among all eigenspaces, as far as the limit allows.

        The guess is that of :class:`Eigenspaces`, known where the basis has served before.
        """
        found = self._search(search, guess)
        self._random_start = False
        return found

    def _search(self, search: Callable[[Eigenspaces], Solution], guess: float | None) -> Solution:
        # As rough as the basis at first, then as good as the arithmetic.
        precision = 1e-3 if guess is None else 0.0
        left, last = self.limit, np.inf
        while True:
            inside, size = self.operand.inside(self._H), self._size
            small = Eigenspaces(inside, self.rank, precision, guess, self._known_pca())
            solution = search(small)
            guess = solution.alpha
            self.n_eigensolves += small.n_eigensolves
            points = list({id(point): point for point in solution.rests_on}.values())
            residuals = [self._residual(point.weights, point.basis) for point in points]
            C = self._matrix_inside(self.shares)
            scale = max(float(np.linalg.norm(C)), TINY)
            variance = min(float(values_within(C, point.basis)[0]) for point in points)
            # Where groups are much alike, M(w) may be far smaller than C.
            sizes = [float(np.linalg.norm(self._matrix_inside(p.weights))) for p in points]
            least = max(
                self.tolerance * min(variance, *sizes), rounding_of(self.n_features) * scale
            )
            longest = max(float(np.linalg.norm(e, axis=1).max()) for e in residuals)
            new = self._missing(points, residuals, least)
            left -= len(new)
            if left < _LAST_PART * self.limit and longest > max(0.5 * last, least):
                left = -1  # no hope to get there in time
            if left < 0 and precision:
                precision = 0.0
                continue
            if left < 0:
                # Each eigenvalue is known to within its residual, and their sums so far.
                slack = max(float(np.linalg.norm(e, axis=1).sum()) for e in residuals)
                self.converged = False
                return solution.lift(self._V[:size].T, slack)
            bases = [point.basis for point in points]
            new = self._make_room(new, bases)
            before = precision
            if self._expand(new):
                precision = min(precision, 0.1 * longest / scale) if precision else 0.0
                precision = precision if precision > 1e-6 else 0.0
                last = longest if precision == before else np.inf
            elif precision:
                precision = 0.0
            elif not self._expand(self._make_room(self._overlooked(points, least), bases)):
                self.converged = self._is_certain(points)
                return solution.lift(self._V[:size].T, 0.0)

    def top(self, weights: Array, *, proven: bool = True) -> Point:
        """``U(w)``, found from what the basis holds already.

        With matrices it is ``proven`` to be the first eigenspace, or found densely. Where there are
        none and the search ends early, the bound is as much lower as it can be wrong.
        """
        self.n_eigensolves += 1
        left = self.limit
        while True:
            H = np.tensordot(weights, self._H, axes=1)
            values, U = top_eigenvectors(H, self.rank)
            residual = self._residual(weights, U)
            lengths = np.linalg.norm(residual, axis=1)
            scale = max(float(np.linalg.norm(H)), TINY)
            least = max(self.tolerance * values[-1], rounding_of(self.n_features) * scale)
            new = residual[lengths > least]
            left -= len(new)
            self.converged = left >= 0
            point = Point(weights, U, self._errors(U), float(weights @ self.traces - values.sum()))
            if not self.converged:
                break
            if not self._expand(self._make_room(new, [U])) and not self._expand(
                self._overlooked([point], least)
            ):
                break
        self._random_start = False
        found = Point(
            weights,
            self._V[: self._size].T @ U,
            point.errors,
            point.bound - (0.0 if self.converged else float(lengths.sum())),
        )
        return self._proven(found) if proven and self.operand.matrices is not None else found

    def errors(self, basis: Array) -> Array:
        """``R_g(U)`` of every group."""
        return self.operand.errors(basis)

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group, of shape (k, d, m)."""
        return self.operand.products(V)

    def _begin(self, start: Array) -> None:
        """Fill the basis: ``start`` and random vectors, and one round of products."""
        d = self.n_features
        random = np.random.default_rng(0).standard_normal((min(d, self.rank + SPARE), d))
        self._expand(np.vstack([start, random[len(start) :]]))
        self._expand(self._residual(self.shares, np.eye(self._size)))

    def _known_pca(self) -> Point | None:
        """PCA inside the basis, where it need not be looked for."""
        return None

    def _missing(self, points: Sequence[Point], residuals: Sequence[Array], least: float) -> Array:
        """Vectors to append: residuals longer than ``least``."""
        vectors = np.vstack(residuals)
        return np.asarray(vectors[np.linalg.norm(vectors, axis=1) > least])

    def _overlooked(self, points: Sequence[Point], least: float) -> Array:
        """Vectors to append because better eigenvectors than a point's may lie outside the basis.

        Where the matrices leave the basis as it is, or nearly so, residuals are small whatever is
        missing. Random vectors have a part in every eigenvector, so a start from them alone is
        trusted. After another one the best vector that the point leaves out must have converged
        as well, or be clearly worse.
        """
        for point in () if self._random_start else points:
            H = np.tensordot(point.weights, self._H, axes=1)
            values, vectors = top_eigenvectors(H, min(self.rank + 1, len(H)))
            if len(values) > self.rank:
                residual = self._residual(point.weights, vectors[:, -1:])
                length = float(np.linalg.norm(residual))
                if length > max(least, values[-2] - values[-1]):
                    return residual
        return np.zeros((0, self.n_features))

    def _is_certain(self, points: Sequence[Point]) -> bool:
        """Whether the points are right beyond what their residuals tell."""
        return True

    def _proven(self, point: Point) -> Point:
        """The point if Cholesky proves it, else the one that a decomposition gives."""
        assert self.operand.matrices is not None
        M = np.tensordot(point.weights, self.operand.matrices, axes=1)
        if self.converged and is_top(M, point.basis, values_within(M, point.basis)):
            return point
        return Eigenspaces(self.operand, self.rank).top(point.weights)

    def _errors(self, U: Array) -> Array:
        """``R_g`` of a subspace of the basis."""
        return np.asarray(self.traces - np.einsum("kij,ij->k", self._H @ U, U))

    def _residual(self, weights: Array, basis: Array) -> Array:
        """``M(w) U - V V' M(w) U`` for U = V basis, transposed."""
        within = basis.T @ self._matrix_inside(weights)
        outside = -within @ self._V[: self._size]
        for w, C_V in zip(weights, self._CV[:, : self._size], strict=True):
            outside += (w * basis.T) @ C_V
        return outside

    def _matrix_inside(self, weights: Array) -> Array:
        """``V' M(w) V``."""
        return np.asarray(np.tensordot(weights, self._H, axes=1))

    def _make_room(self, block: Array, bases: list[Array]) -> Array:
        """As much of the block as fits; a full basis is first cut down to these subspaces."""
        if self._size + len(block) > len(self._V):
            self._random_start = False
            Q = np.linalg.qr(np.hstack(bases))[0].T
            self._V[: len(Q)] = Q @ self._V[: self._size]
            for C_V in self._CV:
                C_V[: len(Q)] = Q @ C_V[: self._size]
            self._H = Q @ self._H @ Q.T
            self._size = len(Q)
        return block[: len(self._V) - self._size]

    def _expand(self, block: Array) -> bool:
        """Append what is new in ``block``, roughly orthogonal to V; False when nothing is."""
        V = self._V[: self._size]
        block = _orthonormalize(block)
        block -= (block @ V.T) @ V  # twice is enough
        block = _orthonormalize(block[np.linalg.norm(block, axis=1) > _OUTSIDE])
        if not len(block):
            return False
        self._append(block)
        return True

    def _append(self, block: Array) -> None:
        """Append orthonormal rows that are orthogonal to V."""
        m, end = self._size, self._size + len(block)
        products = self._CV[:, m:end].transpose(0, 2, 1)
        products[:] = self.operand.products(block.T)
        self._H = bordered(self._H, self._V[:m].T, block.T, products)
        self._V[m:end] = block
        self._size = end


class ThinSpaces:
    """All ``U(w)`` of many features, from matrices: each in a growing basis of its own.

    The basis starts from the eigenspace found last and multiplies by ``M(w)`` only, so that the
    cost does not rise with the number of groups.
    """

    def __init__(self, operand: Operand, rank: int) -> None:
        self.operand = operand
        self.shares, self.traces = operand.shares, operand.traces
        self.compared = operand.compared
        self.rank = rank
        self.n_features = operand.n_features
        self.n_eigensolves = 0
        self._last: Array | None = None

    def top(self, weights: Array) -> Point:
        """``U(w)``, proven to be the first eigenspace."""
        return self._top(weights, proven=True)

    def top_unproven(self, weights: Array) -> Point:
        """``U(w)``, in a fraction of the time that the proof takes."""
        return self._top(weights, proven=False)

    def _top(self, weights: Array, proven: bool) -> Point:
        self.n_eigensolves += 1
        assert self.operand.matrices is not None
        M = Operand(np.tensordot(weights, self.operand.matrices, axes=1)[None], np.ones(1))
        basis = GrowingBasis(M, self.rank, self.n_features // 2, start=self._last)
        found = basis.top(np.ones(1), proven=proven)
        self._last = found.basis
        return replace(found, weights=weights, errors=self.operand.errors(found.basis))

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group, of shape (k, d, m)."""
        return self.operand.products(V)


#: Whichever way eigenspaces are found.
Spaces = Eigenspaces | GrowingBasis | ThinSpaces


def bordered(H: Array, V: Array, block: Array, products: Array) -> Array:
    """``V' C_g V`` for V with a block appended, given ``H = V' C_g V`` and ``C_g`` times it."""
    corner, below = V.T @ products, block.T @ products
    below = 0.5 * (below + below.transpose(0, 2, 1))
    return np.block([[H, corner], [corner.transpose(0, 2, 1), below]])


def _orthonormalize(block: Array) -> Array:
    """An orthonormal basis of the rows, without those that others nearly span.

    By the eigenvectors of their Gram matrix, ten times as fast as a QR decomposition of thin
    matrices; orthonormal to rounding when applied to rows that nearly are so already.
    """
    lengths = np.linalg.norm(block, axis=1)
    block = block[lengths > 0] / lengths[lengths > 0, None]
    values, vectors = np.linalg.eigh(block @ block.T)
    new = values > 1e-12 * max(len(values), 1)
    return np.asarray((vectors[:, new] / np.sqrt(values[new])).T @ block)
