"""What estimators refuse, or warn of, and the way out."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.data import make_groups
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from fairpca import BlindPCA, FairColumns, FairPCA, FairPCACV, FairPLS, GroupEraser, WelfarePCA


@pytest.mark.parametrize("small_groups", ["error", "merge", "ignore"])
def test_group_without_weight_is_named(small_groups):
    X, groups = np.arange(12.0).reshape(6, 2) ** 2, np.array(["a", "a", "b", "b", "c", "c"])
    with pytest.raises(ValueError, match=r"\['c'\]"):
        FairPCA(1, small_groups=small_groups).fit(
            X, sensitive_features=groups, sample_weight=groups != "c"
        )


@pytest.mark.parametrize(
    "labels", [[1, 2, pd.NA, 2], np.ma.masked_array([1, 2, 1, 2], mask=[0, 0, 1, 0])], ids=str
)
def test_missing_labels_of_every_kind_are_refused(labels):
    with pytest.raises(ValueError, match="1 missing labels, the first in row 2"):
        FairPCA(1).fit(np.eye(4), sensitive_features=labels)


def test_masked_weights_are_refused():
    weights = np.ma.masked_array(np.ones(4), mask=[0, 1, 0, 0])
    with pytest.raises(TypeError, match="some are masked"):
        FairPCA(1).fit(np.eye(4), sensitive_features=[0, 1, 0, 1], sample_weight=weights)


@pytest.mark.parametrize(
    "estimator",
    [
        FairPCA(2),
        BlindPCA(2, max_mean_gap=1.0),
        BlindPCA(2, hide_covariances=1),
        FairPLS(2, notion=None),
    ],
    ids=str,
)
@pytest.mark.parametrize(("scale", "size"), [(1e90, "large"), (1e-90, "small"), (1e-200, "small")])
def test_numbers_whose_squares_cannot_be_computed_with(two_groups, estimator, scale, size):
    X, groups = two_groups
    y = X[:, 0] > X[:, 0].mean()
    with pytest.raises(ValueError, match=f"total variance of .*, too {size}.*StandardScaler"):
        estimator.fit(X * scale, y, sensitive_features=groups)


@pytest.mark.parametrize("weight", [1e308, 5e-324])
def test_weights_that_cannot_be_computed_with(two_groups, weight):
    X, groups = two_groups
    with pytest.raises(ValueError, match=r"pass sample_weight / sample_weight.max\(\)"):
        FairPCA(2).fit(X, sensitive_features=groups, sample_weight=np.full(len(X), weight))


@pytest.mark.parametrize("scale", [1e50, 1e-50])
def test_very_large_and_very_small_numbers(two_groups, scale):
    X, groups = two_groups
    y = X[:, 0] > X[:, 0].mean()
    for make in (
        lambda unit: FairPCA(2, constraint="no_worse"),
        lambda unit: BlindPCA(2, max_mean_gap=0.01 * unit),
        lambda unit: BlindPCA(2, hide_covariances=1),
        lambda unit: FairPLS(2, notion="demographic_parity", max_mean_gap=0.01 * unit),
    ):
        usual = make(1.0).fit(X, y, sensitive_features=groups)
        scaled = make(scale**2).fit(X * scale, y, sensitive_features=groups)
        np.testing.assert_allclose(scaled.components_, usual.components_, atol=1e-7)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, pd.DataFrame])
@pytest.mark.parametrize("method", ["transform", "score_samples"])
def test_new_rows_with_missing_values_name_the_column(two_groups, make, method):
    X, groups = two_groups
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    new = X[:9].copy()
    new[4, 3] = np.nan
    with pytest.raises(ValueError, match=r"NaN in column .*3.*first in row 4"):
        getattr(fair, method)(make(new))


BAD = [
    ({"n_components": 7}, ValueError, r"n_components=7.*integer from 1 to 6"),
    ({"n_components": 0}, ValueError, "n_components.*Got 0 instead"),
    ({"n_components": -1}, ValueError, "n_components.*Got -1 instead"),
    ({"n_components": 1.5}, ValueError, "n_components.*Got 1.5 instead"),
    ({"n_components": "mle"}, ValueError, "n_components.*Got 'mle' instead"),
    ({"alpha": 1.5}, ValueError, r"alpha.*\[0.0, 1.0\].*Got 1.5 instead"),
    ({"alpha": -0.1}, ValueError, r"alpha.*Got -0.1 instead"),
    ({"alpha": 0.5, "max_disparity": 0.1}, ValueError, "contradict each other"),
    ({"alpha": 0.5, "max_error_increase": 0.1}, ValueError, "contradict each other"),
    ({"max_disparity": 0.5, "max_error_increase": 0.1}, ValueError, "contradict each other"),
    ({"max_disparity": -1}, ValueError, "max_disparity.*Got -1 instead"),
    ({"max_error_increase": -1}, ValueError, "max_error_increase.*Got -1 instead"),
    ({"constraint": "fair"}, ValueError, "constraint.*'no_worse'.*Got 'fair' instead"),
    ({"solver": "newton"}, ValueError, "solver.*Got 'newton' instead"),
    ({"solver": "golden", "alpha": 0.5}, ValueError, "golden.*use solver='exact'"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD, ids=lambda v: str(v)[:40])
def test_bad_parameters(two_groups, options, error, message):
    X, groups = two_groups
    with pytest.raises(error, match=message):
        FairPCA(**{"n_components": 2, **options}).fit(X, sensitive_features=groups)


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (FairPCA(2), "max_disparity"),
        (FairPCA(2), "max_error_increase"),
        (FairPCA(2), "max_group_increase"),
        (FairPCA(2), "tol"),
        (FairPCACV(2), "max_disparity"),
        (FairPCACV(2), "cv"),
        (BlindPCA(2), "max_mean_gap"),
        (WelfarePCA(2), "inequality_aversion"),
    ],
)
def test_parameters_beyond_float64(two_groups, estimator, name):
    X, groups = two_groups
    for value in (10**400, 10**5000):
        with pytest.raises(ValueError, match=f"{name} is beyond"):
            clone(estimator).set_params(**{name: value}).fit(X, sensitive_features=groups)


@pytest.mark.parametrize("table", [np.asarray, np.ndarray.tolist])
def test_whole_numbers_beyond_float64(two_groups, table):
    X, groups = two_groups
    large = X.astype(object)
    large[3, 1] = 10**400
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    columns = FairColumns(2).fit(X, sensitive_features=groups)
    eraser = GroupEraser().fit(X, sensitive_features=groups)
    for call in (
        lambda: FairPCA(2).fit(table(large), sensitive_features=groups),
        lambda: fair.transform(table(large)),
        lambda: fair.score(table(large)),
        lambda: fair.inverse_transform(table(large[:, :2])),
        lambda: columns.inverse_transform(table(large[:, :2])),
        lambda: eraser.transform(table(large)),
    ):
        with pytest.raises(ValueError, match="too large to compute with; divide"):
            call()
    with pytest.raises(TypeError, match="sample_weight"):
        FairPCA(2).fit(X, sensitive_features=groups, sample_weight=large[:, 1])
    with pytest.raises(ValueError, match="too large for float64"):
        FairPLS(1).fit(X, [10**400, *range(1, len(X))], sensitive_features=groups)


@pytest.mark.parametrize("n", [3, 100_000])  # threads of BLAS do not report what overflows
@pytest.mark.parametrize(("kind", "largest"), [(np.float64, 1.7e308), (np.float32, 3.4e38)])
def test_scores_beyond_floats(two_groups, kind, largest, n):
    X, groups = two_groups
    fair = FairPCA(6).fit(X, sensitive_features=groups)
    for call, signs in (
        (fair.transform, np.sign(fair.components_[0])),
        (fair.inverse_transform, np.sign(fair.components_[:, 0])),
    ):
        with pytest.raises(ValueError, match="too large to compute with"):
            call((np.tile(signs, (n, 1)) * largest).astype(kind))
    with pytest.raises(ValueError, match="too large to compute with"):
        fair.score_samples(np.full((n, 6), 1e200))


def test_bad_data(two_groups):
    X, groups = two_groups
    fair = FairPCA(2)
    with pytest.raises(TypeError, match=r"sensitive_features is missing.*fit\(X, sensitive_feat"):
        fair.fit(X)
    with pytest.raises(TypeError, match="sensitive_features is missing"):
        fair.partial_fit(X)
    with pytest.raises(TypeError, match="sensitive_features is missing"):
        fair.fit_transform(X)
    with pytest.raises(ValueError, match=r"'a'.*sklearn\.decomposition"):
        fair.fit(X, sensitive_features=["a"] * len(X))
    for two_only in (FairPCA(2, alpha=0.5), FairPCA(2, solver="golden")):
        with pytest.raises(ValueError, match=r"\[0, 1, 2\]"):
            two_only.fit(X, sensitive_features=np.arange(len(X)) % 3)
    bad = pd.DataFrame(X.copy(), columns=list("abcdef"))
    bad.loc[4, "c"] = np.nan
    with pytest.raises(ValueError, match="NaN in column 'c', first in row 4"):
        fair.fit(bad, sensitive_features=groups)
    assert not hasattr(fair, "components_")
    with pytest.raises(NotFittedError):
        fair.transform(X)
    fair.fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match="expecting 6 features"):
        fair.transform(X[:, :3])
    with pytest.raises(ValueError, match=r"X has 6 features.* expecting 2"):
        fair.inverse_transform(X)
    with pytest.raises(ValueError, match="expecting 6 features"):
        fair.partial_fit(X[:, :3], sensitive_features=groups)
    assert fair.group_sizes_.tolist() == [90, 60]
    named = FairPCA(2).partial_fit(
        pd.DataFrame(X, columns=list("abcdef")), sensitive_features=groups
    )
    with pytest.raises(ValueError, match="feature names should match"):
        named.partial_fit(pd.DataFrame(X, columns=list("abcdez")), sensitive_features=groups)


def test_groups_too_far_apart_for_float64_are_called_so():
    X, groups = make_groups(n=(80, 60), d=4)
    for offset, lost in [(1e4, False), (1e7, True)]:
        moved = X + offset * (groups == "g1")[:, None]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fair = FairPCA(2).fit(moved, sensitive_features=groups)
        assert any("lost in the rounding" in str(warning.message) for warning in caught) is lost
        Z = moved - moved.mean(axis=0)
        left = Z - Z @ fair.components_.T @ fair.components_
        errors = [np.square(left[groups == g]).sum(axis=1).mean() for g in ("g0", "g1")]
        assert np.allclose(fair.group_errors_, errors, rtol=1e-6) is not lost
    np.testing.assert_allclose(
        FairPCA(2).fit(X + 1e7, sensitive_features=groups).group_errors_,  # all groups: no warning
        FairPCA(2).fit(X, sensitive_features=groups).group_errors_,
        rtol=1e-6,
    )


def test_features_drowned_by_another_are_called_so():
    X, groups = make_groups((90, 60), d=6)
    for spread, drowned in [(1e5, False), (1e9, True)]:
        large = X * np.array([1, spread, 1, 1, 1, 1])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            FairPCA(2).fit(large, sensitive_features=groups)
        said = [str(warning.message) for warning in caught]
        assert any("feature 1 varies so much more" in text for text in said) is drowned


@pytest.mark.parametrize(
    "estimator",
    [BlindPCA(1, hide_covariances=True), BlindPCA(1, max_mean_gap=True), FairPCA(True),
     FairPCA(1, alpha=False), FairPLS(1, min_group_size=True)],
    ids=repr,
)  # fmt: skip
def test_bools_are_no_numbers(two_groups, estimator):
    X, groups = two_groups
    with pytest.raises(ValueError, match=r"=(True|False)"):
        estimator.fit(X, X[:, 0] > X[:, 0].mean(), sensitive_features=groups)
