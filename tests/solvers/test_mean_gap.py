"""Budgets of the variance between mean scores, however small."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import BlindPCA


def rows(shift):
    """Two groups whose means differ by a known vector, beside variances of order one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)) * [2.0, 2.0, 2.0, 1.0, 1.0]
    groups = np.arange(400) % 2
    for group in (0, 1):
        X[groups == group] -= X[groups == group].mean(axis=0)
    X[groups == 1] += shift
    return X, groups


@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-7])
@pytest.mark.parametrize("part", [0.1, 0.5])
def test_a_budget_is_kept_however_small_the_differences_are(size, part):
    shift = size * np.array([1.0, 1.0, 0.0, 0.3, 0.0])
    X, groups = rows(shift)
    budget = part * float(shift @ shift) / 4
    blind = BlindPCA(3, max_mean_gap=budget).fit(X, sensitive_features=groups)
    apart = X[groups == 1].mean(axis=0) - X[groups == 0].mean(axis=0)
    gap = float(np.sum((blind.components_ @ apart) ** 2)) / 4
    assert blind.status_ == "mean gap budget met"
    assert gap == pytest.approx(budget, rel=1e-7)
    assert 0 <= blind.duality_gap_ < 1e-9


@pytest.mark.parametrize("part", 10.0 ** -np.arange(6, 15))
def test_a_budget_next_to_nothing_is_not_exceeded(part):
    X, groups = rows(np.array([1.0, 1.0, 0.0, 0.3, 0.0]))
    apart = X[groups == 1].mean(axis=0) - X[groups == 0].mean(axis=0)
    budget = part * float(apart @ apart) / 4
    blind = BlindPCA(3, max_mean_gap=budget).fit(X, sensitive_features=groups)
    assert float(np.sum((blind.components_ @ apart) ** 2)) / 4 <= budget * (1 + 1e-9)
    assert 0 <= blind.duality_gap_ < 1e-6


def test_the_least_gap_itself_as_a_budget_has_a_bound():
    """Two directions tell three groups apart, and one dimension is all that is left out."""
    rng = np.random.default_rng(0)
    groups = np.arange(300) % 3
    X = rng.normal(size=(300, 3)) + np.array([[3.0, 0, 0], [0, 1.0, 0], [0, 0, 0]])[groups]
    means = np.array([X[groups == group].mean(axis=0) for group in range(3)])
    B = np.cov(means.T, bias=True)
    values, vectors = np.linalg.eigh(B)
    blind = BlindPCA(2, max_mean_gap=values[1] * (1 + 1e-15)).fit(X, sensitive_features=groups)
    assert blind.alpha_ == pytest.approx(0.0)
    hidden = vectors[:, 2]
    assert blind.reconstruction_error_ == pytest.approx(hidden @ np.cov(X.T, bias=True) @ hidden)
    assert blind.duality_gap_ == pytest.approx(0.0, abs=1e-9)
