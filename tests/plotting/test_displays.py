"""Displays hold the right numbers and draw without a screen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from helpers.data import diabetes_by_sex
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import BlindPCA, FairPCA, FairPCACV, FairPLS, load_model
from fairpca.datasets import make_two_groups
from fairpca.metrics import Estimate as Interval
from fairpca.plotting import (
    ChangesDisplay,
    GroupErrorDisplay,
    GroupScreeDisplay,
    LoadingsDisplay,
    ScoresDisplay,
    TradeoffDisplay,
)

matplotlib = pytest.importorskip("matplotlib", reason="drawing needs the plot extra")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

DIABETES = diabetes_by_sex()
X, SEX = DIABETES.data, DIABETES.sensitive_features
FAIR = FairPCA(3).fit(X, sensitive_features=SEX)


class GroupChange(NamedTuple):
    """The fields of an audit's group that are drawn."""

    name: str
    n: int
    change: Interval


@pytest.fixture(autouse=True)
def close_figures():
    plt.close("all")  # tests of other files may leave some open
    yield
    plt.close("all")


def test_tradeoff_starts_at_pca_and_marks_the_fit():
    display = TradeoffDisplay.from_estimator(FAIR)
    line = display.ax_.lines[0].get_xydata()
    assert line[0] == pytest.approx(
        [np.diff(FAIR.pca_group_errors_)[0], FAIR.pca_reconstruction_error_]
    )
    assert display.ax_.lines[-1].get_xydata()[0] == pytest.approx(
        [FAIR.disparity_, FAIR.reconstruction_error_], abs=1e-12
    )
    assert "male" in display.ax_.get_xlabel()


@pytest.mark.parametrize("sides", [2, 3])
def test_pca_is_on_the_left_of_the_frontier(sides):
    groups = np.arange(len(X)) % sides if sides > 2 else SEX
    display = TradeoffDisplay.from_data(X, groups, n_components=3, n_points=5)
    first, *_, last = display.ax_.transData.transform(display.ax_.lines[0].get_xydata())
    assert first[0] < last[0]
    display.plot(display.ax_)
    again = display.ax_.transData.transform(display.ax_.lines[0].get_xydata())
    assert again[0][0] < again[-1][0]


def test_several_groups():
    ward = np.array(["north", "south", "east"])[np.arange(len(X)) % 3]
    fair = FairPCA(3, relative_errors=True, min_group_size=72, small_groups="merge")
    fair.fit(X, sensitive_features=np.column_stack([SEX, ward]))
    assert "rest" in fair.groups_
    display = TradeoffDisplay.from_estimator(fair, n_points=4)
    assert display.ax_.lines[0].get_xydata()[0] == pytest.approx(
        [np.ptp(fair.pca_group_errors_), fair.pca_reconstruction_error_]
    )
    assert "largest minus smallest" in display.ax_.get_xlabel()
    display = GroupErrorDisplay.from_estimator(fair, ranks=[3])
    assert display.groups == fair.groups_.tolist()
    assert display.fair[0] == pytest.approx(fair.group_errors_)
    assert display.pca[0] == pytest.approx(fair.pca_group_errors_)
    assert LoadingsDisplay.from_estimator(fair).loadings["PCA"].shape == (3, X.shape[1])
    fair.set_params(small_groups="ignore").fit(X, sensitive_features=np.column_stack([SEX, ward]))
    compared = fair.group_sizes_ >= 72
    assert not compared.all()
    display = TradeoffDisplay.from_estimator(fair, n_points=4)
    assert display.ax_.lines[0].get_xydata()[0] == pytest.approx(
        [np.ptp(fair.pca_group_errors_[compared]), fair.pca_reconstruction_error_]
    )


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: TradeoffDisplay.from_estimator(FAIR, n_points=3, ax=ax),
        lambda ax: TradeoffDisplay.from_data(X, SEX, n_components=3, n_points=3, ax=ax),
        lambda ax: GroupErrorDisplay.from_estimator(FAIR, ranks=[2], ax=ax),
        lambda ax: GroupErrorDisplay.from_data(X, SEX, ranks=[2], ax=ax),
        lambda ax: GroupScreeDisplay.from_estimator(FAIR, ranks=[2], ax=ax),
        lambda ax: LoadingsDisplay.from_estimator(FAIR, ax=ax),
        lambda ax: ScoresDisplay.from_estimator(FAIR, X, SEX, ax=ax),
    ],
)
def test_making_a_display_draws_it_once(draw):
    display = draw(None)
    assert len(plt.get_fignums()) == 1
    assert display.ax_.lines
    _, ax = plt.subplots()
    assert draw(ax).ax_ is ax
    assert len(plt.get_fignums()) == 2


