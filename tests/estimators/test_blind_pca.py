"""BlindPCA: equal mean scores at the least error, by every way in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.data import make_groups
from helpers.inside import products_only
from scipy.linalg import null_space
from sklearn.base import clone
from sklearn.decomposition import PCA

from fairpca import BlindPCA, FairPLS, GroupMoments, load_model
from fairpca.metrics import group_separation

NOTIONS = ["demographic_parity", "equal_opportunity", "equalized_odds"]


def people(sizes=(90, 60, 70), d=8, seed=0):
    X, groups = make_groups(sizes, d=d, seed=seed)
    noise = np.random.default_rng(seed).normal(size=len(X))
    return X, groups, np.where(X[:, 0] + noise > X[:, 0].mean(), "yes", "no")


def strata(groups, y, notion):
    """The rows among which groups are compared."""
    if notion == "demographic_parity":
        return [np.ones(len(y), dtype=bool)]
    classes = ["yes"] if notion == "equal_opportunity" else ["no", "yes"]
    return [y == outcome for outcome in classes]


def scatter(X, groups, y, notion):
    """B by its definition."""
    B = np.zeros((X.shape[1],) * 2)
    compared = np.any(strata(groups, y, notion), axis=0)
    for rows in strata(groups, y, notion):
        mean = X[rows].mean(axis=0)
        for group in np.unique(groups):
            cell = rows & (groups == group)
            apart = X[cell].mean(axis=0) - mean
            B += cell.sum() / compared.sum() * np.outer(apart, apart)
    return B


def kept(X, U):
    return np.trace(U.T @ np.cov(X.T, bias=True) @ U)


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("sizes", [(90, 60), (90, 60, 70)])
def test_means_are_equal_and_no_blind_projection_keeps_more(notion, sizes):
    X, groups, y = people(sizes)
    blind = BlindPCA(2, notion=notion).fit(X, y, sensitive_features=groups)
    scores = blind.transform(X)
    for rows in strata(groups, y, notion):
        means = [scores[rows & (groups == g)].mean(axis=0) for g in blind.groups_]
        np.testing.assert_allclose(means, np.broadcast_to(means[0], np.shape(means)), atol=1e-12)
    B = scatter(X, groups, y, notion)
    N = null_space(B, rcond=1e-10)
    best = np.linalg.eigvalsh(N.T @ np.cov(X.T, bias=True) @ N)[-2:].sum()
    assert kept(X, blind.components_.T) == pytest.approx(best, rel=1e-12)
    assert blind.mean_gap_ == pytest.approx(0, abs=1e-20)
    assert blind.duality_gap_ == pytest.approx(0, abs=1e-12 * best)
    pca = PCA(2).fit(X)
    assert blind.pca_mean_gap_ == pytest.approx(
        np.trace(pca.components_ @ B @ pca.components_.T), rel=1e-9
    )
    hidden = blind.hidden_directions_
    assert len(hidden) == X.shape[1] - N.shape[1]
    np.testing.assert_allclose(hidden @ hidden.T, np.eye(len(hidden)), atol=1e-13)
    np.testing.assert_allclose(blind.components_ @ hidden.T, 0, atol=1e-13)
    assert blind.status_ == "group means hidden"


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_a_budget_is_used_up_at_the_least_error(notion, share):
    X, groups, y = people()
    B, C = scatter(X, groups, y, notion), np.cov(X.T, bias=True)
    limit = share * np.trace(PCA(2).fit(X).components_ @ B @ PCA(2).fit(X).components_.T)
    blind = BlindPCA(2, notion=notion, max_mean_gap=limit).fit(X, y, sensitive_features=groups)
    assert blind.mean_gap_ == pytest.approx(limit, rel=1e-10)
    assert blind.status_ == "mean gap budget met"
    assert abs(blind.duality_gap_) < 1e-11 * np.trace(C)
    lambdas = np.concatenate([np.linspace(0, 50, 2001), np.logspace(2, 6, 50)])
    U = np.linalg.eigh(C - lambdas[:, None, None] * B)[1][:, :, -2:]
    U_t = np.swapaxes(U, 1, 2)
    gaps, variances = (np.trace(U_t @ M @ U, axis1=1, axis2=2) for M in (B, C))
    assert kept(X, blind.components_.T) >= variances[gaps <= limit].max() - 1e-10


def test_a_budget_that_pca_keeps_to_is_pca():
    X, groups, _ = people()
    limit = 1.01 * BlindPCA(2).fit(X, sensitive_features=groups).pca_mean_gap_
    blind = BlindPCA(2, max_mean_gap=limit).fit(X, sensitive_features=groups)
    assert blind.status_ == "already fair"
    np.testing.assert_allclose(np.abs(blind.components_), np.abs(PCA(2).fit(X).components_))


@pytest.mark.parametrize("covariances", [{"hide_covariances": 3}, {"keep_covariances": 0.5}])
def test_covariances_of_two_groups_by_their_difference(covariances):
    X, groups, _ = people((90, 60))
    blind = BlindPCA(2, **covariances).fit(X, sensitive_features=groups)
    A, B = X[groups == "g0"], X[groups == "g1"]
    N = null_space((A.mean(axis=0) - B.mean(axis=0))[None])
    values, vectors = np.linalg.eigh(N.T @ (np.cov(A.T, bias=True) - np.cov(B.T, bias=True)) @ N)
    keep = N @ vectors[:, np.argsort(np.abs(values))[:4]]  # 7 less 3, and half of 8
    np.testing.assert_allclose(keep.T @ blind.hidden_directions_.T, 0, atol=1e-7)
    best = np.linalg.eigvalsh(keep.T @ np.cov(X.T, bias=True) @ keep)[-2:].sum()
    assert kept(X, blind.components_.T) == pytest.approx(best, rel=1e-7)


def test_covariances_of_more_groups_differ_less():
    X, groups, _ = people()

    def apart(blind):
        scores = blind.transform(X)
        own = [np.cov(scores[groups == g].T) for g in blind.groups_]
        return max(np.linalg.norm(a - b, 2) for a in own for b in own)

    plain = BlindPCA(2).fit(X, sensitive_features=groups)
    more = BlindPCA(2, hide_covariances=4).fit(X, sensitive_features=groups)
    assert apart(more) < 0.5 * apart(plain)
    assert more.hidden_directions_.shape == (2 + 4, 8)


def ways_in(X, groups, y, folder):
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    yield "frame", lambda blind: blind.fit(frame, y, sensitive_features=groups)
    moments = GroupMoments.from_data(X, groups, target=y)
    yield "moments", lambda blind: blind.fit(moments)

    def in_blocks(blind):
        for rows in np.array_split(np.argsort(groups, kind="stable"), 7):
            blind.partial_fit(X[rows], y[rows], sensitive_features=groups[rows])
        return blind

    yield "blocks", in_blocks
    weighted = np.vstack([X, X[:50]]), np.r_[y, y[:50]], np.r_[groups, groups[:50]]
    weights = np.r_[np.full(50, 0.25), np.ones(len(X) - 50), np.full(50, 0.75)]
    yield (
        "weights",
        lambda blind: blind.fit(
            *weighted[:2], sensitive_features=weighted[2], sample_weight=weights
        ),
    )
    order = np.random.default_rng(0).permutation(len(X))
    yield "shuffled", lambda blind: blind.fit(X[order], y[order], sensitive_features=groups[order])


@pytest.mark.parametrize("notion", NOTIONS)
def test_every_way_in_gives_the_same(notion, tmp_path):
    X, groups, y = people()
    expected = BlindPCA(2, notion=notion).fit(X, y, sensitive_features=groups)
    for name, way in ways_in(X, groups, y, tmp_path):
        blind = way(BlindPCA(2, notion=notion))
        np.testing.assert_allclose(blind.components_, expected.components_, atol=1e-9, err_msg=name)
        assert blind.groups_.tolist() == expected.groups_.tolist()
        assert blind.pca_mean_gap_ == pytest.approx(expected.pca_mean_gap_, rel=1e-9)


def test_dask_columns_and_arrays():
    da = pytest.importorskip("dask.array", reason="needs the dask extra")
    X, groups, y = people()
    expected = BlindPCA(2, notion="equalized_odds").fit(X, y, sensitive_features=groups)
    chunks = da.from_array(X, chunks=(50, 8))
    outcomes = da.from_array((y == "yes").astype(int), chunks=70)
    for given in (y, outcomes):
        blind = BlindPCA(2, notion="equalized_odds").fit(chunks, given, sensitive_features=groups)
        np.testing.assert_allclose(blind.components_, expected.components_, atol=1e-9)


@pytest.mark.parametrize(
    "params", [{}, {"notion": "equalized_odds"}, {"max_mean_gap": 0.5}], ids=str
)
def test_very_many_features(params, monkeypatch):
    X, groups, y = people((90, 60), d=40)
    X = X * np.arange(1, 41) ** -0.8
    expected = BlindPCA(2, **params).fit(X, y, sensitive_features=groups)
    products_only(monkeypatch)
    blind = BlindPCA(2, **params).fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(blind.components_, expected.components_, atol=1e-5)
    assert blind.mean_gap_ == pytest.approx(expected.mean_gap_, abs=1e-9)
    with pytest.raises(ValueError, match="40 rows"):
        BlindPCA(2, hide_covariances=1).fit(X, sensitive_features=groups)
    monkeypatch.undo()
    wide = np.random.default_rng(0).normal(size=(6, 300_000)).astype(np.float32)
    with pytest.raises(MemoryError, match=r"300000 x 300000 .* or pass hide_covariances=0"):
        BlindPCA(2, hide_covariances=1).fit(wide, sensitive_features=list("aaabbb"))


def test_a_large_offset_and_another_basis_change_nothing():
    X, groups, y = people()
    blind = BlindPCA(2, notion="equalized_odds").fit(X, y, sensitive_features=groups)
    far = BlindPCA(2, notion="equalized_odds").fit(X + 1e9, y, sensitive_features=groups)
    np.testing.assert_allclose(far.components_, blind.components_, atol=1e-5)
    Q = np.linalg.qr(np.random.default_rng(2).normal(size=(8, 8)))[0]
    turned = BlindPCA(2, notion="equalized_odds").fit(X @ Q, y, sensitive_features=groups)
    np.testing.assert_allclose(np.abs(turned.components_), np.abs(blind.components_ @ Q), atol=1e-9)


def test_crossed_columns_and_small_groups():
    X, groups, y = people()
    old = np.arange(len(X)) % 4 == 0
    crossed = pd.DataFrame({"group": groups, "old": old})
    blind = BlindPCA(2).fit(X, sensitive_features=crossed)
    assert len(blind.groups_) == 6
    assert blind.hidden_directions_.shape == (5, 8)
    rare = np.where(np.arange(len(X)) < 3, "rare", groups)
    merged = BlindPCA(2, notion="equalized_odds", min_group_size=60, small_groups="merge").fit(
        X, y, sensitive_features=np.where(groups == "g1", rare, groups)
    )
    assert "rest" in merged.groups_
    ignored = BlindPCA(2, min_group_size=10, small_groups="ignore").fit(X, sensitive_features=rare)
    assert ignored.hidden_directions_.shape == (2, 8)
    scores = ignored.transform(X)
    means = [scores[rare == g].mean(axis=0) for g in ("g0", "g1", "g2")]
    np.testing.assert_allclose(means[1:], [means[0]] * 2, atol=1e-12)


def test_equal_means_hide_nothing():
    X, groups, _ = people((60, 60))
    for group in ("g0", "g1"):
        X[groups == group] -= X[groups == group].mean(axis=0)
    blind = BlindPCA(2).fit(X, sensitive_features=groups)
    assert blind.hidden_directions_.shape == (0, 8)
    np.testing.assert_allclose(np.abs(blind.components_), np.abs(PCA(2).fit(X).components_))


def test_as_many_components_as_are_left():
    X, groups, y = people()
    blind = BlindPCA(notion="equalized_odds").fit(X, y, sensitive_features=groups)
    assert blind.n_components_ == 8 - 4
    least = np.cumsum(np.linalg.eigvalsh(scatter(X, groups, y, "demographic_parity")))
    for r, budget in ((6, least[6] / 2), (7, (least[6] + least[7]) / 2), (8, 2 * least[7])):
        blind = BlindPCA(max_mean_gap=budget).fit(X, sensitive_features=groups)
        assert blind.n_components_ == r
        assert blind.mean_gap_ <= budget * (1 + 1e-9)
    fraction = BlindPCA(0.3).fit(X, sensitive_features=groups)
    assert (fraction.group_explained_variance_ratio_ >= 0.3).all()


@pytest.mark.parametrize("params", [{"notion": "equal_opportunity"}], ids=str)
def test_models_come_back(params, tmp_path):
    pytest.importorskip("safetensors", reason="needs the model extra")
    X, groups, y = people((90, 60))
    blind = BlindPCA(3, **params).fit(X, y, sensitive_features=groups)
    blind.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert repr(again) == repr(blind)
    np.testing.assert_array_equal(again.transform(X), blind.transform(X))
    np.testing.assert_array_equal(again.hidden_directions_, blind.hidden_directions_)


ODDS = {"notion": "equalized_odds"}
BAD = [
    ({"n_components": 7}, {}, r"7 cannot be reached: of n_features = 8 .* takes 2 and leaves 6"),
    ({"n_components": 5, **ODDS}, {}, r"takes 4 and leaves 4; pass n_components=4 or less"),
    ({"n_components": 2, "hide_covariances": 5}, {}, r"takes 7 and leaves 1.*below 5"),
    (ODDS, {"y": lambda y: np.arange(len(y)) % 30}, r"many different whole numbers \(0, 1, 2, 3, "),
    ({"n_components": 0.99}, {}, r"0.99 cannot be reached: .* takes 2 and leaves 6"),
    (
        {"n_components": 7, "max_mean_gap": 1e-3},
        {},
        r"7 components has a mean gap of .*max_mean_gap=0.001; pass n_components=6 or less",
    ),
    ({"hide_covariances": -1}, {}, "hide_covariances.*Got -1 instead"),
    ({"keep_covariances": 1.5}, {}, "keep_covariances.*Got 1.5 instead"),
    ({"hide_covariances": 2, "keep_covariances": 0.5}, {}, "pass one of them"),
    ({"max_mean_gap": -1.0}, {}, "max_mean_gap.*Got -1.0 instead"),
    ({"notion": "parity"}, {}, "notion.*Got 'parity' instead"),
    (ODDS, {"y": None}, r"requires y to be passed.*fit\(X, y, sensitive_features=groups\)"),
    (ODDS, {"y": lambda y: np.linspace(0, 1, len(y))}, r"numbers that are not classes"),
    (ODDS, {"y": lambda y: np.where(y == "yes", np.nan, 1.0)}, r"y has .* missing .*y\[known\]"),
    (ODDS, {"y": lambda y: np.zeros(len(y))}, "one class only"),
    (ODDS, {"y": lambda y: y[:-1]}, r"y has 219 labels but X has 220 rows"),
    (ODDS, {"y": lambda y: np.column_stack([y, y])}, r"y has shape \(220, 2\)"),
    (
        {"notion": "equal_opportunity", "pos_label": "maybe"},
        {},
        r"pos_label='maybe' does not say which",
    ),
]


@pytest.mark.parametrize(("params", "given", "message"), BAD, ids=[message for *_, message in BAD])
def test_refusals(params, given, message):
    X, groups, y = people()
    if "y" in given:
        y = given["y"](y) if given["y"] else None
    with pytest.raises(ValueError, match=message):
        BlindPCA(**{"n_components": 2, **params}).fit(X, y, sensitive_features=groups)


def test_a_group_without_a_class_is_named():
    X, groups, y = people()
    y = np.where(groups == "g1", "no", y)
    with pytest.raises(ValueError, match=r"'g1'.*'yes'"):
        BlindPCA(2, notion="equal_opportunity").fit(X, y, sensitive_features=groups)
    three = np.where(np.arange(len(y)) % 3, y, "maybe")
    with pytest.raises(ValueError, match="pass pos_label='yes'"):
        BlindPCA(2, notion="equal_opportunity").fit(X, three, sensitive_features=groups)


def nonsense(y, groups, kind):
    """A y that cannot be compared class by class."""
    rows = np.arange(len(y))
    return {
        "one class": np.full(len(y), "no"),
        "missing": np.where(rows % 9 == 0, None, y),
        "fractions": rows / 7,
        "counts": rows % 30,
        "no such cell": np.where(groups == "g1", "no", y),
    }[kind]


def in_every_way(estimator, X, y, groups, folder):
    """Functions that fit to the same rows, from everywhere."""
    yield lambda: clone(estimator).fit(X, y, sensitive_features=groups)

    def in_blocks():
        model = clone(estimator)
        for rows in np.array_split(np.arange(len(X)), 2):
            model.partial_fit(X[rows], y[rows], sensitive_features=groups[rows])
        return model.transform(X)

    yield in_blocks
    da = pytest.importorskip("dask.array", reason="needs the dask extra")
    chunks, outcomes = da.from_array(X, chunks=(110, 8)), da.from_array(y, chunks=110)
    yield lambda: clone(estimator).fit(chunks, outcomes, sensitive_features=groups)


NONSENSE = {
    "one class": "one class only",
    "missing": "missing (label|value)",
    "fractions": "not classes, such as",
    "counts": "many different whole numbers",
    "no such cell": "no row of group 'g1' has the outcome 'yes'",
}


@pytest.mark.parametrize("kind", NONSENSE)
@pytest.mark.parametrize("estimator", [BlindPCA(2, **ODDS), FairPLS(2, **ODDS)], ids=str)
def test_every_way_in_refuses_a_y_that_is_no_class(kind, estimator, tmp_path):
    X, groups, y = people()
    for fit in in_every_way(estimator, X, nonsense(y, groups, kind), groups, tmp_path):
        with pytest.raises(ValueError, match=NONSENSE[kind]):
            fit()


@pytest.mark.parametrize(
    "estimator",
    [
        BlindPCA(2, **ODDS),
        BlindPCA(2, hide_covariances=2),
        FairPLS(2, **ODDS),
        FairPLS(3, notion=None),
    ],
    ids=str,
)
def test_singular_covariances(estimator):
    X, groups, y = people()
    X[:, 6], X[:, 7] = X[:, 5], 1.0  # the same column twice, and one that does not vary
    model = clone(estimator).fit(X, y, sensitive_features=groups)
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.mean_gap_)
    found = group_separation(model, X, groups)
    assert np.isfinite([found.centroid_share, found.discriminant_auc.max()]).all()


def test_moments_without_outcomes_are_refused_where_they_count():
    X, groups, y = people()
    moments = GroupMoments.from_data(X, groups)
    with pytest.raises(ValueError, match=r"GroupMoments.from_data\(X, groups, target=y\)"):
        BlindPCA(2, notion="equalized_odds").fit(moments)
    with pytest.raises(ValueError, match="none and classes"):
        moments.update(X, groups, target=y)
    blind = BlindPCA(2).fit(GroupMoments.from_data(X, groups, target=y))
    expected = BlindPCA(2).fit(moments)
    np.testing.assert_allclose(blind.components_, expected.components_, atol=1e-9)


@pytest.mark.parametrize("budget", [0.3, 0.6])
def test_a_budget_is_not_met_by_directions_in_which_no_row_varies(budget):
    """Columns given twice: the same scores, whatever the groups are called."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(90, 3))
    codes = np.repeat([0, 1, 2], 30)
    A += rng.normal(size=(3, 3))[codes]
    once = BlindPCA(1, max_mean_gap=budget).fit(A, sensitive_features=codes)
    for names in (["a", "b", "c"], ["c", "a", "b"]):
        X = np.hstack([A, A]) / np.sqrt(2)
        groups = np.array(names)[codes]
        twice = BlindPCA(1, max_mean_gap=budget).fit(X, sensitive_features=groups)
        ratio = twice.transform(X)[:, 0] / once.transform(A)[:, 0]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)
        assert abs(ratio[0]) == pytest.approx(1)
        assert twice.mean_gap_ == pytest.approx(once.mean_gap_)
    with pytest.raises(ValueError, match="of at least"):
        BlindPCA(2, max_mean_gap=1e-6).fit(X, sensitive_features=groups)
