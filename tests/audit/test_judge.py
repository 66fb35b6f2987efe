"""``audit`` on small made tables: the cases, the groups, and figures against definitions."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.inside import FoldRule
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, KernelPCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from fairpca import (
    BlindPCA,
    FairPCA,
    FairPCACV,
    GroupEraser,
    GroupMoments,
    MinMaxPCA,
    WelfarePCA,
    audit,
    audit_model,
)
from fairpca.baselines import RobustFairPCA, SubsetFairPCA
from fairpca.datasets import load_checkup
from fairpca.report.sentences import say

QUICK = {"n_points": 2, "ranks": [1, 2]}


def made(sizes, spreads, seed=0):
    """Rows of groups whose columns have these deviations, about different means."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(list(sizes), list(sizes.values()))
    X = np.concatenate([rng.normal(size=(sizes[g], len(spreads[g]))) * spreads[g] for g in sizes])
    X += 0.1 * np.unique(groups, return_inverse=True)[1][:, None]
    order = rng.permutation(len(X))
    return X[order], groups[order]


def two_groups(n=(1500, 400), seed=0):
    """The small group varies in columns that PCA with two components drops."""
    sizes = dict(zip(("many", "few"), n, strict=True))
    return made(sizes, {"many": [3, 2.5, 1, 1, 0.5], "few": [1, 1, 2.5, 2, 0.5]}, seed)


@cache
def gap_and_remedy():
    return audit(FairPCA(2), *two_groups(), n_points=5)


# -- the four cases -------------------------------------------------------------------------------


def test_a_gap_and_a_remedy():
    verdict = gap_and_remedy().verdict
    assert (verdict.case.name, verdict.group, verdict.small) == ("REMEDY", "few", False)
    assert (verdict.gainers, verdict.payers) == (["few"], ["many"])
    assert verdict.gap == gap_and_remedy().group("few").baseline.gap


def test_no_gap_between_groups_that_are_alike():
    alike = [3, 2, 1, 1, 0.5]
    X, groups = made({"a": 900, "b": 700}, {"a": alike, "b": alike}, seed=1)
    result = audit(FairPCA(2), X, groups, **QUICK)
    assert result.verdict.case.name == "NO_GAP"
    assert result.verdict.readings_agree
    assert 0 < result.verdict.detectable_gap < 0.5
    assert not result.verdict.worse


def test_a_gap_without_a_remedy_is_no_good_news():
    """One group is noisier in every direction: no projection of this rank helps it."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["m", "f"], [300, 300])
    X = rng.normal(size=(600, 6)) * np.where(groups == "m", 1.4, 1.0)[:, None]
    X[:, :2] *= 5
    result = audit(FairPCA(2), X, groups, **QUICK)
    assert (result.verdict.case.name, result.verdict.group) == ("NO_REMEDY", "m")
    assert result.verdict.gap.low > 0.5
    assert result.verdict.remedy.name in ("NOT_RELIABLE", "IS_PCA")


def test_pca_itself_is_no_remedy():
    """Like Salaries by sex: cross-validation stays at PCA, and a gap is proven."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["m", "f"], [360, 40])
    X = rng.normal(size=(400, 3)) * np.where(groups == "m", 1.5, 0.9)[:, None]
    X[:, 0] *= 3
    result = audit(FairPCACV(1), X, groups, **QUICK)
    verdict = result.verdict
    assert (verdict.case.name, verdict.remedy.name, verdict.group) == ("NO_REMEDY", "IS_PCA", "m")
    assert verdict.gap.low > 0
    assert not [*verdict.gainers, *verdict.payers]


def test_all_components_kept_is_no_pass():
    X, groups = two_groups((200, 100))
    result = audit(PCA(), X, groups, **QUICK)
    assert (result.verdict.case.name, result.verdict.reason.name) == (
        "CANNOT_JUDGE",
        "NOTHING_COMPRESSED",
    )
    assert result.n_components == 5
    assert result.overall.change == (0, 0, 0)


def test_too_few_rows_to_judge():
    X, groups = two_groups((200, 12))
    result = audit(FairPCA(2), X, groups, **QUICK)
    assert (result.verdict.case.name, result.verdict.reason.name) == (
        "CANNOT_JUDGE",
        "TOO_FEW_ROWS",
    )
    for row in result.groups:
        assert row.baseline.gap is None
        assert np.isfinite(row.change.value)
        assert np.isnan(row.change[1:]).all()
        assert not row.judged
        assert np.isfinite(row.baseline.gap_estimate)
    assert audit(FairPCA(2), X, groups, judge_from=10, **QUICK).verdict.group is not None