def test_group_errors_of_pca_are_scikit_learns():
    display = GroupErrorDisplay.from_data(X, SEX, ranks=[2, 5])
    for r, errors in zip((2, 5), display.pca, strict=True):
        pca = PCA(r).fit(X)
        squares = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum(axis=1)
        assert errors == pytest.approx([squares[g == SEX].mean() for g in ("female", "male")])
    assert len(display.ax_.lines) == 4


def test_group_errors_from_estimator_use_its_settings():
    display = GroupErrorDisplay.from_estimator(FAIR, ranks=[3])
    assert display.fair[0] == pytest.approx(FAIR.group_errors_)
    for ranks in ([0], [10], [1.5], [], 3, ["2"]):
        with pytest.raises(ValueError, match="pass integers from 1 to 9"):
            GroupErrorDisplay.from_estimator(FAIR, ranks=ranks)


def test_standardising_estimators_are_drawn_in_their_units():
    raw = X * np.arange(1, 10) + 5.0
    fair = FairPCA(3, standardize=True).fit(raw, sensitive_features=SEX)
    scaled = FairPCA(3).fit(StandardScaler().fit_transform(raw), sensitive_features=SEX)
    ours, theirs = (GroupErrorDisplay.from_estimator(model) for model in (fair, scaled))
    assert ours.fair == pytest.approx(theirs.fair)
    assert ours.pca == pytest.approx(theirs.pca)
    ours, theirs = (TradeoffDisplay.from_estimator(model).path for model in (fair, scaled))
    assert ours.disparity == pytest.approx(theirs.disparity, abs=1e-9)
    ours, theirs = (LoadingsDisplay.from_estimator(model).loadings for model in (fair, scaled))
    assert ours["PCA"] == pytest.approx(theirs["PCA"])


def test_ranks_end_where_the_estimator_has_no_room():
    y = X[:, 0] > 0
    for blind in (BlindPCA(2), BlindPCA(2, notion="equalized_odds"), FairPLS(2)):
        display = GroupErrorDisplay.from_estimator(blind.fit(X, y, sensitive_features=SEX))
        assert display.fair[1] == pytest.approx(blind.group_errors_)
        assert len(display.n_components) == len(display.pca) <= 9


def test_scree_holds_the_shares_that_each_fit_reports():
    display = GroupScreeDisplay.from_data(X, SEX)
    assert display.n_components.tolist() == list(range(1, 10))
    assert display.fair[2] == pytest.approx(FAIR.group_explained_variance_ratio_)
    squares, pca = ((X - X.mean(axis=0)) ** 2).sum(axis=1), PCA(4).fit(X)
    lost = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum(axis=1)
    kept = [1 - lost[g == SEX].sum() / squares[g == SEX].sum() for g in ("female", "male")]
    assert display.pca[3] == pytest.approx(kept)
    assert display.fair[-1] == pytest.approx(1)
    assert len(display.ax_.lines) == 4


@pytest.mark.parametrize("relative_errors", [False, True])
def test_scree_marks_the_share_asked_for(relative_errors):
    fair = FairPCA(0.8, relative_errors=relative_errors).fit(X, sensitive_features=SEX)
    display = GroupScreeDisplay.from_estimator(fair)
    enough = np.flatnonzero((display.fair >= 0.8 - 1e-12).all(axis=1))
    assert display.n_components[enough[0]] == fair.n_components_
    assert display.ax_.lines[-1].get_ydata() == pytest.approx([0.8, 0.8])
    shares = display.fair[fair.n_components_ - 1]
    assert shares == pytest.approx(fair.group_explained_variance_ratio_)


