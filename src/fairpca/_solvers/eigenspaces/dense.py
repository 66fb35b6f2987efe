"""Top-r eigenspaces of weighted sums of the groups' second moments, by dense decomposition.

For weights w of any sign let ``M(w) = sum_g w_g C_g``. Its top-r eigenspace ``U(w)`` minimises
``sum_g w_g R_g(U)`` over all projections of rank r (Ky Fan). Every solver of this library works by
asking for ``U(w)``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf, nan

import numpy as np

from fairpca._moments.operand import Operand
from fairpca._moments.tolerances import ROUNDED, arithmetic_noise
from fairpca._problems.solution import Objective, Point, Solution, best_and_worst
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.lapack import descending, leading_vectors, top_eigenvectors
from fairpca._typing import Array


class Spaces:
    """All ``U(w)`` of one rank, however they are found.

    ``n_eigensolves`` counts the decompositions.
    """

    def __init__(self, operand: Operand, rank: int) -> None:
        self.operand = operand
        self.rank = rank
        self.shares = operand.shares
        self.traces = operand.traces
        self.compared = operand.compared
        self.n_features = operand.n_features
        self.errors = operand.errors
        self.products = operand.products
        self.n_eigensolves = 0

    def top(self, weights: Array) -> Point:
        """``U(w)``."""
        raise NotImplementedError

    def leading(self, weights: Array) -> Array:
        """A basis of ``U(w)``, for rows left out: not proven, and to few digits."""
        return self.top(weights).basis

    @cached_property
    def pca(self) -> Point:
        """Plain PCA."""
        return self.top(self.shares)

    def solution(
        self,
        found: Point,
        status: Status,
        objective: Objective,
        value: float,
        bound: float,
        *,
        rests_on: tuple[Point, ...] = (),
        alpha: float = nan,
        extras: Mapping[str, object] | None = None,
    ) -> Solution:
        """A projection, with the weights that prove the bound, in the form that solvers return."""
        privileged, harmed = best_and_worst(self.pca.errors, self.traces, self.compared)
        return Solution(
            basis=found.basis,
            errors=found.errors,
            status=status,
            objective=objective,
            value=value,
            bound=bound,
            weights=found.weights,
            pca=self.pca,
            privileged=privileged,
            harmed=harmed,
            alpha=alpha,
            rests_on=(self.pca, *rests_on),
            extras=extras or {},
        )


def solve_pca(spaces: Spaces) -> Solution:
    """Plain PCA, the projection of least overall error, for any number of groups."""
    error = float(spaces.shares @ spaces.pca.errors)
    return spaces.solution(spaces.pca, Status.FIXED, "error", error, spaces.pca.bound, alpha=1.0)


@dataclass(frozen=True)
class Decomposition:
    """All eigenvalues of ``M(w)``, descending, its eigenvectors, and ``U(w)``."""

    point: Point
    values: Array
    vectors: Array


class Eigenspaces(Spaces):
    """All ``U(w)`` of one rank, from matrices.

    For two groups all eigenvectors are found, and the decompositions of PCA and of the latest
    point are kept: they tell how fast the errors change with the weights.

    ``place`` is where on a line of weights the last search ended; the next one begins there.
    """

    def __init__(self, operand: Operand, rank: int, place: float = nan) -> None:
        super().__init__(operand, rank)
        self.matrices = operand.dense_matrices
        self.place = place
        self._kept: list[Decomposition] = []  # PCA's, and the latest one
        #: Differences between errors below this count as zero: noise of the arithmetic.
        self.rounding = arithmetic_noise(self.n_features) * float(self.traces.max())

    def top(self, weights: Array, tiebreak: Array | None = None) -> Point:
        """``U(w)``; among equally good subspaces the best for the weights ``tiebreak``."""
        self.n_eigensolves += 1
        M = self.matrix(weights)
        r = self.rank
        tied_bound = nan
        everything = None
        if tiebreak is not None:
            values, basis, kept = _top_with_tiebreak(M, self.matrix(tiebreak), r)
            tied_bound = float(tiebreak @ self.traces) - kept
        elif len(weights) > 2:
            values, basis = top_eigenvectors(M, r)
        else:
            everything = descending(M)
            values = everything[0][:r]
            basis = everything[1][:, :r]
        bound = float(weights @ self.traces - values.sum())
        point = Point(weights, basis, self.errors(basis), bound, tied_bound)
        if everything is not None:
            self._kept = [*self._kept[:1], Decomposition(point, *everything)]
        return point

    def leading(self, weights: Array) -> Array:
        """A basis of ``U(w)``, in single precision where that is enough."""
        self.n_eigensolves += 1
        return leading_vectors(self.matrix(weights), self.rank)

    def slopes(self, point: Point, direction: Array) -> Array | None:
        """How fast the errors of two groups change as the weights of a point move in a direction.

        Let ``M V = V diag(l)`` be the decomposition at the weights w, and ``N = V' M(v) V`` in its
        coordinates for the direction v. To first order ``U(w + t v)`` keeps as much of M, and

            tr U' M(v) U  grows by  2 t sum N_ij^2 / (l_i - l_j)

        over the eigenvectors i that are kept and j that are left out. Both groups' matrices are
        combinations of ``M(w)`` and ``M(v)``. None if the point's decomposition is not at hand, and
        where eigenvalues i and j are equal.
        """
        decomposition = next((one for one in self._kept if one.point is point), None)
        if decomposition is None:
            return None
        r = self.rank
        values = decomposition.values
        V = decomposition.vectors
        N = V[:, r:].T @ (self.matrix(direction) @ V[:, :r])
        gaps = values[:r] - values[r:, None]
        if gaps.min(initial=inf) <= ROUNDED * np.abs(values).max():
            return None
        growth = 2.0 * float(np.vdot(N, N / gaps))
        w = point.weights
        determinant = w[0] * direction[1] - w[1] * direction[0]
        return np.asarray(growth * np.array([w[1], -w[0]]) / determinant)

    def top_of_two(self, t: float) -> Point:
        """``U(w)`` for the weights t and 1 - t of two groups."""
        return self.top(np.array([t, 1.0 - t]))

    def matrix(self, weights: Array) -> Array:
        """``M(w)``."""
        return np.asarray(np.tensordot(weights, self.matrices, axes=1))


def _top_with_tiebreak(M: Array, M2: Array, r: int) -> tuple[Array, Array, float]:
    """``top_eigenvectors``, with ties broken by the largest ``tr U' M2 U``; and this trace."""
    values, vectors = descending(M)
    tolerance = ROUNDED * np.abs(values).max()
    sure = int(np.count_nonzero(values > values[r - 1] + tolerance))
    basis = vectors[:, :r]
    tied = np.abs(values - values[r - 1]) <= tolerance
    if sure + np.count_nonzero(tied) > r:
        rotation = top_eigenvectors(vectors[:, tied].T @ M2 @ vectors[:, tied], r - sure)[1]
        basis = np.hstack([vectors[:, :sure], vectors[:, tied] @ rotation])
    return values[:r], basis, float(np.einsum("ij,ij->", basis, M2 @ basis))
