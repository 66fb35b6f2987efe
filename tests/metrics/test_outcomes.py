"""What a classifier makes of scores, against fairlearn's MetricFrame."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.data import make_groups
from sklearn.decomposition import PCA
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from fairpca import FairPCA, FairPLS
from fairpca.metrics import classifier_outcomes


def people(n=(120, 90)):
    X, groups = make_groups(n, d=6)
    noise = np.random.default_rng(0).normal(size=len(X))
    return X, groups, np.where(X[:, 0] + noise > X[:, 0].mean(), "yes", "no")


def test_figures_are_those_of_fairlearn():
    pytest.importorskip("fairlearn", reason="needs the outcomes extra")
    X, groups, y = people()
    for result in classifier_outcomes(PCA(2), X, y, groups, n_boot=5, random_state=0):
        frame = result.to_metric_frame()
        for name in ("selection_rate", "true_positive_rate", "false_positive_rate"):
            for group in ("g0", "g1"):
                ours = result.by_group[name][group].value
                assert ours == pytest.approx(frame.by_group.loc[group, name])
            assert result.overall[name] == pytest.approx(frame.overall[name])
            assert result.difference[name].value == pytest.approx(frame.difference()[name])
            assert result.ratio[name].value == pytest.approx(frame.ratio()[name])
        accuracy = result.to_metric_frame(accuracy_score).by_group
        assert result.by_group["accuracy"]["g0"].value == pytest.approx(accuracy["g0"])
        positive, chance, labels = result.data
        for group in ("g0", "g1"):
            here = labels == group
            auc = roc_auc_score(positive[here], chance[here])
            assert result.by_group["auc"][group].value == pytest.approx(auc)
            overrated = np.mean(chance[here]) - np.mean(positive[here])
            assert result.by_group["calibration"][group].value == pytest.approx(overrated)


def test_intervals_hold_the_figures():
    X, groups, y = people()
    for result in classifier_outcomes(PCA(2), X, y, groups, random_state=0):
        for estimates in result.by_group.values():
            for value, low, high in estimates.values():
                assert low < value < high
        assert "calibration" not in result.ratio


def test_a_target_changes_what_is_kept():
    X, groups, y = people()
    estimator = FairPLS(2, notion="demographic_parity")
    scores, pca, features = classifier_outcomes(estimator, X, y, groups, n_boot=5, random_state=0)
    assert [scores.name, pca.name, features.name] == ["scores", "pca", "features"]
    assert scores.difference["selection_rate"].value < pca.difference["selection_rate"].value
    assert not hasattr(estimator, "components_")


def test_a_fitted_estimator_is_used_as_it_is():
    X, groups, y = people()
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    before = fair.components_.copy()
    folds = StratifiedKFold(3)
    result = classifier_outcomes(fair, X, y, groups, cv=folds, n_boot=2, random_state=0)[0]
    np.testing.assert_array_equal(fair.components_, before)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    of_frame = FairPCA(2).fit(frame, sensitive_features=groups)
    again = classifier_outcomes(of_frame, frame, y, groups, cv=folds, n_boot=2, random_state=0)[0]
    assert again.overall == pytest.approx(result.overall)


def test_several_classes_need_to_know_the_positive_one():
    X, groups, y = people()
    three = np.where(np.arange(len(y)) % 3 == 0, "maybe", y)
    with pytest.raises(ValueError, match="pass pos_label='yes'"):
        classifier_outcomes(PCA(2), X, three, groups)
    result = classifier_outcomes(PCA(2), X, three, groups, pos_label="yes", n_boot=2)[0]
    assert result.data[0].sum() == np.sum(three == "yes")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y, g: (np.full(len(y), "no"), g), "one class only"),
        (lambda y, g: (np.where(g == "g1", "no", y), g), "group 'g1' has rows of one class only"),
        (lambda y, g: (y, np.full(len(y), "all")), "one group only"),
        (lambda y, g: (np.linspace(0, 1, len(y)), g), "numbers that are no classes"),
    ],
    ids=["class", "class of a group", "group", "numbers"],
)
def test_refusals(change, message):
    X, groups, y = people()
    y, groups = change(y, groups)
    with pytest.raises(ValueError, match=message):
        classifier_outcomes(PCA(2), X, y, groups)
    with pytest.raises(ValueError, match="cv=200 folds need"):
        classifier_outcomes(PCA(2), *people()[::2], people()[1], cv=200)
