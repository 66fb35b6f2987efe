"""Audits of several attributes without crossing: each group beside the rest of its attribute."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairColumns, FairPCA, GroupMoments, audit, audit_model
from fairpca.metrics import group_reconstruction_errors, reconstruction_disparity

rng = np.random.default_rng(8)
N, D = 800, 5
PEOPLE = pd.DataFrame(
    {
        "sex": np.where(rng.random(N) < 0.4, "f", "m"),
        "age": rng.choice(["young", "middle", "old"], N, p=[0.5, 0.3, 0.2]),
    }
)
X = rng.normal(size=(N, D)) * [3, 2.5, 2, 1.5, 1]
X[PEOPLE["age"] == "old"] *= [1, 0.4, 0.5, 2, 2]
MARGINS = ["age = middle", "age = old", "age = young", "sex = f", "sex = m"]
WEIGHTS = np.where(np.arange(N) % 50 == 0, 0.0, 1 + np.arange(N) % 3)
QUICK = {"ranks": [1, 2], "n_points": 2, "cv": 2}
FAIR = FairPCA(2, tol=0.1)


def of_margin(label):
    column, value = label.split(" = ")
    return (PEOPLE[column] == value).to_numpy()


@pytest.fixture(scope="module")
def found():
    return audit(FAIR, X, PEOPLE, sample_weight=WEIGHTS, crossing=False, **QUICK)


@pytest.mark.parametrize("label", MARGINS)
def test_each_group_stands_beside_all_people_outside_it(found, label):
    """As an audit of this group against all others has it, on the same folds."""
    model = PCA(2).fit(X[::2])
    inside = np.where(of_margin(label), "inside", "outside")
    alone = audit_model(model, X, inside, sample_weight=WEIGHTS).group("inside")
    own = audit_model(model, X, PEOPLE, sample_weight=WEIGHTS, crossing=False).group(label)
    assert own.n == alone.n == (of_margin(label) & (WEIGHTS > 0)).sum()
    assert own.baseline.error == pytest.approx(alone.baseline.error)
    assert own.baseline.gap.value == pytest.approx(alone.baseline.gap.value)
    assert own.baseline.share_gap.value == pytest.approx(alone.baseline.share_gap.value)
    width = own.baseline.gap.high - own.baseline.gap.low
    assert width > alone.baseline.gap.high - alone.baseline.gap.low  # they hold for all groups
    assert own.baseline.robust.median == pytest.approx(alone.baseline.robust.median)
    assert own.baseline.robust.median_gap == pytest.approx(alone.baseline.robust.median_gap)


def test_the_worst_margin_is_named_and_helped(found):
    assert [row.label for row in found.groups] == MARGINS
    assert found.verdict.group == "age = old"
    assert found.group("age = old").change.value < 0
    assert found.provenance.n_rows == (WEIGHTS > 0).sum()
    assert not found.provenance.crossing
    assert list(found.provenance.group_columns) == ["sex", "age"]
    assert "crossing=False" in found.provenance.alternative
    assert found.path.groups.tolist() == MARGINS
    assert "what classifiers make of the scores" in found.provenance.not_computed
    assert "groups that overlap" in repr(found)
    assert set(found.to_dict()["provenance"]) >= {"crossing", "not_computed"}


def test_the_estimator_may_say_so_and_moments_and_streams_give_the_same(found):
    pa = pytest.importorskip("pyarrow")
    rows = audit(FAIR, X, PEOPLE, crossing=False, **QUICK)
    crossed = GroupMoments.from_data(X, PEOPLE, folds=2)
    frame = pd.DataFrame(X, columns=list("abcde")).join(PEOPLE)
    reader = pa.Table.from_pandas(frame).to_reader(90)
    own = FairPCA(2, tol=0.1, crossing=False)
    for again in (
        audit(own, X, PEOPLE, **QUICK),
        audit(own, crossed, **QUICK),
        audit(FAIR, crossed, crossing=False, **QUICK),
        audit(FAIR, reader, ["sex", "age"], crossing=False, **QUICK),
    ):
        for a, b in zip(again.groups, rows.groups, strict=True):
            assert (a.label, a.n) == (b.label, b.n)
            assert a.baseline.gap_estimate == pytest.approx(b.baseline.gap_estimate)
            assert tuple(a.change) == pytest.approx(tuple(b.change), abs=1e-6)
        assert again.leakage.baseline == pytest.approx(rows.leakage.baseline)


def test_one_attribute_is_the_same_to_the_digit():
    alone = audit(FAIR, X, PEOPLE["age"], crossing=False, **QUICK)
    crossed = audit(FAIR, X, PEOPLE["age"], **QUICK)
    assert [row.baseline for row in alone.groups] == [row.baseline for row in crossed.groups]
    assert alone.verdict == crossed.verdict


def test_a_reference_is_for_its_own_attribute():
    result = audit(FAIR, X, PEOPLE, crossing=False, reference="age = young", **QUICK)
    errors = {row.label: row.baseline.error for row in result.groups}
    old, young = errors["age = old"], errors["age = young"]
    assert result.group("age = old").baseline.gap.value == pytest.approx(old / young - 1)
    f, m = errors["sex = f"], errors["sex = m"]
    assert result.group("sex = f").baseline.gap.value == pytest.approx(f / m - 1)


def test_units_splitters_pipelines_and_the_default():
    home = np.arange(N) // 2
    model = PCA(2).fit(X)
    result = audit_model(model, X, PEOPLE, units=home, crossing=False)
    assert N // 2 <= result.provenance.n_units <= N
    how = QUICK | {"cv": StratifiedKFold(3)}
    assert audit(FAIR, X, PEOPLE, crossing=False, **how).provenance.n_folds == 3
    pipeline = make_pipeline(StandardScaler(), FAIR)
    whole = audit(FairPCA(2, tol=0.1, standardize=True), X, PEOPLE, crossing=False, **QUICK)
    piped = audit(pipeline, X, PEOPLE, crossing=False, **QUICK)
    for a, b in zip(whole.groups, piped.groups, strict=True):
        assert a.baseline.gap_estimate == pytest.approx(b.baseline.gap_estimate)
    with pytest.raises(ValueError, match="groups of these moments overlap"):
        audit(FairColumns(2), X, PEOPLE, crossing=False)


def test_one_person_in_several_groups_is_one_person():
    rows = X.copy()
    rows[3] = [0, 0, 0, 0, 400]
    result = audit(FairPCA(2, tol=0.1), rows, PEOPLE, crossing=False, **QUICK)
    (column,) = [column for column in result.columns if column.name == "x4"]
    assert column.n_rows == 1
    assert column.next_value < 10
    coded = X.copy()
    coded[::80, 4] = 99
    codes = audit(FairPCA(2, tol=0.1), coded, PEOPLE, crossing=False, **QUICK)
    (column,) = [column for column in codes.columns if column.name == "x4"]
    assert (column.n_rows, column.value) == (10, 99)


def test_metrics_by_attribute():
    pa = pytest.importorskip("pyarrow")
    model = FairPCA(2).fit(X, sensitive_features=PEOPLE["sex"])
    errors = group_reconstruction_errors(
        model, X, PEOPLE, sample_weight=WEIGHTS, crossing=False, relative_errors=True
    )
    assert list(errors) == MARGINS
    for label, error in errors.items():
        inside = of_margin(label)
        alone = group_reconstruction_errors(
            model, X, inside, sample_weight=WEIGHTS, relative_errors=True
        )
        assert error == pytest.approx(alone[True])
    values = group_reconstruction_errors(model, X, PEOPLE, crossing=False).values()
    whole = reconstruction_disparity(model, X, PEOPLE, crossing=False)
    assert whole == pytest.approx(max(values) - min(values))
    frame = pd.DataFrame(X, columns=list("abcde")).join(PEOPLE)
    named = FairPCA(2).fit(frame.drop(columns="age"), sensitive_features="sex")
    reader = pa.Table.from_pandas(frame).to_reader(90)
    streamed = group_reconstruction_errors(named, reader, ["sex", "age"], crossing=False)
    assert list(streamed.values()) == pytest.approx(list(values))
