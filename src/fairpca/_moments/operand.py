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

from contextlib import suppress
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Self

import numpy as np
from scipy.linalg import polar

from fairpca._moments.row_space import RowSpace
from fairpca._moments.tolerances import TINY, varying_groups
from fairpca._typing import Array, Mask

KEPT_BYTES = 1 << 28  # matrices that take more are not kept if they can be computed again
_FIT_AT_ONCE = "call fit(X, sensitive_features=groups) with all of X at once, which forms none"
FEW_FEATURES = 96  # matrices of up to this size are decomposed as a whole in a millisecond or two


class Operand:
    """Second moments of k groups, as matrices; a subclass may offer products with them only."""

    matrices: Array | None  # C_g, (k, d, d); None if there are only products with them
    shares: Array  # p_g, (k,)
    traces: Array  # tr C_g, the total variance of each group, (k,)
    compared: Mask  # the groups to be treated alike; others count in C only
    n_features: int
    frame: RowSpace | None = None  # the axes of ``compact``, if these are not the columns
    products_only: bool = False  # whether no matrices can be formed, not even in ``compact``

    def __init__(self, matrices: Array, shares: Array, compared: Mask | None = None) -> None:
        self.matrices = matrices
        self.shares = shares
        self.traces = np.trace(matrices, axis1=1, axis2=2)
        if compared is None:
            compared = np.ones(len(shares), dtype=bool)
        self.compared = compared
        self.n_features = matrices.shape[1]

    @property
    def compact(self) -> Operand:
        """The same groups in fewer coordinates, those of ``frame``, where that is possible."""
        return self

    @property
    def dense_matrices(self) -> Array:
        """``C_g``; an error if there are only products with them."""
        if self.matrices is None:
            problem = (
                f"this needs {self.n_features} x {self.n_features} matrices, too large to form"
            )
            raise ValueError(f"{problem}; pass fewer columns, or use FairPCA(n_components).")
        return self.matrices

    def relative(self) -> Self:
        """The same groups, with each error a share of the group's own total variance."""
        units, shares = relative_units(self.shares, self.traces)
        return type(self)(self.dense_matrices / units[:, None, None], shares, self.compared)

    def inside(self, matrices: Array) -> Operand:
        """The same groups within a span V, given ``V' C_g V``; what lies outside is always lost."""
        small = Operand(matrices, self.shares, self.compared)
        small.traces = self.traces
        return small

    def within(self, V: Array) -> Operand:
        """The same groups within the span of orthonormal columns."""
        matrices = V.T @ self.products(V)
        return self.inside(0.5 * (matrices + matrices.swapaxes(1, 2)))

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group, of shape (k, d, m) for V of shape (d, m)."""
        return np.asarray(self.dense_matrices @ V)

    def errors(self, basis: Array) -> Array:
        """``R_g(U)`` of every group."""
        if self.matrices is not None:  # <C_g, U U'> is faster to compute than C_g U
            of_groups = self.matrices.reshape(len(self.traces), -1)
            return np.asarray(self.traces - of_groups @ (basis @ basis.T).ravel())
        return np.asarray(self.traces - np.einsum("kij,ij->k", self.products(basis), basis))


class RowSpaceOperand(Operand):
    """Second moments ``C_g = Q M_g Q'`` of fewer rows than features."""

    frame: RowSpace

    def __init__(self, compact: Operand, frame: RowSpace) -> None:
        self._compact = compact  # the M_g
        self.frame = frame  # Q
        self.shares = compact.shares
        self.traces = compact.traces
        self.compared = compact.compared
        self.n_features = frame.n_columns

    @property
    def compact(self) -> Operand:
        return self._compact

    @cached_property
    def matrices(self) -> Array:  # type: ignore[override]
        """``C_g``, formed when they are asked for."""
        refuse_large_matrices(len(self.shares), self.n_features)
        Q = self.frame.axes
        return np.asarray(Q @ self._compact.dense_matrices @ Q.T)

    def relative(self) -> Self:
        return type(self)(self._compact.relative(), self.frame)

    def products(self, V: Array) -> Array:
        products = self._compact.products(self.frame.reduce(V))
        return np.array([self.frame.expand(one) for one in products])

    def errors(self, basis: Array) -> Array:
        return self._compact.errors(self.frame.reduce(basis))


class Complement:
    """The orthogonal complement of some directions.

    For orthonormal Q (d x m) there is a reflection ``H = H' = H^-1`` that turns the first m unit
    vectors into a basis of ``span Q``. Its other columns N are an orthonormal basis of the
    complement, so ``N' C N`` are second moments without the directions Q. With ``Q_1 = S P`` the
    polar decomposition of the first m rows of Q and ``Y = Q + [S; 0]``,

        H = I - Y (I + P)^-1 Y',

    and neither H nor N is ever formed: both products cost O(d m) for each column.
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
            inside = RowSpace(np.ascontiguousarray(self.reduce(operand.frame.axes).T))
            B = inside.coordinates
            M = operand.compact.dense_matrices
            return RowSpaceOperand(operand.compact.inside(B.T @ M @ B), inside)
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
    products_only = True

    def __init__(self, complement: Complement, operand: Operand) -> None:
        self._complement = complement
        self._operand = operand
        self.shares = operand.shares
        self.traces = operand.traces
        self.compared = operand.compared
        self.n_features = complement.n_features

    def products(self, V: Array) -> Array:
        """``N' C_g N V`` for every group."""
        products = self._operand.products(self._complement.lift(V))
        return np.array([self._complement.reduce(W) for W in products])


def relative_units(shares: Array, traces: Array) -> tuple[Array, Array]:
    """Divisors of the groups' matrices that turn errors into shares, and the groups' new weights.

    ``C_g / tr C_g`` weighted by ``p_g tr C_g / tr C``, the group's share of all variance, add up to
    ``C / tr C``: plain PCA stays the best overall, and the overall error becomes the share of all
    variance that is lost. A group that varies by rounding only loses nothing.
    """
    total = max(float(shares @ traces), TINY)
    return np.where(varying_groups(traces), traces, np.inf), shares * traces / total


# -- memory: matrices that do not fit are refused before they are formed --------------------------


def free_memory() -> float:
    """Bytes that this process can still use; infinite where the system does not say."""
    free = inf
    with suppress(OSError, ValueError, IndexError):
        available = Path("/proc/meminfo").read_text().split("MemAvailable:")[1]
        free = 1024.0 * int(available.split()[0])
    with suppress(OSError, ValueError):  # "max" is not a number and means no limit
        limit, used = (Path(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
        free = min(free, float(int(limit.read_text()) - int(used.read_text())))
    return max(free, 0.0)


def refuse_beyond_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Raise an error if this takes more memory than is free."""
    free = free_memory()
    if n_bytes > free:
        sizes = f"{n_bytes / 1e9:.2g} GB of memory, and {free / 1e9:.2g} GB are free"
        raise MemoryError(f"{what} need {sizes}; {remedy}")


def refuse_large_matrices(k: int, d: int, copies: int = 2, otherwise: str = _FIT_AT_ONCE) -> None:
    """Refuse second moments of k groups of d columns for which there is no memory."""
    what = f"the {d} x {d} matrices of {k} groups"
    remedy = f"pass fewer columns, or {otherwise}."
    refuse_beyond_memory(8.0 * copies * k * d * d, what, remedy)
