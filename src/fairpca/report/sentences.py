"""The verdict in words: the same on the page, in the terminal, in a notebook and on a card.

``fairpca._audit.verdict`` decides the case and holds all thresholds; here each case has its
sentences. Only the command line names its options: what to type comes from
:class:`~fairpca.report.Origin`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairpca._audit.record import (
    AnyAudit,
    Audit,
    DecidingColumn,
    GapReading,
    Interval,
    ModelAudit,
    group_name,
)
from fairpca._audit.verdict import Case, Reason, Remedy, gaps_of
from fairpca._progress import printable
from fairpca.report import text
from fairpca.report.text import counted, difference, figure, in_a_row, percent, percent_range, worse

#: How many groups or columns a sentence names before it counts the others.
_MOST_NAMED = 3
_IN_TABLE = "more groups (see the table)"
#: A subgroup that chance finds as bad more often than this is not named.
_CHANCE = 0.05


@dataclass(frozen=True)
class Said:
    """The first screen."""

    headline: str  # the answer, in one sentence that can be quoted
    lead: str  # how large and how sure the gap is; what a remedy changes for each group
    to_do: str
    notices: list[str]  # what must not be overlooked
    tone: str  # "bad", "warn" or "plain"


def say(audit: AnyAudit) -> Said:
    """The verdict on an audit, in words: who is described worse, and who is selected less."""
    said = _say(audit)
    small = _small_groups(audit)
    less, to_do = _selected_less(audit)
    headline = f"{said.headline}{small}{less}"
    return replace(said, headline=headline, to_do=f"{said.to_do}{to_do}")


def _small_groups(audit: AnyAudit) -> str:
    """A sentence, after a blank, on groups worse off that are too small for an interval."""
    names = quoted_names(audit)
    found = []
    for label in audit.verdict.small_worse:
        row = audit.group(label)
        _, gap = row.baseline.read(audit.verdict.by_share)
        found.append(
            f"{names[label]} {percent(gap)} ({counted(row.n, 'row')}, p = {row.p_worse:.2g})"
        )
    if not found:
        return ""
    least = audit.provenance.thresholds.judge_from
    listed = in_a_row(found, _MOST_NAMED, _IN_TABLE)
    return f" Worse off beyond chance, though fewer than {least} give no interval: {listed}."


def _say(audit: AnyAudit) -> Said:
    case = audit.verdict.case
    notices = _notices(audit)
    if case is Case.CANNOT_JUDGE:
        return Said(*_cannot_judge(audit), notices, "warn")
    if case in (Case.NO_GAP, Case.HELPS_ANYWAY):
        return Said(*_no_gap(audit), notices, "plain")
    if case is Case.DEPENDS:
        return Said(*_depends(audit), notices, "warn")
    tone = "bad"
    if audit.verdict.small:
        tone = "plain"
    return Said(*_gap(audit), notices, tone)


def _selected_less(audit: AnyAudit) -> tuple[str, str]:
    """Sentences on who has the positive outcome less often in the data, each after a blank."""
    selected = audit.selected
    if selected is None or not selected.impact_ratios:
        return "", ""
    outcome = f"“{printable(selected.positive)}”"
    less = selected.less
    if not less:
        return f" No group is selected ({outcome}) reliably less than another.", ""
    ratios = selected.impact_ratios
    most = max(ratios, key=lambda label: ratios[label].value)
    shares = [percent(selected.rates[label].value) for label in (less[0], most)]
    also = ""
    if less[1:]:
        also = f"; {some(audit, less[1:])} less too"
    first = name(audit, less[0])
    return (
        f" {first} is selected ({outcome}) {figure(ratios[less[0]].value)} times as often as "
        f"{name(audit, most)}, {shares[0]} against {shares[1]}{also}.",
        f" That {first} is selected less is in the data: no projection mends it.",
    )


def group_names(audit: AnyAudit, limit: int = 40) -> dict[Any, str]:
    """Names of the groups by their labels, short and all different."""
    shown = text.display_names([row.name for row in audit.groups], limit)
    return {row.label: name for row, name in zip(audit.groups, shown, strict=True)}


def quoted_names(audit: AnyAudit) -> dict[Any, str]:
    """The same names for sentences; made once for many groups, because it compares all names."""
    return {label: f"“{own}”" for label, own in group_names(audit).items()}


def name(audit: AnyAudit, label: Any) -> str:
    """A group in a sentence."""
    return quoted_names(audit)[label]


def some(audit: AnyAudit, labels: Sequence[Any]) -> str:
    """The first few of several groups, and how many more there are."""
    names = quoted_names(audit)
    return in_a_row([names[label] for label in labels], _MOST_NAMED, "more groups")


def full_name(audit: AnyAudit, label: Any) -> str:
    """A group at its first mention, with its columns: “sex = men”."""
    own = group_name(label, audit.provenance.group_columns, full=True)
    return f"“{text.display_names([own], 60)[0]}”"


def against(audit: AnyAudit, label: Any) -> str:
    """Whom a group is compared with, in a sentence."""
    reference = audit.provenance.reference
    others = [row.label for row in audit.groups if row.label != label]
    if reference not in (None, label):
        others = [reference]
    if len(others) == 1:
        return name(audit, others[0])
    return "everyone else"


def measured(audit: AnyAudit) -> str:
    """Which people the figures are about."""
    if audit.provenance.n_folds:
        return "Judged on people not used to build it"
    return "Judged as it is, on these people"


def both(audit: AnyAudit) -> tuple[str, str]:
    """Names of what was judged and of the alternative, within a sentence."""
    if isinstance(audit, ModelAudit):
        return "the model", "plain PCA"
    if audit.kept is not None:
        return "the usual choice of columns", "the fair choice"
    return "PCA", "the fair version"


def methods(audit: AnyAudit) -> list[str]:
    """The same names in legends and headings."""
    return [method.removeprefix("the ") for method in both(audit)]


def judged(audit: AnyAudit) -> str:
    """The name of what was judged, at the start of a sentence."""
    subject, _ = both(audit)
    return subject[0].upper() + subject[1:]


def about(audit: AnyAudit) -> str:
    """A line on the size of the data and on what was judged."""
    own = audit.provenance
    sizes = f"{counted(own.n_rows, 'row')}, {counted(len(own.feature_names), 'column')}"
    if not own.crossing:
        sizes += ", groups that overlap"
    if isinstance(audit, Audit) and audit.kept is not None:
        return f"{sizes}, {own.n_components} of them kept, chosen here"
    whose = "a model judged as it is"
    if own.fitted_here:
        whose = "PCA fitted here"
    return f"{sizes} reduced to {counted(own.n_components, 'component')}, {whose}"


def how_judged(audit: AnyAudit) -> list[str]:
    """A line each on units, columns, weights, missing values, folds and the seed."""
    own = audit.provenance
    units = "every row by itself"
    if own.n_units is not None:
        units = f"{own.n_units:,}, with {counted(own.n_rows, 'row')}"
    names = [f"“{printable(column)}”" for column in own.feature_names]
    weights = "none"
    if own.weighted:
        weights = "by row"
    missing = [
        f"{percent(row.share_missing)} ({own_name})"
        for row, own_name in zip(audit.groups, group_names(audit).values(), strict=True)
        if row.share_missing
    ]
    return [
        f"Units: {units}.",
        f"Columns ({len(names):,}): {in_a_row(names, 10)}.",
        f"Weights: {weights}.",
        f"Values missing: {in_a_row(missing) or 'none'}.",
        f"Folds: {own.n_folds or 'none, the model is fixed'}.",
        f"Seed: {own.random_state}.",
    ]


def left_out(audit: AnyAudit) -> list[str]:
    """Sentences on the columns and rows that were not looked at."""
    said = []
    columns = dict[str, list[str]]()  # by the reason
    for what, name, n, reason in audit.left_out:
        if what == "column":
            columns.setdefault(reason, []).append(f"“{name}”")
        else:
            said.append(f"{counted(n, 'row')}: left out, {reason}.")
    for reason, names in columns.items():
        start = f"Column{'s' * (len(names) > 1)}"
        said.append(f"{start} {in_a_row(names, 40)}: left out, {reason}.")
    missing = [
        f"{row.share_missing:.1%} of those of {row.name}"
        for row in audit.groups
        if row.share_missing > 0
    ]
    if missing:
        said.append(f"Values are missing: {in_a_row(missing)}. Nothing was filled in.")
    if audit.provenance.n_complete is not None:
        said.append(
            "Medians, shares of people who are better off and columns that few rows decide are "
            f"those of the {counted(audit.provenance.n_complete, 'complete row')}."
        )
    if audit.provenance.not_computed:
        listed = in_a_row(audit.provenance.not_computed)
        said.append(f"Not computed, because the rows were not in memory: {listed}.")
    return said


def _no_gap(audit: AnyAudit) -> tuple[str, str, str]:
    verdict = audit.verdict
    gaps = gaps_of(audit.groups, verdict.by_share)
    label, gap = max(gaps.items(), key=lambda own: own[1].value)
    names = quoted_names(audit)
    small = [names[row.label] for row in audit.groups if not row.judged]
    others = against(audit, verdict.group)
    headline = f"No {'judged ' * bool(small)}group is reliably described worse than {others}."
    fares = f"fares worst{' of the judged groups' * bool(small)},"
    if len(audit.groups) == 2:
        fares = "is described"
        first, second = (row.label for row in audit.groups)
        between = f"{full_name(audit, first)} and {name(audit, second)}"
        headline = f"No gap beyond chance between {between}."
    lead = (
        f"{name(audit, label)} {fares} {difference(gap.value)} than {against(audit, label)} "
        f"({percent_range(*gap[1:])}): not conclusive, a gap this size could be random."
    )
    if gap.value < 0:  # others, too small to be judged, are described worse
        lead = (
            f"None is described worse by the bare figures either: {name(audit, label)} comes "
            f"closest, {difference(gap.value)} than {against(audit, label)} "
            f"({percent_range(*gap[1:])})."
        )
    to_do = "Nothing needs to be done."
    detectable = max(verdict.detectable_gap or 0.0, 0.001)  # 0.1 % is the least we name
    if detectable > 1:
        lead += " These rows could miss even a gap of 100 %."
    else:
        lead += f" With these rows a gap of {percent(detectable)} or more would likely be seen."
    if small:
        lead += f" Too few rows to judge: {in_a_row(small, _MOST_NAMED, 'more groups')}."
        to_do = "Nothing needs to be done for the groups that were judged."
    highest = max(gap.high for gap in gaps.values())
    if max(detectable, highest) > audit.provenance.thresholds.large_gap:
        to_do = (
            "Nothing is proven, and a gap that matters could have been missed: judge again when "
            "there are more rows."
        )
    if verdict.other_group is not None:  # a notice names the group
        to_do = "Decide which measure applies."
    if verdict.case is Case.HELPS_ANYWAY and isinstance(audit, Audit):
        _, fair = both(audit)
        helped = f"{name(audit, audit.gain.group)}, the group described worst"
        headline = f"{headline[:-1]}, but {fair} reliably helps {helped}."
        lead += f" With {fair}: {_effect(audit)}."
        to_do = _advice(audit)
    if isinstance(audit, ModelAudit) and audit.on_rows_fitted_to:  # as a notice says
        to_do = "Do not rely on this: judge the model by rows that it was not fitted to."
    return headline, lead, to_do


def _gap(audit: AnyAudit) -> tuple[str, str, str]:
    """Who is worse off, how sure that is, and what can be done."""
    verdict = audit.verdict
    origin = audit.provenance
    row = audit.group(verdict.group)
    gaps, after = (gaps_of(audit.groups, verdict.by_share, after) for after in (False, True))
    gap = gaps[row.label]
    reference = ""
    if row.label == origin.reference:
        reference = ", the reference group,"
    headline = (
        f"{judged(audit)} describes {full_name(audit, row.label)}{reference} {percent(gap.value)} "
        f"worse than {against(audit, row.label)}"
    )
    if verdict.by_share:
        headline += ", relative to how much each group varies"
    if verdict.small:
        headline += " (a small gap)"
    lead = (
        f"The gap is statistically reliable ({percent_range(gap.low, gap.high)}; {row.n:,} of "
        f"{origin.n_rows:,} people)."
    )
    names = quoted_names(audit)
    others = [
        f"{names[label]} {percent(gaps[label].value)} ({audit.group(label).n:,} people)"
        for label in verdict.worse
        if label != row.label
    ]
    if others:
        lead += f" Also reliably worse off: {in_a_row(others, _MOST_NAMED, _IN_TABLE)}."
    if isinstance(audit, ModelAudit):
        size = counted(origin.n_components, "component")
        effect = (
            f"Plain PCA of {size} describes the group {difference(after[row.label].value)} than "
            f"{against(audit, row.label)}, judged on people left out of its fit; the model may "
            "have seen these people."
        )
        to_do = (
            "A fitted model is judged as it is, and no remedy is tried. Fit a fair version to the "
            "rows that the model was made from, and judge it in the same way."
        )
    elif verdict.case is Case.REMEDY:
        effect, to_do = _remedy(audit, after)
    else:
        headline += f", and {both(audit)[1]} is no reliable remedy"
        effect, to_do = _no_remedy(audit, gap)
    return f"{headline}.", f"{lead} {effect}", to_do


def _depends(audit: AnyAudit) -> tuple[str, str, str]:
    """What a gap depends on, the gap by the other reading, and how to settle it."""
    verdict = audit.verdict
    label = verdict.group
    gap = gaps_of(audit.groups, verdict.by_share)[label]
    _, otherwise, to_do = _read_otherwise(overturning(audit, label))
    headline = (
        f"{judged(audit)} describes {full_name(audit, label)} {difference(gap.value)} than "
        f"{against(audit, label)}, or not: {depends(audit, label)}."
    )
    lead = (
        f"As the figures stand, this could be chance ({percent_range(gap.low, gap.high)}). "
        f"{otherwise}, and the difference is beyond chance."
    )
    if gap.low > 0:
        lead = (
            f"As the figures stand, the gap is beyond chance ({percent_range(gap.low, gap.high)}). "
            f"{otherwise}: less than half of it, and the difference is beyond chance."
        )
    return headline, lead, to_do


def overturning(audit: AnyAudit, label: Any) -> GapReading:
    """The first reading that overturns the gap of a group."""
    return next(r for r in audit.readings if r.overturns and r.group == label)


def depends(audit: AnyAudit, label: Any) -> str:
    """What the gap of a group depends on: "this depends on whether 99 in ... is a number"."""
    on, _, _ = _read_otherwise(overturning(audit, label))
    return f"this depends on {on}"


def _read_otherwise(reading: GapReading) -> tuple[str, str, str]:
    """What a reading says the gap depends on, the gap that it shows, and how to settle it."""
    names = in_a_row([f"“{column}”" for column in reading.columns], _MOST_NAMED, "more columns")
    columns = f"column{'s' * (len(reading.columns) > 1)} {names}"
    values = in_a_row([f"{value:.12g}".replace("-", "−") for value in reading.values], 5)
    shows = ""
    if reading.gap:
        shows = f"the group is described {worse(*reading.gap)[0]}"
    on, otherwise, to_do = {
        "codes": (
            f"whether {values} in {columns} is a number ({counted(reading.n_rows, 'row')})",
            f"With {values} read as missing",
            f"Find out what {values} stands for in {columns}. Declare it as missing if it is no "
            "number, and run again.",
        ),
        "restating columns": (
            f"{columns}, from which the group can be read",
            f"Without {columns}",
            f"Leave {columns} out if all that is said there is who belongs to the group, and run "
            "again.",
        ),
        "available cases": (
            "the values that were filled in",
            "By the values that are there",
            "Judge by the values that are there: a value that is filled in is easy to describe.",
        ),
        "other folds": (
            "how the rows are dealt into folds",
            "In other folds",
            "Collect more rows, or judge with more folds.",
        ),
        "medians": (
            "few people with large errors",
            "By medians in place of means",
            "Look at the people with the largest errors: are they described so badly, or are their "
            "values wrong?",
        ),
    }[reading.name]
    return on, f"{otherwise}, {shows}", to_do


def about_subgroup(audit: AnyAudit) -> list[str]:
    """What was found among the subgroups that nobody named, if they were searched."""
    found = audit.subgroup
    if found is None:
        return []
    searched = f"Of {found.n_searched:,} subgroups described by one or two columns"
    if found.p > _CHANCE:
        return [f"{searched}, none is described worse than all others beyond chance."]
    who = " and ".join(found.conditions)
    said = f"{searched}, “{who}” is described worst: {difference(found.gap)} than all others"
    said += f" ({percent(found.share)} of the rows; by chance in {percent(found.p)} of cases)"
    if found.honest_gap is not None:
        ends = percent_range(found.honest_gap.low, found.honest_gap.high)
        said += f"; what half of the rows lead to is {ends} in the other half"
    if found.by_feature:
        said += "; it is described by a feature, and extreme values are hard to describe"
    return [f"{said}."]


def about_readings(audit: AnyAudit) -> list[str]:
    """A line for each reading of the first shown gap."""
    if not audit.readings:
        return []
    label = audit.verdict.group
    said = []
    untried = []
    for reading in audit.readings:
        if reading.group != label:
            continue
        if reading.gap is None:
            untried.append(f"{reading.name} ({reading.not_tried})")
            continue
        _, otherwise, _ = _read_otherwise(reading)
        gap = reading.gap
        ends = percent_range(gap.low, gap.high)
        if gap.high < 0:  # the text says "better"
            ends = percent_range(-gap.high, -gap.low)
        said.append(f"{otherwise} ({ends}){', which overturns the gap' * reading.overturns}.")
    if untried:
        said.append(f"Not read otherwise: {in_a_row(untried)}.")
    return said


def _remedy(audit: Audit, after: dict[Any, Interval]) -> tuple[str, str]:
    """The effect of the fair version, given the gaps that it leaves, and the advice."""
    _, fair = methods(audit)
    left = after[audit.verdict.group]
    small_gap = audit.provenance.thresholds.small_gap
    effect = f"reduces it to {percent(left.value)}"
    if left.value < 0:
        effect = "more than removes it"
    if abs(left.value) < small_gap and not left.direction:
        effect = "removes it"
    effect = f"A {fair} {effect}: {_effect(audit)}."
    behind = [
        f"{name(audit, label)} ({percent(gap.value)})"
        for label, gap in after.items()
        if gap.low > 0 and gap.value >= small_gap and label != audit.verdict.group
    ]
    if behind:
        are = "are"
        if len(behind) == 1:
            are = "is"
        effect += f" Then {in_a_row(behind, _MOST_NAMED, _IN_TABLE)} {are} reliably worse off."
    to_do = _advice(audit)
    if left.low > 0 and left.value >= small_gap:
        to_do += f" A gap of {percent(left.value)} remains: decide whether it can be accepted."
    if audit.verdict.small:
        to_do = f"The gap is small (below {percent(small_gap)}): decide whether it matters. {to_do}"
    if audit.verdict.readings_agree is False:  # as a notice says
        to_do = f"Decide first which of the two measures applies. {to_do}"
    return effect, to_do


def _effect(audit: Audit) -> str:
    """What each group gains or loses, what it costs over all people, and the largest error."""
    price = worse(audit.overall.change.value)[0]
    largest = worse(audit.gain.largest.value)[0]
    return f"{_gains_and_payments(audit)} ({price} over all people; the largest error: {largest})"


def price(audit: Audit) -> str:
    """The largest reliable increase of a group's error; empty if there is none."""
    pays = [row.change.value for row in audit.groups if row.label in audit.verdict.payers]
    if pays:
        return f"{percent(max(pays))} more error for the others"
    return ""


