"""FairColumns: which columns to keep, against every subset written out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from helpers.data import make_groups
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairpca
from fairpca import FairColumns, FairPCA, GroupMoments, audit
from fairpca.datasets import load_checkup, load_rand_health


def people(seed=0, n=240, d=7, k=3):
    """Rows of k groups whose columns hang together differently."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(k, n, p=np.arange(1, k + 1) / (k * (k + 1) / 2))
    X = rng.standard_normal((n, d))
    for g in range(k):
        X[groups == g] = X[groups == g] @ rng.standard_normal((d, d)) + rng.standard_normal(d)
    return X, np.array(list("abcdef"))[groups]


def errors_by_least_squares(X, groups, kept, weights=None):
    """Mean squared error of each group when the kept columns rebuild all, by numpy's lstsq."""
    weights = np.ones(len(X)) if weights is None else weights
    centred = X - np.average(X, axis=0, weights=weights)
    root = np.sqrt(weights)[:, None]
    maps = np.linalg.lstsq(root * centred[:, kept], root * centred, rcond=None)[0]
    lost = ((centred - centred[:, kept] @ maps) ** 2).sum(axis=1)
    return np.array(
        [np.average(lost[groups == g], weights=weights[groups == g]) for g in np.unique(groups)]
    )


@pytest.mark.parametrize("r", [1, 2, 4, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_subset_is_better(seed, r):
    X, groups = people(seed)
    fair = FairColumns(r).fit(X, sensitive_features=groups)
    errors = {
        kept: errors_by_least_squares(X, groups, list(kept)) for kept in combinations(range(7), r)
    }
    best = min(errors, key=lambda kept: errors[kept].max())
    np.testing.assert_allclose(fair.group_errors_, errors[best], rtol=1e-9, atol=1e-9)
    assert sorted(fair.columns_) == list(best)
    shares = fair.group_sizes_ / fair.group_sizes_.sum()
    usual = min(errors, key=lambda kept: shares @ errors[kept])
    assert sorted(fair.baseline_columns_) == list(usual)
    np.testing.assert_allclose(fair.baseline_group_errors_, errors[usual], rtol=1e-9, atol=1e-9)
    assert fair.duality_gap_ == 0
    assert fair.status_ == "all subsets tried"


@pytest.mark.parametrize("seed", range(4))
def test_the_search_is_no_worse_than_its_gap_says(seed):
    X, groups = people(seed, d=9)
    best = FairColumns(4).fit(X, sensitive_features=groups)
    found = FairColumns(4, max_subsets=10).fit(X, sensitive_features=groups)
    assert found.status_ == "best subset found, not proven"
    excess = found.group_errors_.max() - best.group_errors_.max()
    assert -1e-9 <= excess <= found.duality_gap_
    assert excess <= 0.1 * best.group_errors_.max()


@pytest.mark.parametrize("seed", [14, 17, 20, 45, 48, 58])
def test_neither_choice_of_a_search_is_beaten_by_the_other(seed):
    rng = np.random.default_rng(seed)
    d, r, k = (int(rng.integers(*span)) for span in ((10, 26), (2, 9), (2, 4)))
    groups, factors = np.arange(200) % k, rng.standard_normal((4, d))
    X = np.empty((200, d))
    for g in range(k):  # nearly of rank four
        own, n = factors + 0.3 * rng.standard_normal((4, d)), (groups == g).sum()
        X[groups == g] = rng.standard_normal((n, 4)) @ own + 0.3 * rng.standard_normal((n, d))
    fair = FairColumns(r, max_subsets=0).fit(X, sensitive_features=groups)
    shares = fair.group_sizes_ / fair.group_sizes_.sum()
    assert fair.group_errors_.max() <= fair.baseline_group_errors_.max() * (1 + 1e-9)
    assert shares @ fair.baseline_group_errors_ <= fair.reconstruction_error_ * (1 + 1e-9)
    if d <= 14:
        best = FairColumns(r).fit(X, sensitive_features=groups)
        assert fair.group_errors_.max() - best.group_errors_.max() <= fair.duality_gap_


@pytest.mark.parametrize(("d", "r"), [(9, 7), (10, 9), (12, 8)])
def test_most_columns_kept_by_trying_all_and_by_a_search(d, r):
    X, groups = people(d=d)
    X[:, -1] = X[:, 0] + X[:, 1]  # singular
    best = FairColumns(r).fit(X, sensitive_features=groups)
    found = FairColumns(r, max_subsets=0).fit(X, sensitive_features=groups)
    errors = errors_by_least_squares(X, groups, sorted(best.columns_))
    np.testing.assert_allclose(best.group_errors_, errors, rtol=1e-7, atol=1e-9)
    assert -1e-9 <= found.group_errors_.max() - best.group_errors_.max() <= found.duality_gap_


def test_no_columns_beat_the_bound():
    X, groups = people()
    fair = FairColumns(3).fit(X, sensitive_features=groups)
    pca = FairPCA(3).fit(X, sensitive_features=groups)
    assert fair.lower_bound_ <= fair.group_errors_.max()
    assert pca.group_errors_.max() - pca.duality_gap_ == pytest.approx(fair.lower_bound_)


def test_the_check_up_keeps_diastolic_pressure():
    bunch = load_checkup()
    fair = FairColumns(3, standardize=True)
    fair.fit(bunch.data, sensitive_features=bunch.sensitive_features)
    names = np.array(bunch.feature_names)
    assert set(names[fair.baseline_columns_]) == {"weight", "height", "systolic"}
    assert set(names[fair.columns_]) == {"weight", "systolic", "diastolic"}
    assert fair.baseline_group_errors_.round(2).tolist() == [5.81, 4.57]
    assert fair.group_errors_.max().round(1) == 4.9
    assert round(fair.lower_bound_, 2) == 4.32


def test_rand_health():
    bunch = load_rand_health()
    fair = FairColumns(5, standardize=True)
    fair.fit(bunch.data, sensitive_features=bunch.sensitive_features)
    assert round(fair.group_errors_.max(), 2) == 7.39
    assert round(fair.baseline_group_errors_.max(), 2) == 9.01
    assert round(fair.lower_bound_, 2) == 6.03


def test_it_selects_and_rebuilds():
    X, groups = people()
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(7)])
    fair = FairColumns(3).fit(frame, sensitive_features=groups)
    kept = np.sort(fair.columns_)
    assert fair.get_support().sum() == 3
    assert fair.get_support(indices=True).tolist() == kept.tolist()
    assert fair.get_feature_names_out().tolist() == [f"c{j}" for j in kept]
    assert fair.set_output(transform="pandas").transform(frame).equals(frame.iloc[:, kept])
    rebuilt = fair.inverse_transform(X[:, kept])
    np.testing.assert_allclose(rebuilt[:, kept], X[:, kept], rtol=1e-9)
    lost = ((X - rebuilt) ** 2).sum(axis=1)
    errors = [lost[groups == g].mean() for g in fair.groups_]
    np.testing.assert_allclose(errors, fair.group_errors_)


