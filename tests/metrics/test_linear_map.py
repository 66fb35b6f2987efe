"""One map for every fitted model: its scores, the rows rebuilt from them, and their errors."""

import numpy as np
import pytest
from helpers.data import make_groups
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import BlindPCA, FairColumns, FairPCA, GroupMoments
from fairpca._linear_map import fitted_map

MODELS = {
    "FairPCA": FairPCA(2),
    "standardised": FairPCA(3, standardize=True),
    "standardised and whitened": FairPCA(2, standardize=True, whiten=True),
    "BlindPCA": BlindPCA(2, standardize=True),
    "PCA": PCA(2),
    "whitened": PCA(2, whiten=True),
    "IncrementalPCA": IncrementalPCA(2),
    "TruncatedSVD": TruncatedSVD(2, algorithm="arpack"),
    "pipeline": make_pipeline(StandardScaler(), PCA(3)),
}


@pytest.fixture
def data():
    X, groups = make_groups((90, 60, 70), d=6)
    return X * [1, 10, 100, 1, 1, 3] + 5.0, groups


def fitted(model, X, groups):
    given = {"sensitive_features": groups} if hasattr(model, "min_group_size") else {}
    return model.fit(X, **given)


@pytest.mark.parametrize("name", MODELS)
def test_scores_and_rebuilt_rows_are_those_of_the_model(name, data):
    X, groups = data
    model = fitted(MODELS[name], X, groups)
    found = fitted_map(model)
    seen = found.arriving(X)
    last = model[-1] if name == "pipeline" else model
    np.testing.assert_allclose(found.map.scores(seen), model.transform(X), rtol=1e-8, atol=1e-8)
    rebuilt = last.inverse_transform(model.transform(X))
    np.testing.assert_allclose(found.map.rebuilt(found.map.scores(seen)), rebuilt, atol=1e-7)
    errors, _ = found.map.errors(seen)
    expected = (((seen - rebuilt) / found.map.units) ** 2).sum(axis=1)
    np.testing.assert_allclose(errors, expected, atol=1e-9 * expected.max())
    np.testing.assert_allclose(np.linalg.norm(found.map.directions, axis=1), 1)


@pytest.mark.parametrize("model", [FairPCA(2, standardize=True), FairColumns(2, standardize=True)])
@pytest.mark.parametrize("wide", [False, True])
def test_errors_of_moments_are_those_of_their_rows(model, wide, data):
    X, groups = data
    if wide:
        X, groups = np.random.default_rng(0).normal(size=(30, 250)) + 3, groups[::7][:30]
    if wide and isinstance(model, FairColumns):
        model = FairColumns(2, standardize=True, max_subsets=0)
    own = fitted_map(model.fit(X, sensitive_features=groups)).map
    errors, distances = own.errors(X)
    summed, away = own.group_errors(GroupMoments.from_data(X, groups).group_sums())
    for g, label in enumerate(np.unique(groups)):
        assert summed[g] == pytest.approx(errors[groups == label].sum(), rel=1e-9)
        assert away[g] == pytest.approx(distances[groups == label].sum(), rel=1e-9)


def test_the_map_of_chosen_columns_keeps_them_as_they_are(data):
    X, groups = data
    fair = FairColumns(3, standardize=True).fit(X, sensitive_features=groups)
    own = fitted_map(fair).map
    rebuilt = own.rebuilt(own.scores(X))
    kept = fair.get_support()
    np.testing.assert_allclose(rebuilt[:, kept], X[:, kept])
    np.testing.assert_allclose(rebuilt, fair.inverse_transform(X[:, kept]))


def test_columns_in_another_order_are_refused(data):
    pandas = pytest.importorskip("pandas")
    X, groups = data
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    fair = FairPCA(2, standardize=True).fit(frame, sensitive_features=groups)
    with pytest.raises(ValueError, match="the same names in another order"):
        fitted_map(fair).arriving(frame[list("fedcba")])
