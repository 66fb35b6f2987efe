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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._moments.operand import Operand
from fairpca._moments.tolerances import MEAN_NOISE
from fairpca._typing import Array, Center, Mask


def scale_of(variances: Array, mean: Array) -> Array:
    """Standard deviations of columns, and 1 where a deviation is only rounding of the mean."""
    return np.where(varying_columns(variances, mean), np.sqrt(np.maximum(variances, 0.0)), 1.0)


def varying_columns(variances: Array, mean: Array) -> Mask:
    """The columns whose deviation is more than rounding of the mean."""
    return np.asarray(np.sqrt(np.maximum(variances, 0.0)) > 1e-14 * np.abs(mean))


def all_at_center(squares: Array, mean: Array) -> Mask:
    """The groups whose mean squares about the centre, (k, d), are rounding in every column."""
    return np.asarray((squares <= (MEAN_NOISE * mean) ** 2).all(axis=1))


def means_from(center: Center, from_mean: Array, compared: Mask | None) -> Array:
    """Group means relative to a centre, given those relative to the overall mean."""
    if center == "balanced":
        counted = from_mean
        if compared is not None:
            counted = from_mean[compared]
        return np.asarray(from_mean - counted.mean(axis=0))
    if center == "overall":
        return from_mean
    return np.zeros_like(from_mean)


def _both_ways(u: Array, v: Array) -> Array:
    """``u v' + v u'``."""
    return np.asarray(np.stack([u, v], axis=1) @ np.stack([v, u]))


@dataclass(frozen=True)
class GroupSums:
    """Counts and sums of k groups of rows with d columns; finished arrays are never changed."""

    rows: NDArray[np.int64]  # number of rows with a positive weight, (k,)
    weights: Array  # n_g, (k,)
    shifts: Array  # t_g, (k, d)
    sums: Array  # s_g, (k, d)

    @staticmethod
    def of_nothing(k: int, d: int) -> GroupSums:
        """Zeros, to add to."""
        return GroupSums(np.zeros(k, np.int64), np.zeros(k), np.zeros((k, d)), np.zeros((k, d)))

    def add_group(self, here: int, other: GroupSums, there: int) -> Array:
        """Add a group of ``other``, moved to our shift; returns by how much it was moved."""
        n = other.weights[there]
        s = other.sums[there]
        if self.rows[here] == 0:
            self.shifts[here] = other.shifts[there]
        e = other.shifts[there] - self.shifts[here]
        self.rows[here] += other.rows[there]
        self.weights[here] += n
        self.sums[here] += s
        if e.any():
            self.sums[here] += n * e
        return np.asarray(e)

    @cached_property
    def shares(self) -> Array:
        """The share of each group in the total weight."""
        return np.asarray(self.weights / self.weights.sum())

    @cached_property
    def from_shifts(self) -> Array:
        """Group means, each relative to the shift of its group."""
        return np.asarray(self.sums / self.weights[:, None])

    @cached_property
    def from_mean(self) -> Array:
        """Group means relative to the overall mean, so that a large offset costs no digits."""
        from_first = self.shifts - self.shifts[0] + self.from_shifts
        return np.asarray(from_first - self.shares @ from_first)

    @property
    def mean(self) -> Array:
        """The overall mean."""
        return np.asarray(self.shifts[0] + (self.from_shifts[0] - self.from_mean[0]))


