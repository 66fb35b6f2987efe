"""FairPLS: SIMPLS from moments, what it hides, and every way in."""

from __future__ import annotations

import pickle
from importlib import import_module
from importlib.util import find_spec
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.data import make_groups
from helpers.inside import products_only
from scipy.linalg import null_space, subspace_angles
from sklearn import config_context
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import BlindPCA, FairPLS, GroupEraser, GroupMoments, load_model

NAMES = list("abcdefgh")


def people(kind="two", sizes=(90, 60, 70)):
    X, groups = make_groups(sizes, d=8)
    noise = np.random.default_rng(0).normal(size=len(X))
    score = X[:, 0] - X[:, 3] + noise
    if kind == "numbers":
        return X, groups, score
    cuts = [0.0] if kind == "two" else [-2.0, 2.0]
    return X, groups, np.array(["bad", "fair", "good"])[np.digitize(score, cuts)]


def indicators(y):
    return y[:, None] if y.dtype.kind == "f" else (y[:, None] == np.unique(y)).astype(float)


def same_span(A, B):
    return np.max(subspace_angles(A.T, B.T)) < 1e-6


# With several targets NIPALS and SIMPLS differ from the second component on.
@pytest.mark.parametrize(
    ("kind", "r"), [("two", 1), ("two", 3), ("three", 1), ("numbers", 1), ("numbers", 3)]
)
def test_plain_pls_spans_what_scikit_learn_finds(kind, r):
    X, groups, y = people(kind)
    pls = FairPLS(r, notion=None).fit(X, y, sensitive_features=groups)
    other = PLSRegression(r, scale=False, tol=1e-12, max_iter=5000).fit(X, indicators(y))
    assert same_span(pls.components_, other.x_rotations_.T)
    r2 = LinearRegression().fit(pls.transform(X), indicators(y))
    fitted, Y = r2.predict(pls.transform(X)), indicators(y)
    expected = 1 - np.sum((Y - fitted) ** 2) / np.sum((Y - Y.mean(axis=0)) ** 2)
    assert pls.target_r2_ == pls.pls_target_r2_ == pytest.approx(expected, rel=1e-9)
    assert pls.status_ == "partial least squares"


@pytest.mark.parametrize("kind", ["two", "numbers"])
def test_hiding_is_pls_in_the_complement(kind):
    X, groups, y = people(kind)
    pls = FairPLS(2, notion="demographic_parity").fit(X, y, sensitive_features=groups)
    means = np.array([X[groups == g].mean(axis=0) for g in np.unique(groups)])
    N = null_space(means[1:] - means[0])
    inside = PLSRegression(2, scale=False, tol=1e-12).fit((X - X.mean(axis=0)) @ N, indicators(y))
    assert same_span(pls.components_, (N @ inside.x_rotations_).T)
    scores = pls.transform(X)
    own = [scores[groups == g].mean(axis=0) for g in pls.groups_]
    np.testing.assert_allclose(own, np.zeros_like(own), atol=1e-12)
    assert pls.hidden_directions_.shape == (2, 8)
    assert pls.mean_gap_ == pytest.approx(0, abs=1e-20)
    assert pls.target_r2_ < pls.pls_target_r2_


