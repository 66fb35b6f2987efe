"""Whether an audit proves that no group is worse off by more than a limit.

It is *shown* that no gap exceeds the limit if the upper end of every group's interval lies below
it, each end one-sided and for this group alone: all of them must pass, so none needs a correction
for many groups. It is shown that a gap exceeds the limit if the lower end of a joint interval does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil, inf, log1p
from typing import Any, Literal

from fairpca._audit.record import AnyAudit, GroupResult, Interval, ModelAudit
from fairpca._audit.verdict import Case, gaps_of

#: What makes a gate fail: that nothing is proven, a gap that is shown, or a bare figure.
FailOn = Literal["unproven", "gap", "estimate"]

# A one-sided 95 % end lies 1.68 standard errors away. A proof where there is no gap, with a chance
# of nine in ten, needs a standard error of log(1 + limit) / 2.9 (benchmarks.audits).
_END, _FOR_A_PROOF = 1.68, 2.9


class Answer(Enum):
    """What a gate says."""

    PASSES = "no gap exceeds the limit"
    EXCEEDED = "a gap exceeds the limit"
    UNPROVEN = "it is not proven that no gap exceeds the limit"
    CANNOT_JUDGE = "cannot be judged"


class Why(Enum):
    """What an answer rests on."""

    VERDICT = "the verdict"
    OWN_ROWS = "the model was fitted to these rows"
    TOO_SMALL = "groups that are too small to be judged"
    DEPENDS = "a gap that a reading overturns"
    GAP = "the gap of a group"


@dataclass(frozen=True)
class Gate:
    """The answer, and the group that decides it."""

    answer: Answer
    why: Why
    group: Any = None
    gap: Interval | None = None  # as compared: joint ends, or those of this group alone
    too_small: Sequence[Any] = ()
    units_needed: int | None = None  # of the smaller side, for a proof where there is no gap
    smaller: Any = None  # the group on the smaller side; None if that is all others together


def gate(
    audit: AnyAudit, limit: float, fail_on: FailOn = "unproven", ignored_below: int = 0
) -> Gate:
    """Compare the gaps of an audit with a limit: 0.1 allows 10 % more error than all others.

    Groups of fewer than ``ignored_below`` rows were set aside on purpose; any other group that is
    too small to be judged leaves the answer unproven.
    """
    verdict = audit.verdict
    if verdict.case is Case.CANNOT_JUDGE:
        return Gate(Answer.CANNOT_JUDGE, Why.VERDICT)
    gaps = gaps_of(audit.groups, verdict.by_share)
    shown = {label: gap.low for label, gap in gaps.items()}
    shown |= dict.fromkeys(verdict.depending, -inf)  # these gaps are not shown
    if fail_on == "estimate":
        shown = {label: gap.value for label, gap in gaps.items()}
    largest = max(shown, key=shown.__getitem__)
    if shown[largest] > limit:
        return Gate(Answer.EXCEEDED, Why.GAP, largest, gaps[largest])
    if isinstance(audit, ModelAudit) and audit.on_rows_fitted_to:
        return Gate(Answer.CANNOT_JUDGE, Why.OWN_ROWS)
    if verdict.depending:
        return Gate(Answer.UNPROVEN, Why.DEPENDS, verdict.depending[0])
    if fail_on != "unproven":
        return Gate(Answer.PASSES, Why.GAP, largest, gaps[largest])
    return _by_bounds(audit, limit, ignored_below)


def _by_bounds(audit: AnyAudit, limit: float, ignored_below: int) -> Gate:
    """Whether the upper end of every group lies below the limit."""
    too_small = [row.label for row in audit.groups if not row.judged and row.n >= ignored_below]
    if too_small:
        return Gate(Answer.UNPROVEN, Why.TOO_SMALL, too_small=too_small)
    bounds = {row.label: row.bounds for row in audit.groups if row.bounds is not None}
    label = max(bounds, key=lambda label: bounds[label].high)
    bound = bounds[label]
    if bound.high <= limit:
        return Gate(Answer.PASSES, Why.GAP, label, bound)
    needed, smaller = _units_needed(audit, limit, label, bound)
    return Gate(Answer.UNPROVEN, Why.GAP, label, bound, units_needed=needed, smaller=smaller)


def _units_needed(
    audit: AnyAudit, limit: float, label: Any, bound: Interval
) -> tuple[int | None, Any]:
    """How many units of the smaller side a proof would take, and which group that is."""
    row = audit.group(label)
    reference = audit.provenance.reference
    others = [r for r in audit.groups if _is_other(r, label, reference)]
    n_others = sum(r.n_units for r in others)
    smaller = label
    if n_others < row.n_units:
        smaller = None
        if len(others) == 1:
            smaller = others[0].label
    if bound.value > limit or limit <= 0 or bound.high == inf:
        return None, smaller
    se = (log1p(bound.high) - log1p(bound.value)) / _END
    times = (se / (log1p(limit) / _FOR_A_PROOF)) ** 2
    return ceil(min(row.n_units, n_others) * times), smaller


def _is_other(row: GroupResult, label: Any, reference: Any) -> bool:
    """Whether a group is among those whom another is compared with."""
    if reference in (None, label):
        return bool(row.label != label)
    return bool(row.label == reference)
