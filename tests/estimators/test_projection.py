"""What a fitted projection has of scikit-learn's PCA: whitening, covariance, singular values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.command import run
from helpers.data import make_groups
from scipy.sparse import csr_array
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA

from fairpca import BlindPCA, FairPCA, MinMaxPCA, WelfarePCA, load_model
from fairpca.baselines import RobustFairPCA, SubsetFairPCA
from fairpca.metrics import group_reconstruction_errors

X, GROUPS = make_groups()
WHITENING = [BlindPCA, FairPCA, MinMaxPCA, RobustFairPCA, SubsetFairPCA, WelfarePCA]


def fitted(cls=FairPCA, rows=X, **params):
    return cls(3, **params).fit(rows, sensitive_features=GROUPS)


@pytest.mark.parametrize("whiten", [False, True])
def test_alpha_one_is_scikit_learns_pca(whiten):
    pca = PCA(3, whiten=whiten, svd_solver="full").fit(X)
    ours = fitted(alpha=1, whiten=whiten)
    np.testing.assert_allclose(ours.singular_values_, pca.singular_values_)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(pca.transform(X)), atol=1e-12)
    np.testing.assert_allclose(
        ours.inverse_transform(ours.transform(X)), pca.inverse_transform(pca.transform(X))
    )
    plain = PCA(3, svd_solver="full").fit(X)  # scikit-learn's covariance is wrong when it whitens
    np.testing.assert_allclose(ours.get_covariance(), plain.get_covariance())
    np.testing.assert_allclose(ours.get_precision(), plain.get_precision())
    assert ours.score(X) == pytest.approx(pca.score(X) if not whiten else plain.score(X))


@pytest.mark.parametrize("cls", WHITENING)
def test_whitened_scores_have_variance_one_and_the_projection_stays(cls):
    white, plain = fitted(cls, whiten=True), fitted(cls)
    np.testing.assert_allclose(np.cov(white.transform(X).T), np.eye(3), atol=1e-10)
    np.testing.assert_array_equal(white.components_, plain.components_)
    np.testing.assert_allclose(
        white.inverse_transform(white.transform(X)), plain.inverse_transform(plain.transform(X))
    )
    assert group_reconstruction_errors(white, X, GROUPS) == pytest.approx(
        dict(zip(plain.groups_, plain.group_errors_, strict=True))
    )


def test_norms_of_the_scores_are_the_singular_values():
    fair = fitted()
    np.testing.assert_allclose(np.linalg.norm(fair.transform(X), axis=0), fair.singular_values_)
    assert not hasattr(FairPCA(3), "singular_values_")
    assert FairPCA(3).partial_fit(X, sensitive_features=GROUPS).singular_values_ == pytest.approx(
        fair.singular_values_
    )


@pytest.mark.parametrize("n_components", [3, 6])
def test_covariance_is_that_of_the_likelihood(n_components):
    fair = FairPCA(n_components).fit(X, sensitive_features=GROUPS)
    gaussian = multivariate_normal(fair.mean_, fair.get_covariance())
    np.testing.assert_allclose(fair.score_samples(X), gaussian.logpdf(X))
    np.testing.assert_allclose(
        fair.get_precision() @ fair.get_covariance(), np.eye(6), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("n_components", [3, 6])
def test_covariance_without_an_inverse_is_said_to_be_so(n_components):
    flat = X[:, :3] @ np.random.default_rng(0).normal(size=(3, 6))  # of rank 3
    fair = FairPCA(n_components, whiten=True).fit(flat, sensitive_features=GROUPS)
    np.testing.assert_allclose(fair.get_covariance(), np.cov(flat.T), atol=1e-9)
    with pytest.raises(ValueError, match=r"no inverse: with \d of 6 .*pinv"):
        fair.get_precision()
    scores = fair.transform(flat)
    np.testing.assert_allclose(scores[:, 3:], 0, atol=1e-6)  # nothing is blown up
    np.testing.assert_allclose(fair.inverse_transform(scores), flat, atol=1e-9)


@pytest.mark.parametrize(
    ("rows", "r"),
    [
        (X, 3),
        (X * 1e-12, 3),
        (X * 1e12, 6),
        (X * 1e-20, 3),  # deviations below the rounding of 1
        (X * [1, 1, 1, 0, 0, 0], 4),  # a score without variance
        (np.hstack([X, X]) + 1e3, 7),
    ],
)
@pytest.mark.parametrize("standardize", [False, True])
def test_whitened_scores_of_scikit_learn_are_ours_or_refused(rows, r, standardize):
    fair = FairPCA(r, whiten=True, standardize=standardize)
    fair = fair.fit(rows, sensitive_features=GROUPS)
    deviations = np.sqrt(fair.explained_variance_)
    if deviations.min() > 1e-6 * deviations.max() and deviations.min() > 1e-15:
        theirs = fair.to_sklearn()
        scores = theirs.transform(rows)
        np.testing.assert_allclose(scores, fair.transform(rows), atol=1e-8)
        np.testing.assert_allclose(
            theirs.inverse_transform(scores), fair.inverse_transform(scores), rtol=1e-9
        )
    else:
        with pytest.raises(ValueError, match="cannot whiten score"):
            fair.to_sklearn()


def test_whitening_reaches_every_way_out(tmp_path):
    pytest.importorskip("safetensors")
    pytest.importorskip("pyarrow")
    names = [f"c{j}" for j in range(6)]
    frame = pd.DataFrame(X, columns=names)
    white = fitted(rows=frame, whiten=True)
    scores = white.transform(frame)
    np.testing.assert_allclose(white.to_sklearn().transform(frame), scores)
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_allclose(white.transform(csr_array(X)), scores, atol=1e-12)
    white.save(tmp_path / "white.safetensors")
    again = load_model(tmp_path / "white.safetensors")
    np.testing.assert_array_equal(again.transform(frame), scores)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    pytest.importorskip("click")
    run("transform", "white.safetensors", "rows.csv", "-o", "again.csv", cwd=tmp_path)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "again.csv"), scores)
    streamed = FairPCA(3, whiten=True)
    for rows in np.array_split(np.arange(len(X)), 3):
        streamed.partial_fit(frame.iloc[rows], sensitive_features=GROUPS[rows])
    np.testing.assert_allclose(streamed.transform(frame), scores, atol=1e-9)


def test_whiten_must_be_a_yes_or_no():
    with pytest.raises(ValueError, match="'whiten' parameter of FairPCA must be"):
        fitted(whiten="yes")
