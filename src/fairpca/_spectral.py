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
_BASIS_BYTES = 1 << 29  # of a growing basis without matrices to fall back on
_LAST_PART = 0.4  # of the limit, for which the residual must halve every round
_BASIS_PER_RANK = 25  # the growing basis ends with about half as many columns per component
_FEATURES_PER_RANK = 40  # with fewer, dense decompositions are faster
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


class Products(Protocol):
    """What a growing basis asks of the data: shares, traces, and products with thin matrices."""

    shares: Array
    traces: Array
    n_features: int

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group, of shape (k, d, m) for V of shape (d, m)."""


class Operand(Products, Protocol):
    """What a solver may ask of the data.

    A source that never forms d x d matrices need offer nothing more. ``compared`` says which groups
    are to be treated alike; the others count in ``C`` only.
    """

    compared: NDArray[np.bool_]

    def relative(self) -> Operand:
        """The same groups, with each error a share of the group's own total variance."""


class Family(Protocol):
    """All eigenspaces of one rank, whichever way they are found."""

    shares: Array
    traces: Array
    rank: int
    n_features: int
    n_eigensolves: int

    def top(self, weights: Array) -> Point:
        """``U(w)``; weights may be negative."""

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group, of shape (k, d, m)."""


class DenseOperand:
    """Second moments that are there as matrices, of shape (k, d, d)."""

    def __init__(self, C: Array, shares: Array, compared: NDArray[np.bool_] | None = None) -> None:
        self.C = C
        self.shares = shares
        self.compared = np.ones(len(shares), dtype=bool) if compared is None else compared
        self.traces = np.trace(C, axis1=1, axis2=2)
        self.n_features = C.shape[1]

    def relative(self) -> DenseOperand:
        """The same groups, with each error a share of the group's own total variance."""
        units, shares = relative_units(self.shares, self.traces)
        return DenseOperand(self.C / units[:, None, None], shares, self.compared)

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group."""
        return np.asarray(self.C @ V)

    def family(self, rank: int) -> DenseFamily:
        """All eigenspaces of this rank."""
        return DenseFamily(self.C, self.shares, self.traces, rank)


def relative_units(shares: Array, traces: Array) -> tuple[Array, Array]:
    """What to divide the groups' matrices by so that errors become shares, and their new weights.

    ``C_g / tr C_g`` weighted by ``p_g tr C_g / tr C``, the group's share of all variance, add up to
    ``C / tr C``: plain PCA stays the best overall, and the overall error becomes the share of all
    variance that is lost. A group without variance loses nothing.
    """
    total = max(float(shares @ traces), _TINY)
    return np.where(traces > 0, traces, 1.0), shares * traces / total


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

    def lift(self, V: Array, slack: float) -> Any:
        """The same solution with every basis multiplied by V from the left.

        Outside of V there may be projections that are better by ``slack``.
        """


S = TypeVar("S", bound=HasDecisivePoints)
T = TypeVar("T")
F = TypeVar("F", bound=Family)


class GrowingBasis:
    """Solves a problem of many features inside a small subspace that grows until it suffices.

    Keep V (d x m, orthonormal) and ``C_g V``. Solve the whole problem for the small matrices
    ``V' C_g V``; where an eigenspace that the solution rests on leaves a residual
    ``M(w) U - U (U' M(w) U)``, append the residual to V, and repeat (block Davidson on the
    family). Errors of subspaces inside V are exact at every stage, so parity holds exactly however
    early one stops; the residual e only leaves an optimality gap of order ``e^2``. Each round costs
    k products ``C_g V`` of r or 2r columns. The basis may be used for several problems in turn.

    ``solve`` gives up when it would multiply more than ``limit`` columns, or earlier when it comes
    no nearer: ``converged`` is False then. A basis of more than ``capacity`` columns is replaced by
    the eigenspaces found so far.
    """

    tolerance = 1e-9  # of the residual, relative to the norm of C

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
        most = limit + 2 * (rank + 8)
        room = most if capacity is None else min(capacity, most)
        self._size = 0
        # One row per basis vector: appending touches nothing else, and unused rows cost no memory.
        self._V = np.empty((room, d))
        self._CV = np.empty((k, room, d))
        self._H = np.zeros((k, 0, 0))
        random = np.random.default_rng(0).standard_normal((d, min(d, rank + 8)))
        self._expand(random if start is None else np.hstack([start, random[:, start.shape[1] :]]))
        self._expand(self._residual(operand.shares, np.eye(self._size)))

    def solve(self, problem: Callable[[DenseFamily], S]) -> S:
        """Solve ``problem`` for the family of all eigenspaces, as far as the limit allows."""
        shares, traces = self.operand.shares, self.operand.traces
        precision = 1e-3  # as rough as the basis at first, then as good as the arithmetic
        left, last = self.limit, np.inf
        while True:
            family = DenseFamily(self._H, shares, traces, self.rank, precision)
            solution = problem(family)
            self.n_eigensolves += family.n_eigensolves
            points = {id(point): point for point in solution.decisive}.values()
            residuals = [self._residual(point.weights, point.basis) for point in points]
            scale = max(float(np.linalg.norm(np.tensordot(shares, self._H, axes=1))), _TINY)
            lengths = np.linalg.norm(np.hstack(residuals), axis=0) / scale
            new = np.hstack(residuals)[:, lengths > self.tolerance]
            left -= new.shape[1]
            longest = float(lengths.max())
            if left < _LAST_PART * self.limit and longest > max(0.5 * last, self.tolerance):
                left = -1  # no hope to get there in time
            if left < 0 and precision:
                precision = 0.0
                continue
            if left < 0:
                # Each eigenvalue is known to within its residual, and their sums so far.
                slack = max(float(np.linalg.norm(e, axis=0).sum()) for e in residuals)
                self.converged = False
                return self._lift(solution, slack)
            if self._size + new.shape[1] > len(self._V):
                self._restart([point.basis for point in points])
                new = new[:, : len(self._V) - self._size]
            before = precision
            if self._expand(new):
                precision = min(precision, 0.1 * longest) if precision else 0.0
                precision = precision if precision > 1e-6 else 0.0
                last = longest if precision == before else np.inf
            elif precision:
                precision = 0.0
            else:
                self.converged = True
                return self._lift(solution, 0.0)

    def _lift(self, solution: S, slack: float) -> S:
        return solution.lift(self._V[: self._size].T, slack)  # type: ignore[no-any-return]

    def _residual(self, weights: Array, basis: Array) -> Array:
        """``M(w) U - V V' M(w) U`` for U = V basis."""
        within = np.tensordot(weights, self._H, axes=1) @ basis
        outside = self._V[: self._size].T @ -within
        for w, C_V in zip(weights, self._CV[:, : self._size], strict=True):
            outside += C_V.T @ (w * basis)
        return outside

    def _expand(self, block: Array) -> bool:
        """Append what is new in ``block``, roughly orthogonal to V; False when nothing is."""
        m, V = self._size, self._V[: self._size]
        block = _orthonormalize(block)
        block = _orthonormalize(block - V.T @ (V @ block))  # twice is enough
        if not block.shape[1]:
            return False
        products = self.operand.products(block)
        self._H = bordered(self._H, V.T, block, products)
        self._size += block.shape[1]
        self._V[m : self._size] = block.T
        self._CV[:, m : self._size] = products.transpose(0, 2, 1)
        return True

    def _restart(self, bases: list[Array]) -> None:
        """Keep the span of these subspaces of the basis only."""
        Q = np.linalg.qr(np.hstack(bases))[0].T
        self._V[: len(Q)] = Q @ self._V[: self._size]
        for C_V in self._CV:
            C_V[: len(Q)] = Q @ C_V[: self._size]
        self._H = Q @ self._H @ Q.T
        self._size = len(Q)


