"""scikit-learn's own checks, and the places where scikit-learn users put a PCA."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from helpers.estimators import GroupsFromRows, groups_of_rows
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairpca import BlindPCA, FairColumns, FairPCA, FairPLS, GroupEraser, GroupMoments, WelfarePCA
from fairpca.baselines import RobustFairPCA
from fairpca.exceptions import quietly


class Supplied(FairPCA):
    """FairPCA as the common checks fit it: without the keyword that says who is who."""

    def fit(self, X, y=None, *, sensitive_features=None, sample_weight=None):
        return self._supply(super().fit, X, sensitive_features, sample_weight)

    def partial_fit(self, X, y=None, *, sensitive_features=None, sample_weight=None):
        return self._supply(super().partial_fit, X, sensitive_features, sample_weight)

    def _supply(self, method, X, groups, sample_weight):
        groups = groups_of_rows(X) if groups is None else groups
        with quietly():
            return method(X, sensitive_features=groups, sample_weight=sample_weight)


class SuppliedBlind(GroupsFromRows, BlindPCA):
    """The same for BlindPCA."""


class SuppliedPLS(GroupsFromRows, FairPLS):
    """The same for FairPLS."""


class SuppliedWelfare(GroupsFromRows, WelfarePCA):
    """The same for WelfarePCA."""


class SuppliedRobust(GroupsFromRows, RobustFairPCA):
    """The same for RobustFairPCA."""


class SuppliedColumns(GroupsFromRows, FairColumns):
    """The same for FairColumns."""


class SuppliedEraser(GroupsFromRows, GroupEraser):
    """The same for GroupEraser."""


@parametrize_with_checks(
    [Supplied(1), SuppliedBlind(1), SuppliedPLS(1), SuppliedColumns(1), SuppliedEraser()]
)
def test_common_checks(estimator, check):
    pass_check(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(
    [
        Supplied(1, constraint="parity"),
        Supplied(0.9),
        Supplied(1, solver="golden"),
        SuppliedWelfare(1),
        SuppliedRobust(1),
    ]
)
def test_common_checks_of_other_configurations(estimator, check):
    pass_check(estimator, check)


def pass_check(estimator, check):
    with quietly():
        check(estimator)


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5)) * [3, 2, 1, 1, 0.5]
    sex = np.where(rng.random(120) < 0.4, "f", "m")
    X[sex == "f"] = X[sex == "f"][:, [1, 2, 0, 3, 4]]
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    return X, sex, y


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_pipeline_without_routing(people):
    X, sex, y = people
    pipeline = make_pipeline(StandardScaler(), FairPCA(2), LogisticRegression())
    pipeline.fit(X, y, fairpca__sensitive_features=sex)
    assert pipeline["fairpca"].groups_.tolist() == ["f", "m"]
    assert pipeline.predict(X).shape == (120,)
    with pytest.raises(TypeError, match=r"fairpca__sensitive_features=groups"):
        clone(pipeline).fit(X, y)


def test_pipeline_with_routing(people, routing):
    X, sex, y = people
    pipeline = make_pipeline(StandardScaler(), FairPCA(2), LogisticRegression())
    pipeline.fit(X, y, sensitive_features=sex)
    expected = FairPCA(2).fit(StandardScaler().fit_transform(X), sensitive_features=sex)
    np.testing.assert_allclose(pipeline["fairpca"].components_, expected.components_, atol=1e-9)
    scores = make_pipeline(FairPCA(2)).fit_transform(X, sensitive_features=sex)
    assert scores.shape == (120, 2)


def test_routing_can_be_declined(people, routing):
    X, sex, y = people
    pipeline = make_pipeline(FairPCA(2).set_fit_request(sensitive_features=False))
    with pytest.raises(TypeError, match="sensitive_features"):
        pipeline.fit(X, y, sensitive_features=sex)


@pytest.mark.parametrize("routed", [False, True])
def test_grid_search(people, routed):
    X, sex, y = people
    pipeline = make_pipeline(StandardScaler(), FairPCA(2), LogisticRegression())
    search = GridSearchCV(pipeline, {"fairpca__n_components": [1, 2, 3]}, cv=3)
    with sklearn.config_context(enable_metadata_routing=routed):
        keyword = "sensitive_features" if routed else "fairpca__sensitive_features"
        search.fit(X, y, **{keyword: sex})
    assert search.best_params_["fairpca__n_components"] in (1, 2, 3)
    alone = GridSearchCV(FairPCA(), {"n_components": [1, 2, 3, 4]}, cv=3)
    with sklearn.config_context(enable_metadata_routing=routed):
        alone.fit(X, sensitive_features=sex)
    assert np.isfinite(alone.cv_results_["mean_test_score"]).all()


def test_cross_validate(people, routing):
    X, sex, y = people
    pipeline = make_pipeline(FairPCA(2), LogisticRegression())
    result = cross_validate(
        pipeline, X, y, cv=4, params={"sensitive_features": sex}, return_estimator=True
    )
    assert len(result["test_score"]) == 4
    for fitted in result["estimator"]:
        assert fitted["fairpca"].group_sizes_.sum() == 90


def test_column_transformer(people, routing):
    X, sex, _ = people
    frame = pd.DataFrame(X, columns=list("abcde"))
    transformer = ColumnTransformer(
        [("fair", FairPCA(2), ["a", "b", "c"]), ("rest", StandardScaler(), ["d", "e"])]
    )
    out = transformer.fit_transform(frame, sensitive_features=sex)
    assert out.shape == (120, 4)
    expected = FairPCA(2).fit(frame[["a", "b", "c"]], sensitive_features=sex)
    np.testing.assert_allclose(out[:, :2], expected.transform(frame[["a", "b", "c"]]), atol=1e-9)


@pytest.mark.parametrize(("library", "form"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output(people, library, form):
    X, sex, _ = people
    frame = form(dict(zip("abcde", X.T, strict=True)))
    fair = FairPCA(2).set_output(transform=library).fit(frame, sensitive_features=sex)
    out = fair.transform(frame)
    assert isinstance(out, form)
    assert list(out.columns) == ["fairpca0", "fairpca1"]
    assert fair.get_feature_names_out().tolist() == ["fairpca0", "fairpca1"]
    assert fair.feature_names_in_.tolist() == list("abcde")
    both = FairPCA(2).set_output(transform=library).fit_transform(frame, sensitive_features=sex)
    assert isinstance(both, form)
    back = fair.inverse_transform(out)
    assert isinstance(back, np.ndarray)
    np.testing.assert_allclose(
        back, fair.inverse_transform(fair.set_output(transform="default").transform(frame))
    )


def test_repr_shows_what_was_chosen():
    assert repr(FairPCA(3, alpha=0.5)) == "FairPCA(alpha=0.5, n_components=3)"


def test_partial_fit_takes_part_in_routing():
    request = FairPCA().get_metadata_routing().partial_fit.requests
    assert request == {"sensitive_features": True, "sample_weight": True, "units": True}
    assert isinstance(GroupMoments(), GroupMoments)
