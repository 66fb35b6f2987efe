"""The verdict: the case that the figures of an audit fall into, and all its thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from fairpca._cv.held_out import RELIABLE

if TYPE_CHECKING:
    from fairpca._audit.record import DecidingColumn, Gain, GapReading, GroupResult, Interval


class Case(Enum):
    """The cases of the verdict."""

    NO_GAP = "no gap beyond chance"
    HELPS_ANYWAY = (
        "no gap beyond chance, but a fair version reliably helps the group described worst"
    )
    REMEDY = "a gap, and a remedy that reliably helps"
    NO_REMEDY = "a gap, and no reliable remedy"
    GAP = "a gap"  # for a fitted model no remedy is tried
    DEPENDS = "a gap that depends on how the figures are read"
    CANNOT_JUDGE = "cannot be judged"


class Reason(Enum):
    """Why nothing can be judged."""

    TOO_FEW_ROWS = "too few rows"
    NOTHING_COMPRESSED = "nothing compressed"
    ONE_COLUMN_DECIDES = "one column has all of the variance, and the others are lost"
    ONE_VALUE_DECIDES = "one value decides"
    OTHERS_TOGETHER = "the others are worse off, but none of them reliably by itself"
    OTHER_ROWS = "most rows lie outside of what the model was fitted to"


class Remedy(Enum):
    """The outcome for the alternative that was tried."""

    HELPS = "reliably helps"
    IS_PCA = "is PCA itself"
    NOT_RELIABLE = "its gain can be chance, or there is none"
    RAISES_LARGEST = "reliably raises the largest error of a group"
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
    dominates: float = 0.9  # a column of this share of the variance leaves little to others
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
    # Groups whose gap, or whose lack of one, a reading overturns; they are not among ``worse``.
    depending: Sequence[Any] = ()
    better: Sequence[Any] = ()  # judged groups reliably better off
    # Groups too small for an interval that are worse off beyond chance, by a permutation test.
    small_worse: Sequence[Any] = ()
    remedy: Remedy = Remedy.NOT_TRIED
    gainers: Sequence[Any] = ()  # judged groups whose error the alternative reliably lowers
    payers: Sequence[Any] = ()  # judged groups whose error it reliably raises
    unjudged_payers: Sequence[Any] = ()  # other groups whose estimated error it raises
    # Whether errors and shares name the same group as worst off; None if one is not conclusive.
    readings_agree: bool | None = None
    other_group: Any = None  # the group that the other reading names, if any
    close_call: bool = False  # whether other folds would give another answer
    detectable_gap: float | None = None  # a gap this large would be seen in any judged group


@dataclass(frozen=True)
class Facts:
    """What the rules look at: one computation for all of them."""

    thresholds: Thresholds
    gaps: Mapping[Any, Interval]  # of judged groups, by the reading of the audit
    worst: Any  # the judged group of the headline
    worse: Sequence[Any]  # judged groups reliably worse off by every reading, worst first
    depending: Sequence[Any]  # those whose gap a reading overturns
    better: Sequence[Any]
    small_worse: Sequence[Any]
    gain: Gain | None
    reference: Any
    nothing_compressed: bool
    columns_are_lost: bool
    one_value_decides: bool
    outside: float
    is_pca: bool

    @property
    def best(self) -> Any:
        """The judged group with the smallest upper end."""
        return min(self.gaps, key=lambda label: self.gaps[label].high)

    @property
    def others_are_worse_off_together(self) -> bool:
        """Whether all that is reliable is that a group is far ahead of the others together."""
        known = self.worse or self.depending or self.small_worse
        if known or not self.better or self.reference is not None:
            return False
        ahead = (1 + self.gaps[self.best].value) * (1 + self.thresholds.small_gap)
        return ahead < 1  # the gap of the others is not small


OTHER_FOLDS = "other folds"  # the name of a reading

#: Reasons for which errors, and so their changes, mean nothing.
MEANINGLESS = (
    Reason.ONE_COLUMN_DECIDES,
    Reason.NOTHING_COMPRESSED,
    Reason.OTHER_ROWS,
    Reason.ONE_VALUE_DECIDES,
)


def _remedy(facts: Facts) -> Remedy:
    """What the alternative does."""
    if facts.gain is None:
        return Remedy.NOT_TRIED
    if facts.is_pca:
        return Remedy.IS_PCA
    if not facts.gain.t > RELIABLE:  # the statistic of FairPCACV
        return Remedy.NOT_RELIABLE
    if facts.gain.largest.low > 0:
        return Remedy.RAISES_LARGEST
    return Remedy.HELPS


def _reason(facts: Facts) -> Reason | None:
    """What stands in the way of a verdict, if anything does."""
    if facts.nothing_compressed and facts.columns_are_lost:
        return Reason.ONE_COLUMN_DECIDES
    if facts.nothing_compressed:
        return Reason.NOTHING_COMPRESSED
    if facts.outside > facts.thresholds.outside:
        return Reason.OTHER_ROWS
    if facts.one_value_decides and not facts.depending:
        return Reason.ONE_VALUE_DECIDES
    if not facts.gaps:
        return Reason.TOO_FEW_ROWS
    if facts.others_are_worse_off_together:
        return Reason.OTHERS_TOGETHER
    return None


def _case(facts: Facts, remedy: Remedy) -> Case:
    """The case where nothing stands in the way."""
    if facts.depending and not facts.worse:
        return Case.DEPENDS
    if not facts.worse and remedy is Remedy.HELPS:
        return Case.HELPS_ANYWAY
    if not facts.worse:
        return Case.NO_GAP
    if facts.gain is None:
        return Case.GAP
    if remedy is Remedy.HELPS:
        return Case.REMEDY
    return Case.NO_REMEDY


def decide(
    groups: Sequence[GroupResult],
    columns: Sequence[DecidingColumn],
    thresholds: Thresholds,
    *,
    readings: Sequence[GapReading] = (),
    nothing_compressed: bool = False,  # all errors are rounding beside the variance of all columns
    columns_are_lost: bool = False,  # columns lose more than half of their own variance
    by_share: bool = False,  # judge shares of each group's own variation
    is_pca: bool = False,  # the alternative is plain PCA
    gain: Gain | None = None,  # None for a fitted model
    helped_again: Sequence[bool] = (),  # whether the alternative helps in other folds
    reference: Any = None,  # the group that all others are compared with
    outside: float | None = None,  # share of the rows unlike those that a model was fitted to
) -> Verdict:
    """The verdict from the figures of the groups."""
    small_worse = _small_worse(groups, thresholds)
    changes: dict[str, Any] = {"small_worse": small_worse}
    if gain is not None:
        changes |= _changes(groups, thresholds)
    gaps = gaps_of(groups, by_share)
    shown = shown_in(gaps)
    overturned = {reading.group for reading in readings if reading.overturns}
    worse = [label for label in shown if label not in overturned]
    # A reading may also show a gap that is hidden, after those that are shown.
    depending = [label for label in {**dict.fromkeys(shown), **gaps} if label in overturned]
    named = {label: gaps[label] for label in worse or depending or gaps}
    worst = None
    if gaps:
        worst = headline(named, reference)
    facts = Facts(
        thresholds=thresholds,
        gaps=gaps,
        worst=worst,
        worse=worse,
        depending=depending,
        better=[label for label, gap in gaps.items() if gap.direction < 0],
        small_worse=small_worse,
        gain=gain,
        reference=reference,
        nothing_compressed=nothing_compressed,
        columns_are_lost=columns_are_lost,
        one_value_decides=any(column.decides for column in columns),
        outside=outside or 0.0,
        is_pca=is_pca,
    )
    reason = _reason(facts)
    if reason is not None:
        return _cannot_judge(reason, facts, by_share, changes)
    remedy = _remedy(facts)
    is_small = bool(worse) and gaps[worse[0]].value < thresholds.small_gap
    other = _other_reading(gaps_of(groups, not by_share), reference)
    agree = None
    if not shown and other is None:
        agree = True
    if shown and other is not None:
        agree = other == worst
    return Verdict(
        _case(facts, remedy),
        group=worst,
        gap=gaps[worst],
        by_share=by_share,
        small=is_small,
        worse=worse,
        depending=depending,
        better=facts.better,
        remedy=remedy,
        readings_agree=agree,
        other_group=other,
        close_call=_is_close(remedy, worst, readings, helped_again),
        detectable_gap=max(row.detectable_gap or 0.0 for row in groups),
        **changes,
    )


def _is_close(
    remedy: Remedy, worst: Any, readings: Sequence[GapReading], helped_again: Sequence[bool]
) -> bool:
    """Whether other folds would not show the gap of the headline, or judge the remedy otherwise."""
    helps = remedy is Remedy.HELPS
    if any(again != helps for again in helped_again):
        return True
    own = [r.gap for r in readings if r.name == OTHER_FOLDS and r.group == worst and r.gap]
    return any(gap.low <= 0 for gap in own)


def _cannot_judge(reason: Reason, facts: Facts, by_share: bool, changes: dict[str, Any]) -> Verdict:
    """The verdict that there is none, with what is known nevertheless."""
    if reason in MEANINGLESS:
        return Verdict(Case.CANNOT_JUDGE, reason, by_share=by_share)
    if reason is Reason.TOO_FEW_ROWS:
        return Verdict(Case.CANNOT_JUDGE, reason, by_share=by_share, **changes)
    best = facts.best
    return Verdict(
        Case.CANNOT_JUDGE,
        reason,
        group=best,
        gap=facts.gaps[best],
        better=facts.better,
        by_share=by_share,
        **changes,
    )


def _small_worse(groups: Sequence[GroupResult], thresholds: Thresholds) -> list[Any]:
    """Groups without an interval that are worse off; one-sided, for all of them at once."""
    tested = {row.label: row.p_worse for row in groups if row.p_worse is not None}
    limit = (1 - thresholds.level) / 2 / max(len(tested), 1)
    return [label for label, p in tested.items() if p <= limit]


def _changes(groups: Sequence[GroupResult], thresholds: Thresholds) -> dict[str, Any]:
    """Which groups gain and lose under the alternative."""
    directions = {row.label: row.change.direction for row in groups if row.judged}
    others = [row for row in groups if not row.judged]
    return {
        "gainers": [label for label, direction in directions.items() if direction < 0],
        "payers": [label for label, direction in directions.items() if direction > 0],
        "unjudged_payers": [r.label for r in others if r.change.value > thresholds.paying],
    }


def shown_in(gaps: Mapping[Any, Interval]) -> list[Any]:
    """The groups that are reliably worse off, those with the largest gap first."""
    worse = [label for label, gap in gaps.items() if gap.direction > 0]
    return sorted(worse, key=lambda label: -gaps[label].value)


def _other_reading(gaps: Mapping[Any, Interval], reference: Any) -> Any:
    """The group that the other reading names as reliably worst off, if there is one."""
    named = headline(gaps, reference)
    if gaps[named].direction > 0:
        return named
    return None


def headline(gaps: Mapping[Any, Interval], reference: Any) -> Any:
    """The largest lower end; the reference only if nobody is reliably worse off than it."""
    return max(gaps, key=lambda g: (gaps[g].direction > 0, g != reference, gaps[g].low))


def gaps_of(
    groups: Sequence[GroupResult], by_share: bool, after: bool = False
) -> dict[Any, Interval]:
    """The gap of every judged group by one of the readings, also ``after`` the alternative."""
    found = {}
    for row in groups:
        figures = row.baseline
        if after:
            figures = row.alternative
        gap, _ = figures.read(by_share)
        if gap is not None:
            found[row.label] = gap
    return found
