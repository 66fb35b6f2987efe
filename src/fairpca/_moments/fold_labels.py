"""Folds as one more label: the rows of one group in one fold are a group of the moments.

Rows that are left out together form a fold. Written into the labels, folds need no machinery of
their own: they are accumulated in the same pass as groups, merged, pickled and sent around.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from fairpca._input.checks import check_integer
from fairpca._input.labels import CodedLabels, encode_cells, encode_groups
from fairpca._typing import Codes, Labels

NEVER = -1  # the fold of rows that are never left out

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class FoldLabel(NamedTuple):
    """The label of one group in one fold; with repeats, each row counts once for each."""

    repeat: int
    fold: int
    group: Any


@dataclass(frozen=True)
class HashedFolds:
    """Folds by a hash of each row's position: the same however the rows are cut into blocks."""

    n_folds: int
    seed: int = 0

    def of(self, positions: Codes, source: str = "") -> Codes:
        """The folds of rows, by their positions within a source, such as the second file."""
        start = np.uint64(crc32(source.encode(), self.seed & 0xFFFFFFFF)) << np.uint64(32)
        with np.errstate(over="ignore"):
            z = (positions.astype(np.uint64) + start + np.uint64(self.seed)) * _GOLDEN
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # SplitMix64
                z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        return ((z ^ (z >> np.uint64(31))) % np.uint64(self.n_folds)).astype(np.intp)


#: How rows go to folds: not at all, by a hash, or as they are numbered.
FoldOptions = HashedFolds | Codes | None


def cross_folds(codes: Codes, labels: Sequence[Any], folds: Codes) -> CodedLabels:
    """The label of each row, from its group and its fold."""
    if len(folds) != len(codes):
        raise ValueError(
            f"folds has {len(folds)} numbers but X has {len(codes)} rows; pass one number per row, "
            "or how many folds there are."
        )
    numbers = range(NEVER, int(folds.max(initial=NEVER)) + 1)
    crossed = [FoldLabel(0, fold, label) for fold in numbers for label in labels]
    return CodedLabels((folds - NEVER) * len(labels) + codes, crossed)


def encode_by_fold(
    groups: Any, target: Any, n_rows: int, folds: FoldOptions = None, first: int = 0
) -> tuple[Codes, Labels]:
    """Codes and labels of the groups, by outcome where there is a target, and by fold."""
    cells = groups if target is None else encode_cells(groups, target, n_rows)
    codes, labels = encode_groups(cells, n_rows)
    if folds is None:
        return codes, labels
    if isinstance(folds, HashedFolds):
        folds = folds.of(first + np.arange(n_rows))
    return encode_groups(cross_folds(codes, labels.tolist(), folds), n_rows)


def have_folds(labels: Sequence[Any]) -> bool:
    """Whether these labels of groups tell folds apart."""
    return len(labels) > 0 and all(isinstance(label, FoldLabel) for label in labels)


def group_of(label: Any) -> Any:
    """The group alone."""
    return label.group if isinstance(label, FoldLabel) else label


def with_group(label: Any, group: Any) -> Any:
    """The label with another group, in the same fold."""
    return label._replace(group=group) if isinstance(label, FoldLabel) else group


def check_folds(folds: Any, seed: int) -> FoldOptions:
    """Folds as a user may pass them: None, their number, or a number for each row."""
    if folds is None or np.ndim(folds) == 0:
        return check_hashed_folds(folds, seed)
    numbers = np.asarray(folds)
    if numbers.ndim != 1 or numbers.dtype.kind not in "biu" or (numbers < 0).any():
        raise ValueError(
            "folds must hold one fold per row, an integer of at least 0; pass for example "
            "folds=np.arange(len(X)) % 10, or folds=10."
        )
    return numbers.astype(np.intp)


def check_hashed_folds(n_folds: int | None, seed: int) -> HashedFolds | None:
    """The number of folds, checked; None means no folds."""
    if n_folds is None:
        return None
    check_integer("folds", n_folds, 2)
    check_integer("fold_seed", seed, 0)
    return HashedFolds(int(n_folds), int(seed))
