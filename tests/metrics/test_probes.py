"""Probes guess the group of rows they have not seen; the kernel distance by its definition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, LeaveOneOut
from sklearn.svm import SVC

from fairpca.metrics import probe_groups, rbf_mmd
from fairpca.metrics.auc import cross_fitted_auc

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
    chances = np.column_stack([-values, values])
    auc, error = cross_fitted_auc(chances, positive.astype(int), np.zeros(80))
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
    rounded = np.round(Z * 2**10) / 2**10  # exact beside a large number
    assert rbf_mmd(rounded + 1e9, groups) == pytest.approx(rbf_mmd(rounded, groups), rel=1e-6)


@pytest.mark.parametrize("k", [2, 4])
def test_errors_where_there_is_nothing_to_tell(k):
    rng = np.random.default_rng(0)
    codes, fold = np.arange(120) // 3 % k, np.arange(120) % 3
    found = []
    for _ in range(80):
        Z = rng.normal(size=(120, 2))
        chances = np.empty((120, k))
        for i in range(3):
            away = fold != i
            means = np.array([Z[away & (codes == g)].mean(axis=0) for g in range(k)])
            towards = means - Z[away].mean(axis=0)
            chances[~away] = Z[~away] @ towards.T
        found.append(cross_fitted_auc(chances, codes, fold))
    auc, error = np.transpose(found)
    assert np.mean(error) == pytest.approx(np.std(auc), rel=0.2)
    assert np.mean(np.abs(auc - 0.5) < 1.96 * error) > 0.9


def test_groups_that_are_told_apart_are_not_known_to_be_so_for_sure():
    groups = np.repeat([0, 1], [30, 50])
    (probe,) = probe_groups(10.0 * groups[:, None], groups, probes=LOGISTIC, random_state=0)
    assert (probe.auc, probe.high) == (1.0, 1.0)
    assert probe.low == pytest.approx(1 - 3 / 30, abs=0.01)


def test_small_groups_are_in_every_sample():
    rng = np.random.default_rng(0)
    groups = np.repeat(["few", "some", "many"], [5, 40, 4955])
    Z = rng.normal(size=(5000, 2)) + 9.0 * (groups == "few")[:, None]
    found = [rbf_mmd(Z, groups, max_rows=200, random_state=seed) for seed in range(4)]
    assert min(found) > 0.5
    two = groups != "some"
    sample = {"probes": LOGISTIC, "max_rows": 100, "random_state": 0}
    assert probe_groups(Z, groups, **sample)[0].balanced_accuracy < 0.9
    assert probe_groups(Z[two], groups[two], **sample)[0].auc > 0.99
    with pytest.raises(ValueError, match="max_rows=5: pass an integer of at least 6"):
        rbf_mmd(Z, groups, max_rows=5)


def test_refusals():
    Z, groups = rings(60)
    with pytest.raises(ValueError, match="one group only"):
        probe_groups(Z, np.zeros(60))
    with pytest.raises(ValueError, match=r"cv=30 folds need 30 rows.*has 20"):
        probe_groups(Z, groups, cv=30)
    with pytest.raises(ValueError, match="confidence=95"):
        probe_groups(Z, groups, confidence=95)
    with pytest.raises(ValueError, match="no fold tests rows of several groups"):
        probe_groups(Z[:12], groups[:12], cv=LeaveOneOut(), probes=LOGISTIC)
    for sigma in (-1, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"sigma={sigma}: pass a positive width"):
            rbf_mmd(Z, groups, sigma=sigma)
    with pytest.raises(ValueError, match="but one has 1; merge small groups"):
        probe_groups(Z, np.arange(60) == 0)
    with pytest.raises(TypeError, match="probe 'svm'=SVC has no predict_proba; pass one that has"):
        probe_groups(Z, groups, probes={"svm": SVC()})
    with pytest.raises(TypeError, match="pass classifiers by name"):
        probe_groups(Z, groups, probes=[SVC()])


@pytest.mark.parametrize("function", [probe_groups, rbf_mmd])
def test_scores_of_one_dimension_are_not_poured_out(function):
    with pytest.raises(ValueError, match=r"one dimension, 50 numbers.*reshape\(-1, 1\)") as refused:
        function(np.arange(50.0), np.repeat(["a", "b"], 25))
    assert "array" not in str(refused.value)
