"""Metrics on any projection and any data."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.data import make_groups
from sklearn.decomposition import PCA, FactorAnalysis, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, MinMaxPCA, load_model
from fairpca.metrics import (
    group_reconstruction_errors,
    reconstruction_disparity,
    row_reconstruction_errors,
)


@pytest.mark.parametrize("make", [PCA, IncrementalPCA, TruncatedSVD])
def test_scikit_learns_projections(make, two_groups):
    X, groups = two_groups
    pca = make(n_components=2).fit(X)
    rest = np.sum((X - pca.inverse_transform(pca.transform(X))) ** 2, axis=1)
    expected = {g: rest[groups == g].mean() for g in ("g0", "g1")}
    errors = group_reconstruction_errors(pca, X, groups)
    assert errors == pytest.approx(expected, rel=1e-10)
    spread = abs(expected["g0"] - expected["g1"])
    assert reconstruction_disparity(pca, X, groups) == pytest.approx(spread, rel=1e-9)


@pytest.mark.parametrize("last", [PCA(2), FairPCA(2)])
def test_pipelines_are_judged_by_their_projection(two_groups, last):
    X, groups = two_groups
    wanted = {"fairpca__sensitive_features": groups} if isinstance(last, FairPCA) else {}
    scaler = StandardScaler().fit(X)
    steps = SelectKBest(k=5), StandardScaler(), last
    pipeline = make_pipeline(*steps).fit(X, groups, **wanted)
    judged = make_pipeline(*steps, LogisticRegression()).fit(X, groups, **wanted)
    Z = pipeline[:-1].transform(X)
    for relative_errors in (False, True):
        options = {"sensitive_features": groups, "relative_errors": relative_errors}
        errors = group_reconstruction_errors(pipeline[-1], Z, **options)
        assert group_reconstruction_errors(pipeline, X, **options) == pytest.approx(errors)
        assert group_reconstruction_errors(judged, X, **options) == pytest.approx(errors)
    alone = make_pipeline(last).fit(scaler.transform(X), **wanted)
    assert row_reconstruction_errors(alone, scaler.transform(X)) == pytest.approx(
        row_reconstruction_errors(alone[0], scaler.transform(X))
    )


def test_loaded_models_of_standardised_columns(two_groups, tmp_path):
    pytest.importorskip("safetensors")
    X, groups = two_groups
    fair = FairPCA(2, standardize=True).fit(X, sensitive_features=groups)
    fair.save(tmp_path / "m.safetensors")
    errors = group_reconstruction_errors(load_model(tmp_path / "m.safetensors"), X, groups)
    assert list(errors.values()) == pytest.approx(fair.group_errors_, rel=1e-9)


def test_held_out_data_and_more_groups():
    X, groups = make_groups(n=(50, 40, 30, 2), d=4)
    fair = FairPCA(2).fit(X[:60], sensitive_features=np.arange(60) % 3 == 0)
    errors = group_reconstruction_errors(fair, X[60:], groups[60:])
    assert list(errors) == sorted(set(groups[60:]))
    rest = np.sum((X - fair.inverse_transform(fair.transform(X))) ** 2, axis=1)[60:]
    for label, error in errors.items():
        assert error == pytest.approx(rest[groups[60:] == label].mean())
    assert reconstruction_disparity(fair, X[60:], groups[60:]) == pytest.approx(
        max(errors.values()) - min(errors.values())
    )


def test_containers_and_weights(two_groups):
    X, groups = two_groups
    pca = PCA(2).fit(X)
    expected = group_reconstruction_errors(pca, X, groups)
    for form in (sp.csr_array, pd.DataFrame, np.asfortranarray):
        assert group_reconstruction_errors(pca, form(X), groups) == pytest.approx(expected)
    w = np.arange(len(X)) % 3
    twice = np.repeat(np.arange(len(X)), w)
    assert group_reconstruction_errors(pca, X, groups, sample_weight=w) == pytest.approx(
        group_reconstruction_errors(pca, X[twice], groups[twice])
    )


def projection(components, mean):
    """Anything with components and a mean will do."""
    return SimpleNamespace(components_=components, mean_=mean)


@pytest.mark.parametrize("relative_errors", [False, True])
def test_errors_do_not_depend_on_axes_origin_or_order(two_groups, relative_errors):
    X, groups = two_groups
    pca = PCA(2).fit(X)
    expected = group_reconstruction_errors(pca, X, groups, relative_errors=relative_errors)
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    rotated = projection(pca.components_ @ Q, pca.mean_ @ Q)
    assert group_reconstruction_errors(
        rotated, X @ Q, groups, relative_errors=relative_errors
    ) == pytest.approx(expected, rel=1e-10)
    shift = rng.normal(size=6) * 1e6
    moved = projection(pca.components_, pca.mean_ + shift)
    assert group_reconstruction_errors(
        moved, X + shift, groups, relative_errors=relative_errors
    ) == pytest.approx(expected, rel=1e-7)
    order = rng.permutation(len(X))
    assert group_reconstruction_errors(
        pca, X[order], groups[order], relative_errors=relative_errors
    ) == pytest.approx(expected, rel=1e-12)


def test_errors_grow_with_the_square_of_the_unit_and_shares_do_not(two_groups):
    X, groups = two_groups
    pca = PCA(2).fit(X)
    scaled = projection(pca.components_, 1e3 * pca.mean_)
    for relative_errors, factor in ((False, 1e6), (True, 1.0)):
        usual, large = (
            group_reconstruction_errors(fitted, data, groups, relative_errors=relative_errors)
            for fitted, data in ((pca, X), (scaled, 1e3 * X))
        )
        assert large == pytest.approx({g: factor * e for g, e in usual.items()}, rel=1e-10)


def test_groups_average_to_the_rows(two_groups):
    X, groups = two_groups
    pca = PCA(2).fit(X)
    squares = row_reconstruction_errors(pca, X)
    errors = group_reconstruction_errors(pca, X, groups)
    sizes = {g: np.sum(groups == g) for g in errors}
    assert sum(sizes[g] * errors[g] for g in errors) / len(X) == pytest.approx(squares.mean())
    assert squares.mean() == pytest.approx(pca.noise_variance_ * 4 * (len(X) - 1) / len(X))


def test_more_components_lose_no_more_and_all_lose_nothing(two_groups):
    X, groups = two_groups
    pca = PCA(6).fit(X)
    last = np.full(len(X), np.inf)
    for r in range(7):
        first = projection(pca.components_[:r], pca.mean_)
        squares = row_reconstruction_errors(first, X)
        assert (squares <= last + 1e-12).all()
        last = squares
        shares = group_reconstruction_errors(first, X, groups, relative_errors=True)
        assert all(0 <= share <= 1 + 1e-12 for share in shares.values())
        if r == 0:
            assert squares == pytest.approx(np.sum((X - X.mean(axis=0)) ** 2, axis=1))
            assert list(shares.values()) == pytest.approx([1, 1])
    assert last == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("relative_errors", [False, True])
@pytest.mark.parametrize("make", [FairPCA, MinMaxPCA])
def test_fitted_attributes_are_the_metrics_on_the_rows_fitted_to(two_groups, make, relative_errors):
    X, groups = two_groups
    w = np.random.default_rng(0).uniform(0.5, 2, len(X))
    fair = make(2, relative_errors=relative_errors).fit(
        X, sensitive_features=groups, sample_weight=w
    )
    errors = group_reconstruction_errors(
        fair, X, groups, sample_weight=w, relative_errors=relative_errors
    )
    assert list(errors.values()) == pytest.approx(fair.group_errors_, rel=1e-9)
    shares = group_reconstruction_errors(fair, X, groups, sample_weight=w, relative_errors=True)
    assert list(shares.values()) == pytest.approx(
        1 - fair.group_explained_variance_ratio_, rel=1e-9
    )


def test_a_group_at_the_mean_loses_no_share():
    X = np.array([[1.0, 2.0, 3.0]] * 4 + [[2.0, 2.0, 3.0], [0.0, 2.0, 3.0]])
    fitted = projection(np.array([[0.0, 1.0, 0.0]]), X.mean(axis=0))
    errors = group_reconstruction_errors(fitted, X, list("aaaabb"), relative_errors=True)
    assert errors == {"a": 0.0, "b": 1.0}


def test_refusals(two_groups):
    X, groups = two_groups
    pca = PCA(2).fit(X)
    with pytest.raises(TypeError, match="components_"):
        group_reconstruction_errors(StandardScaler().fit(X), X, groups)
    with pytest.raises(TypeError, match="StandardScaler"):
        group_reconstruction_errors(make_pipeline(StandardScaler()).fit(X), X, groups)
    with pytest.raises(ValueError, match="not orthonormal"):
        group_reconstruction_errors(FactorAnalysis(2).fit(X), X, groups)
    with pytest.raises(ValueError, match=r"3 features, but PCA was fitted to 6"):
        group_reconstruction_errors(pca, X[:, :3], groups)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = PCA(2).fit(frame)
    with pytest.raises(ValueError, match="another order"):
        group_reconstruction_errors(named, frame[list("fedcba")], groups)
    with pytest.raises(ValueError, match="one group only"):
        reconstruction_disparity(pca, X, ["a"] * len(X))
    bad = X.copy()
    bad[5, 1] = np.inf
    with pytest.raises(ValueError, match="infinity in column 1, first in row 5"):
        group_reconstruction_errors(pca, bad, groups)
    with pytest.raises(ValueError, match="total weight zero"):
        group_reconstruction_errors(pca, X, groups, sample_weight=(groups == "g0").astype(float))
