"""Which fold a row belongs to: deterministic, balanced to one row, and the same for streams.

The rows of each group are counted in the order in which they come. K successive rows form a block,
and the rows of block b go to the K folds in an order that depends on b and on a salt alone. So
every fold gets the same number of rows of every group, up to one; sorted rows do no harm; a stream
needs one counter per group; and the same rows in memory and in streams have the same folds.

Where rows belong to units, all rows of a unit go to the fold that a hash of its label says. That
needs no counting, so the folds are the same wherever the rows are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._input.checks import check_integer
from fairpca._input.units import Units, keyed, mixed
from fairpca._typing import Codes


@dataclass(frozen=True)
class FoldRule:
    """A number of folds, and a salt; another salt gives other folds."""

    n_folds: int
    salt: int = 0
    by_unit: bool = False

    def __post_init__(self) -> None:
        check_integer("folds", self.n_folds, 2)
        check_integer("fold_seed", self.salt, 0)

    def __str__(self) -> str:
        counted = ""
        if self.by_unit:
            counted = " of units"
        return f"folds={self.n_folds}{counted} with fold_seed={self.salt}"

    def folds_of_units(self, units: Units) -> Codes:
        """The fold of each row, given the number of its unit."""
        return keyed(units, self.salt, self.n_folds)

    def folds_of(self, codes: Codes, seen: Codes) -> Codes:
        """The fold of each row, given its group and how many rows of each group came before."""
        counts = np.bincount(codes, minlength=len(seen))
        ranks = np.empty(len(codes), np.intp)
        starts = np.cumsum(counts) - counts - seen
        ranks[np.argsort(codes, kind="stable")] = np.arange(len(codes)) - np.repeat(starts, counts)
        blocks, places = np.divmod(ranks, self.n_folds)
        numbers, which = np.unique(blocks, return_inverse=True)
        rows = numbers[:, None] * self.n_folds + np.arange(self.n_folds)
        salt = mixed(np.array([int(self.salt) % 2**64], np.uint64))
        keys = mixed(rows.astype(np.uint64) ^ salt)
        orders = np.argsort(keys, axis=1)  # a permutation of the folds for each block
        return np.asarray(orders[which, places])

    def within(self, part: int) -> FoldRule:
        """The rule for one partition of a cluster, where rows are counted from zero again."""
        if self.by_unit:
            return self
        salt = mixed(np.array([self.salt], np.uint64) + mixed(np.array([part + 1], np.uint64)))
        return FoldRule(self.n_folds, int(salt[0]))


def check_folds(folds: Any, salt: int) -> FoldRule | Codes | None:
    """Check folds as users pass them: None, the number of folds, or the fold of each row."""
    if folds is None or isinstance(folds, FoldRule):
        return folds
    if np.ndim(folds) == 0:
        return FoldRule(folds, salt)
    numbers = np.asarray(folds)
    if numbers.ndim != 1 or numbers.dtype.kind not in "biu" or (numbers < 0).any():
        problem = "folds must hold one fold per row, an integer of at least 0"
        raise ValueError(f"{problem}; pass for example np.arange(len(X)) % 10, or folds=10.")
    return numbers.astype(np.intp)