def test_one_value_decides():
    X, groups = two_groups((900, 300))
    frame = pd.DataFrame(X, columns=["age", "income", "lines", "debt", "score"])
    frame.loc[17, "lines"] = 999999.375
    result = audit(FairPCA(2, standardize=True), frame, groups, **QUICK)
    assert result.verdict.reason.name == "ONE_VALUE_DECIDES"
    column = result.columns[0]
    assert (column.name, column.value, column.n_rows) == ("lines", 999999.375, 1)
    assert column.group == groups[17]


# -- groups ---------------------------------------------------------------------------------------

WAGES = {"White": 1200, "Black": 290, "Asian": 190, "Other": 37, "unknown": 2}


@cache
def wages():
    spreads = {g: [3, 2.5, 1, 1, 1, 0.5] for g in WAGES}
    spreads["Black"] = [2, 2, 1.5, 1.3, 1.3, 0.5]
    spreads["Other"] = [2, 2, 1.5, 1.5, 1.2, 0.5]
    X, groups = made(WAGES, spreads)
    return audit(FairPCA(2), X, pd.Series(groups, name="race"), **QUICK)


def test_every_group_is_compared_with_all_others():
    result = wages()
    assert result.verdict.group == "Black"
    assert [row.label for row in result.groups] == sorted(WAGES)
    assert [row.n for row in result.groups] == [WAGES[g] for g in sorted(WAGES)]
    sums = {row.label: row.baseline.error * row.n for row in result.groups}
    for row in result.groups:
        rest = (sum(sums.values()) - sums[row.label]) / (sum(WAGES.values()) - row.n)
        assert row.baseline.gap_estimate == pytest.approx(row.baseline.error / rest - 1)
    for row in result.groups:
        if row.judged:
            gap = row.baseline.gap
            assert gap.low < gap.value < gap.high


def test_every_number_of_components_has_the_gap_that_its_verdict_would_name():
    sizes = {"a": 500, "b": 300, "c": 300}
    X, groups = made(sizes, {"a": [4, 1, 1, 1], "b": [1, 4, 1, 1], "c": [1, 1, 3, 1]})
    whole = audit(FairPCA(1), X, groups, n_points=3, ranks=[1, 2, 4]).ranks
    for at, rank in enumerate([1, 2]):
        verdict = audit(FairPCA(rank), X, groups, **QUICK).verdict
        assert whole.group[at] == verdict.group
        assert whole.pca_gap[at] == pytest.approx(verdict.gap)
    assert whole.group == ("b", "c", None)
    assert whole.pca_gap[2] is None


def test_columns_may_be_called_by_integers():
    X, groups = two_groups((60, 40))
    pipeline = make_pipeline(StandardScaler(), PCA(2))
    found = audit(pipeline, pd.DataFrame(X), groups, **QUICK)
    assert found.verdict.gap == pytest.approx(audit(pipeline, X, groups, **QUICK).verdict.gap)


def test_two_rows_have_no_interval():
    row = wages().group("unknown")
    assert not row.judged
    assert row.baseline.gap is row.baseline.share_gap is None
    assert np.isnan(row.change[1:]).all()
    assert row.baseline.robust is None
    assert row.detectable_gap is None
    assert "unknown" not in [*wages().verdict.worse, *wages().verdict.better]
    assert not (wages().rows.group == [r.label for r in wages().groups].index("unknown")).any()


def test_a_group_of_one_row_gives_no_warning_of_numpy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * [3, 2, 1, 1, 1, 0.5]
    groups = np.where(rng.random(300) < 0.3, "f", "m").astype(object)
    groups[0] = "alone"
    found = audit(PCA(2), X, groups)  # warnings are errors in tests
    assert not found.group("alone").judged


def test_intervals_of_two_groups_are_one_comparison():
    few, many = (gap_and_remedy().group(label).baseline.gap for label in ("few", "many"))
    assert 1 + few.low == pytest.approx(1 / (1 + many.high))
    X, groups = two_groups()
    three = np.where((groups == "many") & (X[:, 4] > 0), "more", groups)
    wider = audit(FairPCA(2), X, three, **QUICK).group("few").baseline.gap
    assert wider.value == pytest.approx(few.value, rel=0.05)
    assert wider.high - wider.low > few.high - few.low


