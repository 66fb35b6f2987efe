"""The worst subgroup of all that columns describe."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairpca._audit.subgroups import find_worst_subgroup


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
