"""FairPCACV: the stop is chosen by errors of rows that were not fitted to."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from helpers.data import make_groups
from helpers.inside import (
    Curve,
    FairProblem,
    HeldOut,
    Sides,
    choose,
    chosen_stop,
    products_only,
    warn_of_held_out,
)
from scipy.sparse import csr_array
from scipy.stats import t
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import (
    KFold,
    LeavePOut,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, FairPCACV, GroupMoments, load_model, tradeoff_path
from fairpca.datasets import load_rand_health
from fairpca.exceptions import LevellingDownWarning, ParityInfeasibleWarning

FOLDS = 5


@pytest.fixture
def helped():
    """Rows of which PCA harms a group that fair PCA can help, on new rows too."""
    rng = np.random.default_rng(0)
    g = np.repeat(["a", "b"], [450, 150])
    X = rng.normal(size=(600, 6)) * np.array([3.0, 2.5, 1.0, 1.0, 0.5, 0.5])
    X[g == "b"] = rng.normal(size=(150, 6)) * [1.0, 1.0, 3.0, 2.5, 0.5, 0.5] + 0.3
    order = rng.permutation(600)
    return X[order], g[order]


@pytest.fixture
def alike():
    """Rows whose groups differ by chance alone."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(200, 6)) * np.linspace(2, 1, 6), rng.choice(["a", "b"], 200)


def held_out_by_hand(X, g, test_fold, r, alpha):
    """Group errors of each row under the projection fitted without its fold."""
    errors = np.empty((2, len(X)))
    for fold in np.unique(test_fold):
        train, test = test_fold != fold, test_fold == fold
        for i, model in enumerate((FairPCA(r, alpha=alpha), PCA(r))):
            groups = {"sensitive_features": g[train]} if i == 0 else {}
            model.fit(X[train], **groups)
            centred = X[test] - model.mean_
            scores = centred @ model.components_.T
            errors[i, test] = (centred**2).sum(1) - (scores**2).sum(1)
    return np.array([[e[g == label].mean() for label in np.unique(g)] for e in errors])


def test_held_out_errors_are_those_of_refits(helped):
    X, g = helped
    test_fold = np.arange(len(X)) % FOLDS
    fair = FairPCACV(2, cv=PredefinedSplit(test_fold)).fit(X, sensitive_features=g)
    assert fair.status_ == "strength chosen by testing on left-out people"
    assert 0 < fair.stop_ <= 1
    ours, pca = held_out_by_hand(X, g, test_fold, 2, fair.alpha_)
    np.testing.assert_allclose(fair.held_out_group_errors_, ours, rtol=1e-9)
    np.testing.assert_allclose(fair.held_out_pca_group_errors_, pca, rtol=1e-9)
    np.testing.assert_allclose(fair.held_out_changes_, ours - pca, atol=1e-9)
    assert fair.held_out_disparity_ == pytest.approx(ours[1] - ours[0])
    shares = fair.group_sizes_ / len(X)
    assert fair.held_out_reconstruction_error_ == pytest.approx(shares @ ours)


def test_the_projection_is_that_of_all_rows_at_the_stop(helped):
    X, g = helped
    fair = FairPCACV(2, cv=FOLDS).fit(X, sensitive_features=g)
    fixed = FairPCA(2, alpha=fair.alpha_).fit(X, sensitive_features=g)
    np.testing.assert_allclose(fair.components_, fixed.components_, atol=1e-9)
    assert fair.duality_gap_ < 1e-9
    assert fair.alpha_ >= 1 / (1 + (g == fair.privileged_group_).mean()) - 1e-12


def test_intervals_hold_the_estimates_and_say_who_gains(helped):
    X, g = helped
    fair = FairPCACV(2, cv=10).fit(X, sensitive_features=g)
    low, high = fair.held_out_changes_interval_.T
    assert (low < fair.held_out_changes_).all()
    assert (fair.held_out_changes_ < high).all()
    harmed = fair.groups_.tolist().index(fair.harmed_group_)
    assert high[harmed] < 0 < low[1 - harmed]
    assert fair.held_out_disparity_interval_[0] < fair.held_out_disparity_
    assert fair.held_out_disparity_ < fair.held_out_disparity_interval_[1]


