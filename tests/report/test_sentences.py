"""The verdict in words: four cases, the same words everywhere."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from helpers.audits import (
    CHANGE,
    GAP,
    OLD,
    YOUNG,
    Budget,
    DecidingColumn,
    Interval,
    LeftOut,
    group_rows,
    how_judged,
    left_out,
    made_audit,
    made_cases,
    made_gain,
    made_group,
    made_model_audit,
    say,
)

from fairpca.report import as_html, as_text, model_card, render

CASES = made_cases()


@pytest.mark.parametrize("case", CASES)
def test_the_same_headline_everywhere(case):
    pytest.importorskip("jinja2")
    audit = CASES[case]
    headline = say(audit).headline
    assert as_text(audit).startswith(headline)
    assert headline in as_html(audit)
    assert headline in re.sub(r"\\(.)", r"\1", model_card(audit))
    pytest.importorskip("vl_convert")
    assert headline in render(audit).replace("\u00a0", " ")


@pytest.mark.parametrize("case", CASES)
def test_a_minus_is_no_hyphen(case):
    said = say(CASES[case])
    text = " ".join([said.headline, said.lead, said.to_do, *said.notices])
    assert not re.search(r"(?<!\w)-\d", text)


def test_a_gap_with_a_remedy_says_who_gains_and_who_pays():
    said = say(CASES["remedy"])
    assert "“age_group = 75 and older” 33 % worse than “younger”" in said.headline
    assert "21 % to 44 %" in said.lead
    assert "“75 and older” 19 % better and “younger” 9 % worse" in said.lead
    assert "9 %" in said.to_do
    assert said.tone == "bad"


def test_a_gap_that_chance_can_explain_gets_no_remedy():
    said = say(CASES["no gap"])
    assert CASES["no gap"].verdict.case.name == "NO_GAP"
    assert "fair version" not in said.headline + said.lead + said.to_do
    assert "12 % or more would likely be seen" in said.lead


def test_without_a_gap_the_group_of_the_largest_figure_fares_worst():
    wide = made_group("few", 40, (0.13, -0.1, 0.4), (0.0, -0.1, 0.1))
    said = say(made_audit((*CASES["no gap"].groups, wide)))
    assert said.lead.startswith("“few” fares worst, 13 % worse than everyone else (10 % better to ")
    assert said.headline == "No group is reliably described worse than everyone else."


def test_without_a_gap_groups_too_small_to_judge_are_named():
    pair = made_group("pair", 2, (1.03, 1.03, 1.03), (0.0, 0.0, 0.0))
    better = made_group("b", 400, (-0.1, -0.5, 0.6), (0.0, -0.1, 0.1))
    other = made_group("c", 400, (-0.3, -0.6, 0.4), (0.0, -0.1, 0.1))
    said = say(made_audit((better, other, pair)))
    assert said.headline.startswith("No judged group is")
    assert "“b” comes closest, 10 % better than everyone else" in said.lead
    assert "fares worst" not in said.lead
    assert said.lead.endswith("Too few rows to judge: “pair”.")
    sure = [replace(row, detectable_gap=0.05) for row in (*CASES["no gap"].groups, pair)]
    assert "for the groups that were judged" in say(made_audit(sure)).to_do


def test_rows_that_could_miss_any_gap_are_not_said_to_show_one_of_thousands_of_percent():
    blind = [replace(group, detectable_gap=25.0) for group in CASES["no gap"].groups]
    assert "could miss even a gap of 100 %" in say(made_audit(blind)).lead
    pytest.importorskip("jinja2")
    assert "- Even a gap of 100 % could have been missed." in model_card(made_audit(blind))


def test_rows_that_a_model_was_fitted_to_are_no_all_clear():
    seen = made_model_audit(CASES["no gap"].groups, on_rows_fitted_to=True)
    assert seen.verdict.case.name == "NO_GAP"
    assert say(seen).to_do.startswith("Do not rely on this")


def test_many_small_groups_share_a_notice():
    pairs = [made_group(f"p{i}", 2, (0.7, 0.7, 0.7), (0.2, 0.2, 0.2)) for i in range(5)]
    (notice,) = say(made_audit((OLD, YOUNG, *pairs))).notices
    assert "yet they lose by the fair version: “p0” (2 rows, 20 % more error), " in notice
    assert "and 2 more groups (see the table)" in notice


def test_columns_left_out_for_the_same_reason_share_a_sentence():
    out = [LeftOut("column", name, 0, "no numbers") for name in ("a", "b")]
    out += [LeftOut("rows", "", 3, "missing values"), LeftOut("column", "id", 0, "probably an id")]
    assert left_out(replace(made_audit(), left_out=out)) == [
        "3 rows: left out, missing values.",
        "Columns “a” and “b”: left out, no numbers.",
        "Column “id”: left out, probably an id.",
    ]


def test_no_gap_by_one_measure_is_no_all_clear_if_the_other_finds_one():
    groups = CASES["no gap"].groups
    other = replace(groups[0].baseline, share_gap=Interval(0.2, 0.1, 0.3))
    said = say(made_audit((replace(groups[0], baseline=other), groups[1])))
    assert "Nothing needs to be done" not in said.to_do
    assert any("“women”" in notice for notice in said.notices)


def test_a_reference_group_that_is_worse_off_is_no_all_clear():
    audit = made_audit((YOUNG, OLD), reference=OLD.label)
    said = say(audit)
    assert audit.verdict.case.name == "REMEDY"
    assert "“age_group = 75 and older”, the reference group, 33 % worse" in said.headline
    assert said.headline.endswith("worse than “younger”.")
    assert "21 % to 44 %" in said.lead
    assert "A fair version removes it" in said.lead
    assert said.tone == "bad"
    notes = {row["name"]: row["note"] for row in group_rows(audit)}
    assert notes == {"75 and older": "the reference, against all others", "younger": ""}


def test_a_reference_group_that_is_not_last_is_named_after_the_others():
    worst = made_group("oldest", 90, (0.2, 0.1, 0.3), CHANGE)
    said = say(made_audit((YOUNG, OLD, worst), reference=OLD.label))
    assert "“age_group = oldest” 20 % worse than “75 and older”" in said.headline
    assert "“75 and older” 33 % (480 people)" in said.lead


@pytest.mark.parametrize(
    ("label", "columns", "shown"),
    [
        ("men & north", ["sex", "ward"], "sex = men, ward = north"),
        ("black=0 & hisp=1", ["black", "hisp"], "black = 0, hisp = 1"),
        ("Black & Asian", ["race"], "race = Black & Asian"),
        ("women", [], "women"),
    ],
)
def test_a_group_keeps_its_columns(label, columns, shown):
    audit = made_audit((made_group(label, 400, GAP, CHANGE), YOUNG))
    audit = replace(audit, provenance=replace(audit.provenance, group_columns=columns))
    assert f"PCA describes “{shown}” 33 %" in say(audit).headline


def test_many_rows_are_needed_to_rule_out_a_gap_that_matters():
    blind = [replace(group, detectable_gap=0.5) for group in CASES["no gap"].groups]
    assert "Nothing needs to be done" not in say(made_audit(blind)).to_do


def test_without_a_remedy_the_gap_remains():
    said = say(CASES["no remedy"])
    assert "95 % worse" in said.headline
    assert "no reliable remedy" in said.headline
    assert "gap of 95 % remains" in said.to_do
    assert "Do not use the fair version" in said.to_do


def test_only_changes_that_are_not_reliable_are_called_chance():
    """The worst-off group was set aside in the fit: it pays, and another group gains."""
    small = made_group("small", 40, (7.26, 4.27, 12.0), (0.4, 0.06, 0.85), compared=False)
    gains = made_group("b", 380, (1.64, 1.13, 2.28), (-0.49, -0.52, -0.45))
    said = say(made_audit((small, gains, YOUNG)))
    assert "does not reliably help “small”: “b” 49 % better, “small” 40 % worse" in said.lead
    assert "chance" not in said.lead
    unsure = [replace(row, change=Interval(0.01, -0.1, 0.1)) for row in (OLD, YOUNG)]
    assert "chance" in say(made_audit(unsure)).lead


def test_a_remedy_that_puts_another_group_last_is_none():
    said = say(made_audit(gain=made_gain((OLD, YOUNG), largest=(0.1, 0.05, 0.2))))
    assert "no reliable remedy" in said.headline
    assert "raises the largest error of a group by 10 %" in said.lead


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("one value", "ONE_VALUE_DECIDES"),
        ("nothing compressed", "NOTHING_COMPRESSED"),
        ("one column", "ONE_COLUMN_DECIDES"),
        ("too few", "TOO_FEW_ROWS"),
    ],
)
def test_what_cannot_be_judged_says_why(case, reason):
    audit = CASES[case]
    assert audit.verdict.reason.name == reason
    said = say(audit)
    assert "cannot be judged" in said.headline
    assert "% worse" not in said.headline + said.lead
    assert said.to_do


def test_the_deciding_column_and_value_are_named():
    assert "“lines” holds 999999.375 in 1 row" in say(CASES["one value"]).lead


def test_every_deciding_column_is_to_be_corrected():
    (column,) = CASES["one value"].columns
    columns = [replace(column, name=f"c{i}") for i in range(6)]
    assert "“c4” and “c5”" in say(made_audit(columns=columns)).to_do


def test_a_table_of_one_column_needs_more_of_them():
    audit = CASES["nothing compressed"]
    own = replace(audit.provenance, n_components=1, feature_names=["x"])
    said = say(replace(audit, provenance=own))
    assert said.lead.startswith("Keeping 1 component of 1 column loses nothing")
    assert said.to_do == "Use more columns, and run again."


def test_a_reliable_gap_that_is_small_is_called_small():
    small, other = (0.02, 0.015, 0.025), (-0.02, -0.025, -0.015)
    groups = made_group("a", 90_000, small, CHANGE), made_group("b", 90_000, other, CHANGE)
    said = say(made_audit(groups))
    assert "small" in said.headline
    assert said.tone == "plain"
    assert "small" not in say(made_audit(groups, small_gap=0.01)).headline


def test_small_groups_are_listed_but_not_judged():
    pair = made_group("Oceania", 2, (0.77, 0.77, 0.77), (0.2, 0.2, 0.2))
    audit = made_audit((OLD, YOUNG, pair))
    said = say(audit)
    assert "Oceania" not in said.headline
    assert any("Oceania" in notice and "2 rows" in notice for notice in said.notices)
    row = next(row for row in group_rows(audit) if row["name"] == "Oceania")
    assert row["gap"].ends == row["change"].ends == ""
    assert row["gap"].direction == row["change"].direction == 0


def test_a_small_group_affects_no_result_that_is_pca():
    pair = made_group("Oceania", 2, (0.77, 0.77, 0.77), (0.0, 0.0, 0.0))
    assert any(
        "affect the result" in notice for notice in say(made_audit((OLD, YOUNG, pair))).notices
    )
    assert not say(made_audit((OLD, YOUNG, pair), is_pca=True)).notices


def test_a_reference_group_that_is_too_small_is_named_first():
    rows = [replace(row, judged=False) for row in (OLD, YOUNG)]
    none = [replace(row.baseline, gap=None, share_gap=None) for row in rows]
    rows = [replace(row, baseline=own) for row, own in zip(rows, none, strict=True)]
    two = made_group("two", 2, (0.77, 0.77, 0.77), (0.0, 0.0, 0.0))
    audit = made_audit((*rows, two), reference="two")
    said = say(audit)
    assert audit.verdict.reason.name == "TOO_FEW_ROWS"
    assert "reference group has as many: “two” has 2" in said.lead
    assert "another reference group" in said.to_do
    notes = {row["name"]: row["note"] for row in group_rows(audit)}
    assert notes["two"] == "fewer than 30: no interval"
    assert notes["younger"] == "not judged"


def test_all_others_who_are_worse_off_are_named():
    black = made_group("Black", 293, (0.66, 0.5, 0.8), (-0.1, -0.2, -0.05))
    other = made_group("Other", 37, (0.9, 0.1, 2.0), (-0.1, -0.2, -0.05))
    said = say(made_audit((black, other, YOUNG)))
    assert "“age_group = Black” 66 %" in said.headline
    assert "“Other” 90 % (37 people)" in said.lead


def test_readings_that_disagree_are_a_notice():
    one = made_group("A", 500, GAP, CHANGE, share_gap=(-0.2, -0.3, -0.1))
    two = made_group("B", 500, (-0.25, -0.31, -0.17), CHANGE, share_gap=(0.25, 0.1, 0.4))
    said = say(made_audit((one, two)))
    assert any("“A”" in n and "“B”" in n and "Decide which applies" in n for n in said.notices)
    assert said.to_do.startswith("Decide first which of the two measures applies.")
    one = made_group("A", 500, GAP, CHANGE, share_gap=(-0.02, -0.1, 0.1))
    two = made_group("B", 500, (-0.25, -0.31, -0.17), CHANGE, share_gap=(0.02, -0.1, 0.1))
    assert not say(made_audit((one, two))).notices
    notices = say(made_audit((one, two), by_share=True)).notices
    assert any(re.search("absolute terms “A” .*no group does", notice) for notice in notices)


def test_budgets_that_are_not_met_are_a_notice():
    audit = made_audit()
    fit = replace(audit.fit, budgets=[Budget("max_disparity", 0.1, 0.25, False)])
    said = say(replace(audit, fit=fit))
    assert any("max_disparity" in notice and "0.25" in notice for notice in said.notices)


def test_near_constant_columns_are_named():
    column = DecidingColumn("zip", 3, None, 0.0, 0.98, True, False)
    assert any("“zip”" in notice for notice in say(made_audit(columns=[column])).notices)
    one = say(made_audit(columns=[replace(column, n_rows=1)])).notices
    assert any("in all but 1 row, which makes up" in notice for notice in one)
    person = DecidingColumn("wage", 1, None, 26.3, 0.1, False, False, OLD.label, 0.41)
    (notice,) = say(made_audit(columns=[person])).notices
    assert notice.startswith("One person, most extreme in “wage”, makes up 41 % of the error")


def test_a_model_is_judged_as_it_is():
    said = say(made_model_audit(on_rows_fitted_to=True, outside=0.02))
    assert said.headline.startswith("The model describes “age_group = 75 and older” 33 % worse")
    assert "Plain PCA" in said.lead
    assert "describes the group 1 % worse than “younger”" in said.lead
    assert "left out of its fit" in said.lead
    assert any("looks too good" in notice for notice in said.notices)
    assert any("2 %" in notice and "outside" in notice for notice in said.notices)


def test_gains_come_first_and_chance_is_said_once():
    unsure = [made_group(name, 90, (-0.1, -0.2, 0.1), (0.02, -0.01, 0.05)) for name in "cd"]
    lead = say(made_audit((YOUNG, OLD, *unsure))).lead
    assert "“75 and older” 19 % better and “younger” 9 % worse; “c” 2 % worse and “d” 2 %" in lead
    assert lead.count("chance") == 1


def test_only_a_table_with_intervals_speaks_of_them():
    pytest.importorskip("vl_convert")
    for case in CASES:
        said = "valid for all groups at once" in render(CASES[case])
        assert said == (case not in ("one value", "nothing compressed", "one column", "too few"))


@pytest.mark.parametrize("case", ["one value", "nothing compressed", "one column"])
def test_figures_that_mean_nothing_are_not_shown(case):
    rows = group_rows(CASES[case])
    assert {str(row[key]) for row in rows for key in ("gap", "other_gap", "change")} == {""}
    pytest.importorskip("vl_convert")
    page = render(CASES[case])
    assert 'id="gaps"' not in page
    assert 'id="columns"' not in page  # nobody is named whose errors it could show


def test_no_table_has_the_errors_of_one_person():
    pytest.importorskip("vl_convert")
    alone = made_group("alone", 1, (0.77, 0.77, 0.77), (0.2, 0.2, 0.2))
    page = render(made_audit((OLD, YOUNG, alone)))
    table = re.search('<table id="marks">.*?</table>', page, re.DOTALL)[0]
    assert "younger" in table
    assert "alone" not in table
    assert table.count("<th ") == 5 + 2 + 4  # five columns, two groups, four methods
    assert table.count("<td") == 4 * (4 + 2)


def test_the_limits_are_said():
    pytest.importorskip("jinja2")
    audit = replace(made_audit(), left_out=[LeftOut("column", "zip", 60, "no numbers")])
    card = model_card(audit)
    assert "could have been missed" not in card  # a gap is proven
    assert "Gaps below about 12 % could have been missed." in model_card(CASES["no gap"])
    assert "not equal outcomes" in card
    assert "Column “zip”: left out, no numbers." in card
    assert "was left out" not in card
    assert "No column and no row was left out." in model_card(made_audit())


def test_who_is_worse_off_after_the_remedy_is_named():
    """The remedy helps the headline's group, and turns the gap round."""
    after = replace(YOUNG.alternative, gap=Interval(0.2, 0.1, 0.3))
    said = say(made_audit((OLD, replace(YOUNG, alternative=after))))
    assert "Then “younger” (20 %) is reliably worse off." in said.lead
    after = replace(YOUNG.alternative, gap=Interval(0.2, -0.1, 0.5))  # could be chance
    assert "Then" not in say(made_audit((OLD, replace(YOUNG, alternative=after)))).lead
    assert "Then" not in say(made_audit()).lead


