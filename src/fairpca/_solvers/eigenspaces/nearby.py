"""What one decomposition tells of the line of weights through it, for two matrices.

In the coordinates of the eigenvectors at t = 0 the matrix at ``weights + t direction`` is
``L + t N``, L diagonal. Its first eigenspace is the span of ``[I; X]`` for the X that solves

    T_L + t T_N = 0,    T_L = L_2 X - X L_1,    T_N = N_21 + N_22 X - X (N_11 + N_12 X).

The slopes at t = 0 come from ``N_21`` alone. For small t, dividing what is left of the equation by
the differences between the diagonals converges quickly, and the t of a root follows by Newton's
method in the same steps. Each costs a few products, a decomposition many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from scipy.linalg import solve_triangular

from fairpca._moments.operand import TINY
from fairpca._problems.solution import Point
from fairpca._typing import Array

_EPS = float(np.finfo(np.float64).eps)
_STEPS = 25  # that cost less than a decomposition
_FAR = 0.25  # the length of X, to first order, from which on they hardly ever suffice
_TINY_STEP = 1e-6  # along the line, for a slack that is smooth in the errors


@dataclass(frozen=True)
class Limit:
    """A slack of t and the errors, zero within ``ftol``, wanted for a t inside of ``reach``."""

    slack: Callable[[float, Array], float]
    ftol: float
    reach: tuple[float, float]

    def is_met(self, t: float, errors: Array) -> bool:
        """Whether the slack is zero."""
        return abs(self.slack(t, errors)) <= self.ftol

    def newton(self, t: float, errors: Array, slopes: Array) -> float:
        """The change of t to where the slack would be zero if errors were straight."""
        value = self.slack(t, errors)
        slope = (self.slack(t + _TINY_STEP, errors + _TINY_STEP * slopes) - value) / _TINY_STEP
        return -value / slope if slope else inf


class Neighbourhood:
    """The line ``weights + t direction`` through a decomposition ``M(weights) = V diag(L) V'``.

    Parameters
    ----------
    matrices : ndarray of shape (2, d, d)
    point : Point
        With the first r columns of V as its basis.
    direction : ndarray of shape (2,)
    values, vectors : ndarray of shape (d,), (d, d)
        L, descending, and V.
    products : ndarray of shape (2, d, r)
        The matrices times the basis.
    """

    def __init__(
        self,
        matrices: Array,
        point: Point,
        direction: Array,
        values: Array,
        vectors: Array,
        products: Array,
    ) -> None:
        r, weights = point.basis.shape[1], point.weights
        self._matrices, self._point, self._direction = matrices, point, direction
        self._values, self._V1, self._V2 = values, vectors[:, :r], vectors[:, r:]
        self._NV1 = direction[0] * products[0] + direction[1] * products[1]
        self._N21 = self._V2.T @ self._NV1
        self._gaps = np.maximum(values[:r] - values[r:, np.newaxis], TINY)
        # Both matrices are sums of L and N, by Cramer's rule.
        determinant = weights[0] * direction[1] - weights[1] * direction[0]
        self._of_L = np.array([direction[1], -direction[0]]) / determinant
        self._of_N = np.array([-weights[1], weights[0]]) / determinant
        with np.errstate(over="ignore"):  # where eigenvalues are equal
            self._turn = self._N21 / self._gaps
            self.slopes = -2.0 * np.vdot(self._N21, self._turn) * self._of_N

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # steps that lead nowhere
    def root(
        self, limit: Limit, measure: Callable[[Array], Array]
    ) -> tuple[float, Array, Array, float] | None:
        """The t of zero slack, its basis, errors and sum of eigenvalues; None where too far.

        The basis spans an invariant subspace, not necessarily the first. Its errors are taken by
        ``measure``, and what rounding makes of the difference is made up for.
        """
        start, before = self._point.errors, inf
        t = limit.newton(0.0, start, self.slopes)
        near = abs(t) * float(np.linalg.norm(self._turn)) < _FAR
        if not (near and limit.reach[0] < t < limit.reach[1]):
            return None
        N21, gaps, r = self._N21, self._gaps, self._N21.shape[1]
        N11 = self._V1.T @ self._NV1
        N22 = self._V2.T @ (np.tensordot(self._direction, self._matrices, axes=1) @ self._V2)
        drift = N11.diagonal() - N22.diagonal()[:, np.newaxis]
        enough = _EPS * np.sqrt(len(self._values)) * float(np.abs(self._values).max())
        X = t * N21 / (gaps + t * drift)
        for left in range(_STEPS, 0, -1):
            T_L, T_N = -gaps * X, N21 + N22 @ X - X @ (N11 + N21.T @ X)
            size, turned = float(np.linalg.norm(T_L + t * T_N)), float(np.vdot(N21, X))
            quick = size < before and size * (size / before) ** left < enough
            if not (size <= enough or quick):
                return None
            gram = np.eye(r) + X.T @ X
            Y = np.linalg.solve(gram, X.T).T
            errors = start - self._kept(np.vdot(Y, T_L), turned + np.vdot(Y, T_N))
            if size <= enough and limit.is_met(t, errors):
                basis = self._orthonormal(X, gram)
                measured = measure(basis)
                if limit.is_met(t, measured):
                    captured = float(self._values[:r].sum() + t * (np.trace(N11) + turned))
                    return t, basis, measured, captured
                start, errors = start + measured - errors, measured
            # One step of X at this t, then t, and X with it.
            moved = gaps + t * drift
            step, turn = t * (T_N + drift * X) / moved - X, T_N / moved
            ahead = errors - 2 * self._kept(np.vdot(T_L, step), np.vdot(T_N, step))
            slopes = -2 * self._kept(np.vdot(T_L, turn), np.vdot(T_N, turn))
            move = limit.newton(t, ahead, slopes)
            X, t, before = X + step + move * turn, t + move, size
            if not limit.reach[0] < t < limit.reach[1]:
                break
        return None

    def _orthonormal(self, X: Array, gram: Array) -> Array:
        """``V [I; X]``, made orthonormal."""
        W = self._V1 + self._V2 @ X
        return np.asarray(solve_triangular(np.linalg.cholesky(gram), W.T, lower=True).T)

    def _kept(self, of_L: float, of_N: float) -> Array:
        """What both matrices keep, if L and N keep this much."""
        return np.asarray(of_L * self._of_L + of_N * self._of_N)