def test_a_frame_to_rebuild_from_has_the_columns_that_transform_gives():
    X, groups = people()
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(7)])
    fair = FairColumns(3).fit(frame, sensitive_features=groups)
    kept = frame.iloc[:, np.sort(fair.columns_)]
    np.testing.assert_array_equal(
        fair.inverse_transform(kept), fair.inverse_transform(kept.to_numpy())
    )
    for wrong in (kept.iloc[:, ::-1], kept.rename(columns={kept.columns[0]: "other"})):
        with pytest.raises(ValueError, match="columns that transform keeps"):
            fair.inverse_transform(wrong)


def test_standardised_it_rebuilds_raw_numbers():
    X, groups = people()
    X = X * np.geomspace(1e-3, 1e3, 7) + 1e4
    fair = FairColumns(3, standardize=True).fit(X, sensitive_features=groups)
    lost = (((X - fair.inverse_transform(fair.transform(X))) / X.std(axis=0)) ** 2).sum(axis=1)
    errors = [lost[groups == g].mean() for g in fair.groups_]
    np.testing.assert_allclose(errors, fair.group_errors_, rtol=1e-6)
    scaled = FairColumns(3).fit(StandardScaler().fit_transform(X), sensitive_features=groups)
    assert scaled.columns_.tolist() == fair.columns_.tolist()


def test_columns_are_in_the_order_in_which_they_help():
    X, groups = people()
    fair = FairColumns(4).fit(X, sensitive_features=groups)
    first = [errors_by_least_squares(X, groups, [j]).max() for j in fair.columns_]
    assert np.argmin(first) == 0


