"""Spark data frames give what the same rows in memory give."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.data import assert_same_moments, unequal_groups
from helpers.spark import IGNORES_WARNINGS, require_spark, spark_session

from fairpca import BlindPCA, FairPCA, FairPCACV, FairPLS, GroupMoments

require_spark()

from fairpca._moments import spark as spark_module  # noqa: E402

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
    weights = np.arange(len(X)) % 3 * 0.5
    moments = GroupMoments.from_spark(frame.drop("id", "w"), "sex")
    assert_same_moments(moments, GroupMoments.from_data(X, SEX))
    assert moments.feature_names == COLUMNS
    weighted = GroupMoments.from_spark(frame.drop("id"), "sex", "w")
    assert weighted.feature_names == COLUMNS
    assert_same_moments(weighted, GroupMoments.from_data(X, SEX, weights))


@pytest.mark.parametrize("kind", ["names", "numbers"])
def test_several_columns_are_crossed_as_in_memory(session, kind):
    race = np.array(["black", "white", "other"])[np.arange(len(X)) % 7 % 3]
    age = np.arange(len(X)) % 5 % 2
    groups = pd.DataFrame({"sex": SEX, **({"race": race} if kind == "names" else {"over 40": age})})
    frame = session.createDataFrame(pd.DataFrame(X, columns=COLUMNS).join(groups)).repartition(4)
    moments = GroupMoments.from_spark(frame, list(groups))
    assert_same_moments(moments, GroupMoments.from_data(X, groups))
    margins = GroupMoments.from_spark(frame, list(groups), crossing=False)
    assert_same_moments(margins, moments.by_attribute())
    assert margins.n_rows == len(X)
    fair = FairPCA(2, max_error_increase=0.05).fit(moments)
    expected = FairPCA(2, max_error_increase=0.05).fit(X, sensitive_features=groups)
    assert fair.groups_.tolist() == expected.groups_.tolist()
    np.testing.assert_allclose(fair.group_errors_, expected.group_errors_, rtol=1e-10)
    np.testing.assert_allclose(fair.components_, expected.components_, atol=1e-10)


def test_scores_by_the_recipe_of_the_docs(frame):
    """As docs/large_data.md has it: a fitted model, mapInArrow, a schema."""
    page = Path(__file__).parents[2] / "docs" / "large_data.md"
    recipe = next(code for code in page.read_text("utf-8").split("```") if "mapInArrow" in code)
    plain = frame.toDF("a", "b", "c", "d", "sex", "id", "w")
    scope = {"frame": plain, "columns": list("abcd"), "GroupMoments": GroupMoments}
    scope["FairPCA"] = FairPCA
    exec(recipe.partition("\n")[2], scope)
    expected = FairPCA(2, standardize=True).fit(X, sensitive_features=SEX)
    scores = scope["scores"]
    assert scores.columns == ["id", "fairpca0", "fairpca1"]
    rows = sorted(scores.collect(), key=lambda row: int(row["id"]))
    found = np.array([[row["fairpca0"], row["fairpca1"]] for row in rows])
    np.testing.assert_allclose(found, expected.transform(X), atol=1e-9)


def test_missing_values(session):
    table = pd.DataFrame({"a": [1.0, None, 3.0, 4.0], "b": [1, 2, 3, 5], "g": ["x", "y", "y", "x"]})
    frame = session.createDataFrame(table).coalesce(1)
    moments = GroupMoments.from_spark(frame.dropna(), "g")
    kept = table.dropna()
    assert_same_moments(moments, GroupMoments.from_data(kept[["a", "b"]], kept["g"]))
    with pytest.raises(ValueError, match=r"partition 0 of the Spark frame.*'a'.* row 1") as refusal:
        GroupMoments.from_spark(frame, "g")
    assert "Traceback" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_names_that_spark_reads(session):
    names = ["x`y", "X`Y", "a.b", "`"]
    table = pd.DataFrame(X, columns=names).assign(**{"s.e`x": SEX})
    frame = session.createDataFrame(table.set_axis(list("pqrst"), axis=1)).toDF(*table.columns)
    moments = GroupMoments.from_spark(frame, "s.e`x")
    assert_same_moments(moments, GroupMoments.from_data(X, SEX))
    assert moments.feature_names == names


def test_what_is_refused(session, frame):
    def refuse(kind, match, *given):
        with pytest.raises(kind, match=match):
            GroupMoments.from_spark(*given)

    twins = frame.select("a", "b", "sex").toDF("a", "a", "sex")
    refuse(ValueError, "X has two columns named 'a'; rename one", twins, "sex")
    refuse(ValueError, "X has no column 'gender'", frame, "gender")
    refuse(TypeError, "column 'id' of X is not of numbers", frame, "sex")
    refuse(ValueError, "no rows of positive weight", frame.drop("id").where("a > 1e9"), "sex")
    refuse(TypeError, "expected a Spark data frame, got DataFrame", pd.DataFrame(X), "sex")
    with pytest.raises(TypeError, match=r"GroupMoments\.from_spark"):
        GroupMoments.from_data(frame, "sex")


def test_folds_for_cross_validation(frame):
    moments = GroupMoments.from_spark(frame.drop("id", "w"), "sex", folds=5)
    assert moments.n_folds == 5
    assert_same_moments(moments, GroupMoments.from_data(X, SEX))
    fair = FairPCACV(2, cv=5).fit(moments)
    held_out = fair.held_out_pca_group_errors_ + fair.held_out_changes_
    np.testing.assert_allclose(fair.held_out_group_errors_, held_out)


def test_folds_do_not_depend_on_the_number_of_tasks(frame, monkeypatch):
    counts = []
    for n_slots in (1, 2, 7):
        monkeypatch.setattr(spark_module, "_task_slots", lambda _, n=n_slots: n)
        moments = GroupMoments.from_spark(frame.drop("id", "w"), "sex", folds=3)
        counts.append([moments.split(fold)[1].counts.tolist() for fold in range(3)])
        means = [moments.split(fold)[1].means for fold in range(3)]
        if n_slots == 1:
            expected = means
        np.testing.assert_allclose(means, expected, rtol=1e-10)
    assert counts[0] == counts[1] == counts[2]


@pytest.mark.parametrize("notion", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize("kind", [BlindPCA, FairPLS])
def test_targets_by_class(session, kind, notion):
    ill = np.where(X[:, 0] > np.median(X[:, 0]), "yes", "no")
    table = pd.DataFrame(X, columns=COLUMNS).assign(sex=SEX, ill=ill)
    spark = session.createDataFrame(table).repartition(5)
    moments = GroupMoments.from_spark(spark, "sex", target="ill")
    model = kind(1, notion=notion).fit(moments)
    expected = kind(1, notion=notion).fit(X, ill, sensitive_features=SEX)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-9)


def test_targets_of_numbers(session):
    spark = session.createDataFrame(pd.DataFrame(X, columns=COLUMNS).assign(sex=SEX)).repartition(5)
    moments = GroupMoments.from_spark(spark, "sex")
    model = FairPLS(1, notion="demographic_parity").fit(moments, y="e")
    expected = FairPLS(1, notion="demographic_parity")
    expected.fit(X[:, :3], X[:, 3], sensitive_features=SEX)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-9)
