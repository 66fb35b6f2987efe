"""What scores give away and what a classifier makes of them, in the audit and on the page."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from helpers.command import fails, run
from helpers.data import make_groups

from fairpca import BlindPCA, FairPCA, FairPLS, GroupMoments, audit
from fairpca.metrics import group_separation

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
    assert found.n_rows == 130
    assert [probe.name for probe in found.pca.probes] == ["logistic", "boosted"]
    assert found.fair.probes[0].auc < found.pca.probes[0].auc
    assert found.fair.probes[0].low < 0.5 < found.pca.probes[0].low
    assert found.fair.separation["centroid_share"] < 1e-20


def test_outcomes_without_people(judged):
    assert [result.name for result in judged.outcomes] == ["scores", "pca", "features"]
    assert all(result.data is None for result in judged.outcomes)
    with pytest.raises(ValueError, match="an audit, which keeps no rows"):
        judged.outcomes[0].to_metric_frame()
    plain = judged.to_dict()
    assert set(plain["outcomes"][0]["by_group"]["selection_rate"]) == {"g0", "g1"}
    assert len(json.dumps(plain)) < 1e5


def test_both_sections_are_on_the_page(judged):
    page = judged.to_html()
    for words in ("What the scores give away", "A probe is a lower bound", "logistic and boosted"):
        assert words in page
    gap = judged.outcomes[1].difference["selection_rate"].value
    assert f"{gap:.3f} (" in page.split("What a classifier makes of it")[1]


def test_refusals():
    X, groups, y = people()
    with pytest.raises(ValueError, match=r"two classes, but holds 3.*pass y == 'yes'"):
        audit(X, groups, y=np.where(np.arange(len(y)) % 3, y, "maybe"))
    with pytest.raises(ValueError, match=r"classifier_outcomes\(estimator, X, y, groups\)"):
        audit(X, groups, FairPLS(2), y=y)
    with pytest.raises(ValueError, match="y has 7 labels but X has 260 rows"):
        audit(X, groups, y=y[:7])


def test_the_command(tmp_path):
    pytest.importorskip("typer", reason="needs the cli extra")
    X, groups, y = people()
    frame = pd.DataFrame(X, columns=list("abcde")).assign(sex=groups, hired=y, number=X[:, 0])
    frame.to_csv(tmp_path / "people.csv", index=False)
    run(
        *("report", "people.csv", "-g", "sex", "--target", "hired", "--drop", "number", "-r", "2"),
        *("--json", "numbers.json", "--quiet"),
        cwd=tmp_path,
    )
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "What a classifier makes of it" in page
    assert "y=table.target" in page
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    assert "hired" not in numbers["feature_names"]
    assert numbers["outcomes"][0]["overall"]["auc"] > 0.5
    error = fails("report", "people.csv", "-g", "sex", "--target", "number", cwd=tmp_path)
    assert "must hold two classes" in error