def _advice(audit: Audit) -> str:
    """To use the fair version, if its price is acceptable."""
    _, fair = methods(audit)
    asked = price(audit)
    if not asked:
        return f"Use the {fair}."
    advice = f"If {asked} is acceptable, use the {fair}."
    if audit.path is not None:
        advice += " If not, a smaller step costs less."
    return advice


def _no_remedy(audit: Audit, gap: Interval) -> tuple[str, str]:
    """Why the fair version is no remedy, and what to do."""
    verdict = audit.verdict
    _, fair = methods(audit)
    effect = f": {_gains_and_payments(audit)}."
    to_do = f"Do not use the {fair}. "
    if verdict.remedy is Remedy.IS_PCA:
        tried = "No strength of the fair version helped held-out people"
        effect = "."
        to_do = ""
        if audit.kept is not None:
            tried = "The columns that serve the worst-off group best are the same"
        elif audit.fit.budgets or not audit.provenance.alternative.startswith("FairPCACV"):
            tried = "The fair version, within the limits that were set, is PCA itself"
    elif verdict.remedy is Remedy.RAISES_LARGEST:
        rise = percent(audit.gain.largest.value)
        tried = f"The {fair} raises the largest error of a group by {rise}"
    else:
        tried = f"The {fair} does not reliably help {name(audit, audit.gain.group)}"
    to_do += f"The gap of {percent(gap.value)} remains: decide whether it can be accepted."
    return f"{tried}{effect}", to_do


