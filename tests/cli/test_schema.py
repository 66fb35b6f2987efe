"""``--json`` writes what its schema says."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from helpers.audits import made_cases
from helpers.command import run

jsonschema = pytest.importorskip("jsonschema")
SCHEMA = json.loads(files("fairpca.cli").joinpath("audit.schema.json").read_text("utf-8"))
DATA = ["-g", "sex", "--features", "x0,x1,x2", "-r", "1", "--json", "-"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 0),
        (["--fail-above", "0", "--fail-on", "gap"], None),
        (["--fail-above", "0.1"], 1),
        (["--judge-from", "400", "--fail-above", "0.1"], 3),
        (["--with-rows", "--relative-errors"], 0),
    ],
    ids=["plain", "gate", "gap", "too few", "rows"],
)
def test_the_figures_of_audit(people, tmp_path, options, code):
    name = "even.csv" if code is None else "gap.csv"
    done = run("audit", people / name, *DATA, *options, cwd=tmp_path, code=code or 0)
    found = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA, jsonschema.Draft202012Validator)
    assert (found["gate"] is None) == ("--fail-above" not in options)
    assert found["origin"]["versions"]["fairpca"]


@pytest.mark.parametrize("case", made_cases())
def test_every_case_of_the_verdict(case):
    audit = made_cases()[case]
    head = {
        "schema_version": 2,
        "origin": {"source": "", "command": "", "versions": {}, "date": ""},
    }
    jsonschema.validate(head | audit.to_dict(), SCHEMA, jsonschema.Draft202012Validator)


def test_the_figures_of_columns(people, tmp_path):
    data = ["-g", "sex", "--features", "x0,x1,x2", "-r", "1", "--json", "-"]
    found = json.loads(run("columns", people / "gap.csv", *data, cwd=tmp_path).stdout)
    jsonschema.validate(found, SCHEMA, jsonschema.Draft202012Validator)
    assert len(found["kept"]["fair"]) == len(found["kept"]["usual"]) == 1
    assert found["path"] is None
