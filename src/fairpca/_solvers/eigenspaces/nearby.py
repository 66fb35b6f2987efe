"""What one decomposition tells of the line of weights through it, for two matrices.

In the coordinates of the eigenvectors at t = 0 the matrix at ``weights + t direction`` is
``L + t N``, L diagonal. This tells two things.

*Where a root lies* (:meth:`Neighbourhood.towards`). The errors follow from what the first r
eigenvectors of ``L + t N`` keep of L and N. Where r is small, the first of the eigenvectors, d / 8
more than r, are mixed freely: a small eigenproblem. Those beyond, or all of them, are taken in
pairs of one that is kept, i, and one that is left out, j, as if there were no others. With the gap
``g = l_i - l_j + t (n_i - n_j)`` and ``s = sqrt(g^2 + 4 t^2 N_ij^2)``, the best mixture of a pair
gives up the part ``w = (1 - g / s) / 2`` of i for j. It keeps ``w (l_i - l_j)`` less of L, and
``w (n_i - n_j) - 2 t N_ij^2 / s`` less of N. The slopes of the errors at t = 0 are exact, and where
two eigenvalues cross, or nearly do, this holds far beyond them.

*The root itself* (:meth:`Neighbourhood.root`). From there on corrections lead to the invariant
subspace of zero slack (:mod:`fairpca._solvers.eigenspaces.invariant`), and the t of a root follows
by Newton's method in the same steps. Each costs a few thin products, a decomposition many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isnan, nan
from typing import Any

import numpy as np

from fairpca._moments.operand import TINY
from fairpca._problems.solution import Point
from fairpca._solvers.eigenspaces.decompose import descending
from fairpca._solvers.eigenspaces.invariant import InvariantSubspaces
from fairpca._threads import computed_once
from fairpca._typing import Array

_EPS = float(np.finfo(np.float64).eps)
_PART = 8  # an eighth of the eigenvectors is mixed freely with those that are kept
_STEPS = 12  # that cost less than a decomposition
_FAR = 0.25  # the length of X from which on they hardly ever suffice
_TINY_STEP = 1e-6  # along the line, for a slack that is smooth in the errors
_ROUGHLY = 0.05  # of the slack to begin with: one more of Newton's steps, and it is near enough
_SMALL = 1e-3  # of the variance of the groups: where M is smaller, its rounding counts


@dataclass(frozen=True)
class Limit:
    """A slack of t and the errors, zero within ``ftol``, wanted for a t inside of ``reach``."""

    slack: Callable[[float, Array], float]
    ftol: float
    reach: tuple[float, float]

    def is_met(self, t: float, errors: Array) -> bool:
        """Whether the slack is zero."""
        return abs(self.slack(t, errors)) <= self.ftol

    def slope(self, t: float, errors: Array, slopes: Array) -> float:
        """Of the slack, given those of the errors."""
        step = _TINY_STEP if t + _TINY_STEP < self.reach[1] else -_TINY_STEP
        return (self.slack(t + step, errors + step * slopes) - self.slack(t, errors)) / step

    def newton(self, t: float, errors: Array, slopes: Array) -> float:
        """The change of t to where the slack would be zero if errors were straight."""
        slope = self.slope(t, errors, slopes)
        return -self.slack(t, errors) / slope if slope else inf


class Neighbourhood:
    """The line ``weights + t direction`` through a decomposition ``M(weights) = V diag(L) V'``.

    Parameters
    ----------
    matrices : ndarray of shape (2, d, d)
    point : Point
        With the first r columns of V as its basis.
    direction : ndarray of shape (2,)
    limit : Limit
        Whose root is looked for.
    values, vectors : ndarray of shape (d,), (d, d)
        L, descending, and V.
    """

    def __init__(
        self,
        matrices: Array,
        point: Point,
        direction: Array,
        limit: Limit,
        values: Array,
        vectors: Array,
    ) -> None:
        (d, r), weights = point.basis.shape, point.weights
        self._matrices, self._point, self._direction = matrices, point, direction
        self._limit, self._L, self._V = limit, values, vectors
        self._r, self._first = r, min(r + d // _PART, d)
        self._mixes = r < d // _PART
        # Both matrices are sums of L and N, by Cramer's rule.
        determinant = weights[0] * direction[1] - weights[1] * direction[0]
        self._of_L = np.array([direction[1], -direction[0]]) / determinant
        self._of_N = np.array([-weights[1], weights[0]]) / determinant

    @computed_once
    def _N(self) -> Array:
        """N, not yet in the coordinates V."""
        return np.asarray(
            self._direction[0] * self._matrices[0] + self._direction[1] * self._matrices[1]
        )

    @computed_once
    def _NV(self) -> Array:
        """``N V`` for the first columns of V."""
        return np.asarray(self._N @ self._V[:, : self._first])

    @computed_once
    def _N21(self) -> Array:
        return np.asarray(self._V[:, self._r :].T @ self._NV[:, : self._r])

    def _pairs(self, L: Array, V: Array, NV: Array) -> tuple[Array, Array]:
        """Gaps of all pairs, and how they change with t.

        Of the diagonal of N only the first entries are computed; the others are taken as equal.
        """
        m, r = self._first, self._r
        n = np.empty(len(L))
        n[:m] = np.einsum("ij,ij->j", V[:, :m], NV)
        n[m:] = (np.trace(self._N) - n[:m].sum()) / max(len(L) - m, 1)
        return L[:r] - L[r:, None], n[:r] - n[r:, None]

    @property
    def slopes(self) -> Array:
        """The slopes of the errors at t = 0."""
        gaps = self._L[: self._r] - self._L[self._r :, None]
        with np.errstate(over="ignore"):  # where eigenvalues are equal
            bend = 2.0 * float(np.vdot(self._N21, self._N21 / np.maximum(gaps, TINY)))
            return -self._kept(0.0, bend)

    # -- about where the root lies -----------------------------------------------------------------

    @computed_once
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # where eigenvalues are equal
    def towards(self) -> float:
        """About the t of zero slack; NaN if it does not seem to be within reach.

        By Newton's method, and bisection where that leaves the bracket.
        """
        limit, errors = self._limit, self._point.errors
        start, t = limit.slack(0.0, errors), limit.newton(0.0, errors, self.slopes)
        low, high = limit.reach
        far = high if low == 0 or (t > 0 and high > 0) else low
        value, far_is_known, bracket = start, False, [far, 0.0]  # the second has the sign of start
        for _ in range(_STEPS):
            if not min(bracket) < t < max(bracket):
                t = 0.5 * sum(bracket) if far_is_known else far
                far_is_known = True
            elif abs(value) <= _ROUGHLY * abs(start):
                break
            errors, slopes = self.about(t)
            value = limit.slack(t, errors)
            same = (value > 0) == (start > 0)
            if same and t == far:
                return nan
            bracket[int(same)] = t
            t += limit.newton(t, errors, slopes)
        return t if min(bracket) < t < max(bracket) else nan

    def about(self, t: float) -> tuple[Array, Array]:
        """About the errors at t, and their slopes."""
        of_L, of_N, bend = self._of_pairs(t)
        if self._mixes:
            more_L, more_N, more_bend = self._of_mixture(t)
            of_L, of_N, bend = of_L + more_L, of_N + more_N, bend + more_bend
        return self._point.errors - self._kept(of_L, of_N), -self._kept(-t * bend, bend)

    @computed_once
    def _N_first(self) -> Array:
        """N in the first coordinates."""
        return np.asarray(self._V[:, : self._first].T @ self._NV)

    def _mixture(self, t: float) -> tuple[Array, Array]:
        """Eigenvalues, descending, and eigenvectors of ``L + t N`` in the first coordinates."""
        return descending(np.diag(self._L[: self._first]) + t * self._N_first)

    def _of_mixture(self, t: float) -> tuple[float, float, float]:
        """What mixtures of the first vectors keep more of L and N, and the slope of the latter."""
        r, L, N = self._r, self._L[: self._first], self._N_first
        values, Q = self._mixture(t)
        NQ = Q.T @ (N @ Q[:, :r])
        gaps = np.maximum(values[:r] - values[r:, None], TINY)
        of_L = L @ np.einsum("ij,ij->i", Q[:, :r], Q[:, :r]) - L[:r].sum()
        of_N = np.trace(NQ) - np.trace(N[:r])
        return float(of_L), float(of_N), 2.0 * float(np.vdot(NQ[r:], NQ[r:] / gaps))

    @computed_once
    def _apart(self) -> tuple[Array, ...]:
        """Of pairs: gaps, their change, ``4 N_21^2``, this times gaps^2, and room to compute."""
        beyond = slice(self._first - self._r if self._mixes else 0, None)
        gaps, drift = self._pairs(self._L, self._V, self._NV)
        gaps, drift, N21 = gaps[beyond], drift[beyond], self._N21[beyond]
        squares = 4 * N21 * N21
        return gaps, drift, squares, squares * gaps * gaps, np.empty_like(gaps), np.empty_like(gaps)

    def _of_pairs(self, t: float) -> tuple[float, float, float]:
        """What pairs keep more of L and N, and the slope of the latter."""
        gaps, drift, squares, steep, g, s = self._apart
        np.multiply(drift, t, out=g)
        g += gaps
        np.multiply(squares, t * t, out=s)
        s += g * g
        np.sqrt(s, out=s)
        np.divide(1.0, np.maximum(s, TINY, out=s), out=s)
        g *= s
        np.subtract(1.0, g, out=g)  # 2 w
        of_L, of_N = -np.vdot(g, gaps), t * np.vdot(squares, s) - np.vdot(g, drift)
        np.multiply(s, s, out=g)
        g *= s
        return 0.5 * float(of_L), 0.5 * float(of_N), 0.5 * float(np.vdot(steep, g))

    # -- the root itself ---------------------------------------------------------------------------

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # steps that lead nowhere
    def root(self, measure: Callable[[Array], Array]) -> tuple[float, Array, Array, Array] | None:
        """The t of zero slack, its basis, errors and eigenvalues; None where too far.

        The basis spans an invariant subspace, not necessarily the first. Its errors are taken by
        ``measure``, and what rounding makes of the difference is made up for.
        """
        limit, t = self._limit, self.towards
        variance = float(np.trace(self._matrices, axis1=1, axis2=2).max())
        if isnan(t) or np.abs(self._L).sum() < _SMALL * variance:
            return None
        equation, start = self._equation(t)
        X, before = equation.start(t), inf
        if not float(np.linalg.norm(X)) < _FAR:
            return None
        enough = _EPS * np.sqrt(len(self._L)) * float(np.abs(self._L).max())
        for left in range(_STEPS, 0, -1):
            T_L, T_N, of_L, of_N = equation.at(X)
            size = float(np.linalg.norm(T_L + t * T_N))
            quick = size < before and size * (size / before) ** left < enough
            if not (size <= enough or quick):
                return None
            errors = start - self._kept(of_L, of_N)
            if size <= enough and limit.is_met(t, errors):
                basis, values = equation.basis(X, t)
                measured = measure(basis)
                if limit.is_met(t, measured):
                    return t, basis, measured, values
                start, errors, size = start + measured - errors, measured, inf
            # One step of X at this t, then t, and X with it.
            moved = equation.gaps + t * equation.drift
            step, turn = (T_L + t * T_N) / moved, T_N / moved
            ahead = errors - 2 * self._kept(np.vdot(T_L, step), np.vdot(T_N, step))
            slopes = -2 * self._kept(np.vdot(T_L, turn), np.vdot(T_N, turn))
            move = limit.newton(t, ahead, slopes)
            X, t, before = X + step + move * turn, t + move, size
            if not limit.reach[0] < t < limit.reach[1]:
                break
        return None

    def _equation(self, t: float) -> tuple[InvariantSubspaces, Array]:
        """For coordinates in which the first vectors do not mix at t, and the errors there."""
        L, V, NV, (r, m) = self._L, self._V, self._NV, (self._r, self._first)
        beside, errors = np.zeros((r, r)), self._point.errors
        if self._mixes:
            _, Q = self._mixture(t)
            within = (Q.T * L[:m]) @ Q
            beside = within - np.diag(within.diagonal())
            of_N = np.vdot(Q[:, :r], self._N_first @ Q[:, :r]) - np.trace(self._N_first[:r])
            errors = errors - self._kept(np.trace(within[:r]) - L[:r].sum(), of_N)
            L = np.concatenate([within.diagonal(), L[m:]])
            V, NV = np.hstack([V[:, :m] @ Q, V[:, m:]]), NV @ Q
        gaps, drift = self._pairs(L, V, NV)
        return InvariantSubspaces(L, beside, V, self._N, NV[:, :r], gaps, drift), errors

    def _kept(self, of_L: float | np.floating[Any], of_N: float | np.floating[Any]) -> Array:
        """What both matrices keep, if L and N keep this much."""
        return np.asarray(of_L * self._of_L + of_N * self._of_N)