def _cannot_judge(audit: AnyAudit) -> tuple[str, str, str]:
    reason = audit.verdict.reason
    origin = audit.provenance
    if isinstance(audit, ModelAudit) and audit.outside and reason is Reason.OTHER_ROWS:
        return (
            "This cannot be judged: these people are unlike those that the model was made for.",
            f"{percent(audit.outside)} of the rows lie outside of what the model was fitted to, so "
            "its errors say little.",
            "Check units and columns, or judge the model on rows like its own.",
        )
    if reason is Reason.OTHERS_TOGETHER and audit.verdict.gap is not None:
        best = full_name(audit, audit.verdict.group)
        gap = audit.verdict.gap
        return (
            f"{judged(audit)} describes {best} better than everyone else, but it cannot be judged "
            "who is worse off.",
            f"The others together are described worse: {best} is {percent(-gap.value)} better "
            f"({percent_range(-gap.high, -gap.low)}). None of them is reliably so by itself.",
            "Join the other groups, or collect more rows of them, and run again.",
        )
    if reason is Reason.ONE_VALUE_DECIDES:
        deciding = [column for column in audit.columns if column.decides]
        decide = "few rows decide"
        if len(deciding) == 1 and deciding[0].n_rows == 1:
            decide = "one value decides"
        columns = in_a_row([f"“{column.name}”" for column in deciding])
        return (
            f"This cannot be judged yet: {decide}.",
            " ".join(about_column(audit, column) for column in deciding[:_MOST_NAMED]),
            f"Correct {columns}, or leave {'them' if deciding[1:] else 'it'} out, and run again.",
        )
    if reason is Reason.ONE_COLUMN_DECIDES:
        return (
            f"This cannot be judged: column “{printable(audit.scale.column)}” decides alone.",
            _about_scale(audit),
            "Standardise the columns, and run again.",
        )
    if reason is Reason.NOTHING_COMPRESSED:
        columns = counted(len(origin.feature_names), "column")
        part = "component"
        if getattr(audit, "kept", None) is not None:
            part = "column"
        return (
            "This cannot be judged: nothing was compressed.",
            f"Keeping {counted(origin.n_components, part)} of {columns} loses nothing, so every "
            "group is described without error. That is no proof of fairness.",
            f"{f'Keep fewer {part}s' if origin.n_components > 1 else 'Use more columns'}, and run "
            "again.",
        )
    rows = sorted(audit.groups, key=lambda row: row.label != origin.reference)
    sizes = [f"{name(audit, row.label)} has {row.n:,}" for row in rows]
    others = "all others together have"
    other_way = ", or join small groups" * (len(rows) > 2)
    if origin.reference is not None:
        others = "the reference group has"
        other_way += ", or name another reference group"
    return (
        "This cannot be judged yet: too few people.",
        f"A group is judged if it has {origin.thresholds.judge_from} rows or more, and {others} as "
        f"many: {in_a_row(sizes, _MOST_NAMED, 'more groups')}.",
        f"Collect more rows{other_way}.",
    )


