"""Groups too small to be compared with others: refused, merged into one, or left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fairpca._input.checks import check_group_weights, check_integer
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.implicit import ImplicitMoments
from fairpca._moments.operand import Operand

SmallGroups = Literal["error", "merge", "ignore"]

REST = "rest"


@dataclass(frozen=True)
class SettledGroups:
    """The groups as a fit sees them.

    Attributes
    ----------
    moments : GroupMoments or ImplicitMoments
    compared : ndarray of bool, shape (k,)
        False for groups that count in the overall error only.
    small : list
        Labels of the groups that were merged or left out.
    """

    moments: GroupMoments | ImplicitMoments
    compared: NDArray[np.bool_]
    small: list[Any]

    @cached_property
    def operand(self) -> Operand:
        """The second moments about the overall mean, as a solver wants them."""
        return self.moments.operand(compared=self.compared)


def settle_small_groups(
    moments: GroupMoments | ImplicitMoments, min_group_size: int, small_groups: SmallGroups
) -> SettledGroups:
    """Do with groups of fewer than ``min_group_size`` rows what ``small_groups`` says."""
    if small_groups not in get_args(SmallGroups):
        raise ValueError(
            f"small_groups={small_groups!r}: pass 'error', 'merge' or 'ignore', and min_group_size "
            "with the number of rows that a group needs."
        )
    check_integer("min_group_size", min_group_size, 1)
    check_group_weights(moments.groups, moments.weights)
    is_small = moments.counts < min_group_size
    labels = moments.groups.tolist()
    small = [label for label, below in zip(labels, is_small, strict=True) if below]
    if not small or small_groups == "ignore":
        return SettledGroups(moments, ~is_small, small)
    sizes = dict(zip(labels, moments.counts.tolist(), strict=True))
    listed = ", ".join(f"{label!r} ({sizes[label]} rows)" for label in small[:10])
    listed += f" and {len(small) - 10} more" if len(small) > 10 else ""
    below = f"{listed}: fewer than min_group_size={min_group_size}"
    if small_groups == "error":
        raise ValueError(
            f"too small to be compared are {below}. Pass small_groups='merge' to make them one "
            f"group called {REST!r}, small_groups='ignore' to leave them out of the comparison but "
            "not of the overall error, or a smaller min_group_size."
        )
    together = sum(sizes[label] for label in small)
    if together < min_group_size:
        raise ValueError(
            f"too small to be compared are {below}, and merged they have {together} rows, which is "
            "still too few. Pass small_groups='ignore', or a smaller min_group_size."
        )
    if REST in labels and REST not in small:
        raise ValueError(
            f"small_groups='merge' calls the merged group {REST!r}, but there is a group of that "
            "name already; give it another label."
        )
    merged = moments.relabel(dict.fromkeys(small, REST))
    return SettledGroups(merged, np.ones(len(merged.groups), dtype=bool), small)
