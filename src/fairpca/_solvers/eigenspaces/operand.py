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

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from fairpca._typing import Array

_FULL_DRIVER_UP_TO = 128  # below, computing all eigenvectors is as fast as computing some
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

    def is_top(self, weights: Array, basis: Array) -> bool:
        """Whether these eigenvectors of ``M(w)`` are the first ones, to a billionth of the error.

        So it is if M has no eigenvalue above the least of theirs once they are moved out of the
        way, which Cholesky decides at a tenth of the cost of a decomposition.
        """
        M = np.tensordot(weights, self.C, axes=1)
        size = float(np.linalg.norm(M))
        captured = np.einsum("ij,ij->j", basis, M @ basis)
        lowest, left = captured.min(), np.trace(M) - captured.sum()
        others_below = 2 * size * basis @ basis.T - M
        margin = max(4e-9 * abs(lowest), 4e-9 * left, 4 * _EPS * len(M) * size)
        others_below.flat[:: len(M) + 1] += lowest + margin
        try:
            np.linalg.cholesky(others_below)
        except np.linalg.LinAlgError:
            return False
        return True

    def family(self, rank: int) -> DenseFamily:
        """All eigenspaces of this rank."""
        return DenseFamily(self.C, self.shares, self.traces, rank)


def rounding_of(d: int) -> float:
    """What arithmetic with d x d matrices leaves of one, relative to the norm of the matrices."""
    return 2.0 * _EPS * max(1.0, float(np.sqrt(d)) / 4)


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
        self,
        C: Array,
        shares: Array,
        traces: Array,
        rank: int,
        precision: float = 0.0,
        guess: float | None = None,
    ) -> None:
        self.C = C
        self.shares = shares
        self.traces = traces
        self.rank = rank
        self.n_features = C.shape[1]
        self.n_eigensolves = 0
        self.guess = guess  # on a line of weights, near the answer
        noise = rounding_of(self.n_features)
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
