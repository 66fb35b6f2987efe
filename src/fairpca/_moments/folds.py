"""What cross-validation needs to know of the data: for each fold, the other rows and its own.

Everything comes from moments that tell folds apart (:mod:`fairpca._moments.fold_labels`), without
another pass: the sums of the rows fitted to are those of all rows minus those of the fold, and the
errors of the rows left out follow from their own Gram matrices, about the mean of the rows fitted
to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Number
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from fairpca._input.checks import check_integer
from fairpca._input.device import is_dask
from fairpca._input.labels import encode_groups
from fairpca._input.rows import as_rows
from fairpca._moments.few_rows import FewRows
from fairpca._moments.fold_labels import NEVER, deal_folds
from fairpca._moments.group_moments import GroupMoments, moments_of_rows
from fairpca._moments.learn import check_grams
from fairpca._moments.operand import Operand, group_errors
from fairpca._moments.small_groups import SettledGroups
from fairpca._moments.sums import Sums
from fairpca._threads import computed_once
from fairpca._typing import Array, Codes

_KEPT_BYTES = 1 << 28  # of the matrices of all folds; more are computed again when needed


@dataclass(frozen=True)
class Fold:
    """The rows of one fold, and the groups' second moments of all other rows.

    Attributes
    ----------
    operand : Operand
        Of the rows fitted to.
    left_out : ndarray of shape (k, d, d)
        Gram matrices of the rows left out, about the mean of the rows fitted to.
    weights : ndarray of shape (k,)
        Of the rows left out.
    """

    operand: Operand
    left_out: Array
    weights: Array

    @computed_once
    def distances(self) -> Array:
        """Summed squared distances of the rows left out from the mean: errors of no component."""
        return np.asarray(np.trace(self.left_out, axis1=1, axis2=2))

    def errors(self, basis: Array) -> Array:
        """Summed squared errors of the rows left out, of each group."""
        return group_errors(self.distances, self.left_out @ basis, basis)


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
        self._members: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for i, label in enumerate(settled.by_fold.groups.tolist()):
            if label.fold != NEVER:
                member = i, place[label.group]
                self._members.setdefault((label.repeat, label.fold), []).append(member)
        self._check()
        few_bytes = 2 * len(self) * self._whole.grams.nbytes <= _KEPT_BYTES
        self._kept = list(self._each()) if few_bytes else None

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Fold]:
        return self._each() if self._kept is None else iter(self._kept)

    def _each(self) -> Iterator[Fold]:
        compared = self._settled.compared
        for left_out in map(self._left_out, self._members.values()):
            fitted = self._whole.without(left_out)
            operand = Operand(fitted.second_moments("overall"), fitted.shares, compared)
            yield Fold(operand, left_out.moved(fitted.mean).grams, left_out.weights)

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

    def _left_out(self, members: Sequence[tuple[int, int]]) -> Sums:
        k, d = self._whole.sums.shape
        labels, places = zip(*members, strict=True)
        part = Sums.combined(k, d, [(self._parts.take(labels), places)])
        return part.moved(self._whole.shifts[0])

    def _check(self) -> None:
        """Refuse folds that leave nothing to fit to, or nothing to judge by."""
        labels, compared = self._settled.moments.groups, self._settled.compared
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
                f"group {labels[g]!r} has {n} rows, and {why}, so cross-validation cannot judge "
                "what is done to it; pass fewer folds, a splitter that stratifies by group, or "
                "min_group_size with small_groups='merge'."
            )


def _sums_of(parts: GroupMoments, whole: GroupMoments) -> tuple[Sums, Sums]:
    """The sums of both; of few rows, in the space that these span."""
    of_parts, of_whole = parts._total, whole._total
    if isinstance(of_parts, FewRows) and isinstance(of_whole, FewRows):
        frame, _ = of_parts.space()
        return of_parts.seen_in(frame, parts.mean), of_whole.seen_in(frame, parts.mean)
    return of_parts.multiplied(), of_whole.multiplied()


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
    n_folds = len({(label.repeat, label.fold) for label in settled.by_fold.groups.tolist()})
    if n_folds > cv:
        raise ValueError(f"cv={cv}, but these moments have {n_folds} folds; pass cv={n_folds}.")
    groups, counts = settled.moments.groups, settled.moments.counts
    few = settled.compared & (counts < int(cv))
    if few.any():
        g = int(few.argmax())
        raise ValueError(
            f"cv={cv} is more than the {counts[g]} rows of group {groups.tolist()[g]!r}; pass "
            f"fewer folds, or min_group_size={cv} with small_groups='merge' or 'ignore'."
        )


def learn_folds(
    X: Any, groups: Any, sample_weight: Any, cv: Any, rng: np.random.RandomState
) -> GroupMoments:
    """Moments of rows in memory with folds kept apart, so many or those of a splitter.

    A splitter whose test sets overlap, because it repeats itself, costs a pass for each repeat.
    """
    seed = int(rng.randint(2**31 - 1))
    if isinstance(cv, Number | str):
        check_integer("cv", cv, 2)
    if is_dask(X):
        return GroupMoments.from_data(X, groups, sample_weight, folds=cv, fold_seed=seed)
    rows = as_rows(X)
    check_grams(rows)
    codes, _ = encode_groups(groups, rows.n_rows)
    if isinstance(cv, Integral):
        repeats = iter([deal_folds(codes, int(cv), np.random.default_rng(seed))])
    else:
        repeats = _split(check_cv(cv), codes)
    learnt = GroupMoments()
    for repeat, folds in enumerate(repeats):
        part = moments_of_rows(rows, groups, sample_weight, folds=folds)
        if repeat:
            part = part.relabel({c: c._replace(repeat=repeat) for c in part.groups.tolist()})
        learnt = learnt.merge(part)
    return learnt


def _split(splitter: Any, codes: Codes) -> Iterator[Codes]:
    """The folds of a splitter: for each repeat the fold of every row, or that it has none."""
    n = len(codes)
    folds, n_folds = np.full(n, NEVER), 0
    for train, test in splitter.split(np.zeros((n, 1)), codes):
        if len(train) + len(test) != n or np.intersect1d(train, test).size:
            raise ValueError(
                f"{splitter} fits to {len(train)} rows and leaves out {len(test)} of {n}; pass a "
                "splitter that fits to all rows it does not leave out, such as StratifiedKFold."
            )
        if (folds[test] != NEVER).any():
            yield folds
            folds, n_folds = np.full(n, NEVER), 0
        folds[test] = n_folds
        n_folds += 1
    yield folds
