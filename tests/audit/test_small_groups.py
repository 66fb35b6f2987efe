"""Groups too small for an interval: a studentised permutation test, against its definition."""

import numpy as np
import pytest
from helpers.audits import made_audit, made_group, say

from fairpca import FairPCA, audit

QUICK = {"n_points": 2, "ranks": [2]}


def table(n_small, times, seed=0, n=700):
    """A group of a few rows whose errors are so many times as large; the others do not differ."""
    rng = np.random.default_rng(seed)
    groups = np.array(["small"] * n_small + ["a", "b"] * (n // 2))
    X = rng.normal(size=(len(groups), 5)) * [9, 8, 1, 1, 1]
    X[groups == "small", 2:] *= np.sqrt(times)
    return X, groups


def p_of(X, groups, **options):
    found = audit(FairPCA(2), X, groups, **QUICK, **options)
    return found, found.group("small").p_worse


def test_a_small_group_with_far_larger_errors_is_in_the_headline():
    found, p = p_of(*table(25, 17))
    assert p < 0.01
    assert found.verdict.small_worse == ["small"]
    assert "“small”" in say(found).headline
    assert "fewer than 30" in say(found).headline


def test_the_test_errs_as_often_as_it_says():
    ps = np.array([p_of(*table(20, 1, seed, 200))[1] for seed in range(16)])
    assert np.count_nonzero(ps <= 0.1) <= 5
    assert 0.2 < np.median(ps) < 0.8


def test_only_groups_of_ten_units_up_to_judge_from_are_tested():
    for n, tested in ((9, False), (10, True), (29, True), (30, False)):
        _, p = p_of(*table(n, 3))
        assert (p is not None) == tested
    _, p = p_of(*table(40, 3), judge_from=50)
    assert p is not None
    X, groups = table(40, 3)
    units = np.arange(len(groups))
    units[:40] //= 2  # 20 people with two rows each
    _, p = p_of(X, groups, units=units)
    assert p is not None


def test_a_weight_is_the_same_for_all_or_matters():
    X, groups = table(20, 2)
    _, p = p_of(X, groups)
    _, weighted = p_of(X, groups, sample_weight=np.full(len(groups), 3.0))
    assert weighted == pytest.approx(p)
    heavy = np.where(X[:, 2] ** 2 > 3, 5.0, 1.0)
    heavy[groups != "small"] = 1.0
    assert p_of(X, groups, sample_weight=heavy)[1] < p


def test_several_small_groups_share_the_level():
    def small(label, p):
        return made_group(label, 20, (3.0, 3.0, 3.0), (0.0, 0.0, 0.0), p_worse=p)

    judged = [made_group(label, 500, (0.0, -0.1, 0.1), (0.0, -0.1, 0.1)) for label in "ab"]
    assert made_audit([*judged, small("c", 0.02)]).verdict.small_worse == ["c"]
    assert made_audit([*judged, small("c", 0.02), small("d", 0.5)]).verdict.small_worse == []
