"""The folds of an audit: one dealing of the rows serves all that is said about new rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from fairpca._input.labels import CodedLabels
from fairpca._moments.fold_labels import NEVER, FoldLabel
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.strata import without_outcomes
from fairpca._typing import Array, Codes, Labels

FoldKey = tuple[int, int]  # repeat and fold


@dataclass(frozen=True)
class Dealt:
    """Rows dealt to folds, once or several times.

    Attributes
    ----------
    parts : mapping of (int, int) to GroupMoments
        Of the rows in each fold of each repeat, with codes for groups, in cells with outcomes where
        these count.
    numbers : list of ndarray
        For each repeat the fold of every row, if the rows are in memory.
    """

    parts: Mapping[FoldKey, GroupMoments]
    numbers: list[Codes]

    @classmethod
    def of(
        cls,
        X: Any,
        codes: Codes,
        numbers: Iterable[Codes],
        weights: Array | None = None,
        target: Labels | None = None,
    ) -> Dealt:
        """Rows of an array or CSR matrix; ``target`` is their class, where that counts."""
        parts, dealt = {}, list(numbers)
        for repeat, folds in enumerate(dealt):
            for fold in np.unique(folds).tolist():
                rows = np.flatnonzero(folds == fold)
                groups = CodedLabels(codes[rows], range(int(codes.max()) + 1))
                own = [None if of is None else of[rows] for of in (weights, target)]
                parts[repeat, fold] = GroupMoments.from_data(X[rows], groups, *own)
        return cls(parts, dealt)

    @property
    def keys(self) -> list[FoldKey]:
        """The folds that are left out, in order."""
        return sorted(key for key in self.parts if key[1] != NEVER)

    def of_repeat(self, repeat: int) -> dict[FoldKey, GroupMoments]:
        """The parts of one repeat, which together are all rows."""
        return {key: part for key, part in self.parts.items() if key[0] == repeat}

    def rest(self, left_out: FoldKey) -> dict[FoldKey, GroupMoments]:
        """The parts that are fitted to when a fold is left out."""
        return {k: part for k, part in self.of_repeat(left_out[0]).items() if k != left_out}

    @property
    def fewest_folds(self) -> int:
        """The number of folds in the repeat that has the fewest."""
        return min(Counter(repeat for repeat, _ in self.keys).values())

    @property
    def fewest_fitted_to(self) -> int:
        """The number of rows fitted to when the largest fold is left out."""
        rests = (self.rest(key).values() for key in self.keys)
        return min(sum(int(part.counts.sum()) for part in rest) for rest in rests)

    def by_fold(self, labels: list[Any], scale: Array | None) -> GroupMoments:
        """Moments that keep folds apart, with these labels for codes and scaled columns."""
        together = kept_apart(self.parts)
        found: list[FoldLabel] = together.groups.tolist()
        named = together.relabel(
            {label: label._replace(group=labels[label.group]) for label in found}
        )
        return named if scale is None else named._divided(scale)


def groups_alone(moments: GroupMoments) -> GroupMoments:
    """The moments without outcomes; the same object where there are none."""
    groups = without_outcomes(moments)
    assert isinstance(groups, GroupMoments)
    return groups


def kept_apart(parts: Mapping[FoldKey, GroupMoments]) -> GroupMoments:
    """All parts in one, the labels telling repeats and folds apart."""
    labelled = [
        part.relabel({g: FoldLabel(repeat, fold, g) for g in part.groups.tolist()})
        for (repeat, fold), part in parts.items()
    ]
    return reduce(GroupMoments.merge, labelled)
