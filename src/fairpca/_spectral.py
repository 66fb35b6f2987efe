"""Top-r eigenspaces of weighted sums of the groups' second moments.

========  ==================================================================
symbol    meaning
========  ==================================================================
C_g       second moments of group g, d x d
p_g       share of group g in the total weight, so ``C = sum_g p_g C_g``
w         one weight per group, of any sign
M(w)      ``sum_g w_g C_g``
U         d x r, orthonormal columns: a projection of rank r
R_g(U)    ``tr C_g - tr U' C_g U``, the error of group g
========  ==================================================================

All problems of this library are solved by asking a *family* for ``U(w)``, the top-r eigenspace of
``M(w)``: it minimises ``sum_g w_g R_g(U)`` over all projections of rank r (Ky Fan).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from fairpca._threads import single_threaded_blas

Array = NDArray[np.float64]

_FULL_DRIVER_UP_TO = 64  # below, computing all eigenvectors is as fast as computing some
_GROWING_BASIS_FROM = 300  # features
_BASIS_PER_RANK = 25  # the growing basis ends with about half as many columns per component
_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Point:
    """The optimal projection for one vector of weights.

    ``bound`` is the least value of ``sum_g w_g R_g`` over all projections of rank r, taken from the
    eigenvalues alone; ``errors`` are measured on the basis.
    """

    weights: Array
    basis: Array
    errors: Array
    bound: float


class Operand(Protocol):
    """What a solver may ask of the data: shares, traces, and products with thin matrices.

    A source that never forms d x d matrices need offer nothing more.
    """

    shares: Array
    traces: Array
    n_features: int

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group, of shape (k, d, m) for V of shape (d, m)."""


class DenseOperand:
    """Second moments that are there as matrices, of shape (k, d, d).

    ``compared`` says which groups are to be treated alike; the others count in ``C`` only.
    """

    def __init__(self, C: Array, shares: Array, compared: NDArray[np.bool_] | None = None) -> None:
        self.C = C
        self.shares = shares
        self.compared = np.ones(len(shares), dtype=bool) if compared is None else compared
        self.traces = np.trace(C, axis1=1, axis2=2)
        self.n_features = C.shape[1]

    def relative(self) -> DenseOperand:
        """The same groups, with each error a share of the group's own total variance.

        ``C_g / tr C_g`` weighted by ``p_g tr C_g / tr C``, the group's share of all variance, add
        up to ``C / tr C``: plain PCA stays the best overall, and the overall error becomes the
        share of all variance that is lost. A group without variance loses nothing.
        """
        units = np.where(self.traces > 0, self.traces, 1.0)
        total = max(float(self.shares @ self.traces), _TINY)
        shares = self.shares * self.traces / total
        return DenseOperand(self.C / units[:, None, None], shares, self.compared)

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group."""
        return np.asarray(self.C @ V)


def group_errors(traces: Array, products: Array, basis: Array) -> Array:
    """``R_g(U)`` of every group, from ``tr C_g`` and ``C_g U``."""
    return np.asarray(traces - np.einsum("kij,ij->k", products, basis))


class DenseFamily:
    """Eigenspaces by dense eigendecomposition; counts them in ``n_eigensolves``."""

    def __init__(
        self, C: Array, shares: Array, traces: Array, rank: int, precision: float = 0.0
    ) -> None:
        self.C = C
        self.shares = shares
        self.traces = traces
        self.rank = rank
        self.n_features = C.shape[1]
        self.n_eigensolves = 0
        noise = 2.0 * _EPS * max(1.0, np.sqrt(self.n_features) / 4)
        #: Differences between errors below this count as zero: noise of the arithmetic, or more
        #: where a rough answer is enough (``precision``, relative to the largest trace).
        self.rounding = max(noise, precision) * float(traces.max())

    def top(self, weights: Array, tiebreak: Array | None = None) -> Point:
        """``U(w)``; among equally good subspaces the best for the weights ``tiebreak``."""
        self.n_eigensolves += 1
        M = self._matrix(weights)
        if tiebreak is None:
            values, basis = top_eigenvectors(M, self.rank)
        else:
            values, basis = _top_with_tiebreak(M, self._matrix(tiebreak), self.rank)
        bound = float(weights @ self.traces - values.sum())
        return Point(weights, basis, self.errors(basis), bound)

    def errors(self, basis: Array) -> Array:
        """``R_g(U)`` of every group."""
        return group_errors(self.traces, self.C @ basis, basis)

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group, of shape (k, d, m)."""
        return np.asarray(self.C @ V)

    def project(self, V: Array) -> Array:
        """``V' C_g V`` for every group, of shape (k, m, m)."""
        return np.asarray(V.T @ self.products(V))

    def _matrix(self, weights: Array) -> Array:
        return np.asarray(np.tensordot(weights, self.C, axes=1))


