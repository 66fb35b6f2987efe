"""The case of an audit from its figures: a table of made audits."""

from __future__ import annotations

import pytest
from helpers.audits import DecidingColumn, Gain, Interval, made_audit, made_group


def group(label, gap, change=0.0, *, n=500, share_gap=None, half=0.05):
    """A row of an audit; groups of fewer than 30 rows have bare figures only."""

    def around(value, half):
        return value, value - half, value + half

    shares = around(gap if share_gap is None else share_gap, half)
    return made_group(label, n, around(gap, half), around(change, 0.02), shares)


OTHERS = group("others", -0.2, 0.08)
OUTLIER = DecidingColumn("lines", 1, 999999.375, 55.0, 1.0, False, True, "a")
SKEWED = DecidingColumn("income", 3, None, 55.0, 0.6, False, False)

MADE = {
    "gap and remedy": ([group("a", 0.33, -0.19), OTHERS], {}, "REMEDY", "HELPS"),
    "gain can be chance": ([group("a", 0.33, -0.01), OTHERS], {}, "NO_REMEDY", "NOT_RELIABLE"),
    "both get worse": ([group("a", 0.33, 0.1), OTHERS], {}, "NO_REMEDY", "NOT_RELIABLE"),
    "left at PCA": ([group("a", 0.95, 0.0), OTHERS], {"is_pca": True}, "NO_REMEDY", "IS_PCA"),
    "another group pays too much": (
        [group("a", 0.33, -0.19), group("b", -0.1, 0.6), OTHERS],
        {"gain": Gain("a", 9.0, Interval(0.1, 0.05, 0.15))},
        "NO_REMEDY",
        "RAISES_LARGEST",
    ),
    "the largest error may rise by chance": (
        [group("a", 0.33, -0.19), OTHERS],
        {"gain": Gain("a", 9.0, Interval(0.01, -0.05, 0.15))},
        "REMEDY",
        "HELPS",
    ),
    "no gap": ([group("a", 0.03, 0.0), group("b", -0.03)], {}, "NO_GAP", "NOT_RELIABLE"),
    "no gap, and a gain": (
        [group("a", 0.03, -0.1), group("b", -0.03)],
        {},
        "HELPS_ANYWAY",
        "HELPS",
    ),
    "model": ([group("a", 0.33), OTHERS], {"gain": None}, "GAP", "NOT_TRIED"),
}


@pytest.mark.parametrize("name", MADE)
def test_cases(name):
    groups, options, case, remedy = MADE[name]
    verdict = made_audit(groups, [SKEWED], **options).verdict
    assert (verdict.case.name, verdict.remedy.name, verdict.reason) == (case, remedy, None)
    assert verdict.group == "a"


NOT_JUDGED = {
    "too few rows": ([group("a", 0.9, n=20), group("b", -0.4, n=9)], {}, [], "TOO_FEW_ROWS"),
    "all components": (
        [group("a", 0.0), OTHERS],
        {"nothing_compressed": True},
        [],
        "NOTHING_COMPRESSED",
    ),
    "one value": ([group("a", 1e5), OTHERS], {}, [SKEWED, OUTLIER], "ONE_VALUE_DECIDES"),
    "other rows": ([group("a", 0.33), OTHERS], {"gain": None, "outside": 0.9}, [], "OTHER_ROWS"),
}


@pytest.mark.parametrize("name", NOT_JUDGED)
def test_what_cannot_be_judged_is_no_pass(name):
    groups, options, columns, reason = NOT_JUDGED[name]
    verdict = made_audit(groups, columns, **options).verdict
    assert (verdict.case.name, verdict.reason.name) == ("CANNOT_JUDGE", reason)
    assert verdict.group is None


def test_who_pays_is_not_said_where_one_value_decides():
    rows = [group("a", 1e5), OTHERS, group("tiny", 5.0, 0.3, n=2)]
    assert made_audit(rows).verdict.unjudged_payers == ["tiny"]
    assert made_audit(rows, [OUTLIER]).verdict.unjudged_payers == ()


def test_a_group_ahead_of_small_others_is_no_all_clear():
    major = group("major", -0.5, n=1000)
    small = [group(label, 0.8, n=20) for label in "bcd"]
    verdict = made_audit([major, *small]).verdict
    assert (verdict.case.name, verdict.reason.name) == ("CANNOT_JUDGE", "OTHERS_TOGETHER")
    assert (verdict.group, verdict.better) == ("major", ["major"])
    lossless = made_group("major", 1000, (-1.0, -1.0, -1.0), (0.0, 0.0, 0.0))  # no error at all
    assert made_audit([lossless, *small]).verdict.reason.name == "OTHERS_TOGETHER"
    hardly = made_audit([group("major", -0.04, n=1000, half=0.01), *small]).verdict
    assert hardly.case.name == "NO_GAP"


def test_the_headline_is_the_largest_lower_end_and_never_a_small_group():
    other = group("Other", 0.9, n=37, half=0.8)
    black = group("Black", 0.66, n=293, half=0.2)
    tiny = group("tiny", 5.0, 0.3, n=2)
    verdict = made_audit([other, black, tiny, group("White", -0.3)]).verdict
    assert verdict.group == "Black"
    assert verdict.worse == ["Other", "Black"]
    assert verdict.better == ["White"]
    assert verdict.unjudged_payers == ["tiny"]


def test_a_reliable_gap_of_three_percent_is_small():
    small = [group("a", 0.03, -0.05, half=0.01), group("b", -0.03, half=0.01)]
    assert made_audit(small).verdict.small
    assert not made_audit(small, small_gap=0.02).verdict.small
    assert not made_audit([group("a", 0.03), group("b", -0.03)]).verdict.small
    wide = [group("a", 0.03, half=0.01), group("b", 0.3, half=0.29), group("c", -0.1, half=0.05)]
    verdict = made_audit(wide).verdict  # the headline has the largest lower end
    assert verdict.group == "a"
    assert not verdict.small


@pytest.mark.parametrize(
    ("share_gap", "agree", "named"),
    [(0.2, True, "a"), (0.02, None, None), (-0.02, None, None), (-0.3, False, "b")],
)
def test_both_readings(share_gap, agree, named):
    groups = [group("a", 0.33, share_gap=share_gap), group("b", -0.25, share_gap=-share_gap)]
    verdict = made_audit(groups).verdict
    assert (verdict.readings_agree, verdict.other_group) == (agree, named)
    by_share = made_audit(groups, by_share=True).verdict
    assert by_share.other_group == "a"
    assert by_share.readings_agree == agree


def test_who_gains_and_who_pays():
    groups = [group("a", 0.33, -0.19), group("b", 0.0, 0.01), group("c", -0.2, 0.09)]
    verdict = made_audit(groups).verdict
    assert (verdict.gainers, verdict.payers) == (["a"], ["c"])
