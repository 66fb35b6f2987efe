"""--margins: several columns of groups that are not crossed."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from helpers.command import fails, run

from fairpca import FairPCA, audit, load_model
from fairpca.cli.columns import prepare

rng = np.random.default_rng(2)
N = 600
PEOPLE = pd.DataFrame(rng.normal(size=(N, 4)) * [3, 2, 1.5, 1], columns=list("abcd"))
PEOPLE["sex"] = np.where(rng.random(N) < 0.4, "f", "m")
PEOPLE["band"] = rng.choice([20, 40, 60], N)
PEOPLE.loc[PEOPLE["band"] == 60, "d"] *= 3
MARGINS = ["band = 20", "band = 40", "band = 60", "sex = f", "sex = m"]
ASKED = ["people.csv", "-g", "sex,band", "--margins", "-r", "2", "--cv", "3"]


@pytest.fixture
def folder(tmp_path):
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def test_the_audit_is_that_of_the_margins(folder):
    done = run("audit", *ASKED, "--alpha", "1", "--json", "-", cwd=folder)
    found = json.loads(done.stdout)
    model = FairPCA(2, alpha=1, standardize=True, crossing=False)
    groups = PEOPLE[["sex", "band"]].astype(str)
    own = audit(model, PEOPLE[list("abcd")], groups)
    assert [row["label"] for row in found["groups"]] == MARGINS
    for row, expected in zip(found["groups"], own.groups, strict=True):
        assert row["n"] == expected.n
        assert row["baseline"]["gap_estimate"] == pytest.approx(expected.baseline.gap_estimate)
    assert found["provenance"]["n_rows"] == N
    assert found["provenance"]["crossing"] is False


def test_fit_and_report(folder, monkeypatch):
    run("fit", *ASKED, "--cv", "0", "--out", "m.safetensors", cwd=folder)
    model = load_model(folder / "m.safetensors")
    assert model.groups_.tolist() == MARGINS
    run("report", *ASKED, "--alpha", "1", "--out", "r.html", cwd=folder)
    page = (folder / "r.html").read_text("utf-8")
    assert "Groups overlap: each person counts in one group of sex and of band." in page
    assert "--margins" in page
    judged = ["audit", "people.csv", "--model", "m.safetensors", "-g", "sex,band", "--margins"]
    whole = json.loads(run(*judged, "--json", "-", cwd=folder).stdout)
    assert [row["label"] for row in whole["groups"]] == MARGINS
    monkeypatch.setitem(prepare.prepare.__kwdefaults__, "rows_up_to", 0)
    done = run("audit", *ASKED, "--alpha", "1", "--json", "-", cwd=folder)
    streamed = json.loads(done.stdout)
    assert streamed["origin"]["streamed"]
    assert [row["n"] for row in streamed["groups"]] == [row["n"] for row in whole["groups"]]


def test_columns_are_not_chosen_by_margins(folder):
    assert "--margins" in fails("columns", *ASKED, cwd=folder)
