"""Groups too small to be compared with others: refused, merged into one, or left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from fairpca._input.checks import check_group_weights, check_integer, check_variance
from fairpca._moments.fold_labels import have_folds
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.implicit import ImplicitMoments
from fairpca._moments.operand import Operand
from fairpca._threads import computed_once
from fairpca._typing import Mask

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
    outcomes : GroupMoments or ImplicitMoments, optional
        The same rows with their outcomes, where these are known: with a :class:`Cell` for each
        group and class, or with the target as last columns.
    by_fold : GroupMoments, optional
        The same rows by fold and group, as it was before, where folds are kept apart.
    """

    moments: GroupMoments | ImplicitMoments
    compared: Mask
    small: list[Any]
    outcomes: GroupMoments | ImplicitMoments | None = None
    by_fold: GroupMoments | None = None

    @computed_once
    def operand(self) -> Operand:
        """The second moments about the overall mean, as a solver wants them."""
        operand = self.moments.operand(compared=self.compared)
        check_variance(float(operand.shares @ operand.traces))
        return operand

    def measured(self, normalize: bool) -> Operand:
        """The same; with ``normalize``, each error is a share of the group's own variance."""
        return self.operand.relative() if normalize else self.operand

    def places(self) -> dict[Any, int]:
        """The group that the rows of each label are in now."""
        place = {label: g for g, label in enumerate(self.moments.groups.tolist())}
        return {label: place[REST] for label in self.small if REST in place} | place


def settle_small_groups(
    moments: GroupMoments | ImplicitMoments, min_group_size: int, small_groups: SmallGroups
) -> SettledGroups:
    """Refuse, merge or ignore the groups of fewer than ``min_group_size`` rows."""
    if small_groups not in get_args(SmallGroups):
        raise ValueError(
            f"small_groups={small_groups!r}: pass 'error', 'merge' or 'ignore', and min_group_size "
            "with the number of rows that a group needs."
        )
    check_integer("min_group_size", min_group_size, 1)
    if isinstance(moments, GroupMoments) and have_folds(moments.groups.tolist()):
        settled = settle_small_groups(moments.without_folds(), min_group_size, small_groups)
        return replace(settled, by_fold=moments)
    check_group_weights(moments.groups, moments.weights)
    is_small = moments.counts < min_group_size
    if small_groups == "ignore" or not is_small.any():
        return SettledGroups(moments, ~is_small, moments.groups[is_small].tolist())
    small = dict(
        zip(moments.groups[is_small].tolist(), moments.counts[is_small].tolist(), strict=True)
    )
    listed = ", ".join(f"{label!r} ({size} rows)" for label, size in list(small.items())[:10])
    listed += f" and {len(small) - 10} more" if len(small) > 10 else ""
    problem = f"groups with fewer rows than min_group_size={min_group_size}: {listed}."
    if small_groups == "error":
        raise ValueError(
            f"{problem} Pass small_groups='merge' (--small-groups merge) to make them one group "
            f"called {REST!r}, small_groups='ignore' (--small-groups ignore) to leave them out of "
            "the comparison but not of the overall error, or a smaller min_group_size."
        )
    together = sum(small.values())
    if together < min_group_size:
        raise ValueError(
            f"{problem} Merged, they have {together} rows, which is still too few; pass "
            "small_groups='ignore' (--small-groups ignore), or a smaller min_group_size."
        )
    if REST in moments.groups.tolist() and REST not in small:
        raise ValueError(
            f"small_groups='merge' calls the merged group {REST!r}, but there is a group of that "
            "name already; give it another label."
        )
    merged = moments.relabel(dict.fromkeys(small, REST))
    return SettledGroups(merged, np.ones(len(merged.groups), dtype=bool), list(small))
