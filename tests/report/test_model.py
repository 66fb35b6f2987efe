"""The page, the notebook view and the command about a fitted model."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from helpers.command import fails, run
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import audit

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2", reason="needs the cli extra")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    groups = np.repeat(["<b>", "other"], [80, 140])
    X = rng.normal(size=(220, 4)) * [4, 3, 2, 1]
    X[groups == "<b>"] *= 2
    return pd.DataFrame(X, columns=list("wxyz")), groups


def test_the_verdict_follows_the_interval(people):
    X, groups = people
    page = audit(X, groups, PCA(2).fit(X)).to_html()
    assert 'class="verdict bad"' in page
    assert "The model reconstructs “&lt;b&gt;”" in page
    assert "<b>" not in page
    same = np.where(np.arange(len(X)) % 2, "a", "b")
    assert "Chance can explain" in audit(X, same, PCA(2).fit(X)).to_html()
    whole = audit(X, groups, PCA(4).fit(X))
    assert "Nothing was compressed: there are as many components as columns, 4" in whole.to_html()
    flat = X.assign(z=X["w"])
    assert "vary in no more than 3 directions" in audit(flat, groups, PCA(3).fit(flat)).to_html()


def test_gaps_beyond_chance_are_named_whatever_was_lost(people):
    X, groups = people
    y = np.where(groups == "<b>", X["x"] > -3, X["x"] > 3)
    for r in (2, 4):
        found = audit(X, groups, PCA(r).fit(X), y=y, random_state=0)
        gaps = found.outcomes[0].difference
        assert gaps["selection_rate"].low > 0
        said = f"selection rate {gaps['selection_rate'].value:.3f}"
        assert said in found.to_html().split("</header>")[0]
        assert "predict far better than on others" in found.to_html()
        assert ("classifiers on its scores do worse on others" in repr(found)) == (r == 2)


def test_the_command_says_what_rows_that_were_fitted_to_are_worth(people, tmp_path):
    pytest.importorskip("pyarrow")
    X, groups = people
    table = X.assign(g=groups)
    table[::2].to_csv(tmp_path / "old.csv", index=False)
    table[1::2].to_csv(tmp_path / "new.csv", index=False)
    run("fit", "old.csv", "-g", "g", "-r", 2, "-o", "m", cwd=tmp_path)
    doubt = "If the model was fitted to these rows, they flatter it."
    for name, said in (("old", "These are the rows that the model was fitted to."), ("new", doubt)):
        assert said in run("report", "--model", "m", f"{name}.csv", cwd=tmp_path).stdout
        assert said in (tmp_path / "report.html").read_text("utf-8")
        assert doubt in run("audit", "--model", "m", f"{name}.csv", cwd=tmp_path).stdout


def test_page_and_notebook_show_the_figures(people, tmp_path):
    X, groups = people
    model = make_pipeline(StandardScaler(), PCA(2)).fit(X)
    found = audit(X, groups, model)
    assert found.to_html(tmp_path / "m.html") is None
    page = (tmp_path / "m.html").read_text("utf-8")
    seen = StandardScaler().fit_transform(X)
    squares = ((seen - model[-1].inverse_transform(model.transform(X))) ** 2).sum(axis=1)
    for g in ("<b>", "other"):
        error, lost = squares[groups == g].mean(), (seen[groups == g] ** 2).sum(axis=1).mean()
        for text in (page, found._repr_html_()):
            assert f"<td>{error:.4g}</td>" in text
            assert f"<td>{100 * error / lost:.1f} %</td>" in text
    assert found.group_distances == pytest.approx(
        [(seen[groups == g] ** 2).sum(axis=1).mean() for g in found.groups]
    )
    assert "<script" not in page
    probed = audit(X, groups, model, probes=True, random_state=0)
    section = probed.to_html().split("What the scores give away</h2>")[1]
    for probe, line in zip(probed.probes, probed.about_scores, strict=True):
        assert f"<td>{probe.auc:.3f} ({probe.low:.3f} to {probe.high:.3f})</td>" in section
        assert f"AUC {probe.auc:.3f}" in line
        assert line in probed._repr_html_()


@pytest.mark.parametrize("options", [["--probes"], ["--impute", "median"], ["--encode"]])
def test_the_command_judges_a_model_file(people, tmp_path, options):
    pytest.importorskip("pyarrow")
    X, groups = people
    table = X.assign(ward=np.where(X["w"] > 0, "east", "west"), g=groups)
    if options == ["--impute", "median"]:
        table.loc[::9, "x"] = np.nan
    table[::2].to_csv(tmp_path / "old.csv", index=False)
    table[1::2].to_csv(tmp_path / "new.csv", index=False)
    probes = ["--probes"] if "--probes" in options else []
    run("fit", "old.csv", "-g", "g", "-r", 2, *(options if not probes else []), "-o", "m",
        cwd=tmp_path)  # fmt: skip
    report = ["report", *probes, "--model", "m", "new.csv", "-o", "m.html", "--json", "m.json"]
    said = run(*report, cwd=tmp_path).stdout
    page = (tmp_path / "m.html").read_text("utf-8")
    headline = re.search(r'id="verdict">(.*?)<', page)[1]
    assert headline.replace("&lt;b&gt;", "<b>") in said
    assert "<h1>m on new.csv, by g</h1>" in page
    how = ", missing numbers filled in" if "--impute" in options else ""
    assert f"m: <code>FairPCA(n_components=2){how}, columns standardised</code>" in page
    found = json.loads((tmp_path / "m.json").read_text("utf-8"))
    audited = json.loads(
        run("audit", "--model", "m", "new.csv", "--json", "-", cwd=tmp_path).stdout
    )
    errors = audited["model"][0]["group_errors"]
    assert found["errors"]["group_errors"] == pytest.approx(errors)
    assert len(found["probes"]) == 2 * len(probes)
    assert ("Filled in by the model: x" in page) == ("--impute" in options)
    code = found["data"]["code"]
    assert bool(code) == ("--encode" not in options)
    known = {}
    exec(code.replace("'m'", repr(str(tmp_path / "m"))).replace(
        "'new.csv'", repr(str(tmp_path / "new.csv"))), known)  # fmt: skip
    if code:
        assert known["result"].errors.group_errors == pytest.approx(errors)


def test_what_a_model_report_refuses(people, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    X, groups = people
    X.assign(g=groups).to_csv(tmp_path / "d.csv", index=False)
    run("fit", "d.csv", "-g", "g", "-r", 2, "-o", "m", cwd=tmp_path)
    report = ["report", "--model", "m", "d.csv"]
    for option in (["-r", 2], ["--cv", 3], ["--no-standardize"], ["--drop", "w"]):
        line = fails(*report, *option, cwd=tmp_path)
        names = {"-r": "--components or -r", "--drop": "--drop or --drop-column"}
        assert f"leave out {names.get(option[0], option[0])}." in line
    assert "is a file that is read" in fails(*report, "-o", "m", cwd=tmp_path)
    monkeypatch.setattr("fairpca._moments.prepare.MOST_BYTES_IN_MEMORY", 100)
    line = fails(*report, cwd=tmp_path)
    assert "fairpca audit --model m, which does not" in line
