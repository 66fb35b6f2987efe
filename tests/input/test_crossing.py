"""Groups by several columns: crossed, and named after their columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.many_groups import several

from fairpca import GroupMoments, MinMaxPCA
from fairpca.metrics import group_reconstruction_errors


@pytest.mark.parametrize("form", ["pandas", "polars", "array", "lists"])
def test_columns_are_crossed(form):
    X, _ = several()
    sex = np.where(np.arange(len(X)) % 3 == 0, "female", "male")
    race = np.where(np.arange(len(X)) % 5 == 0, "black", "white")
    table = {
        "pandas": lambda: pd.DataFrame({"sex": sex, "race": pd.Categorical(race)}),
        "polars": lambda: pl.DataFrame({"sex": sex, "race": race}),
        "array": lambda: np.column_stack([sex, race]),
        "lists": lambda: [list(pair) for pair in zip(sex.tolist(), race.tolist(), strict=True)],
    }[form]()
    moments = GroupMoments.from_data(X, table)
    assert moments.groups.tolist() == [
        "female & black",
        "female & white",
        "male & black",
        "male & white",
    ]
    one_column = [f"{s} & {r}" for s, r in zip(sex, race, strict=True)]
    np.testing.assert_array_equal(
        moments.second_moments(), GroupMoments.from_data(X, one_column).second_moments()
    )


def test_labels_that_are_not_strings_carry_the_name_of_their_column():
    frame = pd.DataFrame({"sex": list("fmfm"), "over_40": [True, True, False, True]})
    X = np.arange(8.0).reshape(4, 2) ** 2
    labels = GroupMoments.from_data(X, frame).groups.tolist()
    assert labels == ["f & over_40=False", "f & over_40=True", "m & over_40=True"]
    unnamed = GroupMoments.from_data(X, np.array([[0, 1], [1, 1], [0, 0], [1, 1]]))
    assert unnamed.groups.tolist() == ["0 & 0", "0 & 1", "1 & 1"]


def test_different_intersections_have_different_names():
    X = np.arange(10.0).reshape(5, 2) ** 2
    labels = [["a & b", "c"], ["a", "b & c"], ["a &", "c"], ["a", "& c"], ["a", "c"]]
    groups = GroupMoments.from_data(X, labels).groups.tolist()
    assert sorted(groups) == sorted({"a && b & c", "a & b && c", "a && & c", "a & && c", "a & c"})
    with pytest.raises(ValueError, match="would both be called '1 & x'"):
        GroupMoments.from_data(X[:2], np.array([[1, "x"], ["1", "x"]], dtype=object))


def test_labels_may_be_as_large_as_their_type_allows():
    X, last = np.arange(8.0).reshape(4, 2) ** 2, np.iinfo(np.uint64).max
    large = np.array([last, last - 1, last, last - 1], np.uint64)
    assert GroupMoments.from_data(X, large).groups.tolist() == [last - 1, last]
    narrow = np.array([-128, 127, -128, 127], np.int8)
    assert GroupMoments.from_data(X, narrow).groups.tolist() == [-128, 127]


def test_metrics_and_estimators_agree_on_intersections():
    X, first = several()
    table = np.column_stack([first, np.where(np.arange(len(X)) % 2 == 0, "even", "odd")])
    fair = MinMaxPCA(2).fit(X, sensitive_features=table)
    errors = group_reconstruction_errors(fair, X, table)
    assert list(errors) == fair.groups_.tolist()
    np.testing.assert_allclose(list(errors.values()), fair.group_errors_, rtol=1e-10)
