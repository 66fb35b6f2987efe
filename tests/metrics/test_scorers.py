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


def test_a_search_over_the_rank_is_not_won_in_silence(routing, two_groups):
    X, groups = two_groups
    ranks = {"n_components": [2, X.shape[1]]}
    search = GridSearchCV(FairPCA(), ranks, scoring=disparity_scorer, cv=FOLDS)
    with pytest.warns(UserWarning, match="refit='R2'"):
        search.fit(X, sensitive_features=groups)
    assert search.best_params_ == {"n_components": X.shape[1]}


def test_the_scorer_warns_where_every_group_loses_next_to_nothing(two_groups):
    X, groups = two_groups
    lossless = np.column_stack([X, X @ np.ones(X.shape[1])])  # as many directions as before
    fair = FairPCA(X.shape[1]).fit(lossless, sensitive_features=groups)
    with pytest.warns(UserWarning, match="loses next to nothing"):
        assert disparity_scorer(fair, lossless, sensitive_features=groups) == pytest.approx(0)
    one_group_loses = lossless.copy()
    one_group_loses[groups == groups[0], 0] += 1.0
    assert disparity_scorer(fair, one_group_loses, sensitive_features=groups) < 0


def test_without_routing_the_message_says_what_to_do(two_groups):
    X, groups = two_groups
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    with pytest.raises(TypeError, match=r"sensitive_features is missing.*enable_metadata_routing"):
        disparity_scorer(fair, X)
    assert repr(disparity_scorer) == "disparity_scorer"
