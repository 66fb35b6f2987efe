"""The space that a few rows of many columns span, in coordinates of its own.

For rows Z (n x d) the Cholesky decomposition with pivots of the small matrix ``Z Z'`` gives
``Z = B Q'``: coordinates B (n x n) in orthonormal axes Q (d x n). B has the lengths and angles of
the rows, so a table of n rows is a problem of n columns. Q is known by the rows and never formed:
q of them, with triangular coordinates L, have ``Q = Z_q' L'^-1``. The other ``n - q`` columns of B
are zero, and their axes lie anywhere outside.

Both B and Q are as exact as second moments are: rounding of ``Z Z'``, relative to its largest
number. A decomposition of Z itself would keep more digits than any sum of squares can use.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from fairpca._blas import parallel_map
from fairpca._moments.tolerances import MEAN_NOISE, ROOT_EPS
from fairpca._typing import Array, Codes

_COLUMNS = 2048  # multiplied at a time


class RowSpace:
    """Coordinates of the rows of some blocks, and the axes that they refer to."""

    coordinates: Array  # B

    def __init__(self, *blocks: Array) -> None:
        self._blocks = blocks
        products = _products_of_rows(blocks)
        noise = MEAN_NOISE * float(products.diagonal().max())
        factor, order, rank, _ = dpstrf(products, tol=noise, lower=1)
        order = order - 1
        self._picked: Codes = order[:rank]
        self._triangle = factor[:rank, :rank]
        self.coordinates = np.zeros_like(products)
        self.coordinates[order, :rank] = np.tril(factor)[:, :rank]

    @property
    def n_columns(self) -> int:
        """The number of columns of the rows."""
        return int(self._blocks[0].shape[1])

    def expand(self, V: Array) -> Array:
        """``Q V``: from coordinates to columns."""
        rank = len(self._picked)
        mixed = np.zeros_like(V)
        mixed[self._picked] = solve_triangular(self._triangle, V[:rank], lower=True, trans=1)
        edges = np.cumsum([len(block) for block in self._blocks[:-1]])
        parts = zip(self._blocks, np.split(mixed, edges), strict=True)
        expanded = sum(block.T @ part for block, part in parts)
        if np.abs(V[rank:]).max(initial=0.0) > ROOT_EPS:
            expanded += self._outside @ V[rank:]
        return np.asarray(expanded)

    def lift(self, U: Array) -> Array:
        """``Q U`` for orthonormal columns, which stay orthonormal to rounding."""
        lifted = self.expand(U)
        triangle = np.linalg.cholesky(lifted.T @ lifted)
        return np.ascontiguousarray(solve_triangular(triangle, lifted.T, lower=True).T)

    def reduce(self, W: Array) -> Array:
        """``Q' W``: from columns to coordinates, without those on which no row lies."""
        rank = len(self._picked)
        along = np.concatenate([block @ W for block in self._blocks])
        reduced = np.zeros_like(along)
        reduced[:rank] = solve_triangular(self._triangle, along[self._picked], lower=True)
        return reduced

    @cached_property
    def axes(self) -> Array:
        """Q."""
        return self.lift(np.eye(len(self.coordinates)))

    @cached_property
    def _outside(self) -> Array:
        """The axes on which no row lies."""
        n_outside = len(self.coordinates) - len(self._picked)
        outside = np.random.default_rng(0).standard_normal((self.n_columns, n_outside))
        for _ in range(2):  # twice is enough
            outside = np.linalg.qr(outside - self.expand(self.reduce(outside)))[0]
        return outside


def _products_of_rows(blocks: Sequence[Array]) -> Array:
    """``Z Z'``, by ranges of columns on all threads."""
    d = blocks[0].shape[1]

    def of_columns(first: int) -> Array:
        rows = np.concatenate([block[:, first : first + _COLUMNS] for block in blocks])
        return np.asarray(rows @ rows.T)

    return np.asarray(sum(parallel_map(of_columns, range(0, d, _COLUMNS))))