@pytest.mark.parametrize("k", [2, 12])
def test_groups_that_are_alike_rarely_differ_beyond_chance(k):
    """Of 2000 data sets, each a projection; without overlap the t-test is exact for two groups."""
    errors = np.random.default_rng(0).normal(10, 1, (10, 2000, k))
    independent = HeldOut(errors, np.ones((10, k)), np.ones((10, k)), odds=0.0)
    if k == 2:
        interval = independent.interval(lambda t: t.group_errors[:, 0] - t.group_errors[:, 1])
        beyond = (interval.low > 0) | (interval.high < 0)
        assert 0.035 < beyond.mean() < 0.065
    else:
        low = [independent.spread_interval(p, np.full(k, True)).low for p in range(500)]
        assert np.mean(np.array(low) > 0) < 0.05


def test_where_nobody_gains_beyond_chance_it_is_pca(alike):
    X, g = alike
    fair = FairPCACV(3, cv=10).fit(X, sensitive_features=g)
    assert fair.stop_ == 0
    assert fair.status_ == "no gain on held-out rows: PCA"
    assert fair.alpha_ == 1
    assert not fair.held_out_changes_.any()
    np.testing.assert_allclose(np.abs(fair.components_), np.abs(PCA(3).fit(X).components_))
    assert FairPCA(3).fit(X, sensitive_features=g).alpha_ < 1


@pytest.mark.parametrize(
    ("spreads", "disparity", "expected"),
    [
        ((0.05, 0.4), 1.0, 2),  # the gain at the second stop is larger, and beyond chance
        ((0.05, 0.6), 1.0, 1),  # it is larger, but within 1.2 standard errors
        ((1.0, 1.0), 1.0, 0),  # neither gain is certain
        ((0.05, 0.4), 0.05, 1),  # the second stop lies beyond parity
    ],
)
def test_the_gain_at_the_stop_that_is_chosen_must_be_beyond_chance(spreads, disparity, expected):
    """Group 0 gains 0.1 at the first stop and 0.3 at the second, with so much spread over folds."""
    folds = np.linspace(-1, 1, 10) / np.linspace(-1, 1, 10).std(ddof=1)
    errors = np.full((10, 3, 2), 5.0)
    errors[:, :, 1] -= disparity
    for stop, (gain, spread) in enumerate(zip((0.1, 0.3), spreads, strict=True), 1):
        errors[:, stop, 0] += spread * folds - gain
    held_out = HeldOut(errors, np.ones((10, 2)), np.ones((10, 2)), odds=1 / 9)
    sides = Sides(np.array([True, True]), harmed=0, privileged=1)
    curve = Curve(np.array([0, 0.5, 1]), held_out, sides)
    assert choose(curve, FairProblem(constraint="efficient")) == expected


def test_pca_is_left_only_if_the_choices_of_the_other_folds_confirm_the_gain():
    """Two folds gain at either stop, so that the others always choose the stop that gains less."""
    errors = np.full((4, 3, 2), 5.0)
    errors[:, :, 1] = 1.0
    errors[:2, 1, 0] -= 2.0
    errors[2:, 2, 0] -= 2.1
    held_out = HeldOut(errors, np.ones((4, 2)), np.ones((4, 2)), odds=1 / 9)
    sides = Sides(np.array([True, True]), harmed=0, privileged=1)
    curve = Curve(np.array([0, 0.5, 1]), held_out, sides)
    problem = FairProblem(constraint="efficient")
    assert choose(curve, problem) == 2
    assert chosen_stop(curve, problem).chosen == 0
    assert chosen_stop(curve, problem, reliable=-np.inf).chosen == 2


def test_one_number_says_whether_the_worst_off_group_gains_reliably(helped):
    X, g = helped
    fair = FairPCACV(2).fit(X, sensitive_features=g)
    honest = fair._stop.honest
    worst = int(fair.held_out_pca_group_errors_.argmax())
    changes = (honest.errors[:, 1] - honest.errors[:, 0])[:, worst] / honest.weights[:, worst]
    error = changes.std(ddof=1) * np.sqrt(1 / 10 + 1 / 9)
    assert fair.held_out_t_ == pytest.approx(-changes.mean() / error)
    assert fair.held_out_t_ > 1.2
    largest = fair.held_out_group_errors_.max() / fair.held_out_pca_group_errors_.max() - 1
    assert fair.held_out_largest_change_ == pytest.approx(largest)
    low, high = fair.held_out_largest_change_interval_
    assert low < largest < high < 0