def _orthonormalize(block: Array) -> Array:
    """An orthonormal basis of the columns, without those that others nearly span.

    By the eigenvectors of their Gram matrix, ten times as fast as a QR decomposition of thin
    matrices; orthonormal to rounding when applied to columns that nearly are so already.
    """
    lengths = np.linalg.norm(block, axis=0)
    block = block[:, lengths > 0] / lengths[lengths > 0]
    values, vectors = np.linalg.eigh(block.T @ block)
    new = values > 1e-12 * max(len(values), 1)
    return np.asarray(block @ (vectors[:, new] / np.sqrt(values[new])))


@dataclass(frozen=True)
class _Eigenspace:
    """One eigenspace as a problem of its own."""

    point: Point

    @property
    def decisive(self) -> tuple[Point, ...]:
        return (self.point,)

    def lift(self, V: Array, slack: float) -> _Eigenspace:
        point = self.point
        return _Eigenspace(replace(point, basis=V @ point.basis, bound=point.bound - slack))


class _WeightedSum:
    """``M(w)`` of an operand without matrices, as the only group of another."""

    def __init__(self, operand: Operand, weights: Array) -> None:
        self._operand = operand
        self._weights = weights
        self.shares = np.ones(1)
        self.traces = np.array([weights @ operand.traces])
        self.n_features = operand.n_features

    def products(self, V: Array) -> Array:
        return np.tensordot(self._weights, self._operand.products(V), axes=1)[np.newaxis]