@pytest.mark.parametrize("notion", ["equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("kind", ["two", "three"])
def test_means_within_classes_are_equal(notion, kind):
    X, groups, y = people(kind)
    classes = ["good"] if notion == "equal_opportunity" and kind == "three" else np.unique(y)[-1:]
    label = {"pos_label": "good"} if kind == "three" else {}
    pls = FairPLS(1, notion=notion, **label).fit(X, y, sensitive_features=groups)
    scores = pls.transform(X)
    for outcome in classes if notion == "equal_opportunity" else np.unique(y):
        own = [scores[(groups == g) & (y == outcome)].mean(axis=0) for g in pls.groups_]
        np.testing.assert_allclose(own, [own[0]] * 3, atol=1e-12)


@pytest.mark.parametrize("share", [0.05, 0.6])
def test_a_budget_lies_between_plain_and_hidden(share):
    X, groups, y = people()
    hidden = FairPLS(2, notion="equalized_odds").fit(X, y, sensitive_features=groups)
    limit = share * hidden.pls_mean_gap_
    pls = FairPLS(2, notion="equalized_odds", max_mean_gap=limit)
    pls.fit(X, y, sensitive_features=groups)
    assert limit * (1 - 1e-6) <= pls.mean_gap_ <= limit
    assert hidden.target_r2_ < pls.target_r2_
    assert pls.status_ == "mean gap budget met"
    assert 0 < pls.alpha_ < 1


@pytest.mark.parametrize("r", [1, 2, 3])
@pytest.mark.parametrize("notion", ["demographic_parity", "equalized_odds"])
def test_a_larger_budget_explains_more_of_the_target(notion, r):
    X, groups, y = people()
    X = X + 6 * (groups == "g1")[:, None] * np.eye(8)[7]  # hiding helps: variance without a target
    pls = FairPLS(r, notion=notion).fit(X, y, sensitive_features=groups)
    limit, explained = pls.pls_mean_gap_, [pls.target_r2_]
    for share in (1e-6, 0.01, 0.1, 0.3, 0.6, 0.9, 1.1):
        pls = FairPLS(r, notion=notion, max_mean_gap=share * limit)
        pls.fit(X, y, sensitive_features=groups)
        assert pls.mean_gap_ <= share * limit
        explained.append(pls.target_r2_)
    assert min(explained) == explained[0]  # hidden means, to the last bit
    assert np.diff(explained).min() >= -0.01 * max(explained)
    assert explained[-1] >= pls.pls_target_r2_


def test_a_budget_that_plain_pls_keeps_to():
    X, groups, y = people("numbers")
    hidden = FairPLS(1, notion="demographic_parity").fit(X, y, sensitive_features=groups)
    assert hidden.pls_target_r2_ > hidden.target_r2_
    generous = FairPLS(1, notion="demographic_parity", max_mean_gap=1.01 * hidden.pls_mean_gap_)
    generous.fit(X, y, sensitive_features=groups)
    assert generous.target_r2_ >= generous.pls_target_r2_
    assert (generous.status_ == "already fair") == (generous.alpha_ == 1)


def test_a_budget_leaves_more_components_than_hiding():
    X, groups = make_groups((80, 60, 50, 40), d=4)
    y = X[:, 0] + X[:, 1] > 0
    plain = FairPLS(3, notion=None).fit(X, y, sensitive_features=groups)
    for share in (1.01, 0.9):
        limit = share * plain.mean_gap_
        fair = FairPLS(3, notion="demographic_parity", max_mean_gap=limit)
        fair.fit(X, y, sensitive_features=groups)
        assert fair.mean_gap_ <= limit * (1 + 1e-9)
    with pytest.raises(ValueError, match="n_components=1"):
        FairPLS(3, notion="demographic_parity", max_mean_gap=1e-8).fit(
            X, y, sensitive_features=groups
        )
    with pytest.raises(ValueError, match="max_mean_gap"):
        FairPLS(3, notion="demographic_parity").fit(X, y, sensitive_features=groups)


def test_the_first_direction_keeps_the_most_covariance_that_its_gap_allows():
    X, groups, y = people("numbers")
    means = np.array([X[groups == g].mean(axis=0) - X.mean(axis=0) for g in np.unique(groups)])
    B = (means.T * [np.mean(groups == g) for g in np.unique(groups)]) @ means
    s = (X - X.mean(axis=0)).T @ (y - y.mean())
    limit = 0.2 * FairPLS(1, notion=None).fit(X, y, sensitive_features=groups).mean_gap_
    pls = FairPLS(1, notion="demographic_parity", max_mean_gap=limit)
    w = pls.fit(X, y, sensitive_features=groups).components_[0]
    allowed = w @ B @ w * (1 + 1e-9)
    lambdas = np.geomspace(1e-4, 1e6, 2000)
    priced = np.eye(8) + lambdas[:, None, None] * B
    others = np.linalg.solve(priced, s[None, :, None])[..., 0]  # of least length, by duality
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    within = np.einsum("ij,jk,ik->i", others, B, others) <= allowed
    assert within.any()
    assert abs(s @ w) >= np.abs(others[within] @ s).max() * (1 - 1e-6)


def test_the_contract_of_all_estimators():
    X, groups, y = people()
    pls = FairPLS(3, notion="demographic_parity").fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(pls.components_ @ pls.components_.T, np.eye(3), atol=1e-12)
    covariance = np.cov(pls.transform(X).T)
    np.testing.assert_allclose(covariance, np.diag(pls.explained_variance_), atol=1e-9)
    assert (np.diff(pls.explained_variance_) <= 0).all()
    pca = PCA(3).fit(X)
    residual = X - pca.inverse_transform(pca.transform(X))
    errors = [np.mean(np.sum(residual[groups == g] ** 2, axis=1)) for g in pls.groups_]
    np.testing.assert_allclose(pls.pca_group_errors_, errors, rtol=1e-9)
    assert np.isnan(pls.duality_gap_)


def test_a_target_that_is_used_up_leaves_the_directions_of_largest_variance():
    X, groups = make_groups((90, 60), d=4)
    X = X - X.mean(axis=0)
    X = X @ np.linalg.inv(np.linalg.cholesky(np.cov(X.T, bias=True)).T) * [1, 2, 3, 4]
    pls = FairPLS(2, notion=None).fit(X, X[:, 0] + 0.5, sensitive_features=groups)
    np.testing.assert_allclose(np.abs(pls.components_), np.eye(4)[[3, 0]], atol=1e-6)
    assert pls.target_r2_ == pytest.approx(1)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_nothing_left_to_predict_is_said(shift):
    X, groups = make_groups((90, 60), d=4)
    y = groups == groups[0]
    hidden = FairPLS(2, notion="demographic_parity")
    with pytest.warns(UserWarning, match="the group itself"):
        hidden.fit(X + shift, y, sensitive_features=groups)
    assert hidden.target_r2_ < 1e-12 < 0.01 < hidden.pls_target_r2_
    FairPLS(2, notion="demographic_parity", max_mean_gap=0.01).fit(X, y, sensitive_features=groups)


def test_features_that_tell_nothing_are_named():
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]] * 10, float)
    X, y = np.column_stack([signs, signs[:, 0] * 2]), signs.prod(axis=1) > 0
    groups = np.repeat(["a", "b"], [12, 28])
    with pytest.warns(UserWarning, match="about y"):
        FairPLS(1, notion=None).fit(X, y, sensitive_features=groups)