def test_only_those_who_reliably_pay_are_said_to_pay():
    unsure = replace(YOUNG, change=Interval(0.09, -0.01, 0.2))
    said = say(made_audit((OLD, unsure)))
    assert said.to_do == "Use the fair version."
    assert "“younger” 9 % worse could be chance" in said.lead


def test_a_gap_that_is_left_is_not_called_removed():
    left = replace(OLD.alternative, gap=Interval(0.52, -0.15, 1.7))
    said = say(made_audit((replace(OLD, alternative=left), YOUNG)))
    assert "reduces it to 52 %" in said.lead
    assert "removes it" in say(made_audit()).lead
    assert "remains" not in said.to_do  # what is left could be chance
    left = replace(OLD.alternative, gap=Interval(0.3, 0.2, 0.4))
    said = say(made_audit((replace(OLD, alternative=left), YOUNG)))
    assert "A gap of 30 % remains: decide whether it can be accepted." in said.to_do


def test_the_price_stands_beside_the_gain():
    said = say(made_audit())
    (sentence,) = [part for part in said.lead.split(". ") if "75 and older” 19 % better" in part]
    for price in ("“younger” 9 % worse", "5 % worse over all people", "largest error: 10 % better"):
        assert price in sentence


def test_how_it_was_judged_is_a_line_each():
    audit = made_audit()
    names = [f"c{i}" for i in range(12)]
    many = replace(audit.provenance, feature_names=names, n_units=90, weighted=True)
    groups = [replace(OLD, share_missing=0.2), YOUNG]
    lines = how_judged(replace(audit, provenance=many, groups=groups))
    assert lines == [
        "Units: 90, with 4,491 rows.",
        "Columns (12): “c0”, “c1”, “c2”, “c3”, “c4”, “c5”, “c6”, “c7”, “c8”, “c9” and 2 more.",
        "Weights: by row.",
        "Values missing: 20 % (75 and older).",
        "Folds: 10.",
        "Seed: 0.",
    ]
    assert how_judged(audit)[0] == "Units: every row by itself."
