"""Whether an audit proves that no group is worse off by more than a limit.

It is *shown* that no gap exceeds the limit if the upper end of every group's interval lies below
it, each end one-sided and for this group alone: all of them must pass, so none needs a correction
for many groups. It is shown that a gap exceeds the limit if the lower end of a joint interval does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil, inf, log1p
from typing import Any, Literal, NamedTuple

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


class _Facts(NamedTuple):
    audit: AnyAudit
    limit: float
    fail_on: FailOn
    gaps: dict[Any, Interval]
    bounds: dict[Any, Interval]
    too_small: list[Any]

    @property
    def compared(self) -> dict[Any, float]:
        """The figure of each group that must not exceed the limit."""
        if self.fail_on == "estimate":
            return {label: gap.value for label, gap in self.gaps.items()}
        depending = dict.fromkeys(self.audit.verdict.depending, -inf)  # these gaps are not shown
        return {label: gap.low for label, gap in self.gaps.items()} | depending

    @property
    def largest(self) -> Any:
        """The group whose figure is compared with the limit."""
        return max(self.compared, key=lambda label: self.compared[label])

    @property
    def least_certain(self) -> Any:
        """The group with the largest upper end."""
        return max(self.bounds, key=lambda label: self.bounds[label].high)


def _of_gap(answer: Answer) -> Callable[[_Facts], Gate]:
    def gate(facts: _Facts) -> Gate:
        return Gate(answer, Why.GAP, facts.largest, facts.gaps[facts.largest])

    return gate


def _of_bound(answer: Answer) -> Callable[[_Facts], Gate]:
    def gate(facts: _Facts) -> Gate:
        label = facts.least_certain
        bound = facts.bounds[label]
        if answer is Answer.PASSES:
            return Gate(answer, Why.GAP, label, bound)
        needed, smaller = _units_needed(facts, label)
        return Gate(answer, Why.GAP, label, bound, units_needed=needed, smaller=smaller)

    return gate


#: When, and what then; the first that applies.
_RULES: Sequence[tuple[Callable[[_Facts], bool], Callable[[_Facts], Gate]]] = (
    (
        lambda facts: facts.audit.verdict.case is Case.CANNOT_JUDGE,
        lambda facts: Gate(Answer.CANNOT_JUDGE, Why.VERDICT),
    ),
    (lambda facts: facts.compared[facts.largest] > facts.limit, _of_gap(Answer.EXCEEDED)),
    (
        lambda facts: isinstance(facts.audit, ModelAudit) and facts.audit.on_rows_fitted_to,
        lambda facts: Gate(Answer.CANNOT_JUDGE, Why.OWN_ROWS),
    ),
    (
        lambda facts: bool(facts.audit.verdict.depending),
        lambda facts: Gate(Answer.UNPROVEN, Why.DEPENDS, facts.audit.verdict.depending[0]),
    ),
    (lambda facts: facts.fail_on != "unproven", _of_gap(Answer.PASSES)),
    (
        lambda facts: bool(facts.too_small),
        lambda facts: Gate(Answer.UNPROVEN, Why.TOO_SMALL, too_small=facts.too_small),
    ),
    (lambda facts: facts.bounds[facts.least_certain].high <= facts.limit, _of_bound(Answer.PASSES)),
    (lambda facts: True, _of_bound(Answer.UNPROVEN)),
)


def gate(
    audit: AnyAudit, limit: float, fail_on: FailOn = "unproven", ignored_below: int = 0
) -> Gate:
    """Compare the gaps of an audit with a limit: 0.1 allows 10 % more error than all others.

    Groups of fewer than ``ignored_below`` rows were set aside on purpose; any other group that is
    too small to be judged leaves the answer unproven.
    """
    facts = _Facts(
        audit=audit,
        limit=limit,
        fail_on=fail_on,
        gaps=gaps_of(audit.groups, audit.verdict.by_share),
        bounds={row.label: row.bounds for row in audit.groups if row.bounds is not None},
        too_small=[r.label for r in audit.groups if not r.judged and r.n >= ignored_below],
    )
    return next(answer(facts) for applies, answer in _RULES if applies(facts))


def _units_needed(facts: _Facts, label: Any) -> tuple[int | None, Any]:
    """How many units of the smaller side a proof would take, and which group that is."""
    row = facts.audit.group(label)
    bound = facts.bounds[label]
    reference = facts.audit.provenance.reference
    others = [r for r in facts.audit.groups if _is_other(r, label, reference)]
    n_others = sum(r.n_units for r in others)
    smaller = label
    if n_others < row.n_units:
        smaller = None
        if len(others) == 1:
            smaller = others[0].label
    if bound.value > facts.limit or facts.limit <= 0 or bound.high == inf:
        return None, smaller
    se = (log1p(bound.high) - log1p(bound.value)) / _END
    times = (se / (log1p(facts.limit) / _FOR_A_PROOF)) ** 2
    return ceil(min(row.n_units, n_others) * times), smaller


def _is_other(row: GroupResult, label: Any, reference: Any) -> bool:
    """Whether a group is among those whom another is compared with."""
    if reference in (None, label):
        return bool(row.label != label)
    return bool(row.label == reference)