def test_no_mixture_of_the_groups_has_a_larger_error_than_the_upper_end():
    """In 19 of 20 tables, of 80 drawn from a known population."""
    spread = [np.array([4.0, 2, 1, 0.5, 0.2]), np.array([0.5, 4, 1.5, 1, 0.2])]
    held = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        X = np.concatenate(
            [rng.normal(size=(n, 5)) * s for n, s in zip((150, 60), spread, strict=True)]
        )
        fair = FairPCACV(2).fit(X, sensitive_features=np.repeat(["a", "b"], [150, 60]))
        across = np.eye(5) - fair.components_.T @ fair.components_
        errors = [across.diagonal() @ s**2 + fair.mean_ @ across @ fair.mean_ for s in spread]
        assert fair.worst_case_error_upper_ > fair.held_out_group_errors_.max()
        held.append(max(errors) <= fair.worst_case_error_upper_)
    assert np.mean(held) >= 0.9


def test_each_fold_is_judged_at_the_stop_that_the_other_folds_choose():
    errors = np.random.default_rng(0).normal(10, 1, (4, 3, 2))
    repeats = np.array([0, 0, 1, 1])
    held_out = HeldOut(errors, np.ones((4, 2)), np.ones((4, 2)), 1.0, repeats)

    def choose_best(some):
        return 1 + int(some.totals.group_errors[1:, 0].argmin())

    chosen = [1 + int(errors[other, 1:, 0].argmin()) for other in (1, 0, 3, 2)]
    judged = held_out.judged_at(held_out.choices(choose_best), together=2)
    np.testing.assert_array_equal(judged.errors[:, 1], errors[np.arange(4), chosen])
    np.testing.assert_array_equal(judged.errors[:, 0], errors[:, 0])
    np.testing.assert_array_equal(judged.chosen_together.errors, errors[:, [0, 2]])


def test_intervals_are_those_of_the_corrected_t_test():
    rng = np.random.default_rng(0)
    errors, weights = rng.gamma(3, 1, (10, 2, 3)), np.full((10, 3), 4.0)
    held_out = HeldOut(errors, weights, 2 * weights, odds=1 / 9)
    changes = (errors[:, 1] - errors[:, 0]) / 4.0
    error = changes.std(axis=0, ddof=1) * np.sqrt(1 / 10 + 1 / 9)
    interval = held_out.interval(lambda totals: totals.changes[1])
    np.testing.assert_allclose(interval.estimate, changes.mean(axis=0))
    np.testing.assert_allclose(interval.high - interval.estimate, t.ppf(0.975, 9) * error)
    both = held_out.interval(lambda totals: totals.changes[1], comparisons=2)
    np.testing.assert_allclose(both.estimate - both.low, t.ppf(0.9875, 9) * error)
    ratio = held_out.interval(lambda t: t.group_errors[:, 0] / t.group_errors[:, 1], log=True)
    sums = errors.sum(axis=0)
    np.testing.assert_allclose(ratio.estimate, sums[:, 0] / sums[:, 1])
    np.testing.assert_allclose(ratio.high / ratio.estimate, ratio.estimate / ratio.low)
    np.testing.assert_allclose(
        held_out.relative().totals.group_errors, held_out.totals.group_errors / 2
    )


def test_held_out_parity_without_a_constraint(helped):
    X, g = helped
    test_fold = np.arange(len(X)) % FOLDS
    fair = FairPCACV(2, constraint="parity", cv=PredefinedSplit(test_fold))
    fair.fit(X, sensitive_features=g)
    ours, pca = held_out_by_hand(X, g, test_fold, 2, fair.alpha_)
    assert abs(np.subtract(*ours)) < 0.02 * abs(np.subtract(*pca))
    assert fair.held_out_disparity_interval_[0] < 0 < fair.held_out_disparity_interval_[1]


def test_the_default_goes_at_most_as_far_as_fair_pca():
    """Past the parity of the training rows, a step costs others and helps nobody."""
    people = load_rand_health()
    X, g = np.asarray(people.data), np.asarray(people.sensitive_features)
    fair = FairPCACV(8).fit(X, sensitive_features=g)
    plain = FairPCA(8).fit(X, sensitive_features=g)
    assert fair.status_ == "strength chosen by testing on left-out people"
    assert fair.stop_ > 0.5
    assert fair.alpha_ == pytest.approx(1 - fair.stop_ * (1 - plain.alpha_))
    if fair.stop_ == 1:
        np.testing.assert_allclose(fair.components_, plain.components_, atol=1e-9)
    assert fair.disparity_ > -1e-9


