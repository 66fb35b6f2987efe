"""What cross-validation needs to know of the data: for each fold, the other rows and its own.

Everything comes from moments that tell folds apart (:mod:`fairpca._moments.fold_labels`), without
another pass: the sums of the rows fitted to are those of all rows minus those of the fold, and the
errors of the rows left out follow from their own Gram matrices, about the mean of the rows fitted
to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from fairpca._moments.few_rows import FewRows
from fairpca._moments.fold_labels import NEVER
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.operand import TINY, Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._moments.sums import Sums
from fairpca._threads import blas_threads, computed_once
from fairpca._typing import Array, Codes, Mask

_KEPT_BYTES = 1 << 28  # of the matrices of all folds; more are computed again when needed
_STACKED_UP_TO = 200  # features: calls of numpy would take longer than their work
_WORK_WORTH_A_THREAD = 10_000_000  # folds times cubes of features
_ROWS_TO_FILL_A_FOLD = 20  # on average: a hash of so many leaves none empty

_Members = list[tuple[int, int]]  # of a fold: the label in the moments, and the group


@dataclass(frozen=True)
class FoldStack:
    """The rows of several folds, and for each the groups' second moments of all other rows.

    Attributes
    ----------
    matrices : ndarray of shape (f, k, d, d)
        ``C_g`` of the rows fitted to.
    shares : ndarray of shape (f, k)
        ``p_g`` of the rows fitted to.
    left_out : ndarray of shape (f, k, d, d)
        Gram matrices of the rows left out, about the mean of the rows fitted to.
    weights : ndarray of shape (f, k)
        Of the rows left out.
    compared : ndarray of bool, shape (k,)
    """

    matrices: Array
    shares: Array
    left_out: Array
    weights: Array
    compared: Mask

    @computed_once
    def distances(self) -> Array:
        """Summed squared distances of the rows left out from the mean: errors of no component."""
        return np.asarray(np.trace(self.left_out, axis1=2, axis2=3))

    def operands(self) -> list[Operand]:
        """The rows fitted to, fold by fold."""
        stacks = zip(self.matrices, self.shares, strict=True)
        return [Operand(matrices, shares, self.compared) for matrices, shares in stacks]

    def relative(self) -> FoldStack:
        """The same folds, with each error a share of the group's own variance."""
        operands = [operand.relative() for operand in self.operands()]
        matrices = np.array([operand.matrices for operand in operands])
        shares = np.array([operand.shares for operand in operands])
        return replace(self, matrices=matrices, shares=shares)

    def errors(self, bases: Array) -> Array:
        """Summed squared errors of the rows left out, of shape (f, s, k), under f x s bases."""
        kept = [
            np.einsum("fsij,fsij->fs", S[:, None] @ bases, bases)
            for S in self.left_out.swapaxes(0, 1)
        ]
        return np.asarray(self.distances[:, None] - np.stack(kept, axis=-1))