def _about_scale(audit: AnyAudit) -> str:
    """A sentence on the column of most variance, beside which others are lost."""
    scale = audit.scale
    n = len(audit.provenance.feature_names)
    lost = f"{scale.n_lost} of {n} columns lose more than half of their own"
    if scale.n_lost == 1:
        lost = f"one of {n} columns loses more than half of its own"
    share = f"{math.floor(1000 * scale.share) / 10:g} %"
    if scale.share > 0.999:
        share = "over 99.9 %"
    return f"Column “{printable(scale.column)}” has {share} of the variance, and {lost}."


def about_column(audit: AnyAudit, column: DecidingColumn) -> str:
    """A sentence on a column of which few rows decide."""
    of_error = f"{percent(column.share_of_error)} of the error of "
    if column.group is not None and not column.decides:  # the value of a person is not shown
        whose = name(audit, column.group)
        return f"One person, most extreme in “{column.name}”, makes up {of_error}{whose}."
    start = f"Column “{column.name}”"
    rows = counted(column.n_rows, "row")
    these = "These rows"
    make = "make up"
    if column.n_rows == 1:
        these = "This row"
        make = "makes up"
    share = f"which {make} {percent(column.share_of_variance)} of its variance"
    # Show the value as it stands in the data, so that it can be found there.
    value = f"{column.value or 0:.12g}".replace("-", "−")
    other = figure(column.next_value)
    end = f"; the most extreme of all other values is {other}."
    said = f"{start} holds {value} in {rows}{end}"
    if column.near_constant:
        said = f"{start} is {other} in all but {rows}, {share}."
    elif column.value is None:
        said = f"{start} depends on {rows}, {share}{end}"
    if column.group is None:
        return said
    return f"{said} {these} {make} {of_error}{name(audit, column.group)}."


