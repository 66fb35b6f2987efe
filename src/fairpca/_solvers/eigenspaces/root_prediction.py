"""Predicts from one eigendecomposition where on a line of weights a slack is used up.

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

    T_A(X) = A_21 + A_22 X - X (A_11 + A_12 X) = 0        (Stewart 1973).

``T_A`` is linear in A, so ``T_A = T_M + t T_N``. Newton's method needs the derivative
``dX -> A_22 dX - dX A_11``; its diagonal, the gaps between kept and left-out eigenvalues, is enough
where X is small. The coordinates are therefore turned first: eigenvectors that were decomposed
together are taken at the predicted t. X starts from the 2 x 2 solutions, and t is moved in the same
steps towards zero slack; what the subspace keeps of A changes by ``2 <T_A, dX>``. A step costs a
few products of d x d with d x r, much less than a decomposition.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf, isnan, nan
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigvalsh, solve_triangular

from fairpca._moments.tolerances import EPS, TINY
from fairpca._problems.solution import Point
from fairpca._solvers.eigenspaces.dense import Decomposition, Eigenspaces, descending, is_top
from fairpca._typing import Array

_DECOMPOSED_TOGETHER = 8  # one in eight eigenvectors; more of them would cost too much
_MAX_STEPS = 20  # more steps would cost as much as a decomposition


@dataclass(frozen=True)
class Slack:
    """A limit on the line: ``value(t, errors)`` is how much of it the group errors leave unused.

    Its root is sought for t in ``reach``. A slack of up to ``noise`` counts as zero.
    """

    value: Callable[[float, Array], float]
    noise: float
    reach: tuple[float, float]

    def is_used_up(self, t: float, errors: Array) -> bool:
        """Whether the slack is zero."""
        return abs(self.value(t, errors)) <= self.noise

    def newton_step(self, t: float, errors: Array, slopes: Array) -> float:
        """The change of t that makes the slack zero if the errors change with these slopes."""
        step = 1e-6 if t + 1e-6 < self.reach[1] else -1e-6  # the slack is smooth
        value = self.value(t, errors)
        slope = (self.value(t + step, errors + step * slopes) - value) / step
        return -value / slope if slope else inf


#: How much more a turned subspace keeps of M and of N, and the slope of the latter in t.
_Change = tuple[float, float, float]


class _Turned(NamedTuple):
    """A subspace near the one that is decomposed."""

    Z: Array  # a basis in the coordinates V
    gram: Array  # Z'Z
    A: tuple[Array, Array]  # the first r rows of M Z and of N Z, in the turned coordinates
    T_M: Array  # Stewart's residuals
    T_N: Array
    errors: Array


class RootPrediction:
    """The line of weights through a decomposition, and the root of a slack on it.

    The decomposition is that at t = 0, and ``direction`` the change of the weights with t.
    """

    def __init__(
        self, spaces: Eigenspaces, at: Decomposition, direction: Array, slack: Slack
    ) -> None:
        (d, r), weights = at.point.basis.shape, at.point.weights
        self._spaces, self._slack = spaces, slack
        self._weights, self._direction = weights, direction
        self._errors, self._L, self._V = at.point.errors, at.values, at.vectors
        self._r, self._m = r, min(r + d // _DECOMPOSED_TOGETHER, d)
        self._together = r < d // _DECOMPOSED_TOGETHER
        determinant = weights[0] * direction[1] - weights[1] * direction[0]
        self._M_in_groups = np.array([direction[1], -direction[0]]) / determinant
        self._N_in_groups = np.array([-weights[1], weights[0]]) / determinant

    @cached_property
    def _N_of_features(self) -> Array:
        return self._spaces.matrix(self._direction)

    @cached_property
    def _N(self) -> Array:
        """The first m columns of ``V'N V``."""
        return np.asarray(self._V.T @ (self._N_of_features @ self._V[:, : self._m]))

    @cached_property
    def _all_of_N(self) -> Array:
        """``V'N V``."""
        rest = self._V.T @ (self._N_of_features @ self._V[:, self._m :])
        return np.hstack([self._N, rest])

    @cached_property
    def _n(self) -> Array:
        """The diagonal of N: the first m entries are computed, the others are taken as equal."""
        m, n = self._m, np.empty(len(self._L))
        n[:m] = self._N.diagonal()[:m]
        n[m:] = (self._direction @ self._spaces.traces - n[:m].sum()) / max(len(n) - m, 1)
        return n

    def _kept(self, of_M: float, of_N: float) -> Array:
        """The variance that each group keeps, if this much is kept of M and of N."""
        return np.asarray(of_M * self._M_in_groups + of_N * self._N_in_groups)

    @property
    def slopes(self) -> Array:
        """The slopes of the errors at t = 0, exactly."""
        r, N_21 = self._r, self._N[self._r :, : self._r]
        gaps = np.maximum(self._L[:r] - self._L[r:, None], TINY)
        with np.errstate(over="ignore"):  # where eigenvalues are equal
            return -self._kept(0.0, 2.0 * _inner(N_21, N_21 / gaps))

    @cached_property
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # where eigenvalues are equal
    def predicted(self) -> float:
        """The approximate t of zero slack; NaN if the root seems to be out of reach.

        Newton's method on the predicted errors finds it, with bisection outside the bracket.
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
            elif abs(value) <= 0.05 * abs(first):  # the last Newton step predicts well enough
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
        """The approximate errors at t, and their slopes."""
        changes = [self._pairs_change(t)]
        if self._together:
            changes.append(self._first_change(t))
        of_M, of_N, slope = (sum(parts) for parts in zip(*changes, strict=True))
        return self._errors - self._kept(of_M, of_N), -self._kept(-t * slope, slope)

    def _decomposed_together(self, t: float) -> tuple[Array, Array]:
        """Eigenvalues, descending, and eigenvectors of the first m x m of ``diag(L) + t N``."""
        return descending(np.diag(self._L[: self._m]) + t * self._N[: self._m, : self._m])

    def _first_change(self, t: float) -> _Change:
        """The change due to the first m eigenvectors, decomposed together."""
        r, L, N = self._r, self._L[: self._m], self._N[: self._m, : self._m]
        values, Q = self._decomposed_together(t)
        NQ = Q.T @ (N @ Q[:, :r])
        gaps = np.maximum(values[:r] - values[r:, None], TINY)
        of_M = L @ np.einsum("ij,ij->i", Q[:, :r], Q[:, :r]) - L[:r].sum()
        of_N = np.trace(NQ) - np.trace(N[:r])
        return float(of_M), float(of_N), 2.0 * _inner(NQ[r:], NQ[r:] / gaps)

    @cached_property
    def _pairs(self) -> tuple[Array, Array, Array]:
        """Gaps of M and of N, and ``4 N_21^2``, for the pairs that are taken one by one."""
        r, L, n = self._r, self._L, self._n
        beyond = self._m if self._together else r
        squares = 4 * self._N[beyond:, :r] ** 2
        return L[:r] - L[beyond:, None], n[:r] - n[beyond:, None], squares

    def _pairs_change(self, t: float) -> _Change:
        """The change due to the pairs."""
        gaps, drift, squares = self._pairs
        g = gaps + t * drift
        inverse = 1.0 / np.maximum(np.sqrt(g * g + t * t * squares), TINY)  # 1 / s
        twice_q = 1.0 - g * inverse
        of_N = t * _inner(squares, inverse) - _inner(twice_q, drift)
        slope = _inner(squares * gaps * gaps, inverse**3)
        return -0.5 * _inner(twice_q, gaps), 0.5 * of_N, 0.5 * slope

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # steps that lead nowhere
    def root(self) -> tuple[float, Point] | None:
        """The t and ``U(w + t v)`` of zero slack; None where it is too far away.

        Where the errors measured on the basis differ from those computed here, by rounding, the
        search goes on until the measured ones have zero slack. Cholesky proves the eigenspace.
        """
        slack, t, L, spaces = self._slack, self.predicted, self._L, self._spaces
        if isnan(t) or np.abs(L).sum() < 1e-3 * float(spaces.traces.max()):
            return None  # M is so small that rounding would matter
        Q, gaps, A_21 = self._coordinates(t)
        X, before = 2 * A_21 / (gaps + np.sqrt(gaps * gaps + 4 * A_21 * A_21)), inf
        if not float(np.linalg.norm(X)) < 0.5:
            return None  # the diagonal of the derivative hardly ever suffices for a larger X
        enough, rounding = EPS * np.sqrt(len(L)) * float(np.abs(L).max()), np.zeros(2)
        for steps_left in range(_MAX_STEPS, 0, -1):
            at = self._turned(X, Q)
            T_A = at.T_M + t * at.T_N
            size = float(np.linalg.norm(T_A))
            in_time = size < before and size * (size / before) ** steps_left < enough
            if not (size <= enough or in_time):
                return None
            errors = at.errors + rounding
            if size <= enough and slack.is_used_up(t, errors):
                half = np.linalg.cholesky(at.gram)
                W = (self._V @ at.Z).T
                basis = solve_triangular(half, W, lower=True, check_finite=False).T
                measured = spaces.errors(basis)
                if slack.is_used_up(t, measured):
                    inside = at.gram @ (at.A[0] + t * at.A[1]) + X.T @ T_A  # Z'A Z
                    values = np.asarray(eigvalsh(0.5 * (inside + inside.T), at.gram), np.float64)
                    weights = self._weights + t * self._direction
                    bound = float(weights @ spaces.traces - values.sum())
                    first = is_top(spaces.matrix(weights), basis, values, within=0.0)
                    return (t, Point(weights, basis, measured, bound)) if first else None
                rounding, errors, size = rounding + measured - errors, measured, inf
            # One step of X at this t, then one step of t, and X along with it.
            step, turn = T_A / gaps, at.T_N / gaps
            ahead = errors - self._kept(2 * _inner(at.T_M, step), 2 * _inner(at.T_N, step))
            slopes = -self._kept(2 * _inner(at.T_M, turn), 2 * _inner(at.T_N, turn))
            move = slack.newton_step(t, ahead, slopes)
            X, t, before = X + step + move * turn, t + move, size
            if not slack.reach[0] < t < slack.reach[1]:
                break
        return None

    def _coordinates(self, t: float) -> tuple[Array, Array, Array]:
        """A rotation of the first coordinates that makes A nearly diagonal, its gaps, and A_21."""
        r, m, diagonal = self._r, self._m, self._L + t * self._n
        Q, A_21 = np.eye(0), t * self._N[r:, :r]
        if self._together:
            diagonal[:m], Q = self._decomposed_together(t)
            A_21 = np.vstack([np.zeros((m - r, r)), t * self._N[m:] @ Q[:, :r]])
        return Q, diagonal[:r] - diagonal[r:, None], A_21

    def _turned(self, X: Array, Q: Array) -> _Turned:
        """The subspace ``[I; X]`` in the coordinates that Q turns.

        With ``A Z = [A_1; A_2]`` in these coordinates, ``T_A = A_2 - X A_1`` is its residual, and
        ``Z'A Z = Z'Z A_1 + X'T_A``. So the subspace keeps ``tr A_1 + <X (Z'Z)^-1, T_A>``.
        """
        r, m = self._r, len(Q)
        Z, gram = np.vstack([np.eye(r), X]), np.eye(r) + X.T @ X
        Z[:m] = Q @ Z[:m]
        if self._together:
            NZ = self._V.T @ (self._N_of_features @ (self._V @ Z))
        else:
            NZ = self._all_of_N[:, :r] + self._all_of_N[:, r:] @ X
        A, T = [], []
        for AZ in (self._L[:, None] * Z, NZ):
            AZ[:m] = Q.T @ AZ[:m]
            A.append(AZ[:r])
            T.append(AZ[r:] - X @ AZ[:r])
        Y = np.asarray(np.linalg.solve(gram, X.T).T, np.float64)
        of_M = np.trace(A[0]) + _inner(Y, T[0]) - self._L[:r].sum()
        of_N = np.trace(A[1]) + _inner(Y, T[1]) - self._N.diagonal()[:r].sum()
        errors = self._errors - self._kept(float(of_M), float(of_N))
        return _Turned(Z, gram, (A[0], A[1]), T[0], T[1], errors)


def _inner(A: Array, B: Array) -> float:
    """``<A, B>``, the sum of the products of the entries."""
    return float(np.vdot(A, B))
