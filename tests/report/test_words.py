"""What the report says: verdict, figures and size of the page."""

from __future__ import annotations

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from fairpca import (
    BlindPCA,
    FairPCA,
    MinMaxPCA,
    RobustFairPCA,
    SubsetFairPCA,
    WelfarePCA,
    audit,
)
from fairpca._audit.figures import Change
from fairpca.datasets import load_diabetes_by_sex, load_rand_health

pytest.importorskip("vl_convert", reason="the report needs the cli extra")
pytest.importorskip("jinja2")
from fairpca.report import Provenance, render
from fairpca.report._charts.new_rows import estimates_chart
from fairpca.report._marks import named_points
from fairpca.report._slider import Stops
from fairpca.report._view import cards, view
from fairpca.report._words import verdict

ESTIMATORS_AND_PAPERS = {
    "FairPCA": "Pelegrina and Duarte (2022)",
    "MinMaxPCA": "Samadi et al. (2018)",
    "SubsetFairPCA": "Pelegrina et al. (2022)",
    "WelfarePCA": "Tantipongpipat et al. (2019)",
    "RobustFairPCA": "Vu et al. (2022)",
    "BlindPCA": "Kleindessner et al. (2023)",
}
QUICK = {"n_points": 11, "n_folds": 3, "n_resamples": 100}


@pytest.fixture(scope="module")
def diabetes():
    bunch = load_diabetes_by_sex(prepare=False)
    return audit(bunch.data, bunch.sensitive_features, FairPCA(3), **QUICK)


@pytest.fixture(scope="module")
def page_source(diabetes):
    return render(diabetes, Provenance(source="diabetes", group_name="sex"))


def test_page_is_one_small_file_that_names_no_other(page_source):
    assert len(page_source.encode()) < 1_500_000
    head = page_source[: page_source.index('<script type="module">')]
    assert not re.search(r"(src|href)\s*=", head)
    assert "default-src 'none'" in head


def test_slider_starts_at_the_projection_of_the_report():
    bunch = load_diabetes_by_sex()
    model = FairPCA(3, max_disparity=0.0333)
    result = audit(bunch.data, bunch.sensitive_features, model, **QUICK)
    stops = Stops.of(result)
    assert len(stops.disparity) == len(result.path.disparity) + 1
    assert stops.disparity[stops.start] == result.fair.disparity
    assert stops.group_errors[stops.start] == pytest.approx(result.fair.group_errors)
    assert (np.diff(stops.disparity) < 0).all()
    assert (np.diff(stops.overall) > 0).all()
    assert stops.to_dict()["start"] == stops.start


def test_slider_goes_beyond_parity_where_folds_did():
    """The rows fitted to flatter the harmed group, so folds may stop past its parity there."""
    people = load_rand_health()
    X, race = people.data, people.sensitive_features
    rule = FairPCA(8, cv=10, random_state=0)
    result = audit(X, race, rule, standardize=False, **QUICK)
    assert result.fair.disparity < 0
    stops = Stops.of(result)
    assert stops.start == len(stops.disparity) - 1 == len(result.path.disparity)
    again = FairPCA(**stops.fits[-1]).fit(X, sensitive_features=race)
    assert again.group_errors_ == pytest.approx(result.fair.group_errors, rel=1e-6)
    page = view(result, Provenance())
    assert page["slider"]["beyond"]
    assert page["by_folds"]["options"] == "-r 8 --cv 10"
    assert "FairPCA(cv=10, n_components=8, random_state=0)" in page["by_folds"]["python"]
    source = render(result, Provenance())
    assert "It lies beyond parity here" in source
    assert "Let cross-validation choose again" in source


@pytest.mark.parametrize("at", [0, 3, -1])
@pytest.mark.parametrize("rounding", [-1e-13, 0.0, 1e-13])
def test_rounding_makes_no_stop_of_its_own(diabetes, at, rounding):
    """A projection that is a point of the path is not shown beside it a second time."""
    path = diabetes.path
    errors = replace(
        diabetes.fair,
        overall=path.reconstruction_error[at] - rounding,
        disparity=path.disparity[at] + rounding,
    )
    stops = Stops.of(replace(diabetes, fair=errors))
    assert stops.disparity.tolist() == path.disparity.tolist()
    assert stops.start == at % len(path.disparity)


