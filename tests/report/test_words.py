"""What the report says: verdict, figures and size of the page."""

from __future__ import annotations

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from fairpca import FairPCA, MinMaxPCA, audit
from fairpca.datasets import load_diabetes_by_sex

pytest.importorskip("vl_convert", reason="the report needs the cli extra")
pytest.importorskip("jinja2")
from fairpca.report import Provenance, render
from fairpca.report._slider import Stops
from fairpca.report._view import view

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
    assert scaled["verdict"] == usual["verdict"]
    assert scaled["disparity"]["fair"] == usual["disparity"]["fair"] == "0"
    assert scaled["disparity"]["pca"] != "0"
    assert scaled["slider"]["cost"] == pytest.approx(usual["slider"]["cost"], abs=1e-9)


def test_verdict_names_a_fairness_that_helps_nobody():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    X[:40] *= rng.uniform(0.1, 3, 4)
    X[40:] *= rng.uniform(0.1, 3, 4)
    groups = np.repeat(["calm", "wild"], [40, 20])
    result = audit(X, groups, FairPCA(1), standardize=False, **QUICK)
    assert result.status == "capped"
    said = view(result, Provenance())["verdict"]
    assert said["note"] == (
        f"“{result.harmed_group}” gains nothing by this: the difference shrinks because "
        f"“{result.privileged_group}” is reconstructed worse."
    )


@pytest.mark.slow
def test_page_of_many_groups_with_long_names_is_small():
    rng = np.random.default_rng(0)
    groups = np.array([f"{'<' * 40}{i % 50}" for i in range(600)])
    X = rng.normal(size=(600, 30)) * (1 + np.arange(600) % 50)[:, None]
    quick = {**QUICK, "n_points": 41, "n_folds": 2}
    model = FairPCA(2, max_error_increase=0.01)
    assert len(render(audit(X, groups, model, **quick)).encode()) < 1_500_000


def test_verdict_says_what_happened(diabetes):
    said = view(diabetes, Provenance())["verdict"]
    assert said["before"] == (
        "Under PCA with 3 components the rows of “male” are reconstructed 4.7 % worse than those "
        "of “female”."
    )
    assert said["note"] == ""
    assert said["after"] == (
        "For these rows, fair PCA removes the difference at a cost of 1.3 % in overall error."
    )


@pytest.mark.parametrize(
    ("seed", "model", "expected"),
    [
        (0, FairPCA(1, constraint=None), "No projection onto 1 component treats the groups alike"),
        (3, FairPCA(1), "as far as is possible without making any group worse off"),
        (3, FairPCA(1, max_error_increase=0.0), "(error budget spent)"),
    ],
)
def test_verdict_of_other_endings(seed, model, expected):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 4))
    X[:40] *= rng.uniform(0.1, 3, 4) if seed else 1.0
    X[40:] *= rng.uniform(0.1, 3, 4) if seed else 5.0
    groups = np.repeat(["calm", "wild"], [40, 20])
    result = audit(X, groups, model, standardize=False, **QUICK)
    assert expected in view(result, Provenance())["verdict"]["after"]


def test_page_claims_no_certificate_it_does_not_have(page_source):
    bunch = load_diabetes_by_sex()
    other = audit(bunch.data, bunch.sensitive_features, MinMaxPCA(3), **QUICK)
    assert "no projection can be better" in page_source
    assert "no projection can be better" not in render(other)


def test_audit_writes_the_page(diabetes, tmp_path):
    diabetes.to_html(tmp_path / "r.html")
    assert "4.7 % worse" in (tmp_path / "r.html").read_text("utf-8")


def test_without_its_libraries_the_page_says_what_to_install(diabetes, monkeypatch):
    monkeypatch.delitem(sys.modules, "fairpca.report._page", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'needs jinja2; .* pip install "fairpca\[cli\]"'):
        render(diabetes)
