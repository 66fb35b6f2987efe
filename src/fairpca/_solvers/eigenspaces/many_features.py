"""Eigenspaces found inside a small basis that grows until nothing is missing.

Keep V (d x m, orthonormal) and ``C_g V``. Find eigenspaces of the small matrices ``V' C_g V``, and
append to V what they lack; repeat. Errors of subspaces inside V are exact at every stage, so parity
holds exactly however early one stops. There are two ways to grow:

* :class:`GrowingBasis`, for very many features, appends the residuals ``M(w) U - U (U' M(w) U)``
  that are too long (block Davidson). A residual e leaves an optimality gap of order ``e^2``. Each
  round costs k products ``C_g V`` of r or 2r columns. Small residuals prove that eigenvectors were
  found, not that they are the leading ones. Where there are matrices, Cholesky proves that at the
  end. Without matrices, the start is random: it has a part in every eigenvector, so that missing
  one is unlikely but not excluded.
* :class:`LeadingBasis` appends the leading eigenvectors of ``M(w)`` itself, by LAPACK. Their
  eigenvalues tell how much better a subspace outside V can be.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf, nan

import numpy as np

from fairpca._moments.operand import Operand
from fairpca._moments.tolerances import ROOT_EPS, ROUNDED, TINY, arithmetic_noise
from fairpca._problems.solution import Point, Solution
from fairpca._solvers.eigenspaces.dense import Eigenspaces, Spaces
from fairpca._solvers.eigenspaces.lapack import is_top, top_eigenvectors, values_within
from fairpca._typing import Array

_OUTSIDE = 0.01  # a unit vector with less than this outside the basis adds only noise
_LAST_PART = 0.4  # for this last share of the columns, each round must halve the residual
_SPARE = 8  # columns beyond the rank in the first basis
_MISSING = 1e-12  # share of the largest trace that a subspace outside the basis may be better by


class Basis(Spaces):
    """A basis V of a part of all features, the groups' matrices inside it, and room to grow.

    Vectors of d numbers are rows here, which is the fastest way to append and to combine them. A
    basis of more than ``room`` vectors is replaced by the eigenspaces found so far. ``place`` is
    that of :class:`Eigenspaces`.
    """

    converged = True  # whether the last answer is proven

    def __init__(self, operand: Operand, rank: int, room: int) -> None:
        super().__init__(operand, rank)
        k = len(self.shares)
        d = operand.n_features
        self.place = nan
        self._size = 0
        self._V = np.empty((room, d))  # unused rows cost no memory
        self._CV = np.empty((k, room, d))
        self._H = np.zeros((k, 0, 0))

    def solve(self, search: Callable[[Eigenspaces], Solution]) -> Solution:
        """Run a search among all eigenspaces: inside the basis, until it lacks nothing."""
        while True:
            solution, points = self._search(search)
            slack = self._enlarge(points)
            if slack is not None:
                return solution.lifted(self.lift, slack)

    def _enlarge(self, points: Sequence[Point]) -> float | None:
        """Append what some points lack; if nothing, by how much others may be better."""
        raise NotImplementedError

    def lift(self, U: Array) -> Array:
        """``V U``; U may have been found before the basis grew."""
        return np.asarray(self._V[: len(U)].T @ U)

    def _search(self, search: Callable[[Eigenspaces], Solution]) -> tuple[Solution, list[Point]]:
        """A search inside the basis, and the points that its answer rests on."""
        small = Eigenspaces(self.operand.inside(self._H), self.rank, self.place)
        solution = search(small)
        self.place = small.place
        self.n_eigensolves += small.n_eigensolves
        return solution, list({id(point): point for point in solution.rests_on}.values())

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
            self._cut_down(np.linalg.qr(np.hstack([point.basis for point in points]))[0].T)
            block = block[: len(self._V) - self._size]
        m = self._size
        end = m + len(block)
        products = self._CV[:, m:end].transpose(0, 2, 1)
        products[:] = self.operand.products(block.T)
        self._H = bordered(self._H, self._V[:m].T, block.T, products)
        self._V[m:end] = block
        self._size = end
        return True

    def _cut_down(self, Q: Array) -> None:
        """Replace the basis by combinations of its vectors, one for each row of Q."""
        self._V[: len(Q)] = Q @ self._V[: self._size]
        for C_V in self._CV:
            C_V[: len(Q)] = Q @ C_V[: self._size]
        self._H = Q @ self._H @ Q.T
        self._size = len(Q)


class GrowingBasis(Basis):
    """A basis that grows by residuals, and the eigenspaces inside it.

    It gives up when it would multiply more than ``limit`` columns for one answer, or earlier when
    it makes no progress: ``converged`` is False then, and also where Cholesky refutes the answer.
    The basis has at most ``capacity`` columns. Those of ``start`` are orthonormal and thought to be
    near the answer.
    """

    def __init__(
        self,
        operand: Operand,
        rank: int,
        limit: int,
        capacity: float = inf,
        start: Array | None = None,
    ) -> None:
        super().__init__(operand, rank, room=int(min(capacity, limit + 2 * (rank + _SPARE))))
        self.limit = limit
        self.converged = False
        self._random_start = start is None
        self._pca_is_proven = False
        d = operand.n_features
        first = np.random.default_rng(0).standard_normal((min(d, rank + _SPARE), d))
        if start is not None:
            first = np.vstack([start.T, first[start.shape[1] :]])
        self._expand(first)
        self._expand(self._residual(self.shares, np.eye(self._size)))

    def solve(self, search: Callable[[Eigenspaces], Solution]) -> Solution:
        """Run a search among all eigenspaces, as far as the limit allows."""
        self._columns_left = self.limit
        self._longest = inf
        return super().solve(search)

    def top(self, weights: Array, *, proven: bool = True) -> Point:
        """``U(w)``, found from what the basis holds already.

        With matrices it is ``proven`` to be the top eigenspace, or found densely. Without them, a
        search that ends early lowers the bound by as much as it can be wrong.
        """
        self.n_eigensolves += 1
        self._columns_left = self.limit
        self._longest = inf
        slack = None
        while slack is None:
            values, U = top_eigenvectors(self._matrix_inside(weights), self.rank)
            errors = self.traces - np.einsum("kij,ij->k", self._H @ U, U)
            point = Point(weights, U, errors, float(weights @ self.traces - values.sum()))
            slack = self._enlarge([point], prove=proven)
        if proven and not self.converged and self.operand.matrices is not None:
            return Eigenspaces(self.operand, self.rank).top(weights)
        return point.lifted(self.lift, slack)

    def _enlarge(self, points: Sequence[Point], *, prove: bool = True) -> float | None:
        """Append the residuals of some points that are too long, or else overlooked vectors."""
        residuals = np.vstack([self._residual(point.weights, point.basis) for point in points])
        lengths = np.linalg.norm(residuals, axis=1)
        longest = float(lengths.max())
        tolerance = self._tolerance(points)
        missing = residuals[lengths > tolerance]
        self._columns_left -= len(missing)
        slow = longest > max(0.5 * self._longest, tolerance)
        self._longest = longest
        if self._columns_left < slow * _LAST_PART * self.limit:
            self.converged = self._random_start = False
            # The error of a sum of eigenvalues is at most the length of their residuals.
            return float(lengths.reshape(len(points), -1).sum(axis=1).max())
        if self._expand(missing, points):
            return None
        if self._expand(self._overlooked(points, tolerance), points):
            return None
        self._random_start = False
        self.converged = not prove or self._are_first(points)
        return 0.0

    def _tolerance(self, points: Sequence[Point]) -> float:
        """The length below which residuals are good enough.

        Where groups are much alike, M(w) may be far smaller than C.
        """
        C = self._matrix_inside(self.shares)
        scale = max(float(np.linalg.norm(C)), TINY)
        least = min(float(values_within(C, point.basis)[0]) for point in points)
        for point in points:
            least = min(least, float(np.linalg.norm(self._matrix_inside(point.weights))))
        return max(ROOT_EPS * least, arithmetic_noise(self.n_features) * scale)

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
            if not self._is_first(point.lifted(self.lift)):
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


class LeadingBasis(Basis):
    """A basis that grows by leading eigenvectors, and the eigenspaces inside it.

    It needs matrices. An answer that rests on weights w is proven by the leading eigenvalues of
    ``M(w)``: no subspace outside the basis is better by more than they exceed those inside.
    """

    def __init__(self, operand: Operand, rank: int) -> None:
        super().__init__(operand, rank, room=operand.n_features)
        self._known: list[Array] = []  # weights whose leading eigenvectors the basis holds
        self._append(self._leading(self.shares)[1])

    def _enlarge(self, points: Sequence[Point]) -> float | None:
        """Append the leading eigenvectors for the weights of some points."""
        missing = 0.0
        grown = False
        for weights in self._new([point.weights for point in points]):
            values, vectors = self._leading(weights)
            inside, _ = top_eigenvectors(self._matrix_inside(weights), self.rank)
            gain = float(values[: self.rank].sum() - inside.sum())
            missing = max(missing, gain)
            if gain > _MISSING * float(self.traces.max()):
                grown = self._append(vectors) or grown
        return None if grown else missing

    def _leading(self, weights: Array) -> tuple[Array, Array]:
        """Some more leading eigenvalues and eigenvectors of ``M(w)`` than the rank."""
        self.n_eigensolves += 1
        self._known.append(weights)
        M = np.tensordot(weights, self.operand.dense_matrices, axes=1)
        return top_eigenvectors(M, min(self.rank + _SPARE, self.n_features))

    def _new(self, weights: Sequence[Array]) -> Iterator[Array]:
        """The weights whose leading eigenvectors are not in the basis."""
        for one in weights:
            if not any(np.allclose(one, known, rtol=ROUNDED, atol=0.0) for known in self._known):
                yield one

    def _append(self, vectors: Array) -> bool:
        """Append what these vectors have outside the basis, however little it is."""
        V = self._V[: self._size]
        outside = vectors.T - (vectors.T @ V.T) @ V
        lengths = np.linalg.norm(outside, axis=1)
        return self._expand(outside[lengths > ROOT_EPS])


class ThinSpaces(Spaces):
    """All ``U(w)`` of many features, from matrices: each in a growing basis of its own.

    The basis starts from the eigenspace found last and multiplies by ``M(w)`` only, so that the
    cost does not rise with the number of groups.
    """

    _last: Array | None = None

    def leading(self, weights: Array) -> Array:
        """A basis of ``U(w)``, not proven."""
        return self.top(weights, proven=False).basis

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
    corner = V.T @ products
    below = block.T @ products
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