@dataclass(frozen=True)
class Sums(GroupSums):
    """Counts, sums and Gram matrices of k groups."""

    grams: Array  # G_g, (k, d, d)

    def __reduce__(self) -> tuple[Any, ...]:
        """The triangles of the symmetric matrices are enough to pickle, or to send."""
        above = np.triu_indices(self.sums.shape[1])
        return _unpacked, (self.rows, self.weights, self.shifts, self.sums, self.grams[:, *above])

    @classmethod
    def combined(cls, k: int, d: int, parts: Sequence[tuple[Sums, Sequence[int]]]) -> Sums:
        """Sums of k groups; group g of a part adds to the group ``places[g]``."""
        total = GroupSums.of_nothing(k, d)
        grams = np.zeros((k, d, d))
        for part, places in parts:
            for there, here in enumerate(places):
                e = total.add_group(here, part, there)
                grams[here] += part.grams[there]
                if e.any():
                    half = part.sums[there] + 0.5 * part.weights[there] * e
                    grams[here] += _both_ways(half, e)
        return cls(total.rows, total.weights, total.shifts, total.sums, grams)

    def take(self, groups: Sequence[int]) -> Sums:
        """Sums of some of the groups."""
        wanted = list(groups)
        g: list[int] | slice = wanted
        if wanted and wanted == list(range(wanted[0], wanted[-1] + 1)):
            g = slice(wanted[0], wanted[-1] + 1)  # no copy of the matrices
        return Sums(self.rows[g], self.weights[g], self.shifts[g], self.sums[g], self.grams[g])

    def moved(self, origin: Array) -> Sums:
        """The same sums with this shift for every group."""
        e = self.shifts - origin
        n = self.weights[:, None]
        if not e.any():
            return self
        grams = np.empty_like(self.grams)
        halves = self.sums + 0.5 * n * e
        for moved, gram, half, step in zip(grams, self.grams, halves, e, strict=True):
            np.add(gram, _both_ways(half, step), out=moved)
        shifts = np.tile(origin, (len(e), 1))
        return replace(self, shifts=shifts, sums=self.sums + n * e, grams=grams)

    def errors(self, bases: Sequence[Array], origin: Array) -> tuple[Array, Array]:
        """Squared errors of projections through a point, summed over the rows of each group.

        They have shape (n_bases, k), and come with the squared distances from the point, (k,).
        """
        e = self.shifts - origin
        n = self.weights
        squares = np.trace(self.grams, axis1=1, axis2=2)
        distances = squares + np.einsum("ki,ki->k", 2 * self.sums + n[:, None] * e, e)
        kept = []
        for U in bases:
            s_U = self.sums @ U
            e_U = e @ U
            within = np.einsum("kij,ij->k", self.grams @ U, U)
            kept.append(within + np.einsum("ki,ki->k", 2 * s_U + n[:, None] * e_U, e_U))
        return np.asarray(distances - np.array(kept)), np.asarray(distances)

    def lost(self, encode: Array, decode: Array, origin: Array) -> tuple[Array, Array]:
        """Squared errors of rows rebuilt by ``encode`` and ``decode`` about a point.

        They have shape (k, d), by group and column, and come with the squared distances from the
        point.
        """
        grams = self.moved(origin).grams
        distances = np.einsum("kii->ki", grams)
        encoded = grams @ encode
        once = np.einsum("kdr,rd->kd", encoded, decode)
        twice = np.einsum("krd,rd->kd", encode.T @ encoded @ decode, decode)
        return np.asarray(distances - 2 * once + twice), distances

    def second_moments(self, center: Center, compared: Mask | None = None) -> Array:
        """``C_g`` of every group, of shape (k, d, d)."""
        C = self.grams / self.weights[:, None, None]
        from_center = means_from(center, self.from_mean, compared)
        for C_g, m, e in zip(C, self.from_shifts, from_center, strict=True):
            C_g -= np.outer(m, m)
            C_g += np.outer(e, e)
        return C

    def operand(self, center: Center, compared: Mask | None) -> Operand:
        """The second moments as a solver wants them."""
        C = self.second_moments(center, compared)
        C[all_at_center(np.einsum("kii->ki", C), self.mean)] = 0.0
        return Operand(C, self.shares, compared)

    def variances(self) -> tuple[Array, Array]:
        """Variances of the columns about the group means, and of the group means about the mean."""
        squares = np.diagonal(self.grams, axis1=1, axis2=2) / self.weights[:, None]
        within = squares - self.from_shifts**2
        between = self.from_mean**2
        return self.shares @ within, self.shares @ between

    def select(self, columns: list[int]) -> Sums:
        """Sums of some of the columns, in this order."""
        shifts = self.shifts[:, columns]
        sums = self.sums[:, columns]
        return replace(self, shifts=shifts, sums=sums, grams=self.grams[:, columns][:, :, columns])

    def divided(self, scale: Array) -> Sums:
        """Sums of the rows with each column divided by its scale."""
        shifts = self.shifts / scale
        sums = self.sums / scale
        return replace(self, shifts=shifts, sums=sums, grams=self.grams / np.outer(scale, scale))


def _unpacked(
    rows: NDArray[np.int64], weights: Array, shifts: Array, sums: Array, triangles: Array
) -> Sums:
    """Sums whose Gram matrices come as triangles."""
    k, d = sums.shape
    grams = np.empty((k, d, d))
    above, right = np.triu_indices(d)
    grams[:, above, right] = triangles
    grams[:, right, above] = triangles
    return Sums(rows, weights, shifts, sums, grams)
