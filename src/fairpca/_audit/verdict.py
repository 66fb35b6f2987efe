"""The verdict: which of a few cases the figures of an audit are, and all thresholds for that.

The words are made in ``fairpca.report``; gates and JSON use the cases as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairpca._audit.record import DecidingColumn, GroupResult, Interval


class Case(Enum):
    """What can be said about the groups."""

    NO_GAP = "no gap beyond chance"
    REMEDY = "a gap, and a remedy that reliably helps"
    NO_REMEDY = "a gap, and no reliable remedy"
    GAP = "a gap"  # of a fitted model, for which no remedy is tried
    CANNOT_JUDGE = "cannot be judged"


class Reason(Enum):
    """Why nothing can be judged."""

    TOO_FEW_ROWS = "too few rows"
    NOTHING_COMPRESSED = "nothing compressed"
    ONE_VALUE_DECIDES = "one value decides"


class Remedy(Enum):
    """What became of the alternative that was tried."""

    HELPS = "reliably helps"
    IS_PCA = "is PCA itself"
    NOT_RELIABLE = "its gain can be chance, or there is none"
    HARMS_ANOTHER = "reliably puts another group above the worst error under PCA"
    NOT_TRIED = "not tried"


@dataclass(frozen=True)
class Thresholds:
    """Every threshold of the verdict."""

    judge_from: int = 30  # rows of a group; below, intervals of a mean cannot be relied on
    # A gap below is called small, however reliable: with a million rows everything is reliable.
    # Aequitas and the four-fifths rule of US employment law draw the line at 20 %.
    small_gap: float = 0.05
    level: float = 0.95  # of the intervals of all judged groups together
    power: float = 0.8  # a gap is detectable if these rows show it with this probability
    few_rows: float = 0.005  # share of the rows that is few when a column hangs on them
    decides: float = 0.5  # a column decides if few rows make up this share of a group's error
    paying: float = 0.01  # a group that is not judged pays if its error rises by this share

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"level={self.level}: pass a number between 0 and 1, such as 0.95.")
        if not self.judge_from >= 2:
            raise ValueError(f"judge_from={self.judge_from}: pass a number of rows of at least 2.")
        if not self.small_gap >= 0:
            raise ValueError(f"small_gap={self.small_gap}: pass 0 or more, such as 0.05 for 5 %.")


@dataclass(frozen=True)
class Verdict:
    """The case, and the facts that a sentence about it needs. Groups are given by their labels."""

    case: Case
    reason: Reason | None = None  # only with Case.CANNOT_JUDGE
    group: Any = None  # the judged group whose gap has the largest lower end
    gap: Interval | None = None  # its gap, by the reading of the audit
    by_share: bool = False  # whether that reading is shares of each group's own variation
    small: bool = False  # whether the gap is reliable but small
    worse: Sequence[Any] = ()  # judged groups reliably worse off than all others
    better: Sequence[Any] = ()
    remedy: Remedy = Remedy.NOT_TRIED  # not recommended if the case is NO_GAP, whatever it is
    gainers: Sequence[Any] = ()  # judged groups whose error the alternative reliably lowers
    payers: Sequence[Any] = ()  # or raises
    harmed: Sequence[Any] = ()  # or puts above the worst error under PCA
    unjudged_payers: Sequence[Any] = ()  # by the bare figure
    readings_agree: bool | None = None  # whether errors and shares name the same group as worst off
    other_group: Any = None  # whom the other reading names; None if nobody
    detectable_gap: float | None = None  # such a gap would have been seen for any judged group


def decide(
    groups: Sequence[GroupResult],
    columns: Sequence[DecidingColumn],
    thresholds: Thresholds,
    *,
    nothing_compressed: bool = False,
    by_share: bool = False,
    is_pca: bool = False,
    remedy_tried: bool = True,
) -> Verdict:
    """The verdict from the figures of the groups; by shares of their own variation if asked to.

    ``nothing_compressed``: all errors are rounding. ``is_pca``: the alternative is plain PCA.
    ``remedy_tried`` is False for a fitted model.
    """
    changes = {}
    if remedy_tried and not nothing_compressed:
        changes = _changes(groups, thresholds)
    judged = [row for row in groups if row.baseline.gap is not None]
    reason = None if judged else Reason.TOO_FEW_ROWS
    if any(column.decides for column in columns):
        reason = Reason.ONE_VALUE_DECIDES
    if nothing_compressed:
        reason = Reason.NOTHING_COMPRESSED
    if reason is not None:
        return Verdict(Case.CANNOT_JUDGE, reason, by_share=by_share, **changes)
    gaps = {row.label: _gap(row, by_share) for row in judged}
    worst = max(gaps, key=lambda label: gaps[label].low)
    worse = [label for label, gap in gaps.items() if gap.direction > 0]
    better = [label for label, gap in gaps.items() if gap.direction < 0]
    other_group, agree = _other_reading(judged, worst if worse else None, not by_share)
    remedy = Remedy.IS_PCA if is_pca else _remedy(changes, worst) if changes else Remedy.NOT_TRIED
    case = Case.NO_GAP if not worse else Case.GAP if not remedy_tried else Case.NO_REMEDY
    if case is Case.NO_REMEDY and remedy is Remedy.HELPS:
        case = Case.REMEDY
    return Verdict(
        case,
        group=worst,
        gap=gaps[worst],
        by_share=by_share,
        small=bool(worse) and gaps[worst].value < thresholds.small_gap,
        worse=worse,
        better=better,
        remedy=remedy,
        readings_agree=agree,
        other_group=other_group,
        detectable_gap=max((row.detectable_gap or 0.0 for row in judged), default=None),
        **changes,
    )


def groups_above(
    groups: Sequence[GroupResult], limit: float, *, by_share: bool, estimate: bool = False
) -> list[GroupResult]:
    """Judged groups that are more than ``limit`` worse off than all others.

    By the lower end of the interval, so beyond chance; with ``estimate`` by the bare figure.
    """
    judged = [(row, _gap(row, by_share)) for row in groups if row.baseline.gap is not None]
    return [row for row, gap in judged if (gap.value if estimate else gap.low) > limit]


def _gap(row: GroupResult, by_share: bool) -> Interval:
    gap = row.baseline.share_gap if by_share else row.baseline.gap
    if gap is None:
        raise ValueError(f"the group {row.label!r} is judged but has no interval.")
    return gap


def _changes(groups: Sequence[GroupResult], thresholds: Thresholds) -> dict[str, Any]:
    """Who gains and who pays, as fields of the verdict."""
    known = {row.label: row.change for row in groups if row.judged and row.change is not None}
    above = {row.label: row.above_worst for row in groups if row.judged}
    return {
        "gainers": [label for label, change in known.items() if change.direction < 0],
        "payers": [label for label, change in known.items() if change.direction > 0],
        "harmed": [label for label, over in above.items() if over and over.direction > 0],
        "unjudged_payers": [
            row.label
            for row in groups
            if not row.judged and row.change_estimate > thresholds.paying
        ],
    }


def _remedy(changes: dict[str, Any], worst: Any) -> Remedy:
    if worst not in changes["gainers"]:
        return Remedy.NOT_RELIABLE
    return Remedy.HARMS_ANOTHER if changes["harmed"] else Remedy.HELPS


def _other_reading(judged: Sequence[GroupResult], worst: Any, by_share: bool) -> tuple[Any, bool]:
    """Whom the other reading names as reliably worst off, and whether both readings agree.

    They agree if they name the same group, or if only one of them names a group and the other
    finds it worse off too, though not reliably.
    """
    gaps = {row.label: _gap(row, by_share) for row in judged}
    other = max(gaps, key=lambda label: gaps[label].low)
    if gaps[other].low <= 0:
        return None, worst is None or gaps[worst].value > 0
    if worst is None:
        row = next(row for row in judged if row.label == other)
        return other, _gap(row, not by_share).value > 0
    return other, other == worst