def ways_in(X, groups, y, folder, numbers):
    yield "list", lambda pls: pls.fit(X.tolist(), y.tolist(), sensitive_features=groups)
    frame = pd.DataFrame(X, columns=NAMES)
    yield "frame", lambda pls: pls.fit(frame, pd.Series(y), sensitive_features=groups)
    yield "column", lambda pls: pls.fit(X, y[:, None], sensitive_features=groups)
    yield "sparse", lambda pls: pls.fit(sp.csr_array(X), y, sensitive_features=groups)

    twice = np.r_[np.arange(len(X)), np.arange(40)]
    weights = np.r_[np.full(40, 0.25), np.ones(len(X) - 40), np.full(40, 0.75)]
    yield (
        "weights",
        lambda pls: pls.fit(
            X[twice], y[twice], sensitive_features=groups[twice], sample_weight=weights
        ),
    )
    if polars := find_spec("polars") and import_module("polars"):
        table = polars.DataFrame(dict(zip(NAMES, X.T, strict=True)))
        yield (
            "polars",
            lambda pls: pls.fit(
                table, polars.Series(y), sensitive_features=polars.Series(groups.tolist())
            ),
        )
    yield (
        "pickled",
        lambda pls: pickle.loads(pickle.dumps(pls.fit(X, y, sensitive_features=groups))),
    )

    def in_blocks(pls):
        for rows in np.array_split(np.arange(len(X)), 7):
            pls.partial_fit(X[rows], y[rows], sensitive_features=groups[rows])
        return pls

    yield "blocks", in_blocks
    if numbers:
        joint = GroupMoments.from_data(np.column_stack([y, X]), groups)
        yield "moments", lambda pls: pls.fit(joint, y=0)
    else:
        cells = GroupMoments.from_data(X, groups, target=y)
        yield "moments", lambda pls: pls.fit(cells)


