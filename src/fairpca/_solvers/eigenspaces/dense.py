"""Top-r eigenspaces of weighted sums of the groups' second moments, by dense decomposition.

For weights w of any sign let ``M(w) = sum_g w_g C_g``. Its top-r eigenspace ``U(w)`` minimises
``sum_g w_g R_g(U)`` over all projections of rank r (Ky Fan). Every solver of this library works by
asking for ``U(w)``.
"""

from __future__ import annotations

from math import nan

import numpy as np

from fairpca._moments.operand import Operand, group_errors
from fairpca._problems.solution import Point
from fairpca._solvers.eigenspaces.decompose import descending, top_eigenvectors
from fairpca._solvers.eigenspaces.nearby import Limit, Neighbourhood
from fairpca._typing import Array

_EPS = float(np.finfo(np.float64).eps)


class Eigenspaces:
    """All ``U(w)`` of one rank; counts the decompositions in ``n_eigensolves``.

    Parameters
    ----------
    operand : Operand
        With matrices.
    rank : int
    precision : float
        How rough an answer is good enough, relative to the largest trace.
    guess : float, optional
        On a line of weights, where the answer is expected.
    pca : Point, optional
        ``U(p)`` for the shares p, if known.
    """

    def __init__(
        self,
        operand: Operand,
        rank: int,
        precision: float = 0.0,
        guess: float | None = None,
        pca: Point | None = None,
    ) -> None:
        assert operand.matrices is not None
        self.matrices = operand.matrices
        self.shares = operand.shares
        self.traces = operand.traces
        self.compared = operand.compared
        self.rank = rank
        self.n_features = self.matrices.shape[1]
        self.n_eigensolves = 0
        self.guess = guess
        self._pca = pca
        self._spectrum: tuple[Array, Array] | None = None
        self._last: Point | None = None
        #: Differences between errors below this count as zero: noise of the arithmetic, or more
        #: where a rough answer is good enough.
        self.rounding = max(rounding_of(self.n_features), precision) * float(self.traces.max())

    def top(self, weights: Array, tiebreak: Array | None = None) -> Point:
        """``U(w)``; among equally good subspaces the best for the weights ``tiebreak``."""
        if self._pca is not None and weights is self.shares and tiebreak is None:
            return self._pca
        self.n_eigensolves += 1
        M, r, tied_bound = self._matrix(weights), self.rank, nan
        self._spectrum = None
        if tiebreak is not None:
            other = self._matrix(tiebreak)
            values, basis, kept = _top_with_tiebreak(M, other, r)
            tied_bound = float(tiebreak @ self.traces) - kept
        elif len(weights) == 2:  # for what the others tell of the line of weights
            all_values, vectors = descending(M)
            values, basis = all_values[:r], vectors[:, :r]
            self._spectrum = all_values, vectors
        else:
            values, basis = top_eigenvectors(M, r)
        bound = float(weights @ self.traces - values.sum())
        self._last = Point(weights, basis, self.errors(basis), bound, tied_bound)
        return self._last

    def near(self, point: Point, direction: Array, limit: Limit) -> Neighbourhood | None:
        """The line of weights through the projection found last; None without its spectrum."""
        if self._spectrum is None or point is not self._last or self.rank == self.n_features:
            return None
        return Neighbourhood(self.matrices, point, direction, limit, *self._spectrum)

    def is_first(self, weights: Array, basis: Array, values: Array) -> bool:
        """Whether the basis, of these eigenvalues, spans the first eigenspace, to rounding."""
        return is_top(self._matrix(weights), basis, values, within=0.0)

    def _matrix(self, weights: Array) -> Array:
        """``M(w)``."""
        flat = self.matrices.reshape(len(weights), -1)  # in one call where d is small
        return np.asarray((weights @ flat).reshape(self.matrices.shape[1:]))

    def errors(self, basis: Array) -> Array:
        """``R_g(U)`` of every group."""
        return group_errors(self.traces, self.matrices, basis)

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group, of shape (k, d, m)."""
        return np.asarray(self.matrices @ V)


def rounding_of(d: int) -> float:
    """What arithmetic with d x d matrices leaves of one, relative to the norm of the matrices."""
    return 2.0 * _EPS * max(1.0, float(np.sqrt(d)) / 4)


def _top_with_tiebreak(M: Array, M2: Array, r: int) -> tuple[Array, Array, float]:
    """``top_eigenvectors``, with the largest ``tr U' M2 U`` among those, and this trace."""
    values, vectors = descending(M)
    tolerance = 64 * _EPS * np.abs(values).max()
    sure = int(np.count_nonzero(values > values[r - 1] + tolerance))
    basis, tied = vectors[:, :r], np.abs(values - values[r - 1]) <= tolerance
    if sure + np.count_nonzero(tied) > r:
        rotation = top_eigenvectors(vectors[:, tied].T @ M2 @ vectors[:, tied], r - sure)[1]
        basis = np.hstack([vectors[:, :sure], vectors[:, tied] @ rotation])
    return values[:r], basis, float(np.einsum("ij,ij->", basis, M2 @ basis))


def is_top(
    M: Array, basis: Array, values: Array, clearly: bool = False, within: float = 4e-9
) -> bool:
    """Whether an invariant subspace of M is the first one, to this share of the error.

    ``values`` are the eigenvalues of M within it. Its residual must be small beside the norm of M.
    With ``clearly``, no other subspace is as good, to this share.

    It is the first one if M has no eigenvalue above the least of these once they are moved out of
    the way, which Cholesky decides at a tenth of the cost of a decomposition.
    """
    size = float(np.linalg.norm(M))
    lowest, left = values.min(), np.trace(M) - values.sum()
    others_below = 2 * size * basis @ basis.T - M
    margin = max(within * abs(lowest), within * left, 4 * _EPS * len(M) * size)
    others_below.flat[:: len(M) + 1] += lowest - margin if clearly else lowest + margin
    try:
        np.linalg.cholesky(others_below)
    except np.linalg.LinAlgError:
        return False
    return True
