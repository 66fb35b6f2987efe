"""The scorer in scikit-learn's cross-validation and searches."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA
from fairpca.metrics import disparity_scorer, reconstruction_disparity

FOLDS = KFold(3, shuffle=True, random_state=0)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_validation_passes_groups_and_weights_by_itself(routing, two_groups, weighted):
    X, groups = two_groups
    params = {"sensitive_features": groups}
    if weighted:
        params["sample_weight"] = np.random.default_rng(0).uniform(0.5, 2, len(X))
    scores = cross_validate(FairPCA(2), X, scoring=disparity_scorer, cv=FOLDS, params=params)
    expected = []
    for train, test in FOLDS.split(X):
        fair = FairPCA(2).fit(X[train], **{name: v[train] for name, v in params.items()})
        held_out = {name: v[test] for name, v in params.items()}
        expected.append(-reconstruction_disparity(fair, X[test], **held_out))
    assert scores["test_score"] == pytest.approx(expected)


def test_searches_over_pipelines_by_several_scores(routing, two_groups):
    X, groups = two_groups
    search = GridSearchCV(
        make_pipeline(StandardScaler(), FairPCA(2), LogisticRegression()),
        {"fairpca__alpha": [1.0, None]},
        scoring={"fairness": disparity_scorer, "accuracy": "accuracy"},
        refit="fairness",
        cv=FOLDS,
    ).fit(X, X[:, 0] > 0, sensitive_features=groups)
    assert search.best_params_ == {"fairpca__alpha": None}
    assert (search.cv_results_["mean_test_fairness"] < 0).all()
    assert (search.cv_results_["mean_test_accuracy"] > 0.5).all()


def test_without_routing_the_message_says_what_to_do(two_groups):
    X, groups = two_groups
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"sensitive_features is missing.*enable_metadata_routing"):
        disparity_scorer(fair, X)
    assert repr(disparity_scorer) == "disparity_scorer"
