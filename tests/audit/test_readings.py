"""A shown gap is computed again under other readings: spoilt tables depend, clean ones stand."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.audits import GapReading, made_audit, made_group, say
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from fairpca import FairPCA, FairPCACV, GroupMoments, audit, audit_model
from fairpca._audit.gate import Answer, Why, gate
from fairpca.datasets import load_checkup

RANK = 3


def drawn(seed=0, harm=False, n=900):
    """Six columns of two groups; with harm the smaller one varies in other directions."""
    rng = np.random.default_rng(seed)
    few = np.arange(n) % 4 == 0
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 6)) + rng.normal(size=(n, 6))
    if harm:
        X[few] += 1.5 * rng.normal(size=(few.sum(), 2)) @ rng.normal(size=(2, 6))
    return X, np.where(few, "few", "many")


def audited(X, groups, **options):
    found = audit(FairPCA(RANK, standardize=True), X, groups, ranks=[RANK], n_points=2, **options)
    return found, {reading.name: reading for reading in found.readings}


def with_codes(seed=0):
    """Answers from 1 to 5, with 99 in 40 rows of the smaller group and -9 in 8."""
    X, groups = drawn(seed)
    X = np.clip(np.round(3 + X / 1.5), 1, 5)
    few = np.flatnonzero(groups == "few")
    X[few[:40], 1] = 99
    X[few[40:70], 2] = -9
    return X, groups


def restated(seed=0):
    """Two columns say which of three groups a row belongs to; two of them are called many."""
    X, groups = drawn(seed)
    third = (groups == "many") & (np.arange(len(X)) % 4 == 1)
    others = (groups == "many") & ~third
    return np.column_stack([X, 3.0 * third, 3.0 * others]), groups


def few_people(seed=0):
    X, groups = drawn(seed)
    rng = np.random.default_rng(seed)
    X[np.flatnonzero(groups == "few")[:8], 0] += rng.uniform(15, 30, 8)
    return X, groups


@pytest.mark.parametrize(
    ("table", "reading"),
    [(with_codes, "codes"), (restated, "restating columns"), (few_people, "medians")],
)
def test_a_gap_of_a_spoilt_table_depends(table, reading):
    found, readings = audited(*table())
    verdict = found.verdict
    assert (verdict.case.name, verdict.group) == ("DEPENDS", "few")
    assert (verdict.worse, verdict.depending) == ([], ["few"])
    assert readings[reading].overturns
    assert readings[reading].gap.value < 0.5 * verdict.gap.value
    assert readings[reading].difference.high < 0


@pytest.mark.parametrize("likert", [False, True])
def test_a_gap_of_a_clean_table_stands(likert):
    X, groups = drawn(harm=True)
    if likert:
        X = np.clip(np.round(3 + X / 1.5), 1, 5)
    found, readings = audited(X, groups)
    assert found.verdict.worse == ["few"]
    assert not found.verdict.depending
    assert readings["codes"].not_tried
    assert readings["restating columns"].not_tried
    assert readings["medians"].gap.value > 0


def test_no_reading_creates_a_gap():
    found, _ = audited(*drawn())
    assert found.verdict.case.name == "NO_GAP"
    assert found.readings == []


def test_the_column_that_overturns_a_gap_by_itself_is_named():
    X, groups = with_codes()
    _, readings = audited(X, groups)
    codes = readings["codes"]
    assert (codes.columns, codes.values, codes.n_rows) == (("x1",), (99.0,), 40)


def test_codes_as_missing_are_the_available_cases():
    """The gap of PCA fitted to, and judged by, the pairs of values that are no codes."""
    X, groups = with_codes()
    _, readings = audited(X, groups)
    known = np.where((X == 99) | (X == -9), np.nan, X)
    complete = ~np.isnan(known).any(axis=1)
    clean, _ = audited(X[complete], groups[complete])
    assert readings["codes"].gap.value == pytest.approx(
        clean.group("few").baseline.gap.value, abs=0.1
    )


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        ([1, 2, 3, 4, 5] * 20, []),
        ([0, 1] * 50, []),
        ([0, 1, 2] * 30, []),
        ([1, 2, 3, 4, 5] * 20 + [99] * 3, [99]),
        ([1, 2, 3, 4, 5] * 20 + [99] * 2, []),
        ([1, 2, 3, 4, 5] * 20 + [98] * 3 + [99] * 3 + [-9] * 4, [-9, 98, 99]),
        ([0] * 9 + [*range(60, 200)], [0]),
        ([*range(100)] * 3, []),
    ],
)
def test_what_may_be_a_code(column, codes):
    """Three rows or more at an end, a quarter of the others' range away from the next value."""
    rng = np.random.default_rng(0)
    groups = np.arange(len(column)) % 2
    X = np.column_stack([column, rng.normal(size=(len(column), 2)) * [200, 1]])
    X[groups == 0, 2] *= 100  # so that there is a gap to be read
    options = {"ranks": [1], "n_points": 2, "judge_from": 10, "cv": 3}
    found = audit(FairPCA(1), X, groups, **options)
    assert found.readings
    shown = [reading for reading in found.readings if reading.name == "codes"]
    assert sorted({value for reading in shown for value in reading.values}) == codes


