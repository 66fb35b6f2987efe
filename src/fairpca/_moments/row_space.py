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

from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from fairpca._blas import blas_threads, parallel_map
from fairpca._moments.tolerances import MEAN_NOISE, ROOT_EPS
from fairpca._typing import Array, Codes


class RowSpace:
    """Coordinates of some rows, and the axes that they refer to."""

    coordinates: Array  # B

    def __init__(self, rows: Array) -> None:
        self._rows = rows
        products = _products_of_rows(rows)
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
        return int(self._rows.shape[1])

    def expand(self, V: Array) -> Array:
        """``Q V``: from coordinates to columns."""
        rank = len(self._picked)
        mixed = np.zeros_like(V)
        mixed[self._picked] = solve_triangular(self._triangle, V[:rank], lower=True, trans=1)
        expanded = self._rows.T @ mixed
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
        reduced = np.zeros((len(self._rows), W.shape[1]))
        picked = (self._rows @ W)[self._picked]
        reduced[:rank] = solve_triangular(self._triangle, picked, lower=True)
        return reduced

    @cached_property
    def axes(self) -> Array:
        """Q."""
        return self.lift(np.eye(len(self._rows)))

    @cached_property
    def _outside(self) -> Array:
        """The axes on which no row lies."""
        n, d = self._rows.shape
        outside = np.random.default_rng(0).standard_normal((d, n - len(self._picked)))
        for _ in range(2):  # twice is enough
            outside = np.linalg.qr(outside - self.expand(self.reduce(outside)))[0]
        return outside


def _products_of_rows(rows: Array) -> Array:
    """``Z Z'``, on all threads."""
    n_threads = blas_threads()
    parts = np.array_split(rows, n_threads, axis=1)
    return np.asarray(sum(parallel_map(lambda part: part @ part.T, parts, n_threads)))
