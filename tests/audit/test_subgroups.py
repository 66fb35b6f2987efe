"""The worst subgroup of all that columns describe."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from fairpca import FairPCA, GroupMoments, audit, audit_model
from fairpca._audit.subgroups import find_worst_subgroup
from fairpca.report import sentences


def people(seed=0, n=600):
    rng = np.random.default_rng(seed)
    columns = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "race": rng.choice(["a", "b", "c"], n),
            "age": rng.uniform(20, 80, n),
            "children": rng.integers(0, 4, n),
        }
    )
    return columns, rng.chisquare(5, n)


def harmed(columns):
    return ((columns["sex"] == "f") & (columns["race"] == "b")).to_numpy()


def test_a_crossing_is_found_where_each_column_alone_shows_little():
    columns, errors = people()
    inside = harmed(columns)
    errors[inside] *= 2
    found = find_worst_subgroup(errors, columns)
    assert set(found.conditions) == {"sex = f", "race = b"}
    assert set(found.columns) == {"sex", "race"}
    assert found.n == inside.sum()
    assert found.share == pytest.approx(inside.mean())
    assert found.error == pytest.approx(errors[inside].mean())
    assert found.gap == pytest.approx(errors[inside].mean() / errors[~inside].mean() - 1)
    assert found.p == pytest.approx(1 / 201)
    assert found.honest_gap.low > 0
    assert not found.by_feature


def test_the_t_of_every_subgroup_is_that_of_a_loop():
    """The search agrees with one subgroup after the other."""
    columns, errors = people(3, 300)
    found = find_worst_subgroup(errors, columns)
    masks = {}
    for name in ("sex", "race", "children"):
        for value in columns[name].unique():
            masks[name, f"{name} = {value}"] = (columns[name] == value).to_numpy()
    for cut in np.quantile(columns["age"], [0.25, 0.5, 0.75]):
        masks["age", f"age above {cut:.4g}"] = (columns["age"] > cut).to_numpy()
        masks["age", f"age at most {cut:.4g}"] = (columns["age"] <= cut).to_numpy()
    best = {}
    for (one, text), rows in masks.items():
        for (other, more), further in masks.items():
            both = rows & further
            if (one == other and text != more) or min(both.sum(), (~both).sum()) < 30:
                continue
            inside = errors[both]
            t = (inside.mean() - errors[~both].mean()) / (inside.std() / np.sqrt(len(inside)))
            best[frozenset([text, more])] = t
    assert frozenset(found.conditions) == max(best, key=best.get)
    assert found.n_searched == len(best)


def test_units_count_once_however_many_rows_they_have():
    columns, errors = people(1)
    errors[harmed(columns)] *= 1.8
    times = np.random.default_rng(2).integers(1, 6, len(errors))
    rows = np.repeat(np.arange(len(errors)), times)
    mixed = np.random.default_rng(3).permutation(rows)
    once = find_worst_subgroup(errors, columns)
    often = find_worst_subgroup(errors[mixed], columns.iloc[mixed], units=mixed)
    assert often.conditions == once.conditions
    assert (often.n, often.p) == (once.n, once.p)
    np.testing.assert_allclose([often.error, often.gap], [once.error, once.gap], rtol=1e-5)


def test_repeated_rows_are_no_evidence():
    """A hundred people whose rows stand there forty times differ by chance only."""
    finds = 0
    for seed in range(10):
        columns, errors = people(seed, 100)
        rows = np.repeat(np.arange(100), 40)
        found = find_worst_subgroup(errors[rows], columns.iloc[rows], units=rows)
        finds += found.p <= 0.05
    assert finds <= 2


def test_a_unit_may_have_rows_on_both_sides():
    columns, errors = people(5, 400)
    units = np.arange(400) // 2  # two visits; the second one is at a greater age
    columns["age"] = np.where(np.arange(400) % 2 == 0, 30, 60) + units % 20
    errors[columns["age"] > 45] *= 3
    found = find_worst_subgroup(errors, columns[["age", "sex"]], units=units)
    assert "age above" in found.conditions[0]
    assert found.p < 0.05


def test_rows_with_missing_values_are_in_no_subgroup_of_the_column():
    columns, errors = people(6)
    columns.loc[::2, "age"] = np.nan
    columns.loc[::3, "sex"] = None
    errors[::2] *= 3  # what is missing cannot be described
    found = find_worst_subgroup(errors, columns[["age", "sex"]])
    kinds = find_worst_subgroup(errors, pl.from_pandas(columns[["age", "sex"]]))
    assert found.conditions == kinds.conditions
    assert not any("None" in text or "nan" in text for text in found.conditions)


def test_weights_are_those_of_repeated_people():
    """A group of weight two has twice the share in the means."""
    columns, errors = people(7)
    errors[harmed(columns)] *= 2
    weights = np.where(columns["sex"] == "f", 2.0, 1.0)
    found = find_worst_subgroup(errors, columns, weights=weights)
    inside = harmed(columns)
    rest = np.average(errors[~inside], weights=weights[~inside])
    assert found.gap == pytest.approx(np.average(errors[inside]) / rest - 1)


def test_a_subgroup_of_a_feature_is_marked():
    columns, errors = people(8)
    errors[columns["age"] > 65] *= 2
    assert find_worst_subgroup(errors, columns, features=("age",)).by_feature
    assert not find_worst_subgroup(errors, columns, features=("height",)).by_feature


def test_nothing_is_found_among_few_people():
    columns, errors = people(9, 40)
    assert find_worst_subgroup(errors, columns) is None


def people_with_a_hidden_subgroup(n=3000, seed=0):
    """Women of one town, whom no single column names, vary more."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(n, 5))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(5)])
    frame["sex"] = rng.choice(["f", "m"], n)
    frame["town"] = rng.choice(["east", "north", "west"], n)
    hidden = (frame["sex"] == "f") & (frame["town"] == "east")
    frame.loc[hidden, "x0":"x4"] += rng.normal(size=(hidden.sum(), 5))
    return frame