def test_a_reference_group():
    X, groups = two_groups()
    three = np.where((groups == "many") & (X[:, 4] > 0), "more", groups)
    result = audit(FairPCA(2), X, three, reference="more", **QUICK)
    errors = {row.label: row.baseline.error for row in result.groups}
    gap = result.group("few").baseline.gap
    assert gap.value == pytest.approx(errors["few"] / errors["more"] - 1)
    sizes = {row.label: row.n for row in result.groups}
    rest = sum(errors[g] * sizes[g] for g in ("few", "many")) / (sizes["few"] + sizes["many"])
    own = result.group("more").baseline.gap  # the reference itself, against everyone else
    assert own.value == pytest.approx(errors["more"] / rest - 1)
    assert own.low < own.value < own.high
    assert (result.verdict.group, result.provenance.reference) == ("few", "more")
    with pytest.raises(ValueError, match="'none' is none of the groups"):
        audit(FairPCA(2), X, three, reference="none", **QUICK)


def test_groups_that_are_set_aside_and_pay_are_named():
    sizes = {"a": 600, "b": 500, "small": 40, "tiny": 8}
    spreads = {
        "a": [3, 2.5, 1, 1, 0.5, 0.5],
        "b": [1, 1, 2.6, 2.4, 0.5, 0.5],
        "small": [9, 8, 1, 1, 1, 1],
        "tiny": [9, 9, 1, 1, 1, 1],
    }
    X, groups = made(sizes, spreads)
    estimator = FairPCA(2, min_group_size=50, small_groups="ignore")
    result = audit(estimator, X, groups, **QUICK)
    assert [row.compared for row in result.groups] == [True, True, False, False]
    assert [row.judged for row in result.groups] == [True, True, True, False]
    assert "small" in result.verdict.payers
    assert result.group("small").change.low > 0
    assert result.verdict.unjudged_payers == ["tiny"]
    assert result.group("tiny").change.value > 0.01
    assert result.verdict.remedy.name == "RAISES_LARGEST"


def test_labels_keep_their_column():
    X, groups = two_groups((200, 100))
    sex = pd.Series((groups == "few").astype(int), name="sex")
    result = audit(FairPCA(2), X, sex, **QUICK)
    assert [row.name for row in result.groups] == ["sex = 0", "sex = 1"]
    assert result.provenance.group_columns == ["sex"]


# -- figures --------------------------------------------------------------------------------------


def by_hand(X, groups, n_components, standardize):
    """Held-out errors of scikit-learn's PCA in the same folds: (error, distance) of each row."""
    codes = np.unique(groups, return_inverse=True)[1]
    folds = FoldRule(10).folds_of(codes, np.zeros(codes.max() + 1, int))
    errors, distances = np.empty(len(X)), np.empty(len(X))
    for f in range(10):
        train, test = X[folds != f], X[folds == f]
        if standardize:
            scaler = StandardScaler().fit(train)
            train, test = scaler.transform(train), scaler.transform(test)
        pca = PCA(n_components).fit(train)
        back = pca.inverse_transform(pca.transform(test))
        errors[folds == f] = ((test - back) ** 2).sum(axis=1)
        distances[folds == f] = ((test - train.mean(axis=0)) ** 2).sum(axis=1)
    return errors, distances


@pytest.mark.parametrize("standardize", [False, True])
def test_errors_are_those_of_pca_fitted_without_the_fold(standardize):
    X, groups = two_groups((300, 90))
    X = X * [1, 10, 1, 0.1, 3]
    result = audit(FairPCA(2, standardize=standardize), X, groups, **QUICK)
    errors, distances = by_hand(X, groups, 2, standardize)
    for row in result.groups:
        own = groups == row.label
        assert row.baseline.error == pytest.approx(errors[own].mean())
        assert row.baseline.share == pytest.approx(errors[own].sum() / distances[own].sum())
        assert row.baseline.robust.median == pytest.approx(np.median(errors[own]))
    assert result.overall.error == pytest.approx(errors.mean())
    at = result.ranks.n_components.tolist().index(2)
    assert result.ranks.pca[at] == pytest.approx([r.baseline.error for r in result.groups])
    assert result.provenance.standardized == standardize