def test_a_budget_is_used_to_be_fair(helped):
    X, g = helped
    test_fold = np.arange(len(X)) % FOLDS
    cv, shares = PredefinedSplit(test_fold), [0.75, 0.25]
    best = FairPCACV(2, cv=cv).fit(X, sensitive_features=g)
    ours, pca = held_out_by_hand(X, g, test_fold, 2, best.alpha_)
    price = shares @ ours / (shares @ pca) - 1
    allowed = FairPCACV(2, cv=cv, max_error_increase=0.5 * price).fit(X, sensitive_features=g)
    assert 0 < allowed.stop_ < best.stop_
    ours, _ = held_out_by_hand(X, g, test_fold, 2, allowed.alpha_)
    spent = shares @ ours / (shares @ pca) - 1
    assert 0.4 * price < spent <= 0.5 * price + 1e-12


def test_budgets_are_kept_on_held_out_rows(helped):
    X, g = helped
    test_fold = np.arange(len(X)) % 10
    cv = PredefinedSplit(test_fold)
    pca = FairPCACV(2, cv=cv, max_error_increase=0.0).fit(X, sensitive_features=g)
    assert pca.stop_ == 0
    shares = pca.group_sizes_ / len(X)
    R, D = shares @ pca.held_out_pca_group_errors_, pca.held_out_disparity_
    little = FairPCACV(2, cv=cv, max_error_increase=0.01).fit(X, sensitive_features=g)
    ours, _ = held_out_by_hand(X, g, test_fold, 2, little.alpha_)
    assert R < shares @ ours <= 1.01 * R
    half = FairPCACV(2, cv=cv, max_disparity=D / 2).fit(X, sensitive_features=g)
    ours, _ = held_out_by_hand(X, g, test_fold, 2, half.alpha_)
    assert 0.45 * D < ours[1] - ours[0] <= 0.5 * D


def test_no_worse_caps_held_out_errors(two_groups):
    X, g = two_groups
    model = FairPCACV(2, constraint="no_worse", cv=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LevellingDownWarning)
        model.fit(X, sensitive_features=g)
    assert model.held_out_group_errors_.max() <= model.held_out_pca_group_errors_.max()


def test_warnings_speak_of_held_out_rows(helped):
    X, g = helped
    larger = X * np.where(g == "b", 9.0, 1.0)[:, None]
    with pytest.warns(ParityInfeasibleWarning, match="held-out"):
        FairPCACV(2, cv=5, max_disparity=0.1, random_state=0).fit(larger, sensitive_features=g)
    best_for_both = np.where(g[:, None] == "b", [2.3, 2.0, 1.0], [2.0, 1.0, 0.7])
    levelled = np.random.default_rng(0).normal(size=(len(g), 3)) * best_for_both
    fair = FairPCACV(1, cv=5, constraint="parity", random_state=0)
    with pytest.warns(LevellingDownWarning, match="held-out") as caught:
        fair.fit(levelled, sensitive_features=g)
    shares = fair.held_out_changes_ / fair.held_out_pca_group_errors_
    for label, share in zip("ab", shares, strict=True):
        assert (f"'{label}' by {100 * share:.3g} %" in str(caught[0].message)) == (share > 2e-3)


def test_a_capped_fit_that_only_costs_warns():
    """The walk ends a hair before the cap, and that hair is no gain."""
    g = np.repeat(["a", "b"], [450, 150])
    spreads = np.where(g[:, None] == "b", [2.3, 2.0, 1.0], [2.0, 1.0, 0.7])
    X = np.random.default_rng(0).normal(size=(600, 3)) * spreads
    capped = FairPCACV(1, cv=5, constraint="no_worse", random_state=2)
    with pytest.warns(LevellingDownWarning, match="by more than 0.2 %"):
        capped.fit(X, sensitive_features=g)
    assert capped.stop_ > 0
    assert capped.held_out_changes_[0] > 0.1