def test_weights_count_rows():
    X, groups = people()
    weights = np.random.default_rng(1).integers(1, 4, len(X))
    fair = FairColumns(2).fit(X, sensitive_features=groups, sample_weight=weights)
    again = FairColumns(2).fit(
        np.repeat(X, weights, axis=0), sensitive_features=np.repeat(groups, weights)
    )
    np.testing.assert_allclose(fair.group_errors_, again.group_errors_)
    errors = errors_by_least_squares(X, groups, sorted(fair.columns_), weights)
    np.testing.assert_allclose(fair.group_errors_, errors)


def test_moments_and_blocks_give_the_same():
    X, groups = people()
    whole = FairColumns(3).fit(X, sensitive_features=groups)
    by_moments = FairColumns(3).fit(GroupMoments.from_data(X, groups))
    by_blocks = FairColumns(3)
    for rows in (slice(0, 100), slice(100, None)):
        by_blocks.partial_fit(X[rows], sensitive_features=groups[rows])
    for other in (by_moments, by_blocks):
        assert other.columns_.tolist() == whole.columns_.tolist()
        np.testing.assert_allclose(other.group_errors_, whole.group_errors_)


@pytest.mark.parametrize("max_subsets", [0, 1000])
def test_redundant_columns_are_no_trouble(max_subsets):
    X, groups = people(d=4)
    X = np.hstack([X, X[:, :2], np.ones((len(X), 1))])  # singular: two twins and a constant
    fair = FairColumns(4, max_subsets=max_subsets).fit(X, sensitive_features=groups)
    assert fair.group_errors_.max() <= 1e-9 * X.var()
    np.testing.assert_allclose(fair.inverse_transform(fair.transform(X)), X, atol=1e-6)


def test_all_columns_lose_nothing():
    X, groups = people(d=3)
    fair = FairColumns(3).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(fair.group_errors_, 0, atol=1e-9)
    np.testing.assert_allclose(fair.inverse_transform(X), X)


def test_equal_groups_keep_the_usual_choice():
    X, _ = people(k=1)
    twice, groups = np.vstack([X, X]), np.repeat(["a", "b"], len(X))
    fair = FairColumns(2).fit(twice, sensitive_features=groups)
    assert sorted(fair.columns_) == sorted(fair.baseline_columns_)


@pytest.mark.parametrize("r", [1, 2])
def test_a_search_ends_where_nothing_is_left_to_gain(r):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 1)) @ rng.standard_normal((1, 6))  # one column tells all
    fair = FairColumns(r, max_subsets=0).fit(X, sensitive_features=np.arange(12) % 3)
    np.testing.assert_allclose(fair.group_errors_, 0, atol=1e-12)


@pytest.mark.parametrize("r", [0, 8, 2.0, 0.5, True, None, "2"])
def test_bad_numbers_of_columns(r):
    X, groups = people()
    with pytest.raises(ValueError, match="n_columns"):
        FairColumns(r).fit(X, sensitive_features=groups)


def test_one_group_or_none():
    X, _ = people()
    with pytest.raises(ValueError, match="one group only") as refused:
        FairColumns(2).fit(X, sensitive_features=np.zeros(len(X)))
    assert "PCA" not in str(refused.value)  # which keeps no columns
    with pytest.raises(TypeError, match="sensitive_features"):
        FairColumns(2).fit(X)
    with pytest.raises(NotFittedError):
        FairColumns(2).transform(X)


def test_in_a_pipeline():
    X, groups = make_groups()
    pipeline = make_pipeline(StandardScaler(), FairColumns(2))
    kept = pipeline.fit(X, faircolumns__sensitive_features=groups).transform(X)
    assert kept.shape == (len(X), 2)


@pytest.mark.parametrize("standardize", [False, True])
def test_an_audit_judges_rows_left_out(standardize):
    X, groups = people()
    folds = np.arange(len(X)) % 4
    model = FairColumns(3, standardize=standardize)
    result = audit(model, GroupMoments.from_data(X, groups, folds=folds))
    usual = [row.baseline.error for row in result.groups]
    fair = [row.alternative.error for row in result.groups]
    lost = np.zeros((2, len(X)))
    for fold in range(4):
        out = folds == fold
        model.fit(X[~out], sensitive_features=groups[~out])
        centre = X[~out].mean(axis=0)
        scale = X[~out].std(axis=0) if standardize else np.ones(X.shape[1])
        Z, new = (X[~out] - centre) / scale, (X[out] - centre) / scale
        for i, kept in enumerate((model.columns_, model.baseline_columns_)):
            rebuilt = new[:, kept] @ np.linalg.lstsq(Z[:, kept], Z, rcond=None)[0]
            lost[i, out] = ((new - rebuilt) ** 2).sum(axis=1)
    for found, own in zip((fair, usual), lost, strict=True):
        np.testing.assert_allclose(found, [own[groups == g].mean() for g in np.unique(groups)])