def test_share_of_people_better_off():
    X, groups = two_groups((300, 90))
    before, _ = by_hand(X, groups, 2, standardize=False)
    folds = FoldRule(10).folds_of(np.array(groups == "many", int), np.zeros(2, int))
    after = np.empty(len(X))
    for f in range(10):
        own = folds == f
        fair = FairPCA(2).fit(X[~own], sensitive_features=groups[~own])
        after[own] = ((X[own] - fair.inverse_transform(fair.transform(X[own]))) ** 2).sum(axis=1)
    for row in audit(FairPCA(2), X, groups, **QUICK).groups:
        own = groups == row.label
        assert row.better_off == pytest.approx((after < before)[own].mean())


@pytest.mark.parametrize("options", [{}, {"standardize": True, "cv": 5}, {"relative_errors": True}])
@pytest.mark.parametrize("three", [False, True])
def test_a_stop_chosen_by_folds_is_judged_by_the_choice_of_the_other_folds(options, three):
    X, groups = two_groups((300, 90))
    if three:
        groups = np.where((groups == "many") & (X[:, 0] > 1), "more", groups)
    fitted = FairPCACV(2, **options).fit(X, sensitive_features=groups)
    result = audit(FairPCACV(2, **options), X, groups, **QUICK)
    reading = "share" if options.get("relative_errors") else "error"
    found = [[getattr(r.baseline, reading), getattr(r.alternative, reading)] for r in result.groups]
    both = fitted.held_out_pca_group_errors_, fitted.held_out_group_errors_
    assert np.transpose(found) == pytest.approx(np.array(both))
    assert result.provenance.n_folds == options.get("cv", 10)
    assert result.fit.status == fitted.status_


def test_changes_reach_over_the_stop_that_all_folds_choose_together():
    """The interval of the fixed stop, from moments of the same folds, lies within the audit's."""
    X, groups = two_groups((150, 40), seed=2)
    moments = GroupMoments.from_data(X, groups, folds=10)
    fitted = FairPCACV(2).fit(moments)
    assert fitted.stop_ > 0
    found = audit(FairPCACV(2), moments, **QUICK)
    fixed = audit(FairPCA(2, alpha=fitted.alpha_), moments, **QUICK)
    for row, other in zip(found.groups, fixed.groups, strict=True):
        # Folds are followed along a path in float32.
        assert row.change.low <= other.change.low + 1e-6
        assert row.change.high >= other.change.high - 1e-6


def test_splitters_and_small_groups_with_a_stop_chosen_by_folds():
    X, groups = two_groups((300, 90))
    groups[:6] = "tiny"
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    how = {"min_group_size": 20, "small_groups": "merge"}
    with pytest.raises(ValueError, match="still too few"):
        audit(FairPCACV(2, cv=cv, **how), X, groups, **QUICK)
    result = audit(FairPCACV(2, cv=cv, **how | {"small_groups": "ignore"}), X, groups, **QUICK)
    assert result.provenance.n_folds == 4
    assert [row.compared for row in result.groups] == [True, True, False]
    numbers = np.where(np.arange(len(X)) % 4, np.arange(len(X)) % 4, -1)
    some = audit(FairPCACV(2, cv=PredefinedSplit(numbers), min_group_size=20,
                                      small_groups="ignore"), X, groups, **QUICK)  # fmt: skip
    assert some.provenance.n_folds == 3
    assert some.groups[0].n == result.groups[0].n  # rows that are never left out are fitted to
    usual = audit(
        None, X, groups, **QUICK
    )  # the default sets groups of fewer rows than folds aside
    assert not usual.group("tiny").compared
    assert usual.provenance.standardized


def test_shares_decide_where_the_estimator_says_so():
    X, groups = two_groups()
    result = audit(FairPCA(2, relative_errors=True), X, groups, **QUICK)
    assert result.verdict.by_share
    assert result.verdict.gap == result.group(result.verdict.group).baseline.share_gap


