"""Where on a line of weights a slack is used up, told by one eigendecomposition.

Two groups with the weights ``w + t v`` have the matrix ``M(t) = M + t N``. At t = 0 it is
decomposed: ``M = V diag(L) V'``. In the coordinates V the matrix is ``diag(L) + t N``, so all that
follows is perturbation theory of its first r eigenvectors, the ones that are *kept*. Blocks of N
are numbered 1 for kept and 2 for left out.

*Errors.* Both groups' matrices are combinations of M and N (Cramer's rule), so what a subspace
keeps of M and of N tells what each group loses.

*Prediction.* To first order, eigenvector i turns towards the eigenvector j that is left out by
``t N_ji / (l_i - l_j)``, which fails where the gap is small. So each pair is solved as a 2 x 2
matrix instead. With ``g = l_i - l_j + t (n_i - n_j)``, ``n`` the diagonal of N, and
``s = sqrt(g^2 + 4 t^2 N_ji^2)``, its best direction takes the part ``q = (1 - g / s) / 2`` from j.
It keeps ``q (l_i - l_j)`` less of M, and ``q (n_i - n_j) - 2 t N_ji^2 / s`` less of N. This agrees
with the first order for small t and is exact for a single pair, across a crossing as well. But
pairs ignore each other. Where r is small, the first eigenvectors, d / 8 more than r, are therefore
decomposed together at each t (Rayleigh-Ritz); only the pairs beyond them are taken one by one.

*Root.* Near the predicted t, the span of ``[I; X]`` is invariant under ``A = diag(L) + t N`` if

    T_A(X) = A_21 + A_22 X - X (A_11 + A_12 X) = 0        (Stewart 1973),

and it keeps ``tr A_11 + <A_21, X> + <X (I + X'X)^-1, T_A>`` of A. ``T_A`` is linear in A, so
``T_A = T_M + t T_N``. Newton's method needs the derivative ``dX -> A_22 dX - dX A_11``; its
diagonal, the gaps, is enough where X is small. t is moved in the same steps towards zero slack.
A step costs a few products of d x d with d x r, much less than a decomposition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf, isnan, nan
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from fairpca._moments.tolerances import EPS, TINY
from fairpca._solvers.eigenspaces.dense import Decomposition, descending
from fairpca._typing import Array

_DECOMPOSED_TOGETHER = 8  # an eighth of the eigenvectors; more of them would cost too much
_MAX_STEPS = 20  # more steps would cost as much as a decomposition
_LARGE_X = 0.5  # norm of X above which the diagonal of the derivative hardly ever suffices
_DIFFERENCE = 1e-6  # step in t for the slope of a slack, which is smooth
_ROUGHLY = 0.05  # share of the first slack; one more Newton step then predicts well enough
_SMALL = 1e-3  # share of the groups' variance; where M is smaller, its rounding counts
_THIN = 8  # where d is more than this many times r, N_22 is not worth its computation


@dataclass(frozen=True)
class Slack:
    """What is left of a limit at t, given the group errors; wanted to be zero inside ``reach``.

    ``noise`` is the size below which it counts as zero.
    """

    value: Callable[[float, Array], float]
    noise: float
    reach: tuple[float, float]

    def is_used_up(self, t: float, errors: Array) -> bool:
        """Whether the slack is zero."""
        return abs(self.value(t, errors)) <= self.noise

    def slope(self, t: float, errors: Array, slopes: Array) -> float:
        """Slope of the slack in t, given the slopes of the errors."""
        step = _DIFFERENCE if t + _DIFFERENCE < self.reach[1] else -_DIFFERENCE
        return (self.value(t + step, errors + step * slopes) - self.value(t, errors)) / step

    def newton_step(self, t: float, errors: Array, slopes: Array) -> float:
        """The change of t that makes the slack zero if the errors change with these slopes."""
        slope = self.slope(t, errors, slopes)
        return -self.value(t, errors) / slope if slope else inf


class Root(NamedTuple):
    """A subspace of zero slack, invariant but not yet proven to be the first one."""

    t: float
    basis: Array
    errors: Array
    values: Array


class _Change(NamedTuple):
    """What a turned subspace keeps more of M and of N, and the slope of the latter in t."""

    of_M: float
    of_N: float
    slope: float


class RootPrediction:
    """The line of weights through a decomposition, and the root of a slack on it.

    Parameters
    ----------
    matrices : ndarray of shape (2, d, d)
    at : Decomposition
        At t = 0.
    direction : ndarray of shape (2,)
        The change of the weights with t.
    slack : Slack
    """

    def __init__(self, matrices: Array, at: Decomposition, direction: Array, slack: Slack) -> None:
        (d, r), weights = at.point.basis.shape, at.point.weights
        self._matrices, self._direction, self._slack = matrices, direction, slack
        self._errors, self._L, self._V = at.point.errors, at.values, at.vectors
        self._r, self._m = r, min(r + d // _DECOMPOSED_TOGETHER, d)
        self._together = r < d // _DECOMPOSED_TOGETHER
        determinant = weights[0] * direction[1] - weights[1] * direction[0]
        self._M_in_groups = np.array([direction[1], -direction[0]]) / determinant
        self._N_in_groups = np.array([-weights[1], weights[0]]) / determinant

    @cached_property
    def _N(self) -> Array:
        """N in the coordinates of the features."""
        return np.asarray(np.tensordot(self._direction, self._matrices, axes=1))

    @cached_property
    def _NV(self) -> Array:
        """``N V`` for the first m eigenvectors."""
        return np.asarray(self._N @ self._V[:, : self._m])

    @cached_property
    def _N21(self) -> Array:
        return np.asarray(self._V[:, self._r :].T @ self._NV[:, : self._r])

    @cached_property
    def _N_first(self) -> Array:
        """N in the coordinates of the first m eigenvectors."""
        return np.asarray(self._V[:, : self._m].T @ self._NV)

    def _gaps(self, L: Array, V: Array, NV: Array) -> tuple[Array, Array]:
        """``l_i - l_j`` and ``n_i - n_j`` for all pairs, of shape (d - r, r).

        Only the first m entries of the diagonal of N are computed; the others are taken as equal.
        """
        m, r = self._m, self._r
        n = np.empty(len(L))
        n[:m] = np.einsum("ij,ij->j", V[:, :m], NV)
        n[m:] = (np.trace(self._N) - n[:m].sum()) / max(len(L) - m, 1)
        return L[:r] - L[r:, None], n[:r] - n[r:, None]

    def _kept(self, of_M: float, of_N: float) -> Array:
        """What both groups keep, if this much is kept of M and of N."""
        return np.asarray(of_M * self._M_in_groups + of_N * self._N_in_groups)

    @property
    def slopes(self) -> Array:
        """The slopes of the errors at t = 0, exactly."""
        gaps = self._L[: self._r] - self._L[self._r :, None]
        with np.errstate(over="ignore"):  # where eigenvalues are equal
            slope = 2.0 * _inner(self._N21, self._N21 / np.maximum(gaps, TINY))
            return -self._kept(0.0, slope)

    # -- prediction --------------------------------------------------------------------------------

    @cached_property
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # where eigenvalues are equal
    def predicted(self) -> float:
        """About the t of zero slack; NaN if the root does not seem to be within reach.

        By Newton's method on the predicted errors, and bisection where that leaves the bracket.
        """
        slack, (low, high) = self._slack, self._slack.reach
        first = slack.value(0.0, self._errors)
        t = slack.newton_step(0.0, self._errors, self.slopes)
        far = high if low == 0 or (t > 0 and high > 0) else low
        value, far_is_known, bracket = first, False, [far, 0.0]  # the second has the sign of first
        for _ in range(_MAX_STEPS):
            if not min(bracket) < t < max(bracket):
                t = 0.5 * sum(bracket) if far_is_known else far
                far_is_known = True
            elif abs(value) <= _ROUGHLY * abs(first):
                break
            errors, slopes = self.predicted_errors(t)
            value = slack.value(t, errors)
            same_sign = (value > 0) == (first > 0)
            if same_sign and t == far:
                return nan
            bracket[int(same_sign)] = t
            t += slack.newton_step(t, errors, slopes)
        return t if min(bracket) < t < max(bracket) else nan

    def predicted_errors(self, t: float) -> tuple[Array, Array]:
        """About the errors at t, and their slopes."""
        changes = [self._pairs_change(t)]
        if self._together:
            changes.append(self._first_change(t))
        of_M, of_N, slope = (sum(parts) for parts in zip(*changes, strict=True))
        return self._errors - self._kept(of_M, of_N), -self._kept(-t * slope, slope)

    def _decomposed_together(self, t: float) -> tuple[Array, Array]:
        """Eigenvalues, descending, and eigenvectors of ``diag(L) + t N`` in the first m."""
        return descending(np.diag(self._L[: self._m]) + t * self._N_first)

    def _first_change(self, t: float) -> _Change:
        """The part of the first m eigenvectors, decomposed together."""
        r, L, N = self._r, self._L[: self._m], self._N_first
        values, Q = self._decomposed_together(t)
        NQ = Q.T @ (N @ Q[:, :r])
        gaps = np.maximum(values[:r] - values[r:, None], TINY)
        of_M = L @ np.einsum("ij,ij->i", Q[:, :r], Q[:, :r]) - L[:r].sum()
        of_N = np.trace(NQ) - np.trace(N[:r])
        return _Change(float(of_M), float(of_N), 2.0 * _inner(NQ[r:], NQ[r:] / gaps))

    @cached_property
    def _pairs(self) -> tuple[Array, Array, Array]:
        """Gaps of M and of N, and ``4 N_21^2``, for the pairs that are taken one by one."""
        beyond = slice(self._m - self._r if self._together else 0, None)
        gaps, drift = self._gaps(self._L, self._V, self._NV)
        return gaps[beyond], drift[beyond], 4 * self._N21[beyond] ** 2

    def _pairs_change(self, t: float) -> _Change:
        """The part of the pairs."""
        gaps, drift, squares = self._pairs
        g = gaps + t * drift
        inverse = 1.0 / np.maximum(np.sqrt(g * g + t * t * squares), TINY)  # 1 / s
        twice_q = 1.0 - g * inverse
        of_N = t * _inner(squares, inverse) - _inner(twice_q, drift)
        slope = _inner(squares * gaps * gaps, inverse**3)
        return _Change(-0.5 * _inner(twice_q, gaps), 0.5 * of_N, 0.5 * slope)

    # -- the root itself ---------------------------------------------------------------------------

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # steps that lead nowhere
    def root(self, measure: Callable[[Array], Array]) -> Root | None:
        """The subspace of zero slack; None where it is too far away.

        The errors are taken by ``measure``. Where they differ from those computed here, by
        rounding, the search goes on until the measured ones have zero slack.
        """
        slack, t = self._slack, self.predicted
        variance = float(np.trace(self._matrices, axis1=1, axis2=2).max())
        if isnan(t) or np.abs(self._L).sum() < _SMALL * variance:
            return None
        equation, start = self._equation(t)
        X, before = equation.first_guess(t), inf
        if not float(np.linalg.norm(X)) < _LARGE_X:
            return None
        enough = EPS * np.sqrt(len(self._L)) * float(np.abs(self._L).max())
        for steps_left in range(_MAX_STEPS, 0, -1):
            T_M, T_N, of_M, of_N = equation.at(X)
            size = float(np.linalg.norm(T_M + t * T_N))
            in_time = size < before and size * (size / before) ** steps_left < enough
            if not (size <= enough or in_time):
                return None
            errors = start - self._kept(of_M, of_N)
            if size <= enough and slack.is_used_up(t, errors):
                basis, values = equation.basis(X, t)
                measured = measure(basis)
                if slack.is_used_up(t, measured):
                    return Root(t, basis, measured, values)
                start, errors, size = start + measured - errors, measured, inf
            # One step of X at this t, then one step of t, and X along with it.
            gaps = equation.gaps + t * equation.drift
            step, turn = (T_M + t * T_N) / gaps, T_N / gaps
            ahead = errors - self._kept(2 * _inner(T_M, step), 2 * _inner(T_N, step))
            slopes = -self._kept(2 * _inner(T_M, turn), 2 * _inner(T_N, turn))
            move = slack.newton_step(t, ahead, slopes)
            X, t, before = X + step + move * turn, t + move, size
            if not slack.reach[0] < t < slack.reach[1]:
                break
        return None

    def _equation(self, t: float) -> tuple[_InvariantSubspaces, Array]:
        """The equation for X, and the errors at X = 0.

        Where the first m eigenvectors were decomposed together, those at the predicted t take their
        place, so that X stays small. M is then not quite diagonal any more.
        """
        L, V, NV, (r, m) = self._L, self._V, self._NV, (self._r, self._m)
        beside, errors = np.zeros((r, r)), self._errors
        if self._together:
            _, Q = self._decomposed_together(t)
            M = (Q.T * L[:m]) @ Q
            beside = M - np.diag(M.diagonal())
            of_N = _inner(Q[:, :r], self._N_first @ Q[:, :r]) - np.trace(self._N_first[:r])
            errors = errors - self._kept(float(np.trace(M[:r]) - L[:r].sum()), float(of_N))
            L = np.concatenate([M.diagonal(), L[m:]])
            V, NV = np.hstack([V[:, :m] @ Q, V[:, m:]]), NV @ Q
        gaps, drift = self._gaps(L, V, NV)
        return _InvariantSubspaces(L, beside, V, self._N, NV[:, :r], gaps, drift), errors


class _InvariantSubspaces:
    """Stewart's equation for the span of ``[I; X]``, in coordinates in which M is nearly diagonal.

    Parameters
    ----------
    L : ndarray of shape (d,)
        The diagonal of M.
    beside : ndarray of shape (m, m)
        M without its diagonal among the first m coordinates; zero beyond.
    V : ndarray of shape (d, d)
        The coordinates, as columns.
    N : ndarray of shape (d, d)
        In the coordinates of the features.
    NV : ndarray of shape (d, r)
        ``N`` times the first r columns of V.
    gaps, drift : ndarray of shape (d - r, r)
        Differences between the diagonals of M and of N, kept minus left out.
    """

    def __init__(
        self, L: Array, beside: Array, V: Array, N: Array, NV: Array, gaps: Array, drift: Array
    ) -> None:
        self._r = r = NV.shape[1]
        self._L, self._beside, self._N = L, beside, N
        self._V1, self._V2 = V[:, :r], V[:, r:]
        self._N11, self._N21 = self._V1.T @ NV, self._V2.T @ NV
        self._N22 = None if _THIN * r < len(L) else self._V2.T @ (N @ self._V2)
        self.gaps, self.drift = gaps, drift

    def first_guess(self, t: float) -> Array:
        """X from independent 2 x 2 rotations."""
        g, c = self.gaps + t * self.drift, 2 * t * self._N21
        return np.asarray(c / (g + np.sqrt(g * g + c * c)))

    def at(self, X: Array) -> tuple[Array, Array, float, float]:
        """``T_M`` and ``T_N``, and what is kept more of M and of N than at X = 0."""
        M_11, N_11 = self._first_rows(X)
        T_N = self._N21 + self._N22_times(X) - X @ N_11
        T_M = -self.gaps * X
        r, b = self._r, len(self._beside) - self._r
        M_21 = self._beside[r:, :r]
        if b:
            T_M[:b] += M_21 + self._beside[r:, r:] @ X[:b]
            T_M -= X @ M_11
        gram = X.T @ X
        Y = X - X @ (gram - gram @ gram)  # X (I + X'X)^-1, to sixth order
        of_M = _inner(M_21, X[:b]) + _inner(Y, T_M)
        return T_M, T_N, of_M, _inner(self._N21, X) + _inner(Y, T_N)

    def basis(self, X: Array, t: float) -> tuple[Array, Array]:
        """An orthonormal basis of an invariant subspace, and its eigenvalues."""
        half = np.linalg.cholesky(np.eye(self._r) + X.T @ X)
        W = (self._V1 + self._V2 @ X).T
        basis = solve_triangular(half, W, lower=True, check_finite=False).T
        M_11, N_11 = self._first_rows(X)
        A = np.diag(self._L[: self._r]) + M_11 + t * N_11  # (M + t N) W' = W' A
        A = solve_triangular(half, (half.T @ A).T, lower=True, check_finite=False)
        return basis, np.asarray(np.linalg.eigvalsh(0.5 * (A + A.T)), np.float64)

    def _first_rows(self, X: Array) -> tuple[Array, Array]:
        """``A_11 + A_12 X`` for M, without its diagonal, and for N."""
        r, b = self._r, len(self._beside) - self._r
        M_11 = self._beside[:r, :r] + self._beside[:r, r:] @ X[:b]
        return M_11, self._N11 + self._N21.T @ X

    def _N22_times(self, X: Array) -> Array:
        if self._N22 is None:
            return np.asarray(self._V2.T @ (self._N @ (self._V2 @ X)))
        return np.asarray(self._N22 @ X)


def _inner(A: Array, B: Array) -> float:
    """``<A, B>``, the sum of the products of the entries."""
    return float(np.vdot(A, B))
