"""Coordinates in which some directions do not exist.

For orthonormal Q (d x m) there is a reflection ``H = H' = H^-1`` that turns the first m unit
vectors into a basis of ``span Q``. Its other columns N are an orthonormal basis of the complement,
so ``N' C N`` are second moments without the directions Q. With ``Q_1 = S P`` the polar
decomposition of the first m rows of Q and ``Y = Q + [S; 0]``,

    H = I - Y (I + P)^-1 Y',

and neither H nor N is ever formed: both products cost O(d m) for each column.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import polar

from fairpca._moments.operand import Operand, RowSpaceOperand
from fairpca._typing import Array


class Complement:
    """The orthogonal complement of some directions.

    Parameters
    ----------
    directions : ndarray of shape (d, m)
        Orthonormal columns Q.

    Examples
    --------
    >>> import numpy as np
    >>> without = Complement(np.array([[0.6], [0.8], [0.0]]))
    >>> N = without.lift(np.eye(2))
    >>> bool(np.allclose(N.T @ N, np.eye(2))), bool(np.allclose(N.T @ [0.6, 0.8, 0.0], 0))
    (True, True)
    """

    def __init__(self, directions: Array) -> None:
        self.directions = directions
        d, self._m = directions.shape
        self.n_features: int = d - self._m
        S, P = polar(directions[: self._m]) if self._m else (np.eye(0), np.eye(0))
        self._Y = directions.copy()
        self._Y[: self._m] += S
        self._middle = np.linalg.inv(np.eye(self._m) + P)

    def lift(self, V: Array) -> Array:
        """``N V``: from coordinates in the complement to features."""
        padded = np.zeros((len(V) + self._m, *V.shape[1:]))
        padded[self._m :] = V
        return self._reflect(padded)

    def reduce(self, W: Array) -> Array:
        """``N' W``: from features to coordinates in the complement."""
        return self._reflect(W)[self._m :]

    def inside(self, operand: Operand) -> Operand:
        """The groups within the complement; what lies outside is always lost."""
        if operand.frame is not None:
            Q, R = np.linalg.qr(self.reduce(operand.frame))
            M = operand.compact.matrices
            return RowSpaceOperand(operand.compact.inside(R @ M @ R.T), Q)
        if operand.matrices is None:
            return _ReducedOperand(self, operand)
        return operand.inside(np.array([self.square(C) for C in operand.matrices]))

    def square(self, C: Array) -> Array:
        """``N' C N`` of a symmetric matrix."""
        half = self.reduce(self.reduce(C).T)
        return np.asarray(0.5 * (half + half.T))

    def _reflect(self, W: Array) -> Array:
        return np.asarray(W - self._Y @ (self._middle @ (self._Y.T @ W)))


class _ReducedOperand(Operand):
    """Second moments within a complement, known by their products only."""

    matrices = None

    def __init__(self, complement: Complement, operand: Operand) -> None:
        self._complement, self._operand = complement, operand
        self.shares, self.traces = operand.shares, operand.traces
        self.compared = operand.compared
        self.n_features = complement.n_features

    def products(self, V: Array) -> Array:
        """``N' C_g N V`` for every group."""
        return np.array(
            [self._complement.reduce(W) for W in self._operand.products(self._complement.lift(V))]
        )
