"""The audit's figures against their definitions, and the coverage of its intervals."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA, KernelPCA
from sklearn.model_selection import PredefinedSplit, RepeatedStratifiedKFold, ShuffleSplit
from sklearn.pipeline import make_pipeline

from fairpca import FairPCA, MinMaxPCA, SubsetFairPCA, audit
from fairpca._audit.in_memory import RowsInMemory
from fairpca._audit.intervals import group_ratios
from fairpca._audit.run import AuditSettings, run_audit
from fairpca._input.labels import encode_groups
from fairpca.datasets import load_diabetes_by_sex
from fairpca.metrics import group_reconstruction_errors

QUICK = {"n_points": 3, "n_folds": 3, "n_resamples": 100}
TWO_RANKS = {**QUICK, "ranks": [1, 3]}


@cache
def diabetes():
    return load_diabetes_by_sex(prepare=False)


@cache
def diabetes_audit():
    return audit(diabetes().data, diabetes().sensitive_features, FairPCA(3), **QUICK)


def test_what_cannot_be_audited_is_refused():
    X, groups = np.arange(20.0).reshape(10, 2) ** 2, np.arange(10) % 2
    with pytest.raises(TypeError, match=r"fairpca\.audit\(X, sensitive_features=groups\)"):
        audit(X, None)
    with pytest.raises(TypeError, match="this PCA is not fitted; pass "):
        audit(X, groups, PCA(1))
    curved = KernelPCA(1).fit(X)
    with pytest.raises(TypeError, match="KernelPCA has no components_ and mean_; pass a fitted li"):
        audit(X, groups, curved)
    with pytest.raises(TypeError, match=r"no step of the pipeline \(KernelPCA\) is a fitted"):
        audit(X, groups, make_pipeline(curved))
    with pytest.raises(TypeError, match="got str; pass FairPCA"):
        audit(X, groups, "PCA")


def test_figures_are_those_of_a_fit_to_the_standardized_data():
    ready, result = load_diabetes_by_sex(), diabetes_audit()
    fair = FairPCA(3).fit(ready.data, sensitive_features=ready.sensitive_features)
    pca = PCA(3).fit(ready.data)
    errors = group_reconstruction_errors(pca, ready.data, ready.sensitive_features)
    assert result.pca.group_errors == pytest.approx(list(errors.values()))
    assert result.fair.group_errors == pytest.approx(fair.group_errors_)
    assert result.fair.disparity == pytest.approx(fair.disparity_)
    assert result.cost == pytest.approx(fair.reconstruction_error_ / pca_error(pca, ready) - 1)
    assert result.harmed_group == fair.harmed_group_ == "male"
    assert abs(result.duality_gap) < 1e-12


def pca_error(pca, ready):
    back = pca.inverse_transform(pca.transform(ready.data))
    return ((ready.data - back) ** 2).sum(axis=1).mean()


def test_feature_errors_sum_to_group_errors():
    result = diabetes_audit()
    assert result.feature_errors.pca.sum(axis=1) == pytest.approx(result.pca.group_errors)
    assert result.feature_errors.fair.sum(axis=1) == pytest.approx(result.fair.group_errors)


def test_feature_errors_are_mean_squared_residuals():
    ready, result = load_diabetes_by_sex(), diabetes_audit()
    pca = PCA(3).fit(ready.data)
    squares = (ready.data - pca.inverse_transform(pca.transform(ready.data))) ** 2
    male = ready.sensitive_features == "male"
    assert result.feature_errors.pca[1] == pytest.approx(squares[male].mean(axis=0))


def test_scores_and_loadings_are_those_of_pca_up_to_sign():
    ready, result = load_diabetes_by_sex(), diabetes_audit()
    pca = PCA(3).fit(ready.data)
    assert np.abs(result.loadings.pca) == pytest.approx(np.abs(pca.components_))
    scores = pca.transform(ready.data)[result.scores.rows, :2]
    assert np.abs(result.scores.pca) == pytest.approx(np.abs(scores))
    agreement = np.einsum("ij,ij->i", result.loadings.pca, result.loadings.fair)
    assert (agreement >= 0).all()


def test_curve_holds_the_rank_of_the_audit():
    result = diabetes_audit()
    at = result.ranks.n_components.tolist().index(3)
    assert result.ranks.pca[at] == pytest.approx(result.pca.group_errors)
    assert result.ranks.fair[at] == pytest.approx(result.fair.group_errors)
    assert result.ranks.n_components.tolist() == list(range(1, 10))


def test_plain_dict_survives_json():
    plain = diabetes_audit().to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["groups"] == ["female", "male"]
    path = diabetes_audit().path
    assert plain["path"].keys() == vars(path).keys() - {"components"}  # many numbers, no figures
    assert plain["path"]["disparity"] == path.disparity.tolist()


@pytest.mark.parametrize("estimator", [MinMaxPCA(3), SubsetFairPCA(3)])
def test_other_estimators_can_be_audited(estimator):
    result = audit(diabetes().data, diabetes().sensitive_features, estimator, **QUICK)
    assert result.pca.group_errors == pytest.approx(diabetes_audit().pca.group_errors)
    assert abs(result.fair.disparity) < result.pca.disparity
    json.dumps(result.to_dict(), allow_nan=False)


def test_the_recommended_stop_is_that_of_the_estimator_on_its_own():
    X, groups = diabetes().data, diabetes().sensitive_features
    result = audit(X, groups, **TWO_RANKS)
    assert "cv=3" in result.estimator
    Z = X / X.std(axis=0, ddof=1)
    own = FairPCA(result.n_components, cv=3, random_state=0).fit(Z, sensitive_features=groups)
    assert result.status == own.status_
    assert result.fair.group_errors == pytest.approx(own.group_errors_)
    assert len(result.path.held_out.disparity) == len(result.path.disparity)
    given = audit(X, groups, FairPCA(result.n_components, cv=3), **TWO_RANKS)
    assert given.fair.group_errors == pytest.approx(result.fair.group_errors)


REPEATED = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)


@pytest.mark.parametrize("cv", [4, REPEATED])
def test_one_set_of_folds_serves_the_choice_the_curves_and_the_table(cv):
    X, groups = diabetes().data * 30, diabetes().sensitive_features
    model = FairPCA(3, cv=cv, random_state=5)
    result = audit(X, groups, model, standardize=False, **TWO_RANKS)
    own = clone(model).fit(X, sensitive_features=groups)
    assert result.fair.group_errors == pytest.approx(own.group_errors_)
    curves, table = result.path.held_out, result.cross_validation
    assert curves.group_errors[0] == pytest.approx(own.held_out_pca_group_errors_)
    assert curves.group_errors[0] == pytest.approx(table.pca.group_errors)
    assert table.n_folds == (cv if isinstance(cv, int) else cv.get_n_splits())


@pytest.mark.parametrize("cv", [2, ShuffleSplit(5, random_state=0)])
def test_a_choice_cannot_be_judged_by_two_folds(cv):
    with pytest.raises(ValueError, match="it needs three or more; pass for example cv=10"):
        audit(diabetes().data, diabetes().sensitive_features, FairPCA(3, cv=cv))


def test_a_list_of_splits_can_be_read_again_and_an_iterator_cannot():
    X, groups = diabetes().data, diabetes().sensitive_features
    splits = list(REPEATED.split(X, groups))
    by_list, by_splitter = (
        audit(X, groups, FairPCA(3, cv=cv), **TWO_RANKS) for cv in (splits, REPEATED)
    )
    assert by_list.changes == by_splitter.changes
    with pytest.raises(ValueError, match=r"read only once.*pass a list"):
        audit(X, groups, FairPCA(3, cv=iter(splits)))


def test_a_splitter_that_never_leaves_out_a_group_is_refused():
    X, groups = diabetes().data, diabetes().sensitive_features
    never = np.where(groups == "male", -1, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match="leaves out no row of group 'male'"):
        audit(X, groups, FairPCA(3, cv=PredefinedSplit(never)))


def test_folds_of_the_choice_see_merged_groups():
    X, groups = unequal_groups()
    model = FairPCA(3, cv=3, min_group_size=40, small_groups="merge")
    merged = audit(X, groups, model, **TWO_RANKS)
    rest = np.where(np.isin(groups, ["east", "west"]), "rest", groups)
    expected = audit(X, rest, FairPCA(3, cv=3), **TWO_RANKS)
    assert merged.small_groups == ["east", "west"]
    assert merged.fair.group_errors == pytest.approx(expected.fair.group_errors, rel=1e-6)


def test_changes_are_those_of_the_held_out_errors():
    result = diabetes_audit()
    held_out, changes = result.cross_validation, result.changes
    difference = held_out.fair.group_errors - held_out.pca.group_errors
    assert [change.estimate for change in changes.groups] == pytest.approx(difference)
    assert changes.overall.estimate == pytest.approx(held_out.fair.overall - held_out.pca.overall)
    narrowing = held_out.fair.disparity - held_out.pca.disparity
    assert changes.disparity.estimate == pytest.approx(narrowing)
    for change in (*changes.groups, changes.overall, changes.disparity):
        assert change.low < change.estimate < change.high
    width = np.ptp(result.bootstrap.fair)
    assert changes.disparity.high - changes.disparity.low < width  # noise of single rows cancels


def test_no_error_can_fall_by_more_than_all_of_it_nor_is_judged_by_as_many_rows_as_components():
    rng = np.random.default_rng(3)
    X, groups = rng.standard_t(2.1, (24, 5)) * [5, 4, 3, 2, 1], np.repeat(["a", "b"], [14, 10])
    quick = {**TWO_RANKS, "n_folds": 3, "standardize": False}
    result = audit(X, groups, FairPCA(3, constraint=None), **quick)
    errors = result.cross_validation.pca.group_errors
    for change, error in zip(result.changes.groups, errors, strict=True):
        assert change.low >= -error
    wide = rng.normal(size=(8, 20))
    few = audit(wide, np.repeat(["a", "b"], 4), FairPCA(5), **quick)
    assert few.cross_validation is few.changes is None
    assert "too few rows to leave some out" in few.to_html()


def test_infinite_distances_are_shown_without_a_warning():
    groups = np.repeat(["a", "b"], [30, 20])
    X = np.column_stack([groups == "a", np.random.default_rng(0).normal(size=50) * 1e-3])
    result = audit(X, groups, FairPCA(1), standardize=False, **QUICK)
    assert result.representation.pca.separation["mahalanobis"] > 100


def several_groups():
    data = diabetes()
    ward = np.array(["north", "south", "east"])[np.arange(len(data.data)) % 3]
    return data.data, np.column_stack([data.sensitive_features, ward])


@pytest.mark.parametrize("estimator", [FairPCA(3), MinMaxPCA(3)])
def test_several_groups(estimator):
    X, groups = several_groups()
    result = audit(X, groups, estimator, **QUICK)
    assert result.groups == sorted({" & ".join(row) for row in groups})
    fair = FairPCA(3, alpha=1).fit(X / X.std(axis=0, ddof=1), sensitive_features=groups)
    assert result.pca.group_errors == pytest.approx(fair.group_errors_)
    for errors in (result.pca, result.fair, result.cross_validation.pca):
        assert errors.disparity == pytest.approx(np.ptp(errors.group_errors))
    assert result.path.disparity[0] == pytest.approx(result.pca.disparity)
    low, high = result.bootstrap.pca
    assert low < result.cross_validation.pca.disparity < high
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["path"]["alpha"][1] is None


@pytest.mark.parametrize("estimator", [FairPCA(3, normalize=True), MinMaxPCA(3, normalize=True)])
def test_relative_errors(estimator):
    X, groups = several_groups()
    result = audit(X, groups, estimator, **QUICK)
    Z = X / X.std(axis=0, ddof=1)
    fitted = clone(estimator).fit(Z, sensitive_features=groups)
    relative = group_reconstruction_errors(PCA(3).fit(Z), Z, groups, normalize=True)
    assert result.normalized
    assert result.pca.group_errors == pytest.approx(list(relative.values()))
    assert result.fair.group_errors == pytest.approx(fitted.group_errors_)
    assert result.fair.overall == pytest.approx(fitted.reconstruction_error_)
    assert result.group_variances == pytest.approx(np.ones(6))
    assert result.feature_errors.fair.sum(axis=1) == pytest.approx(fitted.group_errors_)
    assert result.path.disparity[0] == pytest.approx(np.ptp(list(relative.values())))
    assert 0 < result.cross_validation.pca.overall < 1
    low, high = result.bootstrap.pca
    assert low < result.cross_validation.pca.disparity < high


def unequal_groups():
    """Two wards of many patients, two of few."""
    data = diabetes()
    ward = np.repeat(["north", "south", "east", "west"], [250, 150, 30, 12])
    return data.data, np.random.default_rng(0).permutation(ward)


def test_small_groups_are_refused_by_name():
    X, groups = unequal_groups()
    with pytest.raises(ValueError, match=r"'east' \(30 rows\), 'west' \(12 rows\)"):
        audit(X, groups, FairPCA(3, min_group_size=40), **QUICK)


def test_small_groups_are_merged_in_every_figure():
    X, groups = unequal_groups()
    merged = audit(X, groups, FairPCA(3, min_group_size=40, small_groups="merge"), **TWO_RANKS)
    rest = np.where(np.isin(groups, ["east", "west"]), "rest", groups)
    expected = audit(X, rest, FairPCA(3), **TWO_RANKS)
    assert merged.small_groups == ["east", "west"]
    assert merged.groups == expected.groups == ["north", "rest", "south"]
    assert merged.compared == [True] * 3
    figures = [_flat(a.to_dict() | {"parameters": None}) for a in (merged, expected)]
    assert figures[0] == pytest.approx(figures[1], rel=1e-6, abs=1e-9)


def test_ignored_groups_count_in_the_overall_error_only():
    X, groups = unequal_groups()
    estimator = FairPCA(3, min_group_size=20, small_groups="ignore")
    result = audit(X, groups, estimator, **(QUICK | {"n_folds": 20}))
    fitted = clone(estimator).fit(X / X.std(axis=0, ddof=1), sensitive_features=groups)
    assert result.groups == ["east", "north", "south", "west"]
    assert result.compared == [True, True, True, False]
    assert result.small_groups == ["west"]
    assert result.fair.group_errors == pytest.approx(fitted.group_errors_)
    assert result.fair.overall == pytest.approx(fitted.reconstruction_error_)
    for errors in (result.pca, result.fair, result.cross_validation.fair):
        assert errors.disparity == pytest.approx(np.ptp(errors.group_errors[:3]))
    assert result.path.disparity[0] == pytest.approx(result.pca.disparity)
    assert result.cross_validation.n_folds == 20


def test_ignored_groups_stay_ignored_where_folds_make_others_as_small():
    """A fold takes the group of 30 below the 29 that make a group large enough."""
    X, groups = unequal_groups()
    estimator = FairPCA(3, min_group_size=29, small_groups="ignore")
    strict = audit(X, groups, estimator, **QUICK)
    loose = audit(X, groups, estimator.set_params(min_group_size=13), **QUICK)
    assert strict.cross_validation.fair.group_errors == pytest.approx(
        loose.cross_validation.fair.group_errors
    )


def test_a_weight_of_zero_leaves_a_row_out_and_equal_weights_change_nothing():
    X, groups = several_groups()
    expected = audit(X[:300], groups[:300], FairPCA(3), **TWO_RANKS).to_dict()
    weights = np.where(np.arange(len(X)) < 300, 7.0, 0.0)
    result = audit(X, groups, FairPCA(3), sample_weight=weights, **TWO_RANKS).to_dict()
    assert result.pop("weighted")
    assert not expected.pop("weighted")
    assert _flat(result) == pytest.approx(_flat(expected), rel=1e-6, abs=1e-9)


def _flat(plain):
    """All numbers of a nested dict, in order."""
    if isinstance(plain, dict):
        plain = list(plain.values())
    if isinstance(plain, list):
        return [number for part in plain for number in _flat(part)]
    return [plain] if isinstance(plain, (int, float)) else []


def test_weights_are_those_of_a_weighted_fit_and_a_weighted_average():
    X, groups = several_groups()
    weights = np.random.default_rng(0).uniform(0.5, 3, len(X))
    result = audit(X, groups, FairPCA(3), sample_weight=weights, standardize=False, **QUICK)
    fitted = FairPCA(3).fit(X, sensitive_features=groups, sample_weight=weights)
    assert result.fair.group_errors == pytest.approx(fitted.group_errors_)
    assert result.pca.group_errors == pytest.approx(fitted.pca_group_errors_)
    codes = np.unique(result.groups, return_inverse=True)[1][encode_groups(groups, len(X))[0]]
    errors = np.random.default_rng(1).exponential(size=len(X))
    ratios, shares = group_ratios(weights * errors, weights, codes)
    for g in range(6):
        here = codes == g
        average = np.average(errors[here], weights=weights[here])
        assert ratios[g] == pytest.approx(average)
        assert shares[here].mean() == pytest.approx(average)


def test_sparse_data_give_the_audit_of_the_same_array():
    X, groups = several_groups()
    X = np.where(np.median(X, axis=0) < X, X, 0.0)
    dense = audit(X, groups, FairPCA(3, normalize=True), **TWO_RANKS)
    for kind in (sp.csr_matrix, sp.csc_array):
        sparse = audit(kind(X), groups, FairPCA(3, normalize=True), **TWO_RANKS)
        assert _flat(sparse.to_dict()) == pytest.approx(_flat(dense.to_dict()), rel=1e-6, abs=1e-9)


def test_same_seed_same_audit_and_input_untouched():
    X = diabetes().data.copy()
    again = audit(X, diabetes().sensitive_features, FairPCA(3), **QUICK)
    assert again.to_dict() == diabetes_audit().to_dict()
    assert (diabetes().data == X).all()
    other = audit(X, diabetes().sensitive_features, FairPCA(3), **QUICK, random_state=1)
    assert other.bootstrap != again.bootstrap


def test_units_do_not_matter_when_standardized():
    scaled = diabetes().data * np.logspace(-6, 6, 9) + 1e3
    result = audit(scaled, diabetes().sensitive_features, FairPCA(3), **QUICK)
    assert result.pca.group_errors == pytest.approx(diabetes_audit().pca.group_errors)
    assert result.bootstrap.pca == pytest.approx(diabetes_audit().bootstrap.pca)


def test_tiny_group_has_no_interval_but_an_audit():
    rng = np.random.default_rng(0)
    result = audit(rng.normal(size=(20, 3)), ["a"] * 19 + ["b"], FairPCA(1))
    assert result.cross_validation is None
    assert result.bootstrap is None
    assert result.group_sizes == [19, 1]


def test_infeasible_parity_is_a_status_not_a_warning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * np.repeat([[1.0], [9.0]], [40, 20], axis=0)
    groups = np.repeat(["calm", "wild"], [40, 20])
    result = audit(X, groups, FairPCA(2, constraint=None), standardize=False, **QUICK)
    assert result.status == "parity infeasible at this rank"
    assert not result.path.parity_reached


def test_progress_says_how_much_of_the_work_is_done():
    rows = RowsInMemory(diabetes().data, diabetes().sensitive_features)
    steps = []
    run_audit(
        rows,
        FairPCA(2),
        AuditSettings(**QUICK),
        lambda doing, fraction=None: steps.append((doing, fraction)),
    )
    for doing, total in (
        ("errors against components", 9),
        ("cross-validation", QUICK["n_folds"]),
        ("resampling", 3),
    ):
        fractions = [fraction for said, fraction in steps if said == doing]
        assert fractions == [done / total for done in range(total)]
    assert steps[:2] == [("fitting", None), ("following the trade-off", None)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 95}, "between 0 and 1"),
        ({"n_folds": 1}, "at least 2"),
        ({"n_folds": float("nan")}, "n_folds=nan"),
        ({"n_folds": 2.5}, "n_folds=2.5"),
        ({"n_points": float("nan")}, "n_points=nan"),
        ({"n_resamples": 0}, "n_resamples=0: pass an integer of at least 20"),
        ({"n_scores": 0}, "n_scores=0"),
        ({"level": float("nan")}, "level=nan"),
        ({"ranks": [0, 3]}, "integers from 1 to 9"),
    ],
)
def test_wrong_options_are_explained(options, message):
    with pytest.raises(ValueError, match=message):
        audit(diabetes().data, diabetes().sensitive_features, **options)


def test_ids_among_the_columns_are_warned_of():
    people = pd.DataFrame(diabetes().data, columns=diabetes().feature_names)
    groups = diabetes().sensitive_features
    audit(people, groups, FairPCA(2), **TWO_RANKS)
    numbers = np.arange(1.0, len(people) + 1)
    with_ids = people.assign(person_id=numbers % 7, nr=np.where(numbers == 5, np.nan, numbers))
    match = r"columns \['person_id', 'nr'\] of X are features, but look like row numbers or ids"
    with pytest.warns(UserWarning, match=match) as caught:
        audit(with_ids, groups, FairPCA(2), impute="median", **TWO_RANKS)
    assert caught[0].filename == __file__
    FairPCA(2).fit(with_ids.drop(columns="nr"), sensitive_features=groups)


def test_forgotten_groups_and_constant_data_are_explained():
    with pytest.raises(TypeError, match="sensitive_features is missing"):
        audit(diabetes().data)
    with pytest.raises(ValueError, match="no column of X varies"):
        audit(np.full((10, 3), 0.1), ["a", "b"] * 5)