class ThinFamily:
    """A family of many features: each eigenspace in a growing basis of its own.

    The basis starts from the eigenspace found last and needs products with ``M(w)`` only, so where
    there are matrices its cost does not rise with the number of groups. Where there are none and
    the search ends early, the bound of a point is as much lower as it can be wrong.
    """

    def __init__(self, operand: Operand, rank: int) -> None:
        self.operand = operand
        self.shares = operand.shares
        self.traces = operand.traces
        self.rank = rank
        self.n_features = operand.n_features
        self.n_eigensolves = 0
        self._last = np.zeros((operand.n_features, 0))

    def top(self, weights: Array) -> Point:
        """``U(w)``."""
        self.n_eigensolves += 1
        basis = _growing_basis(self._sum(weights), self.rank, self._last)
        found = basis.solve(lambda small: _Eigenspace(small.top(np.ones(1)))).point
        if isinstance(self.operand, DenseOperand) and not basis.converged:
            return self.operand.family(self.rank).top(weights)
        self._last = found.basis
        return replace(found, weights=weights, errors=self.errors(self._last))

    def errors(self, basis: Array) -> Array:
        """``R_g(U)`` of every group."""
        return group_errors(self.traces, self.products(basis), basis)

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group, of shape (k, d, m)."""
        return self.operand.products(V)

    def _sum(self, weights: Array) -> Products:
        if isinstance(self.operand, DenseOperand):
            return DenseOperand(np.tensordot(weights, self.operand.C, axes=1)[None], np.ones(1))
        return _WeightedSum(self.operand, weights)


def _growing_basis(operand: Products, rank: int, start: Array | None = None) -> GrowingBasis:
    """A basis that gives up early where matrices are there to fall back on."""
    d, k = operand.n_features, len(operand.shares)
    if isinstance(operand, DenseOperand):
        return GrowingBasis(operand, rank, limit=d // 2, start=start)
    capacity = max(_BASIS_BYTES // (8 * d * (k + 1)), 8 * rank + 16)
    return GrowingBasis(operand, rank, _BASIS_PER_RANK * max(rank, 8), capacity, start)


class EigenSolver:
    """Solves problems for one operand and rank the faster way: dense, or in a growing basis.

    A basis grown for one problem serves the next. An operand that has no matrices gets the best
    that the growing basis finds.
    """

    def __init__(self, operand: Operand, rank: int) -> None:
        self.operand = operand
        self.rank = rank
        self.n_eigensolves = 0
        d = operand.n_features
        few = d < _GROWING_BASIS_FROM or _FEATURES_PER_RANK * rank > d
        #: The operand where it is to be decomposed whole.
        self._dense = operand if isinstance(operand, DenseOperand) and few else None
        self._basis: GrowingBasis | None = None

    def solve(self, problem: Callable[[DenseFamily], S]) -> S:
        """Solve ``problem`` and count its eigensolves."""
        if self._dense is None:
            with single_threaded_blas():
                self._basis = self._basis or _growing_basis(self.operand, self.rank)
                before = self._basis.n_eigensolves
                solution = self._basis.solve(problem)
            self.n_eigensolves += self._basis.n_eigensolves - before
            if self._basis.converged or not isinstance(self.operand, DenseOperand):
                return solution
            self._dense, self._basis = self.operand, None
        return self._solve_in(self._dense.family(self.rank), problem)

    def solve_whole(self, problem: Callable[[Family], T]) -> T:
        """Solve with all features at once: for problems that find a small basis themselves."""
        if self._dense is None:
            return self._solve_in(ThinFamily(self.operand, self.rank), problem)
        return self._solve_in(self._dense.family(self.rank), problem)

    def _solve_in(self, family: F, problem: Callable[[F], T]) -> T:
        with single_threaded_blas():
            solution = problem(family)
        self.n_eigensolves += family.n_eigensolves
        return solution