def top_eigenvectors(M: Array, r: int) -> tuple[Array, Array]:
    """The r largest eigenvalues, descending, and their eigenvectors as columns."""
    d = len(M)
    if d > _FULL_DRIVER_UP_TO and r <= d // 2:
        values, vectors = eigh(M, subset_by_index=[d - r, d - 1], check_finite=False)
        if vectors.shape[1] == r:  # LAPACK may find fewer inside a cluster of equal eigenvalues
            return values[::-1], vectors[:, ::-1]
    values, vectors = np.linalg.eigh(M)
    return values[: -r - 1 : -1], vectors[:, : -r - 1 : -1]


def _top_with_tiebreak(M: Array, M2: Array, r: int) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(M)
    values, vectors = values[::-1], vectors[:, ::-1]
    tolerance = 64 * _EPS * np.abs(values).max()
    sure = int(np.count_nonzero(values > values[r - 1] + tolerance))
    tied = vectors[:, np.abs(values - values[r - 1]) <= tolerance]
    _, rotation = top_eigenvectors(tied.T @ M2 @ tied, r - sure)
    return values[:r], np.hstack([vectors[:, :sure], tied @ rotation])


class SubspacePath:
    """The shortest path between two subspaces, turning all principal angles in proportion.

    Where the r-th and (r+1)-th eigenvalues of ``M(w)`` cross, the eigenspaces on the two sides and
    every subspace between them are equally good for those weights, so a point of this path can
    have what neither end has: zero disparity, say.

    With ``U0' U1 = P cos(T) Q'``, ``X = U0 P`` and ``Y`` the unit directions of
    ``U1 Q - X cos(T)``, the path is ``X cos(sT) + Y sin(sT)`` for s in [0, 1], and errors along it
    are sums of ``cos^2, sin cos, sin^2`` with coefficients found once.
    """

    def __init__(self, family: DenseFamily, start: Array, end: Array) -> None:
        P, cosines, Qt = np.linalg.svd(start.T @ end)
        self._X = start @ P
        towards = end @ Qt.T - self._X * cosines
        towards -= self._X @ (self._X.T @ towards)
        sines = np.linalg.norm(towards, axis=0)
        moving = sines > 1e-14
        self._Y = np.where(moving, towards / np.where(moving, sines, 1.0), 0.0)
        self._angles = np.where(moving, np.arctan2(sines, cosines), 0.0)
        r = start.shape[1]
        H = family.project(np.hstack([self._X, self._Y]))
        diagonals = np.diagonal(H, axis1=1, axis2=2)
        self._xx, self._yy = diagonals[:, :r], diagonals[:, r:]
        self._xy = np.diagonal(H[:, :r, r:], axis1=1, axis2=2)
        self._traces = family.traces

    def errors(self, s: float) -> Array:
        """Group errors at the fraction s of the way."""
        c, q = np.cos(s * self._angles), np.sin(s * self._angles)
        captured = self._xx @ c**2 + 2 * self._xy @ (c * q) + self._yy @ q**2
        return np.asarray(self._traces - captured)

    def basis(self, s: float) -> Array:
        """An orthonormal basis of the subspace at the fraction s of the way."""
        mixed = self._X * np.cos(s * self._angles) + self._Y * np.sin(s * self._angles)
        return np.asarray(np.linalg.qr(mixed)[0])


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

    def lift(self, V: Array) -> Any:
        """The same solution with every basis multiplied by V from the left."""


S = TypeVar("S", bound=HasDecisivePoints)
T = TypeVar("T")


