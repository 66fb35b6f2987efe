"""The equation of the invariant subspaces of ``L + t N`` near the first r coordinates.

One that is the span of ``[I; X]`` is invariant if

    T_L + t T_N = 0,    T_A = A_21 + A_22 X - X (A_11 + A_12 X).

Dividing what is left of the equation by the differences between the diagonals converges quickly
where X is small. Of a matrix A the span keeps

    tr A_11 + <A_21, X> + <X (I + X'X)^-1, T_A>.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from fairpca._typing import Array

_THIN = 8  # times as many coordinates as r: products with N as it is are quicker than N_22


class InvariantSubspaces:
    """Subspaces of dimension r in coordinates in which L is nearly diagonal.

    Parameters
    ----------
    L : ndarray of shape (d,)
        Its diagonal.
    beside : ndarray of shape (m, m)
        What L holds beside its diagonal, among the first m coordinates.
    V : ndarray of shape (d, d)
        The coordinates, as columns.
    N : ndarray of shape (d, d)
        Not in these coordinates.
    NV : ndarray of shape (d, r)
        ``N`` times the first r columns of V.
    gaps, drift : ndarray of shape (d - r, r)
        Differences between the diagonal of L, and of N if only roughly.
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

    def start(self, t: float) -> Array:
        """X as it would be if each pair of coordinates mixed as if there were no others."""
        g, c = self.gaps + t * self.drift, 2 * t * self._N21
        return np.asarray(c / (g + np.sqrt(g * g + c * c)))

    def at(self, X: Array) -> tuple[Array, Array, float, float]:
        """``T_L`` and ``T_N``, and what is kept of L and N more than by the first coordinates."""
        L_11, N_11 = self._first_rows(X)
        T_N = self._N21 + self._N22_times(X) - X @ N_11
        T_L = -self.gaps * X
        r, b = self._r, len(self._beside) - self._r
        L21 = self._beside[r:, :r]
        if b:
            T_L[:b] += L21 + self._beside[r:, r:] @ X[:b]
            T_L -= X @ L_11
        gram = X.T @ X
        Y = X - X @ (gram - gram @ gram)  # X (I + X'X)^-1, nearly
        of_L = float(np.vdot(L21, X[:b]) + np.vdot(Y, T_L))
        return T_L, T_N, of_L, float(np.vdot(self._N21, X) + np.vdot(Y, T_N))

    def basis(self, X: Array, t: float) -> tuple[Array, Array]:
        """An orthonormal basis of an invariant subspace, and its eigenvalues."""
        half = np.linalg.cholesky(np.eye(self._r) + X.T @ X)
        W = (self._V1 + self._V2 @ X).T
        basis = solve_triangular(half, W, lower=True, check_finite=False).T
        L_11, N_11 = self._first_rows(X)
        B = np.diag(self._L[: self._r]) + L_11 + t * N_11  # (L + t N) W' = W' B
        B = solve_triangular(half, (half.T @ B).T, lower=True, check_finite=False)
        return basis, np.asarray(np.linalg.eigvalsh(0.5 * (B + B.T)), np.float64)

    def _first_rows(self, X: Array) -> tuple[Array, Array]:
        """``A_11 + A_12 X`` of L, without its diagonal, and of N."""
        r, b = self._r, len(self._beside) - self._r
        L_11 = self._beside[:r, :r] + self._beside[:r, r:] @ X[:b]
        return L_11, self._N11 + self._N21.T @ X

    def _N22_times(self, X: Array) -> Array:
        if self._N22 is None:
            return np.asarray(self._V2.T @ (self._N @ (self._V2 @ X)))
        return np.asarray(self._N22 @ X)
