"""Which way to find eigenspaces: all features at once, or in a basis that grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from fairpca._solvers.eigenspaces.growing import GrowingBasis, HasDecisivePoints, SnapshotBasis
from fairpca._solvers.eigenspaces.operand import (
    DenseFamily,
    DenseOperand,
    Family,
    Operand,
    Point,
    Products,
    group_errors,
)
from fairpca._threads import single_threaded_blas
from fairpca._typing import Array

S = TypeVar("S", bound=HasDecisivePoints)
T = TypeVar("T")
F = TypeVar("F", bound=Family)

# What is fastest from how many features on, and from how many for each component.
_SNAPSHOTS_FROM, _SNAPSHOTS_PER_RANK = 300, 15
_GROWING_BASIS_FROM, _GROWING_BASIS_PER_RANK = 600, 40
_BASIS_PER_RANK = 20  # a growing basis ends with about half as many columns per component
_BASIS_BYTES = 1 << 29  # of a growing basis without matrices to fall back on


@dataclass(frozen=True)
class _Eigenspace:
    """One eigenspace as a problem of its own."""

    point: Point

    @property
    def decisive(self) -> tuple[Point, ...]:
        return (self.point,)

    def lift(self, V: Array, slack: float) -> _Eigenspace:
        point = self.point
        return _Eigenspace(replace(point, basis=V @ point.basis, bound=point.bound - slack))


class _WeightedSum:
    """``M(w)`` of an operand without matrices, as the only group of another."""

    def __init__(self, operand: Operand, weights: Array) -> None:
        self._operand = operand
        self._weights = weights
        self.shares = np.ones(1)
        self.traces = np.array([weights @ operand.traces])
        self.n_features = operand.n_features

    def products(self, V: Array) -> Array:
        return np.tensordot(self._weights, self._operand.products(V), axes=1)[np.newaxis]


class ThinFamily:
    """A family of many features: each eigenspace in a growing basis of its own.

    The basis starts from the eigenspace found last and needs products with ``M(w)`` only, so where
    there are matrices its cost does not rise with the number of groups, and an eigenspace that is
    not proven to be the first one is found densely. Where there are none and the search ends early,
    the bound of a point is as much lower as it can be wrong.
    """

    def __init__(self, operand: Operand, rank: int) -> None:
        self.operand = operand
        self.shares = operand.shares
        self.traces = operand.traces
        self.rank = rank
        self.n_features = operand.n_features
        self.n_eigensolves = 0
        self._last = np.zeros((operand.n_features, 0))

    def top(self, weights: Array) -> Point:
        """``U(w)``."""
        self.n_eigensolves += 1
        matrix = self._sum(weights)
        basis = _growing_basis(matrix, self.rank, self._last)
        found = basis.solve(lambda small: _Eigenspace(small.top(np.ones(1)))).point
        proven = isinstance(matrix, DenseOperand) and matrix.is_top(np.ones(1), found.basis)
        if isinstance(self.operand, DenseOperand) and not (basis.converged and proven):
            return self.operand.family(self.rank).top(weights)
        self._last = found.basis
        return replace(found, weights=weights, errors=self.errors(self._last))

    def errors(self, basis: Array) -> Array:
        """``R_g(U)`` of every group."""
        return group_errors(self.traces, self.products(basis), basis)

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group, of shape (k, d, m)."""
        return self.operand.products(V)

    def _sum(self, weights: Array) -> Products:
        if isinstance(self.operand, DenseOperand):
            return DenseOperand(np.tensordot(weights, self.operand.C, axes=1)[None], np.ones(1))
        return _WeightedSum(self.operand, weights)


def _growing_basis(operand: Products, rank: int, start: Array | None = None) -> GrowingBasis:
    """A basis that gives up early where matrices are there to fall back on."""
    d, k = operand.n_features, len(operand.shares)
    if isinstance(operand, DenseOperand):
        return GrowingBasis(operand, rank, limit=d // 2, start=start)
    capacity = max(_BASIS_BYTES // (8 * d * (k + 1)), 8 * rank + 16)
    return GrowingBasis(operand, rank, _BASIS_PER_RANK * max(rank, 8), capacity, start)


def _snapshot_basis(operand: DenseOperand, rank: int) -> SnapshotBasis:
    return SnapshotBasis(operand, rank, limit=operand.n_features // 2)


class EigenSolver:
    """Solves problems for one operand and rank the fastest way.

    Few features, or components nearly as many, are decomposed whole; more features in a basis of
    snapshots; very many in a basis of residuals. Where a basis gives up, the next simpler way is
    taken. A basis made for one problem serves the next. An operand that has no matrices gets the
    best that the growing basis finds.
    """

    def __init__(self, operand: Operand, rank: int) -> None:
        self.operand = operand
        self.rank = rank
        self.n_eigensolves = 0
        self._basis: GrowingBasis | None = None
        d = operand.n_features
        dense = isinstance(operand, DenseOperand)
        self._thin = not dense or d >= max(_GROWING_BASIS_FROM, _GROWING_BASIS_PER_RANK * rank)
        self._ways: list[Callable[[Any, int], GrowingBasis]] = []
        if self._thin:
            self._ways.append(_growing_basis)
        if dense and d >= max(_SNAPSHOTS_FROM, _SNAPSHOTS_PER_RANK * rank):
            self._ways.append(_snapshot_basis)

    def solve(self, problem: Callable[[DenseFamily], S]) -> S:
        """Solve ``problem`` and count its eigensolves."""
        while self._basis is not None or self._ways:
            with single_threaded_blas():
                self._basis = self._basis or self._ways.pop(0)(self.operand, self.rank)
                solution = self._basis.solve(problem)
            self.n_eigensolves += self._basis.n_eigensolves
            self._basis.n_eigensolves = 0
            if self._basis.converged or not isinstance(self.operand, DenseOperand):
                return solution
            self._basis = None
        assert isinstance(self.operand, DenseOperand)
        return self._solve_in(self.operand.family(self.rank), problem)

    def solve_whole(self, problem: Callable[[Family], T]) -> T:
        """Solve with all features at once: for problems that find a small basis themselves."""
        if self._thin:
            return self._solve_in(ThinFamily(self.operand, self.rank), problem)
        assert isinstance(self.operand, DenseOperand)
        return self._solve_in(self.operand.family(self.rank), problem)

    def _solve_in(self, family: F, problem: Callable[[F], T]) -> T:
        with single_threaded_blas():
            solution = problem(family)
        self.n_eigensolves += family.n_eigensolves
        return solution
