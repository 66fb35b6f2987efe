"""Probes guess the group of rows they have not seen."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from fairpca.metrics import probe_groups
from fairpca.metrics.classifiers import cross_fitted_auc

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
    logistic, boosted = probe_groups(None, Z, groups, cv=3, random_state=0)
    assert (logistic.name, boosted.name) == ("logistic", "boosted")
    assert logistic.low < 0.5 < logistic.high
    assert boosted.auc > 0.99
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

    (probe,) = probe_groups(None, Z, groups, probes={"memory": Remembers()}, random_state=0)
    assert probe.auc == pytest.approx(0.5)


def test_more_groups():
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c"], [50, 60, 90])
    Z = rng.normal(size=(200, 2)) + 3.0 * (groups == "c")[:, None]
    (probe,) = probe_groups(None, Z, groups, probes=LOGISTIC, cv=4, random_state=0)
    against_rest = groups == "c"
    (one_against_rest,) = probe_groups(None, Z, against_rest, probes=LOGISTIC, cv=4, random_state=0)
    assert 0.6 < probe.auc < one_against_rest.auc


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
    (probe,) = probe_groups(None, 10.0 * groups[:, None], groups, probes=LOGISTIC, random_state=0)
    assert (probe.auc, probe.high) == (1.0, 1.0)
    assert probe.low == pytest.approx(30 / (30 + 1.96**2), rel=1e-4)  # Wilson's end


def test_refusals():
    Z, groups = rings(60)
    with pytest.raises(ValueError, match="one group only"):
        probe_groups(None, Z, np.zeros(60))
    with pytest.raises(ValueError, match=r"cv=30 folds need 30 rows.*has 20"):
        probe_groups(None, Z, groups, cv=30)
    with pytest.raises(ValueError, match="level=95"):
        probe_groups(None, Z, groups, level=95)
    with pytest.raises(ValueError, match="merge small groups"):
        probe_groups(None, Z, np.arange(60) == 0)
    with pytest.raises(TypeError, match=r"'svm'.*predict_proba"):
        probe_groups(None, Z, groups, probes={"svm": SVC()})
    with pytest.raises(TypeError, match="pass classifiers by name"):
        probe_groups(None, Z, groups, probes=[SVC()])


def test_scores_of_one_dimension_are_not_poured_out():
    with pytest.raises(ValueError, match=r"one dimension, 50 numbers.*reshape\(-1, 1\)") as refused:
        probe_groups(None, np.arange(50.0), np.repeat(["a", "b"], 25))
    assert "array" not in str(refused.value)
