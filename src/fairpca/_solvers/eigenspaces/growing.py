"""Problems of many features, solved inside a small subspace that grows until it suffices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from fairpca._solvers.eigenspaces.operand import (
    DenseFamily,
    DenseOperand,
    Point,
    Products,
    rounding_of,
    top_eigenvectors,
)
from fairpca._typing import Array

_NEW = 1e-9  # of a unit vector: what a snapshot adds to a basis
_OUTSIDE = 0.01  # of a unit vector roughly orthogonal to a basis; with less it is noise
_TINY = float(np.finfo(np.float64).tiny)
_LAST_PART = 0.4  # of the limit, for which the residual must halve every round
_SPARE = 8  # columns to start from beyond the rank


def bordered(H: Array, V: Array, block: Array, products: Array) -> Array:
    """``V' C_g V`` for V with a block appended, given ``H = V' C_g V`` and ``C_g`` times it."""
    corner, below = V.T @ products, block.T @ products
    below = 0.5 * (below + below.transpose(0, 2, 1))
    return np.block([[H, corner], [corner.transpose(0, 2, 1), below]])


class HasDecisivePoints(Protocol):
    """A solution that says which eigenspaces it rests on and can be moved to a larger space."""

    @property
    def decisive(self) -> tuple[Point, ...]:
        """The eigenspaces that must be right for the solution to be right."""

    def lift(self, V: Array, slack: float) -> Any:
        """The same solution with every basis multiplied by V from the left.

        Outside of V there may be projections that are better by ``slack``.
        """


S = TypeVar("S", bound=HasDecisivePoints)


class GrowingBasis:
    """Solves a problem of many features inside a small subspace that grows until it suffices.

    Keep V (d x m, orthonormal) and ``C_g V``. Solve the whole problem for the small matrices
    ``V' C_g V``; where an eigenspace that the solution rests on leaves a residual
    ``M(w) U - U (U' M(w) U)``, append the residual to V, and repeat (block Davidson on the
    family). Errors of subspaces inside V are exact at every stage, so parity holds exactly however
    early one stops; the residual e only leaves an optimality gap of order ``e^2``. Each round costs
    k products ``C_g V`` of r or 2r columns. The basis may be used for several problems in turn.

    Vectors of d numbers are rows here, which is the fastest way to append and to combine them.

    ``solve`` gives up when it would multiply more than ``limit`` columns, or earlier when it comes
    no nearer: ``converged`` is False then. A basis of more than ``capacity`` columns is replaced by
    the eigenspaces found so far.
    """

    tolerance = 1e-8  # of the residual, relative to the least variance of a component

    def __init__(
        self,
        operand: Products,
        rank: int,
        limit: int,
        capacity: int | None = None,
        start: Array | None = None,
    ) -> None:
        self.operand = operand
        self.rank = rank
        self.limit = limit
        self.n_eigensolves = 0
        self.converged = False
        d, k = operand.n_features, len(operand.shares)
        most = limit + 2 * (rank + _SPARE)
        room = most if capacity is None else min(capacity, most)
        self._size = 0
        self._V = np.empty((room, d))  # unused rows cost no memory
        self._CV = np.empty((k, room, d))
        self._H = np.zeros((k, 0, 0))
        self._given_start = start is not None and start.shape[1] > 0
        self._begin(np.zeros((0, d)) if start is None else start.T)

    def _begin(self, start: Array) -> None:
        """Fill the basis: ``start`` and random vectors, and one round of products."""
        d = self.operand.n_features
        random = np.random.default_rng(0).standard_normal((min(d, self.rank + _SPARE), d))
        self._expand(np.vstack([start, random[len(start) :]]))
        self._expand(self._residual(self.operand.shares, np.eye(self._size)))

    def _missing(self, points: Sequence[Point], residuals: Sequence[Array], least: float) -> Array:
        """Vectors to append: residuals longer than ``least``."""
        vectors = np.vstack(residuals)
        return np.asarray(vectors[np.linalg.norm(vectors, axis=1) > least])

    def _overlooked(self, points: Sequence[Point], least: float) -> Array:
        """Vectors to append because better eigenvectors than a point's may lie outside the basis.

        Where the matrices leave the basis as it is, or nearly so, residuals are small whatever is
        missing. Random vectors have a part in every eigenvector, so a start from them alone is
        trusted; after another one the best vector that the point leaves out must have converged
        as well, or be clearly worse.
        """
        for point in points if self._given_start else ():
            H = np.tensordot(point.weights, self._H, axes=1)
            values, vectors = top_eigenvectors(H, min(self.rank + 1, len(H)))
            if len(values) > self.rank:
                residual = self._residual(point.weights, vectors[:, -1:])
                length = float(np.linalg.norm(residual))
                if length > max(least, values[-2] - values[-1]):
                    return residual
        return np.zeros((0, self.operand.n_features))

    def solve(self, problem: Callable[[DenseFamily], S]) -> S:
        """Solve ``problem`` for the family of all eigenspaces, as far as the limit allows."""
        shares, traces = self.operand.shares, self.operand.traces
        precision = 1e-3  # as rough as the basis at first, then as good as the arithmetic
        left, last = self.limit, np.inf
        guess: float | None = None
        while True:
            family = DenseFamily(self._H, shares, traces, self.rank, precision, guess)
            solution = problem(family)
            guess = getattr(solution, "alpha", None)
            self.n_eigensolves += family.n_eigensolves
            points = list({id(point): point for point in solution.decisive}.values())
            residuals = [self._residual(point.weights, point.basis) for point in points]
            C = np.tensordot(shares, self._H, axes=1)
            scale = max(float(np.linalg.norm(C)), _TINY)
            variance = min(_least_eigenvalue(C, point.basis) for point in points)
            rounding = rounding_of(self.operand.n_features) * scale
            least = max(self.tolerance * variance, rounding)
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
                return self._lift(solution, slack)
            if self._size + len(new) > len(self._V):
                self._restart([point.basis for point in points])
                new = new[: len(self._V) - self._size]
            before = precision
            if self._expand(new):
                precision = min(precision, 0.1 * longest / scale) if precision else 0.0
                precision = precision if precision > 1e-6 else 0.0
                last = longest if precision == before else np.inf
            elif precision:
                precision = 0.0
            elif not self._expand(self._overlooked(points, least)):
                self.converged = True
                return self._lift(solution, 0.0)

    def _lift(self, solution: S, slack: float) -> S:
        return solution.lift(self._V[: self._size].T, slack)  # type: ignore[no-any-return]

    def _residual(self, weights: Array, basis: Array) -> Array:
        """``M(w) U - V V' M(w) U`` for U = V basis, transposed."""
        within = basis.T @ np.tensordot(weights, self._H, axes=1)
        outside = -within @ self._V[: self._size]
        for w, C_V in zip(weights, self._CV[:, : self._size], strict=True):
            outside += (w * basis.T) @ C_V
        return outside

    def _expand(self, block: Array) -> bool:
        """Append what is new in ``block``, roughly orthogonal to V; False when nothing is."""
        m, V = self._size, self._V[: self._size]
        block = _orthonormalize(block)
        block -= (block @ V.T) @ V  # twice is enough
        block = _orthonormalize(block[np.linalg.norm(block, axis=1) > _OUTSIDE])
        if not len(block):
            return False
        end = m + len(block)
        products = self._CV[:, m:end].transpose(0, 2, 1)
        products[:] = self.operand.products(block.T)
        self._H = bordered(self._H, V.T, block.T, products)
        self._V[m:end] = block
        self._size = end
        return True

    def _restart(self, bases: list[Array]) -> None:
        """Keep the span of these subspaces of the basis only."""
        Q = np.linalg.qr(np.hstack(bases))[0].T
        self._V[: len(Q)] = Q @ self._V[: self._size]
        for C_V in self._CV:
            C_V[: len(Q)] = Q @ C_V[: self._size]
        self._H = Q @ self._H @ Q.T
        self._size = len(Q)