def _gains_and_payments(audit: AnyAudit) -> str:
    """Which groups gain and lose under the alternative, and what may be chance."""
    changes = [(row, row.change) for row in audit.groups if row.judged]
    changes.sort(key=lambda pair: (pair[1].value > 0, -abs(pair[1].value)))
    names = quoted_names(audit)
    named: dict[bool, list[str]] = {True: [], False: []}  # by whether the change is reliable
    helped = audit.verdict.remedy is Remedy.HELPS and getattr(audit, "gain", None)
    for row, change in changes:
        reliable = change.direction != 0 or bool(helped and helped.group == row.label)
        named[reliable].append(f"{names[row.label]} {difference(change.value)}")
    said, could_be = (in_a_row(texts, _MOST_NAMED, _IN_TABLE) for texts in named.values())
    if could_be:
        could_be += " could be chance"
    return "; ".join(filter(None, [said, could_be]))


def _notices(audit: AnyAudit) -> list[str]:
    """Warnings that must not be overlooked."""
    verdict = audit.verdict
    least = audit.provenance.thresholds.judge_from
    changed = verdict.remedy not in (Remedy.NOT_TRIED, Remedy.IS_PCA)
    said = []
    if verdict.close_call:
        said.append("This is a close call: in other folds the answer is another.")
    for label in verdict.depending:
        if label != verdict.group:
            on, _, _ = _read_otherwise(overturning(audit, label))
            said.append(f"Whether {name(audit, label)} is described worse depends on {on}.")
    if verdict.other_group is not None and not verdict.readings_agree:
        first = "no group"
        if verdict.worse:
            first = name(audit, verdict.group)
        second = name(audit, verdict.other_group)
        if verdict.by_share:
            first, second = second, first
        said.append(
            f"In absolute terms {first} fares reliably worse; relative to how much each group "
            f"varies, {second} does. Decide which applies before acting."
        )
    paying = []
    affecting = []
    names = quoted_names(audit)
    for row in audit.groups:
        own = names[row.label]
        people = counted(row.n, "row")
        pays = f"{percent(row.change.value)} more error"
        if row.label in verdict.unjudged_payers:
            paying.append(f"{own} ({people}, {pays})")
        elif row.n < least and row.compared and changed:
            affecting.append(f"{own} ({people})")
        elif row.label in verdict.payers and not row.compared:
            said.append(f"{own} was set aside when the fair version was made, and has {pays}.")
    for do, small, advice in (
        ("lose by the fair version", paying, "Join them to other groups or look at them apart."),
        ("affect the result", affecting, "Merge or exclude them."),
    ):
        if small:
            listed = in_a_row(small, _MOST_NAMED, _IN_TABLE)
            said.append(f"Too few people to judge, yet they {do}: {listed}. {advice}")
    dominates = audit.scale.share >= audit.provenance.thresholds.dominates
    if dominates and audit.scale.n_lost and verdict.reason is not Reason.ONE_COLUMN_DECIDES:
        advice = "Standardise the columns unless their units are the same."
        said.append(f"{_about_scale(audit)} {advice}")
    if verdict.reason is not Reason.TOO_FEW_ROWS:
        said += [about_column(audit, column) for column in audit.columns if not column.decides]
    if isinstance(audit, Audit):
        return said + [
            f"The limit {budget.name} = {figure(budget.wanted)} is not met: the best that was "
            f"reached is {figure(budget.reached)}."
            for budget in audit.fit.budgets
            if not budget.met
        ]
    if audit.on_rows_fitted_to:
        said.append(
            "These are the rows that the model was fitted to, on which it looks too good: judge it "
            "by other rows."
        )
    if audit.outside and verdict.reason is not Reason.OTHER_ROWS:
        said.append(
            f"{percent(audit.outside)} of the rows lie outside of what the model was fitted to: "
            "its description of them cannot be relied on."
        )
    return said