def test_an_audit_tries_all_of_many_subsets_once():
    numbers = []

    class Counted(FairColumns):
        def fit(self, *args, **kwargs):
            numbers.append(self.max_subsets)
            return super().fit(*args, **kwargs)

    X, groups = people(d=5)
    audit(Counted(2), X, groups, cv=3)
    assert numbers[0] == 1_000_000
    assert numbers[1:] == [5000] * 3


@pytest.mark.parametrize("options", [{}, {"standardize": True}, {"relative_errors": True}])
def test_rows_and_moments_are_audited_alike(options):
    X, groups = people()
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X))
    model = FairColumns(3, **options)
    by_rows = audit(model, X, groups, sample_weight=weights, cv=5)
    moments = GroupMoments.from_data(X, groups, weights, folds=5)
    by_moments = audit(model, moments)
    assert by_rows.kept == by_moments.kept
    for one, other in zip(by_rows.groups, by_moments.groups, strict=True):
        for kind in ("baseline", "alternative"):
            own, same = getattr(one, kind), getattr(other, kind)
            assert (own.error, own.share) == pytest.approx((same.error, same.share))
    fitted = clone(model).fit(X, sensitive_features=groups, sample_weight=weights)
    if not options:
        np.testing.assert_allclose(by_rows.fit.fair_errors, fitted.group_errors_)
        np.testing.assert_allclose(by_rows.fit.pca_errors, fitted.baseline_group_errors_)


def test_an_audit_says_who_gains_and_who_pays():
    bunch = load_checkup()
    frame = pd.DataFrame(bunch.data, columns=bunch.feature_names)
    result = audit(FairColumns(3, standardize=True), frame, bunch.sensitive_features)
    assert result.verdict.case.value == "a gap, and a remedy that reliably helps"
    assert (result.verdict.group, result.verdict.payers) == ("75 and older", ["younger"])
    assert set(result.kept.fair) == {"weight", "systolic", "diastolic"}
    assert "PCA" not in repr(result)


def test_audited_as_the_last_step_of_a_pipeline():
    X, groups = people()
    X[::7, 2] = np.nan
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), FairColumns(3))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(7)])
    result = audit(pipeline, frame, groups, probes=True)
    assert set(result.kept.fair) <= set(frame)
    assert len(result.leakage.alternative_probes) > 0


def test_columns_that_cannot_be_judged():
    X, groups = people(k=2)
    lossless = audit(FairColumns(7), X, groups)
    assert lossless.verdict.reason.value == "nothing compressed"
    assert "columns" in repr(lossless)
    groups = np.where(np.arange(len(X)) == 0, "b", "a")
    with pytest.raises(ValueError, match="only one group is left"):
        audit(FairColumns(2), X, groups)


def test_saved_and_loaded(tmp_path):
    pytest.importorskip("safetensors")
    X, groups = people()
    fair = FairColumns(3, standardize=True).fit(X, sensitive_features=groups)
    fair.save(tmp_path / "columns.safetensors")
    again = fairpca.load_model(tmp_path / "columns.safetensors")
    assert isinstance(again, FairColumns)
    assert again.status_ == fair.status_
    kept = again.transform(X)
    np.testing.assert_array_equal(kept, fair.transform(X))
    np.testing.assert_array_equal(again.inverse_transform(kept), fair.inverse_transform(kept))


@pytest.mark.parametrize("max_subsets", [0, 1000])
@pytest.mark.parametrize("unit", [1e58, 1e-58])
def test_units_do_not_matter(unit, max_subsets):
    X, groups = people()
    fair, other = FairColumns(3, max_subsets=max_subsets), FairColumns(3, max_subsets=max_subsets)
    fair.fit(X, sensitive_features=groups)
    other.fit(X * unit, sensitive_features=groups)
    assert other.columns_.tolist() == fair.columns_.tolist()
    np.testing.assert_allclose(other.group_errors_ / unit**2, fair.group_errors_, rtol=1e-9)
    np.testing.assert_allclose(other.rebuild_map_, fair.rebuild_map_, atol=1e-9)
