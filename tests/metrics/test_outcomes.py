"""Rates of a classifier on scores, against fairlearn's MetricFrame."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.data import make_groups
from scipy.sparse import csr_array
from scipy.stats import binomtest, norm
from sklearn import config_context
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, KernelPCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from fairpca import FairPCA, FairPLS
from fairpca.metrics import classifier_outcomes
from fairpca.metrics.classifiers import rates_by_group, selection

AB = np.array(["a", "b"])


def people(n=(120, 90)):
    X, groups = make_groups(n, d=6)
    noise = np.random.default_rng(0).normal(size=len(X))
    return X, groups, np.where(X[:, 0] + noise > X[:, 0].mean(), "yes", "no")


def test_figures_are_those_of_fairlearn():
    fairlearn = pytest.importorskip("fairlearn.metrics")
    X, groups, y = people()
    rates = ("selection_rate", "true_positive_rate", "false_positive_rate")
    metrics = {name: getattr(fairlearn, name) for name in rates} | {"accuracy": accuracy_score}
    for result in classifier_outcomes(PCA(2), X, groups, y, random_state=0):
        positive, chance, labels = result.data
        guessed = (chance >= 0.5).astype(int)
        frame = fairlearn.MetricFrame(
            metrics=metrics, y_true=positive, y_pred=guessed, sensitive_features=labels
        )
        for name in metrics:
            for group in ("g0", "g1"):
                ours = result.by_group[name][group].value
                assert ours == pytest.approx(frame.by_group.loc[group, name])
            assert result.overall[name] == pytest.approx(frame.overall[name])
            assert result.difference[name].value == pytest.approx(frame.difference()[name])
        assert result.base_rate == pytest.approx(np.mean(y == "yes"))
        for group in ("g0", "g1"):
            here = labels == group
            auc = roc_auc_score(positive[here], chance[here])
            assert result.by_group["auc"][group].value == pytest.approx(auc)


def test_intervals_of_rates_are_wilsons():
    chosen = np.arange(40) % 4 == 0
    positive = np.arange(40) < 20
    found = rates_by_group("x", positive, chosen * 1.0, np.arange(40) % 2, np.arange(2), 0.9, True)
    for group, estimate in found.by_group["accuracy"].items():
        right = (chosen == positive)[group::2]
        low, high = binomtest(right.sum(), len(right)).proportion_ci(0.9, method="wilson")
        assert estimate == pytest.approx((right.mean(), low, high))


def test_intervals_hold_the_figures():
    X, groups, y = people()
    for result in classifier_outcomes(PCA(2), X, groups, y, random_state=0):
        for estimates in result.by_group.values():
            for value, low, high in estimates.values():
                assert low < value < high
        for value, low, high in result.difference.values():
            assert 0 <= low <= value <= high


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(80, 60), (80, 60, 70)])
def test_intervals_of_gaps_hold_the_truth_as_often_as_they_say(sizes):
    rng, labels = np.random.default_rng(0), np.arange(len(sizes))
    codes = np.repeat(labels, sizes)
    for rates in (np.full(len(sizes), 0.5), np.linspace(0.4, 0.7, len(sizes))):
        gap, held = np.ptp(rates), 0
        for _ in range(150):
            chosen = rng.random(len(codes)) < rates[codes]
            found = rates_by_group(
                "x", rng.random(len(codes)) < 0.5, chosen * 1.0, codes, labels, 0.9, True
            )
            apart = found.difference["selection_rate"]
            held += apart.low <= gap <= apart.high
        assert 0.86 * 150 <= held < 150


def test_groups_that_do_not_differ_have_gaps_from_zero_on():
    """Intervals of resampled gaps would not: a gap drawn at random is never 0."""
    rng, codes = np.random.default_rng(0), np.repeat([0, 1], 200)
    lows = []
    for _ in range(40):
        chance = rng.random(400)
        found = rates_by_group("x", rng.random(400) < 0.5, chance, codes, AB, 0.95, True)
        lows += [gap.low for gap in found.difference.values()]
    assert np.mean(np.array(lows) == 0) > 0.9


def test_rates_of_zero_and_one_are_not_certain():
    positive = np.tile([True, False], 20)
    codes = np.repeat([0, 1], 20)
    found = rates_by_group("scores", positive, positive * 1.0, codes, AB, 0.95, True)
    rates = ("accuracy", "auc", "true_positive_rate", "false_positive_rate")
    for estimates in (found.by_group[metric] for metric in rates):
        for value, low, high in estimates.values():
            assert 0 <= low <= value <= high <= 1
            assert 0.1 < high - low < 0.4  # 20 rows, or 10, without an error
    for metric in rates[::2]:
        value, low, high = found.difference[metric]
        assert (value, low) == (0, 0)
        assert 0.05 < high < 0.5


def test_a_short_repr():
    X, groups, y = people()
    for found in classifier_outcomes(PCA(2), X, groups, y, cv=2, random_state=0):
        assert repr(found).startswith(f"Outcomes('{found.name}': AUC 0.")
        assert len(repr(found)) < 200


def test_a_target_changes_what_is_kept():
    X, groups, y = people()
    estimator = FairPLS(2, notion="demographic_parity")
    scores, pca, features = classifier_outcomes(estimator, X, groups, y, random_state=0)
    assert [scores.name, pca.name, features.name] == ["scores", "pca", "features"]
    assert scores.difference["selection_rate"].value < pca.difference["selection_rate"].value
    assert not hasattr(estimator, "components_")


def test_a_fitted_estimator_is_used_as_it_is():
    X, groups, y = people()
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    before = fair.components_.copy()
    result = classifier_outcomes(fair, X, groups, y, cv=3, random_state=0)[0]
    np.testing.assert_array_equal(fair.components_, before)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    of_frame = FairPCA(2).fit(frame, sensitive_features=groups)
    again = classifier_outcomes(of_frame, frame, groups, y, cv=3, random_state=0)[0]
    assert again.overall == pytest.approx(result.overall)


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_steps_of_a_pipeline(routing):
    X, groups, y = people()
    inner = make_pipeline(StandardScaler(with_std=False), FairPCA(2))
    how = {"cv": 2, "random_state": 0}
    expected = classifier_outcomes(FairPCA(2), X, groups, y, **how)[0].overall
    with config_context(enable_metadata_routing=routing):
        outer = make_pipeline(inner, "passthrough")
        found = classifier_outcomes(outer, X, groups, y, **how)[0].overall
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("fitted", [False, True])
def test_pca_and_all_features_are_what_arrives_at_the_projection(fitted):
    X, groups, y = people()
    X[:, 5] *= 100.0  # PCA of the raw columns sees little else
    city = np.resize(["x", "y", "z"], len(X))
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(city=city)
    scale = StandardScaler().fit(X).scale_
    scaled = FunctionTransformer(lambda values: np.asarray(values) / scale)
    coded = make_column_transformer((scaled, list("abcdef")), (OneHotEncoder(), ["city"]))
    seen = np.column_stack([X / scale, *(city == name for name in "xyz")])
    own, pipeline = FairPCA(2), make_pipeline(make_pipeline(coded, "passthrough"), FairPCA(2))
    if fitted:
        own.fit(seen, sensitive_features=groups)
        pipeline.fit(frame, fairpca__sensitive_features=groups)
    how = {"cv": 2, "random_state": 0}
    expected = classifier_outcomes(own, seen, groups, y, **how)
    found = classifier_outcomes(pipeline, frame, groups, y, **how)
    for one, other in zip(found, expected, strict=True):
        assert one.name == other.name
        assert one.overall == pytest.approx(other.overall)


def test_an_estimator_that_standardises_is_compared_with_standardised_columns():
    X, groups, y = people()
    X[:, 5] *= 100.0
    how = {"cv": 2, "random_state": 0}
    own = classifier_outcomes(FairPCA(2, standardize=True), X, groups, y, **how)
    pipeline = classifier_outcomes(make_pipeline(StandardScaler(), FairPCA(2)), X, groups, y, **how)
    for one, other in zip(own, pipeline, strict=True):
        assert one.overall == pytest.approx(other.overall)


def test_transformers_that_are_no_linear_projection():
    X, groups, y = people()
    kernel = KernelPCA(2, kernel="rbf", gamma=1e-3)
    for model in (kernel, make_pipeline(StandardScaler(), kernel)):
        found = classifier_outcomes(model, X, groups, y, cv=2, random_state=0)
        assert [result.name for result in found] == ["scores", "pca", "features"]


def test_a_classifier_may_be_a_forest():
    X, groups, y = people()
    forest = RandomForestClassifier(3, random_state=0)  # has no length before it is fitted
    classifier_outcomes(PCA(2), X, groups, y, classifier=forest, cv=2)


def test_several_classes_need_to_know_the_positive_one():
    X, groups, y = people()
    three = np.where(np.arange(len(y)) % 3 == 0, "maybe", y)
    with pytest.raises(ValueError, match="pass pos_label='yes'"):
        classifier_outcomes(PCA(2), X, groups, three)
    result = classifier_outcomes(PCA(2), X, groups, three, pos_label="yes")[0]
    assert result.data[0].sum() == np.sum(three == "yes")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y, g: (np.full(len(y), "no"), g), "one class only"),
        (lambda y, g: (np.where(g == "g1", "no", y), g), "group 'g1' has rows of one class only"),
        (lambda y, g: (y, np.full(len(y), "all")), "one group only"),
        (lambda y, g: (np.linspace(0, 1, len(y)), g), "numbers that are not classes"),
    ],
    ids=["class", "class of a group", "group", "numbers"],
)
def test_refusals(change, message):
    X, groups, y = people()
    y, groups = change(y, groups)
    with pytest.raises(ValueError, match=message):
        classifier_outcomes(PCA(2), X, groups, y)
    with pytest.raises(ValueError, match="cv=200 folds need"):
        classifier_outcomes(PCA(2), *people(), cv=200)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"level": 95}, ValueError, "level=95: pass a number between 0 and 1"),
        ({"cv": 1}, ValueError, "cv=1: pass an integer of at least 2"),
        ({"classifier": LinearSVC()}, TypeError, r"CalibratedClassifierCV\(LinearSVC\(\)\)"),
        ({"estimator": LinearSVC()}, TypeError, "has no transform; pass a transformer"),
        (
            {"estimator": make_pipeline(PCA(2), LinearSVC())},
            TypeError,
            r"ends in LinearSVC.*estimator=pipeline\[:-1\]",
        ),
        ({"X": csr_array(people()[0])}, TypeError, r"X is sparse; pass X.toarray\(\)"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_refused_settings(given, error, message):
    X, groups, y = people()
    usual = {"estimator": PCA(2), "X": X, "y": y, "sensitive_features": groups}
    with pytest.raises(error, match=message):
        classifier_outcomes(**{**usual, **given})


def hired(rates=(0.1, 0.27), n=(300, 600), rows_each=1, seed=0):
    """Features that say nothing, and who is hired; each person has several rows alike."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(["a", "b"], n)
    y = rng.random(len(groups)) < np.repeat(rates, n)
    X = rng.normal(size=(len(groups), 4)) + y[:, None]
    people = np.arange(len(groups))
    order = rng.permutation(np.repeat(people, rows_each))
    return X[order], groups[order], y[order], people[order]


