"""The bundled health data: where they come from, and what they show on people not fitted to."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA
from fairpca.datasets import load_rand_health
from fairpca.metrics import group_reconstruction_errors


def test_table():
    bunch, raw = load_rand_health(), load_rand_health(prepare=False)
    assert bunch.data.shape == (5827, 14)
    assert bunch.data.dtype == np.float64
    assert np.sum(bunch.sensitive_features == "black") == 1086
    assert bunch.groups.tolist() == ["black", "others"]
    assert len(bunch.feature_names) == 14
    np.testing.assert_allclose(bunch.data.std(axis=0, ddof=1), 1)
    assert "public domain" in raw.description
    assert "standardised" not in raw.description


def test_columns_hold_what_they_say():
    raw = load_rand_health(prepare=False)
    column = dict(zip(raw.feature_names, raw.data.T, strict=True))
    for name in ("health_good", "health_fair", "health_poor", "female", "child"):
        assert set(column[name]) == {0, 1}
    rated = [column[f"health_{rating}"] for rating in ("good", "fair", "poor")]
    assert np.sum(rated, axis=0).max() == 1
    general = [column["general_health"][which == 1].mean() for which in rated]
    assert general == sorted(general, reverse=True)
    assert column["age"][column["child"] == 1].max() < 18.1
    sizes = np.exp(column["log_family_size"])
    np.testing.assert_allclose(sizes, np.rint(sizes), rtol=0.005)


def test_black_participants_gain_on_rows_held_out():
    """In every split the gain is beyond chance; it is larger than the price."""
    raw = load_rand_health(prepare=False)
    X, race = raw.data, raw.sensitive_features
    changes = []
    for fitted, held_out in StratifiedShuffleSplit(8, test_size=0.5, random_state=0).split(X, race):
        scaler = StandardScaler().fit(X[fitted])
        fair = FairPCA(8).fit(scaler.transform(X[fitted]), sensitive_features=race[fitted])
        new = scaler.transform(X[held_out])
        plain = FairPCA(8, alpha=1).fit(
            scaler.transform(X[fitted]), sensitive_features=race[fitted]
        )
        before, after = (
            group_reconstruction_errors(model, new, race[held_out]) for model in (plain, fair)
        )
        changes.append([after[group] / before[group] - 1 for group in raw.groups])
        assert abs(after["black"] - after["others"]) < 0.6 * (before["black"] - before["others"])
    black, others = np.transpose(changes)
    assert black.max() < -0.05
    assert -black.mean() > others.mean()