@pytest.mark.parametrize("how", ["frame", "names", "model"])
def test_audits_find_a_subgroup_that_nobody_named(how):
    people = people_with_a_hidden_subgroup()
    X = people.drop(columns=["sex", "town"])
    if how == "frame":
        result = audit(FairPCA(2), X, people["sex"], subgroups=people[["sex", "town"]])
    elif how == "names":
        estimator = make_pipeline(
            make_column_transformer(("passthrough", list(X.columns))), FairPCA(2)
        )
        result = audit(estimator, people, people["sex"], subgroups=["sex", "town"])
    else:
        result = audit_model(PCA(2).fit(X), X, people["sex"], subgroups=people[["sex", "town"]])
    found = result.subgroup
    assert set(found.conditions) == {"sex = f", "town = east"}
    assert found.p < 0.01
    assert found.honest_gap.low > 0
    assert not found.by_feature
    assert result.to_dict()["subgroup"]["n"] == found.n
    (said,) = sentences.about_subgroup(result)
    assert "sex = f" in said
    assert audit(FairPCA(2), X, people["sex"]).subgroup is None


def test_columns_of_subgroups_that_cannot_be_used():
    people = people_with_a_hidden_subgroup(300)
    X = people.drop(columns=["sex", "town"])
    with pytest.raises(ValueError, match="no column 'age'"):
        audit(FairPCA(2), X, people["sex"], subgroups=["age"])
    with pytest.raises(ValueError, match="100 rows but X has 300"):
        audit(FairPCA(2), X, people["sex"], subgroups=people[["sex"]][:100])
    with pytest.raises(TypeError, match="is no data frame"):
        audit(FairPCA(2), X.to_numpy(), people["sex"], subgroups=["sex"])
    with pytest.raises(TypeError, match="data frame or names"):
        audit(FairPCA(2), X, people["sex"], subgroups=people["sex"].to_numpy())
    moments = GroupMoments.from_data(X, people["sex"], folds=5)
    with pytest.raises(ValueError, match="rows in memory"):
        audit(FairPCA(2), moments, subgroups=people[["sex"]])
