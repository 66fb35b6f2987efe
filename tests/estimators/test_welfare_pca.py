"""WelfarePCA."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from helpers.many_groups import several
from helpers.worst_off import made
from sklearn.decomposition import PCA

from fairpca import DualityGapWarning, GroupMoments, MinMaxPCA, WelfarePCA, load_model


@pytest.fixture
def moments():
    return GroupMoments.from_data(*several())


def test_no_aversion_is_pca_of_groups_of_one_size():
    # Rows of each group repeated until all groups are the same size, groups centred on themselves.
    X, groups = several((60, 40, 24), d=5)
    repeated, labels = [], []
    for g, times in (("g0", 2), ("g1", 3), ("g2", 5)):
        rows = X[groups == g] - X[groups == g].mean(axis=0)
        repeated.append(np.tile(rows, (times, 1)))
        labels += [g] * len(repeated[-1])
    pca = PCA(2).fit(np.vstack(repeated))
    fair = WelfarePCA(2, inequality_aversion=0, center="group").fit(X, sensitive_features=groups)
    projector = fair.components_.T @ fair.components_
    np.testing.assert_allclose(projector, pca.components_.T @ pca.components_, atol=1e-10)
    assert fair.status_ == "welfare at its best"


@pytest.mark.parametrize("d", [5, 200])  # rows multiplied, and rows kept
def test_the_balanced_centre_is_that_of_multi_batch_pca(d):
    # batchelor's multiBatchPCA: rows minus the mean of the batch means, each batch over its size.
    X, groups = several((60, 25, 9), d=d)
    X += 3.0 * (groups == "g2")[:, None]
    batches = [X[groups == g] for g in ("g0", "g1", "g2")]
    center = np.mean([batch.mean(axis=0) for batch in batches], axis=0)
    stacked = np.vstack([(batch - center) / np.sqrt(len(batch)) for batch in batches])
    V = np.linalg.svd(stacked, full_matrices=False)[2][:2]
    fair = WelfarePCA(2, inequality_aversion=0, center="balanced")
    fair.fit(X, sensitive_features=groups)
    np.testing.assert_allclose(fair.components_.T @ fair.components_, V.T @ V, atol=1e-9)
    kept = [(((batch - center) @ V.T) ** 2).sum() / len(batch) for batch in batches]
    np.testing.assert_allclose(fair.group_explained_variance_, kept)
    assert fair.welfare_ == pytest.approx(np.mean(kept))
    # A group that is left out of the welfare does not count in the mean of the means.
    options = {"min_group_size": 10, "small_groups": "ignore"}
    fair.set_params(inequality_aversion=1, **options).fit(X, sensitive_features=groups)
    center = np.mean([batch.mean(axis=0) for batch in batches[:2]], axis=0)
    for batch, kept in zip(batches[:2], fair.group_explained_variance_[:2], strict=True):
        assert kept == pytest.approx(
            (((batch - center) @ fair.components_.T) ** 2).sum() / len(batch)
        )


@pytest.mark.parametrize("center", ["overall", "group"])
@pytest.mark.parametrize("relative_errors", [False, True])
def test_infinite_aversion_is_the_least_variance(moments, center, relative_errors):
    options = {"center": center, "relative_errors": relative_errors, "tol": 1e-9}
    fair = WelfarePCA(2, inequality_aversion=inf, **options).fit(moments)
    least = MinMaxPCA(2, criterion="variance", **options).fit(moments)
    np.testing.assert_array_equal(fair.components_, least.components_)
    assert fair.welfare_ == fair.group_explained_variance_.min()


@pytest.mark.parametrize("center", ["overall", "group"])
@pytest.mark.parametrize("relative_errors", [False, True])
@pytest.mark.parametrize("make", [several, made])
def test_attributes_say_what_the_groups_keep(make, center, relative_errors):
    X, groups = make()
    fair = WelfarePCA(2, inequality_aversion=2, center=center, relative_errors=relative_errors)
    fair.fit(X, sensitive_features=groups)
    overall = X.mean(axis=0)
    for g, kept in zip(fair.groups_, fair.group_explained_variance_, strict=True):
        rows = X[groups == g]
        Z = rows - (rows.mean(axis=0) if center == "group" else overall)
        total = (Z**2).sum() if relative_errors else len(Z)
        assert kept == pytest.approx((fair.transform(Z + fair.mean_) ** 2).sum() / total)
    assert fair.welfare_ == pytest.approx(1 / (1 / fair.group_explained_variance_).mean())
    assert fair.duality_gap_ < 1e-9 * fair.welfare_


def test_more_aversion_never_leaves_the_worst_off_group_with_less(moments):
    fits = [
        WelfarePCA(2, inequality_aversion=a, tol=1e-9).fit(moments)
        for a in (0, 0.5, 1, 2, 8, 64, inf)
    ]
    least = np.array([fair.group_explained_variance_.min() for fair in fits])
    mean = np.array([fair.group_explained_variance_.mean() for fair in fits])
    assert (np.diff(mean) < 1e-9).all()
    assert least[0] < least[-1]
    assert least.max() <= least[-1] + 1e-9


def test_for_nash_the_scale_of_a_group_does_not_matter():
    X, groups = several((60, 40, 24), d=5)
    for g, factor in (("g0", 1e-3), ("g2", 50.0)):
        rows = groups == g
        scaled = X.copy()
        scaled[rows] = X[rows].mean(axis=0) + factor * (X[rows] - X[rows].mean(axis=0))
        first, second = (
            WelfarePCA(2, center="group").fit(Z, sensitive_features=groups) for Z in (X, scaled)
        )
        np.testing.assert_allclose(
            first.components_.T @ first.components_,
            second.components_.T @ second.components_,
            atol=1e-6,
        )


def test_an_open_gap_is_said():
    X, groups = several((60, 50, 40, 30, 20, 20), d=5, seed=4, apart=2.0)
    fair = WelfarePCA(1, inequality_aversion=30)
    with pytest.warns(DualityGapWarning, match="may be worse"):
        fair.fit(X, sensitive_features=groups)
    assert fair.status_ == "most welfare found, not proven"
    assert fair.duality_gap_ > 1e-6


def test_a_model_file_keeps_infinite_aversion(moments, tmp_path):
    pytest.importorskip("safetensors")
    fair = WelfarePCA(2, inequality_aversion=inf).fit(moments)
    fair.save(tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    assert loaded.inequality_aversion == inf
    np.testing.assert_array_equal(loaded.components_, fair.components_)
    assert loaded.welfare_ == fair.welfare_


@pytest.mark.parametrize("aversion", [1e6, 1e8, 1e12, 1e300])
@pytest.mark.parametrize("sizes", [(60, 40), (60, 40, 24)])
def test_a_very_large_aversion_is_nearly_infinite(aversion, sizes):
    X, groups = several(sizes, d=5)
    least = WelfarePCA(2, inequality_aversion=inf).fit(X, sensitive_features=groups)
    fair = WelfarePCA(2, inequality_aversion=aversion).fit(X, sensitive_features=groups)
    assert fair.welfare_ == pytest.approx(least.welfare_, rel=1e-5)
    assert fair.duality_gap_ < 1e-6 * fair.welfare_


@pytest.mark.parametrize("aversion", [0, 1, 1e6, inf])
@pytest.mark.parametrize("sizes", [(60, 40), (60, 40, 24)])
def test_a_group_whose_rows_are_all_alike_does_not_decide(aversion, sizes):
    X, groups = several(sizes, d=5)
    X[groups == "g0"] = X[groups == "g0"][0]
    others = groups != "g0"
    fair = WelfarePCA(2, inequality_aversion=aversion, center="group")
    kept = fair.fit(X, sensitive_features=groups).group_explained_variance_
    assert kept[0] == 0
    if len(sizes) == 2:
        best = PCA(2).fit(X[others]).explained_variance_.sum() * (1 - 1 / others.sum())
        assert kept[1] == pytest.approx(best)
    else:
        alone = WelfarePCA(2, inequality_aversion=aversion, center="group")
        alone.fit(X[others], sensitive_features=groups[others])
        np.testing.assert_allclose(kept[1:], alone.group_explained_variance_, rtol=1e-5)
    assert fair.welfare_ > 0


@pytest.mark.parametrize("aversion", [-0.1, "much", float("nan")])
def test_what_is_not_an_aversion_is_refused(moments, aversion):
    with pytest.raises(ValueError, match="inequality_aversion"):
        WelfarePCA(2, inequality_aversion=aversion).fit(moments)
