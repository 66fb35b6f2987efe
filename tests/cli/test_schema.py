"""``audit --json`` writes what its schema says, and the schema describes all of it."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import pytest
from helpers.command import run
from helpers.data import make_groups

import fairpca

jsonschema = pytest.importorskip("jsonschema")
pytest.importorskip("typer", reason="the command needs the cli extra")
pytest.importorskip("pyarrow")

SCHEMA = json.loads(files("fairpca.cli").joinpath("audit.schema.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two larger groups and one of four rows."""
    made = tmp_path_factory.mktemp("people")
    X, groups = make_groups((50, 30, 4), d=3)
    rows = [",".join([*map(repr, x), g]) for x, g in zip(X.tolist(), groups, strict=True)]
    (made / "people.csv").write_text("\n".join(["a,b,c,group", *rows]))
    two = groups != "g2"
    model = fairpca.FairPCA(2).fit(X[two], sensitive_features=groups[two])
    pytest.importorskip("safetensors")
    model.save(made / "model.safetensors")
    return made


CASES = {
    "every number": [],
    "limits": ["-r", "2", "--max-disparity", "0.001", "--max-relative-disparity", "9"],
    "held out": ["-r", "1", "--held-out"],
    "model": ["--model", "model.safetensors", "--max-disparity", "1e6"],
    "shares": ["--normalize", "--no-standardize"],
    "small groups": ["--min-group-size", "10", "--small-groups", "ignore"],
    "merged": ["--min-group-size", "32", "--small-groups", "merge"],
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_the_file_is_as_the_schema_says(folder, options):
    exceeded = "0.001" in options
    done = run("audit", "people.csv", "-g", "group", "--json", "-", *options, cwd=folder,
               code=int(exceeded))  # fmt: skip
    found = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA, jsonschema.Draft202012Validator)
    assert found["fairpca_version"] == fairpca.__version__
    assert found["exceeded"] is exceeded
    assert (found["source"], found["group"]) == ("people.csv", ["group"])
    assert found["model_file"] == ("model.safetensors" if "--model" in options else None)
    assert found.keys() <= SCHEMA["properties"].keys()
    projections = found["model" if "--model" in options else "pca"]
    k = len(found["groups"])
    for one in projections:
        assert one.keys() == SCHEMA["$defs"]["projection"]["properties"].keys()
        assert len(one["group_errors"]) == k
    assert [len(found[name]) for name in ("group_sizes", "group_variances", "compared")] == [k] * 3


def test_the_schema_is_one_and_refuses_other_files(folder):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    done = run("audit", "people.csv", "-g", "group", "--json", "-", cwd=folder)
    found = json.loads(done.stdout)
    for change in (
        {"schema_version": 2},
        {"groups": ["a"]},
        {"pca": []},
        {"model": found["pca"]},
        {"group_variances": [-1.0, 1.0, 1.0]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(found | change, SCHEMA)


def test_figures_are_those_of_python(folder):
    done = run("audit", "people.csv", "-g", "group", "-r", "2", "--json", "-", cwd=folder)
    found = json.loads(done.stdout)
    X, groups = make_groups((50, 30, 4), d=3)
    Z = X / X.std(axis=0, ddof=1)
    pca = fairpca.FairPCA(2, alpha=1).fit(Z, sensitive_features=groups)
    np.testing.assert_allclose(found["pca"][0]["group_errors"], pca.group_errors_)