def about_guessing(audit: AnyAudit) -> str:
    """How well the group can be guessed from the output."""
    leakage: Any = audit.leakage
    how = "By means and covariances alone, the group is guessed"
    aucs = [side["discriminant_auc"] for side in (leakage.baseline, leakage.alternative)]
    if leakage.baseline_probes:
        how = "A classifier guesses the group"
        probes = leakage.baseline_probes, leakage.alternative_probes
        aucs = [max(probe.auc for probe in found) for found in probes]
    own, other = both(audit)
    return (
        f"{how} with an AUC of {aucs[0]:.2f} under {own} and {aucs[1]:.2f} under {other} (0.5 is "
        "chance, 1 is certainty); another classifier may see more."
    )


def about_scores(audit: AnyAudit) -> list[str]:
    """Lines on what the scores reveal about the group and what classifiers make of them."""
    said = []
    if audit.leakage is not None and audit.leakage.baseline_probes:
        said.append(about_guessing(audit))
    seen_by = {"scores": both(audit)[isinstance(audit, Audit)]}
    for seen in audit.outcomes or ():
        if seen.name != "features" and seen.impact_ratios:
            ratios = seen.impact_ratios
            least, most = (f(ratios, key=lambda label: ratios[label].value) for f in (min, max))
            value, low, high = (figure(end) for end in ratios[least])
            said.append(
                f"A classifier on the scores of {seen_by.get(seen.name, 'PCA')} selects "
                f"{name(audit, least)} {value} times as often as {name(audit, most)} "
                f"({low} to {high})."
            )
    return said
