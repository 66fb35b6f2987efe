"""The verdict: the case that the figures of an audit fall into, and all its thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairpca._audit.record import DecidingColumn, GroupResult, Interval


class Case(Enum):
    """The cases of the verdict."""

    NO_GAP = "no gap beyond chance"
    REMEDY = "a gap, and a remedy that reliably helps"
    NO_REMEDY = "a gap, and no reliable remedy"
    GAP = "a gap"  # for a fitted model no remedy is tried
    CANNOT_JUDGE = "cannot be judged"


class Reason(Enum):
    """Why nothing can be judged."""

    TOO_FEW_ROWS = "too few rows"
    NOTHING_COMPRESSED = "nothing compressed"
    ONE_VALUE_DECIDES = "one value decides"
    OTHERS_TOGETHER = "the others are worse off, but none of them reliably by itself"
    OTHER_ROWS = "most rows lie outside of what the model was fitted to"


class Remedy(Enum):
    """The outcome for the alternative that was tried."""

    HELPS = "reliably helps"
    IS_PCA = "is PCA itself"
    NOT_RELIABLE = "its gain can be chance, or there is none"
    HARMS_ANOTHER = "reliably puts another group above the worst error under PCA"
    WIDENS = "leaves a larger gap"
    NOT_TRIED = "not tried"


@dataclass(frozen=True)
class Thresholds:
    """Every threshold of the verdict."""

    judge_from: int = 30  # With fewer rows, intervals of a group's mean are not reliable.
    # A gap below this is called small: with a million rows, every gap is reliable.
    small_gap: float = 0.05
    large_gap: float = 0.2  # as in Aequitas and the four-fifths rule of US employment law
    level: float = 0.95  # all intervals of judged groups hold together with this probability
    power: float = 0.8  # a gap is detectable if these rows show it with this probability
    few_rows: float = 0.005  # share of the rows that counts as few
    decides: float = 1 / 3  # a column decides if few rows make up this share of a group's error
    paying: float = 0.01  # a group that is not judged pays if its error rises by this share
    outside: float = 0.5  # a model is not judged if more than this share of the rows is unlike its

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
    # The judged group whose gap has the largest lower end, the reference last; the best-off group
    # if all that is reliable is that the others together are worse off.
    group: Any = None
    gap: Interval | None = None  # the gap of this group, by the reading of the audit
    by_share: bool = False  # whether that reading is shares of each group's own variation
    small: bool = False  # whether all reliable gaps are small
    worse: Sequence[Any] = ()  # judged groups reliably worse off than all others
    better: Sequence[Any] = ()  # judged groups reliably better off
    remedy: Remedy = Remedy.NOT_TRIED  # not recommended without a gap, even if it helps
    gainers: Sequence[Any] = ()  # judged groups whose error the alternative reliably lowers
    payers: Sequence[Any] = ()  # judged groups whose error it reliably raises
    harmed: Sequence[Any] = ()  # judged groups that it reliably puts above the worst PCA error
    unjudged_payers: Sequence[Any] = ()  # other groups whose estimated error it raises
    # Whether errors and shares name the same group as worst off; None if one is not conclusive.
    readings_agree: bool | None = None
    other_group: Any = None  # the group that the other reading names, if any
    detectable_gap: float | None = None  # a gap this large would be seen in any judged group


def decide(
    groups: Sequence[GroupResult],
    columns: Sequence[DecidingColumn],
    thresholds: Thresholds,
    *,
    nothing_compressed: bool = False,  # all errors are rounding
    by_share: bool = False,  # judge shares of each group's own variation
    is_pca: bool = False,  # the alternative is plain PCA
    remedy_tried: bool = True,  # False for a fitted model
    reference: Any = None,  # the group that all others are compared with
    outside: float | None = None,  # share of the rows unlike those that a model was fitted to
) -> Verdict:
    """The verdict from the figures of the groups."""
    changes: dict[str, Any] = {}
    if remedy_tried and not nothing_compressed:
        judged = [row for row in groups if row.judged]
        others = [row for row in groups if not row.judged]
        changes = {
            "gainers": [row.label for row in judged if row.change and row.change.direction < 0],
            "payers": [row.label for row in judged if row.change and row.change.direction > 0],
            "harmed": [r.label for r in judged if r.above_worst and r.above_worst.direction > 0],
            "unjudged_payers": [r.label for r in others if r.change_estimate > thresholds.paying],
        }
    gaps, other_gaps = gaps_of(groups, by_share), gaps_of(groups, not by_share)
    reason = None if gaps else Reason.TOO_FEW_ROWS
    if any(column.decides for column in columns):
        reason = Reason.ONE_VALUE_DECIDES
    if (outside or 0.0) > thresholds.outside:
        reason = Reason.OTHER_ROWS
    if nothing_compressed:
        reason = Reason.NOTHING_COMPRESSED
    if reason is not None:
        changes = changes if reason is Reason.TOO_FEW_ROWS else {}  # otherwise they mean nothing
        return Verdict(Case.CANNOT_JUDGE, reason, by_share=by_share, **changes)
    worst, other = headline(gaps, reference), headline(other_gaps, reference)
    worse = [label for label, gap in gaps.items() if gap.direction > 0]
    worse.sort(key=lambda label: -gaps[label].value)
    better = [label for label, gap in gaps.items() if gap.direction < 0]
    best = min(gaps, key=lambda label: gaps[label].high)
    ahead = (1 + gaps[best].value) * (1 + thresholds.small_gap) < 1  # the others' gap is not small
    if not worse and better and reference is None and ahead:
        told = {"group": best, "gap": gaps[best], "better": better, "by_share": by_share}
        return Verdict(Case.CANNOT_JUDGE, Reason.OTHERS_TOGETHER, **told, **changes)
    other = other if other_gaps[other].direction > 0 else None
    agree = other == (worst if worse else None)
    remedy = Remedy.NOT_TRIED
    if is_pca:
        remedy = Remedy.IS_PCA
    elif changes:
        left = gaps_of(groups, by_share, after=True).values()
        widens = any(gap.direction > 0 and gap.value > gaps[worst].value for gap in left)
        remedy = Remedy.WIDENS if widens else Remedy.HELPS
        if changes["harmed"]:
            remedy = Remedy.HARMS_ANOTHER
        if worst not in changes["gainers"]:
            remedy = Remedy.NOT_RELIABLE
    case = Case.REMEDY if remedy is Remedy.HELPS else Case.NO_REMEDY
    if not worse:
        case = Case.NO_GAP
    elif not remedy_tried:
        case = Case.GAP
    return Verdict(
        case,
        group=worst,
        gap=gaps[worst],
        by_share=by_share,
        small=bool(worse) and gaps[worse[0]].value < thresholds.small_gap,
        worse=worse,
        better=better,
        remedy=remedy,
        readings_agree=agree if bool(worse) == (other is not None) else None,
        other_group=other,
        detectable_gap=max(row.detectable_gap or 0.0 for row in groups),
        **changes,
    )


def headline(gaps: dict[Any, Interval], reference: Any) -> Any:
    """The largest lower end; the reference only if nobody is reliably worse off than it."""
    return max(gaps, key=lambda g: (gaps[g].direction > 0, g != reference, gaps[g].low))


def gaps_of(
    groups: Sequence[GroupResult], by_share: bool, after: bool = False
) -> dict[Any, Interval]:
    """The gap of every judged group by one of the readings, also ``after`` the alternative."""
    sides = [(row.label, row.alternative if after else row.baseline) for row in groups]
    return {label: gap for label, own in sides if (gap := own.read(by_share)[0]) is not None}
