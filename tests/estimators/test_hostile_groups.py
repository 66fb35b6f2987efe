"""More than two groups, in settings where rounding, ties or local optima could decide."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

from fairpca import BlindPCA, FairColumns, FairPCA, FairPCACV, MinMaxPCA, WelfarePCA
from fairpca.baselines import MultiplicativeWeightsPCA
from fairpca.metrics import group_reconstruction_errors

QUIET = pytest.mark.filterwarnings("ignore::UserWarning")
CONSTRAINTS = ["parity", "no_worse", "efficient"]


def rows_with(variances):
    """Rows whose second moments are diagonal, with these variances exactly."""
    half = np.diag(np.sqrt(np.array(variances) * len(variances)))
    return np.vstack([half, -half])


def groups_with(*variances):
    X = [rows_with(v) for v in variances]
    return np.vstack(X), np.repeat(np.arange(len(X)), [len(part) for part in X])


def one_row_per_group(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(4, 5)), rng.integers(1, 10, 4).astype(float)


@cache
def fit_one_row_per_group(seed, constraint, factor=1.0):
    X, weights = one_row_per_group(seed)
    fair = FairPCA(2, constraint=constraint)
    return fair.fit(X, sensitive_features=range(4), sample_weight=factor * weights)


@QUIET
@pytest.mark.parametrize("seed", [119, 144, 146])
def test_no_option_is_beaten_by_the_projection_of_another(seed):
    fits = {constraint: fit_one_row_per_group(seed, constraint) for constraint in CONSTRAINTS}
    unit = fits["parity"].pca_group_errors_.max()
    for wider, narrower in (
        ("parity", "no_worse"),
        ("parity", "efficient"),
        ("no_worse", "efficient"),
    ):
        mine, theirs = fits[wider], fits[narrower]
        if theirs.disparity_ <= mine.disparity_ + 1e-9 * unit:
            assert mine.reconstruction_error_ <= theirs.reconstruction_error_ + 1e-7 * unit
        assert mine.disparity_ <= theirs.disparity_ + 1e-8 * unit


@QUIET
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_weights_count_by_their_proportions_only(constraint):
    errors = [
        fit_one_row_per_group(146, constraint, factor).reconstruction_error_
        for factor in (1.0, 7.3e-3)
    ]
    np.testing.assert_allclose(errors, errors[0], rtol=1e-7)


@QUIET
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("seed", [4, 12])
def test_the_overall_error_is_bounded_whatever_is_certified(seed, constraint):
    # Random projections with as small a spread, or a largest error as small, are not better.
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(4, 3)), np.arange(4)
    fair = FairPCA(1, constraint=constraint).fit(X, sensitive_features=groups)
    least = fair.reconstruction_error_ - fair.error_gap_
    assert 0.0 <= fair.error_gap_ <= fair.reconstruction_error_
    U = rng.normal(size=(20_000, 3))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    centred = X - X.mean(axis=0)
    errors = (centred**2).sum(axis=1) - (U @ centred.T) ** 2
    largest = errors.max(axis=1)
    allowed = largest - errors.min(axis=1) <= fair.disparity_ + 1e-12
    if constraint == "efficient":
        allowed = largest <= fair.group_errors_.max()
    elif constraint == "no_worse":
        allowed &= largest <= fair.pca_group_errors_.max()
    assert errors.mean(axis=1)[allowed].min(initial=np.inf) >= least - 1e-9


@QUIET
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("difference", [1e-11, 1e-10])
def test_groups_that_are_nearly_the_same_cost_nothing(constraint, difference):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 5))
    X = np.vstack([rows, *(rows + difference * rng.normal(size=rows.shape) for _ in range(2))])
    fair = FairPCA(2, constraint=constraint)
    fair.fit(X, sensitive_features=np.repeat(range(3), 20))
    assert np.ptp(fair.pca_group_errors_) < 1e-9 * fair.pca_group_errors_.max()
    assert fair.status_ == "already fair"
    assert fair.reconstruction_error_ == pytest.approx(fair.pca_reconstruction_error_, rel=1e-12)


@QUIET
@pytest.mark.parametrize("shift", [0.0, 3.3, 1e5, 1e7])
@pytest.mark.parametrize(
    "estimator",
    [
        FairPCA(1),
        FairPCA(1, relative_errors=True),
        *(MinMaxPCA(1, criterion=criterion) for criterion in ("loss", "error", "variance")),
        *(WelfarePCA(1, inequality_aversion=a) for a in (0.5, 1.0, 3.0, np.inf)),
        WelfarePCA(1, center="group"),
        BlindPCA(1),
        FairColumns(1),
    ],
    ids=repr,
)
def test_a_group_that_does_not_vary_has_no_say(estimator, shift):
    rng = np.random.default_rng(0)
    scales = np.array([[3, 2, 1, 0.5], [1, 1, 2, 2], [1, 1, 1, 1]])
    groups = np.repeat([0, 1, 2], [50, 40, 30])
    X = rng.normal(size=(120, 4)) * scales[groups] + shift * np.array([1, 0.3, 0.7, 0.1])
    constant = np.tile(X.mean(axis=0), (10, 1))
    alone = estimator.fit(X, sensitive_features=groups).group_errors_
    both = estimator.fit(np.vstack([X, constant]), sensitive_features=np.append(groups, [3] * 10))
    np.testing.assert_allclose(both.group_errors_[:3], alone, rtol=1e-6)
    if not isinstance(estimator, FairColumns):
        assert both.group_explained_variance_ratio_[3] == 1.0


@QUIET
@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("d", [5, 200])
@pytest.mark.parametrize(
    "estimator",
    [
        *(WelfarePCA(2, inequality_aversion=a) for a in (0.0, 1.0, 2.0, np.inf)),
        *(MinMaxPCA(2, criterion="variance", center=center) for center in ("overall", "group")),
        MultiplicativeWeightsPCA(2, criterion="variance", center="overall"),
    ],
    ids=repr,
)
def test_beside_a_group_that_does_not_vary_the_other_one_gets_its_own_pca(estimator, d, shift):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, d)) * np.geomspace(3, 0.2, d) + shift * rng.normal(size=d)
    both = np.vstack([X, np.tile(X.mean(axis=0), (7, 1))])
    groups = np.repeat(["a", "c"], [60, 7])
    fair = estimator.fit(both, sensitive_features=groups)
    lost = np.linalg.eigvalsh(np.cov(X.T, bias=True))[:-2].sum()
    np.testing.assert_allclose(fair.group_errors_, [lost, 0.0], rtol=1e-7)
    assert group_reconstruction_errors(fair, both, groups, relative_errors=True)["c"] == 0.0


@QUIET
@pytest.mark.parametrize("seed", range(5))
def test_worst_off_groups_are_called_equal_if_they_are_to_the_tolerance(seed):
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(3, 6)), int(rng.integers(3, 8))
    rank = int(rng.integers(1, d + 1))
    first = rng.integers(0, 4, d) + np.eye(d)[0]
    for variances in ([np.roll(first, j) for j in range(k)], rng.uniform(0.1, 4.0, (k, d))):
        X, groups = groups_with(*variances)
        for criterion in ("error", "variance"):
            worst = MinMaxPCA(rank, criterion=criterion).fit(X, sensitive_features=groups)
            values = worst.group_errors_
            if criterion == "variance":
                values = values - np.sum(variances, axis=1)
            tied = np.count_nonzero(values >= values.max() - 1e-6 * abs(values.max()) - 1e-12)
            texts = {1: "one group decides", k: "groups equal"}
            assert worst.status_ == texts.get(tied, "worst-off groups equal")


@QUIET
def test_groups_that_are_equal_to_the_tolerance_are_called_equal():
    variances = [2.0, 1, 1, 0, 0, 0, 0]
    X, groups = groups_with(*(np.roll(variances, j) for j in range(5)))
    for rank in (1, 2, 4):
        worst = MinMaxPCA(rank, criterion="error").fit(X, sensitive_features=groups)
        equal = np.ptp(worst.group_errors_) <= 1e-6 * worst.group_errors_.max()
        assert (worst.status_ == "groups equal") == equal
    assert equal


@pytest.mark.parametrize("estimator", [MinMaxPCA, WelfarePCA])
def test_all_components_do_not_make_variances_equal(estimator):
    X, groups = groups_with([1.0, 1, 0.4], [4.0, 4, 2.2], [20.0, 2, 1.4])
    options = (
        {"criterion": "variance"} if estimator is MinMaxPCA else {"inequality_aversion": np.inf}
    )
    fair = estimator(3, **options).fit(X, sensitive_features=groups)
    assert fair.status_ == "one group decides"
    assert fair.duality_gap_ <= 1e-12
    errors = MinMaxPCA(3, criterion="error").fit(X, sensitive_features=groups)
    assert errors.status_ == "groups equal"


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("option", ["max_error_increase", "max_group_increase"])
@pytest.mark.parametrize("increase", [1e20, 1e300, 1.7e308])
def test_a_budget_that_nothing_can_exceed_is_none(increase, option, constraint):
    rng = np.random.default_rng(1)
    X, groups = rng.normal(size=(60, 6)) * [3, 2, 1, 1, 1, 1], np.arange(60) % 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        plain, limited = (
            FairPCA(2, constraint=constraint, **{option: limit}).fit(X, sensitive_features=groups)
            for limit in (None, increase)
        )
    assert limited.status_ == plain.status_
    np.testing.assert_allclose(limited.group_errors_, plain.group_errors_, rtol=1e-9)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("option", ["max_error_increase", "max_group_increase"])
def test_held_out_errors_within_a_budget_that_nothing_can_exceed(option, k):
    rng = np.random.default_rng(1)
    X, groups = rng.normal(size=(60, 6)) * [3, 2, 1, 1, 1, 1], np.arange(60) % k
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        plain, limited = (
            FairPCACV(2, cv=3, **{option: limit}).fit(X, sensitive_features=groups)
            for limit in (1e3, 1.7e308)
        )
    np.testing.assert_allclose(limited.group_errors_, plain.group_errors_, rtol=1e-9)


@QUIET
@pytest.mark.parametrize("seed", [11, 26])
def test_a_disparity_budget_takes_few_decompositions(seed):
    # No projection attains the bound here, on the whole way to the budget.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 8))
    groups, rank = rng.integers(0, 6, 60), int(rng.integers(1, 7))
    plain = FairPCA(rank).fit(X, sensitive_features=groups)
    budget = rng.uniform(0.02, 0.9) * np.ptp(plain.pca_group_errors_)
    fair = FairPCA(rank, max_disparity=budget).fit(X, sensitive_features=groups)
    assert fair.status_ == "disparity budget met"
    assert fair.disparity_ <= budget * (1 + 1e-9)
    assert fair.duality_gap_ <= 0.01 * fair.reconstruction_error_
    assert fair.n_eigensolves_ <= 5 * max(plain.n_eigensolves_, 40)


@QUIET
def test_a_share_for_every_group_takes_few_searches():
    # The group of least variance decides; PCA keeps its directions last.
    rng = np.random.default_rng(0)
    groups = np.arange(900) % 3
    X = rng.normal(size=(900, 30)) * np.arange(1, 31) ** -0.5
    X[groups == 2] = 0.2 * X[groups == 2] @ np.linalg.qr(rng.normal(size=(30, 30)))[0]
    fair = FairPCA(0.9).fit(X, sensitive_features=groups)
    assert fair.group_explained_variance_ratio_.min() >= 0.9 - 1e-12
    fewer = FairPCA(fair.n_components_ - 1).fit(X, sensitive_features=groups)
    assert fewer.group_explained_variance_ratio_.min() < 0.9
    assert fair.n_eigensolves_ <= 3 * (fewer.n_eigensolves_ + 5)


@pytest.fixture
def decompositions(monkeypatch):
    """The sizes of the matrices that were decomposed, however the solver counts them."""
    sizes, eigh = [], np.linalg.eigh

    def counted(M):
        sizes.append(len(M))
        return eigh(M)

    monkeypatch.setattr(np.linalg, "eigh", counted)
    return sizes


@QUIET
def test_a_degenerate_tail_takes_few_decompositions(decompositions):
    # Each group has the same variance in all directions that PCA leaves out.
    rng, d = np.random.default_rng(0), 230
    spectra = np.repeat([[1.0], [1.001], [1.002]], d, axis=1)
    spectra[:, : d // 2] = 1 + rng.gamma(1.0, 3.0, size=(3, d // 2))
    X, groups = groups_with(*spectra)
    fair = FairPCA(d // 2, constraint="parity").fit(X, sensitive_features=groups)
    assert fair.status_ == "parity reached"
    assert fair.duality_gap_ <= 1e-6 * fair.reconstruction_error_
    assert sum(size >= d // 4 for size in decompositions) <= 200


@QUIET
@pytest.mark.parametrize("constraint", ["parity", "no_worse"])
@pytest.mark.parametrize("seed", [1, 5, 6, 12])
def test_a_group_that_loses_nothing_under_pca_sets_no_limit(seed, constraint):
    # Its error is rounding and may be negative; times an infinite increase it must not count.
    rng, d = np.random.default_rng(seed), 4
    variances = rng.integers(0, 6, (3, d)).astype(float)
    variances[0] = [9 + variances[0, 0], 9 + variances[0, 1], 0, 0]
    X, groups = groups_with(*variances)
    X = X @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    rank = int(rng.integers(2, 4))
    fair = FairPCA(rank, constraint=constraint, max_error_increase=0.05)
    fair.fit(X, sensitive_features=groups)
    assert fair.pca_group_errors_[0] == pytest.approx(0, abs=1e-12)
    assert fair.status_ != "group limit reached"
    assert fair.reconstruction_error_ <= 1.05 * fair.pca_reconstruction_error_ * (1 + 1e-9)
    assert fair.disparity_ < np.ptp(fair.pca_group_errors_)
    if constraint == "no_worse":
        assert fair.group_errors_.max() <= fair.pca_group_errors_.max() * (1 + 1e-9)