@pytest.mark.parametrize(("gain", "paid", "warned"), [(1e-3, 0.5, True), (3e-3, 0.5, False)])
def test_a_gain_next_to_nothing_is_none(gain, paid, warned):
    problem, pca_errors = FairProblem(constraint="efficient"), np.array([1.0, 4.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_held_out(problem, "ab", np.array([paid, -gain]) * pca_errors, pca_errors, 0.0)
    assert [w.category for w in caught] == [LevellingDownWarning] * warned
    assert all("Pass max_error_increase" in str(w.message) for w in caught)


def test_repeats_and_weights(helped):
    X, g = helped
    repeated = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    fair = FairPCACV(2, cv=repeated).fit(X, sensitive_features=g)
    assert fair.group_sizes_.sum() == len(X)
    assert fair.n_eigensolves_ > 6
    once = FairPCACV(2, cv=PredefinedSplit(np.arange(len(X)) % 3))
    w = np.where(np.arange(len(X)) < 100, 2.0, 1.0)
    doubled = np.r_[np.arange(len(X)), np.arange(100)]
    twice = FairPCACV(2, cv=PredefinedSplit(doubled % 3))
    once.fit(X, sensitive_features=g, sample_weight=w)
    twice.fit(X[doubled], sensitive_features=g[doubled])
    np.testing.assert_allclose(once.held_out_group_errors_, twice.held_out_group_errors_)
    assert once.alpha_ == pytest.approx(twice.alpha_)


def test_normalize_gives_shares_of_variance(helped):
    X, g = helped
    test_fold = np.arange(len(X)) % FOLDS
    cv = PredefinedSplit(test_fold)
    fair = FairPCACV(2, relative_errors=True, cv=cv).fit(X, sensitive_features=g)
    distances = np.empty(len(X))
    for fold in range(FOLDS):
        test = test_fold == fold
        distances[test] = ((X[test] - X[~test].mean(0)) ** 2).sum(1)
    _, pca = held_out_by_hand(X, g, test_fold, 2, 1.0)
    shares = pca / [distances[g == label].mean() for label in "ab"]
    np.testing.assert_allclose(fair.held_out_pca_group_errors_, shares, rtol=1e-9)
    assert abs(fair.held_out_disparity_) < abs(np.subtract(*shares))


def test_fraction_of_components(helped):
    X, g = helped
    fair = FairPCACV(0.8, cv=5).fit(X, sensitive_features=g)
    assert (fair.group_explained_variance_ratio_ >= 0.8).all()


@pytest.mark.parametrize("swap", [False, True])
def test_names_of_groups_and_rotations_do_not_matter(helped, swap):
    X, g = helped
    cv = PredefinedSplit(np.arange(len(X)) % FOLDS)
    fair = FairPCACV(2, cv=cv).fit(X, sensitive_features=g)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    names = np.where(g == "a", "z", "b") if swap else g
    other = FairPCACV(2, cv=cv).fit(X @ Q + 100, sensitive_features=names)
    order = [1, 0] if swap else [0, 1]
    np.testing.assert_allclose(
        other.held_out_group_errors_[order], fair.held_out_group_errors_, rtol=1e-8
    )
    assert other.alpha_ == pytest.approx(fair.alpha_)


def test_the_same_in_memory_and_in_blocks(helped):
    X, g = helped
    fitted = FairPCACV(2, cv=FOLDS, random_state=3).fit(X, sensitive_features=g)
    moments = GroupMoments()
    for start in range(0, len(X), 70):
        rows = slice(start, start + 70)
        moments.update(X[rows], g[rows], folds=FOLDS, fold_seed=3)
    blocks = FairPCACV(2, cv=FOLDS).fit(moments)
    np.testing.assert_allclose(blocks.held_out_changes_, fitted.held_out_changes_, rtol=1e-8)
    np.testing.assert_allclose(blocks.components_, fitted.components_, atol=1e-8)
    again = FairPCACV(2, cv=FOLDS).fit(fitted.moments_)
    np.testing.assert_allclose(again.held_out_changes_, fitted.held_out_changes_, rtol=1e-8)


def test_standardised_without_the_fold(helped):
    X, g = helped
    X = X * [1, 10, 100, 1, 1, 1e3] + 5
    test_fold = np.arange(len(X)) % FOLDS
    cv = PredefinedSplit(test_fold)
    fair = FairPCACV(2, cv=cv, standardize=True).fit(X, sensitive_features=g)
    errors = np.empty(len(X))
    for fold in range(FOLDS):
        test = test_fold == fold
        pca = make_pipeline(StandardScaler(), PCA(2)).fit(X[~test])
        Z = pca[0].transform(X[test])
        errors[test] = ((Z - pca[1].inverse_transform(pca[1].transform(Z))) ** 2).sum(1)
    expected = [errors[g == label].mean() for label in fair.groups_]
    np.testing.assert_allclose(fair.held_out_pca_group_errors_, expected, rtol=1e-9)
    path = tradeoff_path(X / X.std(0), g, n_components=2, n_points=3, cv=cv)
    assert not np.allclose(path.held_out.group_errors[0], expected, rtol=1e-6)
    few = FairPCACV(2, cv=cv, standardize=True).fit(
        np.hstack([X, np.random.default_rng(0).normal(size=(600, 3))]), sensitive_features=g
    )
    assert few.scale_.shape == (9,)


def test_sorted_rows_do_no_harm(helped):
    X, g = helped
    order = np.argsort(X[:, 0])
    shuffled, in_order = (
        FairPCACV(2).fit(X[rows], sensitive_features=g[rows]) for rows in (slice(None), order)
    )
    np.testing.assert_allclose(
        in_order.held_out_group_errors_, shuffled.held_out_group_errors_, rtol=0.02
    )


def test_dask(helped):
    da = pytest.importorskip("dask.array")
    X, g = helped
    fit = FairPCACV(2, cv=FOLDS).fit
    fair = fit(da.from_array(X, chunks=(200, 6)), sensitive_features=da.from_array(g, chunks=200))
    assert fair.status_ == "strength chosen by testing on left-out people"
    assert fair.group_sizes_.sum() == len(X)
    assert fair.held_out_changes_.any()
    again = fit(da.from_array(X, chunks=(200, 6)), sensitive_features=g)
    np.testing.assert_allclose(again.held_out_changes_, fair.held_out_changes_)


def test_sparse_rows_clones_pipelines_and_pickles(helped):
    X, g = helped
    model = FairPCACV(2, cv=StratifiedKFold(4, shuffle=True, random_state=0))
    dense = clone(model).fit(X, sensitive_features=g)
    sparse = clone(model).fit(csr_array(X), sensitive_features=g)
    np.testing.assert_allclose(sparse.held_out_changes_, dense.held_out_changes_, rtol=1e-8)
    pipeline = make_pipeline(StandardScaler(), FairPCACV(2, cv=4))
    pipeline.fit(X, fairpcacv__sensitive_features=g)
    assert pipeline[-1].status_ == "strength chosen by testing on left-out people"
    back = pickle.loads(pickle.dumps(dense))
    np.testing.assert_array_equal(back.held_out_changes_interval_, dense.held_out_changes_interval_)


def test_random_state(helped):
    X, g = helped
    first, same, other = (
        FairPCACV(2, cv=FOLDS, random_state=s).fit(X, sensitive_features=g) for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.held_out_group_errors_, same.held_out_group_errors_)
    assert not np.allclose(first.held_out_group_errors_, other.held_out_group_errors_)


def test_model_files_keep_what_was_held_out(helped, tmp_path):
    pytest.importorskip("safetensors")
    X, g = helped
    for cv in (FOLDS, StratifiedKFold(3)):
        fair = FairPCACV(2, cv=cv, random_state=0).fit(X, sensitive_features=g)
        fair.save(tmp_path / "model.safetensors")
        back = load_model(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(
            back.held_out_changes_interval_, fair.held_out_changes_interval_
        )
        assert back.held_out_disparity_ == fair.held_out_disparity_
        assert back.stop_ == fair.stop_


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"cv": 1}, "The 'cv' parameter of FairPCACV must be an int in the range"),
        ({"cv": "ten"}, "The 'cv' parameter of FairPCACV must be"),
        ({"cv": None}, r"cv=None has no folds .* use FairPCA\(2\)"),
        ({"cv": 200}, r"cv=200 is more than the rows of group 'b' \(n_samples = 150\)"),
    ],
)
def test_refused(helped, parameters, match):
    X, g = helped
    with pytest.raises(ValueError, match=match):
        FairPCACV(2, **parameters).fit(X, sensitive_features=g)


