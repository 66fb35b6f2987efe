"""The command and the code that a report prints give the same report again."""

from __future__ import annotations

import html
import json
import re
import shlex
import subprocess
import sys
from contextlib import chdir

import numpy as np
import pytest
from helpers.command import run
from helpers.marks import slow_case

import fairpca
from fairpca.exceptions import quietly

pa = pytest.importorskip("pyarrow", reason="the command line needs the cli extra")
pytest.importorskip("typer")
import pyarrow.parquet as pq  # noqa: E402


@pytest.fixture(scope="module")
def awkward(tmp_path_factory):
    """Columns, groups and a file whose names need care, in latin-1, with a missing value."""
    folder = tmp_path_factory.mktemp("awk 'ward")
    rng = np.random.default_rng(0)
    table = {
        "income, yearly": rng.normal(size=60),
        "it's $HOME `x`": rng.normal(size=60) * 2,
        "b": rng.normal(size=60),
        "a": np.arange(60) % 7,
        "flag": np.arange(60) % 2 == 0,
        "ort": [("M\u00fcnchen", "b", "=")[i % 3] for i in range(60)],
        "the group": [("1.0", "2", "2", '"3"')[i % 4] for i in range(60)],
    }
    table = pa.table(table)
    pq.write_table(table, folder / "odd name.parquet")
    lines = [",".join(f'"{name}"' for name in table.column_names)]
    for row in table.to_pylist():
        lines.append(",".join('"' + str(v).replace('"', '""') + '"' for v in row.values()))
    lines.append(lines[-1].replace(lines[-1].split(",")[0], "", 1))
    (folder / "odd name.csv").write_bytes("\n".join(lines).encode("latin-1"))
    return folder


AWKWARD = ["--encoding", "latin-1", "--drop-missing"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        slow_case(None, []),
        slow_case(None, ["--drop", "age", "--label", "female", "--no-standardize", "--parity"]),
        (None, ["--group", "race", "--positive", "black",
                "--columns", "age,education,log_income", "-r", "2"]),
        slow_case("odd name.csv", ["-g", "the group", *AWKWARD, "--encode", "-r", "3"]),
        slow_case("odd name.csv", ["-g", "flag", "-g", "the group", *AWKWARD,
                                   "--drop", "income, yearly"]),
        ("odd name.csv", ["-g", "ort", "--positive", "M\u00fcnchen", *AWKWARD, "-r", "1",
                          "--columns", "it's $HOME `x`", "--columns", "b,a"]),
        ("odd name.csv", ["-g", "ort", "--encoding", "latin-1", "--impute", "median", "-r", "1",
                          "--columns", "income, yearly", "--columns", "b,a"]),
        slow_case("odd name.parquet", ["-g", "flag", "--encode", "--label", "b", "--seed", "3"]),
        ("odd name.parquet", ["-g", "flag", "--columns", "b,a", "--columns", "income, yearly",
                              "--criterion", "error", "-r", "2"]),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::fairpca.exceptions.FewRowsWarning")
def test_command_and_code_of_the_report_repeat_it(awkward, tmp_path, name, options):
    data = [] if name is None else [awkward / name]
    first = report(*data, *options, cwd=tmp_path)
    known = {}
    with chdir(tmp_path):
        exec(first["data"]["code"], known)
    again = json.loads(json.dumps(known["result"].to_dict()))
    assert again == {k: v for k, v in first.items() if k != "data"}
    program, *words = shlex.split(first["data"]["command"])
    assert program == "fairpca"
    run(*words, cwd=tmp_path)
    assert json.loads((tmp_path / "out.json").read_text("utf-8")) == first


@pytest.mark.parametrize(
    "options",
    [
        ["-g", "ort", "--positive", "b", "--columns", "it's $HOME `x`", "--columns", "b,a",
         "--normalize"],
        slow_case(["-g", "ort", "--no-standardize", "--drop", "income, yearly",
                   "--min-group-size", 3]),
        slow_case(["-g", "ort", "--positive", "b", "--target", "flag", "--cv", 0]),
    ],
)  # fmt: skip
def test_each_stop_of_the_slider_can_be_fitted(awkward, tmp_path, options):
    figures = report(awkward / "odd name.csv", *options, *AWKWARD, "-r", "2", cwd=tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    path = json.loads(re.search(r'id="path">(.*?)</script>', page)[1])
    code = re.search(r'"refit-python" tabindex="0">(.*?)</pre>', page, re.DOTALL)[1]
    for i in {0, path["start"], 2, path["last"]}:
        command = f"{figures['data']['fit_command']} {path['options'][i]} -o m.safetensors"
        run(*shlex.split(command)[1:], cwd=tmp_path)
        model = json.loads(run("inspect", "m.safetensors", "--json", cwd=tmp_path).stdout)
        known, there = {}, re.sub("<span.*?</span>", path["python"][i], code)
        with chdir(tmp_path), quietly():
            exec(html.unescape(there), known)
        assert model["group_errors"] == pytest.approx(path["group_errors"][i], rel=1e-4)
        assert known["fair"].group_errors_ == pytest.approx(path["group_errors"][i], rel=1e-4)


def test_fit_with_folds_is_what_the_report_judges(awkward, tmp_path):
    data = awkward / "odd name.parquet", "-g", "flag", "--drop", "b", "-r", "1"
    figures = report(*data, "--cv", 5, "--seed", 3, cwd=tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    command = re.search(r'"refit-folds" tabindex="0">(.*?)</pre>', page)[1]
    assert "--cv 5 --seed 3" in command
    run(*shlex.split(html.unescape(command))[1:], cwd=tmp_path)
    model = fairpca.load_model(tmp_path / "model.safetensors")[-1]
    assert model.group_errors_.tolist() == figures["fair"]["group_errors"]
    assert (model.cv, figures["parameters"]["cv"]) == (5, 5)


@pytest.mark.slow
def test_the_command_can_be_pasted_into_a_shell(awkward, tmp_path):
    options = ["-g", "the group", *AWKWARD, "--columns", "it's $HOME `x`", "--columns", "b"]
    first = report(awkward / "odd name.csv", *options, "-r", "1", cwd=tmp_path)
    (tmp_path / "out.json").unlink()
    command = f'fairpca() {{ "{sys.executable}" -m fairpca "$@"; }}\n{first["data"]["command"]}'
    subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, check=True)
    assert json.loads((tmp_path / "out.json").read_text("utf-8")) == first


def report(*words, cwd):
    """Make a report; return its figures."""
    run("report", *words, "--json", "out.json", cwd=cwd)
    return json.loads((cwd / "out.json").read_text("utf-8"))


def test_names_with_commas_can_be_kept(awkward, tmp_path):
    run("fit", awkward / "odd name.parquet", "-g", "flag", "--columns", "b", "--columns",
        "income, yearly", "-r", "1", "--out", "m.safetensors", cwd=tmp_path)  # fmt: skip
    done = run("transform", "m.safetensors", awkward / "odd name.parquet", "--keep",
               "income, yearly", "--keep", "a,ort", "--out", "-", cwd=tmp_path)  # fmt: skip
    assert done.stdout.splitlines()[0] == '"income, yearly","a","ort","fairpca0"'