class Folds:
    """The folds of a fit, for its groups.

    Parameters
    ----------
    settled : SettledGroups
        Whose folds are kept apart.
    """

    def __init__(self, settled: SettledGroups) -> None:
        assert settled.by_fold is not None
        assert isinstance(settled.moments, GroupMoments)
        self._settled = settled
        self._parts, whole = _sums_of(settled.by_fold, settled.moments)
        self._whole = whole.moved(whole.mean)
        place = settled.places()
        self._members: dict[tuple[int, int], _Members] = {}
        for i, label in enumerate(settled.by_fold.groups.tolist()):
            if label.fold != NEVER:
                member = i, place[label.group]
                self._members.setdefault((label.repeat, label.fold), []).append(member)
        self._check()
        few_bytes = 2 * len(self) * self._whole.grams.nbytes <= _KEPT_BYTES
        self._kept = list(self._stacks()) if few_bytes else None

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[FoldStack]:
        return self._stacks() if self._kept is None else iter(self._kept)

    def _stacks(self) -> Iterator[FoldStack]:
        folds = list(self._members.values())
        size = -(-len(folds) // self.n_threads) if self.n_features <= _STACKED_UP_TO else 1
        for start in range(0, len(folds), size):
            yield self._stack(folds[start : start + size])

    def _stack(self, folds: Sequence[_Members]) -> FoldStack:
        rows, n, s, G = self._left_out(folds)
        whole = self._whole
        # A group that has no rows left weighs next to nothing, so that its averages are zero.
        some = whole.rows > rows
        n_rest = np.where(some, whole.weights - n, TINY)
        s_rest = np.where(some[..., None], whole.sums - s, 0.0)
        shares = n_rest / n_rest.sum(axis=1, keepdims=True)
        means = s_rest / n_rest[..., None]
        mean = np.einsum("fk,fki->fi", shares, means)[:, None]
        C = np.where(some[..., None, None], whole.grams - G, 0.0)
        C /= n_rest[..., None, None]
        C += _outer(means - mean, means - mean) - _outer(means, means)
        about = _outer(s - 0.5 * n[..., None] * mean, mean)
        G -= about
        G -= about.swapaxes(2, 3)
        return FoldStack(C, shares, G, n, self._settled.compared)

    @computed_once
    def n_threads(self) -> int:
        """How many threads to fit on: one where starting more would take longer."""
        work = len(self) * self.n_features**3
        return blas_threads() if work >= _WORK_WORTH_A_THREAD else 1

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self._whole.sums.shape[1])

    @property
    def odds(self) -> float:
        """How many rows are left out for each row that is fitted to, on average over the folds."""
        parts = [self._parts.weights[[i for i, _ in m]].sum() for m in self._members.values()]
        total = float(self._whole.weights.sum())
        return float(np.mean([part / (total - part) for part in parts]))

    def _left_out(self, folds: Sequence[_Members]) -> tuple[Codes, Array, Array, Array]:
        """Rows, weights, sums and Gram matrices of each group in these folds, about the mean."""
        shape = len(folds), *self._whole.sums.shape
        rows, weights, sums = np.zeros(shape[:2], np.intp), np.zeros(shape[:2]), np.zeros(shape)
        grams = np.zeros((*shape, shape[-1]))
        labels = [i for members in folds for i, _ in members]
        places = [(f, g) for f, members in enumerate(folds) for _, g in members]
        part = self._parts.take(labels).moved(self._whole.shifts[0])
        for i, place in enumerate(places):
            rows[place] += part.rows[i]
            weights[place] += part.weights[i]
            sums[place] += part.sums[i]
            grams[place] += part.grams[i]
        return rows, weights, sums, grams

    def _check(self) -> None:
        """Refuse folds that leave nothing to fit to, or nothing to judge by."""
        labels, compared = self._settled.moments.groups.tolist(), self._settled.compared
        if len(self) < 2:
            raise ValueError(
                f"cross-validation needs two folds or more, got {len(self)}; pass for example "
                "cv=10."
            )
        left_out = np.zeros((len(self), len(labels)), np.int64)
        for f, members in enumerate(self._members.values()):
            for i, g in members:
                left_out[f, g] += self._parts.rows[i]
        nothing_left = compared & (left_out == self._whole.rows).any(axis=0)
        never_left_out = compared & (left_out == 0).all(axis=0)
        for g in np.flatnonzero(nothing_left | never_left_out).tolist():
            n = int(self._whole.rows[g])
            why = "one fold holds all of them" if nothing_left[g] else "no fold holds any of them"
            raise ValueError(
                f"group {labels[g]!r} has {_rows_of(n)}, and {why}, so cross-validation cannot "
                "judge what is done to it; pass fewer folds, a splitter that stratifies by group, "
                "or min_group_size with small_groups='merge'."
            )


def _outer(a: Array, b: Array) -> Array:
    return np.asarray(a[..., :, None] * b[..., None, :])


def _sums_of(parts: GroupMoments, whole: GroupMoments) -> tuple[Sums, Sums]:
    """The sums of both; of few rows, in the space that these span."""
    of_parts, of_whole = parts._total, whole._total
    if isinstance(of_parts, FewRows) and isinstance(of_whole, FewRows):
        frame, _ = of_parts.space()
        return of_parts.seen_in(frame, parts.mean), of_whole.seen_in(frame, parts.mean)
    return of_parts.multiplied(), of_whole.multiplied()


def _rows_of(n: int) -> str:
    return f"{n} row{'' if n == 1 else 's'}"


def check_folds_of(settled: SettledGroups, cv: Any) -> None:
    """Refuse moments without folds, another number of folds, and groups smaller than that."""
    if settled.by_fold is None:
        raise ValueError(
            f"cv={cv} needs the moments of folds, and these are of groups alone; keep folds apart "
            "when you make them, for example GroupMoments.from_data(X, groups, folds=10), or pass "
            "cv=None."
        )
    if not isinstance(cv, Integral):
        return
    cv = int(cv)
    groups, counts = settled.moments.groups.tolist(), settled.moments.counts
    few = settled.compared & (counts < cv)
    if few.any():
        g = int(few.argmax())
        raise ValueError(
            f"cv={cv} is more than the {_rows_of(counts[g])} of group {groups[g]!r}; pass fewer "
            f"folds, or min_group_size={cv} with small_groups='merge' or 'ignore'."
        )
    labels = settled.by_fold.groups.tolist()
    n_folds = len({(label.repeat, label.fold) for label in labels if label.fold != NEVER})
    empty_by_chance = n_folds < cv and counts.sum() < _ROWS_TO_FILL_A_FOLD * cv
    if n_folds != cv and not empty_by_chance:
        raise ValueError(f"cv={cv}, but these moments have {n_folds} folds; pass cv={n_folds}.")
