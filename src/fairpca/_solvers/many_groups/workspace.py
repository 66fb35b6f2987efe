"""Where a k-group problem is solved: a span of features, and a unit for the errors.

One feature may vary a million times as much as another, and then every good projection keeps it.
What is left to decide has the size of PCA's errors, so the largest of them is the unit of limits,
tolerances and the smoothing of the dual. ``noise`` is the rounding of the large numbers in this
unit.

With few features the span is the whole space. With more it starts from PCA and grows by the
eigenvectors met on the way; it ends with a few dozen vectors, however many features there are.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairpca._moments.operand import FEW_FEATURES
from fairpca._moments.tolerances import (
    KEPT,
    NEGLIGIBLE,
    ROOT_EPS,
    arithmetic_noise,
    moment_noise,
    parity_tolerance,
)
from fairpca._problems.linear import LinearProblem
from fairpca._solvers.eigenspaces.dense import Eigenspaces, Spaces
from fairpca._solvers.eigenspaces.lapack import eigen
from fairpca._solvers.eigenspaces.many_features import ThinSpaces, bordered
from fairpca._typing import Array

MAX_STEPS = 60  # every loop has its own end; this only stops one that rounding keeps going


@dataclass(frozen=True)
class Proof:
    """Prices, and the bound that they prove, less rounding.

    ``reach`` is the projection that attains the bound, None where the span is the whole space. A
    bound that is not ``certain`` rests on eigenvectors that are not proven to be the leading ones.
    """

    prices: Array
    bound: float
    reach: Array | None = None
    certain: bool = True


class Turns(NamedTuple):
    """Small turns of a subspace, ``U + N X'`` with X of shape (r, m - r).

    U and the complement N are turned such that ``U'WU`` and ``N'WN`` are diagonal.
    """

    U: Array
    N: Array
    slopes: Array  # J: group errors change by ``<J_g, X>``
    curvature: Array  # and their weighted sum by ``sum_ij D_ij X_ij^2 / 2`` more


class Workspace:
    """A span, the groups' second moments in it, and their unit.

    ``basis`` has orthonormal columns V; ``matrices`` are the ``V' C_g V`` and ``traces`` the
    ``tr C_g``, both in units, by default of the largest error under PCA. ``noise`` is rounding, in
    units. Limits count as kept if exceeded by no more than ``kept``, in units, or ``rounding``, not
    in units. Groups are equal if their errors differ by no more than ``parity``, not in units. A
    span that is ``closed`` is the whole space and does not grow.
    """

    def __init__(self, spaces: Spaces, unit: float | None = None) -> None:
        self.spaces = spaces
        self.rank = spaces.rank
        self.pca = pca = spaces.pca
        largest = float(spaces.traces.max())
        # Errors far below the square root of the noise are half noise themselves.
        self.unit = unit or max(float(pca.errors.max()), ROOT_EPS * largest) or 1.0
        self.noise = arithmetic_noise(spaces.n_features) * largest / self.unit
        self.kept = moment_noise(np.ones(1)) + 8 * KEPT * self.noise
        self.rounding = self.kept * self.unit
        self.parity = parity_tolerance(pca.errors[spaces.compared], spaces.traces)
        self.traces = spaces.traces / self.unit
        d = spaces.n_features
        self.closed = d <= FEW_FEATURES
        if self.closed:
            self.basis = np.eye(d)
            self.matrices = spaces.products(self.basis) / self.unit
        else:
            self.basis = np.zeros((d, 0))
            self.matrices = np.zeros((len(self.traces), 0, 0))
            self.grow(pca.basis)
            if self.basis.shape[1] <= self.rank:
                self.grow(np.eye(d, self.rank + 1))

    def grow(self, block: Array) -> bool:
        """Add the columns of a block to the span; False if all of them were in it."""
        for _ in range(2):
            block = block - self.basis @ (self.basis.T @ block)
            left, sizes, _ = np.linalg.svd(block, full_matrices=False)
            block = left[:, sizes > ROOT_EPS]
        if block.shape[1]:
            products = self.spaces.products(block) / self.unit
            self.matrices = bordered(self.matrices, self.basis, block, products)
            self.basis = np.hstack([self.basis, block])
        return bool(block.shape[1])

    def weighted(self, weights: Array) -> Array:
        """``W = sum_g w_g C_g`` in the span."""
        return np.asarray(np.tensordot(weights, self.matrices, 1))

    def leading(self, weights: Array) -> Array:
        """The leading eigenvectors of ``W``, in the span; it grows by them unless they are PCA."""
        if not self.closed and weights is not self.spaces.shares:
            self.grow(self.spaces.top(weights).basis)
        return eigen(self.weighted(weights))[1][:, -self.rank :]

    def turns(self, basis: Array, weights: Array) -> Turns:
        """How the errors change as a subspace of the span turns, for these weights."""
        W = self.weighted(weights)
        N = np.linalg.qr(basis, mode="complete")[0][:, basis.shape[1] :]
        inside, turn_u = eigen(basis.T @ W @ basis)
        outside, turn_n = eigen(N.T @ W @ N)
        U = basis @ turn_u
        N = N @ turn_n
        slopes = -2.0 * (self.products(U).transpose(0, 2, 1) @ N)
        curvature = 2.0 * np.abs(inside[:, np.newaxis] - outside)
        return Turns(U, N, slopes, curvature)

    def products(self, basis: Array) -> Array:
        """``C_g U`` of all groups in one product, of shape (k, m, r)."""
        k, m = self.matrices.shape[:2]
        return np.asarray((self.matrices.reshape(k * m, m) @ basis).reshape(k, m, -1))

    def errors(self, basis: Array) -> Array:
        """``R_g`` of a subspace of the span, in units."""
        return np.asarray(self.traces - np.einsum("gai,ai->g", self.products(basis), basis))

    def prove(self, problem: LinearProblem, prices: Array, *, certain: bool = True) -> Proof:
        """The bound of these prices: one eigenproblem, of all features."""
        weights = problem.weights(prices)
        if self.closed:
            self.spaces.n_eigensolves += 1
            kept = eigen(self.weighted(weights))[0][-self.rank :].sum()
            least = float(weights @ self.traces - kept)
            reach = None
            certain = True
        else:
            if isinstance(self.spaces, ThinSpaces) and not certain:
                point = self.spaces.top(weights, proven=False)
            else:
                point = self.spaces.top(weights)
                certain = True
            least = point.bound / self.unit
            reach = point.basis
        # The terms can be far larger than their sum.
        terms = np.abs(weights) @ self.traces + np.abs(problem.limits) @ np.abs(prices)
        rounding = arithmetic_noise(self.basis.shape[0]) * float(terms)
        bound = least - float(problem.limits @ prices) - rounding
        return Proof(prices, bound, reach, certain)

    def padded(self, basis: Array) -> Array:
        """A subspace found before the span grew, in the coordinates of the present span."""
        return np.pad(basis, ((0, self.basis.shape[1] - len(basis)), (0, 0)))

    def face(self, weights: Array) -> tuple[Array, Workspace]:
        """The projections that are optimal for given weights, if eigenvalue r of ``W`` is multiple.

        All of them contain the eigenvectors of larger eigenvalues, which are returned first. The
        rest of U lies in the workspace returned, spanned by the eigenvectors of eigenvalue r. Our
        own span grows by both, unless there are too many features to decompose ``W`` as a whole.
        """
        if not self.closed and isinstance(self.spaces, Eigenspaces):
            self.grow(np.hstack(self._split(self.spaces.matrix(weights) / self.unit)))
        fixed, block = self._split(self.weighted(weights))
        inner = copy(self)
        inner.traces = self.traces - np.einsum("gai,ai->g", self.matrices @ fixed, fixed)
        inner.rank = self.rank - fixed.shape[1]
        inner.closed = True
        inner.basis = self.basis @ block
        inner.matrices = block.T @ self.matrices @ block
        return fixed, inner

    def _split(self, W: Array) -> tuple[Array, Array]:
        """Eigenvectors of ``W``: of eigenvalues above the r-th one, and of those equal to it."""
        values, vectors = eigen(W)
        height = values - values[-self.rank]
        size = max(abs(float(values[-self.rank])), 1.0)
        width = max(100 * NEGLIGIBLE * size, 8 * KEPT * self.noise)  # eigenvalues nearer are equal
        return vectors[:, height > width], vectors[:, np.abs(height) <= width]
