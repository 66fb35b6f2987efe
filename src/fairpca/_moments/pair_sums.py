"""Sums over the pairs of values that were observed, for rows with missing values.

========  ==================================================================
symbol    meaning
========  ==================================================================
N_ij      total weight of the rows of a group in which columns i and j are both observed
A_ij      weighted sum of ``x_i - t_i`` over these rows
S_ij      weighted sum of ``(x_i - t_i)(x_j - t_j)`` over these rows
m_i       overall mean of column i: the groups' means of what they have, weighted by all their rows
C_ij      ``(S_ij - m_i A_ji - m_j A_ij + m_i m_j N_ij) / N_ij``
========  ==================================================================

All three are sums: they merge, fold and ship like those of complete rows. Nothing is filled in, so
nothing is flattered: a filled-in value is easier to describe than a real one. If values are missing
at random within a group, ``C`` is right on average, but it may have negative eigenvalues by chance.
They are clipped in what projections are fitted to (:meth:`PairSums.operand`), never in what judges
(:meth:`PairSums.errors`), where clipping would favour one side.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from fairpca._blas import parallel_map
from fairpca._input.rows import Rows, SparseRows, dense_blocks, refuse_unusable_numbers
from fairpca._moments.accumulate import by_group
from fairpca._moments.operand import Operand, refuse_large_matrices
from fairpca._moments.sums import GroupSums, Sums, all_at_center, means_from
from fairpca._moments.tolerances import TINY
from fairpca._typing import Array, Center, Codes, Mask

_ROWS_A_GROUP = 1024  # of a piece that stays in cache
_ROWS_A_PART = 1 << 16  # that a thread sums up at a time


@dataclass(frozen=True)
class PairSums(GroupSums):
    """Counts of k groups, and sums over the pairs of values that were observed."""

    pairs: Array  # N, (k, d, d)
    firsts: Array  # A, (k, d, d)
    grams: Array  # S, (k, d, d)

    @classmethod
    def of(cls, rows: Rows, codes: Codes, k: int, weights: Array | None) -> "PairSums":
        """Sums of k groups of rows, in which NaN stands for a missing value."""
        if isinstance(rows, SparseRows):
            raise ValueError(
                "missing='available' does not take sparse matrices, whose zeros count as observed; "
                "pass X.toarray(), or fill the missing values."
            )
        d = rows.n_features
        refuse_large_matrices(k, d, copies=6)
        w = np.ones(rows.n_rows) if weights is None else weights
        shifts = _first_values(rows, codes, k, w)
        edges = [*range(0, rows.n_rows, _ROWS_A_PART), rows.n_rows]
        sum_up = partial(_products, rows, codes, weights, shifts)
        products = sum(parallel_map(sum_up, pairwise(edges)), np.zeros((k, 2 * d, 2 * d)))
        pairs = products[:, d:, d:].copy()
        firsts = products[:, :d, d:].copy()
        grams = products[:, :d, :d].copy()
        if not np.isfinite(np.einsum("kii->k", grams)).all():
            refuse_unusable_numbers(rows)
        counts = np.bincount(codes[w > 0], minlength=k)
        totals = np.bincount(codes, w, minlength=k).astype(np.float64)
        sums = np.einsum("kii->ki", firsts).copy()
        return cls(counts, totals, shifts, sums, pairs, firsts, grams)

    @classmethod
    def of_complete(cls, sums: Sums) -> "PairSums":
        """The same sums of rows without missing values."""
        shape = sums.grams.shape
        pairs = np.broadcast_to(sums.weights[:, np.newaxis, np.newaxis], shape)
        firsts = np.broadcast_to(sums.sums[:, :, np.newaxis], shape)
        return cls(
            sums.rows, sums.weights, sums.shifts, sums.sums, pairs.copy(), firsts.copy(), sums.grams
        )

    @classmethod
    def combined(
        cls, k: int, d: int, parts: Sequence[tuple["PairSums", Sequence[int]]]
    ) -> "PairSums":
        """Sums of k groups; group g of a part adds to the group ``places[g]``."""
        total = GroupSums.of_nothing(k, d)
        pairs = np.zeros((k, d, d))
        firsts = np.zeros((k, d, d))
        grams = np.zeros((k, d, d))
        for part, places in parts:
            for there, here in enumerate(places):
                if total.rows[here] == 0:
                    total.shifts[here] = part.shifts[there]
                moved_firsts, moved_grams = part._group_moved(there, total.shifts[here])
                total.rows[here] += part.rows[there]
                total.weights[here] += part.weights[there]
                pairs[here] += part.pairs[there]
                firsts[here] += moved_firsts
                grams[here] += moved_grams
        total.sums[:] = np.einsum("kii->ki", firsts)
        return cls(**vars(total), pairs=pairs, firsts=firsts, grams=grams)

    @cached_property
    def from_shifts(self) -> Array:
        """Group means of the values observed, each relative to the shift of its group."""
        observed = np.einsum("kii->ki", self.pairs)
        return np.asarray(self.sums / np.maximum(observed, TINY))

    @property
    def observed(self) -> Array:
        """The share of each group's rows that have each pair; infinite for a pair never seen."""
        shares = self.pairs / np.maximum(self.weights, TINY)[:, np.newaxis, np.newaxis]
        return np.where(shares > 0, shares, np.inf)

    @property
    def share_missing(self) -> Array:
        """The share of the values of each group that are missing."""
        observed = np.einsum("kii->k", self.pairs) / self.sums.shape[1]
        return np.asarray(1.0 - observed / np.maximum(self.weights, TINY))

    def rarest_pair(self, g: int) -> tuple[int, int, float]:
        """The columns that a group has together least often, and in how many rows.

        Weights are counted as rows of the group's average weight.
        """
        i, j = np.unravel_index(self.pairs[g].argmin(), self.pairs[g].shape)
        rows = self.pairs[g, i, j] / max(float(self.weights[g]), TINY) * self.rows[g]
        return int(i), int(j), float(rows)

    def second_moments(self, center: Center, compared: Mask | None = None) -> Array:
        """``C_g`` of every group, of shape (k, d, d); eigenvalues may be negative."""
        from_center = means_from(center, self.from_mean, compared)
        origins = self.shifts + self.from_shifts - from_center
        moved = [self._group_moved(g, origin)[1] for g, origin in enumerate(origins)]
        return np.array(moved) / np.maximum(self.pairs, TINY)

    def operand(self, center: Center, compared: Mask | None) -> Operand:
        """The second moments as a solver wants them, without negative eigenvalues."""
        C, _ = self._clipped(center, compared)
        C[all_at_center(np.einsum("kii->ki", C), self.mean)] = 0.0
        return Operand(C, self.shares, compared)

    def clipped_variance(self) -> Array:
        """What clipping adds to the variance of each group, as a share of it."""
        C, added = self._clipped("overall", None)
        return np.asarray(added / np.maximum(np.einsum("kii->k", C), TINY))

    def _clipped(self, center: Center, compared: Mask | None) -> tuple[Array, Array]:
        """The nearest second moments without negative eigenvalues, and the variance added."""
        values, vectors = np.linalg.eigh(self.second_moments(center, compared))
        clipped = np.maximum(values, 0.0)
        C = (vectors * clipped[:, np.newaxis, :]) @ vectors.transpose(0, 2, 1)
        return C, (clipped - values).sum(axis=1)

    def variances(self) -> tuple[Array, Array]:
        """Variances of the columns about the group means, and of the group means about the mean."""
        observed = np.maximum(np.einsum("kii->ki", self.pairs), TINY)
        within = np.einsum("kii->ki", self.grams) / observed - self.from_shifts**2
        return self.shares @ within, self.shares @ self.from_mean**2

    def completed(self, origin: Array, seen: "PairSums") -> Sums:
        """What the sums of complete rows would be on average, about a point.

        A product of two values counts more, the more seldom the rows of its group have both; how
        often they do is read off ``seen``, the sums of all folds. These sums add up over folds.
        """
        divisors = seen.observed
        moved = self.moved(origin)
        sums = np.einsum("kii->ki", moved.firsts / divisors).copy()
        return Sums(self.rows, self.weights, moved.shifts, sums, moved.grams / divisors)

    def errors(self, bases: Sequence[Array], origin: Array) -> tuple[Array, Array]:
        """Squared errors of projections through a point, as :meth:`Sums.errors`."""
        return self.completed(origin, self).errors(bases, origin)

    def lost(self, encode: Array, decode: Array, origin: Array) -> tuple[Array, Array]:
        """Squared errors of rows rebuilt about a point, as :meth:`Sums.lost`."""
        return self.completed(origin, self).lost(encode, decode, origin)

    def moved(self, origin: Array) -> "PairSums":
        """The same sums with this shift for every group."""
        each = [self._group_moved(g, origin) for g in range(len(self.rows))]
        firsts = np.array([sums for sums, _ in each]).reshape(self.firsts.shape)
        grams = np.array([gram for _, gram in each]).reshape(self.grams.shape)
        shifts = np.tile(origin, (len(self.rows), 1))
        sums = np.einsum("kii->ki", firsts).copy()
        return replace(self, shifts=shifts, sums=sums, firsts=firsts, grams=grams)

    def take(self, groups: Sequence[int]) -> "PairSums":
        """Sums of some of the groups."""
        g = list(groups)
        return PairSums(*(values[g] for values in vars(self._plain()).values()))

    def select(self, columns: list[int]) -> "PairSums":
        """Sums of some of the columns, in this order."""
        square = np.ix_(range(len(self.rows)), columns, columns)
        return PairSums(
            self.rows,
            self.weights,
            self.shifts[:, columns],
            self.sums[:, columns],
            self.pairs[square],
            self.firsts[square],
            self.grams[square],
        )

    def divided(self, scale: Array) -> "PairSums":
        """Sums of the rows with each column divided by its scale."""
        return replace(
            self,
            shifts=self.shifts / scale,
            sums=self.sums / scale,
            firsts=self.firsts / scale[:, np.newaxis],
            grams=self.grams / np.outer(scale, scale),
        )

    def _group_moved(self, g: int, origin: Array) -> tuple[Array, Array]:
        """``A`` and ``S`` of a group about another point."""
        e = self.shifts[g] - origin
        firsts = self.firsts[g]
        pairs = self.pairs[g]
        moved_firsts = firsts + pairs * e[:, np.newaxis]
        cross = firsts * e
        return moved_firsts, self.grams[g] + cross + cross.T + pairs * np.outer(e, e)

    def _plain(self) -> "PairSums":
        """The same sums without cached figures."""
        return replace(self)


