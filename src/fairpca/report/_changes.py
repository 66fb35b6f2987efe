"""What changes for groups on new rows, in words and as shares."""

from __future__ import annotations

from fairpca._audit.figures import Change
from fairpca._audit.result import Audit
from fairpca.report._size import unit
from fairpca.report._text import figure, signed_percent

_VISIBLE = 1e-6  # of the variance: less is rounding
_LITTLE = 0.01  # of the variance: a share of an error smaller than this says nothing


def changed_groups(audit: Audit, direction: int) -> list[int]:
    """Groups whose error changes in this direction beyond chance, on new rows."""
    if audit.changes is None:
        return []
    changes, visible = audit.changes.groups, _VISIBLE * unit(audit)
    return [
        g
        for g, change in enumerate(changes)
        if audit.compared[g] and change.direction == direction and abs(change.estimate) > visible
    ]


def unlike_pca(audit: Audit) -> bool:
    """Whether the fair projection is another one than PCA for some of the new rows."""
    changes = [] if audit.changes is None else audit.changes.groups
    return any(change.high - change.low > _VISIBLE * unit(audit) for change in changes)


def relative_change(audit: Audit, g: int) -> float:
    """Change of a group’s error on new rows, as a share of its error under PCA."""
    assert audit.changes is not None
    assert audit.cross_validation is not None
    base = max(float(audit.cross_validation.pca.group_errors[g]), 1e-3 * unit(audit))
    return audit.changes.groups[g].estimate / base


def change_text(change: Change, base: float, size: float) -> str:
    """A change and its interval, in percent of the error under PCA unless that is very small."""
    values = (change.estimate, change.low, change.high)
    if base > _LITTLE * size:
        middle, *ends = (signed_percent(value / base) for value in values)
        ends = [end.removesuffix(" %") for end in ends]
    else:
        middle, *ends = (figure(value, 2, size) for value in values)
    return f"{middle} ({' to '.join(ends)})"
