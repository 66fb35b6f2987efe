"""Probes guess the group of rows they have not seen; the kernel distance by its definition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold

from fairpca.metrics import probe_groups, rbf_mmd
from fairpca.metrics.probes import cross_fitted_auc

LOGISTIC = {"logistic": LogisticRegression()}


def rings(n=400, seed=0):
    """Two groups with the same mean: one inside the other."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 2))
    groups = np.where(np.arange(n) % 3 == 0, "outer", "inner")
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    return Z * np.where(groups == "outer", 3.0, 1.0)[:, None], groups


def test_only_the_boosted_probe_sees_what_is_not_linear():
    Z, groups = rings()
    logistic, boosted = probe_groups(Z, groups, cv=3, random_state=0)
    assert (logistic.name, boosted.name) == ("logistic", "boosted")
    assert logistic.low < 0.5 < logistic.high
    assert boosted.auc > 0.99
    assert boosted.balanced_accuracy > 0.95
    assert boosted.low <= boosted.auc <= boosted.high


def test_auc_of_one_fold_is_scikit_learns():
    rng = np.random.default_rng(0)
    values, positive = np.round(rng.normal(size=80), 1), rng.random(80) < 0.4
    auc, error = cross_fitted_auc(values, positive, np.zeros(80))
    assert auc == pytest.approx(roc_auc_score(positive, values))
    drawn = []
    for _ in range(200):
        rows = np.r_[
            rng.choice(np.flatnonzero(positive), positive.sum()),
            rng.choice(np.flatnonzero(~positive), (~positive).sum()),
        ]
        drawn.append(roc_auc_score(positive[rows], values[rows]))
    assert error == pytest.approx(np.std(drawn), rel=0.2)


def test_rows_are_guessed_without_their_fold():
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=200)
    Z = np.column_stack([np.arange(200), rng.normal(size=200)])  # nothing to learn

    class Remembers(LogisticRegression):
        def fit(self, X, y):
            self.seen_ = dict(zip(X[:, 0], y, strict=True))
            return super().fit(X, y)

        def predict_proba(self, X):
            known = np.array([self.seen_.get(i, 0.5) for i in X[:, 0]])
            return np.column_stack([1 - known, known])

    (probe,) = probe_groups(Z, groups, probes={"memory": Remembers()}, random_state=0)
    assert probe.auc == pytest.approx(0.5)


def test_more_groups_samples_and_splitters():
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c"], [50, 60, 90])
    Z = rng.normal(size=(200, 2)) + 3.0 * (groups == "c")[:, None]
    (probe,) = probe_groups(Z, groups, probes=LOGISTIC, cv=4, random_state=0)
    one_against_rest = probe_groups(Z, groups == "c", probes=LOGISTIC, cv=4, random_state=0)[0]
    assert 0.6 < probe.auc < one_against_rest.auc
    (sampled,) = probe_groups(Z, groups, probes=LOGISTIC, max_rows=120, random_state=0)
    assert sampled.high - sampled.low > probe.high - probe.low
    split = KFold(4, shuffle=True, random_state=1)
    assert probe_groups(Z, groups, probes=LOGISTIC, cv=split)[0].auc > 0.6


def test_kernel_distance_by_its_definition():
    Z, groups = rings(150)
    A, B = Z[groups == "inner"], Z[groups == "outer"]
    gamma = 1 / (2 * 0.7**2)
    kernels = (rbf_kernel(A, A, gamma), rbf_kernel(B, B, gamma), rbf_kernel(A, B, gamma))
    expected = kernels[0].mean() + kernels[1].mean() - 2 * kernels[2].mean()
    assert rbf_mmd(Z, groups, sigma=0.7) == pytest.approx(expected)
    squares = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)[np.triu_indices(150, 1)]
    sigma = np.sqrt(np.median(squares) / 2)
    assert rbf_mmd(Z, groups) == pytest.approx(rbf_mmd(Z, groups, sigma=sigma))
    three = np.where(np.arange(150) < 50, "other", groups)
    pairs = [
        rbf_mmd(Z[three != g], three[three != g], sigma=0.7) for g in ("other", "inner", "outer")
    ]
    assert rbf_mmd(Z, three, sigma=0.7) == pytest.approx(max(pairs))
    assert rbf_mmd(Z, groups, max_rows=100, random_state=0) > 0


def test_refusals():
    Z, groups = rings(60)
    with pytest.raises(ValueError, match="one group only"):
        probe_groups(Z, np.zeros(60))
    with pytest.raises(ValueError, match=r"cv=30 folds need 30 rows.*has 20"):
        probe_groups(Z, groups, cv=30)
    with pytest.raises(ValueError, match="confidence=95"):
        probe_groups(Z, groups, confidence=95)
    with pytest.raises(ValueError, match="sigma=-1"):
        rbf_mmd(Z, groups, sigma=-1)
