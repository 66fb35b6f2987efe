"""Warnings about a fit: what they say, and what they advise."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from helpers.inside import FairProblem, warn_of_held_out

from fairpca import BlindPCA, FairPCA, FairPCACV, MinMaxPCA, WelfarePCA
from fairpca.exceptions import (
    DualityGapWarning,
    FewRowsWarning,
    LevellingDownWarning,
    ParityInfeasibleWarning,
    noted,
    quietly,
)


@cache
def steered(few=25, groups=("a", "b", "c")):
    """Large groups that vary in some directions, and a small one that varies in others."""
    rng = np.random.default_rng(0)
    labels = np.array(groups, dtype=object)[rng.integers(0, len(groups), 3000)]
    X = rng.normal(size=(3000, 8)) * [3, 3, 2, 2, 1, 1, 1, 1]
    X[:few] = rng.normal(size=(few, 8)) * [1, 1, 1, 1, 4, 4, 3, 3]
    labels[:few] = "tiny"
    return X, labels


def said_by(model, X, groups):
    """The messages about few rows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, sensitive_features=groups)
    return [str(w.message) for w in caught if w.category is FewRowsWarning]


@pytest.mark.parametrize(
    "model",
    [FairPCA(4), FairPCACV(4, cv=5), FairPCA(4, relative_errors=True), MinMaxPCA(4), WelfarePCA(4)],
    ids=["FairPCA", "cv", "relative", "MinMaxPCA", "WelfarePCA"],
)
def test_a_group_of_few_rows_that_large_groups_pay_for_is_named(model):
    X, groups = steered()
    (said,) = said_by(model, X, groups)
    changes = 100 * (model.group_errors_ / model.pca_group_errors_ - 1)
    assert said == (
        f"'tiny' has only 25 rows and steers the projection: its error falls by {-changes[3]:.3g} "
        f"%, and that of a larger group rises by up to {changes[:3].max():.3g} %. Pass "
        "min_group_size=30 with small_groups='ignore' to leave it out."
    )
    model.set_params(min_group_size=30, small_groups="ignore")
    assert said_by(model, X, groups) == []


def test_the_advice_about_few_rows_can_be_followed():
    X, groups = steered(few=25, groups=("a",))
    (said,) = said_by(FairPCA(4), X, groups)
    assert said.endswith("Collect more rows of it before you rely on the result.")
    X, groups = steered()
    groups = groups.copy()
    groups[25:45] = "other"
    (said,) = said_by(FairPCA(4), X, groups)
    assert said.endswith("min_group_size=30 with small_groups='merge' or 'ignore' to leave it out.")
    FairPCA(4, min_group_size=30, small_groups="merge").fit(X, sensitive_features=groups)


def test_few_rows_without_a_price_are_not_named():
    X, groups = steered()
    assert said_by(FairPCA(4, max_error_increase=0.01), X, groups) == []
    assert said_by(FairPCA(4, alpha=1), X, groups) == []
    assert said_by(BlindPCA(4), X, groups) == []  # it hides groups, and moves for none
    X, groups = steered(few=30)
    assert said_by(FairPCA(4), X, groups) == []
    X, groups = steered()
    assert said_by(FairPCA(4), X[:60], groups[:60]) == []  # all groups have few rows


@pytest.mark.parametrize("size", [1, 2])
def test_groups_that_all_have_one_or_two_rows_are_named(size):
    X = np.random.default_rng(0).normal(size=(24, 5))
    (said,) = said_by(FairPCA(2, tol=1), X, np.arange(24) // size)
    assert f"has only {size} row" in said


def test_a_disparity_that_is_not_proven_is_not_called_the_least_possible():
    X = np.random.default_rng(0).normal(size=(12, 5))
    with noted() as caught:
        FairPCA(2, constraint="parity").fit(X, sensitive_features=np.arange(12))
    said = {w.category: str(w.message) for w in caught}
    assert "may be worse than the best one" in said[DualityGapWarning]
    assert "least possible" not in said[ParityInfeasibleWarning]


def test_warnings_of_fits_are_kept_or_left_out():
    X, groups = steered()
    with noted() as caught:
        FairPCA(4).fit(X, sensitive_features=groups)
    assert [w.category for w in caught] == [FewRowsWarning]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with quietly():
            FairPCA(4).fit(X, sensitive_features=groups)


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({}, "Pass max_error_increase to limit the price."),
        (
            {"max_error_increase": 0.5},
            "Pass a smaller max_error_increase, or alpha=1 in its place, which is PCA.",
        ),
    ],
)
def test_a_price_that_was_limited_already_is_to_be_smaller(given, advice):
    problem, pca_errors = FairProblem(constraint="efficient", **given), np.array([1.0, 4.0])
    with pytest.warns(LevellingDownWarning) as caught:
        warn_of_held_out(problem, "ab", np.array([0.5, 0.0]), pca_errors, 0.0)
    assert str(caught[0].message).endswith(advice)


def test_groups_of_one_row_each_are_named():
    rng = np.random.default_rng(1)
    X, groups = rng.normal(size=(12, 6)), [f"person {i}" for i in range(12)]
    said = said_by(FairPCA(2, tol=1), X, groups)
    assert len(said) == 1
    assert "has only 1 row and steers the projection" in said[0]
    assert "that of another group rises" in said[0]


def test_levelling_down_names_who_is_worse_off_and_by_how_much():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(200, 3)), np.where(np.arange(200) % 2 == 0, "wide", "narrow")
    X[groups == "wide"] *= 4
    fair = FairPCA(1, constraint="parity")
    with noted() as caught:
        fair.fit(X, sensitive_features=groups)
    (said,) = [str(w.message) for w in caught if w.category is LevellingDownWarning]
    changes = 100 * (fair.group_errors_ / fair.pca_group_errors_ - 1)
    assert changes.min() > 0
    for label, change in zip(fair.groups_, changes, strict=True):
        assert f"{str(label)!r} by {change:.3g} %" in said


def test_large_percentages_are_written_out():
    halves = np.diag([5, 0.1, 0.05]), np.diag([5, 0.4, 0.05])
    X = np.vstack([sign * half for half in halves for sign in (1, -1)])
    with pytest.warns(LevellingDownWarning, match=r"0 by \d{4,} %"):
        FairPCA(1, constraint="parity").fit(X, sensitive_features=np.repeat([0, 1], 6))


def test_a_gap_is_said_as_tol_is_meant():
    """Relative first, so that it can be compared with tol."""
    rng = np.random.default_rng(7)
    X = 10 * rng.normal(size=(120, 5)) @ rng.normal(size=(5, 5))
    model = MinMaxPCA(1)
    with noted() as caught:
        model.fit(X, sensitive_features=np.arange(120) % 6)
    (said,) = [str(w.message) for w in caught if w.category is DualityGapWarning]
    assert f"by up to {100 * model.duality_gap_ / model.group_losses_.max():.3g} %" in said
    assert f"duality_gap_ = {model.duality_gap_:.3g}" in said
