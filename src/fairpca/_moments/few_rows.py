"""Sums over fewer rows than columns: a factor of the Gram matrices, which is smaller than they are.

Second moments of n rows have rank n, so d x d matrices would hold no more than the rows do. The
rows are kept, each minus the mean of its group and times the root of its weight: the Gram matrix of
group g about its mean is ``F_g' F_g`` with F_g its rows. Two sets of rows of a group, of weights n
and m and means u and v, are merged by stacking their rows and one more,

    sqrt(n m / (n + m)) (u - v)'

With ``Q`` (d x q) orthonormal axes of all F_g and of the group means about the overall mean,

    C_g = Q M_g Q'

with small matrices ``M_g`` (q x q), in which everything is computed
(:mod:`fairpca._moments.row_space`). Memory is of order n d, time of order n^2 d.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairpca._blas import single_threaded_blas
from fairpca._input.rows import Rows, SparseRows, refuse_unusable_numbers
from fairpca._moments.operand import (
    FEW_FEATURES,
    Operand,
    RowSpaceOperand,
    refuse_beyond_memory,
    refuse_large_matrices,
)
from fairpca._moments.row_space import RowSpace
from fairpca._moments.sums import GroupSums, Sums, all_at_center, means_from
from fairpca._moments.tolerances import SAFE_TO_SQUARE, TINY
from fairpca._typing import Array, Center, Codes, Mask


def are_few(n_rows: int, n_columns: int) -> bool:
    """Whether keeping the rows is cheaper than multiplying them."""
    return n_columns > FEW_FEATURES and 2 * n_rows <= n_columns


@dataclass(frozen=True)
class FewRows(GroupSums):
    """Counts and sums of k groups, and their centred rows."""

    factor: Array  # F, (n, d)
    codes: Codes  # the group of each row of F, (n,)

    @classmethod
    def of(cls, rows: Rows, codes: Codes, k: int, weights: Array | None) -> FewRows:
        """A centred copy of these rows; refuses missing and very large numbers."""
        block: Any = rows.block(0, rows.n_rows)
        F = np.array(block.toarray() if isinstance(rows, SparseRows) else block, np.float64)
        if not max(F.max(), -F.min()) < SAFE_TO_SQUARE:  # true for NaN, too
            refuse_unusable_numbers(rows)
        total = GroupSums.of_nothing(k, rows.n_features)
        w = weights
        if w is None:
            w = np.ones(len(F))
        for g in range(k):
            members = np.flatnonzero((codes == g) & (w > 0))
            if len(members):
                X = F[members]
                n = w[members]
                total.rows[g] = len(X)
                total.weights[g] = n.sum()
                total.shifts[g] = X[0]
                X -= total.shifts[g]
                total.sums[g] = n @ X
                X -= total.sums[g] / total.weights[g]
                F[members] = np.sqrt(n)[:, None] * X
        return cls(**vars(total), factor=F[w > 0], codes=codes[w > 0])

    @classmethod
    def combined(cls, k: int, d: int, parts: Sequence[tuple[FewRows, Sequence[int]]]) -> FewRows:
        """Rows of k groups; group g of a part is called ``places[g]``."""
        total = GroupSums.of_nothing(k, d)
        factors = [np.zeros((0, d))]
        codes = [np.zeros(0, int)]
        for part, places in parts:
            factors.append(part.factor)
            codes.append(np.array(places, np.intp)[part.codes])
            for there, here in enumerate(places):
                n = total.weights[here]
                m = part.weights[there]
                if n > 0 and m > 0:
                    apart = total.shifts[here] - part.shifts[there]
                    apart += total.sums[here] / n - part.sums[there] / m
                    factors.append(np.sqrt(n * m / (n + m)) * apart[None])
                    codes.append(np.array([here]))
                total.add_group(here, part, there)
        return cls(**vars(total), factor=np.concatenate(factors), codes=np.concatenate(codes))

    def moved(self, origin: Array) -> FewRows:
        """Rows about their own means need not be moved."""
        return self

    def second_moments(self, center: Center) -> Array:
        return self.multiplied().second_moments(center)

    def operand(self, center: Center, compared: Mask | None) -> Operand:
        """The second moments in the space that the rows span."""
        n, d = self.factor.shape
        n_bytes = 8.0 * d * (n + len(self.rows))
        refuse_beyond_memory(n_bytes, f"{n} rows of {d} columns", "pass fewer columns.")
        B = self._space.coordinates
        means = means_from(center, B[n:], compared)
        squares = means_from(center, self.from_mean, compared) ** 2
        M = np.empty((len(self.rows), len(B), len(B)))
        for g, M_g in enumerate(M):
            own = np.vstack([B[:n][self.codes == g] / np.sqrt(self.weights[g]), means[g]])
            np.matmul(own.T, own, out=M_g)
            F_g = self.factor[self.codes == g]
            squares[g] += np.einsum("ij,ij->j", F_g, F_g) / self.weights[g]
        M[all_at_center(squares, self.mean)] = 0.0
        return RowSpaceOperand(Operand(M, self.shares, compared), self._space)

    @cached_property
    def _space(self) -> RowSpace:
        return RowSpace(self.factor, self.from_mean)

    def in_row_space(self) -> FewRows:
        """The same rows about the overall mean, in the coordinates of the space that they span."""
        n = len(self.factor)
        origin = (self.weights @ self.shifts + self.sums.sum(axis=0)) / self.weights.sum()
        B = RowSpace(*self._rows_from(origin)).coordinates
        sums = np.sqrt(self.weights)[:, None] * B[n:]
        return replace(self, shifts=np.zeros_like(sums), sums=sums, factor=B[:n])

    def variances(self) -> tuple[Array, Array]:
        within = np.einsum("ij,ij->j", self.factor, self.factor) / self.weights.sum()
        return np.asarray(within), np.asarray(self.shares @ self.from_mean**2)

    def take(self, groups: Sequence[int]) -> FewRows:
        g = list(groups)
        place = np.full(len(self.rows), -1)
        place[g] = range(len(g))
        codes = place[self.codes]
        sums = self.rows[g], self.weights[g], self.shifts[g], self.sums[g]
        return FewRows(*sums, self.factor[codes >= 0], codes[codes >= 0])

    def errors(self, bases: Sequence[Array], origin: Array) -> tuple[Array, Array]:
        """Squared errors of projections through a point, as :meth:`Sums.errors`."""
        rows = np.concatenate(self._rows_from(origin))
        distances = self._squares(rows)
        return np.array([distances - self._squares(rows @ U) for U in bases]), distances

    def lost(self, encode: Array, decode: Array, origin: Array) -> tuple[Array, Array]:
        """Squared errors of rows rebuilt about a point, as :meth:`Sums.lost`."""
        rows = np.concatenate(self._rows_from(origin))
        return self._column_squares(rows - rows @ encode @ decode), self._column_squares(rows)

    def _rows_from(self, origin: Array) -> tuple[Array, Array]:
        """Rows whose products about a point are those of all rows: F, and the groups' means."""
        n = np.maximum(self.weights, TINY)[:, None]
        means = np.sqrt(n) * (self.shifts - origin + self.sums / n)
        return self.factor, np.where(self.weights[:, None] > 0, means, 0.0)

    def _column_squares(self, rows: Array) -> Array:
        """Squares of such rows, summed by group."""
        groups = np.append(self.codes, np.arange(len(self.rows)))
        each = [rows[groups == g] for g in range(len(self.rows))]
        return np.array([np.einsum("ij,ij->j", own, own) for own in each])

    def _squares(self, rows: Array) -> Array:
        """Squared lengths of such rows, summed by group."""
        k = len(self.rows)
        groups = np.append(self.codes, np.arange(k))
        lengths = np.einsum("ij,ij->i", rows, rows)
        return np.asarray(np.bincount(groups, lengths, minlength=k), np.float64)

    def select(self, columns: list[int]) -> FewRows:
        shifts = self.shifts[:, columns]
        sums = self.sums[:, columns]
        return replace(self, shifts=shifts, sums=sums, factor=self.factor[:, columns])

    def divided(self, scale: Array) -> FewRows:
        shifts = self.shifts / scale
        sums = self.sums / scale
        return replace(self, shifts=shifts, sums=sums, factor=self.factor / scale)

    def mixed(self) -> FewRows:
        """The same sums from other rows, none of which is a row of the data."""
        groups = range(len(self.rows))
        with single_threaded_blas():
            mixed = [np.linalg.qr(self.factor[self.codes == g], mode="r") for g in groups]
        codes = np.repeat(groups, [len(F_g) for F_g in mixed])
        return replace(self, factor=np.concatenate(mixed), codes=codes)

    def multiplied(self) -> Sums:
        """The same sums with Gram matrices."""
        k, d = self.sums.shape
        refuse_large_matrices(k, d)
        grams = np.zeros((k, d, d))
        for g, s in enumerate(self.sums):
            F_g = self.factor[self.codes == g]
            grams[g] = F_g.T @ F_g + np.outer(s, s / max(self.weights[g], TINY))
        return Sums(self.rows, self.weights, self.shifts, self.sums, grams)