def test_a_pipeline_of_scaler_and_pca_is_judged_as_pca_of_standardized_columns():
    X, groups = two_groups((300, 90))
    X = X * [1, 10, 1, 0.1, 3]
    one = audit(make_pipeline(StandardScaler(), PCA(2), LogisticRegression()), X, groups, **QUICK)
    other = audit(FairPCA(2, standardize=True), X, groups, **QUICK)
    for a, b in zip(one.groups, other.groups, strict=True):
        assert a.baseline.error == pytest.approx(b.baseline.error)
        assert a.baseline.gap == pytest.approx(b.baseline.gap)
    assert one.provenance.judged.startswith("Pipeline(")


def raw_frame():
    X, groups = two_groups((300, 90))
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.loc[::7, "b"] = np.nan
    frame["town"] = np.where(np.arange(390) % 3 == 0, "north", "south")
    frame.loc[5, "town"] = "island"  # unknown to the encoder when its row is left out
    return frame, groups


def test_pipelines_on_raw_frames_are_fitted_without_each_fold():
    frame, groups = raw_frame()
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    before = ColumnTransformer([("n", numbers, list("abcde")), ("c", encoder, ["town"])])
    result = audit(make_pipeline(before, FairPCA(3)), frame, groups, **QUICK)
    assert result.verdict.group == "few"
    assert len(result.provenance.feature_names) == 8
    strict = ColumnTransformer([("n", numbers, list("abcde")), ("c", OneHotEncoder(), ["town"])])
    with pytest.raises(ValueError, match="handle_unknown='ignore'"):
        audit(make_pipeline(strict, FairPCA(3)), frame, groups, **QUICK)


@pytest.mark.parametrize("y", [None, np.arange(390) % 2])
def test_a_step_that_erases_the_group_gets_the_groups(y):
    X, groups = two_groups((300, 90))
    X[groups == "few"] += 2
    pipeline = make_pipeline(StandardScaler(), GroupEraser(), FairPCA(3))
    result = audit(pipeline, X, groups, y=y, **QUICK)
    assert result.leakage.baseline["centroid_share"] == pytest.approx(0, abs=1e-12)
    assert audit(FairPCA(3), X, groups, **QUICK).leakage.baseline["centroid_share"] > 0.01


def test_moments_by_fold_give_the_figures_of_their_rows():
    X, groups = two_groups((300, 90))
    rows = audit(FairPCA(2, standardize=True), X, groups, **QUICK)
    moments = GroupMoments.from_data(X, groups, folds=10)
    found = audit(FairPCA(2, standardize=True), moments, **QUICK)
    for a, b in zip(rows.groups, found.groups, strict=True):
        assert a.baseline.gap.value == pytest.approx(b.baseline.gap.value)
        assert b.baseline.gap.low < a.baseline.gap.low  # folds alone know less than rows do
        assert tuple(a.change) == pytest.approx(tuple(b.change))
        assert b.baseline.robust is None
        assert b.better_off is None
    assert found.rows is found.outcomes is None
    assert found.leakage.baseline == pytest.approx(rows.leakage.baseline)
    assert found.verdict.case is rows.verdict.case
    with pytest.raises(ValueError, match="folds=10"):
        audit(FairPCA(2), GroupMoments.from_data(X, groups))


def test_sparse_rows_and_frames_are_the_same_rows():
    X, groups = two_groups((300, 90))
    X[np.abs(X) < 0.5] = 0
    dense = audit(FairPCA(2), X, groups, **QUICK)
    for same in (sp.csr_array(X), pd.DataFrame(X), X.astype(np.float64, order="F")):
        found = audit(FairPCA(2), same, groups, **QUICK)
        assert found.verdict.gap == pytest.approx(dense.verdict.gap)


def test_rows_of_weight_zero_are_left_out_and_may_hold_anything():
    X, groups = two_groups((300, 90))
    weights = np.ones(len(X))
    weights[::9], kept = 0, np.arange(len(X)) % 9 > 0
    X[::9] = np.nan if False else 1e6
    weighted = audit(FairPCA(2), X, groups, sample_weight=weights, **QUICK)
    without = audit(FairPCA(2), X[kept], groups[kept], **QUICK)
    assert weighted.verdict.gap == pytest.approx(without.verdict.gap)
    assert weighted.left_out[0].n_rows == np.sum(~kept)
    assert weighted.provenance.weighted


