"""Warnings about a fit: what they say, and what they advise."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

from fairpca import BlindPCA, FairPCA, MinMaxPCA, WelfarePCA
from fairpca._estimators.advice import warn_of_held_out
from fairpca._problems.fair import FairProblem
from fairpca.exceptions import FewRowsWarning, LevellingDownWarning, noted, quietly


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
    [
        FairPCA(4),
        FairPCA(4, cv=5, random_state=0),
        FairPCA(4, normalize=True),
        MinMaxPCA(4),
        WelfarePCA(4),
    ],
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
    problem, pca_errors = FairProblem(constraint="pareto", **given), np.array([1.0, 4.0])
    with pytest.warns(LevellingDownWarning) as caught:
        warn_of_held_out(problem, np.array([0.5, 0.0]), pca_errors, 0.0)
    assert str(caught[0].message).endswith(advice)
