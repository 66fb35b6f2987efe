"""Moments with folds kept apart: what they give is what the rows of each fold give."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.data import make_groups
from sklearn.model_selection import (
    GroupKFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from fairpca import GroupMoments
from fairpca._moments.dealing import learn_folds
from fairpca._moments.fold_labels import FoldLabel, HashedFolds
from fairpca._moments.folds import Folds
from fairpca._moments.small_groups import settle_small_groups


@pytest.fixture
def weighted_rows():
    X, g = make_groups()
    rng = np.random.default_rng(1)
    return X + 1e4, np.asarray(g), rng.uniform(0.1, 2.0, len(g))


@pytest.mark.parametrize(
    "splitter",
    [
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        ShuffleSplit(3, random_state=0),
    ],
)
def test_each_fold_is_what_its_rows_and_the_others_give(weighted_rows, splitter):
    X, g, w = weighted_rows
    moments = learn_folds(X, g, w, splitter, np.random.RandomState(0))
    folds = Folds(settle_small_groups(moments, 1, "error"))
    labels, codes = np.unique(g, return_inverse=True)
    splits = list(splitter.split(X, codes))
    assert len(folds) == len(splits)
    stacks = list(folds)
    fitted_to, left_out, weights = (
        np.concatenate([getattr(stack, name) for stack in stacks])
        for name in ("matrices", "left_out", "weights")
    )
    for f, (train, test) in enumerate(splits):
        mean = np.average(X[train], axis=0, weights=w[train])
        for j, label in enumerate(labels):
            a, b = train[g[train] == label], test[g[test] == label]
            C = (X[a] - mean).T @ (w[a, None] * (X[a] - mean)) / w[a].sum()
            S = (X[b] - mean).T @ (w[b, None] * (X[b] - mean))
            np.testing.assert_allclose(fitted_to[f, j], C, rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(left_out[f, j], S, rtol=1e-6, atol=1e-6)
            assert weights[f, j] == pytest.approx(w[b].sum())


def test_without_folds_are_the_moments_of_all_rows(weighted_rows):
    X, g, w = weighted_rows
    plain = GroupMoments.from_data(X, g, w)
    splitter = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    for moments in (
        GroupMoments.from_data(X, g, w, folds=5),
        learn_folds(X, g, w, splitter, np.random.RandomState(0)),
    ):
        whole = moments.without_folds()
        assert whole.counts.tolist() == plain.counts.tolist()
        np.testing.assert_allclose(whole.second_moments(), plain.second_moments(), rtol=1e-7)
    assert plain.without_folds() is plain


def test_hashed_folds_do_not_depend_on_blocks(weighted_rows):
    X, g, w = weighted_rows
    w = np.where(np.arange(len(w)) % 7 == 0, 0.0, w)
    whole = GroupMoments.from_data(X, g, w, folds=4, fold_seed=3)
    in_blocks = GroupMoments()
    for start in range(0, len(X), 13):
        rows = slice(start, start + 13)
        in_blocks.update(X[rows], g[rows], w[rows], folds=4, fold_seed=3)
    assert in_blocks.groups.tolist() == whole.groups.tolist()
    np.testing.assert_allclose(in_blocks.weights, whole.weights)
    other = GroupMoments.from_data(X, g, w, folds=4, fold_seed=4)
    assert not np.allclose(other.weights, whole.weights)


def test_hashed_folds_are_even():
    folds = HashedFolds(10, seed=1).of(np.arange(100_000), "people.csv")
    counts = np.bincount(folds)
    assert len(counts) == 10
    assert abs(counts - 10_000).max() < 5 * np.sqrt(100_000 * 0.09)
    assert abs(np.corrcoef(folds[:-1], folds[1:])[0, 1]) < 0.02


def test_numbered_folds_are_kept(weighted_rows):
    X, g, _ = weighted_rows
    numbers = np.arange(len(X)) % 3
    moments = GroupMoments.from_data(X, g, folds=numbers)
    for label, count in zip(moments.groups.tolist(), moments.counts, strict=True):
        assert isinstance(label, FoldLabel)
        assert count == np.sum((numbers == label.fold) & (g == label.group))


def test_small_groups_are_merged_before_folds_are_judged():
    rng = np.random.default_rng(0)
    X, g = rng.normal(size=(90, 4)), np.repeat(["a", "b", "c", "d"], [40, 40, 5, 5])
    moments = GroupMoments.from_data(X, g, folds=np.arange(90) % 3)
    settled = settle_small_groups(moments, 10, "merge")
    assert settled.moments.groups.tolist() == ["a", "b", "rest"]
    left_out = sum(stack.weights.sum(axis=0) for stack in Folds(settled))
    assert left_out.tolist() == [40, 40, 10]


@pytest.mark.parametrize(
    ("folds", "match"),
    [
        (1, "folds=1: pass an integer of at least 2"),
        ([0, 1], r"folds has 2 numbers but X has \d+ rows"),
        ([0.5] * 3, "one fold per row"),
        ([[0, 1]], "one fold per row"),
        ([-1, 0, 0], "one fold per row"),
    ],
)
def test_folds_that_make_no_sense(weighted_rows, folds, match):
    X, g, _ = weighted_rows
    with pytest.raises(ValueError, match=match):
        GroupMoments.from_data(X, g, folds=folds)


def test_a_fold_with_all_rows_of_a_group_is_refused(weighted_rows):
    X, g, _ = weighted_rows
    numbers = np.where(g == g[0], 0, 1 + np.arange(len(g)) % 2)
    settled = settle_small_groups(GroupMoments.from_data(X, g, folds=numbers), 1, "error")
    with pytest.raises(ValueError, match="one fold holds all of them"):
        Folds(settled)


def test_a_group_that_is_never_left_out_is_refused(weighted_rows):
    X, g, _ = weighted_rows
    numbers = np.where(g == g[0], -1, np.arange(len(g)) % 2)
    moments = learn_folds(X, g, None, PredefinedSplit(numbers), np.random.RandomState(0))
    with pytest.raises(ValueError, match="no fold holds any of them"):
        Folds(settle_small_groups(moments, 1, "error"))


@pytest.mark.parametrize(
    ("cv", "match"),
    [
        (1, "cv=1: pass an integer of at least 2"),
        (True, "cv=True: pass an integer"),
        (float("nan"), "cv=nan: pass an integer"),
        ("ten", "cv='ten': pass an integer"),
        ([(1, 2)], "must give pairs of two arrays"),
        ([([0.5], [1.0])], "must give pairs of two arrays"),
        ([([0], [10**6])], "positions of rows to fit to and of rows to leave out, from 0 to"),
        ([1, 2], "or its splits"),
        (iter([]), "has no splits .* pass a list"),
        (object(), "a splitter of scikit-learn, or a list of"),
        (GroupKFold(3), r"by their groups alone .* cv=list\(splitter.split\(X, y, groups\)\)"),
        (TimeSeriesSplit(3), "fits to all rows it does not leave out"),
    ],
)
def test_odd_values_of_cv(weighted_rows, cv, match):
    X, g, _ = weighted_rows
    with pytest.raises(ValueError, match=match):
        learn_folds(X, g, None, cv, np.random.RandomState(0))


def test_masks_are_positions(weighted_rows):
    X, g, w = weighted_rows
    left_out = [np.arange(len(X)) % 3 == fold for fold in range(3)]
    by_mask, by_position = (
        learn_folds(X, g, w, pairs, np.random.RandomState(0))
        for pairs in (
            [(~mask, mask) for mask in left_out],
            [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in left_out],
        )
    )
    assert by_mask.groups.tolist() == by_position.groups.tolist()
    np.testing.assert_array_equal(by_mask.weights, by_position.weights)
