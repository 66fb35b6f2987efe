"""Every metric takes every projection that people have."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from fairpca import FairPCA, GroupMoments, MinMaxPCA, audit_model, load_model
from fairpca.metrics import (
    classifier_outcomes,
    disparity_scorer,
    group_reconstruction_errors,
    group_separation,
    probe_groups,
    reconstruction_disparity,
    row_reconstruction_errors,
)

RNG = np.random.default_rng(0)
GROUPS = np.repeat(["a", "b"], [70, 110])
X = RNG.normal(size=(180, 5)) * [4, 3, 2, 1, 1] + 1
X[GROUPS == "a"] = 1.3 * X[GROUPS == "a"][:, ::-1]
Y = (X[:, 0] + RNG.normal(size=180) > 1).astype(int)
HALF = np.arange(180) % 2 == 0


def saved(folder):
    pytest.importorskip("safetensors", reason="needs the model extra")
    FairPCA(2, standardize=True).fit(X[HALF], sensitive_features=GROUPS[HALF]).save(folder / "m")
    return load_model(folder / "m")


MODELS = {
    "FairPCA": FairPCA(2),
    "MinMaxPCA": MinMaxPCA(2),
    "PCA": PCA(2),
    "whitened": PCA(2, whiten=True),
    "IncrementalPCA": IncrementalPCA(2),
    "TruncatedSVD": TruncatedSVD(2, algorithm="arpack"),
    "scaled": make_pipeline(StandardScaler(), PCA(2)),
    "scaled twice": make_pipeline(MinMaxScaler(), StandardScaler(with_std=False), TruncatedSVD(2)),
    "with a classifier": make_pipeline(StandardScaler(), PCA(2), LogisticRegression()),
    "loaded": None,
}


@pytest.fixture(params=MODELS)
def fitted(request, tmp_path):
    if MODELS[request.param] is None:
        return saved(tmp_path)
    model = clone(MODELS[request.param])
    given = {"sensitive_features": GROUPS[HALF]} if hasattr(model, "to_sklearn") else {}
    return model.fit(X[HALF], Y[HALF], **given)


def parts(model):
    """The projection, the rows as they arrive at it, and what it makes of them, by hand."""
    if getattr(model, "standardize", False):
        model = model.to_sklearn()
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    seen = X[~HALF]
    while not hasattr(steps[0], "components_"):
        seen = steps.pop(0).transform(seen)
    projection = steps[0]
    return projection, seen, projection.inverse_transform(projection.transform(seen))


def test_errors_of_fitted_models(fitted):
    _, seen, back = parts(fitted)
    squares = ((seen - back) ** 2).sum(axis=1)
    given = fitted, X[~HALF]
    assert row_reconstruction_errors(*given) == pytest.approx(squares)
    expected = {g: squares[GROUPS[~HALF] == g].mean() for g in ("a", "b")}
    assert group_reconstruction_errors(*given, GROUPS[~HALF]) == pytest.approx(expected)
    D = abs(expected["a"] - expected["b"])
    assert reconstruction_disparity(*given, GROUPS[~HALF]) == pytest.approx(D)
    assert disparity_scorer(*given, sensitive_features=GROUPS[~HALF]) == pytest.approx(-D)


def test_what_scores_of_fitted_models_give_away(fitted):
    projection, seen, _ = parts(fitted)
    found = group_separation(fitted, X[~HALF], GROUPS[~HALF])
    Z = seen @ np.asarray(projection.components_).T
    if getattr(projection, "whiten", False):
        Z /= np.sqrt(projection.explained_variance_)
    means = [Z[GROUPS[~HALF] == g].mean(axis=0) for g in ("a", "b")]
    total = Z.var(axis=0).sum()
    shares = [(GROUPS[~HALF] == g).mean() for g in ("a", "b")]
    between = shares[0] * shares[1] * ((means[0] - means[1]) ** 2).sum()
    assert found.centroid_share == pytest.approx(between / total)
    if hasattr(fitted, "to_sklearn"):
        moments = GroupMoments.from_data(X[~HALF], GROUPS[~HALF])
        assert group_separation(fitted, moments).centroid_share == pytest.approx(between / total)


@pytest.mark.parametrize(
    ("metric", "wanted"),
    [
        (group_reconstruction_errors, "group_reconstruction_errors(estimator, X, sensitive"),
        (reconstruction_disparity, "group_reconstruction_errors(estimator, X, sensitive"),
        (group_separation, "group_separation(estimator, X, sensitive_features)"),
        (probe_groups, "probe_groups(estimator, X, sensitive_features)"),
        (partial(classifier_outcomes, y=Y), "classifier_outcomes(estimator, X, sensitive_features"),
        (audit_model, "audit_model(model, X, sensitive_features)"),
    ],
)
def test_rows_in_the_place_of_the_model(metric, wanted):
    for rows, kind in ((X, "ndarray"), (pd.DataFrame(X), "DataFrame")):
        with pytest.raises(TypeError, match=f"comes first, but this is a {kind}") as caught:
            metric(rows, GROUPS, PCA(2))
        assert wanted in str(caught.value)


@pytest.mark.slow
def test_classifiers_on_fitted_and_unfitted_models(fitted):
    if not hasattr(fitted, "transform"):
        with pytest.raises(TypeError, match=r"estimator=pipeline\[:-1\]"):
            classifier_outcomes(fitted, X[~HALF], GROUPS[~HALF], Y[~HALF])
        fitted = fitted[:-1]
    data = X[~HALF], GROUPS[~HALF], Y[~HALF]
    how = {"cv": 2, "random_state": 0}
    scores, pca, features = classifier_outcomes(fitted, *data, **how)
    assert (scores.name, pca.name, features.name) == ("scores", "pca", "features")
    assert 0 <= scores.overall["auc"] <= 1
    if not hasattr(fitted, "standardize") or hasattr(fitted, "to_sklearn"):
        again = classifier_outcomes(clone(fitted), *data, **how)
        # Scalers of a fold differ from those of the fit, but the classifier standardises.
        assert again[2].overall == pytest.approx(features.overall)


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name] is not None])
def test_models_that_are_not_fitted_are_refused(name):
    model = clone(MODELS[name])
    for metric in (row_reconstruction_errors, partial(group_separation, sensitive_features=GROUPS)):
        with pytest.raises(NotFittedError, match=f"This {type(model).__name__} .* not fitted"):
            metric(model, X)


def test_steps_after_the_projection_do_not_matter():
    model = make_pipeline(StandardScaler(), FairPCA(2))
    model.fit(X, fairpca__sensitive_features=GROUPS)
    model.steps.append(("classifier", LogisticRegression()))  # not fitted
    assert len(row_reconstruction_errors(model, X)) == len(X)


@pytest.mark.parametrize("kind", [PCA, FairPCA])
def test_a_class_is_no_model(kind):
    with pytest.raises(TypeError, match=rf"{kind.__name__}.* is a class, not an instance"):
        row_reconstruction_errors(kind, X)


def test_what_is_no_orthogonal_projection_is_refused():
    skewed = PCA(2).fit(X)
    skewed.components_ = skewed.components_ + 0.1
    with pytest.raises(ValueError, match="not orthonormal"):
        reconstruction_disparity(make_pipeline(skewed), X, GROUPS)
    with pytest.raises(TypeError, match="no components_"):
        reconstruction_disparity(StandardScaler().fit(X), X, GROUPS)
