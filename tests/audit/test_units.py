"""An audit of people who have several rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.model_selection import GroupKFold, KFold

from fairpca import FairPCA, FairPCACV, GroupMoments, audit, audit_model

QUICK = {"n_points": 2, "ranks": [2]}


def panel(seed, n_people=(60, 20), rows=10, correlation=0.9, d=6, harm=1.0):
    """People of two groups, with rows that resemble each other; groups differ by ``harm``."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(sum(n_people)), rows)
    groups = np.repeat(["b", "a"], n_people)[person]
    own = rng.normal(size=(sum(n_people), d))
    noise = rng.normal(size=(len(person), d))
    X = np.sqrt(correlation) * own[person] + np.sqrt(1 - correlation) * noise
    X[groups == "a"] *= harm
    return X * np.linspace(2, 1, d), groups, person


def test_rows_that_repeat_are_no_evidence():
    """By rows the intervals are too narrow; with persons as units they cover zero."""
    shown = {"rows": 0, "units": 0}
    for seed in range(12):
        X, groups, person = panel(seed, rows=30)
        for name, units in (("rows", None), ("units", person)):
            found = audit_model(PCA(2).fit(X), X, groups, units=units, judge_from=10)
            shown[name] += bool(found.verdict.worse or found.verdict.better)
    assert shown["rows"] >= 6
    assert shown["units"] <= 2


def test_units_are_counted_and_decide_who_is_judged():
    X, groups, person = panel(0, n_people=(60, 12), harm=2.0)
    found = audit(FairPCA(2), X, groups, units=person, **QUICK)
    assert found.provenance.n_units == 72
    assert [(own.n, own.n_units, own.judged) for own in found.groups] == [
        (120, 12, False),
        (600, 60, False),
    ]
    found = audit(FairPCA(2), X, groups, units=person, judge_from=2, **QUICK)
    assert all(own.judged for own in found.groups)
    few = audit(FairPCA(2), X[:680], groups[:680], units=person[:680], judge_from=2, **QUICK)
    assert not any(own.judged for own in few.groups)  # eight people
    by_rows = audit(FairPCA(2), X, groups, **QUICK)
    assert by_rows.provenance.n_units is None
    assert by_rows.groups[0].n_units == 120


def test_the_order_of_rows_and_the_type_of_labels_do_not_matter():
    X, groups, person = panel(1, harm=1.5)
    expected = audit(FairPCA(2), X, groups, units=person, judge_from=10, **QUICK)
    order = np.random.default_rng(0).permutation(len(X))
    names = person[order].astype(str)
    found = audit(FairPCA(2), X[order], groups[order], units=names, judge_from=10, **QUICK)
    for own, theirs in zip(found.groups, expected.groups, strict=True):
        np.testing.assert_allclose(own.baseline.gap, theirs.baseline.gap, rtol=1e-7)
        np.testing.assert_allclose(own.change, theirs.change, rtol=1e-6, atol=1e-9)
        assert own.better_off == pytest.approx(theirs.better_off)
        assert own.baseline.robust.median == pytest.approx(theirs.baseline.robust.median)


def test_columns_of_a_frame_may_be_named():
    X, groups, person = panel(2)
    frame = pd.DataFrame(X).add_prefix("x").assign(g=groups, person=person)
    named = audit(FairPCA(2), frame, "g", units="person", judge_from=10, **QUICK)
    passed = audit(FairPCA(2), X, groups, units=person, judge_from=10, **QUICK)
    assert named.provenance.feature_names == [f"x{j}" for j in range(6)]
    np.testing.assert_allclose(named.groups[0].baseline.gap, passed.groups[0].baseline.gap)


def test_moments_by_unit_give_the_same_errors():
    X, groups, person = panel(3, harm=1.5)
    moments = GroupMoments.from_data(X, groups, units=person, folds=10)
    streamed = audit(FairPCA(2), moments, judge_from=10, **QUICK)
    rows = audit(FairPCA(2), X, groups, units=person, judge_from=10, **QUICK)
    for own, theirs in zip(streamed.groups, rows.groups, strict=True):
        assert own.baseline.error == pytest.approx(theirs.baseline.error)
        assert own.n_units == theirs.n_units


def test_people_better_off_count_once():
    """Somebody with many rows is one person."""
    X, groups, person = panel(4, n_people=(40, 20), harm=1.5)
    busy = person == person[groups == "a"][0]
    rows = np.concatenate([np.arange(len(X)), np.repeat(np.flatnonzero(busy), 30)])
    once = audit(FairPCA(2), X, groups, units=person, judge_from=10, **QUICK)
    often = audit(FairPCA(2), X[rows], groups[rows], units=person[rows], judge_from=10, **QUICK)
    for own in (*once.groups, *often.groups):
        n = 20 if own.label == "a" else 40
        assert own.better_off * n == pytest.approx(round(own.better_off * n))


def test_splitters_get_the_units_and_may_not_tear_them():
    X, groups, person = panel(5)
    audit(FairPCA(2), X, groups, units=person, cv=GroupKFold(5), judge_from=10, **QUICK)
    splitter = KFold(5, shuffle=True, random_state=0)
    with pytest.raises(ValueError, match="both sides of a split"):
        audit(FairPCA(2), X, groups, units=person, cv=splitter, **QUICK)


def test_rows_that_repeat_others_are_a_warning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)).repeat(3, axis=0)
    groups = np.array(["a", "b"] * 60).repeat(3)
    with pytest.warns(UserWarning, match=r"120 rows occur 3 times each.*pass units=person"):
        audit(FairPCACV(1), X, groups)
    audit(FairPCACV(1), X, groups, units=np.arange(120).repeat(3))  # warnings are errors here
    audit(FairPCACV(1), rng.integers(1, 6, (360, 3)).astype(float), groups)
