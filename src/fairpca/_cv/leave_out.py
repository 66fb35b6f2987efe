"""A fold is a pair: moments to fit to, and moments to judge by.

Both come from moments that are kept by fold, without another pass over the data. The rows left out
are judged from their own Gram matrices, about the mean of the training rows and, where columns are
standardised, in units of the training rows' deviations.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fairpca._blas import WORK_WORTH_A_THREAD, blas_threads
from fairpca._moments.few_rows import FewRows
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.operand import KEPT_BYTES, Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._moments.sums import Sums, scale_of
from fairpca._moments.tolerances import TINY
from fairpca._typing import Array, Mask


@dataclass(frozen=True)
class Fold:
    """The second moments of the training rows, for a search, and the sums of the rows left out."""

    operand: Operand  # second moments of the training rows, standardised if that was asked for
    mean: Array  # the mean of the training rows, divided by the scale
    left_out: Sums | FewRows  # sums by group, divided by the scale


class LeaveOut:
    """The folds of all repeats, for the groups as the fit sees them.

    ``repeats`` says which repeat each fold belongs to, ``odds`` how many rows are left out for each
    row that is fitted to, and ``n_threads`` how many threads are worth using.
    """

    def __init__(self, settled: SettledGroups) -> None:
        cells = settled.cells
        if not isinstance(cells, GroupMoments) or not cells.n_folds:
            raise ValueError("these moments have no folds; pass folds=10 when you make them.")
        self._repeats = [cells._keep(folds=True), *settled.repeats]
        self._standardize, self._compared = settled.scale is not None, settled.compared
        of_repeats = [moments._folds() for moments in self._repeats]
        self._members = [(r, fold) for r, folds in enumerate(of_repeats) for fold in folds]
        n_folds = len(self._members)
        if n_folds < 2:
            raise ValueError(f"cv needs two folds or more, got {n_folds}; pass for example cv=10.")
        self.repeats = np.array([repeat for repeat, _ in self._members], np.intp)
        left_out, weights = np.stack([of_repeats[r][f] for r, f in self._members], axis=1)
        self._refuse_unjudged(left_out)
        parts, total = weights.sum(axis=1), float(self._repeats[0]._sums.weights.sum())
        self.odds = float(np.mean(parts / (total - parts)))
        k, d = len(cells.groups), settled.moments.n_features
        few = isinstance(self._repeats[0]._sums, FewRows)
        width = int(settled.moments.counts.sum()) if few else k * d
        n_bytes = 16 * n_folds * width * d  # size of the matrices, or of the rows
        self._kept: list[Fold] = []
        if n_bytes <= KEPT_BYTES:
            self._kept = list(self)
        self.n_threads = blas_threads() if n_folds * d**3 >= WORK_WORTH_A_THREAD else 1

    def __iter__(self) -> Iterator[Fold]:
        yield from self._kept
        for repeat, fold in () if self._kept else self._members:
            fit_to, judge = self._repeats[repeat]._split(fold)
            yield fold_of(fit_to, judge, self._compared, self._standardize)

    def _refuse_unjudged(self, left_out: Array) -> None:
        """Refuse folds that leave a group nothing to fit to or to judge by, given their rows."""
        labels, counts = self._repeats[0].groups.tolist(), self._repeats[0].counts
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


def fold_of(fit_to: GroupMoments, judge: GroupMoments, compared: Mask, standardize: bool) -> Fold:
    """The fold of a pair of moments, which have the same groups."""
    sums, left_out = fit_to._group_sums(), judge._group_sums()
    empty = sums.rows == 0
    if empty.any():  # these groups weigh next to nothing and lie at the overall mean
        mean = sums.take(np.flatnonzero(~empty).tolist()).mean
        weights = np.where(empty, TINY, sums.weights)
        sums = replace(sums, weights=weights, shifts=np.where(empty[:, None], mean, sums.shifts))
    mean = sums.mean
    if standardize:
        scale = scale_of(np.add(*sums.variances()), mean)
        sums, left_out, mean = sums.divided(scale), left_out.divided(scale), mean / scale
    return Fold(sums.operand("overall", compared), mean, left_out)