@pytest.mark.parametrize("kind", ["two", "numbers"])
def test_every_way_in_gives_the_same(kind, tmp_path):
    X, groups, y = people(kind)
    settings = {"n_components": 2, "notion": "demographic_parity"}
    expected = FairPLS(**settings).fit(X, y, sensitive_features=groups)
    for name, way in ways_in(X, groups, y, tmp_path, kind == "numbers"):
        pls = way(FairPLS(**settings))
        np.testing.assert_allclose(pls.components_, expected.components_, atol=1e-8, err_msg=name)
        assert pls.n_features_in_ == 8
        assert pls.target_r2_ == pytest.approx(expected.target_r2_, rel=1e-9)
        assert pls.transform(X[:5]).shape == (5, 2) if name == "blocks" else True


@pytest.mark.parametrize("kind", ["two", "numbers"])
def test_dask(kind):
    da = pytest.importorskip("dask.array", reason="needs the dask extra")
    X, groups, y = people(kind)
    expected = FairPLS(2, notion=None).fit(X, y, sensitive_features=groups)
    outcomes = y if kind == "two" else da.from_array(y, chunks=64)
    for given in (y, outcomes):
        pls = FairPLS(2, notion=None).fit(
            da.from_array(X, chunks=(50, 8)), given, sensitive_features=groups
        )
        np.testing.assert_allclose(pls.components_, expected.components_, atol=1e-8)


def test_several_numbers_count_alike():
    X, groups, y = people("numbers")
    Y = np.column_stack([y, X[:, 5] + y])
    pls = FairPLS(2, notion=None).fit(X, Y, sensitive_features=groups)
    scaled = FairPLS(2, notion=None).fit(X, Y * [1.0, 1e3], sensitive_features=groups)
    np.testing.assert_allclose(pls.components_, scaled.components_, atol=1e-9)
    covariance = (X - X.mean(axis=0)).T @ (Y / Y.std(axis=0))
    first = FairPLS(1, notion=None).fit(X, Y, sensitive_features=groups).components_[0]
    best = np.linalg.svd(covariance)[0][:, 0]
    assert abs(first @ best) == pytest.approx(1)


def test_classes_with_very_many_features(monkeypatch):
    X, groups, y = people()
    expected = FairPLS(2, notion="equalized_odds").fit(X, y, sensitive_features=groups)
    products_only(monkeypatch)
    pls = FairPLS(2, notion="equalized_odds").fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(pls.components_, expected.components_, atol=1e-7)
    with pytest.raises(ValueError, match="classes"):
        FairPLS(2, notion=None).fit(X, X[:, 0], sensitive_features=groups)


def test_y_arrives_by_itself_in_a_pipeline():
    X, groups, y = people()
    pipeline = make_pipeline(FairPLS(2, notion="equalized_odds"), LogisticRegression())
    pipeline.fit(X, y, fairpls__sensitive_features=groups)
    assert pipeline.score(X, y) > 0.6
    scores = FairPLS(2, notion=None).fit_transform(X, y, sensitive_features=groups)
    assert scores.shape == (220, 2)


@pytest.mark.parametrize("kind", [FairPLS, BlindPCA])
def test_a_search_routes_the_groups(kind):
    X, groups, y = people()
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            StandardScaler(), kind(notion="equalized_odds"), LogisticRegression()
        )
        grid = {f"{kind.__name__.lower()}__n_components": [1, 3]}
        search = GridSearchCV(pipeline, grid, cv=3).fit(X, y, sensitive_features=groups)
    best = clone(search.best_estimator_)
    best.fit(X, y, **{f"{kind.__name__.lower()}__sensitive_features": groups})
    np.testing.assert_array_equal(search.predict_proba(X), best.predict_proba(X))
    assert search.best_score_ > 0.5


def test_models_come_back(tmp_path):
    pytest.importorskip("safetensors", reason="needs the model extra")
    X, groups, y = people()
    pls = FairPLS(2, notion="equalized_odds").fit(X, y, sensitive_features=groups)
    pls.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X), pls.transform(X))
    assert again.classes_ == ["bad", "fair"]


