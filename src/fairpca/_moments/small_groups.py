"""Groups too small to be compared with others: refused, merged into one, or left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from fairpca._input.checks import check_group_weights
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.implicit import Moments
from fairpca._moments.operand import Operand
from fairpca._moments.sums import scale_of
from fairpca._moments.tolerances import SAFE_TO_SQUARE
from fairpca._typing import Array, Label, Mask
from fairpca.exceptions import NotEnoughRows

SmallGroups = Literal["error", "merge", "ignore"]

REST = "rest"
_LARGEST_VARIANCE = 1e120  # beyond this or its inverse, squares leave the range of float64


@dataclass(frozen=True)
class SettledGroups:
    """The groups as a fit sees them."""

    moments: Moments
    compared: Mask  # false for groups that count in the overall error only
    small: list[Label]  # labels of the groups that were merged or left out
    # The moments by fold and outcome, or with targets as last columns; None without any of these.
    cells: Moments | None = None
    scale: Array | None = None  # divisors of the columns, the same in all these moments
    repeats: tuple[GroupMoments, ...] = ()  # the cells of further repeats of a splitter
    merged: Mapping[Label, Label] = field(default_factory=dict)  # the new names of small groups

    @cached_property
    def operand(self) -> Operand:
        """The second moments about the overall mean, as a solver wants them."""
        operand = self.moments.operand(compared=self.compared)
        variance = float(operand.shares @ operand.traces)
        vanished = variance == 0 and 0 < np.abs(self.moments.means).max() < 1 / SAFE_TO_SQUARE
        if vanished or variance > _LARGEST_VARIANCE or 0 < variance < 1 / _LARGEST_VARIANCE:
            extreme = "large"
            if variance < 1:
                extreme = "small"
            size = f"{variance:.3g}, too {extreme} to compute with"
            raise ValueError(f"X has a total variance of {size}; rescale it with StandardScaler.")
        return operand

    @property
    def covariance(self) -> Array:
        """The second moments of all rows about the overall mean, in the units of X."""
        operand = self.operand
        C = np.tensordot(operand.shares, operand.dense_matrices, axes=1)
        if self.scale is None:
            return C
        return C * np.outer(self.scale, self.scale)

    def measured(self, relative_errors: bool) -> Operand:
        """The operand; with ``relative_errors``, errors are shares of each group's own variance."""
        if relative_errors:
            return self.operand.relative()
        return self.operand

    def with_repeats(self, repeats: Sequence[GroupMoments]) -> SettledGroups:
        """Add the cells of further repeats of a splitter, with small groups merged there too."""
        if isinstance(self.moments, GroupMoments) and self.moments.attributes:
            repeats = [other.by_attribute() for other in repeats]
        return replace(self, repeats=tuple(other.renamed(self.merged) for other in repeats))

    def standardized(self) -> SettledGroups:
        """The same groups with each column divided by its deviation over all rows."""
        moments = self.moments
        cells = self.cells
        scale = scale_of(np.add(*moments.variances()), moments.mean)
        if cells is not None:
            cells = cells.divided(np.append(scale, np.ones(cells.n_targets)))
        return replace(self, moments=moments.divided(scale), cells=cells, scale=scale)


def settle_small_groups(
    moments: Moments, min_group_size: int, small_groups: SmallGroups
) -> SettledGroups:
    """Refuse, merge or ignore the groups of fewer than ``min_group_size`` rows."""
    counts = moments.counts
    check_group_weights(moments.groups, counts)
    is_small = counts < min_group_size
    small = moments.groups[is_small].tolist()
    compared = ~is_small
    merged: dict[Label, Label] = {}
    if small and small_groups != "ignore":
        sizes = counts[is_small].tolist()
        listed = [f"{label!r} ({size} rows)" for label, size in zip(small, sizes, strict=True)]
        if len(listed) > 10:
            listed[10:] = [f"{len(listed) - 10} more"]
        fewer = f"fewer than min_group_size={min_group_size} rows"
        problem = f"groups with {fewer}: {', '.join(listed)}"
        remedy = "small_groups='ignore' to count them in the overall error only"
        if small_groups == "error":
            remedy = f"small_groups='merge' to make them one group called {REST!r}, {remedy}"
            raise NotEnoughRows(f"{problem}; pass {remedy}, or a smaller min_group_size.")
        for members in moments.partitions:  # groups of different attributes overlap
            size = int(counts[members & is_small].sum())
            if 0 < size < min_group_size:
                problem += f", and merged they have {size} rows, which is still too few"
                raise NotEnoughRows(f"{problem}; pass {remedy}, or a smaller min_group_size.")
        merged = {label: _name_of_rest(moments, label) for label in small}
        if set(merged.values()) & set(moments.groups[compared].tolist()):
            problem = f"small_groups='merge' calls the merged group {REST!r}"
            raise ValueError(f"{problem}, but one has that name already; give it another label.")
        moments = moments.renamed(merged)
        compared = np.ones(len(moments.groups), dtype=bool)
    features = moments.keep()  # without folds, outcomes and targets
    cells = None
    if features is not moments:
        cells = moments
    return SettledGroups(features, compared, small, cells, merged=merged)


def _name_of_rest(moments: Moments, label: Label) -> str:
    """What a small group is called once it is merged with others, of the same attribute if any."""
    for attribute, members in moments.attributes.items():
        if label in moments.groups[members].tolist():
            return f"{attribute} = {REST}"
    return REST
