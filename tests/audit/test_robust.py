"""Robust figures against their definitions, and columns that few rows decide."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from sklearn.decomposition import PCA

from fairpca import audit_model


def keeping(X, column):
    """A fitted PCA that keeps one column as it is, about the origin."""
    model = PCA(1).fit(X)
    model.components_, model.mean_ = np.eye(X.shape[1])[[column]], np.zeros(X.shape[1])
    return model


def robust(errors, codes, weights=None, **options):
    """The robust figures of each group for rows with these errors."""
    kept = np.random.default_rng(0).normal(size=len(errors))
    X = np.column_stack([kept, np.sqrt(errors)])
    found = audit_model(keeping(X, 0), X, codes, sample_weight=weights, **options)
    return [row.baseline.robust for row in found.groups]


def made(n=(80, 31, 200), seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(len(n)), n))
    return rng.gamma(1.2, 1.0 + codes), codes


def test_figures_are_their_definitions():
    errors, codes = made()
    for g, found in enumerate(robust(errors, codes)):
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
    heavy = robust(errors, codes, weights.astype(float))
    twice = robust(np.repeat(errors, weights), np.repeat(codes, weights))
    for one, other in zip(heavy, twice, strict=True):
        assert one.median == pytest.approx(other.median)
        assert one.median_gap == pytest.approx(other.median_gap)
        assert one.pairs == pytest.approx(other.pairs)


def test_small_groups_have_no_robust_figures():
    errors, codes = made()
    assert [found is None for found in robust(errors, codes, judge_from=40)] == [False, True, False]


def test_groups_can_be_compared_with_one_of_them():
    errors, codes = made()
    found = robust(errors, codes, reference=2)
    gap = np.median(errors[codes == 0]) / np.median(errors[codes == 2]) - 1
    assert found[0].median_gap == pytest.approx(gap)
    gap = np.median(errors[codes == 2]) / np.median(errors[codes != 2]) - 1
    assert found[2].median_gap == pytest.approx(gap)


def test_clean_skewed_errors_stay_what_they_are():
    """A gap of gamma errors is no matter of few people, although few rows carry much of it."""
    errors, codes = made((400, 4000))
    found = robust(errors, codes)[1]
    for gap in (found.median_gap, *found.trimmed_gaps.values()):
        assert gap == pytest.approx(1.0, abs=0.25)
    errors[np.flatnonzero(codes == 0)[0]] = 1e6
    moved = robust(errors, codes)[1]
    assert moved.trimmed_gaps[0.01] == pytest.approx(found.trimmed_gaps[0.01], abs=0.05)


def columns(X, codes=None, kept=0):
    """The columns that are named, for two groups that take turns, under a model that keeps one."""
    codes = np.arange(len(X)) % 2 if codes is None else codes
    return audit_model(keeping(X, kept), X, np.array(["a", "b"])[codes]).columns


def test_a_value_that_stands_for_something_missing_is_named():
    """Like a logarithm of income that is 0 in 4 % of the rows of the smaller group."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(9, 1, size=(5000, 2)), (np.arange(5000) % 5 == 0).astype(int)
    X[np.flatnonzero(codes)[:44], 1] = 0
    (found,) = columns(X, codes, kept=1)
    assert (found.name, found.value, found.n_rows) == ("x1", 0.0, 44)
    assert 0.25 < found.share_of_variance < 0.5
    assert not found.decides
    assert found.next_value == X[X[:, 1] > 0, 1].min()


def test_one_value_that_decides_is_named():
    X = np.random.default_rng(0).uniform(0, 55, size=(1989, 3))
    assert columns(X) == []
    X[7, 1] = 999999.375
    (found,) = columns(X)
    assert (found.name, found.value, found.n_rows, found.group) == ("x1", 999999.375, 1, "b")
    assert found.decides
    assert not found.near_constant
    assert found.next_value == pytest.approx(np.sort(X[:, 1])[-2])
    assert found.share_of_variance == pytest.approx(1 - 1 / 1989, abs=1e-6)


def test_a_value_that_decides_by_itself_accuses_no_other_column_of_its_row():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    X[0, 1], X[:5, 2] = 1e4, 3.0
    X[5:, 2] *= 1e-3
    lines, other = columns(X)
    assert (lines.name, lines.n_rows, lines.decides) == ("x1", 1, True)
    assert (other.name, other.n_rows, other.decides) == ("x2", 5, False)


def test_few_rows_that_make_up_much_of_a_groups_error_decide():
    """Like eight rows of gapminder: half of a column's variance, nearly half of an error."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(2000, 3)), (np.arange(2000) % 5 == 0).astype(int)
    X[codes == 1, 2] *= 3
    X[np.flatnonzero(codes)[:8], 1] = rng.uniform(16.5, 17, 8)
    (found,) = columns(X, codes)
    assert (found.name, found.n_rows, found.group) == ("x1", 8, "b")
    assert found.share_of_variance > 0.5
    assert found.decides
    assert 1 / 3 < found.share_of_error < 0.5


def test_one_person_who_makes_up_much_of_a_groups_error_is_named_but_decides_nothing():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(600, 3)), (np.arange(600) % 10 == 0).astype(int)
    X[20, 2] = 10
    (found,) = columns(X, codes)
    assert (found.name, found.value, found.n_rows, found.group) == ("x2", None, 1, "b")
    assert 1 / 3 < found.share_of_error < 1
    assert found.share_of_variance < 1 / 3
    assert not found.decides


def test_near_constant_columns_are_named_and_decide_only_by_their_errors():
    X = np.random.default_rng(0).normal(size=(1000, 3))
    X[:, 2] = 0
    X[[3, 500], 2] = 1, 2
    (found,) = columns(X)
    assert (found.name, found.n_rows, found.value) == ("x2", 2, None)
    assert found.near_constant
    assert not found.decides
    X[500, 2] = 1000
    assert columns(X)[0].decides


def test_a_constant_column_and_a_column_of_zeros_and_ones_are_no_matter():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(400), rng.integers(0, 2, 400), rng.normal(size=400)])
    assert columns(X, kept=2) == []