BAD = [
    ({"notion": None, "max_mean_gap": 1.0}, None, r"notion=None does not say among whom"),
    ({"notion": "equalized_odds", "target_type": "numbers"}, None, "has no classes"),
    ({"notion": "equalized_odds"}, lambda y: np.linspace(0, 1, len(y)), "not classes, such as"),
    ({}, lambda y: None, r"requires y to be passed"),
    ({}, lambda y: np.ones(len(y)), r"one class only \(1.0\)"),
    ({"target_type": "numbers"}, lambda y: np.ones(len(y)), "y does not vary in column 0"),
    ({"target_type": "numbers"}, lambda y: y, "pass target_type='classes'"),
    ({}, lambda y: np.where(y == "bad", np.nan, 1.5), r"y contains NaN or infinity in \d+ rows"),
    ({}, lambda y: np.linspace(0, 1, 7), r"y has 7 rows but X has 220"),
    ({"notion": "equalized_odds", "n_components": 5}, None, "takes 4 and leaves 4"),
    ({}, lambda y: np.arange(len(y)) // 2, "at least 110, .*'numbers' for numbers, or"),
    ({}, lambda y: np.arange(len(y)) // 2 * 1.0, "many different whole numbers"),
    (
        {"notion": "equalized_odds"},
        lambda y: np.arange(len(y)) % 30,
        "amounts or classes; pass target_type='classes' for classes",
    ),
]


@pytest.mark.parametrize(("params", "change", "message"), BAD, ids=[message for *_, message in BAD])
def test_refusals(params, change, message):
    X, groups, y = people()
    with pytest.raises((ValueError, TypeError), match=message):
        FairPLS(**{"n_components": 2, **params}).fit(
            X, change(y) if change else y, sensitive_features=groups
        )


def test_whole_numbers_are_never_taken_for_classes_unasked():
    X, groups, y = people("numbers")
    counts = np.round(5 * y).astype(int)
    expected = FairPLS(2, notion=None).fit(X, counts + 1e-9, sensitive_features=groups)
    cells = GroupMoments.from_data(X, groups, target=counts)
    for fit in (
        lambda pls: pls.partial_fit(X, counts, sensitive_features=groups).transform(X),
        lambda pls: pls.fit(cells),
    ):
        with pytest.raises(ValueError, match="target_type='numbers'"):
            fit(FairPLS(2, notion=None))
    numbers = FairPLS(2, notion=None, target_type="numbers")
    numbers.fit(X, counts, sensitive_features=groups)
    np.testing.assert_allclose(numbers.components_, expected.components_, atol=1e-6)
    classes = FairPLS(2, notion=None, target_type="classes").fit(
        X, counts, sensitive_features=groups
    )
    assert classes.classes_ == sorted(set(counts.tolist()))


def test_forgotten_groups_name_y_too():
    X, _, y = people()
    with pytest.raises(TypeError, match=r"FairPLS\(...\).fit\(X, y, sensitive_features=groups\)"):
        FairPLS(2, notion=None).fit(X, y)


def test_blocks_that_contradict_each_other():
    X, groups, y = people("numbers")
    pls = FairPLS(2, notion=None).partial_fit(X, (y > 0).astype(int), sensitive_features=groups)
    with pytest.raises(ValueError, match=r"FairPLS\(target_type='numbers'\)"):
        pls.partial_fit(X, y, sensitive_features=groups)
    numbers = FairPLS(2, notion=None).partial_fit(X, y, sensitive_features=groups)
    numbers.partial_fit(X, np.round(y), sensitive_features=groups)
    assert numbers.classes_ is None
    with pytest.raises(ValueError, match=r"fit\(moments, y=-1\)"):
        FairPLS(2, notion=None).fit(GroupMoments.from_data(X, groups))
    with pytest.raises(ValueError, match="'z' is not a column"):
        FairPLS(2, notion=None).fit(GroupMoments.from_data(X, groups), y="z")


def test_moments_without_classes_are_refused():
    X, groups = np.random.default_rng(0).normal(size=(40, 3)), np.repeat(["a", "b"], 20)
    moments = GroupMoments.from_data(X, groups, folds=5)
    with pytest.raises(ValueError, match="y"):
        FairPLS(2).fit(moments)


def redundant(d, seed=0, sizes=(40, 30, 20)):
    """Columns, the same ones twice in units in which distances stay, groups and a target."""
    A, groups = make_groups(sizes, d=d, seed=seed)
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.normal(size=(2 * d, 2 * d)))[0][:d]
    return A, A @ turned, turned, groups, A.sum(axis=1) + rng.normal(size=len(A))


@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize(("d", "r"), [(2, 1), (4, 1), (4, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_redundant_columns_change_nothing(seed, d, r, share):
    A, X, turned, groups, y = redundant(d, seed)
    least = FairPLS(r, notion=None).fit(A, y, sensitive_features=groups).mean_gap_
    if d == 2:  # the groups take up the whole plane
        D = np.array([A[groups == g].mean(axis=0) - A.mean(axis=0) for g in np.unique(groups)])
        least = np.linalg.eigvalsh(D.T @ (D * (np.array([40, 30, 20]) / 90)[:, None]))[0] / share
        least *= 1 + share
    fair = FairPLS(r, max_mean_gap=share * least)
    expected = clone(fair).fit(A, y, sensitive_features=groups)
    fair.fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(fair.target_r2_, expected.target_r2_, rtol=1e-6)
    assert same_span(fair.components_, expected.components_ @ turned)
    assert fair.mean_gap_ <= share * least


def test_names_of_groups_do_not_matter_where_columns_are_redundant():
    A, _, _, groups, y = redundant(2)
    X = np.hstack([A, A])
    budget = 1.5 * FairPLS(1, notion=None).fit(X, y, sensitive_features=groups).mean_gap_
    fits = []
    for order in permutations(["g0", "g1", "g2"]):
        renamed = np.array(order)[np.unique(groups, return_inverse=True)[1]]
        fits.append(FairPLS(1, max_mean_gap=budget).fit(X, y, sensitive_features=renamed))
    for fair in fits:
        np.testing.assert_allclose(fair.components_, fits[0].components_, atol=1e-9)
        np.testing.assert_allclose(fair.components_[:, :2], fair.components_[:, 2:], atol=1e-9)


def test_more_components_than_the_rows_span():
    _, X, _, groups, y = redundant(4)
    plain = FairPLS(4, notion=None).fit(X, y, sensitive_features=groups)
    for options in ({"notion": None}, {"max_mean_gap": 1.1 * plain.mean_gap_}, {}):
        fair = FairPLS(6, **options).fit(X, y, sensitive_features=groups)
        np.testing.assert_allclose(fair.components_ @ fair.components_.T, np.eye(6), atol=1e-12)
        varying = fair.explained_variance_ > 1e-12
        assert varying.sum() == (2 if options == {} else 4)
    hidden = FairPLS(2).fit(X, y, sensitive_features=groups)
    assert fair.target_r2_ == pytest.approx(hidden.target_r2_)


def test_a_budget_is_used_where_hiding_leaves_nothing_to_explain():
    X, groups = make_groups((90, 60), d=4)
    y = groups == groups[0]
    fair = FairPLS(1, max_mean_gap=0.01).fit(X, y, sensitive_features=groups)
    assert fair.mean_gap_ == pytest.approx(0.01, rel=1e-6)
    assert fair.target_r2_ > 1e-4


@pytest.mark.parametrize("estimator", [FairPLS(1), BlindPCA(1, notion="equal_opportunity")])
def test_one_class_of_positive_weight(estimator):
    X, groups, y = people()
    weights = (y == "bad").astype(float)
    with pytest.raises(ValueError, match=r"one class only \('bad'\)"):
        estimator.fit(X, y, sensitive_features=groups, sample_weight=weights)


@pytest.mark.parametrize("kind", [FairPLS, BlindPCA, GroupEraser])
@pytest.mark.parametrize("notion", ["equalized_odds", "equal_opportunity"])
def test_a_class_in_rows_of_weight_zero_does_not_count(kind, notion):
    X, groups, y = people()
    weights = np.ones(len(X))
    weights[:5] = 0
    other = np.where(weights > 0, y, "none")  # would be the positive class
    expected = kind(notion=notion).fit(X[5:], y[5:], sensitive_features=groups[5:])
    fair = kind(notion=notion).fit(X, other, sensitive_features=groups, sample_weight=weights)
    np.testing.assert_allclose(fair.transform(X), expected.transform(X), atol=1e-9)
    assert getattr(fair, "classes_", ["bad", "fair"]) == ["bad", "fair"]
