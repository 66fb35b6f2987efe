"""The verdict in words: the same on the page, in the terminal, in a notebook and on a card.

The figures and the case were decided before (``fairpca._audit.verdict``, with all thresholds); here
each case has its sentences. Layers below the command never name its options: what to type comes
from :class:`~fairpca.report.Origin`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from fairpca._audit.record import (
    Audit,
    DecidingColumn,
    GroupFigures,
    GroupResult,
    Interval,
    ModelAudit,
)
from fairpca._audit.verdict import Case, Reason, Remedy
from fairpca.report.text import counted, display_names, figure, in_a_row, percent, percent_range

AnyAudit = Audit | ModelAudit

#: Aequitas and the four-fifths rule of US employment law call a difference of 20 % large.
LARGE_GAP = 0.2
_MOST_NAMED = 3


@dataclass(frozen=True)
class Said:
    """The first screen.

    Attributes
    ----------
    headline : str
        The answer, in one sentence that can be quoted.
    lead : str
        How much, how sure, how many; the remedy with who gains and who pays.
    to_do : str
        What to do about it.
    chips : list of (text, tone)
        The answer in keywords.
    notices : list of str
        What must not be overlooked.
    tone : {"good", "bad", "warn", "plain"}
    """

    headline: str
    lead: str
    to_do: str
    chips: list[tuple[str, str]]
    notices: list[str]
    tone: str


def say(audit: AnyAudit) -> Said:
    """The verdict on an audit, in words."""
    words = {
        Case.NO_GAP: _no_gap,
        Case.REMEDY: _gap_with_remedy,
        Case.NO_REMEDY: _gap_without_remedy,
        Case.GAP: _gap_of_model,
        Case.CANNOT_JUDGE: _cannot_judge,
    }
    return words[audit.verdict.case](audit)


def name(audit: AnyAudit, label: Any) -> str:
    """A group in a sentence."""
    names = [row.name for row in audit.groups]
    labels = [row.label for row in audit.groups]
    return f"“{display_names(names)[labels.index(label)]}”"


def against(audit: AnyAudit, label: Any) -> str:
    """Whom a group is compared with, in a sentence."""
    others = [row.label for row in audit.groups if row.label != label]
    if audit.provenance.reference is not None:
        others = [audit.provenance.reference]
    return name(audit, others[0]) if len(others) == 1 else "everyone else"


def measured(audit: AnyAudit) -> str:
    """Which people the figures are about."""
    if audit.provenance.n_folds:
        return "Judged on people not used to build it"
    return "Judged as it is, on these people"


def judged(audit: AnyAudit) -> str:
    """What was judged, as the subject of a sentence."""
    return "PCA" if isinstance(audit, Audit) else "The model"


def gap_of(audit: AnyAudit, figures: GroupFigures | None) -> Interval | None:
    """The gap by the reading of the audit; None for a group that is not judged."""
    if figures is None:
        return None
    return figures.share_gap if audit.verdict.by_share else figures.gap


def _no_gap(audit: AnyAudit) -> Said:
    gaps = [(row, gap) for row in audit.groups if (gap := gap_of(audit, row.baseline))]
    row, gap = max(gaps, key=lambda pair: pair[1].value)
    other, detectable = audit.verdict.other_group, audit.verdict.detectable_gap
    headline = f"No group is reliably described worse than {against(audit, row.label)}."
    if len(audit.groups) == 2:
        both = in_a_row([name(audit, one.label) for one in audit.groups])
        headline = f"No gap beyond chance between {both}."
    lead = (
        f"The largest difference is {percent(abs(gap.value))} ({name(audit, row.label)}, "
        f"{percent_range(gap.low, gap.high)}): not conclusive, a gap this size could be random."
    )
    to_do = "Nothing needs to be done."
    if detectable is not None and isfinite(detectable) and detectable > 0:
        lead += f" With these rows a gap of {percent(detectable)} or more would have been seen."
        if detectable > LARGE_GAP:
            to_do = (
                "Nothing is proven, and a gap that matters could have been missed: judge again "
                "when there are more rows."
            )
    if other is not None:
        to_do = f"Decide which measure applies: by the other, {name(audit, other)} is worse off."
    chips = _chips(audit, ("Gap: not conclusive", "plain"))
    return Said(headline, lead, to_do, chips, _notices(audit), "plain")


def _gap_with_remedy(audit: AnyAudit) -> Said:
    row, _ = _of_headline(audit)
    lead = f"{_how_sure(audit)} A fair version {_after(row, audit)}: {_gains_and_payments(audit)}."
    pay = max((g.change.value for g in audit.groups if g.judged and g.change), default=0.0)
    to_do = "Use the fair version."
    if pay > 0:
        to_do = (
            f"If {percent(pay)} more error for those who pay is acceptable, use the fair version. "
            "If not, smaller steps cost less: the page shows them."
        )
    if audit.verdict.small:
        small = percent(audit.provenance.thresholds.small_gap)
        to_do = f"The gap is small (below {small}): decide whether it matters. {to_do}"
    chips = _chips(audit, _reliable(audit), ("Remedy: reliable", "good"))
    tone = "plain" if audit.verdict.small else "bad"
    return Said(_who_is_worse(audit) + ".", lead, to_do, chips, _notices(audit), tone)


def _gap_without_remedy(audit: AnyAudit) -> Said:
    verdict = audit.verdict
    _, gap = _of_headline(audit)
    remains = f"PCA’s gap of {percent(gap.value)} remains."
    to_do = f"Do not use it. {remains}"
    if verdict.remedy is Remedy.IS_PCA:
        tried = "No strength of the fair version helped people who were left out."
        to_do = remains
    elif verdict.remedy is Remedy.HARMS_ANOTHER:
        harmed = in_a_row([name(audit, label) for label in verdict.harmed[:_MOST_NAMED]])
        tried = (
            f"The fair version makes {harmed} worse off than the worst-off group is under PCA: "
            f"{_gains_and_payments(audit)}."
        )
    elif verdict.payers and not verdict.gainers:
        tried = (
            f"The fair version hurts some groups and reliably helps none: "
            f"{_gains_and_payments(audit)}."
        )
    else:
        tried = f"What the fair version changes could be chance: {_gains_and_payments(audit)}."
    better = _smaller_gap_elsewhere(audit)
    headline = f"{_who_is_worse(audit)}, and no version we tried reliably reduces the gap."
    chips = _chips(audit, _reliable(audit), ("Remedy: none that is reliable", "warn"))
    lead = f"{_how_sure(audit)} {tried}"
    return Said(headline, lead, f"{to_do}{better}", chips, _notices(audit), "bad")


def _gap_of_model(audit: AnyAudit) -> Said:
    row, _ = _of_headline(audit)
    lead = _how_sure(audit)
    plain = gap_of(audit, row.alternative)
    if plain is not None:
        lead += (
            f" Plain PCA of the same size, fitted to these rows, has a gap of "
            f"{percent(plain.value)} ({percent_range(plain.low, plain.high)})."
        )
    to_do = (
        "A fitted model is judged as it is, and no remedy is tried. Fit a fair version to the rows "
        "that the model was made from, and judge it in the same way."
    )
    chips = _chips(audit, _reliable(audit))
    tone = "plain" if audit.verdict.small else "bad"
    return Said(_who_is_worse(audit) + ".", lead, to_do, chips, _notices(audit), tone)


def _cannot_judge(audit: AnyAudit) -> Said:
    reason, origin = audit.verdict.reason, audit.provenance
    headline, to_do = "This cannot be judged yet.", ""
    if reason is Reason.ONE_VALUE_DECIDES:
        deciding = [column for column in audit.columns if column.decides]
        one = len(deciding) == 1 and deciding[0].n_rows == 1
        headline = (
            f"This cannot be judged yet: {'one value decides' if one else 'few rows decide'}."
        )
        lead = " ".join(map(about_column, deciding[:_MOST_NAMED]))
        columns = in_a_row([f"“{column.name}”" for column in deciding[:_MOST_NAMED]])
        to_do = f"Correct {columns} or leave it out, and run again."
    elif reason is Reason.NOTHING_COMPRESSED:
        headline = "This cannot be judged: nothing was compressed."
        r, d = (
            counted(origin.n_components, "component"),
            counted(len(origin.feature_names), "column"),
        )
        lead = (
            f"{r} of {d} lose nothing, so every group is described without error. That is no "
            "proof of fairness."
        )
        to_do = "Keep fewer components, and run again."
    else:
        headline = "This cannot be judged yet: too few people."
        least = origin.thresholds.judge_from
        sizes = [f"“{row.name}” has {row.n:,}" for row in audit.groups[:_MOST_NAMED]]
        lead = (
            f"A group is judged if it and all others together have at least {least} rows: "
            f"{in_a_row(sizes)}{' and so on' if len(audit.groups) > _MOST_NAMED else ''}."
        )
        to_do = "Collect more rows, or join small groups."
    return Said(headline, lead, to_do, [("Cannot be judged", "warn")], _notices(audit), "warn")


def about_column(column: DecidingColumn) -> str:
    """A column whose scale, or whose errors, hang on few rows."""
    rows = counted(column.n_rows, "row")
    if column.near_constant:
        return (
            f"Column “{column.name}” is {_number(column.next_value)} in all but {rows}, which make "
            f"up {percent(column.share_of_variance)} of its variance."
        )
    if column.value is None:
        return (
            f"Column “{column.name}” hangs on {rows}, which make up "
            f"{percent(column.share_of_variance)} of its variance; the most extreme of all other "
            f"values is {_number(column.next_value)}."
        )
    return (
        f"Column “{column.name}” holds {_number(column.value)} in {rows}; the most extreme of all "
        f"other values is {_number(column.next_value)}."
    )


def _number(value: float) -> str:
    """A value of the data, as it stands there."""
    return f"{value:.12g}".replace("-", "−", 1)


def _of_headline(audit: AnyAudit) -> tuple[GroupResult, Interval]:
    """The group of the headline and its gap."""
    gap = audit.verdict.gap
    if gap is None:
        raise ValueError(f"a verdict of {audit.verdict.case} needs a group with an interval.")
    return audit.group(audit.verdict.group), gap


def _who_is_worse(audit: AnyAudit) -> str:
    row, gap = _of_headline(audit)
    small = " (a small gap)" if audit.verdict.small else ""
    relative = ", relative to how much each group varies" if audit.verdict.by_share else ""
    return (
        f"{judged(audit)} describes {name(audit, row.label)} {percent(gap.value)} worse than "
        f"{against(audit, row.label)}{relative}{small}"
    )


def _how_sure(audit: AnyAudit) -> str:
    """How sure the gap is, how many people it is about, and who else is worse off."""
    row, gap = _of_headline(audit)
    sure = (
        f"The gap is statistically reliable ({percent_range(gap.low, gap.high)}; {row.n:,} of "
        f"{audit.provenance.n_rows:,} people)."
    )
    others = []
    for label in audit.verdict.worse:
        other = audit.group(label)
        own = gap_of(audit, other.baseline)
        if label != row.label and own is not None:
            others.append(f"{name(audit, label)} {percent(own.value)} ({other.n:,} people)")
    if others:
        sure += f" Also reliably worse off: {in_a_row(_first(others))}."
    return sure


def _after(row: GroupResult, audit: AnyAudit) -> str:
    """What the fair version does to the gap of the headline."""
    left = gap_of(audit, row.alternative)
    if left is None:
        return "reduces it"
    if left.direction > 0:
        return f"reduces it to {percent(left.value)}"
    return "removes it" if left.direction == 0 else "more than removes it"


def _gains_and_payments(audit: AnyAudit) -> str:
    """What the alternative changes for the judged groups, largest changes first."""
    changes = [(row, row.change) for row in audit.groups if row.judged and row.change is not None]
    changes.sort(key=lambda pair: (pair[1].direction == 0, -abs(pair[1].value)))
    said = []
    for row, change in changes:
        how = "better" if change.value < 0 else "worse"
        chance = "" if change.direction else ", which could be chance"
        said.append(f"{name(audit, row.label)} {percent(abs(change.value))} {how}{chance}")
    return in_a_row(_first(said))


def _first(items: Sequence[str]) -> list[str]:
    most = _MOST_NAMED if len(items) > _MOST_NAMED + 1 else len(items)
    more = [f"{len(items) - most} more groups (see the table)"] if len(items) > most else []
    return [*items[:most], *more]


def _smaller_gap_elsewhere(audit: AnyAudit) -> str:
    """Whether more components make the gap of the headline clearly smaller."""
    if not isinstance(audit, Audit):
        return ""
    _, gap = _of_headline(audit)
    more = [
        (int(r), found.value)
        for r, found in zip(audit.ranks.n_components, audit.ranks.pca_gap, strict=True)
        if found is not None and r > audit.n_components and abs(found.value) < gap.value / 2
    ]
    if not more:
        return ""
    r, value = more[0]
    return f" With {counted(r, 'component')} it would be {percent(value)}."


def _reliable(audit: AnyAudit) -> tuple[str, str]:
    return f"Gap: reliable{', but small' if audit.verdict.small else ''}", "bad"


def _chips(audit: AnyAudit, *first: tuple[str, str]) -> list[tuple[str, str]]:
    """The answer in keywords, and which people and measures it rests on."""
    agree = {True: ("Both measures agree", "plain"), False: ("The two measures disagree", "warn")}
    known = audit.verdict.readings_agree
    return [*first, (measured(audit), "plain"), *([] if known is None else [agree[known]])]


def _notices(audit: AnyAudit) -> list[str]:
    """What must not be overlooked."""
    verdict, least = audit.verdict, audit.provenance.thresholds.judge_from
    said = []
    differ = verdict.readings_agree is False or not verdict.worse
    if differ and verdict.other_group is not None:
        own, other = ("relative to how much each group varies", "in absolute terms")
        if not verdict.by_share:
            own, other = other, own
        first = name(audit, verdict.group) if verdict.worse else "no group"
        said.append(
            f"{own[0].upper()}{own[1:]} {first} fares reliably worse; {other}, "
            f"{name(audit, verdict.other_group)} does. Decide which applies before acting."
        )
    for row in audit.groups:
        few = f"{name(audit, row.label)} has {counted(row.n, 'row')}: too few to judge"
        if row.label in verdict.unjudged_payers:
            pays = f"its error rises by {percent(row.change_estimate)} under the fair version"
            said.append(f"{few}, yet {pays}. Join it to another group or look at it by itself.")
        elif not row.judged and row.n < least and row.compared and isinstance(audit, Audit):
            said.append(f"{few}, yet it affects the result. Merge or exclude it.")
        elif row.judged and not row.compared and row.label in verdict.payers:
            paid = percent(row.change.value) if row.change else ""
            said.append(
                f"{name(audit, row.label)} was set aside when the fair version was made, and pays "
                f"{paid} more error for it."
            )
    said += [about_column(column) for column in audit.columns if not column.decides]
    if isinstance(audit, ModelAudit):
        said += _about_rows(audit)
    else:
        said += _budgets_not_met(audit)
    return said


def _about_rows(audit: ModelAudit) -> list[str]:
    said = []
    if audit.on_rows_fitted_to:
        said.append(
            "These are the rows that the model was fitted to, on which it looks too good: judge it "
            "by other rows."
        )
    if audit.outside:
        said.append(
            f"{percent(audit.outside)} of the rows lie outside of what the model was fitted to: "
            "its description of them cannot be relied on."
        )
    return said


def _budgets_not_met(audit: Audit) -> list[str]:
    """Limits that were asked for and cannot be had, not even on the rows fitted to."""
    return [
        f"The limit {budget.name} = {figure(budget.wanted)} is not met: the best that was reached, "
        f"on the rows fitted to, is {figure(budget.reached)}."
        for budget in audit.fit.budgets
        if not budget.met
    ]


def about_unusual(audit: AnyAudit) -> str:
    """Whether the gap of the headline is one of a few unusual people."""
    if audit.verdict.group is None:
        return ""
    row, gap = _of_headline(audit)
    robust = row.baseline.robust
    if robust is None:
        return ""
    trimmed = robust.trimmed_gaps.get(0.01)
    same = gap.value > 0 and robust.median_gap > 0 and (trimmed is None or trimmed > gap.value / 2)
    start = "It is not a few unusual people" if same else "A few unusual people may matter"
    if audit.verdict.case is Case.NO_GAP:
        start = "The typical person"
        return f"{start}: the medians differ by {percent(robust.median_gap)}."
    ends = ""
    if trimmed is not None:
        ends = f", the means by {percent(trimmed)} without the most extreme 1 % of each group"
    return (
        f"{start}: the medians differ by {percent(robust.median_gap)}{ends}. In "
        f"{percent(robust.pairs)} of all pairs of a person of {name(audit, row.label)} and one of "
        f"{against(audit, row.label)}, the former is described worse (50 % if the group made "
        "no difference)."
    )


def about_guessing(audit: AnyAudit) -> str:
    """How well the group can be guessed from the output."""
    leakage = audit.leakage
    if leakage is None:
        return ""
    how, before, after = (
        "By means and covariances alone, the group is guessed",
        *(side.get("discriminant_auc") for side in (leakage.baseline, leakage.alternative)),
    )
    if leakage.baseline_probes:
        how = "A classifier guesses the group"
        before = max(probe.auc for probe in leakage.baseline_probes)
        after = max((probe.auc for probe in leakage.alternative_probes), default=None)
    if before is None:
        return ""
    other = "the fair version" if isinstance(audit, Audit) else "plain PCA"
    then = "" if after is None else f", {after:.2f} under {other}"
    return (
        f"{how} with an AUC of {before:.2f}{then} (0.5 is chance, 1 is certainty); another "
        "classifier may see more."
    )


def about_scores(audit: AnyAudit) -> list[str]:
    """Lines on what the output gives away and what a classifier makes of it."""
    probed = audit.leakage is not None and audit.leakage.baseline_probes
    said = [about_guessing(audit)] if probed else []
    seen_by = {"scores": "the fair version" if isinstance(audit, Audit) else "the model"}
    for seen in audit.outcomes or ():
        gap = seen.difference.get("selection_rate")
        if gap is not None and seen.name != "features":
            value, low, high = (f"{100 * share:.0f}" for share in (gap.value, gap.low, gap.high))
            said.append(
                f"A classifier on the scores of {seen_by.get(seen.name, 'PCA')} selects the groups "
                f"at rates that differ by {value} percentage points ({low} to {high})."
            )
    return said


def what_it_cannot_show(audit: AnyAudit) -> list[str]:
    """The limits of an audit: what was left out, and what it says nothing about."""
    said = []
    for what, label, n_rows, reason in audit.left_out:
        of = f"{counted(n_rows, 'row')} " if n_rows else ""
        subject = {"column": f"Column “{label}”", "group": f"Group “{label}”"}.get(what, "")
        said.append(f"{subject or of.strip() or label}: left out, {reason}.")
    if not said:
        said.append("No column and no row was left out.")
    detectable = audit.verdict.detectable_gap
    if detectable is not None and isfinite(detectable) and detectable > 0:
        said.append(f"Gaps below about {percent(detectable)} could have been missed.")
    said.append("Other groups than these were not judged.")
    said.append(
        "Equal errors are not equal outcomes: a model trained on the scores can still treat the "
        "groups unequally."
    )
    return said