def test_a_group_of_weight_zero_is_left_out():
    X, groups = two_groups((300, 90))
    groups[:40], weights = "none", np.arange(len(X)) >= 40
    weighted = audit(FairPCA(2), X, groups, sample_weight=weights.astype(float), **QUICK)
    without = audit(FairPCA(2), X[40:], groups[40:], **QUICK)
    assert [row.label for row in weighted.groups] == ["few", "many"]
    assert weighted.verdict.gap == pytest.approx(without.verdict.gap)


def test_fit_is_that_of_all_rows():
    X, groups = two_groups()
    result = gap_and_remedy()
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    assert result.fit.fair_errors == pytest.approx(fair.group_errors_)
    assert result.fit.pca_errors == pytest.approx(fair.pca_group_errors_)
    assert result.fit.fair_column_errors.sum(axis=1) == pytest.approx(fair.group_errors_)
    assert result.fit.pca_column_errors.sum(axis=1) == pytest.approx(fair.pca_group_errors_)
    assert np.abs(result.fit.fair_loadings) == pytest.approx(np.abs(fair.components_))
    assert len(result.path.disparity) == 5
    assert result.path.held_out is not None


def test_budgets_are_met_or_not():
    X, groups = two_groups((300, 90))
    (met,) = audit(FairPCA(2, max_error_increase=0.05), X, groups, **QUICK).fit.budgets
    assert met.met
    assert met.reached <= 0.05 + 1e-6
    (not_met,) = audit(FairPCA(2, max_disparity=0.0), X, groups, **QUICK).fit.budgets
    assert not_met.name == "max_disparity"
    assert not_met.met == (not_met.reached < 1e-6)


@pytest.mark.parametrize(
    "limit", [{"max_group_increase": 0.01}, {"max_error_increase": 0.01}, {"max_disparity": 0.45}]
)
def test_budgets_of_cross_validation_are_those_of_held_out_rows(limit):
    people = load_checkup()
    model = FairPCACV(5, standardize=True, **limit)
    (budget,) = audit(model, people.data, people.sensitive_features, **QUICK).fit.budgets
    assert budget.met
    model.fit(people.data, sensitive_features=people.sensitive_features)
    on_fitted_rows = {
        "max_group_increase": (model.group_errors_ / model.pca_group_errors_ - 1).max(),
        "max_error_increase": model.reconstruction_error_ / model.pca_reconstruction_error_ - 1,
        "max_disparity": model.disparity_,
    }
    assert budget.reached != pytest.approx(on_fitted_rows[budget.name], rel=1e-6)


def test_single_people_stay_out_of_json_unless_asked_for():
    plain = gap_and_remedy().to_dict()
    assert "rows" not in plain
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["verdict"]["case"] == "a gap, and a remedy that reliably helps"
    assert plain["groups"][0]["baseline"]["gap"].keys() == {"value", "low", "high"}
    rows = gap_and_remedy().to_dict(with_rows=True)["rows"]
    assert len(rows["rows"]) == len(rows["group"]) == 600
    longest = max(len(v) for v in plain["groups"])
    assert longest < 20


def test_a_group_of_one_person_shows_no_figures():
    X, groups = two_groups((150, 100))
    X, groups = np.vstack([X, [1, 2, 3, 4, 5]]), np.append(groups, "alone")
    result = audit(FairPCA(2), X, groups, **QUICK)
    alone = result.group("alone")
    assert alone.n == 1
    assert alone.better_off is None
    figures = [*alone.change]
    figures += [x for of in (alone.baseline, alone.alternative) for x in (of.error, of.share)]
    assert np.isnan(figures).all()
    shown = result.to_dict()
    assert [shown[name] for name in ("fit", "ranks", "path")] == [None] * 3
    assert result.to_dict(with_rows=True)["fit"]["status"] == result.fit.status
    assert "NaN" not in json.dumps(shown)
    assert "nan" not in result._repr_html_()


def test_what_classifiers_make_of_scores():
    X, groups = two_groups((300, 200))
    y = (X[:, 0] + X[:, 2] > 0).astype(int)
    result = audit(FairPCA(2), X, groups, y=y, **QUICK)
    assert [found.name for found in result.outcomes] == ["scores", "pca", "features"]
    assert {p.name for p in result.leakage.alternative_probes} == {"logistic", "boosted"}
    assert result.leakage.n_rows == 250
    quiet = audit(FairPCA(2), X, groups, **QUICK)
    assert quiet.outcomes is None
    assert not quiet.leakage.baseline_probes
    assert quiet.leakage.baseline["discriminant_auc"] >= 0.5