@pytest.mark.filterwarnings("ignore:.*repeat an earlier one")
def test_every_gap_has_its_readings_and_a_gap_that_stands_leads():
    X, groups = with_codes()
    rng = np.random.default_rng(1)
    third = rng.normal(size=(200, 6)) * [4, 4, 4, 4, 4, 4] + 3
    found, _ = audited(np.concatenate([X, third]), np.append(groups, ["third"] * 200))
    assert found.verdict.worse == ["third"]
    assert found.verdict.group == "third"
    assert found.verdict.case.name != "DEPENDS"


def test_what_needs_rows_or_a_fit_is_not_tried():
    X, groups = drawn(harm=True)
    moments = GroupMoments.from_data(X, groups, folds=10)
    found, readings = audited(moments, None)
    assert found.verdict.worse == ["few"]
    assert {reading.not_tried for reading in readings.values()} == {"needs rows in memory"}
    X, groups = with_codes()
    fixed = audit_model(PCA(RANK).fit(X), X, groups)
    assert {r.name for r in fixed.readings if not r.not_tried} == {"medians"}


READ = GapReading("codes", "a", None, None, True, ("b",), (99.0,), 48)
GAP = made_group("a", 500, (0.3, 0.2, 0.4), (0.0, 0.0, 0.0))
OTHER = made_group("b", 500, (-0.2, -0.3, -0.1), (0.0, 0.0, 0.0))


def test_the_gate_does_not_pass_what_depends_and_does_not_call_it_a_gap():
    depends = made_audit([GAP, OTHER], readings=[READ])
    for fail_on in ("unproven", "gap"):
        found = gate(depends, 0.1, fail_on)
        assert (found.answer, found.why) == (Answer.UNPROVEN, Why.DEPENDS)
    assert gate(made_audit([GAP, OTHER]), 0.1).answer is Answer.EXCEEDED
    third = made_group("c", 500, (0.5, 0.4, 0.6), (0.0, 0.0, 0.0))
    assert gate(made_audit([GAP, OTHER, third], readings=[READ]), 0.1).group == "c"


def test_the_headline_says_on_what_it_depends():
    said = say(made_audit([GAP, OTHER], readings=[READ]))
    assert "this depends on whether 99 in column “b” is a number (48 rows)" in said.headline
    assert said.tone == "warn"
    third = made_group("c", 500, (0.5, 0.4, 0.6), (0.0, 0.0, 0.0))
    said = say(made_audit([GAP, OTHER, third], readings=[READ]))
    assert "“age_group = c”" in said.headline
    assert any("99 in column “b”" in notice for notice in said.notices)


def imputed(shares):
    """Check-up data, in which older people are described worse, with missing values filled in."""
    people = load_checkup()
    rng = np.random.default_rng(1)
    older = people.sensitive_features == "75 and older"
    missing = rng.random(people.data.shape) < np.where(older, *shares)[:, np.newaxis]
    X = np.where(missing, np.nan, people.data)
    steps = make_pipeline(SimpleImputer(), FairPCA(5, standardize=True))
    found = audit(steps, X, people.sensitive_features, ranks=[5], n_points=2)
    return found, [r for r in found.readings if r.name == "available cases"]


def test_filling_in_hides_a_gap_and_the_verdict_depends():
    found, readings = imputed((0.5, 0.05))
    (hidden,) = (reading for reading in readings if reading.overturns)
    assert found.verdict.case.name == "DEPENDS"
    assert found.verdict.depending == [hidden.group] == ["75 and older"]
    assert found.group("75 and older").baseline.gap.low < 0 < hidden.gap.low
    assert hidden.difference.low > 0
    assert "filled in" in say(found).headline
    assert gate(found, 10.0).why is Why.DEPENDS


def test_what_is_filled_in_of_every_group_alike_is_no_reading():
    found, readings = imputed((0.1, 0.1))
    assert found.verdict.worse == ["75 and older"]
    assert [r.not_tried for r in readings] == ["as much is filled in of every group"]


def test_other_folds_are_read_and_a_borderline_case_is_a_close_call():
    found, readings = audited(*drawn(harm=True))
    other = readings["other folds"]
    shown = found.group("few").baseline.gap
    assert shown.low < other.gap.value < shown.high
    assert other.gap.value != shown.value
    assert not other.overturns
    assert not found.verdict.close_call
    _, readings = audited(*drawn(harm=True), cv=StratifiedKFold(10))
    assert readings["other folds"].not_tried == "the folds are given"
    calls = []
    for seed in range(6):
        X, groups = drawn(seed, harm=True, n=120)
        result = audit(FairPCACV(RANK, standardize=True), X, groups, ranks=[RANK], n_points=2)
        calls.append(result)
    close = [result for result in calls if result.verdict.close_call]
    assert close
    assert len(close) < len(calls)
    assert all(any("close call" in notice for notice in say(r).notices) for r in close)