@np.errstate(invalid="ignore")  # infinities are refused at the end
def _products(
    rows: Rows, codes: Codes, weights: Array | None, shifts: Array, part: tuple[int, int]
) -> Array:
    """``W' W`` of each group: W has the values of a part of the rows, and ones where there are any.

    It holds S, A and N. Pieces stay in cache.
    """
    k, d = shifts.shape
    products = np.zeros((k, 2 * d, 2 * d))
    for start in range(*part, k * _ROWS_A_GROUP):
        stop = min(start + k * _ROWS_A_GROUP, part[1])
        order, groups = by_group(codes[start:stop], k)
        own = codes[start:stop][order]
        Z = rows.block(start, stop)[order] - shifts[own]
        seen = ~np.isnan(Z)
        W = np.zeros((len(Z), 2 * d))
        np.copyto(W[:, :d], Z, where=seen)
        W[:, d:] = seen
        if weights is not None:
            W *= np.sqrt(weights[start:stop][order])[:, np.newaxis]
        for g, members in groups:
            products[g] += W[members].T @ W[members]
    return products


def _first_values(rows: Rows, codes: Codes, k: int, weights: Array) -> Array:
    """The mean of the values of each group in the first block that has any; zero without one."""
    shifts = np.full((k, rows.n_features), np.nan)
    for place, block in dense_blocks(rows):
        for g in range(k):
            members = (codes[place] == g) & (weights[place] > 0)
            head = block[np.flatnonzero(members)[:256]]
            unknown = np.isnan(shifts[g]) & ~np.isnan(head).all(axis=0)
            shifts[g, unknown] = np.nanmean(head[:, unknown], axis=0)
        if not np.isnan(shifts).any():
            break
    return np.where(np.isfinite(shifts), shifts, 0.0)
