"""Estimators and paths of people who have several rows."""

import warnings

import duckdb
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, FairPCACV, GroupMoments, tradeoff_path


def panel(seed=0, n_people=(60, 20), rows=10, correlation=0.95, d=6):
    """Rows of people of two groups that come from one distribution."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(sum(n_people)), rows)
    groups = np.repeat(["b", "a"], n_people)[person]
    own = rng.normal(size=(sum(n_people), d))
    noise = rng.normal(size=(len(person), d))
    X = np.sqrt(correlation) * own[person] + np.sqrt(1 - correlation) * noise
    return X * np.linspace(2, 1, d), groups, person


def held_out(fair):
    return np.concatenate(
        [fair.held_out_group_errors_, fair.held_out_changes_interval_.ravel(), [fair.stop_]]
    )


def test_without_a_difference_pca_is_kept_by_units_and_left_by_rows():
    left = {"rows": 0, "units": 0}
    for seed in range(8):
        X, groups, person = panel(seed)
        for name, units in (("rows", None), ("units", person)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fair = FairPCACV(2).fit(X, sensitive_features=groups, units=units)
            left[name] += fair.stop_ > 0
    assert left["rows"] >= 5
    assert left["units"] <= 1


def test_only_labels_and_salt_matter():
    X, groups, person = panel()
    expected = FairPCACV(2).fit(X, sensitive_features=groups, units=person)
    order = np.random.default_rng(0).permutation(len(X))
    other = FairPCACV(2).fit(
        X[order], sensitive_features=groups[order], units=person[order].astype(str)
    )
    np.testing.assert_allclose(held_out(other), held_out(expected), rtol=1e-6)
    salted = FairPCACV(2, random_state=1).fit(X, sensitive_features=groups, units=person)
    assert not np.allclose(held_out(salted), held_out(expected))


@pytest.mark.parametrize("kind", ["frame", "stream", "moments"])
def test_the_same_folds_in_frames_streams_and_moments(kind):
    X, groups, person = panel()
    expected = FairPCACV(2).fit(X, sensitive_features=groups, units=person)
    fair = FairPCACV(2)
    if kind == "moments":
        fair.fit(GroupMoments.from_data(X, groups, units=person, folds=10))
    else:
        frame = pd.DataFrame(X).add_prefix("x").assign(g=groups, person=person)
        rows = duckdb.from_df(frame) if kind == "stream" else frame
        fair.fit(rows, sensitive_features="g", units="person")
        assert fair.n_features_in_ == 6
    np.testing.assert_allclose(held_out(fair), held_out(expected), rtol=1e-6)


def test_splitters_get_the_units():
    X, groups, person = panel()
    rows = np.column_stack([X, 0.01 * np.eye(80)[person]])
    fair = FairPCACV(2, cv=GroupKFold(5)).fit(rows, sensitive_features=groups, units=person)
    folds = [fair.moments_.split(fold)[1] for fold in range(5)]
    found = [np.abs(fold.weights @ fold.means[:, 6:]) > 1e-9 for fold in folds]
    np.testing.assert_array_equal(np.sum(found, axis=0), 1)
    with pytest.raises(ValueError, match="units on both sides"):
        FairPCACV(2, cv=KFold(5)).fit(X[5:], sensitive_features=groups[5:], units=person[5:])


def test_more_folds_than_units_of_a_group_are_refused():
    X, groups, person = panel(n_people=(30, 8))
    with pytest.raises(ValueError, match=r"more than the units of group 'a' \(8, with 80 rows\)"):
        FairPCACV(2).fit(X, sensitive_features=groups, units=person)
    FairPCACV(2, cv=8).fit(X, sensitive_features=groups, units=person)


def test_other_estimators_accept_units_and_fit_to_all_rows():
    X, groups, person = panel()
    fair = FairPCA(2).fit(X, sensitive_features=groups, units=person)
    plain = FairPCA(2).fit(X, sensitive_features=groups)
    np.testing.assert_array_equal(fair.components_, plain.components_)
    assert fair.moments_.n_units.tolist() == [20, 60]
    parts = FairPCA(2)
    for block in np.array_split(np.arange(len(X)), 3):
        parts.partial_fit(X[block], sensitive_features=groups[block], units=person[block])
    assert parts.moments_.n_units.tolist() == [20, 60]


def test_pipelines_route_units():
    X, groups, person = panel()
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), FairPCACV(2))
        pipe.fit(X, sensitive_features=groups, units=person)
    assert pipe[-1].moments_.has_units
    plain = make_pipeline(StandardScaler(), FairPCACV(2))
    plain.fit(X, fairpcacv__sensitive_features=groups, fairpcacv__units=person)
    np.testing.assert_allclose(held_out(plain[-1]), held_out(pipe[-1]))


def test_a_path_is_judged_by_units():
    X, groups, person = panel()
    path = tradeoff_path(X, groups, n_components=2, n_points=3, units=person, cv=5)
    moments = GroupMoments.from_data(X, groups, units=person, folds=5)
    expected = tradeoff_path(moments, n_components=2, n_points=3, cv=5)
    np.testing.assert_allclose(path.held_out.disparity, expected.held_out.disparity)