@pytest.mark.parametrize(
    "estimator",
    [
        MinMaxPCA(2),
        FairPCA(2, constraint="no_worse"),
        SubsetFairPCA(2),
        RobustFairPCA(2),
        WelfarePCA(2),
        BlindPCA(2),
    ],
)
def test_other_estimators(estimator):
    X, groups = two_groups((300, 90))
    errors, _ = by_hand(X, groups, 2, standardize=False)
    result = audit(estimator, X, groups, **QUICK)
    assert result.group("few").baseline.error == pytest.approx(errors[groups == "few"].mean())


def test_an_audit_repeats_and_leaves_its_arguments_alone():
    X, groups = two_groups((300, 90))
    before, estimator = X.copy(), FairPCA(2)
    one, other = (audit(estimator, X, groups, **QUICK) for _ in range(2))
    assert one.to_dict(with_rows=True) == other.to_dict(with_rows=True)
    assert (before == X).all()
    assert not hasattr(estimator, "components_")
    salted = audit(estimator, X, groups, random_state=1, **QUICK)
    assert salted.verdict.gap != one.verdict.gap


def test_what_cannot_be_audited_is_refused():
    X, groups = two_groups((60, 40))
    with pytest.raises(TypeError, match="pass sensitive_features=groups"):
        audit(None, X)
    with pytest.raises(TypeError, match=r"what is judged comes first, .*pass audit\(estimator, X,"):
        audit(X, groups, FairPCA(2))
    with pytest.raises(TypeError, match=r"FairPCA is a class; pass an object"):
        audit(FairPCA, X, groups)
    with pytest.raises(TypeError, match=r"got KernelPCA.*audit_model"):
        audit(KernelPCA(1), X, groups)
    with pytest.raises(
        TypeError, match="a pipeline with one of them, got StandardScaler, MinMaxScaler"
    ):
        audit(make_pipeline(StandardScaler(), MinMaxScaler()), X, groups)
    with pytest.raises(ValueError, match="ranks="):
        audit(FairPCA(2), X, groups, ranks=[9])
    with pytest.raises(ValueError, match="one group"):
        audit(FairPCA(2), X, np.ones(100))


def test_a_fitted_projection_is_fitted_again_with_a_warning():
    X, groups = two_groups((120, 60))
    with pytest.warns(UserWarning, match=r"fits PCA again.*audit_model"):
        found = audit(PCA(2).fit(X), X, groups, **QUICK)
    assert found.verdict.gap == audit(PCA(2), X, groups, **QUICK).verdict.gap


@pytest.mark.parametrize("sizes", [(2, 1), (4, 1), (12, 2, 1), (40, 35, 2)])
@pytest.mark.parametrize("estimator", [None, PCA(2), FairPCA(2, standardize=True)])
def test_tiny_groups_are_listed_without_warnings(sizes, estimator):
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c"][: len(sizes)], sizes)
    found = audit(estimator, rng.normal(size=(len(groups), 4)), groups, n_points=3)
    assert [row.n for row in found.groups] == list(sizes)
    assert found.provenance.n_folds <= max(sizes)
    assert not any(row.judged for row in found.groups if row.n < 30)


def test_two_groups_of_one_row_are_refused():
    with pytest.raises(ValueError, match="none of the 2 groups has two rows"):
        audit(None, np.eye(2), ["a", "b"])


def test_ones_that_are_rare_decide_nothing_and_are_no_few_rows():
    """An indicator of a rare category is a property of the column, not of some of its rows."""
    X, groups = two_groups((2000, 1000))
    X[:, 4] = np.arange(3000) % 150 == 0
    assert [column.name for column in audit(FairPCA(2), X, groups, **QUICK).columns] == []


def test_very_many_rows_make_a_small_gap_reliable_but_not_large():
    rng = np.random.default_rng(0)
    g = rng.integers(0, 2, 200_000)
    X = rng.normal(size=(len(g), 4)) * [3, 2, 1, 1]
    X[:, 2:] *= (1 + 0.015 * g)[:, None]
    moments = GroupMoments.from_data(X, g, folds=10)
    verdict = audit(FairPCA(2), moments, **QUICK).verdict
    assert (verdict.small, verdict.group) == (True, 1)
    assert 0 < verdict.gap.low < verdict.gap.value < 0.05


