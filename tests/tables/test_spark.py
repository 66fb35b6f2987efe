"""Spark data frames give what the same rows in memory give."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from helpers.data import assert_same_moments, unequal_groups
from helpers.spark import IGNORES_WARNINGS, require_spark, spark_session

from fairpca import BlindPCA, FairPCA, FairPCACV, FairPLS, GroupMoments
from fairpca._input.folds import FoldRule
from fairpca._tables import merge_fan_in

require_spark()

from fairpca._tables import spark as spark_module  # noqa: E402

pytestmark = [pytest.mark.slow, IGNORES_WARNINGS]

X, SEX = unequal_groups()
COLUMNS = ["a", "b", "c.d", "e"]
SETTINGS = {"adaptive.enabled": "false", "execution.arrow.maxRecordsPerBatch": "60"}


@pytest.fixture(scope="module")
def session():
    with spark_session(**SETTINGS) as spark:
        yield spark


@pytest.fixture(scope="module")
def frame(session):
    table = pd.DataFrame(X, columns=COLUMNS).assign(
        sex=SEX, id=np.arange(len(X)).astype(str), w=np.arange(len(X)) % 3 * 0.5
    )
    return session.createDataFrame(table).repartition(5)


def test_moments_equal_those_in_memory(frame):
    moments = GroupMoments.from_spark(frame, sensitive_features="sex", features=COLUMNS)
    assert_same_moments(moments, GroupMoments.from_data(X, SEX))
    assert moments.feature_names == COLUMNS
    weighted = GroupMoments.from_spark(frame, sensitive_features="sex", sample_weight="w")
    assert weighted.feature_names == COLUMNS
    assert_same_moments(weighted, GroupMoments.from_data(X, SEX, np.arange(len(X)) % 3 * 0.5))


@pytest.mark.parametrize("kind", ["names", "numbers"])
def test_several_columns_are_crossed_as_in_memory(session, kind):
    race = np.array(["black", "white", "other"])[np.arange(len(X)) % 7 % 3]
    age = np.arange(len(X)) % 5 % 2
    groups = pd.DataFrame({"sex": SEX, **({"race": race} if kind == "names" else {"over 40": age})})
    frame = session.createDataFrame(pd.DataFrame(X, columns=COLUMNS).join(groups)).repartition(4)
    moments = GroupMoments.from_spark(frame, sensitive_features=list(groups), features=COLUMNS)
    assert_same_moments(moments, GroupMoments.from_data(X, groups))
    fair = FairPCA(2, max_error_increase=0.05).fit(moments)
    expected = FairPCA(2, max_error_increase=0.05).fit(X, sensitive_features=groups)
    assert fair.groups_.tolist() == expected.groups_.tolist()
    np.testing.assert_allclose(fair.group_errors_, expected.group_errors_, rtol=1e-10)
    np.testing.assert_allclose(fair.components_, expected.components_, atol=1e-10)


def test_scores(frame):
    fair = FairPCA(2).fit(
        GroupMoments.from_spark(frame, sensitive_features="sex", features=COLUMNS)
    )
    expected = FairPCA(2).fit(X, sensitive_features=SEX)
    np.testing.assert_allclose(fair.components_, expected.components_, atol=1e-10)
    scores = fair.transform_spark(frame, keep=["id", "sex"])
    assert scores.columns == ["id", "sex", "fairpca0", "fairpca1"]
    assert fair.transform_spark(frame, keep="id").columns == ["id", "fairpca0", "fairpca1"]
    rows = sorted(scores.collect(), key=lambda row: int(row["id"]))
    assert [row["sex"] for row in rows] == SEX.tolist()
    found = np.array([[row["fairpca0"], row["fairpca1"]] for row in rows])
    np.testing.assert_allclose(found, expected.transform(X), atol=1e-9)
    with pytest.raises(ValueError, match="gives 2 features, but 4 were fitted"):
        fair.transform_spark(frame, features=["a", "b"])


def test_missing_values(session):
    table = pd.DataFrame({"a": [1.0, None, 3.0, 4.0], "b": [1, 2, 3, 5], "g": ["x", "y", "y", "x"]})
    frame = session.createDataFrame(table).coalesce(1)
    moments = GroupMoments.from_spark(frame, sensitive_features="g", drop_missing=True)
    assert moments.n_dropped == 1
    kept = [0, 2, 3]
    expected = GroupMoments.from_data(table[["a", "b"]].iloc[kept], table["g"].iloc[kept])
    assert_same_moments(moments, expected)
    with pytest.raises(ValueError, match=r"partition 0 of the Spark frame .*'a', row 2") as refusal:
        GroupMoments.from_spark(frame, sensitive_features="g")
    assert "Traceback" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_no_group_and_no_half_of_the_rows_is_lost(session):
    for lost, message in ((SEX[0] == SEX, "every row of"), (np.arange(len(X)) % 3 > 0, "half")):
        table = pd.DataFrame(X, columns=list("abcd")).assign(g=SEX)
        table["a"] = table["a"].where(~lost)
        frame = session.createDataFrame(table).repartition(5)
        with pytest.raises(ValueError, match=f"{message}.* would be left out"):
            GroupMoments.from_spark(frame, sensitive_features="g", drop_missing=True)


def test_names_that_spark_reads(session):
    names = ["x`y", "X`Y", "a.b", "`"]
    table = pd.DataFrame(X, columns=names).assign(**{"s.e`x": SEX})
    frame = session.createDataFrame(table.set_axis(list("pqrst"), axis=1)).toDF(*table.columns)
    moments = GroupMoments.from_spark(frame, sensitive_features="s.e`x")
    assert_same_moments(moments, GroupMoments.from_data(X, SEX))
    assert moments.feature_names == names
    fair = FairPCA(2).fit(moments)
    scores = fair.transform_spark(frame, keep=["s.e`x", "`"])
    assert scores.columns == ["s.e`x", "`", "fairpca0", "fairpca1"]
    assert len(scores.collect()) == len(X)


def test_two_columns_of_one_name(session, frame):
    twins = frame.select("a", "b", "sex").toDF("a", "a", "sex")
    with pytest.raises(ValueError, match="the Spark frame has two columns named 'a'; rename one"):
        GroupMoments.from_spark(twins, sensitive_features="sex")
    fair = FairPCA(2).fit(
        GroupMoments.from_spark(frame, sensitive_features="sex", features=COLUMNS)
    )
    clash = frame.withColumnRenamed("id", "fairpca0")
    for given, keep in ((frame, ["id", "id"]), (clash, ["fairpca0"])):
        with pytest.raises(ValueError, match=r"two columns named .* leave one out of keep"):
            fair.transform_spark(given, keep=keep)


def test_what_is_refused(session, frame):
    with pytest.raises(ValueError, match="no column 'gender' in the Spark frame"):
        GroupMoments.from_spark(frame, sensitive_features="gender")
    with pytest.raises(ValueError, match="not numbers: 'id'"):
        GroupMoments.from_spark(frame, sensitive_features="sex", features=["a", "id"])
    nothing = frame.where("a > 1e9")
    with pytest.raises(ValueError, match="no rows of positive weight"):
        GroupMoments.from_spark(nothing, sensitive_features="sex")
    with pytest.raises(TypeError, match="expected a Spark data frame, got DataFrame"):
        GroupMoments.from_spark(pd.DataFrame(X), sensitive_features="sex")


def test_folds_for_cross_validation(frame):
    moments = GroupMoments.from_spark(frame, sensitive_features="sex", features=COLUMNS, folds=5)
    assert moments.n_folds == 5
    assert_same_moments(moments, GroupMoments.from_data(X, SEX))
    fair = FairPCACV(2, cv=5).fit(moments)
    held_out = fair.held_out_pca_group_errors_ + fair.held_out_changes_
    np.testing.assert_allclose(fair.held_out_group_errors_, held_out)


def test_folds_do_not_depend_on_the_number_of_tasks(frame, monkeypatch):
    counts = []
    for n_slots in (1, 2, 7):
        monkeypatch.setattr(spark_module, "_task_slots", lambda _, n=n_slots: n)
        names = {"sensitive_features": "sex", "features": COLUMNS}
        moments = GroupMoments.from_spark(frame, **names, folds=3)
        counts.append([moments._split(fold)[1].counts.tolist() for fold in range(3)])
        means = [moments._split(fold)[1].means for fold in range(3)]
        if n_slots == 1:
            expected = means
        np.testing.assert_allclose(means, expected, rtol=1e-10)
    assert counts[0] == counts[1] == counts[2]


def test_parts_survive_their_packing():
    moments = GroupMoments.from_data(X, SEX, folds=3)
    rows = [batch.to_pylist()[0] for batch in spark_module._packed(moments, Counter({"g0": 2}), 0)]
    assert len(rows) == len(moments.groups) + 1  # and rows of no group
    parts = [spark_module._unpacked(row["part"]) for row in rows]
    assert_same_moments(parts[0].merge(parts[1]), moments)
    d = X.shape[1]
    assert merge_fan_in(d, None) == 16
    assert merge_fan_in(2000, FoldRule(10)) == 2


@pytest.mark.parametrize("notion", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize("kind", [BlindPCA, FairPLS])
def test_targets_by_class(session, kind, notion):
    ill = np.where(X[:, 0] > np.median(X[:, 0]), "yes", "no")
    table = pd.DataFrame(X, columns=COLUMNS).assign(sex=SEX, ill=ill)
    spark = session.createDataFrame(table).repartition(5)
    moments = GroupMoments.from_spark(
        spark, sensitive_features="sex", features=COLUMNS, target="ill"
    )
    model = kind(1, notion=notion).fit(moments)
    expected = kind(1, notion=notion).fit(X, ill, sensitive_features=SEX)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-9)
    scores = model.transform_spark(spark, features=COLUMNS, keep="ill").toPandas()
    found = np.sort(scores[scores.columns[1]].to_numpy())
    np.testing.assert_allclose(found, np.sort(expected.transform(X)[:, 0]), atol=1e-9)


def test_targets_of_numbers(session):
    spark = session.createDataFrame(pd.DataFrame(X, columns=COLUMNS).assign(sex=SEX)).repartition(5)
    moments = GroupMoments.from_spark(spark, sensitive_features="sex", features=COLUMNS)
    model = FairPLS(1, notion="demographic_parity").fit(moments, y="e")
    expected = FairPLS(1, notion="demographic_parity")
    expected.fit(X[:, :3], X[:, 3], sensitive_features=SEX)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-9)