def test_slider_of_another_estimator_stops_at_the_path_only(diabetes):
    between = np.mean(diabetes.path.disparity[:2]), np.mean(diabetes.path.reconstruction_error[:2])
    errors = replace(diabetes.fair, disparity=between[0], overall=between[1])
    n_points = len(diabetes.path.disparity)
    for certified in (True, False):
        stops = Stops.of(replace(diabetes, fair=errors, certified=certified))
        assert len(stops.disparity) == n_points + certified


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_figures_do_not_depend_on_the_unit_of_the_data(size):
    bunch = load_diabetes_by_sex()
    pages = [
        view(audit(bunch.data * s, bunch.sensitive_features, FairPCA(3), standardize=False,
                   **QUICK), Provenance())
        for s in (1.0, size)
    ]  # fmt: skip
    usual, scaled = pages
    assert scaled["verdict"].headline == usual["verdict"].headline
    assert scaled["verdict"].before == usual["verdict"].before
    assert scaled["rows"][0]["change"] == usual["rows"][0]["change"]
    assert scaled["statistics"]["rows"][0]["fitted"] != "0"
    assert scaled["slider"]["cost"] == pytest.approx(usual["slider"]["cost"], abs=1e-9)


def test_what_a_frontier_shows_by_itself(diabetes):
    text, html = repr(diabetes.path), diabetes.path._repr_html_()
    assert text.startswith("TradeoffPath of 11 points, 3 components, 2 groups")
    for name, point in diabetes.path.marks.items():
        line = next(line for line in text.splitlines() if line.startswith(name))
        shown = [float(number.replace("−", "-")) for number in line.split()[1:]]
        expected = [point.disparity, point.reconstruction_error, *point.group_errors]
        assert shown == pytest.approx(expected, rel=1e-3, abs=1e-9)
    assert html.count("<tr>") == 5
    points = html.split('points="')[1].split('"')[0].split()
    assert len(points) == 11


def test_names_of_points_that_are_close_stand_one_above_the_other(diabetes):
    path, R = diabetes.path, float(diabetes.path.reconstruction_error[0])
    ends = {"PCA": (1.0, 1.0), "efficient": (0.95, 1.001), "c-FPCA": (0.9, 1.002), "u-FPCA": (0, 2)}
    marks = {
        name: replace(path.marks[name], disparity=D, reconstruction_error=R * cost)
        for name, (D, cost) in ends.items()
    }
    fair = replace(diabetes.fair, disparity=0.0, overall=2 * R)
    close = replace(diabetes, path=replace(path, marks=marks), fair=fair)
    levels = {point["name"]: point["level"] for point in named_points(close)}
    assert levels == {"PCA": 0, "efficient": 1, "c-FPCA": 2, "u-FPCA, this report": 0}


@pytest.mark.slow
def test_page_of_many_groups_with_long_names_is_small():
    rng = np.random.default_rng(0)
    groups = np.array([f"{'<' * 40}{i % 50}" for i in range(600)])
    X = rng.normal(size=(600, 30)) * (1 + np.arange(600) % 50)[:, None]
    quick = {**QUICK, "n_points": 41, "n_folds": 2}
    model = FairPCA(2, max_error_increase=0.01)
    assert len(render(audit(X, groups, model, **quick)).encode()) < 1_500_000


def changed(audit, *changes):
    """The audit with other changes of its groups: estimates and half widths."""
    groups = [Change(middle, middle - wide, middle + wide) for middle, wide in changes]
    return replace(audit, changes=replace(audit.changes, groups=groups))


def test_verdict_says_first_who_gains_and_who_pays_on_new_rows(diabetes):
    female, male = diabetes.cross_validation.pca.group_errors
    sure = replace(diabetes, bootstrap=replace(diabetes.bootstrap, pca=(0.1, 0.2)))
    both = verdict(changed(sure, (0.05 * female, 0.01), (-0.1 * male, 0.01)))
    assert both.headline == (
        "On new rows, fair PCA reconstructs “male” 10.0 % better and “female” 5.0 % worse."
    )
    assert both.tone == "good"
    unsure = replace(sure, bootstrap=replace(sure.bootstrap, pca=(-0.1, 0.2)))
    assert verdict(changed(unsure, (0.05 * female, 0.01), (-0.1 * male, 0.01))).tone == "open"
    one = verdict(changed(diabetes, (0.05 * female, 1.0), (-0.1 * male, 0.01)))
    assert one.headline.endswith("“male” 10.0 % better; no group is worse off beyond chance.")
    harm = verdict(changed(diabetes, (0.05 * female, 0.01), (-0.1 * male, 1.0)))
    assert harm.headline.endswith(
        "reconstructs “female” 5.0 % worse and no group better beyond chance: rather use PCA."
    )
    assert harm.tone == "bad"
    blind = changed(diabetes, (0.05 * female, 0.01), (-0.1 * male, 1.0))
    blind = replace(blind, estimator="BlindPCA(n_components=3)")
    assert "rather use PCA" not in verdict(blind).headline
    chance = verdict(changed(diabetes, (0.05 * female, 1.0), (-0.1 * male, 1.0)))
    assert chance.headline == "On new rows, fair PCA changes no group’s error beyond chance."
    assert chance.tone == "open"


