"""Which rows the disparity hangs on.

A row of group g has the share ``e / n_g`` in the mean error of its group, and with it in the
disparity D. Where errors have heavy tails, a handful of rows can make up most of D, or decide its
sign. To see this, rows are left out, those with the largest shares first, and D is measured on the
others, with the projections as they are. For this only the rows with the largest errors of each
group need to be kept (:class:`LargestErrors`), so rows may be streamed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairpca._audit.figures import RowInfluence
from fairpca._typing import Array, Codes

_SHARES = (0.0, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.007, 0.01)  # of the rows, left out
_LEAST_KEPT = 1000
_MOST_POSITIONS = 1000


@dataclass(frozen=True)
class LargestErrors:
    """The rows with the largest errors of each group, under one projection.

    Attributes
    ----------
    rows : ndarray of shape (m,)
        Positions in the data.
    codes : ndarray of shape (m,)
    errors, weights, distances : ndarray of shape (m,)
        Weighted squared errors, weights, and weighted squared distances from the mean.
    """

    rows: Codes
    codes: Codes
    errors: Array
    weights: Array
    distances: Array

    def keep(self, n: int) -> LargestErrors:
        """The n largest errors of each group, largest first."""
        order = np.argsort(-self.errors, kind="stable")
        groups = np.unique(self.codes).tolist()
        kept = np.concatenate([order[self.codes[order] == g][:n] for g in groups] or [order])
        return self._take(kept)

    def join(self, other: LargestErrors) -> LargestErrors:
        """Rows of both, in order."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return LargestErrors(*(np.concatenate(pair) for pair in pairs))

    def _take(self, places: Codes) -> LargestErrors:
        return LargestErrors(*(values[places] for values in vars(self).values()))


def n_kept(n_rows: int) -> int:
    """How many rows of each group are kept: enough to leave out the largest one percent of all."""
    return max(_at_share(n_rows, _SHARES[-1]), _LEAST_KEPT)


@dataclass(frozen=True)
class Sides:
    """Sums over all rows of the two groups that the disparity is measured between.

    Attributes
    ----------
    groups : (int, int)
        The privileged and the harmed group.
    errors, totals : ndarray of shape (2,)
        Sums of errors, and what they are divided by.
    n_rows : int
        Of both groups together.
    """

    groups: tuple[int, int]
    errors: Array
    totals: Array
    n_rows: int

    def without(self, side: Codes, errors: Array, totals: Array) -> Array:
        """The disparity without the first 0, 1, 2, ... of the rows given, as far as rows are left.

        ``side`` is 0 for rows of the privileged group and 1 for rows of the harmed one.
        """
        means = []
        for s in (0, 1):
            lost, weight = (np.cumsum(np.where(side == s, v, 0.0)) for v in (errors, totals))
            left = self.totals[s] - np.append(0.0, weight)
            left[left <= 1e-9 * self.totals[s]] = np.nan  # no row of the group is left
            means.append((self.errors[s] - np.append(0.0, lost)) / left)
        disparities: Array = means[1] - means[0]
        gone = np.flatnonzero(np.isnan(disparities))
        return disparities[: gone[0]] if len(gone) else disparities


def row_influence(largest: LargestErrors, totals: Array, sides: Sides) -> RowInfluence:
    """How far the disparity hangs on a few rows; ``totals`` of the rows in ``largest``."""
    A, B = sides.groups
    among = np.flatnonzero((largest.codes == A) | (largest.codes == B))
    side = (largest.codes[among] == B).astype(np.intp)
    order = np.argsort(-largest.errors[among] / sides.totals[side], kind="stable")
    among, side = among[order], side[order]
    all_left = sides.without(side, largest.errors[among], totals[among])
    counts = [0, *(_at_share(sides.n_rows, share) for share in _SHARES[1:])]
    counts = sorted({count for count in counts if count < len(all_left)})
    worse = among[side == int(all_left[0] >= 0)]  # rows of the group with the larger error
    code = np.full(len(worse), int(all_left[0] >= 0))
    halved = sides.without(code, largest.errors[worse], totals[worse]) / (all_left[0] or 1.0) <= 0.5
    n_half = int(halved.argmax()) if halved.any() and all_left[0] else None
    return RowInfluence(
        n_half=n_half,
        rows=largest.rows[worse[:n_half]][:_MOST_POSITIONS],
        n_rows=sides.n_rows,
        left_out=np.array(counts),
        disparity=all_left[counts],
    )


def _at_share(n_rows: int, share: float) -> int:
    """How many rows that is, at least one."""
    return max(round(n_rows * share), 1)