def test_refused_sources(helped, monkeypatch):
    X, g = helped
    with pytest.raises(ValueError, match="folds"):
        FairPCACV(2, cv=5).fit(GroupMoments.from_data(X, g))
    with pytest.raises(ValueError, match="these moments have 7 folds; pass cv=7"):
        FairPCACV(2, cv=5).fit(GroupMoments.from_data(X, g, folds=7))
    with pytest.raises(ValueError, match="cv=7"):
        FairPCACV(2, cv=10).fit(GroupMoments.from_data(X, g, folds=7))
    assert not hasattr(FairPCACV(2), "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit"):
        FairPCACV(2).partial_fit(X, sensitive_features=g)
    with pytest.raises(ValueError, match="leave out"):
        FairPCACV(2, cv=ShuffleSplit(2, train_size=0.5, test_size=0.2)).fit(X, sensitive_features=g)
    for overlapping in (ShuffleSplit(5, test_size=0.3, random_state=0), LeavePOut(2)):
        with pytest.raises(ValueError, match=r"two folds or more .* RepeatedStratifiedKFold"):
            FairPCACV(2, cv=overlapping).fit(X[::20], sensitive_features=g[::20])
    twice = [(np.arange(10, 600), np.append(np.arange(9), 0))] * 2  # row 0; row 9 is nowhere
    with pytest.raises(ValueError, match="must be one or the other, and once") as error:
        FairPCACV(2, cv=twice).fit(X, sensitive_features=g)
    assert len(str(error.value)) < 400
    sorted_by_group = np.argsort(g, kind="stable")
    with pytest.raises(ValueError, match=r"group 'b' \(n_samples = 150\)"):
        FairPCACV(2, cv=KFold(2)).fit(X[sorted_by_group], sensitive_features=g[sorted_by_group])
    with pytest.raises(ValueError, match="NaN"):
        FairPCACV(2, cv=5).fit(np.where(X > 3, np.nan, X), sensitive_features=g)
    products_only(monkeypatch, above=3)
    with pytest.raises(ValueError, match="for up to 3 features"):
        FairPCACV(2, cv=5).fit(X, sensitive_features=g)


