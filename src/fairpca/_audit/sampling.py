"""Samples of rows, and the groups of rows once small groups are settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._moments.small_groups import REST, SettledGroups
from fairpca._typing import Array, Codes, Labels


@dataclass(frozen=True)
class SampledRows:
    """A sample of the rows: their numbers, groups and values."""

    rows: Codes
    codes: Codes
    values: Array


def cells_of(codes: Codes, target: Labels) -> Codes:
    """A number for each pair of a group and a class that occurs."""
    _, classes = np.unique(target, return_inverse=True)
    _, cells = np.unique(codes * (int(classes.max()) + 1) + classes, return_inverse=True)
    return np.asarray(cells, np.intp)


def fewest_rows(codes: Codes, names: Sequence[Any], need: str) -> int:
    """The number of rows of the smallest group that occurs, which must be two at least."""
    _, first, sizes = np.unique(codes, return_index=True, return_counts=True)
    g = int(sizes.argmin())
    if sizes[g] < 2:
        raise ValueError(
            f"{need}, but {names[first[g]]!r} has one; leave that group out, or merge small groups "
            "with min_group_size and small_groups='merge'."
        )
    return int(sizes[g])


def fewest_in_cells(codes: Codes, labels: Labels, target: Labels) -> int:
    """The same for the rows of a group that have one class."""
    names = list(zip(labels.tolist(), target.tolist(), strict=True))
    need = "what is said about new rows needs two rows of each group and class"
    return fewest_rows(cells_of(codes, target), names, need)


def settled_codes(labels: Sequence[Any], settled: SettledGroups) -> Codes:
    """Codes of groups among the settled ones, where small groups may have become the rest."""
    groups = settled.moments.groups.tolist()
    return np.array([groups.index(label if label in groups else REST) for label in labels], np.intp)


def draw_evenly(sizes: Codes, n_scores: int, rng: np.random.Generator) -> list[Codes]:
    """Numbers of rows within each group, the same number of every group that has as many."""
    most = max(n_scores // len(sizes), 1)
    return [rng.choice(int(n), min(int(n), most), replace=False) for n in sizes]
