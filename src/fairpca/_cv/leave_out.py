"""A fold is a pair: moments to fit to, and moments to judge by.

Both come from moments that are kept by fold, without another pass over the data. The rows left out
are judged from their own Gram matrices, about the mean of the training rows and, where columns are
standardised, in units of the training rows' deviations.

The sums of the training rows are added up, never subtracted from those of all rows: a fold may hold
nearly all of the weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairpca._blas import WORK_WORTH_A_THREAD, blas_threads
from fairpca._moments.any_sums import AnySums, combined
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.operand import KEPT_BYTES, Operand
from fairpca._moments.pair_sums import PairSums
from fairpca._moments.small_groups import SettledGroups
from fairpca._moments.sums import scale_of
from fairpca._moments.tolerances import TINY
from fairpca._typing import Array, Mask

_LEAST_WEIGHT = 1e-11  # beside rows that weigh one, sums keep five digits of rows that weigh this


@dataclass(frozen=True)
class Fold:
    """The second moments of the training rows, for a search, and the sums of the rows left out."""

    operand: Operand  # second moments of the training rows, standardised if that was asked for
    mean: Array  # the mean of the training rows, divided by the scale
    left_out: AnySums  # sums by group, divided by the scale

    def errors(self, bases: Sequence[Array]) -> tuple[Array, Array]:
        """Summed squared errors of the rows left out, and their squared distances from the mean.

        The errors have shape (n_bases, k), the distances shape (k,).
        """
        return self.left_out.errors(bases, self.mean)


class LeaveOut:
    """The folds of all repeats, for the groups as the fit sees them.

    ``repeats`` says which repeat each fold belongs to, ``odds`` how many rows are left out for each
    row that is fitted to, and ``n_threads`` how many threads are worth using. Folds that
    ``are_kept`` are the same objects whenever they are asked for.
    """

    def __init__(self, settled: SettledGroups) -> None:
        cells = settled.cells
        if not isinstance(cells, GroupMoments) or not cells.n_folds:
            raise ValueError("these moments have no folds; pass folds=10 when you make them.")
        self._standardize = settled.scale is not None
        self._compared = settled.compared
        repeats = [cells.keep(folds=True), *settled.repeats]
        if not self._standardize:  # the scales, and so the angles between rows, differ by fold
            repeats = [moments.in_row_space() for moments in repeats]
        self._repeats = repeats
        of_repeats = [moments.fold_sizes() for moments in self._repeats]
        sizes = [size for folds in of_repeats for size in folds.values()]
        n_folds = len(sizes)
        if n_folds < 2:
            raise ValueError(f"cv needs two folds or more, got {n_folds}; pass for example cv=10.")
        self.repeats = np.repeat(np.arange(len(of_repeats)), [len(folds) for folds in of_repeats])
        left_out = np.array([n_rows for n_rows, _ in sizes])
        self._refuse_unjudged(left_out)
        self._refuse_unequal_weights(np.array([weights for _, weights in sizes]))
        parts = left_out.sum(axis=1)
        fitted_to = settled.moments.counts.sum() - parts
        self.odds = float(np.mean(parts / fitted_to))
        d = self._repeats[0].n_features
        self.n_threads = blas_threads() if n_folds * d**3 >= WORK_WORTH_A_THREAD else 1
        self.are_kept = n_folds * self._n_bytes_of_a_fold() <= KEPT_BYTES
        self._kept = list(self._made()) if self.are_kept else []

    def __iter__(self) -> Iterator[Fold]:
        return iter(self._kept) if self.are_kept else self._made()

    def _made(self) -> Iterator[Fold]:
        for moments in self._repeats:
            for fit_to, judge in training_and_left_out(moments):
                yield fold_of(fit_to, judge, self._compared, self._standardize)

    def _n_bytes_of_a_fold(self) -> int:
        """Bytes of the matrices of a fold, or of its rows."""
        moments = self._repeats[0]
        n_rows = len(moments.groups) * moments.n_features
        if self._standardize and moments.holds_rows:
            n_rows = int(moments.counts.sum())
        return 16 * n_rows * moments.n_features

    def _refuse_unjudged(self, left_out: Array) -> None:
        """Refuse folds that leave a group nothing to fit to or to judge by, given their rows."""
        labels = self._repeats[0].groups.tolist()
        counts = self._repeats[0].counts
        nothing_left = self._compared & (left_out == counts).any(axis=0)
        unjudged = nothing_left | (self._compared & (left_out == 0).all(axis=0))
        if unjudged.any():
            g = int(unjudged.argmax())
            which = "one fold holds all" if nothing_left[g] else "no fold holds any"
            raise ValueError(
                f"group {labels[g]!r} (n_samples = {counts[g]}): {which} of its rows, so "
                "cross-validation cannot judge what is done to it; pass fewer folds, a splitter "
                "that stratifies by group, or min_group_size with small_groups='merge'."
            )

    def _refuse_unequal_weights(self, weights: Array) -> None:
        """Refuse rows so heavy that the sums hold few digits of others, given weights by fold."""
        lightest = weights[weights > 0].min()
        heaviest = weights.max()
        if lightest < _LEAST_WEIGHT * heaviest:
            raise ValueError(
                f"sample_weight: the rows of one fold weigh {heaviest / lightest:.1g} times as "
                f"much as those of another, and sums of float64 numbers keep 16 digits; pass "
                f"weights whose ratio is at most {1 / _LEAST_WEIGHT:.0e}."
            )


def training_and_left_out(moments: GroupMoments) -> Iterator[tuple[AnySums, AnySums]]:
    """For each fold, the sums by group of all other rows, and those of its own rows."""
    never, *folds = moments.about_one_origin().sums_by_fold()
    yield from zip(_sums_without_each(folds, never), folds, strict=True)


def _sums_without_each(parts: Sequence[AnySums], others: AnySums) -> Iterator[AnySums]:
    """For each part, the sum of the other parts and of ``others``.

    Half of the parts are added to ``others`` before the other half is gone through, and so on down.
    """
    if len(parts) == 1:
        yield others
        return
    middle = len(parts) // 2
    first = parts[:middle]
    second = parts[middle:]
    yield from _sums_without_each(first, _added([others, *second]))
    yield from _sums_without_each(second, _added([others, *first]))


def _added(parts: Sequence[AnySums]) -> AnySums:
    """The sums of several parts with the same groups."""
    k, d = parts[0].sums.shape
    return combined(k, d, [(part, range(k)) for part in parts])


def fold_of(fit_to: AnySums, judge: AnySums, compared: Mask, standardize: bool) -> Fold:
    """The fold of the sums of its training rows and of the rows left out, by the same groups."""
    sums = fit_to
    left_out = judge
    empty = sums.rows == 0
    if empty.any():  # these groups weigh next to nothing and lie at the overall mean
        mean = sums.take(np.flatnonzero(~empty).tolist()).mean
        weights = np.where(empty, TINY, sums.weights)
        sums = replace(sums, weights=weights, shifts=np.where(empty[:, None], mean, sums.shifts))
    mean = sums.mean
    if standardize:
        scale = scale_of(np.add(*sums.variances()), mean)
        sums = sums.divided(scale)
        left_out = left_out.divided(scale)
        mean = mean / scale
    if isinstance(sums, PairSums) and isinstance(left_out, PairSums):
        # How often the rows of a group have a pair of values, all folds together tell best.
        groups = range(len(sums.rows))
        whole = PairSums.combined(len(groups), len(mean), [(sums, groups), (left_out, groups)])
        left_out = left_out.completed(mean, whole)
    return Fold(sums.operand("overall", compared), mean, left_out)
