"""SubsetFairPCA: the estimator around the exact front and SPEA2."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from helpers.data import diabetes_by_sex, make_groups
from helpers.estimators import GroupsFromRows
from helpers.inside import generations, products_only
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairpca import FairPCA, LevellingDownWarning
from fairpca.baselines import SubsetFairPCA
from fairpca.datasets import load_checkup
from fairpca.metrics import group_reconstruction_errors, reconstruction_disparity

# The balanced choice often makes every group worse off, which has a test of its own.
pytestmark = pytest.mark.filterwarnings("ignore::fairpca.LevellingDownWarning")


class Subset(GroupsFromRows, SubsetFairPCA):
    """Supplies groups, for the checks that do not."""


@parametrize_with_checks([Subset(1)])
def test_common_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([Subset(2, selection="weighted")])
def test_common_checks_of_other_configurations(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def diabetes():
    bunch = diabetes_by_sex()
    return bunch.data, bunch.sensitive_features


@pytest.mark.parametrize("r", [1, 3, 4, 8])
def test_front_is_that_of_brute_force_over_pca(diabetes, r):
    X, groups = diabetes
    components = PCA(svd_solver="covariance_eigh").fit(X).components_
    mean = X.mean(axis=0)

    class Chosen:
        def __init__(self, subset):
            self.components_, self.mean_ = components[list(subset)], mean

    points = []
    for subset in itertools.combinations(range(X.shape[1]), r):
        errors = list(group_reconstruction_errors(Chosen(subset), X, groups).values())
        sizes = [np.sum(groups == g) for g in np.unique(groups)]
        points.append((np.average(errors, weights=sizes), (errors[1] - errors[0]) ** 2, subset))
    best = [
        (R, F, subset)
        for R, F, subset in sorted(points)
        if not any(R2 <= R + 1e-12 and F2 < F - 1e-12 for R2, F2, s in points if s != subset)
    ]
    front = SubsetFairPCA(r).fit(X, sensitive_features=groups).front_
    assert [tuple(s) for s in front.subsets] == [subset for _, _, subset in best]
    np.testing.assert_allclose(front.errors, [R for R, _, _ in best], rtol=1e-9)
    np.testing.assert_allclose(front.fairness, [F for _, F, _ in best], rtol=1e-6, atol=1e-12)


def test_components_are_the_chosen_eigenvectors_by_variance(diabetes):
    X, groups = diabetes
    fair = SubsetFairPCA(3).fit(X, sensitive_features=groups)
    assert fair.subset_.tolist() == [0, 2, 3]
    pca = PCA(svd_solver="covariance_eigh").fit(X)
    cosines = np.abs(fair.components_ @ pca.components_[fair.subset_].T)
    np.testing.assert_allclose(cosines, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(fair.explained_variance_, pca.explained_variance_[[0, 2, 3]])
    np.testing.assert_allclose(
        np.cov(fair.transform(X).T), np.diag(fair.explained_variance_), atol=1e-9
    )
    chosen = fair.front_.subsets.tolist().index([0, 2, 3])
    assert fair.reconstruction_error_ == pytest.approx(fair.front_.errors[chosen])
    assert fair.disparity_**2 == pytest.approx(fair.front_.fairness[chosen])
    assert reconstruction_disparity(fair, X, groups) ** 2 == pytest.approx(
        fair.front_.fairness[chosen]
    )
    assert (fair.status_, fair.duality_gap_) == ("selected from the front", 0.0)
    assert np.isnan(fair.alpha_)


def test_rules_pick_points_of_the_same_front(diabetes):
    X, groups = diabetes
    fits = {
        rule: SubsetFairPCA(3, selection=rule).fit(X, sensitive_features=groups)
        for rule in ("balanced", "weighted", "least_error", "fairest")
    }
    error = {rule: fair.reconstruction_error_ for rule, fair in fits.items()}
    fairness = {rule: fair.disparity_**2 for rule, fair in fits.items()}
    assert error["least_error"] == min(error.values())
    assert fairness["fairest"] == min(fairness.values())
    pca = fits["least_error"]
    assert pca.subset_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(pca.group_errors_, pca.pca_group_errors_, rtol=1e-12)


def test_no_subset_beats_fair_pca_in_both_objectives(diabetes):
    X, groups = diabetes
    for r in range(1, 9):
        front = SubsetFairPCA(r).fit(X, sensitive_features=groups).front_
        for R, F in zip(front.errors, front.fairness, strict=True):
            best = FairPCA(r, max_disparity=float(np.sqrt(F)))
            best.fit(X, sensitive_features=groups)
            assert best.reconstruction_error_ <= R * (1 + 1e-9)


# The figures of METHOD.md: r, F and R of the balanced choice.
@pytest.mark.parametrize(
    ("r", "fairness", "error"),
    [(4, 0.036, 8.948), (5, 0.0097, 8.060), (6, 1.2e-4, 7.101), (7, 1.0e-8, 5.882)],
)
def test_known_points_on_tcred(tcred_moments, r, fairness, error):
    fair = SubsetFairPCA(r).fit(tcred_moments)
    assert fair.disparity_**2 == pytest.approx(fairness, rel=2e-2)
    assert round(fair.reconstruction_error_, 3) == error


def test_levelling_down_is_not_silent():
    people = load_checkup()
    X, groups = people.data, people.sensitive_features
    with pytest.warns(LevellingDownWarning, match=r"the error rises for .* and .*FairPCA lowers"):
        fair = SubsetFairPCA(3).fit(X, sensitive_features=groups)
    assert (fair.group_errors_ > 2 * fair.pca_group_errors_).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SubsetFairPCA(5, selection="least_error").fit(X, sensitive_features=groups)


def test_spea2_is_seeded_and_proves_nothing(diabetes, monkeypatch):
    X, groups = diabetes
    pytest.importorskip("pymoo")
    generations(monkeypatch, 10)
    exact = SubsetFairPCA(2).fit(X, sensitive_features=groups)
    found = SubsetFairPCA(2, solver="spea2", random_state=3).fit(X, sensitive_features=groups)
    again = clone(found).fit(X, sensitive_features=groups)
    np.testing.assert_array_equal(found.front_.subsets, again.front_.subsets)
    np.testing.assert_array_equal(found.components_, again.components_)
    assert np.isnan(found.duality_gap_)
    for R, F in zip(found.front_.errors, found.front_.fairness, strict=True):
        dominating = (exact.front_.errors <= R + 1e-12) & (exact.front_.fairness <= F + 1e-12)
        assert dominating.any()


def test_too_many_subsets_are_refused_or_searched(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 40)) * np.linspace(3, 1, 40)
    groups = np.arange(90) % 3 == 0
    with pytest.raises(ValueError, match=r"pass SubsetFairPCA\(20, solver='spea2'\)"):
        SubsetFairPCA(20, solver="exact").fit(X, sensitive_features=groups)
    pytest.importorskip("pymoo")
    generations(monkeypatch, 10)
    fair = SubsetFairPCA(20, random_state=0).fit(X, sensitive_features=groups)
    assert np.isnan(fair.duality_gap_)
    assert len(fair.front_) >= 1
    assert fair.front_.subsets[0].tolist() == list(range(20))


def test_all_components_must_be_computable(monkeypatch, diabetes):
    X, groups = diabetes
    products_only(monkeypatch, above=5)
    with pytest.raises(ValueError, match=r"9 x 9 matrices.*use FairPCA"):
        SubsetFairPCA(2).fit(X, sensitive_features=groups)


def test_blocks_give_the_same_as_one_pass(diabetes):
    X, groups = diabetes
    fair = SubsetFairPCA(3).fit(X, sensitive_features=groups)
    blocks = SubsetFairPCA(3)
    for rows in np.array_split(np.arange(len(X)), 5):
        blocks.partial_fit(X[rows], sensitive_features=groups[rows])
    np.testing.assert_array_equal(blocks.subset_, fair.subset_)
    np.testing.assert_allclose(blocks.components_, fair.components_, atol=1e-10)


@pytest.mark.parametrize("parameters", [{"selection": "M2"}, {"solver": "milp"}])
def test_parameters_are_checked(diabetes, parameters):
    X, groups = diabetes
    with pytest.raises(ValueError, match=next(iter(parameters))):
        SubsetFairPCA(2, **parameters).fit(X, sensitive_features=groups)


@pytest.mark.parametrize("unit", [1e-58, 1e-55, 1e-20, 1e20, 1e52, 1e58])
@pytest.mark.parametrize("options", [{}, {"selection": "weighted"}, {"solver": "spea2"}])
def test_units_change_nothing(unit, options):
    if options.get("solver") == "spea2":
        pytest.importorskip("pymoo", reason="needs the subset extra")
        options = options | {"random_state": 0}
    X, groups = make_groups((90, 60), d=8)
    whole = SubsetFairPCA(4, **options).fit(X, sensitive_features=groups)
    other = SubsetFairPCA(4, **options).fit(X * unit, sensitive_features=groups)
    assert other.subset_.tolist() == whole.subset_.tolist()
    np.testing.assert_allclose(other.front_.errors / unit**2, whole.front_.errors)
    np.testing.assert_allclose(other.front_.fairness / unit**2 / unit**2, whole.front_.fairness)