def test_nothing_is_green_that_was_levelled_down(diabetes):
    worse = replace(diabetes.fair, group_errors=diabetes.fair.group_errors + 0.2)
    said = verdict(changed(replace(diabetes, fair=worse), (0.1, 0.01), (-0.1, 0.01)))
    assert said.tone == "open"
    assert "This is levelling down" in said.notices[0]


@pytest.mark.parametrize(("seed", "tone"), [(1, "open"), (2, "good")])
def test_nothing_is_green_where_the_direction_is_reversed_beyond_chance(seed, tone):
    """The eigenvalues cross here: the fit jumps past parity, with seed 2 within chance."""
    rng = np.random.default_rng(seed)
    g = rng.choice(["f", "m"], 500, p=[0.3, 0.7])
    X = rng.normal(size=(500, 6)) * [4, 3, 2, 1, 1, 1]
    X[g == "f"] = X[g == "f"][:, ::-1]
    found = audit(X, g, FairPCA(2, cv=10, random_state=0), random_state=0)
    assert found.cross_validation.fair.disparity < 0
    said = verdict(found)
    assert said.tone == tone
    ends = {"open": "The direction is reversed, beyond chance.", "good": "less, beyond chance."}
    assert said.after.endswith(ends[tone])


def test_a_change_that_chance_can_explain_is_called_so(diabetes):
    """Whatever the two intervals do: only the paired change counts."""
    for low, high, expected in ((-0.2, 0.1, "Chance can explain the change."),
                                (-0.2, -0.1, "That is less, beyond chance."),
                                (0.1, 0.2, "That is more, beyond chance.")):  # fmt: skip
        changes = replace(diabetes.changes, disparity=Change((low + high) / 2, low, high))
        assert verdict(replace(diabetes, changes=changes)).after.endswith(expected)


def test_a_disparity_that_grew_is_not_called_less(diabetes):
    held_out = diabetes.cross_validation
    sure = replace(diabetes.changes, disparity=Change(-0.3, -0.4, -0.2))
    for fair, said in ((-0.2, "In size that is more, not less."), (0.05, "less, beyond chance.")):
        sides = replace(
            held_out,
            pca=replace(held_out.pca, disparity=0.1),
            fair=replace(held_out.fair, disparity=fair),
        )
        interval = replace(diabetes.bootstrap, fair=(-0.5, 0.1))
        result = replace(diabetes, cross_validation=sides, changes=sure, bootstrap=interval)
        assert verdict(result).after.endswith(said)


@pytest.mark.filterwarnings("ignore::fairpca.exceptions.FewRowsWarning")
def test_extreme_values_that_decide_how_columns_are_scaled_are_noticed():
    rng = np.random.default_rng(0)
    X, g = rng.normal(size=(400, 5)) * [3, 2, 1, 1, 1], rng.choice(["f", "m"], 400)
    X[g == "f", 0] *= 1.5
    for extreme, expected in ((1.0, False), (2000.0, True)):
        X[0, 4] = extreme
        found = audit(X, g, FairPCA(2, cv=5, random_state=0), **QUICK)
        assert any("extreme values decide" in said for said in verdict(found).notices) == expected


def test_a_projection_off_the_frontier_is_called_so(diabetes):
    assert not Stops.of(diabetes).off
    assert "no stop of the slider" not in render(diabetes, Provenance())
    fair = diabetes.fair
    off = replace(fair, group_errors=fair.group_errors * 1.2, overall=fair.overall * 1.2)
    far = replace(diabetes, fair=off)
    assert Stops.of(far).off
    assert "no stop of the slider" in render(far, Provenance())