class GrowingBasis:
    """Solves a problem of many features inside a small subspace that grows until it suffices.

    Keep V (d x m, orthonormal) and ``C_g V``. Solve the whole problem for the small matrices
    ``V' C_g V``; where an eigenspace that the solution rests on leaves a residual
    ``M(w) U - U (U' M(w) U)``, append the residual to V, and repeat (block Davidson on the
    family). Errors of subspaces inside V are exact at every stage, so parity holds exactly however
    early one stops; the residual e only leaves an optimality gap of order ``e^2``. Each round costs
    k products ``C_g V`` of r or 2r columns. The basis may be used for several problems in turn.

    ``solve`` returns None when the basis has grown past ``limit`` columns: then a dense
    decomposition is the faster way.
    """

    tolerance = 1e-9  # of the residual, relative to the largest eigenvalue of C

    def __init__(self, operand: Operand, rank: int, limit: int, start: Array | None = None) -> None:
        self.operand = operand
        self.rank = rank
        self.limit = limit
        self.n_eigensolves = 0
        k, d = len(operand.shares), operand.n_features
        random = np.random.default_rng(0).standard_normal((d, min(d, rank + 8)))
        self._V, self._CV, self._H = np.zeros((d, 0)), np.zeros((k, d, 0)), np.zeros((k, 0, 0))
        self._expand(random if start is None else np.hstack([start, random[:, start.shape[1] :]]))
        self._expand(np.tensordot(operand.shares, self._CV, axes=1))

    def solve(self, problem: Callable[[DenseFamily], S]) -> S | None:
        """Solve ``problem`` for the family of all eigenspaces, or return None past the limit."""
        shares, traces = self.operand.shares, self.operand.traces
        precision = 1e-3  # as rough as the basis at first, then as good as the arithmetic
        while self._V.shape[1] <= self.limit:
            family = DenseFamily(self._H, shares, traces, self.rank, precision)
            solution = problem(family)
            self.n_eigensolves += family.n_eigensolves
            residuals = np.hstack([self._residual(point) for point in solution.decisive])
            scale = max(float(np.linalg.norm(np.tensordot(shares, self._H, axes=1), 2)), _TINY)
            lengths = np.linalg.norm(residuals, axis=0) / scale
            if self._expand(residuals[:, lengths > self.tolerance]):
                precision = min(precision, 0.1 * float(lengths.max())) if precision else 0.0
                precision = precision if precision > 1e-6 else 0.0
            elif precision:
                precision = 0.0
            else:
                return solution.lift(self._V)  # type: ignore[no-any-return]
        return None

    def _residual(self, point: Point) -> Array:
        M_U = np.tensordot(point.weights, self._CV, axes=1) @ point.basis
        return np.asarray(M_U - self._V @ (self._V.T @ M_U))

    def _expand(self, block: Array) -> bool:
        """Append what is new in ``block``; False when nothing is."""
        lengths = np.linalg.norm(block, axis=0)
        block = block[:, lengths > 0] / lengths[lengths > 0]
        for _ in range(2):  # twice is enough
            block = block - self._V @ (self._V.T @ block)
            block, triangle = np.linalg.qr(block)
            block = block[:, np.abs(np.diag(triangle)) > 1e-8]
        if not block.shape[1]:
            return False
        products = self.operand.products(block)
        self._H = bordered(self._H, self._V, block, products)
        self._V = np.hstack([self._V, block])
        self._CV = np.concatenate([self._CV, products], axis=2)
        return True


@dataclass(frozen=True)
class _Eigenspace:
    """One eigenspace as a problem of its own."""

    point: Point

    @property
    def decisive(self) -> tuple[Point, ...]:
        return (self.point,)

    def lift(self, V: Array) -> _Eigenspace:
        return _Eigenspace(replace(self.point, basis=V @ self.point.basis))


class ThinFamily(DenseFamily):
    """A family of many features: each eigenspace in a growing basis of its own.

    The basis starts from the eigenspace found last and needs products with ``M(w)`` only, so its
    cost does not rise with the number of groups.
    """

    def __init__(self, operand: DenseOperand, rank: int) -> None:
        super().__init__(operand.C, operand.shares, operand.traces, rank)
        self._last = np.zeros((operand.n_features, 0))

    def top(self, weights: Array, tiebreak: Array | None = None) -> Point:
        """As for dense families; a tiebreak needs a dense decomposition."""
        one = np.ones(1)
        operand = DenseOperand(self._matrix(weights)[np.newaxis], one)
        basis = GrowingBasis(operand, self.rank, self.n_features // 2, start=self._last)
        found = basis.solve(lambda small: _Eigenspace(small.top(one)))
        if tiebreak is not None or found is None:
            return super().top(weights, tiebreak)
        self.n_eigensolves += 1
        self._last = found.point.basis
        return replace(found.point, weights=weights, errors=self.errors(self._last))


class EigenSolver:
    """Solves problems for one operand and rank the faster way: dense, or in a growing basis.

    A basis grown for one problem serves the next.
    """

    def __init__(self, operand: DenseOperand, rank: int) -> None:
        self.operand = operand
        self.rank = rank
        self.n_eigensolves = 0
        self._basis: GrowingBasis | None = None
        d = operand.n_features
        if d >= _GROWING_BASIS_FROM and _BASIS_PER_RANK * rank <= d:
            self._basis = GrowingBasis(operand, rank, limit=d // 2)

    def solve(self, problem: Callable[[DenseFamily], S]) -> S:
        """Solve ``problem`` and count its eigensolves."""
        if self._basis is not None:
            before = self._basis.n_eigensolves
            with single_threaded_blas():
                solution = self._basis.solve(problem)
            self.n_eigensolves += self._basis.n_eigensolves - before
            if solution is not None:
                return solution
            self._basis = None
        return self.solve_whole(problem)

    def solve_whole(self, problem: Callable[[DenseFamily], T]) -> T:
        """Solve with all features at once: for problems that find a small basis themselves."""
        operand = self.operand
        family = DenseFamily(operand.C, operand.shares, operand.traces, self.rank)
        if self._basis is not None:
            family = ThinFamily(operand, self.rank)
        with single_threaded_blas():
            solution = problem(family)
        self.n_eigensolves += family.n_eigensolves
        return solution