def _least_eigenvalue(C: Array, U: Array) -> float:
    """Of ``U' C U``: the least variance of a component."""
    return float(np.linalg.eigvalsh(U.T @ C @ U)[0])


class SnapshotBasis(GrowingBasis):
    """A basis that grows by whole eigenspaces, each decomposed densely.

    For features so few, or components so many, that residuals would take many rounds: the first
    eigenspaces of the point that is furthest from right hold all of its answer and nearly all of
    its neighbours', so three or four of them replace the ten of a search among all features.
    """

    operand: DenseOperand
    tolerance = 5e-8  # a further eigenspace squares the residual

    def _begin(self, start: Array) -> None:
        self._expand(self._snapshot(self.operand.shares))

    def _missing(self, points: Sequence[Point], residuals: Sequence[Array], least: float) -> Array:
        """The eigenspace of the worst point, as far as it lies outside of the basis."""
        lengths = [float(np.linalg.norm(e, axis=1).max()) for e in residuals]
        worst = int(np.argmax(lengths))
        if lengths[worst] <= least:
            return np.zeros((0, self.operand.n_features))
        return self._new_part(points[worst])

    def _overlooked(self, points: Sequence[Point], least: float) -> Array:
        """The eigenspace of a point that is proven not to be the first one."""
        shares = self.operand.shares
        for point in points:
            if np.array_equal(point.weights, shares):
                continue  # whose first eigenspace the basis started from
            if not self.operand.is_top(point.weights, self._V[: self._size].T @ point.basis):
                return self._new_part(point)
        return np.zeros((0, self.operand.n_features))

    def _new_part(self, point: Point) -> Array:
        """What of the point's eigenspace lies outside of the basis."""
        V, block = self._V[: self._size], self._snapshot(point.weights)
        block -= (block @ V.T) @ V
        return np.asarray(block[np.linalg.norm(block, axis=1) > _NEW])

    def _snapshot(self, weights: Array) -> Array:
        self.n_eigensolves += 1
        size = min(self.rank + _SPARE, self.operand.n_features)
        return top_eigenvectors(np.tensordot(weights, self.operand.C, axes=1), size)[1].T


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
