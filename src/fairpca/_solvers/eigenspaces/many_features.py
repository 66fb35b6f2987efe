"""Eigenspaces of many features, found inside a small subspace that grows until it suffices.

Keep V (d x m, orthonormal) and ``C_g V``. Find eigenspaces of the small matrices ``V' C_g V``.
Where one leaves a residual ``M(w) U - U (U' M(w) U)``, append the residual to V and repeat (block
Davidson). Errors of subspaces inside V are exact at every stage, so parity holds exactly however
early one stops; a residual e only leaves an optimality gap of order ``e^2``. Each round costs k
products ``C_g V`` of r or 2r columns.

Small residuals prove that eigenvectors were found, not that they are the leading ones. Where there
are matrices, Cholesky proves that at the end. Without matrices, the start is random: it has a part
in every eigenvector, so that missing one is unlikely but not excluded.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from fairpca._moments.operand import Operand
from fairpca._moments.tolerances import ROOT_EPS, TINY, arithmetic_noise
from fairpca._problems.solution import Point, Solution
from fairpca._solvers.eigenspaces.dense import (
    Eigenspaces,
    Spaces,
    is_top,
    top_eigenvectors,
    values_within,
)
from fairpca._typing import Array

_ROUGH_START = 1e-3  # precision of the first search, as rough as the first basis
_ROUGH_END = 1e-6  # finer searches are as exact as the arithmetic allows
_OUTSIDE = 0.01  # a unit vector with less than this outside the basis adds only noise
_LAST_PART = 0.4  # for this last share of the columns, each round must halve the residual
_SPARE = 8  # columns beyond the rank in the first basis


@dataclass(frozen=True)
class _Round:
    """The result of one search inside the basis."""

    solution: Solution
    points: Sequence[Point]  # the eigenspaces that it rests on
    residuals: Array  # one row per vector of a point
    lengths: Array  # lengths of the residuals, one row per point
    scale: float  # norm of C
    tolerance: float  # length below which residuals are good enough


class GrowingBasis(Spaces):
    """A basis that grows by residuals, and the eigenspaces inside it.

    It gives up when it would multiply more than ``limit`` columns for one answer, or earlier when
    it makes no progress: ``converged`` is False then, and also where Cholesky refutes the answer. A
    basis of more than ``capacity`` columns is replaced by the eigenspaces found so far.

    Vectors of d numbers are rows here, which is the fastest way to append and to combine them. The
    columns of ``start`` are orthonormal and thought to be near the answer.
    """

    def __init__(
        self,
        operand: Operand,
        rank: int,
        limit: int,
        capacity: float = inf,
        start: Array | None = None,
    ) -> None:
        super().__init__(operand, rank)
        self.limit, d = limit, operand.n_features
        self.converged = False
        room = int(min(capacity, limit + 2 * (rank + _SPARE)))
        self._size = 0
        self._V = np.empty((room, d))  # unused rows cost no memory
        self._CV = np.empty((len(self.shares), room, d))
        self._H = np.zeros((len(self.shares), 0, 0))
        self._random_start = start is None
        self._pca_is_proven = False
        random = np.random.default_rng(0).standard_normal((min(d, rank + _SPARE), d))
        self._expand(random if start is None else np.vstack([start.T, random[start.shape[1] :]]))
        self._expand(self._residual(self.shares, np.eye(self._size)))

    def solve(
        self, search: Callable[[Eigenspaces], Solution], guess: float | None = None
    ) -> Solution:
        """Run a search among all eigenspaces, as far as the limit allows.

        Each round searches inside the basis, roughly at first, and appends the residuals that are
        too long. The last round finds no such residual, is as exact as the arithmetic allows, and
        overlooks no better eigenvector. The guess is that of :class:`Eigenspaces`.
        """
        precision = _ROUGH_START if guess is None else 0.0  # 0 is as good as the arithmetic
        columns_left, longest_before = self.limit, inf
        while True:
            found, frame = self._round(search, precision, guess), self._V[: self._size]
            missing = found.residuals[found.lengths.ravel() > found.tolerance]
            longest, guess = float(found.lengths.max()), found.solution.alpha
            columns_left -= len(missing)
            slow = longest > max(0.5 * longest_before, found.tolerance)
            if columns_left < (_LAST_PART * self.limit if slow else 0):
                columns_left = -1  # the limit will not suffice
                if not precision:
                    self.converged = self._random_start = False
                    # The error of a sum of eigenvalues is at most the length of their residuals.
                    return found.solution.lift(frame.T, float(found.lengths.sum(axis=1).max()))
                precision = 0.0
            elif self._expand(missing, found.points):
                finer = min(precision, 0.1 * longest / found.scale)  # falls with the residuals
                finer = finer if finer > _ROUGH_END else 0.0
                longest_before, precision = longest if finer == precision else inf, finer
            elif precision:
                precision = 0.0
            elif not self._expand(self._overlooked(found.points, found.tolerance), found.points):
                self._random_start = False
                self.converged = self._are_first(found.points)
                return found.solution.lift(frame.T, 0.0)

    def _round(
        self, search: Callable[[Eigenspaces], Solution], precision: float, guess: float | None
    ) -> _Round:
        """Search inside the basis, and see what its answer rests on."""
        small = Eigenspaces(self.operand.inside(self._H), self.rank, precision, guess)
        solution = search(small)
        self.n_eigensolves += small.n_eigensolves
        points = list({id(point): point for point in solution.rests_on}.values())
        residuals = np.vstack([self._residual(point.weights, point.basis) for point in points])
        lengths = np.linalg.norm(residuals, axis=1).reshape(len(points), -1)
        C = self._matrix_inside(self.shares)
        scale = max(float(np.linalg.norm(C)), TINY)
        variance = min(float(values_within(C, point.basis)[0]) for point in points)
        # Where groups are much alike, M(w) may be far smaller than C.
        sizes = [float(np.linalg.norm(self._matrix_inside(p.weights))) for p in points]
        noise = arithmetic_noise(self.n_features) * scale
        tolerance = max(ROOT_EPS * min(variance, *sizes), noise)
        return _Round(solution, points, residuals, lengths, scale, tolerance)

    def top(self, weights: Array, *, proven: bool = True) -> Point:
        """``U(w)``, found from what the basis holds already.

        With matrices it is ``proven`` to be the top eigenspace, or found densely. Without them, a
        search that ends early lowers the bound by as much as it can be wrong.
        """
        self.n_eigensolves += 1
        columns_left = self.limit
        while True:
            H = self._matrix_inside(weights)
            values, U = top_eigenvectors(H, self.rank)
            residual, frame = self._residual(weights, U), self._V[: self._size]
            lengths = np.linalg.norm(residual, axis=1)
            scale = max(float(np.linalg.norm(H)), TINY)
            tolerance = max(ROOT_EPS * values[-1], arithmetic_noise(self.n_features) * scale)
            missing = residual[lengths > tolerance]
            columns_left -= len(missing)
            self.converged = columns_left >= 0
            errors = self.traces - np.einsum("kij,ij->k", self._H @ U, U)
            point = Point(weights, U, errors, float(weights @ self.traces - values.sum()))
            if not self.converged or not (
                self._expand(missing, [point])
                or self._expand(self._overlooked([point], tolerance), [point])
            ):
                break
        self._random_start = False
        unknown = 0.0 if self.converged else float(lengths.sum())
        found = point.lift(frame.T, unknown)
        if (
            not proven
            or self.operand.matrices is None
            or (self.converged and self._is_first(found))
        ):
            return found
        return Eigenspaces(self.operand, self.rank).top(weights)

    def _overlooked(self, points: Sequence[Point], tolerance: float) -> Array:
        """Vectors to append because better eigenvectors than a point's may lie outside the basis.

        Where the matrices map the basis into itself, or nearly so, residuals are small whatever is
        missing. Random vectors have a part in every eigenvector, so a start from them alone is
        trusted. After any other start, the best vector that the point leaves out must have
        converged as well, or be clearly worse.
        """
        for point in () if self._random_start else points:
            H = self._matrix_inside(point.weights)
            values, vectors = top_eigenvectors(H, min(self.rank + 1, len(H)))
            if len(values) > self.rank:
                residual = self._residual(point.weights, vectors[:, -1:])
                if float(np.linalg.norm(residual)) > max(tolerance, values[-2] - values[-1]):
                    return residual
        return np.zeros((0, self.n_features))

    def _are_first(self, points: Sequence[Point]) -> bool:
        """Whether these points, in the basis, are proven to be top eigenspaces.

        True without matrices, where there is no proof. PCA is proven once, and points with the same
        weights, which lie on two sides of a jump, are proven by one of them.
        """
        if self.operand.matrices is None:
            return True
        proven = [self.shares] if self._pca_is_proven else []
        for point in points:
            if any(np.allclose(point.weights, known, rtol=1e-9, atol=0.0) for known in proven):
                continue
            if not self._is_first(point.lift(self._V[: len(point.basis)].T)):
                return False
            proven.append(point.weights)
        self._pca_is_proven = True
        return True

    def _is_first(self, point: Point) -> bool:
        M = np.tensordot(point.weights, self.operand.dense_matrices, axes=1)
        return is_top(M, point.basis, values_within(M, point.basis))

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

    def _expand(self, block: Array, points: Sequence[Point] = ()) -> bool:
        """Append what is new in the block; False, with the basis unchanged, if nothing is.

        Only as much is appended as fits. A full basis is first cut down to the points.
        """
        V = self._V[: self._size]
        block = _orthonormalize(block)
        block -= (block @ V.T) @ V  # twice is enough
        block = _orthonormalize(block[np.linalg.norm(block, axis=1) > _OUTSIDE])
        if not len(block):
            return False
        if self._size + len(block) > len(self._V):
            Q = np.linalg.qr(np.hstack([point.basis for point in points]))[0].T
            self._V[: len(Q)] = Q @ V
            for C_V in self._CV:
                C_V[: len(Q)] = Q @ C_V[: self._size]
            self._H, self._size, self._random_start = Q @ self._H @ Q.T, len(Q), False
            block = block[: len(self._V) - self._size]
        m, end = self._size, self._size + len(block)
        products = self._CV[:, m:end].transpose(0, 2, 1)
        products[:] = self.operand.products(block.T)
        self._H = bordered(self._H, self._V[:m].T, block.T, products)
        self._V[m:end] = block
        self._size = end
        return True


class ThinSpaces(Spaces):
    """All ``U(w)`` of many features, from matrices: each in a growing basis of its own.

    The basis starts from the eigenspace found last and multiplies by ``M(w)`` only, so that the
    cost does not rise with the number of groups.
    """

    _last: Array | None = None

    def top(self, weights: Array, *, proven: bool = True) -> Point:
        """``U(w)``, proven to be the top eigenspace unless ``proven`` is False."""
        self.n_eigensolves += 1
        M = np.tensordot(weights, self.operand.dense_matrices, axes=1)
        whole = Operand(M[np.newaxis], np.ones(1))
        basis = GrowingBasis(whole, self.rank, self.n_features // 2, start=self._last)
        found = basis.top(np.ones(1), proven=proven)
        self._last = found.basis
        return replace(found, weights=weights, errors=self.errors(found.basis))


def bordered(H: Array, V: Array, block: Array, products: Array) -> Array:
    """``V' C_g V`` with a block appended to V, given H for V alone and ``C_g`` times the block."""
    corner, below = V.T @ products, block.T @ products
    below = 0.5 * (below + below.transpose(0, 2, 1))
    return np.block([[H, corner], [corner.transpose(0, 2, 1), below]])


def _orthonormalize(block: Array) -> Array:
    """An orthonormal basis of the rows, without rows that the others nearly span.

    The eigenvectors of the Gram matrix give it, ten times as fast as a QR decomposition of thin
    matrices. It is orthonormal to rounding if the rows were nearly orthonormal before.
    """
    lengths = np.linalg.norm(block, axis=1)
    block = block[lengths > 0] / lengths[lengths > 0, None]
    values, vectors = np.linalg.eigh(block @ block.T)
    new = values > 1e-12 * max(len(values), 1)
    return np.asarray((vectors[:, new] / np.sqrt(values[new])).T @ block)
