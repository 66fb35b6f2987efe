"""Top-r eigenspaces of weighted sums of the groups' second moments, by dense decomposition.

For weights w of any sign let ``M(w) = sum_g w_g C_g``. Its top-r eigenspace ``U(w)`` minimises
``sum_g w_g R_g(U)`` over all projections of rank r (Ky Fan). Every solver of this library works by
asking for ``U(w)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from scipy.linalg.lapack import dpotrf

from fairpca._moments.operand import Operand, group_errors
from fairpca._moments.tolerances import EPS, arithmetic_noise
from fairpca._problems.solution import Point
from fairpca._solvers.eigenspaces.decompose import descending, top_eigenvectors
from fairpca._typing import Array

_TIE = 64 * EPS  # distance, relative to the largest eigenvalue, below which two of them are equal
_PROVEN = 4e-9  # share of the error within which a subspace is proven to be the best


@dataclass(frozen=True)
class Decomposition:
    """All eigenvalues of ``M(w)``, descending, its eigenvectors, and ``U(w)``."""

    point: Point
    values: Array
    vectors: Array


class Eigenspaces:
    """All ``U(w)`` of one rank; counts the decompositions in ``n_eigensolves``.

    For two groups the decomposition of PCA and the latest one are kept. They tell where on a line
    of weights the answer lies, to this search and to those that follow with the same spaces.

    Parameters
    ----------
    operand : Operand
        With matrices.
    rank : int
    precision : float
        How rough an answer is good enough, relative to the largest trace.
    guess : float, optional
        On a line of weights, where the answer is expected.
    """

    def __init__(
        self, operand: Operand, rank: int, precision: float = 0.0, guess: float | None = None
    ) -> None:
        self.operand = operand
        self.matrices = operand.dense_matrices
        self.shares = operand.shares
        self.traces = operand.traces
        self.compared = operand.compared
        self.rank = rank
        self.n_features = self.matrices.shape[1]
        self.n_eigensolves = 0
        self.guess = guess
        self.latest: Decomposition | None = None
        self._pca: Decomposition | None = None
        #: Differences between errors below this count as zero: noise of the arithmetic, or more
        #: where a rough answer is good enough.
        self.rounding = max(arithmetic_noise(self.n_features), precision) * float(self.traces.max())

    def top(self, weights: Array, tiebreak: Array | None = None) -> Point:
        """``U(w)``; among equally good subspaces the best for the weights ``tiebreak``."""
        is_pca = weights is self.shares and tiebreak is None
        if is_pca and self._pca is not None:
            return self._pca.point
        self.n_eigensolves += 1
        M, r = self.matrix(weights), self.rank
        if tiebreak is not None:
            values, basis, kept = _top_with_tiebreak(M, self.matrix(tiebreak), r)
            return self._point(weights, values, basis, float(tiebreak @ self.traces) - kept)
        if len(weights) > 2:
            return self._point(weights, *top_eigenvectors(M, r))
        values, vectors = descending(M)
        point = self._point(weights, values[:r], vectors[:, :r])
        self.latest = Decomposition(point, values, vectors)
        if is_pca:
            self._pca = self.latest
        return point

    def decomposition_of(self, point: Point) -> Decomposition | None:
        """The decomposition that a point comes from, if it is kept."""
        kept = (one for one in (self.latest, self._pca) if one is not None and one.point is point)
        return next(kept, None)

    def is_first(self, weights: Array, basis: Array, values: Array) -> bool:
        """Whether the basis, with these eigenvalues, spans the first eigenspace, to rounding."""
        return is_top(self.matrix(weights), basis, values, within=0.0)

    def matrix(self, weights: Array) -> Array:
        """``M(w)``."""
        flat = self.matrices.reshape(len(weights), -1)  # one call is quicker where d is small
        return np.asarray((weights @ flat).reshape(self.matrices.shape[1:]))

    def errors(self, basis: Array) -> Array:
        """``R_g(U)`` of every group."""
        return group_errors(self.traces, self.matrices, basis)

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group, of shape (k, d, m)."""
        return np.asarray(self.matrices @ V)

    def _point(self, weights: Array, values: Array, basis: Array, tied_bound: float = nan) -> Point:
        bound = float(weights @ self.traces - values.sum())
        return Point(weights, basis, self.errors(basis), bound, tied_bound)


def _top_with_tiebreak(M: Array, M2: Array, r: int) -> tuple[Array, Array, float]:
    """``top_eigenvectors``, with the largest ``tr U' M2 U`` among those, and this trace."""
    values, vectors = descending(M)
    tolerance = _TIE * np.abs(values).max()
    sure = int(np.count_nonzero(values > values[r - 1] + tolerance))
    basis, tied = vectors[:, :r], np.abs(values - values[r - 1]) <= tolerance
    if sure + np.count_nonzero(tied) > r:
        rotation = top_eigenvectors(vectors[:, tied].T @ M2 @ vectors[:, tied], r - sure)[1]
        basis = np.hstack([vectors[:, :sure], vectors[:, tied] @ rotation])
    return values[:r], basis, float(np.einsum("ij,ij->", basis, M2 @ basis))


def is_top(M: Array, basis: Array, values: Array, within: float = _PROVEN) -> bool:
    """Whether an invariant subspace of M is the first one, to this share of the error.

    ``values`` are the eigenvalues of M within it. Its residual must be small beside the norm of M.

    The subspace is the first one if M has no eigenvalue above the least of these once they are
    moved out of the way: if ``2 |M| U U' + least - M`` is positive definite. Cholesky decides that
    at a tenth of the cost of a decomposition.
    """
    size = float(np.linalg.norm(M))
    lowest, error = values.min(), np.trace(M) - values.sum()
    margin = max(within * abs(lowest), within * error, 4 * EPS * len(M) * size)
    shifted = 2 * size * basis @ basis.T - M
    shifted.flat[:: len(M) + 1] += lowest + margin
    failed_at = dpotrf(shifted.T, lower=1, clean=0, overwrite_a=1)[1]  # half of numpy's time
    return bool(failed_at == 0)