def test_moments_say_whether_rows_were_weighted_and_take_nothing_else():
    X, groups = two_groups()
    weights = np.where(groups == "few", 2.0, 1.0)
    for own, weighted in ((None, False), (weights, True)):
        moments = GroupMoments.from_data(X, groups, own, folds=5)
        assert audit(FairPCA(2), moments, **QUICK).provenance.weighted == weighted
    for name, values in {"sample_weight": weights, "y": groups}.items():
        with pytest.raises(ValueError, match=f"without .*{name}"):
            audit(FairPCA(2), moments, **{name: values})


@pytest.mark.parametrize("wrong", [{"level": 1.0}, {"judge_from": 1}, {"small_gap": -0.1}])
def test_thresholds_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        audit(FairPCA(2), *two_groups((60, 40)), **wrong)


@pytest.mark.parametrize(
    ("spreads", "steps"),
    [
        ([[3, 2.5, 1, 1, 1], [3, 2.5, 1, 1, 1], [2, 2, 1.5, 1.6, 1.3]], False),
        ([[3, 2, 1, 1, 1], [1, 1, 3, 2, 1], [2, 2, 2, 1, 1.5]], True),
    ],
)
def test_the_frontier_is_judged_by_held_out_people_where_there_are_steps(spreads, steps):
    X, groups = made(dict.fromkeys("abc", 400), dict(zip("abc", spreads, strict=True)))
    path = audit(FairPCA(2), X, groups, n_points=3, ranks=[2]).path
    assert path.efficient[1:].any() == steps
    assert (path.held_out is not None) == steps


@pytest.mark.parametrize("factor", [1, 10, 1e5, 1e7])
def test_one_column_of_far_larger_variance_decides(factor):
    X, groups = two_groups((200, 300), seed=3)
    X[:, 3] *= factor
    columns = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    raw = audit(PCA(2), columns, groups, **QUICK)
    assert (raw.scale.column == "c3") == (factor > 1)
    notices = " ".join(say(raw).notices)
    if factor >= 1e5:
        assert raw.verdict.reason.name == "ONE_COLUMN_DECIDES"
        assert raw.scale.n_lost >= 2
        assert "column “c3” decides" in say(raw).headline
    else:
        assert raw.verdict.reason is None
        assert ("Column “c3” has" in notices) == (factor == 10)
    model = make_pipeline(StandardScaler(), PCA(2)).fit(X)
    for standardised in (
        audit(FairPCA(2, standardize=True), columns, groups, **QUICK),
        audit_model(model, X, groups),
    ):
        assert standardised.verdict.reason is None
        assert standardised.scale.share < 0.5
    fixed = audit_model(PCA(2).fit(X), columns, groups)
    assert fixed.verdict.reason == raw.verdict.reason
    pair = audit_model(
        (columns, PCA(2).fit(X).inverse_transform(PCA(2).fit(X).transform(X))),
        sensitive_features=groups,
    )
    assert pair.scale == pytest.approx(fixed.scale)


def test_nothing_is_compressed_only_where_no_column_is_lost():
    X, groups = two_groups((200, 300), seed=3)
    X[:, -1] = X[:, 0] - X[:, 1]
    found = audit(PCA(X.shape[1] - 1), X, groups, **QUICK)
    assert found.verdict.reason.name == "NOTHING_COMPRESSED"
    assert found.scale.n_lost == 0


def test_helps_is_the_statistic_of_fair_pca_cv():
    """One number for both, and a gain that needs no gap beyond chance."""
    X, groups = two_groups((240, 60))
    fair = FairPCACV(2).fit(X, sensitive_features=groups)
    found = audit(FairPCACV(2), X, groups, **QUICK)
    assert found.gain.t == pytest.approx(fair.held_out_t_, rel=1e-6)
    assert found.gain.largest.value == pytest.approx(fair.held_out_largest_change_, rel=1e-6)
    assert found.verdict.remedy.name == "HELPS"
    spreads = {"a": [4, 2, 1.2, 1.5, 1], "b": [4, 1.2, 2, 1, 1]}
    X, groups = made({"a": 130, "b": 60}, spreads)
    found = audit(FairPCACV(2), X, groups, **QUICK)
    assert found.gain.t > 1.2
    assert found.verdict.case.name == "HELPS_ANYWAY"
