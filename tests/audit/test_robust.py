"""Robust figures against their definitions, and columns that few rows decide."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from fairpca._audit.cross_fit import People
from fairpca._audit.figures import Setup, deciding_columns, robust_figures
from fairpca._audit.verdict import Thresholds
from fairpca._input.folds import FoldRule


def made(n=(80, 31, 200), seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(len(n)), n))
    return rng.gamma(1.2, 1.0 + codes), codes


def others(k):
    """Every group is compared with all others."""
    return ~np.eye(k, dtype=bool)


def test_figures_are_their_definitions():
    errors, codes = made()
    judged = np.array([True, True, True])
    weights = np.ones(len(codes))
    for g, found in enumerate(robust_figures(errors, codes, weights, others(3), judged)):
        own, rest = errors[codes == g], errors[codes != g]
        assert found.median == pytest.approx(np.median(own))
        assert found.median_gap == pytest.approx(np.median(own) / np.median(rest) - 1)
        assert found.pairs == pytest.approx(
            mannwhitneyu(own, rest).statistic / own.size / rest.size
        )
        kept = [
            np.sort(e)[: int(0.95 * len(e) + 1e-9)] for h in range(3) for e in [errors[codes == h]]
        ]
        rest = np.concatenate([kept[h] for h in range(3) if h != g])
        assert found.trimmed_gaps[0.05] == pytest.approx(kept[g].mean() / rest.mean() - 1)


def test_a_weight_of_two_is_a_row_that_stands_there_twice():
    errors, codes = made()
    weights = np.random.default_rng(1).integers(1, 4, len(codes))
    judged = np.array([True, False, True])
    heavy = robust_figures(errors, codes, weights.astype(float), others(3), judged)
    twice = robust_figures(
        np.repeat(errors, weights),
        np.repeat(codes, weights),
        np.ones(weights.sum()),
        others(3),
        judged,
    )
    assert heavy[1] is twice[1] is None
    for one, other in zip(heavy[::2], twice[::2], strict=True):
        assert one.median == pytest.approx(other.median)
        assert one.median_gap == pytest.approx(other.median_gap)
        assert one.pairs == pytest.approx(other.pairs)


def test_groups_can_be_compared_with_one_of_them():
    errors, codes = made()
    reference = np.tile([False, False, True], (3, 1))
    found = robust_figures(errors, codes, np.ones(len(codes)), reference, ~reference[0])
    assert found[2] is None
    gap = np.median(errors[codes == 0]) / np.median(errors[codes == 2]) - 1
    assert found[0].median_gap == pytest.approx(gap)


def test_clean_skewed_errors_stay_what_they_are():
    """A gap of gamma errors is no matter of few people, although few rows carry much of it."""
    errors, codes = made((400, 4000))
    found = robust_figures(errors, codes, np.ones(len(codes)), others(2), np.ones(2, bool))[1]
    for gap in (found.median_gap, *found.trimmed_gaps.values()):
        assert gap == pytest.approx(1.0, abs=0.25)
    one_row = errors.copy()
    one_row[np.flatnonzero(codes == 0)[0]] = 1e6
    moved = robust_figures(one_row, codes, np.ones(len(codes)), others(2), np.ones(2, bool))[1]
    assert moved.trimmed_gaps[0.01] == pytest.approx(found.trimmed_gaps[0.01], abs=0.05)


def columns(X, errors, codes=None):
    """The columns that are named, for two groups that take turns."""
    codes = np.arange(len(X)) % 2 if codes is None else codes
    people = People(X, (np.array(["a", "b"])[codes], None, None, None), FoldRule(10), None)
    people.feature_names = [f"c{j}" for j in range(X.shape[1])]
    setup = Setup(
        people,
        by_share=False,
        set_aside=(),
        judged="",
        fitted_here=True,
        alternative="",
        n_components=1,
        standardized=False,
        weighted=False,
        n_folds=10,
        reference=None,
        thresholds=Thresholds(),
        random_state=0,
    )
    return deciding_columns(setup, np.arange(len(X)), errors)


def test_a_value_that_stands_for_something_missing_is_named():
    """Like a logarithm of income that is 0 in 4 % of the rows of the smaller group."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(9, 1, size=(5000, 2)), (np.arange(5000) % 5 == 0).astype(int)
    X[np.flatnonzero(codes)[:44], 1] = 0
    (found,) = columns(X, np.ones(5000), codes)
    assert (found.name, found.value, found.n_rows) == ("c1", 0.0, 44)
    assert 0.25 < found.share_of_variance < 0.5
    assert not found.decides
    assert found.next_value == X[X[:, 1] > 0, 1].min()


def test_one_value_that_decides_is_named():
    rng = np.random.default_rng(0)
    X, errors = rng.uniform(0, 55, size=(1989, 3)), rng.gamma(2.0, size=1989)
    assert columns(X, errors) == []
    X[7, 1], errors[7] = 999999.375, 1e10
    (found,) = columns(X, errors)
    assert (found.name, found.value, found.n_rows, found.group) == ("c1", 999999.375, 1, "b")
    assert found.decides
    assert not found.near_constant
    assert found.next_value == pytest.approx(np.sort(X[:, 1])[-2])
    assert found.share_of_variance == pytest.approx(1 - 1 / 1989, abs=1e-6)


def test_near_constant_columns_are_named_and_decide_only_by_their_errors():
    rng = np.random.default_rng(0)
    X, errors = rng.normal(size=(1000, 3)), rng.gamma(2.0, size=1000)
    X[:, 2] = 0
    X[[3, 500], 2] = 1, 2
    (found,) = columns(X, errors)
    assert (found.name, found.n_rows, found.value) == ("c2", 2, None)
    assert found.near_constant
    assert not found.decides
    errors[500] = 1e6
    assert columns(X, errors)[0].decides


def test_a_constant_column_and_a_column_of_zeros_and_ones_are_no_matter():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(400), rng.integers(0, 2, 400), rng.normal(size=400)])
    assert columns(X, np.ones(400)) == []
