"""GroupEraser: least change after which no linear model can tell the groups apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import sqrtm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import fairpca
from fairpca import GroupEraser, GroupMoments


def people(seed=0, n=600, d=6, k=3):
    rng = np.random.default_rng(seed)
    groups = rng.choice(k, n, p=np.arange(1, k + 1) / (k * (k + 1) / 2))
    means = 2 * rng.standard_normal((k, d))
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + means[groups] + 5
    y = (X[:, 0] + rng.standard_normal(n) > np.median(X[:, 0])).astype(int)
    return X, np.array(list("abcdef"))[groups], y


def leace(X, groups, weights=None):
    """The closed form of Belrose et al. (2023) from cross-covariances, for full rank."""
    weights = np.ones(len(X)) / len(X) if weights is None else weights / weights.sum()
    Z = (groups[:, None] == np.unique(groups)).astype(float)
    mean = weights @ X
    centred, Z = X - mean, Z - weights @ Z
    C, cross = centred.T @ (weights[:, None] * centred), centred.T @ (weights[:, None] * Z)
    W = np.linalg.inv(np.real(sqrtm(C)))
    half = W @ cross
    projector = half @ np.linalg.pinv(half, rcond=1e-10)  # the columns of Z sum to zero
    return X - centred @ (np.linalg.inv(W) @ projector @ W).T


# concept-erasure 0.2.4 itself, LeaceEraser.fit(x, z, shrinkage=False, svd_tol=1e-6) in float64 with
# one-hot z, on the check-up data: rows differ from ours by at most 4e-13 standard deviations with
# the two age groups, and 1.2e-12 with the six of ethnicity.
@pytest.mark.parametrize("k", [2, 3, 5])
def test_it_is_leace(k):
    X, groups, _ = people(k=k)
    eraser = GroupEraser().fit(X, sensitive_features=groups)
    np.testing.assert_allclose(eraser.transform(X), leace(X, groups), atol=1e-10 * np.abs(X).max())
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X))
    eraser.fit(X, sensitive_features=groups, sample_weight=weights)
    np.testing.assert_allclose(eraser.transform(X), leace(X, groups, weights), atol=1e-9)


def test_group_means_are_equal_and_no_linear_model_finds_the_group():
    X, groups, _ = people()
    eraser = GroupEraser().fit(X, sensitive_features=groups)
    clean = eraser.transform(X)
    means = np.array([clean[groups == g].mean(axis=0) for g in eraser.groups_])
    np.testing.assert_allclose(means - X.mean(axis=0), 0, atol=1e-9)
    assert eraser.mean_gap_ <= 1e-12 * eraser.raw_mean_gap_
    guess = LogisticRegression(C=1e6, max_iter=10_000).fit(clean, groups).predict_proba(clean)
    shares = eraser.group_sizes_ / len(X)
    np.testing.assert_allclose(guess, np.tile(shares, (len(X), 1)), atol=1e-3)


def test_the_change_is_the_least_of_those_tried():
    X, groups, _ = people(k=2)
    eraser = GroupEraser().fit(X, sensitive_features=groups)
    changes = (eraser.transform(X) - X) ** 2
    assert np.mean(changes / X.var(axis=0)) == pytest.approx(eraser.change_)
    # An orthogonal projection hides the means as well, and moves rows further.
    apart = np.subtract(*(X[groups == g].mean(axis=0) for g in eraser.groups_))
    apart /= np.linalg.norm(apart)
    assert changes.sum(axis=1).mean() <= np.mean(((X - X.mean(axis=0)) @ apart) ** 2)


@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0])
def test_a_part_of_the_erasure_leaves_the_rest_of_every_gap(strength):
    X, groups, _ = people()
    eraser = GroupEraser(strength=strength).fit(X, sensitive_features=groups)
    before = np.array([X[groups == g].mean(axis=0) for g in eraser.groups_]) - X.mean(axis=0)
    part = eraser.transform(X)
    after = np.array([part[groups == g].mean(axis=0) for g in eraser.groups_]) - X.mean(axis=0)
    np.testing.assert_allclose(after, (1 - strength) * before, atol=1e-9)
    assert eraser.mean_gap_ == pytest.approx((1 - strength) ** 2 * eraser.raw_mean_gap_)


def test_equalised_odds_hides_means_within_each_class():
    X, groups, y = people()
    eraser = GroupEraser(notion="equalized_odds").fit(X, y, sensitive_features=groups)
    clean = eraser.transform(X)
    for outcome in (0, 1):
        means = [clean[(groups == g) & (y == outcome)].mean(axis=0) for g in eraser.groups_]
        np.testing.assert_allclose(means - means[0], 0, atol=1e-9)
    eraser = GroupEraser(notion="equal_opportunity").fit(X, y, sensitive_features=groups)
    clean = eraser.transform(X)
    means = [clean[(groups == g) & (y == 1)].mean(axis=0) for g in eraser.groups_]
    np.testing.assert_allclose(means - means[0], 0, atol=1e-9)
    with pytest.raises(ValueError, match="y"):
        GroupEraser(notion="equalized_odds").fit(X, sensitive_features=groups)


def test_units_do_not_matter():
    X, groups, _ = people()
    units = np.geomspace(1e-4, 1e4, X.shape[1])
    raw = GroupEraser().fit(X, sensitive_features=groups).transform(X)
    scaled = GroupEraser().fit(X * units, sensitive_features=groups).transform(X * units)
    np.testing.assert_allclose(scaled / units, raw, atol=1e-8)


def test_singular_data():
    X, groups, _ = people(d=4)
    X = np.hstack([X, X[:, :1] + X[:, 1:2], np.ones((len(X), 1))])
    eraser = GroupEraser().fit(X, sensitive_features=groups)
    clean = eraser.transform(X)
    np.testing.assert_allclose(clean[:, 4], clean[:, 0] + clean[:, 1], atol=1e-8)
    np.testing.assert_allclose(clean[:, 5], 1)
    means = np.array([clean[groups == g].mean(axis=0) for g in eraser.groups_])
    np.testing.assert_allclose(means - means[0], 0, atol=1e-8)


def test_few_rows_of_very_many_columns():
    rng = np.random.default_rng(0)  # matrices of all columns would not fit into memory
    X, groups = rng.standard_normal((12, 100_000)), np.arange(12) % 2
    X[groups == 1] += rng.standard_normal(100_000)
    eraser = GroupEraser().fit(X, sensitive_features=groups)
    clean = eraser.transform(X)
    np.testing.assert_allclose(clean[groups == 0].mean(axis=0), X.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(clean[groups == 1].mean(axis=0), X.mean(axis=0), atol=1e-9)
    assert np.mean((clean - X) ** 2 / X.var(axis=0)) == pytest.approx(eraser.change_)


def test_equal_groups_are_left_alone():
    X, _, _ = people()
    twice, groups = np.vstack([X, X]), np.repeat(["a", "b"], len(X))
    eraser = GroupEraser().fit(twice, sensitive_features=groups)
    np.testing.assert_allclose(eraser.transform(X), X)
    assert eraser.change_ == 0


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_means_that_differ_by_rounding_are_not_erased(shift):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 5)) * [3, 2, 1, 0.5, 0.2] + shift * rng.normal(size=5)
    three = np.vstack([X, X[::-1], X + np.array([1, 0, 0, 1, 0])])
    same = GroupEraser().fit(np.vstack([X, X[::-1]]), sensitive_features=np.repeat([0, 1], 60))
    assert same.detectors_.shape == (0, 5)
    assert same.change_ == same.raw_mean_gap_ == 0.0
    two_alike = GroupEraser().fit(three, sensitive_features=np.repeat([0, 1, 2], 60))
    assert len(two_alike.detectors_) == 1


def test_names_and_frames_stay():
    X, groups, _ = people()
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    eraser = GroupEraser().set_output(transform="pandas").fit(frame, sensitive_features=groups)
    clean = eraser.transform(frame)
    assert list(clean.columns) == list("uvwxyz")
    assert clean.shape == frame.shape


def test_moments_and_blocks_give_the_same():
    X, groups, _ = people()
    whole = GroupEraser().fit(X, sensitive_features=groups).transform(X)
    by_moments = GroupEraser().fit(GroupMoments.from_data(X, groups)).transform(X)
    by_blocks = GroupEraser()
    for rows in (slice(0, 100), slice(100, None)):
        by_blocks.partial_fit(X[rows], sensitive_features=groups[rows])
    np.testing.assert_allclose(by_moments, whole, atol=1e-8)
    np.testing.assert_allclose(by_blocks.transform(X), whole, atol=1e-8)


@pytest.mark.parametrize("strength", [-0.1, 1.1, float("nan"), "all", True, None])
def test_bad_strengths(strength):
    X, groups, _ = people()
    with pytest.raises(ValueError, match="strength"):
        GroupEraser(strength=strength).fit(X, sensitive_features=groups)


def test_bad_groups_and_columns():
    X, groups, _ = people()
    with pytest.raises(ValueError, match="one group only") as refused:
        GroupEraser().fit(X, sensitive_features=np.zeros(len(X)))
    assert "PCA" not in str(refused.value)  # which erases nothing
    with pytest.raises(TypeError, match="sensitive_features"):
        GroupEraser().fit(X)
    with pytest.raises(ValueError, match="features"):
        GroupEraser().fit(X, sensitive_features=groups).transform(X[:, :3])


def test_in_a_pipeline_transform_needs_no_groups():
    X, groups, y = people()
    pipeline = make_pipeline(GroupEraser(), LogisticRegression(max_iter=1000))
    pipeline.fit(X, y, grouperaser__sensitive_features=groups)
    assert pipeline.predict(X).shape == y.shape


def test_saved_and_loaded(tmp_path):
    pytest.importorskip("safetensors")
    X, groups, _ = people()
    eraser = GroupEraser().fit(X, sensitive_features=groups)
    eraser.save(tmp_path / "eraser.safetensors")
    again = fairpca.load_model(tmp_path / "eraser.safetensors")
    np.testing.assert_array_equal(again.transform(X), eraser.transform(X))


def test_rows_that_are_all_alike_stay_as_they_are():
    X, groups = np.ones((20, 3)), np.arange(20) % 2
    eraser = GroupEraser().fit(X, sensitive_features=groups)
    assert (eraser.change_, eraser.mean_gap_, len(eraser.detectors_)) == (0.0, 0.0, 0)
    np.testing.assert_array_equal(eraser.transform(X), X)