@pytest.mark.parametrize(
    "cv", [3, StratifiedKFold(3), RepeatedStratifiedKFold(n_splits=3, n_repeats=2)]
)
def test_displays_of_a_fit_that_was_chosen_by_folds(cv):
    fair = FairPCACV(3, cv=cv).fit(X, sensitive_features=SEX)
    display = GroupErrorDisplay.from_estimator(fair, ranks=[2, 3])
    assert display.fair[1] == pytest.approx(fair.group_errors_)
    assert GroupScreeDisplay.from_data(X, SEX, estimator=fair, ranks=[2]).fair.shape == (1, 2)
    path = TradeoffDisplay.from_estimator(fair, n_points=3).path
    assert path.reconstruction_error[0] == pytest.approx(fair.pca_reconstruction_error_)
    assert list(LoadingsDisplay.from_estimator(fair).loadings) == ["fair PCA", "PCA"]


def test_loadings_agree_in_sign_and_show_the_largest():
    display = LoadingsDisplay.from_estimator(
        FAIR, feature_names=DIABETES.feature_names, component=1, n_features=4
    )
    overlap = (display.loadings["PCA"] * display.loadings["fair PCA"]).sum(axis=1)
    assert (overlap >= 0).all()
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
    display = ScoresDisplay.from_estimator(PCA(3).fit(X), X, SEX, components=(0, 2))
    drawn = display.ax_.lines[0].get_xydata()
    assert drawn == pytest.approx(PCA(3).fit_transform(X)[SEX == "female"][:, [0, 2]])
    with pytest.raises(ValueError, match="the projection has 3"):
        display.plot(components=(0, 3))


# --- pipelines, models from files, and what cannot be drawn -------------------------------------


def test_pipelines_are_drawn_as_their_projection():
    pipeline = make_pipeline(StandardScaler(), FairPCA(3), LogisticRegression())
    pipeline.fit(X, X[:, 0] > 0, fairpca__sensitive_features=SEX)
    fair = pipeline["fairpca"]
    assert TradeoffDisplay.from_estimator(pipeline, n_points=3).chosen == (
        fair.disparity_,
        fair.reconstruction_error_,
    )
    errors = GroupErrorDisplay.from_estimator(pipeline, ranks=[3])
    assert errors.fair[0] == pytest.approx(fair.group_errors_)
    assert LoadingsDisplay.from_estimator(pipeline).loadings["fair PCA"] == pytest.approx(
        fair.components_
    )
    scores = ScoresDisplay.from_estimator(pipeline, X, SEX).scores
    assert scores == pytest.approx(pipeline[:2].transform(X))


def test_loadings_of_projections_without_moments(tmp_path):
    pytest.importorskip("safetensors")
    FAIR.save(tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert list(LoadingsDisplay.from_estimator(loaded).loadings) == ["fair PCA"]
    assert list(LoadingsDisplay.from_estimator(PCA(2).fit(X)).loadings) == ["PCA"]
    for display in (TradeoffDisplay, GroupErrorDisplay, GroupScreeDisplay):
        with pytest.raises(ValueError, match="from_data"):
            display.from_estimator(loaded)


@pytest.mark.parametrize("display", [TradeoffDisplay, GroupErrorDisplay, LoadingsDisplay])
@pytest.mark.parametrize("estimator", [FairPCA(2), make_pipeline(StandardScaler(), FairPCA(2))])
def test_estimators_that_are_not_fitted(display, estimator):
    with pytest.raises(NotFittedError, match="is not fitted"):
        display.from_estimator(estimator)


def test_what_knows_no_groups_is_refused_with_the_way_out():
    for model in (PCA(2).fit(X), make_pipeline(StandardScaler(), PCA(2)).fit(X)):
        with pytest.raises(TypeError, match="from_data"):
            TradeoffDisplay.from_estimator(model)
    with pytest.raises(TypeError, match="StandardScaler"):
        LoadingsDisplay.from_estimator(make_pipeline(StandardScaler()).fit(X))
    with pytest.raises(TypeError, match="components_"):
        LoadingsDisplay.from_estimator(StandardScaler().fit(X))
    with pytest.raises(NotFittedError, match="is not fitted"):
        ScoresDisplay.from_estimator(PCA(2), X, SEX)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda d: d.plot(component=3), "component=3: pass one of 0 to 2"),
        (lambda d: d.plot(component=-1), "component=-1"),
        (lambda d: d.plot(n_features=0), "n_features=0"),
        (lambda d: LoadingsDisplay(d.loadings, ["a"]), "1 feature names for 9 features"),
        (lambda d: ScoresDisplay(X[:, :2], SEX).plot(components=(-1, 0)), "pass two of 0 to 1"),
        (lambda d: ScoresDisplay(X, SEX).plot(components=(0, 1, 2)), "pass two of 0 to 8"),
    ],
)
def test_what_is_not_there_cannot_be_drawn(draw, message):
    display = LoadingsDisplay({"PCA": FAIR.components_}, DIABETES.feature_names)
    with pytest.raises(ValueError, match=message):
        draw(display)
    assert not plt.get_fignums()


