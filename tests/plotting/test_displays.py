"""Displays hold the right numbers and draw without a screen."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA
from fairpca.datasets import load_diabetes_by_sex, make_two_groups
from fairpca.plotting import (
    BiplotDisplay,
    GroupErrorDisplay,
    GroupScreeDisplay,
    LoadingsDisplay,
    ScoresDisplay,
    TradeoffDisplay,
)

matplotlib = pytest.importorskip("matplotlib", reason="drawing needs the plot extra")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

DIABETES = load_diabetes_by_sex()
X, SEX = DIABETES.data, DIABETES.sensitive_features
FAIR = FairPCA(3).fit(X, sensitive_features=SEX)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_tradeoff_starts_at_pca_and_marks_the_fit():
    display = TradeoffDisplay.from_estimator(FAIR).plot()
    line = display.ax_.lines[0].get_xydata()
    assert line[0] == pytest.approx(
        [np.diff(FAIR.pca_group_errors_)[0], FAIR.pca_reconstruction_error_]
    )
    assert display.ax_.lines[-1].get_xydata()[0] == pytest.approx(
        [FAIR.disparity_, FAIR.reconstruction_error_], abs=1e-12
    )
    assert "male" in display.ax_.get_xlabel()


def test_several_groups():
    ward = np.array(["north", "south", "east"])[np.arange(len(X)) % 3]
    fair = FairPCA(3, normalize=True, min_group_size=72, small_groups="merge")
    fair.fit(X, sensitive_features=np.column_stack([SEX, ward]))
    assert "rest" in fair.groups_
    display = TradeoffDisplay.from_estimator(fair, n_points=4).plot()
    assert display.ax_.lines[0].get_xydata()[0] == pytest.approx(
        [np.ptp(fair.pca_group_errors_), fair.pca_reconstruction_error_]
    )
    assert "largest minus smallest" in display.ax_.get_xlabel()
    display = GroupErrorDisplay.from_estimator(fair, ranks=[3]).plot()
    assert display.groups == fair.groups_.tolist()
    assert display.curve.fair[0] == pytest.approx(fair.group_errors_)
    assert LoadingsDisplay.from_estimator(fair).plot().loadings["PCA"].shape == (3, X.shape[1])
    fair.set_params(small_groups="ignore").fit(X, sensitive_features=np.column_stack([SEX, ward]))
    with pytest.raises(ValueError, match="the frontier compares all groups"):
        TradeoffDisplay.from_estimator(fair)


def test_tradeoff_from_data_draws_on_given_axes():
    _, ax = plt.subplots()
    made = make_two_groups(random_state=0)
    display = TradeoffDisplay.from_data(made.data, made.sensitive_features, n_components=1)
    assert display.plot(ax=ax).ax_ is ax


def test_group_errors_of_pca_are_scikit_learns():
    display = GroupErrorDisplay.from_data(X, SEX, ranks=[2, 5]).plot()
    for r, errors in zip((2, 5), display.curve.pca, strict=True):
        pca = PCA(r).fit(X)
        squares = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum(axis=1)
        assert errors == pytest.approx([squares[g == SEX].mean() for g in ("female", "male")])
    assert len(display.ax_.lines) == 4


def test_group_errors_from_estimator_use_its_settings():
    display = GroupErrorDisplay.from_estimator(FAIR, ranks=[3])
    assert display.curve.fair[0] == pytest.approx(FAIR.group_errors_)


def test_scree_holds_the_shares_that_each_fit_reports():
    display = GroupScreeDisplay.from_data(X, SEX).plot()
    assert display.n_components.tolist() == list(range(1, 10))
    assert display.fair[2] == pytest.approx(FAIR.group_explained_variance_ratio_)
    squares, pca = ((X - X.mean(axis=0)) ** 2).sum(axis=1), PCA(4).fit(X)
    lost = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum(axis=1)
    kept = [1 - lost[g == SEX].sum() / squares[g == SEX].sum() for g in ("female", "male")]
    assert display.pca[3] == pytest.approx(kept)
    assert display.fair[-1] == pytest.approx(1)
    assert len(display.ax_.lines) == 4


@pytest.mark.parametrize("normalize", [False, True])
def test_scree_marks_the_share_asked_for_and_finds_its_rank(normalize):
    fair = FairPCA(0.8, normalize=normalize).fit(X, sensitive_features=SEX)
    display = GroupScreeDisplay.from_estimator(fair).plot()
    assert display.least_rank(0.8) == fair.n_components_
    assert display.ax_.lines[-1].get_ydata() == pytest.approx([0.8, 0.8])
    shares = display.fair[fair.n_components_ - 1]
    assert shares == pytest.approx(fair.group_explained_variance_ratio_)
    assert display.least_rank(0.8, method="pca") >= PCA(0.8).fit(X).n_components_
    assert display.least_rank(1.1) is None
    with pytest.raises(ValueError, match="pass 'fair' or 'pca'"):
        display.least_rank(0.8, method="PCA")


def test_ranks_of_a_fit_that_was_chosen_by_folds():
    fair = FairPCA(3, cv=3, random_state=0).fit(X, sensitive_features=SEX)
    curve = GroupErrorDisplay.from_estimator(fair, ranks=[3]).curve
    assert curve.fair[0] == pytest.approx(fair.group_errors_)
    assert GroupScreeDisplay.from_data(X, SEX, estimator=fair, ranks=[2]).fair.shape == (1, 2)


def test_loadings_agree_in_sign_and_show_the_largest():
    display = LoadingsDisplay.from_estimator(FAIR, feature_names=DIABETES.feature_names)
    overlap = (display.loadings["PCA"] * display.loadings["fair PCA"]).sum(axis=1)
    assert (overlap >= 0).all()
    display.plot(component=1, n_features=4)
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert len(labels) == 4
    weights = np.max([np.abs(v[1]) for v in display.loadings.values()], axis=0)
    assert labels[-1] == DIABETES.feature_names[int(weights.argmax())]


def test_small_groups_are_not_hidden_under_large_ones():
    groups = np.array(["a", "z"])[(np.arange(2000) < 1950).astype(int)]
    display = ScoresDisplay(np.random.default_rng(0).normal(size=(2000, 2)), groups)
    small, large = display.plot(max_rows=500).ax_.lines
    assert small.get_zorder() > large.get_zorder()
    assert len(small.get_xdata()) == 50
    assert len(large.get_xdata()) == 500


def test_scores_of_any_projection():
    display = ScoresDisplay.from_estimator(PCA(3).fit(X), X, SEX).plot(components=(0, 2))
    drawn = display.ax_.lines[0].get_xydata()
    assert drawn == pytest.approx(PCA(3).fit_transform(X)[SEX == "female"][:, [0, 2]])
    with pytest.raises(ValueError, match="the projection has 3"):
        display.plot(components=(0, 3))


@pytest.mark.parametrize("projection", [FairPCA(3), PCA(3), PCA(3, whiten=True)])
def test_biplot_reconstructs_what_arrives_at_the_projection(projection):
    pipeline = make_pipeline(StandardScaler(), projection)
    groups = {"fairpca__sensitive_features": SEX} if isinstance(projection, FairPCA) else {}
    pipeline.fit(X, **groups)
    display = BiplotDisplay.from_estimator(pipeline, X, SEX)
    Z = pipeline[0].transform(X)
    again = Z.mean(axis=0) + display.scores @ display.loadings
    assert again == pytest.approx(pipeline[1].inverse_transform(pipeline[1].transform(Z)))
    assert display.feature_names == [f"x{j}" for j in range(9)]


def test_biplot_draws_the_longest_arrows_and_names_apart():
    names = DIABETES.feature_names
    display = BiplotDisplay.from_estimator(FAIR, X, SEX, feature_names=names)
    display.plot(components=(0, 2), n_features=9)
    figure = display.ax_.figure
    figure.canvas.draw()
    texts = [text for text in display.ax_.texts if text.get_text()]
    assert sorted(text.get_text() for text in texts) == sorted(names)
    weights = FAIR.components_[[0, 2]].T
    for text in texts:  # all stretched by one factor
        j = names.index(text.get_text())
        assert np.cross(np.append(text.xy, 0), np.append(weights[j], 0)) == pytest.approx(0)
        assert np.dot(text.xy, weights[j]) > 0
    boxes = [text.get_window_extent() for text in texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    display.plot(n_features=2)
    drawn = {text.get_text() for text in display.ax_.texts} - {""}
    longest = np.argsort(-np.linalg.norm(FAIR.components_[:2], axis=0))[:2]
    assert drawn == {names[j] for j in longest}
    with pytest.raises(ValueError, match="1 feature names for 9 features"):
        BiplotDisplay.from_estimator(FAIR, X, SEX, feature_names=["a"])


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda d: d.plot(component=3), "component=3: pass one of 0 to 2"),
        (lambda d: d.plot(component=-1), "component=-1"),
        (lambda d: d.plot(n_features=0), "n_features=0"),
        (lambda d: LoadingsDisplay(d.loadings, ["a"]), "1 feature names for 9 features"),
        (lambda d: ScoresDisplay(X[:, :2], SEX).plot(components=(-1, 0)), "pass two of 0 to 1"),
    ],
)
def test_what_is_not_there_cannot_be_drawn(draw, message):
    display = LoadingsDisplay.from_estimator(FAIR)
    with pytest.raises(ValueError, match=message):
        draw(display)
    assert not plt.get_fignums()


def test_every_name_is_shown_as_it_is():
    names = ["_hidden", r"$\frac$"]
    groups = np.array(names)[(SEX == "male").astype(int)]
    display = ScoresDisplay(X[:, :2], groups).plot()
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    curve = GroupErrorDisplay.from_estimator(fair, ranks=[2]).plot()
    features = [f"_{j} ${{$" for j in range(9)]
    loadings = LoadingsDisplay.from_estimator(fair, feature_names=features).plot()
    frontier = TradeoffDisplay.from_estimator(fair, n_points=3).plot()
    for drawn in (display, curve, loadings, frontier):
        drawn.ax_.figure.canvas.draw()
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert sorted(text.strip().replace(r"\$", "$") for text in texts) == sorted(names)
    assert len(curve.ax_.get_legend().get_texts()) == 4


def test_estimator_without_moments_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match="from_data"):
        TradeoffDisplay.from_estimator(FairPCA(2))
