"""The groups' second moments as a solver sees them.

========  ==================================================================
symbol    meaning
========  ==================================================================
C_g       second moments of group g, d x d
p_g       share of group g in the total weight, so ``C = sum_g p_g C_g``
U         d x r, orthonormal columns: a projection of rank r
R_g(U)    ``tr C_g - tr U' C_g U``, the error of group g
========  ==================================================================
"""

from __future__ import annotations

from typing import Self

import numpy as np

from fairpca._moments.memory import refuse_large_matrices
from fairpca._threads import computed_once
from fairpca._typing import Array, Mask

TINY = float(np.finfo(np.float64).tiny)
NEGLIGIBLE = 1e-24  # of the largest variance of a group: rounding of the mean


class Operand:
    """Second moments of k groups, as matrices.

    A subclass for very many features offers products with thin matrices only: its ``matrices`` are
    None.

    Parameters
    ----------
    matrices : ndarray of shape (k, d, d)
        ``C_g``.
    shares : ndarray of shape (k,)
        ``p_g``.
    compared : ndarray of bool, shape (k,), optional
        The groups that are to be treated alike, by default all. The others count in ``C`` only.

    Attributes
    ----------
    traces : ndarray of shape (k,)
        ``tr C_g``, the total variance of each group.
    n_features : int
    frame : ndarray of shape (d, m) or None
        Orthonormal columns, the coordinates of :attr:`compact`, if these are not the features.
    """

    matrices: Array | None
    shares: Array
    traces: Array
    compared: Mask
    n_features: int
    frame: Array | None = None

    def __init__(self, matrices: Array, shares: Array, compared: Mask | None = None) -> None:
        self.matrices = matrices
        self.shares = shares
        self.traces = np.trace(matrices, axis1=1, axis2=2)
        self.compared = np.ones(len(shares), dtype=bool) if compared is None else compared
        self.n_features = matrices.shape[1]

    @property
    def compact(self) -> Operand:
        """The same groups in fewer coordinates, those of ``frame``, where that is possible."""
        return self

    def relative(self) -> Self:
        """The same groups, with each error a share of the group's own total variance."""
        units, shares = relative_units(self.shares, self.traces)
        assert self.matrices is not None
        return type(self)(self.matrices / units[:, None, None], shares, self.compared)

    def inside(self, matrices: Array) -> Operand:
        """The same groups within a span V, given ``V' C_g V``; what lies outside is always lost."""
        small = Operand(matrices, self.shares, self.compared)
        small.traces = self.traces
        return small

    @property
    def diagonals(self) -> Array:
        """The variance of each feature in each group, of shape (k, d)."""
        assert self.matrices is not None
        return np.diagonal(self.matrices, axis1=1, axis2=2)

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group, of shape (k, d, m) for V of shape (d, m)."""
        assert self.matrices is not None
        return np.asarray(self.matrices @ V)

    def errors(self, basis: Array) -> Array:
        """``R_g(U)`` of every group."""
        if self.matrices is not None:
            return group_errors(self.traces, self.matrices, basis)
        return np.asarray(self.traces - np.einsum("kij,ij->k", self.products(basis), basis))


class RowSpaceOperand(Operand):
    """Second moments of fewer rows than features, in an orthonormal basis of the rows' span.

    Parameters
    ----------
    compact : Operand
        Matrices ``M_g`` of shape (m, m).
    frame : ndarray of shape (d, m)
        Orthonormal columns ``Q``: ``C_g = Q M_g Q'``.
    """

    frame: Array

    def __init__(self, compact: Operand, frame: Array) -> None:
        self._compact, self.frame = compact, frame
        self.shares, self.traces, self.compared = compact.shares, compact.traces, compact.compared
        self.n_features = len(frame)

    @property
    def compact(self) -> Operand:
        """The same groups in the coordinates of ``frame``."""
        return self._compact

    @computed_once
    def matrices(self) -> Array:
        """``C_g``, formed when they are asked for."""
        k, d = len(self.shares), self.n_features
        refuse_large_matrices(k, d)
        return np.asarray(self.frame @ self._matrices @ self.frame.T)

    @property
    def _matrices(self) -> Array:
        assert self._compact.matrices is not None
        return self._compact.matrices

    @property
    def diagonals(self) -> Array:
        """The variance of each feature in each group, of shape (k, d)."""
        return np.asarray(np.einsum("kij,ij->ki", self.frame @ self._matrices, self.frame))

    def relative(self) -> Self:
        """The same groups, with each error a share of the group's own total variance."""
        return type(self)(self._compact.relative(), self.frame)

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group, of shape (k, d, m) for V of shape (d, m)."""
        return np.asarray(self.frame @ self._compact.products(self.frame.T @ V))

    def errors(self, basis: Array) -> Array:
        """``R_g(U)`` of every group."""
        return self._compact.errors(self.frame.T @ basis)


def relative_units(shares: Array, traces: Array) -> tuple[Array, Array]:
    """What to divide the groups' matrices by so that errors become shares, and their new weights.

    ``C_g / tr C_g`` weighted by ``p_g tr C_g / tr C``, the group's share of all variance, add up to
    ``C / tr C``. So plain PCA stays the best overall, and the overall error becomes the share of
    all variance that is lost. A group without variance loses nothing. Rows that are all at the mean
    vary about it by rounding, of which no share is taken.
    """
    total = max(float(shares @ traces), TINY)
    varies = traces > NEGLIGIBLE * traces.max()
    return np.where(varies, traces, np.inf), shares * traces / total


def group_errors(traces: Array, matrices: Array, basis: Array) -> Array:
    """``R_g(U)`` of every group, from ``tr C_g`` and ``C_g``.

    What U keeps is a sum over the entries of ``C_g`` and ``U U'``, which is quicker than ``C_g U``.
    """
    return np.asarray(traces - matrices.reshape(len(traces), -1) @ (basis @ basis.T).ravel())