def test_every_name_is_shown_as_it_is():
    names = ["_hidden", r"$\frac$"]
    groups = np.array(names)[(SEX == "male").astype(int)]
    display = ScoresDisplay(X[:, :2], groups).plot()
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    curve = GroupErrorDisplay.from_estimator(fair, ranks=[2])
    features = [f"_{j} ${{$" for j in range(9)]
    loadings = LoadingsDisplay.from_estimator(fair, feature_names=features)
    frontier = TradeoffDisplay.from_estimator(fair, n_points=3)
    for drawn in (display, curve, loadings, frontier):
        drawn.ax_.figure.canvas.draw()
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert sorted(text.strip().replace(r"\$", "$") for text in texts) == sorted(names)
    assert len(curve.ax_.get_legend().get_texts()) == 4


def test_tradeoff_of_data():
    made = make_two_groups(random_state=0)
    display = TradeoffDisplay.from_data(made.data, made.sensitive_features, n_components=1)
    assert display.chosen is None


def test_changes_are_drawn_with_their_intervals():
    groups = [
        GroupChange("older", 480, Interval(-0.19, -0.26, -0.12)),
        GroupChange("_few $", 12, Interval(0.4, np.nan, np.nan)),
        GroupChange("younger", 4011, Interval(0.09, 0.05, 0.13)),
    ]
    display = ChangesDisplay.from_audit(SimpleNamespace(groups=groups))
    display.ax_.figure.canvas.draw()
    assert display.changes.tolist() == [-0.19, 0.4, 0.09]
    assert np.isnan(display.intervals[1]).all()
    drawn = [line.get_xydata().tolist() for line in display.ax_.lines[1:]]
    assert sorted(len(points) for points in drawn) == [1, 1, 1, 2, 2]
    assert [[-26.0, 0.0], [-12.0, 0.0]] in [np.round(points, 9).tolist() for points in drawn]
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert [label.strip() for label in labels] == [
        "older (480)",
        r"_few \$ (12)",
        "younger (4,011)",
    ]
    said = [text.get_text() for text in display.ax_.texts]
    assert "too few rows" in said[1]
    assert display.ax_.yaxis_inverted()


def test_axes_name_an_order_in_which_prefixes_are_fair():
    fair = FairPCA(3, order="fair").fit(X, sensitive_features=SEX)
    scores = ScoresDisplay.from_estimator(make_pipeline(fair), X, SEX)
    loadings = LoadingsDisplay.from_estimator(fair, component=1)
    assert scores.ax_.get_xlabel() == "component 1 (fair order)"
    assert scores.ax_.get_ylabel() == "component 2 (fair order)"
    assert loadings.ax_.get_xlabel() == "weight in component 2 (fair order)"
    np.testing.assert_allclose(loadings.loadings["fair PCA"], fair.components_)
    assert ScoresDisplay.from_estimator(FAIR, X, SEX).ax_.get_xlabel() == "component 1"