def test_reversed_direction_on_new_rows_is_said(diabetes):
    held_out = diabetes.cross_validation
    turned = replace(held_out.fair, group_errors=np.array([2.6, 2.4]), disparity=-0.2)
    result = replace(diabetes, cross_validation=replace(held_out, fair=turned))
    bootstrap = replace(diabetes.bootstrap, fair=(-0.3, -0.1))
    assert "reversed on new rows under fair PCA: “female” has the larger error there, beyond" in (
        "".join(verdict(replace(result, bootstrap=bootstrap)).notices)
    )
    assert not any("reversed" in notice for notice in verdict(diabetes).notices)
    both = replace(result, cross_validation=replace(held_out, pca=turned, fair=turned))
    for changes, expected in (((0.0, 0.1), 2), ((0.0, 0.0), 1)):  # once where fair PCA is PCA
        said = verdict(changed(both, changes, changes)).notices
        assert sum("reversed" in notice for notice in said) == expected


def test_readings_that_disagree_are_noticed(diabetes):
    errors = replace(diabetes.other_reading.pca, group_errors=np.array([0.4, 0.3]))
    other = replace(diabetes.other_reading, pca=errors, harmed_group="female")
    said = verdict(replace(diabetes, other_reading=other)).notices
    assert "by absolute errors it is “male”, by shares of variance lost “female”" in said[0]
    alike = replace(errors, group_errors=np.array([0.3, 0.301]))
    apart = replace(errors, group_errors=np.array([0.25, 0.35]))
    other = replace(other, pca=alike, fair=apart)
    said = verdict(replace(diabetes, other_reading=other)).notices
    assert "grows from 0.1 % to 10.0 %" in said[0]


def test_small_groups_that_steer_are_named(diabetes):
    said = verdict(replace(diabetes, group_sizes=[430, 12])).notices
    assert "“male” has only 12 rows and steers the result" in said[0]
    assert said[0].endswith("Collect more rows of it before you rely on the result.")
    assert not verdict(replace(diabetes, group_sizes=[400, 42])).notices


def test_a_recommendation_to_stay_at_pca_is_called_so(diabetes):
    said = verdict(replace(diabetes, status="no gain on held-out rows: PCA"))
    assert said.headline.endswith("the recommendation is PCA itself.")
    assert said.tone == "open"
    assert "made without the rows judged" in said.notices[0]
    stays = replace(diabetes, status="no gain on held-out rows: PCA")
    assert render(stays, Provenance()).count("Choice without the row</th>") == 2
    alike = changed(diabetes, (0.0, 0.0), (0.0, 0.0))
    said = verdict(replace(alike, status="no gain on held-out rows: PCA"))
    assert "fair PCA" not in said.after
    assert not said.notices
    assert [card["note"] for card in cards(alike)[:2]] == ["fair PCA is PCA"] * 2


def test_a_difference_that_chance_can_explain_is_called_so(diabetes):
    for interval, by_chance in (((-0.1, 0.4), True), ((0.1, 0.4), False)):
        bootstrap = replace(diabetes.bootstrap, pca=interval)
        said = verdict(replace(diabetes, bootstrap=bootstrap)).before
        assert said.endswith("; chance can explain that.") == by_chance


