"""Sums over the rows of each group, and what follows from them without another pass.

========  ==================================================================
symbol    meaning
========  ==================================================================
n_g       total weight of group g (its number of rows when nothing is weighted)
t_g       provisional shift of group g, near its mean
s_g       weighted sum of ``x - t_g`` over the rows of group g
G_g       weighted Gram matrix, the sum of ``(x - t_g)(x - t_g)'``
C_g       ``G_g / n_g`` moved to the overall mean (or to the group's own)
========  ==================================================================

Moving the origin of a sum and of a Gram matrix from ``t`` to ``t - e`` costs no pass over data::

    s <- s + n e          G <- G + s e' + e s' + n e e'

so shifts are free to differ between blocks, machines and groups, and data a billion away from zero
keep their digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairpca._moments.operand import TINY, Operand
from fairpca._threads import computed_once
from fairpca._typing import Array, Center, Mask


@dataclass(frozen=True)
class GroupSums:
    """Counts and sums of k groups of rows with d columns, and what follows from them alone.

    Objects share these arrays, so they are never changed once they are here.
    """

    rows: NDArray[np.int64]  # how many have a positive weight, of shape (k,)
    weights: Array  # n_g, (k,)
    shifts: Array  # t_g, (k, d)
    sums: Array  # s_g, (k, d)

    @staticmethod
    def of_nothing(k: int, d: int) -> GroupSums:
        """Zeros, to add to."""
        return GroupSums(np.zeros(k, np.int64), np.zeros(k), np.zeros((k, d)), np.zeros((k, d)))

    def add_group(self, here: int, other: GroupSums, there: int) -> Array:
        """Add a group of ``other``, moved to the shift of ours; and by how much it was moved."""
        n, s = other.weights[there], other.sums[there]
        if self.rows[here] == 0:
            self.shifts[here] = other.shifts[there]
        e = other.shifts[there] - self.shifts[here]
        self.rows[here] += other.rows[there]
        self.weights[here] += n
        self.sums[here] += s
        if e.any():
            self.sums[here] += n * e
        return np.asarray(e)

    def mean_of(self, g: int, origin: Array) -> Array:
        """The mean of group g as seen from a point near to it."""
        return np.asarray(self.shifts[g] - origin + self.sums[g] / self.weights[g])

    @computed_once
    def shares(self) -> Array:
        """The share of each group in the total weight."""
        return np.asarray(self.weights / self.weights.sum())

    @computed_once
    def from_shifts(self) -> Array:
        """Group means, each seen from the shift of its group."""
        return np.asarray(self.sums / self.weights[:, None])

    @computed_once
    def from_mean(self) -> Array:
        """Group means seen from the overall mean."""
        from_first = self._from_first_shift()
        return from_first - self.shares @ from_first

    @property
    def mean(self) -> Array:
        """The overall mean."""
        return np.asarray(self.shifts[0] + self.shares @ self._from_first_shift())

    def _from_first_shift(self) -> Array:
        """Group means seen from one shift, where a large offset cannot round them."""
        return np.asarray(self.shifts - self.shifts[0] + self.from_shifts)


@dataclass(frozen=True)
class Sums(GroupSums):
    """Counts, sums and Gram matrices of k groups."""

    grams: Array  # G_g, (k, d, d)

    @classmethod
    def combined(cls, k: int, d: int, parts: Iterable[tuple[Sums, Sequence[int]]]) -> Sums:
        """Sums of k groups; group g of a part adds to the group ``places[g]``."""
        total, grams = GroupSums.of_nothing(k, d), np.zeros((k, d, d))
        for part, places in parts:
            for there, here in enumerate(places):
                e = total.add_group(here, part, there)
                grams[here] += part.grams[there]
                if e.any():
                    cross = np.outer(part.sums[there] + 0.5 * part.weights[there] * e, e)
                    grams[here] += cross
                    grams[here] += cross.T
        return cls(total.rows, total.weights, total.shifts, total.sums, grams)

    def multiplied(self) -> Sums:
        """With Gram matrices, as these sums are."""
        return self

    def take(self, groups: Sequence[int]) -> Sums:
        """Sums of some of the groups."""
        g = list(groups)
        return Sums(self.rows[g], self.weights[g], self.shifts[g], self.sums[g], self.grams[g])

    def moved(self, origin: Array) -> Sums:
        """The same sums with this shift for every group."""
        e, n = self.shifts - origin, self.weights[:, None]
        grams = self.grams.copy()
        for gram, half, step in zip(grams, self.sums + 0.5 * n * e, e, strict=True):
            cross = np.outer(half, step)
            gram += cross
            gram += cross.T
        shifts = np.tile(origin, (len(e), 1))
        return Sums(self.rows, self.weights, shifts, self.sums + n * e, grams)

    def without(self, part: Sums) -> Sums:
        """Sums of the rows that are not in ``part``, which has the same groups and shifts.

        A group that has no rows left weighs next to nothing, so that its averages are zero.
        """
        rows = self.rows - part.rows
        left = np.where(rows > 0, 1.0, 0.0)
        return Sums(
            rows,
            np.where(rows > 0, self.weights - part.weights, TINY),
            self.shifts,
            left[:, None] * (self.sums - part.sums),
            left[:, None, None] * (self.grams - part.grams),
        )

    def second_moments(self, center: Center) -> Array:
        """``C_g`` of every group, of shape (k, d, d)."""
        C = self.grams / self.weights[:, None, None]
        for C_g, m in zip(C, self.from_shifts, strict=True):
            C_g -= np.outer(m, m)
        if center == "overall":
            for C_g, m in zip(C, self.from_mean, strict=True):
                C_g += np.outer(m, m)
        return C

    def operand(self, center: Center, compared: Mask | None) -> Operand:
        """The second moments as a solver wants them."""
        return Operand(self.second_moments(center), self.shares, compared)

    def variances(self) -> tuple[Array, Array]:
        """Of each column: about the group means, and of the group means about the overall mean."""
        squares = np.diagonal(self.grams, axis1=1, axis2=2) / self.weights[:, None]
        within, between = squares - self.from_shifts**2, self.from_mean**2
        return self.shares @ within, self.shares @ between

    def select(self, columns: list[int]) -> Sums:
        """Sums of some of the columns, in this order."""
        return Sums(
            self.rows,
            self.weights,
            self.shifts[:, columns],
            self.sums[:, columns],
            self.grams[:, columns][:, :, columns],
        )

    def divided(self, scale: Array) -> Sums:
        """Sums of the rows with each column divided by its scale."""
        return Sums(
            self.rows,
            self.weights,
            self.shifts / scale,
            self.sums / scale,
            self.grams / np.outer(scale, scale),
        )