def test_moments_with_folds_fit_without_cv(helped):
    X, g = helped
    fair = FairPCA(2).fit(GroupMoments.from_data(X, g, folds=3))
    plain = FairPCA(2).fit(X, sensitive_features=g)
    np.testing.assert_allclose(fair.components_, plain.components_, atol=1e-9)
    assert not hasattr(fair, "held_out_changes_")


def test_a_group_may_be_missing_from_a_fold():
    X, g = make_groups((90, 12))
    folds = np.where(g == "g1", np.arange(len(g)) % 2, np.arange(len(g)) % 4)
    fair = FairPCACV(2, cv=4).fit(GroupMoments.from_data(X, g, folds=folds))
    assert np.isfinite(fair.held_out_changes_interval_).all()


def test_three_groups():
    X, g = make_groups((160, 120, 60), d=5, alike=0.5)
    test_fold = np.arange(len(X)) % 3
    fair = FairPCACV(2, cv=PredefinedSplit(test_fold)).fit(X, sensitive_features=g)
    worst = fair.held_out_pca_group_errors_.argmax()
    assert fair.stop_ > 0
    assert fair.held_out_changes_interval_.shape == (3, 2)
    assert fair.held_out_changes_[worst] < 0
    assert fair.held_out_group_errors_.max() < fair.held_out_pca_group_errors_.max()
    assert fair.held_out_disparity_ == pytest.approx(np.ptp(fair.held_out_group_errors_))
    pca = [held_out_pca(X, g, test_fold, label) for label in fair.groups_]
    np.testing.assert_allclose(fair.held_out_pca_group_errors_, pca, rtol=1e-9)


def held_out_pca(X, g, test_fold, label):
    errors = []
    for fold in np.unique(test_fold):
        pca = PCA(2).fit(X[test_fold != fold])
        rows = X[(test_fold == fold) & (g == label)]
        errors.extend(((rows - pca.inverse_transform(pca.transform(rows))) ** 2).sum(1))
    return np.mean(errors)


def test_small_groups_that_are_ignored_need_no_folds():
    X, g = make_groups((160, 120, 3), d=5)
    fair = FairPCACV(2, cv=5, min_group_size=10, small_groups="ignore", random_state=0)
    fair.fit(X, sensitive_features=g)
    assert fair.small_groups_ == ["g2"]
    assert np.isfinite(fair.held_out_changes_).all()


def test_a_negative_seed_is_refused_by_its_name(helped):
    X, g = helped
    with pytest.raises(ValueError, match="random_state"):
        FairPCACV(2, random_state=-1).fit(X, sensitive_features=g)
    with pytest.raises(ValueError, match="random_state"):
        tradeoff_path(X, g, n_components=2, cv=5, random_state=-1)
