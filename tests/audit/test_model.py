"""Fitted models are judged as they are, on the rows given."""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import fairpca
from fairpca import FairPCA, ModelAudit, audit


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], [80, 140])
    X = rng.normal(size=(220, 5)) * [4, 3, 2, 1, 1] + 1
    X[groups == "a"] = 1.3 * X[groups == "a"][:, ::-1]
    return X, groups


def reconstructed(model, X):
    """What scikit-learn makes of the rows, where it can."""
    return model.inverse_transform(model.transform(X))


@pytest.mark.parametrize(
    "model",
    [
        PCA(2),
        PCA(2, whiten=True),
        IncrementalPCA(2),
        TruncatedSVD(2, algorithm="arpack"),
        make_pipeline(StandardScaler(), PCA(2)),
        make_pipeline(MinMaxScaler(), StandardScaler(with_mean=False), TruncatedSVD(2)),
    ],
)
def test_errors_are_distances_from_what_scikit_learn_reconstructs(people, model):
    X, groups = people
    half = np.arange(len(X)) % 2 == 0
    model.fit(X[half])
    found = audit(X[~half], groups[~half], model)
    assert isinstance(found, ModelAudit)
    projection, seen = model, X[~half]
    if hasattr(model, "steps"):
        projection, seen = model[-1], model[:-1].transform(seen)
    squares = ((seen - reconstructed(projection, seen)) ** 2).sum(axis=1)
    expected = [squares[groups[~half] == g].mean() for g in found.groups]
    assert found.errors.group_errors == pytest.approx(expected)
    assert found.errors.overall == pytest.approx(squares.mean())
    assert found.errors.disparity == pytest.approx(np.ptp(expected))
    assert found.harmed_group == found.groups[int(np.argmax(expected))]
    assert found.n_components == 2
    assert json.loads(json.dumps(found.to_dict()))["groups"] == list(found.groups)
    assert "disparity" in repr(found)


def test_interval_is_that_of_two_means(people):
    X, groups = people
    model = PCA(1).fit(X)
    found = audit(X, groups, model, level=0.9)
    squares = ((X - reconstructed(model, X)) ** 2).sum(axis=1)
    parts = [squares[groups == g] for g in found.groups]
    margin = 1.6448536 * np.sqrt(sum(part.var() / len(part) for part in parts))
    low, high = found.disparity_interval
    assert (high - low) / 2 == pytest.approx(margin)
    assert (high + low) / 2 == pytest.approx(found.errors.disparity)


def test_interval_of_the_spread_is_wide_enough_for_the_choice_of_two_groups(people):
    X, _ = people
    rng, groups = np.random.default_rng(0), np.arange(len(X)) % 5
    model = PCA(1).fit(X)
    found = audit(X, groups, model, level=0.9)
    at_once = np.quantile(np.ptp(rng.normal(size=(100_000, 5)), axis=1), 0.9) / np.sqrt(2)
    R, se = found.errors.group_errors, found.standard_errors
    ends = [
        (R[i] - R[j] + sign * at_once * np.hypot(se[i], se[j]))
        for sign in (-1, 1)
        for i, j in permutations(range(5), 2)
    ]
    assert found.disparity_interval[0] == max(0.0, *ends[:20]) == 0.0
    assert found.disparity_interval[1] == pytest.approx(max(ends[20:]), rel=0.01)
    far = audit(X * np.where(groups == 4, 5, 1)[:, None], groups, model, level=0.9)
    R, se = far.errors.group_errors, far.standard_errors
    lowest = max(R[4] - R[j] - at_once * np.hypot(se[4], se[j]) for j in range(4))
    assert far.disparity_interval[0] == pytest.approx(lowest, rel=0.01)


def test_many_groups_that_are_alike_rarely_differ_beyond_chance():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(800, 4)) * [3, 2, 1, 1], np.arange(800) % 16
    model = PCA(2).fit(X)
    alarms = sum(
        audit(X, rng.permutation(groups), model).disparity_interval[0] > 0 for _ in range(60)
    )
    assert alarms <= 9  # 3 are to be expected; an interval for one pair alone raises some 50


def test_a_group_of_one_row_is_as_uncertain_as_other_rows(people):
    X, groups = people
    model, alone = PCA(1).fit(X), np.where(np.arange(len(X)) == 0, "alone", groups)
    found = audit(X, alone, model)
    squares = ((X - reconstructed(model, X)) ** 2).sum(axis=1)
    own = [squares[alone == g] for g in found.groups]
    within = np.concatenate([part - part.mean() for part in own])
    place = found.groups.index("alone")
    assert found.group_sizes[place] == 1
    assert found.standard_errors[place] == pytest.approx(np.sqrt(np.mean(within**2)))
    weights = np.where(np.arange(len(X)) == 0, 9, 2)
    weighted = audit(X, alone, model, sample_weight=weights)
    assert weighted.standard_errors[place] == pytest.approx(found.standard_errors[place], rel=0.05)