def ratio_by_hand(groups, y, level=0.95):
    (x, y_), (n, m) = [[y[groups == g].sum() for g in "ab"], [(groups == g).sum() for g in "ab"]]
    log = np.log((x + 0.5) / (n + 0.5) / ((y_ + 0.5) / (m + 0.5)))
    se = np.sqrt(1 / (x + 0.5) - 1 / (n + 0.5) + 1 / (y_ + 0.5) - 1 / (m + 0.5))
    z = norm.ppf(0.5 + level / 2)
    return x / n / (y_ / m), np.exp(log - z * se), np.exp(log + z * se)


def test_impact_ratios_are_those_of_fairlearn_with_walters_intervals():
    fairlearn = pytest.importorskip("fairlearn.metrics")
    X, groups, y, _ = hired()
    codes = (groups == "b").astype(int)
    found = selection(y, codes, AB, 0.95, True)
    frame = fairlearn.MetricFrame(
        metrics=fairlearn.selection_rate, y_true=y, y_pred=y, sensitive_features=groups
    )
    assert found.impact_ratios["a"].value == pytest.approx(frame.ratio())
    assert tuple(found.impact_ratios["a"]) == pytest.approx(ratio_by_hand(groups, y))
    assert found.impact_ratios["b"] == (1, 1, 1)
    assert found.less == ["a"]
    for result in classifier_outcomes(PCA(2), X, groups, y, random_state=0):
        _, chance, labels = result.data
        own = ratio_by_hand(labels, (chance >= 0.5).astype(int))
        assert tuple(result.impact_ratios["a"]) == pytest.approx(own)


