"""What scores give away and what a classifier makes of them, in the audit and on the page."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from helpers.command import fails, run
from helpers.data import make_groups
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fairpca import BlindPCA, FairPCA, FairPLS, GroupMoments, audit
from fairpca._audit.dealt import Dealt
from fairpca._audit.held_out import cross_fit
from fairpca._audit.in_memory import RowsInMemory
from fairpca._audit.representation import _unfitted
from fairpca._audit.sampling import cells_of
from fairpca._moments.dealing import deal_folds
from fairpca.metrics import (
    classifier_outcomes,
    group_separation,
    probe_groups,
    rbf_mmd,
    row_reconstruction_errors,
)
from fairpca.report import model_card

QUICK = {"n_points": 3, "n_folds": 2, "n_resamples": 20, "ranks": [2]}


def people():
    X, groups = make_groups((150, 110), d=5)
    X[groups == "g1"] += 4.0  # so that PCA gives the group away
    noise = np.random.default_rng(0).normal(size=len(X))
    return X, groups, np.where(X[:, 0] + noise > X[:, 0].mean(), "yes", "no")


@pytest.fixture(scope="module")
def judged():
    X, groups, y = people()
    return audit(X, groups, BlindPCA(2), y=y, standardize=False, **QUICK)


def test_moments_tell_even_if_nobody_asks():
    X, groups, _ = people()
    result = audit(X, groups, FairPCA(2), standardize=False, **QUICK)
    moments = GroupMoments.from_data(X, groups)
    fair = FairPCA(2).fit_moments(moments)
    expected = group_separation(fair, moments).largest()
    assert result.representation.fair.separation == pytest.approx(expected)
    assert result.representation.pca.probes == []
    assert result.representation.n_rows == 0
    assert result.outcomes is None
    page = result.to_html()
    assert "What the scores give away" in page
    assert "What a classifier makes of it" not in page


def test_probes_guess_rows_that_no_projection_was_fitted_to(judged):
    found = judged.representation
    assert abs(found.n_rows - 130) <= 2  # half of each group and class
    assert [probe.name for probe in found.pca.probes] == ["logistic", "boosted"]
    assert found.fair.probes[0].auc < found.pca.probes[0].auc
    assert found.fair.probes[0].low < 0.5 < found.pca.probes[0].low
    assert found.fair.separation["centroid_share"] < 1e-20
    assert 0 < found.fair.separation["rbf_mmd2"] < found.pca.separation["rbf_mmd2"]


def test_outcomes_without_people(judged):
    assert [result.name for result in judged.outcomes] == ["scores", "pca", "features"]
    assert all(result.data is None for result in judged.outcomes)
    with pytest.raises(ValueError, match="an audit, which keeps no rows"):
        judged.outcomes[0].to_metric_frame()
    plain = judged.to_dict()
    assert set(plain["outcomes"][0]["by_group"]["selection_rate"]) == {"g0", "g1"}
    assert len(json.dumps(plain)) < 1e5


def test_text_and_notebook_tell_of_both(judged):
    guess, gap = judged.representation.fair.probes[0], judged.outcomes[0].difference
    lines = judged.about_scores
    assert f"a logistic probe: AUC {guess.auc:.3f}" in lines[0]
    assert f"true positive rate {gap['true_positive_rate'].value:.3f}" in lines[2]
    assert len(lines) == 5
    for line in lines:
        assert line in repr(judged)
        assert line in judged._repr_html_()
        assert line in model_card(judged).replace("\\", "")


@pytest.mark.parametrize(("rare", "few"), [(0.5, False), (0.12, True), (0.88, True)])
def test_how_many_are_selected_is_said_beside_how_many_are_positive(rare, few):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 4)), np.arange(300) % 2
    y = X[:, 0] + rng.normal(size=300) > np.quantile(X[:, 0], 1 - rare)
    result = audit(X, groups, PCA(2).fit(X), y=y)
    line, found = result.about_scores[2], result.outcomes[0]
    assert f"selects {100 * found.overall['selection_rate']:.1f} %" in line
    assert f"where {100 * y.mean():.1f} % are positive" in line
    page = result.to_html()
    assert f"{100 * y.mean():.1f} % of the rows are positive" in page
    assert ("picks one of the classes for fewer than half" in repr(result)) == few
    assert ("picks one of the classes for fewer than half" in page) == few


def test_both_sections_are_on_the_page(judged):
    page = judged.to_html()
    tried = "logistic regression and gradient-boosted trees"
    for words in ("What the scores give away", "A probe is a lower bound", tried):
        assert words in page
    gap = judged.outcomes[1].difference["selection_rate"]
    section = page.split("What a classifier makes of it")[1]
    assert f"{gap.value:.3f}<br><small>{gap.low:.3f} to {gap.high:.3f}</small>" in section
    assert "predicted to be “yes”" in section


@pytest.mark.parametrize(
    "estimator",
    [FairPLS(2, notion="equalized_odds"), BlindPCA(2, notion="equal_opportunity")],
    ids=str,
)
def test_estimators_that_are_fitted_with_the_target(estimator):
    X, groups, y = people()
    weights = np.random.default_rng(1).integers(0, 3, len(X))
    given = {"sample_weight": weights, "standardize": False}
    result = audit(X, groups, estimator, y=y, **given, **{**QUICK, "ranks": [1]})
    fitted = clone(estimator).fit(X, y, sensitive_features=groups, sample_weight=weights)
    np.testing.assert_allclose(result.fair.group_errors, fitted.group_errors_, rtol=1e-9)
    np.testing.assert_allclose(result.pca.group_errors, fitted.pca_group_errors_, rtol=1e-9)
    assert (result.cross_validation.fair.group_errors > fitted.group_errors_).any()
    assert len(result.representation.fair.probes) == 2
    assert result.path.n_components == result.n_components  # of the groups, not of cells
    assert ", nan," not in result.to_html()


def test_held_out_errors_come_from_fits_without_the_row():
    X, groups, y = people()
    rows = RowsInMemory(X, groups, target=y)
    pls = FairPLS(2, notion="equalized_odds")
    settled = pls._settle(rows.moments)
    codes = np.unique(groups, return_inverse=True)[1]
    fold = deal_folds(cells_of(codes, y), 3, np.random.default_rng(5))
    dealt = Dealt.of(X, codes, [fold], target=y)
    found = cross_fit(X, codes, dealt, [clone(pls)], False, compared=settled.compared)
    for k in range(3):
        rest, here = fold != k, fold == k
        own = clone(pls).fit(X[rest], y[rest], sensitive_features=groups[rest])
        errors = row_reconstruction_errors(own, X[here])
        np.testing.assert_allclose(found.errors[0, here], errors, rtol=1e-8)


def test_a_fitted_model_with_a_target():
    X, groups, y = people()
    estimator = FairPLS(2, notion="demographic_parity")
    half = np.arange(len(X)) % 2 == 0
    model = clone(estimator).fit(X[half], y[half], sensitive_features=groups[half])
    judged = audit(X[~half], groups[~half], model, y=y[~half])
    expected = classifier_outcomes(model, X[~half], y[~half], groups[~half], random_state=0)
    assert judged.outcomes[0].overall == expected[0].overall
    scores = model.transform(X[~half])
    assert judged.probes == probe_groups(scores, groups[~half], random_state=0)
    separation = group_separation(model, X[~half], groups[~half]).largest()
    separation["rbf_mmd2"] = rbf_mmd(scores, groups[~half])
    assert judged.separation == pytest.approx(separation)
    assert "classifier on the scores" in repr(judged)
    assert json.dumps(judged.to_dict())
    page = judged.to_html()
    gap = judged.outcomes[0].difference["true_positive_rate"]
    section = page.split("What a classifier makes of it")[1]
    assert f"{gap.value:.3f}<br><small>{gap.low:.3f} to {gap.high:.3f}</small>" in section
    assert "on the scores of the model, on those of PCA" in section
    assert "<script" not in page
    whole = make_pipeline(clone(estimator), LogisticRegression())  # its scores count
    whole.fit(X[half], y[half], fairpls__sensitive_features=groups[half])
    assert audit(X[~half], groups[~half], whole, y=y[~half]).probes == judged.probes


def test_the_scores_audited_are_those_of_the_weight_that_folds_chose():
    X, groups = make_groups((400, 300), d=6)
    fair = FairPCA(2, cv=5, random_state=0).fit(X, sensitive_features=groups)
    assert fair.alpha_ < 1
    twin = _unfitted(fair, 20)
    assert (twin.alpha, twin.harmed, twin.n_components) == (fair.alpha_, fair.harmed_group_, 2)
    assert twin.fit(X, sensitive_features=groups).group_errors_ == pytest.approx(fair.group_errors_)
    turned = X[:, ::-1] * [1, 3, 1, 1, 2, 1]  # whomever PCA harms in other rows
    helped = clone(twin).fit(turned, sensitive_features=groups)
    place = fair.groups_.tolist().index(fair.harmed_group_)
    assert helped.group_errors_[place] < helped.pca_group_errors_[place]
    few = clone(twin).fit(X[::150, :], sensitive_features=groups[::150])  # fewer rows than columns
    assert few.components_.shape == (2, 6)
    found = audit(X, groups, clone(fair), probes=True, standardize=False, **QUICK)
    shown = found.representation.fair.probes, found.representation.pca.probes
    assert shown[0] != shown[1]
    three = FairPCA(2, cv=5, random_state=0)
    three.fit(X, sensitive_features=np.where(np.arange(700) % 3, groups, "g2"))
    assert _unfitted(three, 4).cv == 4


@pytest.mark.parametrize("kind", [int, float, bool])
def test_a_positive_class_of_another_type(kind):
    X, groups, y = people()
    model, y = PCA(2).fit(X), (y == "yes").astype(kind)
    expected = audit(X, groups, model, y=y, random_state=0).outcomes[0].overall
    for positive in (1, 1.0, True, "1"):
        found = audit(X, groups, model, y=y, pos_label=positive, random_state=0).outcomes[0]
        assert found.overall == expected


def test_a_number_that_may_be_two_classes_is_neither():
    X, groups, _ = people()
    y = np.array(["01", "1", "2"])[np.arange(len(X)) % 3]
    assert audit(X, groups, PCA(2).fit(X), y=y, pos_label=1).outcomes[0].positive == "1"
    with pytest.raises(ValueError, match=r"pos_label=1\.0 does not say which"):
        audit(X, groups, PCA(2).fit(X), y=y, pos_label=1.0)


def test_several_classes_of_which_one_counts():
    X, groups, y = people()
    y3 = np.where(np.arange(len(y)) % 4, y, "later")
    for estimator in (FairPLS(2), FairPLS(2).fit(X, y3, sensitive_features=groups)):
        found = audit(X, groups, estimator, y=y3, pos_label="yes", **QUICK).outcomes[0]
        assert found.base_rate == pytest.approx(np.mean(y3 == "yes"))


def test_weights_of_rows_count_in_what_scores_of_a_fitted_model_give_away():
    X, groups, y = people()
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    model = PCA(2, whiten=True).fit(X)
    found = audit(X, groups, model, y=y, sample_weight=weights, random_state=0)
    expected = group_separation(model, X, groups, sample_weight=weights).largest()
    assert {name: found.separation[name] for name in expected} == pytest.approx(expected)
    kept = weights > 0
    others = audit(X[kept], groups[kept], model, y=y[kept], random_state=0)
    assert found.probes == others.probes
    assert found.outcomes[0].overall == others.outcomes[0].overall


def test_a_small_table():
    X, groups, y = people()
    few = np.r_[np.flatnonzero(groups == "g0")[:24], np.flatnonzero(groups == "g1")[:8]]
    y = np.where(np.arange(len(y)) % 2 == 0, "yes", "no")
    result = audit(X[few], groups[few], FairPCA(2, cv=8), y=y[few], **{**QUICK, "n_folds": 3})
    assert [probe.name for probe in result.representation.fair.probes] == ["logistic", "boosted"]
    assert set(result.outcomes[0].by_group["auc"]) == {"g0", "g1"}


@pytest.mark.parametrize("rows", [11, 14, 17])
def test_a_small_group_has_as_many_folds_as_it_has_rows_to_fit_to(rows):
    X, groups, y = people()
    small = np.flatnonzero(groups == "g1")[:rows]
    few = np.r_[np.flatnonzero(groups == "g0")[:40], small]
    y[small] = np.where(np.arange(rows) < 6, "yes", "no")
    given = {"probes": True} if rows == 11 else {"y": y[few]}
    for seed in (0, 1):  # of the halves
        how = {**QUICK, **given, "random_state": seed}
        result = audit(X[few], groups[few], FairPCA(2, cv=10), **how)
        assert len(result.representation.fair.probes) == 2
        assert len(result.outcomes or ()) == (0 if rows == 11 else 3)


def test_refusals():
    X, groups, y = people()
    with pytest.raises(ValueError, match=r"\['maybe', 'no', 'yes'\].*pass pos_label='yes'"):
        audit(X, groups, y=np.where(np.arange(len(y)) % 3, y, "maybe"))
    with pytest.raises(ValueError, match=r"one class only \('yes'\).*pass y with two classes"):
        audit(X, groups, FairPCA(2).fit(X, sensitive_features=groups), y=["yes"] * len(y))
    with pytest.raises(
        ValueError, match=r"FairPLS.* needs y; pass .*audit\(X, groups, estimator, y=y"
    ):
        audit(X, groups, FairPLS(2))
    alone = np.where(np.arange(len(y)) == 0, "yes", np.where(groups == "g0", "no", y))
    with pytest.raises(ValueError, match=r"two rows of each group and class, but \('g0', 'yes'\)"):
        audit(X, groups, FairPCA(2), y=alone, **QUICK)
    with pytest.raises(ValueError, match=r"two rows of each group and class, but \('g0', 'yes'\)"):
        audit(X, groups, FairPLS(2, notion="equalized_odds"), y=alone, **QUICK)
    with pytest.raises(ValueError, match="y has 7 labels but X has 260 rows"):
        audit(X, groups, y=y[:7])


def test_the_command(tmp_path):
    pytest.importorskip("typer", reason="needs the cli extra")
    X, groups, y = people()
    frame = pd.DataFrame(X, columns=list("abcde")).assign(sex=groups, hired=y, number=X[:, 0])
    frame.to_csv(tmp_path / "people.csv", index=False)
    report = ["report", "people.csv", "-g", "sex", "--drop", "number", "-r", "2"]
    positive = ["--target-positive", "no"]
    said = run(
        *(*report, "--target", "hired", "--json", "numbers.json", *positive), cwd=tmp_path
    ).stdout
    assert "classifier on all features: AUC" in said
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "What a classifier makes of it" in page
    assert "y=table.target, pos_label=&#39;no&#39;" in page
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    assert "hired" not in numbers["feature_names"]
    assert numbers["outcomes"][0]["overall"]["auc"] > 0.5
    error = fails("report", "people.csv", "-g", "sex", "--target", "number", cwd=tmp_path)
    assert "must hold two classes" in error
    assert "name its column with --target" in fails(*report, *positive, cwd=tmp_path)
    error = fails(*report, "--target", "hired", "--target-positive", "maybe", cwd=tmp_path)
    assert "maybe is no value of 'hired'; pass --target-positive with no or yes." in error
    frame.assign(hired=np.where(np.arange(len(y)) % 4, y, "later")).to_csv(
        tmp_path / "people.csv", index=False
    )
    error = fails(*report, "--target", "hired", cwd=tmp_path)
    assert "3 classes, and one has to count; pass --target-positive with later or no" in error
    said = run(*report, "--target", "hired", *positive, cwd=tmp_path).stdout
    assert "classifier on all features: AUC" in said


def test_the_command_judges_a_model_by_a_target_that_some_rows_lack(tmp_path):
    pytest.importorskip("typer", reason="needs the cli extra")
    X, groups, y = people()
    names, half = list("abcde"), np.arange(len(X)) % 2 == 0
    frame = pd.DataFrame(X, columns=names).assign(sex=groups, hired=y)
    pls = FairPLS(2).fit(frame.loc[half, names], y[half], sensitive_features=groups[half])
    pls.save(tmp_path / "pls")
    new = frame[~half].copy()
    new.iloc[::20, -1] = None
    new.to_csv(tmp_path / "new.csv", index=False)
    report = ["report", "--model", "pls", "new.csv", "-g", "sex", "--target", "hired"]
    error = fails(*report, cwd=tmp_path)
    assert "7 of 130 rows of new.csv have missing values, in 'hired' (7); choose another" in error
    run(*report, "--drop-missing", "--json", "numbers.json", cwd=tmp_path)
    known = new.dropna()
    expected = audit(known[names], known["sex"], pls, y=known["hired"])
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    for found, outcome in zip(numbers["outcomes"], expected.outcomes, strict=True):
        assert found["overall"] == pytest.approx(outcome.overall)
    assert "y=table.target" in numbers["data"]["code"]
    assert "What a classifier makes of it" in (tmp_path / "report.html").read_text("utf-8")