def test_weights_repeat_rows(people):
    X, groups = people
    model, times = PCA(1).fit(X), np.arange(len(X)) % 3
    weighted = audit(X, groups, model, sample_weight=times)
    repeated = audit(X.repeat(times, axis=0), groups.repeat(times), model)
    assert weighted.errors.group_errors == pytest.approx(repeated.errors.group_errors)
    assert weighted.errors.overall == pytest.approx(repeated.errors.overall)


def test_fitted_and_loaded_estimators_are_not_fitted_again(people, tmp_path):
    X, groups = people
    fair = FairPCA(1).fit(X, sensitive_features=groups)
    fair.save(tmp_path / "m.safetensors")
    loaded = fairpca.load_model(tmp_path / "m.safetensors")
    for model in (fair, loaded):
        found = audit(X, groups, model)
        assert found.errors.group_errors == pytest.approx(fair.group_errors_)
    some = np.arange(len(X)) % 3 == 0
    squares = ((X[some] - fair.inverse_transform(fair.transform(X[some]))) ** 2).sum(axis=1)
    assert audit(X[some], groups[some], loaded).errors.overall == pytest.approx(squares.mean())
    assert isinstance(audit(X, groups, FairPCA(1), n_points=2), fairpca.Audit)


@pytest.mark.parametrize("kind", [PCA(2), FairPCA(2), make_pipeline(StandardScaler(), PCA(2))])
def test_rows_that_it_was_fitted_to_are_named(people, kind, tmp_path):
    X, groups = people
    half = np.arange(len(X)) % 2 == 0
    given = {"sensitive_features": groups[half]} if isinstance(kind, FairPCA) else {}
    model = clone(kind).fit(X[half], **given)
    same, other = (audit(X[rows], groups[rows], model) for rows in (half, ~half))
    assert same.on_rows_fitted_to
    assert "These are the rows that the model was fitted to. They flatter it" in repr(same)
    assert "on the rows that the model was fitted to." in same._repr_html_().split("</p>")[0]
    assert "These are the rows that the model was fitted to" in same._repr_html_()
    assert not other.on_rows_fitted_to
    assert "If the model was fitted to these rows, they flatter it." in repr(other)
    assert "If the model was fitted to these rows, they flatter it." in other._repr_html_()
    if given:
        model.save(tmp_path / "m")
        assert audit(X[half], groups[half], fairpca.load_model(tmp_path / "m")).on_rows_fitted_to


@pytest.mark.parametrize("r", [2, 5])
def test_rows_standardised_by_themselves_are_others(people, r):
    X, groups = people
    half = np.arange(len(X)) % 2 == 0
    one, other = (StandardScaler().fit_transform(X[rows]) for rows in (half, ~half))
    assert not audit(other, groups[~half], PCA(r).fit(one)).on_rows_fitted_to


def test_where_nothing_was_compressed_the_text_says_so(people):
    X, groups = people
    found = repr(audit(X, groups, PCA(5).fit(X)))
    assert "Nothing was compressed: there are as many components as columns, 5." in found
    assert "That is no proof of fairness" in found
    assert "e-" not in found
    flat = np.column_stack([X, X.sum(axis=1)])
    found = audit(flat, groups, PCA(5).fit(flat))
    assert found.loses_nothing
    assert "Nothing is lost: the 6 columns vary in no more than 5 directions." in repr(found)
    assert not audit(X, groups, PCA(4).fit(X)).loses_nothing


def test_what_cannot_be_judged(people):
    X, groups = people
    with pytest.raises(TypeError, match=r"this PCA is not fitted; pass PCA\(n_components=1\)\.fit"):
        audit(X, groups, PCA(1))
    with pytest.raises(TypeError, match=r"this Pipeline is not fitted; pass pipeline\.fit\(X\)\."):
        audit(X, groups, make_pipeline(StandardScaler(), PCA(2)))
    with pytest.raises(
        TypeError, match=r"PCA is a class; pass an object, PCA\(\.\.\.\)\.fit\(X\)\."
    ):
        audit(X, groups, PCA)
    with pytest.raises(ValueError, match="same columns as for fit"):
        audit(X[:, 1:], groups, PCA(1).fit(X))
    skewed = PCA(2).fit(X)
    skewed.components_ = skewed.components_ * 2
    with pytest.raises(ValueError, match="not orthonormal"):
        audit(X, groups, skewed)
    with pytest.raises(ValueError, match="one group"):
        audit(X, np.zeros(len(X)), PCA(1).fit(X))
