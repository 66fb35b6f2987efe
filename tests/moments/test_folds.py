"""Moments by fold and outcome: what they give is what the rows of each cell give."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.data import assert_same, make_groups
from helpers.inside import FoldRule
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from fairpca import FairPCACV, GroupMoments


@pytest.fixture
def weighted_rows():
    X, g = make_groups()
    rng = np.random.default_rng(1)
    return X + 1e4, np.asarray(g), rng.uniform(0.1, 2.0, len(g))


@pytest.mark.parametrize("target", [None, "classes"])
def test_each_pair_is_what_its_rows_give(weighted_rows, target):
    X, g, w = weighted_rows
    y = None if target is None else np.where(X[:, 0] > X[:, 0].mean(), "yes", "no")
    numbers = np.arange(len(X)) % 3
    moments = GroupMoments.from_data(X, g, w, y, folds=numbers)
    assert moments.groups.tolist() == ["g0", "g1"]
    assert moments.n_folds == 3
    assert_same(moments, GroupMoments.from_data(X, g, w), rtol=1e-10)
    for fold in range(3):
        for part, rows in zip(moments.split(fold), (numbers != fold, numbers == fold), strict=True):
            own = None if y is None else y[rows]
            expected = GroupMoments.from_data(X[rows], g[rows], w[rows], own)
            assert_same(part, expected, rtol=1e-9)
            if y is not None:
                (ours, *cells), (theirs, *same) = part._by_outcome(), expected._by_outcome()
                assert_same(ours, theirs, rtol=1e-9)
                assert [c.tolist() for c in cells] == [c.tolist() for c in same]


def test_folds_do_not_depend_on_blocks(weighted_rows):
    X, g, w = weighted_rows
    w = np.where(np.arange(len(w)) % 7 == 0, 0.0, w)
    whole = GroupMoments.from_data(X, g, w, folds=4, fold_seed=3)
    in_blocks = GroupMoments()
    for start in range(0, len(X), 13):
        rows = slice(start, start + 13)
        in_blocks.update(X[rows], g[rows], w[rows], folds=4, fold_seed=3)
    other = GroupMoments.from_data(X, g, w, folds=4, fold_seed=4)
    for fold in range(4):
        for ours, theirs in zip(in_blocks.split(fold), whole.split(fold), strict=True):
            assert_same(ours, theirs, rtol=1e-9)
    assert not np.allclose(other.split(0)[1].weights, whole.split(0)[1].weights)


@pytest.mark.parametrize("n_folds", [2, 3, 10])
@pytest.mark.parametrize("salt", [0, 1, 2**63])
def test_folds_are_balanced_and_unlike_the_order_of_rows(n_folds, salt):
    codes = np.random.default_rng(0).choice(3, 20_003, p=[0.7, 0.29, 0.01])
    folds = FoldRule(n_folds, salt).folds_of(codes, np.zeros(3, int))
    for g in range(3):
        counts = np.bincount(folds[codes == g], minlength=n_folds)
        assert np.ptp(counts) <= 1
    own = folds[codes == 0][: 10_000 // n_folds * n_folds].reshape(-1, n_folds)
    assert (np.sort(own) == np.arange(n_folds)).all()  # each block has every fold once
    assert np.abs(np.corrcoef(own[:-1].ravel(), own[1:].ravel())[0, 1]) < 0.05
    position = np.bincount(own[:, 0], minlength=n_folds) / len(own)
    assert np.abs(position - 1 / n_folds).max() < 5 * np.sqrt(1 / n_folds / len(own))


def test_folds_are_the_same_on_every_machine():
    folds = FoldRule(5).folds_of(np.zeros(15, int), np.zeros(1, int))
    assert folds.tolist() == [0, 1, 2, 3, 4, 4, 1, 2, 3, 0, 3, 1, 2, 4, 0]


def test_partitions_count_for_themselves():
    rule, codes = FoldRule(5), np.zeros(1000, int)
    first, second = (rule.within(part).folds_of(codes, np.zeros(1, int)) for part in (0, 1))
    assert 0.1 < (first == second).mean() < 0.3


def test_small_groups_are_merged_in_every_fold():
    rng = np.random.default_rng(0)
    X, g = rng.normal(size=(90, 4)), np.repeat(["a", "b", "c", "d"], [40, 40, 5, 5])
    moments = GroupMoments.from_data(X, g, folds=np.arange(90) % 3)
    fair = FairPCACV(2, cv=3, min_group_size=10, small_groups="merge").fit(moments)
    assert fair.groups_.tolist() == ["a", "b", "rest"]
    assert fair.held_out_group_errors_.shape == (3,)


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


def test_moments_with_other_axes_are_not_merged(weighted_rows):
    X, g, _ = weighted_rows
    y = np.arange(len(X)) % 2
    plain, five = GroupMoments.from_data(X, g), GroupMoments.from_data(X, g, folds=5)
    numbered = GroupMoments.from_data(X, g, folds=np.arange(len(X)) % 5)
    for a, b in (
        (plain, five),
        (five, numbered),
        (five, GroupMoments.from_data(X, g, folds=4)),
        (five, GroupMoments.from_data(X, g, folds=5, fold_seed=1)),
    ):
        with pytest.raises(ValueError, match="same folds"):
            a.merge(b)
    with pytest.raises(ValueError, match="none and classes"):
        plain.merge(GroupMoments.from_data(X, g, target=y))
    assert numbered.merge(numbered).n_folds == five.merge(five).n_folds == 5


def test_outcomes_that_come_late(weighted_rows):
    X, g, w = weighted_rows
    y = np.sort(np.arange(len(X)) % 4)
    moments = GroupMoments()
    for rows in np.array_split(np.arange(len(X)), 5):
        moments.update(X[rows], g[rows], w[rows], y[rows])
    assert moments.outcomes.tolist() == [0, 1, 2, 3]
    whole = GroupMoments.from_data(X, g, w, y)
    assert_same(moments._by_outcome()[0], whole._by_outcome()[0], rtol=1e-9)


def test_seeds_of_numpy_are_seeds():
    codes, seen = np.zeros(20, int), np.zeros(1, int)
    expected = FoldRule(5, 3).folds_of(codes, seen)
    np.testing.assert_array_equal(FoldRule(5, np.int64(3)).folds_of(codes, seen), expected)
    for wrong in ((1, 0), (5, -1), (5, None), (2.5, 0)):
        with pytest.raises(ValueError, match="pass an integer of at least"):
            FoldRule(*wrong)


def test_large_numbers_of_folds_cost_nothing(two_groups):
    X, groups = two_groups
    folds = np.arange(len(X)) % 3
    moments = GroupMoments.from_data(X, groups, folds=folds + 10**12)
    cv = FairPCACV(2, cv=PredefinedSplit(folds))
    large, small = cv.fit(moments), clone(cv).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(large.held_out_group_errors_, small.held_out_group_errors_)
