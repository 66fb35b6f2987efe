"""The model card: figures by group, in Markdown and as CycloneDX."""

from __future__ import annotations

import json

import numpy as np
import pytest
from helpers.command import fails, run
from helpers.data import make_groups
from sklearn.decomposition import PCA

from fairpca import FairPCA, audit
from fairpca.report import Provenance, cyclonedx_card, model_card

pytest.importorskip("typer", reason="the command needs the cli extra")
from fairpca.cli._report import card_for

QUICK = {"n_points": 3, "n_folds": 3, "n_resamples": 100}
X, GROUPS = make_groups((90, 60), d=4)
HOSTILE = np.where(GROUPS == "g0", "a|b\n# <script>", "`*_[x](y)")


@pytest.fixture(scope="module")
def result():
    return audit(X, GROUPS, FairPCA(2), **QUICK)


def cells(line):
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_table_has_the_held_out_figures_of_each_group(result):
    card = model_card(result)
    lines = [cells(line) for line in card.splitlines() if line.startswith("| ")]
    held_out = result.cross_validation
    found = np.array([[float(cell) for cell in row[2:4]] for row in lines[2:4]])
    expected = np.column_stack([held_out.pca.group_errors, held_out.fair.group_errors])
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert [row[0] for row in lines[2:]] == ["g0", "g1", "Overall"]
    assert [row[1] for row in lines[2:]] == ["90", "60", "150"]
    assert card.startswith("---\nlibrary_name: fairpca\n")


@pytest.mark.parametrize("normalize", [False, True])
def test_cyclonedx_holds_the_figures_and_is_valid(normalize):
    cyclonedx = pytest.importorskip("cyclonedx.validation.json")
    from cyclonedx.schema import SchemaVersion

    result = audit(X, HOSTILE, FairPCA(2, normalize=normalize), **QUICK)
    bom = cyclonedx_card(result, Provenance(source="p\x00.csv", group_name="g"))
    fault = cyclonedx.JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bom))
    assert fault is None, fault
    card = bom["components"][0]["modelCard"]
    metrics = card["quantitativeAnalysis"]["performanceMetrics"]
    sliced = [metric for metric in metrics if "slice" in metric]
    errors = [*result.cross_validation.pca.group_errors, *result.cross_validation.fair.group_errors]
    assert [float(metric["value"]) for metric in sliced] == pytest.approx(errors, rel=1e-5)
    assert ("share" in sliced[0]["type"]) is normalize
    ends = [m["confidenceInterval"]["upperBound"] for m in metrics if "confidenceInterval" in m]
    assert [float(end) for end in ends] == pytest.approx(
        [result.bootstrap.pca[1], result.bootstrap.fair[1]], rel=1e-5
    )


def test_who_gains_is_not_told_of_harm_and_the_reverse():
    rng = np.random.default_rng(0)
    spread = np.where(np.arange(1200) < 900, [[3.0], [1.0], [0.5]], [[1.0], [3.0], [0.5]]).T
    rows, groups = rng.normal(size=(1200, 3)) * spread, np.arange(1200) < 900
    result = audit(rows, groups, FairPCA(1), standardize=False, **QUICK)
    assert [change.direction for change in result.changes.groups] == [-1, 1]
    card = cyclonedx_card(result)["components"][0]["modelCard"]["considerations"]
    gains, pays = card["fairnessAssessments"]
    assert "changes by −" in gains["benefits"]
    assert "None beyond chance" in gains["harms"]
    assert "None beyond chance" in pays["benefits"]
    assert "changes by +" in pays["harms"]


def test_too_few_rows_to_leave_some_out():
    rows = [*np.flatnonzero(GROUPS == "g0"), np.flatnonzero(GROUPS == "g1")[0]]
    result = audit(X[rows], GROUPS[rows], FairPCA(2), **QUICK)
    assert result.changes is None
    assert "errors of the rows fitted to" in model_card(result)
    card = cyclonedx_card(result)["components"][0]["modelCard"]
    assert "too few rows" in card["considerations"]["fairnessAssessments"][0]["benefits"]
    metrics = card["quantitativeAnalysis"]["performanceMetrics"]
    assert all("rows fitted to" in metric["type"] for metric in metrics)


def test_a_fitted_model_has_a_card_too():
    cyclonedx = pytest.importorskip("cyclonedx.validation.json")
    from cyclonedx.schema import SchemaVersion

    result = audit(X, HOSTILE, PCA(2).fit(X))
    card = model_card(result)
    lines = [cells(line) for line in card.splitlines() if line.startswith("| ")]
    found = [float(row[2]) for row in lines[2:]]
    expected = [*result.errors.group_errors, result.errors.overall]
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert "`PCA(n_components=2)`" in card
    named = model_card(result, Provenance(source="new.csv", model_file="m_1.safetensors"))
    assert "# m\\_1.safetensors on new.csv, by group" in named
    bom = cyclonedx_card(result, Provenance(source="new.csv"))
    fault = cyclonedx.JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bom))
    assert fault is None, fault
    metrics = bom["components"][0]["modelCard"]["quantitativeAnalysis"]["performanceMetrics"]
    assert [float(metric["value"]) for metric in metrics[:3]] == pytest.approx(expected, rel=1e-5)
    ends = metrics[-1]["confidenceInterval"]
    low, high = float(ends["lowerBound"]), float(ends["upperBound"])
    assert (low, high) == pytest.approx(result.disparity_interval, rel=1e-5)
    assert bom["components"][0]["name"] == "PCA of new.csv"


def test_what_was_left_out_or_filled_in_is_among_the_limits(result):
    origin = Provenance(n_read=1200, n_dropped=30, not_numbers=["city", "zip"], filled={"age": 7})
    card = model_card(result, origin)
    assert "30 of 1,200 rows were left out" in card
    assert "Columns that were left out: city, zip." in card
    assert "replaced by medians: age (7)." in card


def test_names_are_shown_as_they_are():
    result = audit(X, HOSTILE, FairPCA(2), **QUICK)
    origin = Provenance(source="<b>.csv", group_name="a|b", command="fairpca report '```'")
    card = model_card(result, origin)
    rows = [line for line in card.splitlines() if line.startswith("| ")]
    assert len(rows) == 5
    assert {len(row.replace("\\|", "").split("|")) for row in rows} == {9}
    assert "<script>" not in card
    assert "````bash\nfairpca report '```'\n````" in card


def test_the_command_writes_a_card_beside_the_page(tmp_path):
    pytest.importorskip("pyarrow")
    pytest.importorskip("vl_convert", reason="the report needs the cli extra")
    lines = [",".join([*map(repr, x), g]) for x, g in zip(X.tolist(), GROUPS, strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(["a,b,c,d,sex", *lines]))
    asked = "report", "people.csv", "-g", "sex", "-r", "2", "--cv", "0"
    assert "ends in .md" in fails(*asked, "--model-card", "a.txt", cwd=tmp_path)
    same = fails(*asked, "--json", "a.json", "--model-card", "./a.json", cwd=tmp_path)
    assert "--json and --model-card both name" in same
    done = run(*asked, "--model-card", "card.JSON", cwd=tmp_path)
    assert "report.html and card.JSON" in done.stdout
    bom = json.loads((tmp_path / "card.JSON").read_text("utf-8"))
    assert bom["components"][0]["name"] == "FairPCA of people.csv"


def test_the_name_decides_about_the_kind(result):
    origin = Provenance(source="people.csv", group_name="sex")
    assert card_for("card.md", result, origin) == model_card(result, origin)
    assert json.loads(card_for("b.json", result, origin)) == cyclonedx_card(result, origin)
