"""Moments whose rows belong to units: folds by unit, and how many units there are."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairpca import GroupMoments

N = 400


def visits(seed=0):
    """Rows of 60 people, between one and a dozen each, in random order."""
    rng = np.random.default_rng(seed)
    person = rng.integers(0, 60, N)
    groups = np.where(person % 3 == 0, "a", "b")
    return rng.normal(size=(N, 4)) + person[:, None] / 30, groups, person


def folds(moments):
    """The rows and the mean of every fold, as figures that can be compared."""
    return [
        (size[0].tolist(), moments.split(fold)[1].mean.round(9).tolist())
        for fold, size in moments.fold_sizes().items()
    ]


def test_the_rows_of_a_unit_are_in_one_fold():
    X, groups, person = visits()
    rows = np.column_stack([X, np.eye(60)[person]])
    moments = GroupMoments.from_data(rows, groups, units=person, folds=5)
    seen = np.zeros(60)
    for fold in moments.fold_sizes():
        left_out = moments.split(fold)[1]
        seen += (left_out.weights @ left_out.means[:, 4:]) > 1e-9
    np.testing.assert_array_equal(seen, np.bincount(person, minlength=60) > 0)


def test_folds_depend_on_labels_and_salt_alone():
    X, groups, person = visits()
    expected = folds(GroupMoments.from_data(X, groups, units=person, folds=5))
    order = np.random.default_rng(1).permutation(N)
    mixed = GroupMoments.from_data(X[order], groups[order], units=person[order], folds=5)
    assert folds(mixed) == expected
    as_text = GroupMoments.from_data(X, groups, units=person.astype(str), folds=5)
    assert folds(as_text) == expected
    salted = GroupMoments.from_data(X, groups, units=person, folds=5, fold_seed=1)
    assert folds(salted) != expected


@pytest.mark.parametrize("kind", ["blocks", "pandas", "polars", "stream"])
def test_folds_are_the_same_however_rows_are_read(kind):
    X, groups, person = visits()
    whole = GroupMoments.from_data(X, groups, units=person, folds=5)
    columns = {f"x{j}": X[:, j] for j in range(4)} | {"g": groups, "person": person}
    if kind == "blocks":
        moments = GroupMoments()
        for block in (slice(0, 100), slice(100, 110), slice(110, N)):
            moments.update(X[block], groups[block], units=person[block], folds=5)
    elif kind == "stream":
        batches = pl.DataFrame(columns).to_arrow().to_batches(max_chunksize=90)
        moments = GroupMoments.from_data(iter(batches), "g", units="person", folds=5)
    else:
        frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[kind](columns)
        moments = GroupMoments.from_data(frame, "g", units="person", folds=5)
    assert folds(moments) == folds(whole)
    np.testing.assert_array_equal(moments.n_units, whole.n_units)
    assert moments.n_features == 4


def test_units_are_counted_by_group():
    X, groups, person = visits()
    moments = GroupMoments.from_data(X, groups, units=person)
    expected = [len(set(person[groups == g])) for g in ("a", "b")]
    assert moments.n_units.tolist() == expected
    renamed = moments.renamed({"a": "b"})
    assert renamed.n_units.tolist() == [len(set(person))]
    weights = (person != person[groups == "a"][0]).astype(float)
    weighted = GroupMoments.from_data(X, groups, weights, units=person)
    assert weighted.n_units.tolist() == [expected[0] - 1, expected[1]]
    without = GroupMoments.from_data(X, groups)
    np.testing.assert_array_equal(without.n_units, without.counts)


def test_many_units_are_counted_nearly():
    n = 30_000
    X = np.random.default_rng(0).normal(size=(n, 2))
    moments = GroupMoments()
    for block in np.array_split(np.arange(n), 4):
        moments.update(X[block], ["a"] * len(block), units=block // 2)
    assert moments.n_units[0] == pytest.approx(15_000, rel=0.05)


def test_a_unit_may_be_in_two_groups():
    X = np.random.default_rng(0).normal(size=(6, 2))
    moments = GroupMoments.from_data(X, list("aaabbb"), units=[1, 1, 2, 2, 3, 3])
    assert moments.n_units.tolist() == [2, 2]


def test_rows_without_a_label_are_units_by_themselves():
    X = np.random.default_rng(0).normal(size=(6, 2))
    units = [1, 1, None, None, None, 2]
    assert GroupMoments.from_data(X, ["a"] * 6, units=units).n_units.tolist() == [5]
    twice = GroupMoments.from_data(X, ["a"] * 6, units=units).update(X, ["a"] * 6, units=units)
    assert twice.n_units.tolist() == [8]


def test_moments_with_and_without_units_do_not_merge():
    X, groups, person = visits()
    for options in ({}, {"folds": 5}):
        with_units = GroupMoments.from_data(X, groups, units=person, **options)
        without = GroupMoments.from_data(X, groups, **options)
        with pytest.raises(ValueError, match="the same units"):
            with_units.merge(without)