def test_equal_rates_name_nobody_and_rates_of_zero_have_an_interval():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [300, 600])
    named = 0
    for _ in range(200):
        found = selection(rng.random(900) < 0.2, codes, AB, 0.95, True)
        named += bool(found.less)
    assert named <= 18  # 5 % and three standard errors
    nobody = selection(np.zeros(900, bool), codes, AB, 0.95, True)
    assert nobody.impact_ratios == {}
    assert nobody.less == []
    none = selection(codes == 1, codes, AB, 0.95, True)
    assert none.impact_ratios["a"].value == none.impact_ratios["a"].low == 0
    assert 0 < none.impact_ratios["a"].high < 0.1


def test_people_with_several_rows_count_once():
    X, groups, y, _ = hired()
    many = hired(rows_each=6)
    codes, many_codes = ((own == "b").astype(int) for own in (groups, many[1]))
    once = selection(y, codes, AB, 0.95, True)
    units = np.asarray(many[3], np.uint64)
    again = selection(many[2], many_codes, AB, 0.95, True, units)
    assert tuple(again.impact_ratios["a"]) == pytest.approx(tuple(once.impact_ratios["a"]))
    rows = selection(many[2], many_codes, AB, 0.95, True)
    assert rows.impact_ratios["a"].high < again.impact_ratios["a"].high
    few = {"random_state": 0, "cv": 3}
    scores, *_ = classifier_outcomes(PCA(2), X, groups, y, **few)
    same, *_ = classifier_outcomes(PCA(2), *many[:3], units=many[3], **few)
    for metric in ("selection_rate", "auc"):
        widths = [found.by_group[metric]["a"] for found in (scores, same)]
        narrow, wide = sorted(end.high - end.low for end in widths)
        assert wide < 1.35 * narrow  # not 6 ** 0.5 times as wide