def test_rounding_makes_no_headline():
    """Where next to nothing is lost, a ratio of two errors says nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 6))
    X += 3e-4 * rng.normal(size=X.shape) * np.repeat([1, 9], 40)[:, None]
    result = audit(X, np.repeat(["a", "b"], 40), FairPCA(3), **QUICK)
    said = verdict(result)
    assert "equally well" in said.before
    assert "%" not in said.headline + said.before


def test_full_rank_is_not_a_pass():
    bunch = load_diabetes_by_sex(prepare=False)
    said = verdict(audit(bunch.data, bunch.sensitive_features, FairPCA(9), **QUICK))
    assert said.headline == "Nothing was compressed: there are as many components as columns, 9."
    assert said.tone == "open"


def test_features_that_only_tell_rows_apart_are_mentioned(diabetes):
    assert not any("row numbers" in notice for notice in verdict(diabetes).notices)
    names = ["person_id", *diabetes.feature_names[1:]]
    told = verdict(replace(diabetes, feature_names=names)).notices[0]
    assert told.startswith("Columns that look like row numbers or ids are among the features: “per")


def test_why_nothing_is_said_about_new_rows():
    bunch = load_diabetes_by_sex(prepare=False)
    groups = bunch.sensitive_features.astype(object)
    groups[0] = "nobody else"
    said = verdict(audit(bunch.data, groups, FairPCA(3), **QUICK)).headline
    assert said == "Nothing can be said about new rows: “nobody else” has only one row."
    few = audit(bunch.data[:5], ["a", "a", "b", "b", "b"], FairPCA(3), **QUICK)
    assert verdict(few).headline.endswith("there are too few rows to leave some out.")


def test_a_long_name_does_not_hide_how_much_was_filled_in(diabetes):
    name = "a group with a name of more than thirty-two letters"
    page = render(diabetes, Provenance(filled={"age": 3}, filled_shares={name: 0.25, "b": 0.0}))
    assert re.search("a group with a name of more tha… 25.0 %, b 0 %", page)


def test_what_the_audit_shows_by_itself(diabetes):
    text, html = repr(diabetes), diabetes._repr_html_()
    said = verdict(diabetes)
    assert said.headline in text
    assert text.startswith(
        "Audit of FairPCA(n_components=3): 3 components, columns standardised, 442 rows, 2 groups"
    )
    assert said.headline in html
    assert text.splitlines()[0] in html
    assert html.count("<tr>") == 4
    assert html.count('<th scope="row">') == 3
    assert html.count("<circle") == 2
    hostile = replace(diabetes, groups=["<b>", "male"], privileged_group="<b>")
    assert "<b>" not in hostile._repr_html_()


def test_page_claims_no_certificate_it_does_not_have(page_source):
    bunch = load_diabetes_by_sex()
    other = audit(bunch.data, bunch.sensitive_features, MinMaxPCA(3), **QUICK)
    assert "no projection can be better" in page_source
    assert "no projection can be better" not in render(other)


@pytest.mark.parametrize(
    "estimator",
    [FairPCA(3), MinMaxPCA(3), SubsetFairPCA(3), WelfarePCA(3), RobustFairPCA(3), BlindPCA(3)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_texts_are_about_the_estimator_that_was_audited(estimator, diabetes):
    name = type(estimator).__name__
    said = view(replace(diabetes, estimator=repr(estimator)), Provenance())["method"]
    assert said["source"] == ESTIMATORS_AND_PAPERS[name]
    assert ("errors" if name == "FairPCA" else f"is here {name},") in said["aim"]
    assert ("BlindPCA is made for that" in said["hiding"]) == (name != "BlindPCA")
    # Errors are what hiding costs, not what it is for: a loss is said, but is no verdict.
    changes = replace(diabetes.changes, groups=[Change(0.2, 0.1, 0.3)] * len(diabetes.groups))
    found = verdict(replace(diabetes, estimator=repr(estimator), changes=changes))
    assert "no group better" in found.headline
    assert found.tone == ("open" if name == "BlindPCA" else "bad")
    assert (said["aim"] in found.notices) == (name == "BlindPCA")


def test_page_of_another_estimator_says_nothing_that_holds_for_fair_pca_only(diabetes):
    blind = render(replace(diabetes, estimator="BlindPCA(n_components=3)", certified=False))
    assert "</code>, following Kleindessner et al. (2023); the search" in blind
    assert "equal mean scores are not equal outcomes" in blind
    for false in ("following Pelegrina", "made for that", "equal errors are not", "compares the"):
        assert false not in blind[: blind.index('id="specs"')]


def test_page_cites_nobody_for_an_estimator_it_does_not_know(diabetes):
    said = view(replace(diabetes, estimator="MyPCA(3)"), Provenance())["method"]
    assert (said["source"], said["aim"]) == ("", "")


def test_advice_about_constraints_is_for_the_estimator_that_has_them(diabetes):
    worse = replace(diabetes.fair, group_errors=diabetes.fair.group_errors + 0.2)
    other = replace(diabetes, fair=worse, estimator="BlindPCA(n_components=3)")
    said = " ".join(verdict(other).notices)
    assert "levelling down" not in said
    assert "FairPCA(constraint=" in said


def test_audit_writes_the_page(diabetes, tmp_path):
    diabetes.to_html(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert verdict(diabetes).headline in page.replace("\u00a0", " ")
    assert diabetes.to_html() == page


def test_without_its_libraries_the_page_says_what_to_install(diabetes, monkeypatch):
    monkeypatch.delitem(sys.modules, "fairpca.report._page", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'needs jinja2; .* pip install "fairpca\[cli\]"'):
        render(diabetes)


def test_marks_have_the_shapes_of_the_legend():
    """A circle for PCA and a square for fair PCA, as the page says above the chart."""
    mark = {"what": "rate", "low": 0.1, "estimate": 0.2, "high": 0.3}
    marks = [{**mark, "method": method} for method in ("PCA", "fair PCA")]
    points = estimates_chart(marks, "gap", 0.0).to_dict()["layer"][-1]["encoding"]
    assert points["shape"]["scale"] == {
        "domain": ["PCA", "fair PCA"],
        "range": ["circle", "square"],
    }
    assert points["x"]["axis"]["labelFlush"]
