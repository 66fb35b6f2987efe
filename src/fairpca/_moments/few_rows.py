"""Sums over fewer rows than columns: a factor of the Gram matrices, smaller than these.

n rows of d columns have second moments of rank n. Their d x d matrices would take d^2 numbers and
the time of n d^2 multiplications, and hold no more than the rows do. So the rows are kept, each
minus the mean of its group and times the root of its weight: the Gram matrix about the mean of
group g is ``F_g' F_g`` with F_g its rows. Two sets of rows of a group, of weights n and m and means
u and v, are merged by stacking their rows and one more,

    sqrt(n m / (n + m)) (u - v)'

Everything is computed in the space that the rows span: with ``Q`` (d x q) an orthonormal basis of
all F_g and of the group means about the overall mean,

    C_g = Q M_g Q'

exactly, with small matrices ``M_g`` (q x q). Memory is of order n d, time of order n^2 d.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import qr

from fairpca._blas import single_threaded_blas
from fairpca._input.rows import Rows, SparseRows, refuse_unusable_numbers
from fairpca._moments.accumulate import SAFE_TO_SQUARE, accumulate
from fairpca._moments.memory import refuse_beyond_memory, refuse_large_matrices
from fairpca._moments.operand import TINY, Operand, RowSpaceOperand
from fairpca._moments.sums import GroupSums, Sums, means_from
from fairpca._typing import Array, Center, Codes, Mask

_MANY_COLUMNS = 160  # with fewer, matrices cost nothing


def are_few(n_rows: int, n_columns: int) -> bool:
    """Whether keeping the rows is cheaper than multiplying them."""
    return n_columns >= _MANY_COLUMNS and 2 * n_rows <= n_columns


@dataclass(frozen=True)
class FewRows(GroupSums):
    """Counts and sums of k groups, and their centred rows.

    Attributes
    ----------
    blocks : tuple of (ndarray of shape (n, d), ndarray of shape (n,))
        Rows ``F``, and the group of each.
    """

    blocks: tuple[tuple[Array, Codes], ...]

    @classmethod
    def of(cls, rows: Rows, codes: Codes, k: int, weights: Array | None) -> FewRows:
        """A centred copy of these rows; refuses missing and very large numbers."""
        block: Any = rows.block(0, rows.n_rows)
        F = np.array(block.toarray() if isinstance(rows, SparseRows) else block, np.float64)
        if not np.abs(F).max() < SAFE_TO_SQUARE:  # with NaN it is not
            refuse_unusable_numbers(rows)
        total = GroupSums.of_nothing(k, rows.n_features)
        w = np.ones(len(F)) if weights is None else weights
        for g in range(k):
            members = np.flatnonzero((codes == g) & (w > 0))
            if len(members):
                X, n = F[members], w[members]
                total.rows[g], total.weights[g], total.shifts[g] = len(X), n.sum(), X[0]
                X -= total.shifts[g]
                total.sums[g] = n @ X
                X -= total.sums[g] / total.weights[g]
                F[members] = np.sqrt(n)[:, None] * X
        counted = w > 0
        return cls(**vars(total), blocks=((F[counted], codes[counted]),))

    @classmethod
    def combined(cls, k: int, d: int, parts: Iterable[tuple[FewRows, Sequence[int]]]) -> FewRows:
        """Rows of k groups; group g of a part is called ``places[g]``."""
        total, blocks = GroupSums.of_nothing(k, d), []
        for part, places in parts:
            at, apart, where = np.array(places, np.intp), [], []
            for there, here in enumerate(places):
                n, m = total.weights[here], part.weights[there]
                if n > 0 and m > 0:
                    origin = part.shifts[there]
                    between = total.mean_of(here, origin) - part.mean_of(there, origin)
                    apart.append(np.sqrt(n * m / (n + m)) * between)
                    where.append(here)
                total.add_group(here, part, there)
            blocks += [(F, at[codes]) for F, codes in part.blocks]
            if apart:
                blocks.append((np.array(apart), np.array(where, np.intp)))
        return cls(**vars(total), blocks=tuple(blocks))

    @property
    def n_kept(self) -> int:
        """How many rows ``F`` has."""
        return sum(len(codes) for _, codes in self.blocks)

    @cached_property
    def factor(self) -> tuple[Array, Codes]:
        """``F``, and the group of each of its rows."""
        if len(self.blocks) == 1:
            return self.blocks[0]
        F, codes = (np.concatenate(part) for part in zip(*self.blocks, strict=True))
        return F, codes

    def second_moments(self, center: Center) -> Array:
        """``C_g`` of every group, of shape (k, d, d)."""
        return self.multiplied().second_moments(center)

    def operand(self, center: Center, compared: Mask | None) -> Operand:
        """The second moments in the space that the rows span."""
        (F, codes), (Q, R) = self.factor, self.space()
        M = np.zeros((len(self.rows), len(R), len(R)))
        means = means_from(center, R[:, len(F) :].T, compared)
        for g, (M_g, n) in enumerate(zip(M, self.weights, strict=True)):
            own = R[:, : len(F)][:, codes == g]
            M_g += own @ own.T / n + np.outer(means[g], means[g])
        return RowSpaceOperand(Operand(M, self.shares, compared), Q)

    def space(self) -> tuple[Array, Array]:
        """``Q``, and the coordinates of the rows and of the group means about the mean."""
        F, d = self.factor[0], self.sums.shape[1]
        what = f"{len(F)} rows of {d} columns"
        refuse_beyond_memory(3.0 * 8 * d * (len(F) + len(self.rows)), what, "pass fewer columns.")
        spanning = np.vstack([F, self.from_mean]).T
        with single_threaded_blas():
            Q, R = qr(spanning, overwrite_a=True, mode="economic", check_finite=False)
        return np.asarray(Q), np.asarray(R)

    def variances(self) -> tuple[Array, Array]:
        """Variances of the columns about the group means, and of the group means about the mean."""
        within = np.einsum("ij,ij->j", self.factor[0], self.factor[0]) / self.weights.sum()
        return np.asarray(within), np.asarray(self.shares @ self.from_mean**2)

    def take(self, groups: Sequence[int]) -> FewRows:
        """Sums of some of the groups."""
        chosen, place = list(groups), np.full(len(self.rows), -1)
        place[chosen] = range(len(chosen))
        F, codes = self.factor
        of_chosen = place[codes] >= 0
        return FewRows(
            self.rows[chosen],
            self.weights[chosen],
            self.shifts[chosen],
            self.sums[chosen],
            ((F[of_chosen], place[codes][of_chosen]),),
        )

    def errors(self, bases: Sequence[Array], origin: Array) -> tuple[Array, Array]:
        """Squared errors of projections through a point, as :meth:`Sums.errors`."""
        (F, codes), k = self.factor, len(self.rows)
        n = np.maximum(self.weights, TINY)[:, None]
        means = np.sqrt(n) * (self.shifts - origin + self.sums / n)
        rows = np.vstack([F, np.where(self.weights[:, None] > 0, means, 0.0)])
        groups = np.append(codes, np.arange(k))

        def squares(rows: Array) -> Array:
            lengths = np.einsum("ij,ij->i", rows, rows)
            return np.asarray(np.bincount(groups, lengths, minlength=k), np.float64)

        distances = squares(rows)
        return np.array([distances - squares(rows @ U) for U in bases]), distances

    def select(self, columns: list[int]) -> FewRows:
        """Sums of some of the columns, in this order."""
        F, codes = self.factor
        shifts, sums = self.shifts[:, columns], self.sums[:, columns]
        return FewRows(self.rows, self.weights, shifts, sums, ((F[:, columns], codes),))

    def divided(self, scale: Array) -> FewRows:
        """Sums of the rows with each column divided by its scale."""
        F, codes = self.factor
        shifts, sums = self.shifts / scale, self.sums / scale
        return FewRows(self.rows, self.weights, shifts, sums, ((F / scale, codes),))

    def mixed(self) -> FewRows:
        """The same sums from other rows, none of which is a row of the data."""
        (F, codes), k = self.factor, len(self.rows)
        with single_threaded_blas():
            mixed = [qr(F[codes == g], mode="r", check_finite=False)[0] for g in range(k)]
        groups = np.repeat(np.arange(k), [len(F_g) for F_g in mixed])
        sums = self.rows, self.weights, self.shifts, self.sums
        return FewRows(*sums, ((np.concatenate(mixed), groups),))

    def multiplied(self) -> Sums:
        """The same sums with Gram matrices."""
        (F, codes), (k, d) = self.factor, self.sums.shape
        refuse_large_matrices(k, d)
        grams = np.zeros((k, d, d))
        for g, s in enumerate(self.sums):
            F_g = F[codes == g]
            np.matmul(F_g.T, F_g, out=grams[g])
            if self.weights[g] > 0:
                grams[g] += np.outer(s, s / self.weights[g])
        return Sums(self.rows, self.weights, self.shifts, self.sums, grams)


def sum_up(rows: Rows, codes: Codes, k: int, weights: Array | None) -> Sums | FewRows:
    """Sums of k groups of rows."""
    kept = are_few(rows.n_rows, rows.n_features)
    return (FewRows.of if kept else accumulate)(rows, codes, k, weights)


def combined(
    k: int, d: int, parts: Iterable[tuple[Sums | FewRows, Sequence[int]]]
) -> Sums | FewRows:
    """Sums of k groups; group g of a part adds to the group ``places[g]``."""
    sums: list[tuple[Sums, Sequence[int]]] = []
    few: list[tuple[FewRows, Sequence[int]]] = []
    for part, places in parts:
        if isinstance(part, FewRows):
            few.append((part, places))
        else:
            sums.append((part, places))
    kept = FewRows.combined(k, d, few)
    if few and not sums and are_few(kept.n_kept, d):
        return kept
    if few:
        sums.append((kept.multiplied(), range(k)))
    return Sums.combined(k, d, sums)
