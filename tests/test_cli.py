"""The command in a subprocess, on real files: answers, failures, exit codes, no partial files."""

from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fairpca
from fairpca.datasets import load_diabetes_by_sex

pa = pytest.importorskip("pyarrow", reason="the command line needs the cli extra")
pytest.importorskip("typer")
import pyarrow.csv as pc  # noqa: E402
import pyarrow.feather as feather  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

COMMAND = [sys.executable, "-W", "error", "-m", "fairpca"]


def run(*arguments, cwd, stdin=None, code=0, text=True):
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=text,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def fails(*arguments, cwd, code=2, stdin=None):
    """Run a command that must fail with one line, and leave the folder as it was."""
    before = sorted(cwd.iterdir())
    done = run(*arguments, cwd=cwd, code=code, stdin=stdin)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("fairpca: ")
    assert sorted(cwd.iterdir()) == before
    return done.stderr


@pytest.fixture(scope="module")
def diabetes(tmp_path_factory):
    """The data as a file of each kind."""
    folder = tmp_path_factory.mktemp("data")
    bunch = load_diabetes_by_sex(prepare=False)
    columns = dict(zip(bunch.feature_names, bunch.data.T, strict=True))
    ids = [f"{i:04d}" for i in range(len(bunch.data))]
    ward = [("north", "south", "east")[i % 3] for i in range(len(ids))]
    sex = bunch.sensitive_features.tolist()
    table = pa.table({"id": ids, **columns, "ward": ward, "sex": sex, "y": bunch.target})
    pc.write_csv(table, folder / "d.csv")
    pc.write_csv(table, folder / "d.tsv", pc.WriteOptions(delimiter="\t"))
    pq.write_table(table, folder / "d.parquet", row_group_size=100)
    feather.write_feather(table, folder / "d.feather")
    return folder


def test_bundled_report_and_json(tmp_path):
    done = run("report", "--json", "out.json", cwd=tmp_path)
    assert "female" in done.stdout
    assert "parity reached" in done.stdout
    assert "\x1b" not in done.stdout
    numbers = json.loads((tmp_path / "out.json").read_text("utf-8"))
    bunch = load_diabetes_by_sex()
    fair = fairpca.FairPCA(3).fit(bunch.data, sensitive_features=bunch.sensitive_features)
    assert numbers["fair"]["group_errors"] == pytest.approx(fair.group_errors_)
    assert numbers["data"]["command"] == "fairpca report --json out.json"
    assert (tmp_path / "report.html").stat().st_size < 1_500_000


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "feather"])
def test_every_format_gives_the_same_numbers(diabetes, tmp_path, kind):
    options = ["--group", "sex", "--drop", "id", "--label", "y", "--json", "-"]
    done = run("audit", diabetes / f"d.{kind}", *options, cwd=tmp_path)
    numbers = json.loads(done.stdout)
    bunch = load_diabetes_by_sex()
    fair = fairpca.FairPCA(4).fit(bunch.data, sensitive_features=bunch.sensitive_features)
    assert numbers["pca"][3]["group_errors"] == pytest.approx(fair.pca_group_errors_)
    assert numbers["groups"] == ["female", "male"]


def test_standard_input_and_semicolons(diabetes, tmp_path):
    content = (diabetes / "d.csv").read_text("utf-8").replace(",", ";")
    options = ["-g", "sex", "--label", "y", "--drop", "id,ward"]
    done = run("audit", "-", *options, cwd=tmp_path, stdin=content)
    assert "2.546" in done.stdout


def test_text_columns_are_named_or_encoded(diabetes, tmp_path):
    options = ["-g", "sex", "--label", "y", "--drop", "id"]
    plain = run("audit", diabetes / "d.csv", *options, cwd=tmp_path)
    assert "left out, not numbers: ward (--encode)" in plain.stdout
    encoded = run("audit", diabetes / "d.csv", *options, "--encode", "--json", "-", cwd=tmp_path)
    assert len(json.loads(encoded.stdout)["pca"]) == 9 + 3


def test_one_value_against_the_rest_and_intersections(diabetes, tmp_path):
    options = ["--label", "y", "--drop", "id", "--json", "-"]
    path = diabetes / "d.csv"
    done = run("audit", path, "-g", "ward", "--positive", "east", *options, cwd=tmp_path)
    assert json.loads(done.stdout)["groups"] == ["east", "not east"]
    done = run("audit", path, "-g", "ward", "-g", "sex", "--positive", "east & male",
               *options, cwd=tmp_path)  # fmt: skip
    assert json.loads(done.stdout)["groups"] == ["east & male", "not east & male"]
    line = fails("audit", path, "-g", "id", cwd=tmp_path)
    assert "more than 50 groups, such as '0000'" in line
    assert "--positive '0000'" in line


def test_several_groups(diabetes, tmp_path):
    path, options = diabetes / "d.csv", ["--label", "y", "--drop", "id,ward"]
    done = run("audit", path, "-g", "ward", *options, "--json", "-", cwd=tmp_path)
    numbers = json.loads(done.stdout)
    assert numbers["groups"] == ["east", "north", "south"]
    assert numbers["pca"][0]["disparity"] == pytest.approx(
        np.ptp(numbers["pca"][0]["group_errors"])
    )
    crossed = ["-g", "sex", "-g", "ward", "-r", "3"]
    done = run("report", path, *crossed, *options, "--json", "out.json", cwd=tmp_path)
    numbers = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert numbers["groups"][:2] == ["female & east", "female & north"]
    assert numbers["fair"]["disparity"] == pytest.approx(np.ptp(numbers["fair"]["group_errors"]))
    assert numbers["fair"]["disparity"] < 0.01 * numbers["pca"]["disparity"]
    assert "female & south" in done.stdout
    run("fit", path, *crossed, *options, "--out", "m.safetensors", cwd=tmp_path)
    done = run("inspect", "m.safetensors", "--json", cwd=tmp_path)
    model = json.loads(done.stdout)
    assert model["groups"] == numbers["groups"]
    assert model["group_errors"] == pytest.approx(numbers["fair"]["group_errors"])
    assert model["group"] == ["sex", "ward"]


def test_small_groups_and_relative_errors(diabetes, tmp_path):
    table = pq.read_table(diabetes / "d.parquet")
    clinic = np.repeat(["a", "b", "c", "d"], [200, 200, 30, 12]).tolist()
    pq.write_table(table.append_column("clinic", [clinic]), tmp_path / "d.parquet")
    data = ["d.parquet", "-g", "clinic", "--label", "y", "--drop", "id,sex,ward"]
    line = fails("audit", *data, "--min-group-size", 50, cwd=tmp_path)
    assert "'c' (30 rows), 'd' (12 rows)" in line
    assert "small_groups='x'" in fails("audit", *data, "--small-groups", "x", cwd=tmp_path)

    small = ["--min-group-size", 40, "--small-groups", "merge", "--normalize"]
    done = run("audit", *data, *small, cwd=tmp_path)
    assert "merged into 'rest', fewer than 40 rows: c, d" in done.stdout
    numbers = json.loads(run("audit", *data, *small, "--json", "-", cwd=tmp_path).stdout)
    X = load_diabetes_by_sex().data
    fair = fairpca.FairPCA(3, normalize=True, min_group_size=40, small_groups="merge")
    fair.fit(X, sensitive_features=clinic)
    assert numbers["groups"] == ["a", "b", "rest"]
    assert numbers["pca"][2]["group_errors"] == pytest.approx(fair.pca_group_errors_)
    assert numbers["small_groups"] == ["c", "d"]

    options = [*small, "-r", 3, "--json", "out.json"]
    done = run("report", *data, *options, cwd=tmp_path)
    assert "share of variance lost" in done.stdout
    assert "Merged into “rest”" in (tmp_path / "report.html").read_text("utf-8")
    numbers = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert numbers["fair"]["group_errors"] == pytest.approx(fair.group_errors_)
    assert "small_groups='merge'" in numbers["data"]["code"]
    done = run("fit", *data, *small, "-r", 3, "-o", "m.safetensors", cwd=tmp_path)
    assert "merged into 'rest'" in done.stdout
    done = run("audit", *data, "--min-group-size", 20, "--small-groups", "ignore", "--json", "-",
               cwd=tmp_path)  # fmt: skip
    numbers = json.loads(done.stdout)
    assert numbers["compared"] == [True, True, True, False]
    row = numbers["pca"][2]
    assert row["disparity"] == pytest.approx(np.ptp(row["group_errors"][:3]))


def test_max_disparity_decides_the_exit_code(diabetes, tmp_path):
    options = ["audit", diabetes / "d.csv", "-g", "sex", "--label", "y", "--drop", "id"]
    run(*options, "--max-disparity", "0.2", cwd=tmp_path)
    run(*options, "-r", "2", "--max-disparity", "0.1", cwd=tmp_path)
    done = run(*options, "--max-disparity", "0.1", cwd=tmp_path, code=1)
    assert "disparity 0.1134 exceeds --max-disparity 0.1" in done.stderr


def test_fit_transform_inspect(diabetes, tmp_path):
    options = ["-g", "sex", "-r", "3", "--label", "y", "--drop", "id"]
    run("fit", diabetes / "d.csv", *options, "--out", "m.safetensors", cwd=tmp_path)
    bunch = load_diabetes_by_sex()
    fair = fairpca.FairPCA(3).fit(bunch.data, sensitive_features=bunch.sensitive_features)
    expected = fair.transform(bunch.data)
    for data, out in (("d.csv", "s.csv"), ("d.parquet", "s.parquet"), ("d.feather", "t.csv")):
        run("transform", "m.safetensors", diabetes / data, "--keep", "id,sex",
            "--out", out, cwd=tmp_path)  # fmt: skip
        read = pq.read_table if out.endswith("parquet") else pc.read_csv
        scores = read(tmp_path / out).to_pandas()
        assert scores.columns.tolist() == ["id", "sex", "fairpca0", "fairpca1", "fairpca2"]
        assert scores["sex"].tolist() == bunch.sensitive_features.tolist()
        np.testing.assert_allclose(scores.to_numpy()[:, 2:].astype(float), expected, atol=1e-9)
    assert (tmp_path / "s.csv").read_text().splitlines()[1].startswith('"0000"')
    shown = run("inspect", "m.safetensors", cwd=tmp_path).stdout
    assert "3 components of 9 features, standardised" in shown
    plain = json.loads(run("inspect", "m.safetensors", "--json", cwd=tmp_path).stdout)
    assert plain["group_errors"] == pytest.approx(fair.group_errors_)
    assert plain["columns"] == bunch.feature_names


def test_encoded_model_transforms_and_refuses_new_values(diabetes, tmp_path):
    options = ["-g", "sex", "-r", "3", "--label", "y", "--drop", "id", "--encode"]
    run("fit", diabetes / "d.csv", *options, "--out", "m.safetensors", cwd=tmp_path)
    done = run("transform", "m.safetensors", diabetes / "d.parquet", "--out", "-", cwd=tmp_path)
    assert len(done.stdout.splitlines()) == 443
    other = (diabetes / "d.csv").read_text("utf-8").replace("north", "moon")
    (tmp_path / "o.csv").write_text(other, "utf-8")
    line = fails("transform", "m.safetensors", "o.csv", "--out", "s.csv", cwd=tmp_path)
    assert "'moon'" in line


def test_transform_refuses_missing_columns_values_and_endings(diabetes, tmp_path):
    run("fit", diabetes / "d.csv", "-g", "sex", "-r", "2", "--columns", "age,bmi,bp",
        "--out", "m.safetensors", cwd=tmp_path)  # fmt: skip
    (tmp_path / "a.csv").write_text("age,bmi,BP\n1,2,3\n")
    (tmp_path / "b.csv").write_text("age,bmi,bp\n1,2,3\n1,,3\n")
    (tmp_path / "c.csv").write_text("age,bmi,bp\n1,2,3\n1,x,3\n")
    transform = ["transform", "m.safetensors"]
    assert "did you mean 'BP'?" in fails(*transform, "a.csv", "--out", "s.csv", cwd=tmp_path)
    line = fails(*transform, "b.csv", "--out", "s.csv", cwd=tmp_path)
    assert "b.csv has a missing value in column 'bmi', line 3" in line
    assert "'x'" in fails(*transform, "c.csv", "--out", "s.csv", cwd=tmp_path)
    line = fails(*transform, "c.csv", "--out", "s.xlsx", cwd=tmp_path)
    assert "end it in .parquet or .csv" in line
    line = fails("transform", "a.csv", "a.csv", "--out", "s.csv", cwd=tmp_path)
    assert "no fairpca model file" in line


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A CSV file of numbers, true and false, dates, text, ids and two groups; as Parquet too."""
    folder = tmp_path_factory.mktemp("mixed")
    rng = np.random.default_rng(0)
    lines = [
        f"{i:03d},{rng.normal():.6f},{i % 5},{str(i % 3 == 0).lower()},2024-01-0{1 + i % 4},"
        f"{'uvw'[i % 3]},{'ab'[rng.random() < 0.3]},{'xy'[i % 2]}"
        for i in range(120)
    ]
    header = "id,height,visits,smokes,day,ward,sex,site"
    (folder / "m.csv").write_text("\n".join([header, *lines]))  # no line break at the end
    pq.write_table(pc.read_csv(folder / "m.csv"), folder / "m.parquet")
    return folder


def test_fit_and_transform_read_columns_alike(mixed, tmp_path):
    frame = pc.read_csv(mixed / "m.csv").to_pandas()
    X = np.column_stack(
        [frame["height"], frame["visits"], frame["smokes"]]
        + [frame["day"].astype(str) == f"2024-01-0{j}" for j in (1, 2, 3, 4)]
        + [frame["ward"] == value for value in "uvw"]
    ).astype(float)
    options = ["-g", "sex", "-r", "2", "--drop", "id,site", "--no-standardize", "--encode"]
    fair = fairpca.FairPCA(2).fit(X, sensitive_features=frame["sex"])
    for data in ("m.csv", "m.parquet"):
        run("fit", mixed / data, *options, "--out", "m.safetensors", cwd=tmp_path)
        model = json.loads(run("inspect", "m.safetensors", "--json", cwd=tmp_path).stdout)
        assert model["feature_names"][2:4] == ["smokes", "day=2024-01-01"]
        assert model["group_errors"] == pytest.approx(fair.group_errors_)
        run("transform", "m.safetensors", mixed / data, "--out", "s.csv", cwd=tmp_path)
        scores = pc.read_csv(tmp_path / "s.csv").to_pandas().to_numpy()
        np.testing.assert_allclose(scores, fair.transform(X), atol=1e-9)


def test_crossed_groups_are_those_of_the_library(mixed, tmp_path):
    done = run("audit", mixed / "m.csv", "-g", "sex", "-g", "site", "--drop", "id", "--json", "-",
               cwd=tmp_path)  # fmt: skip
    moments = fairpca.GroupMoments.from_files(
        mixed / "m.parquet", group=["sex", "site"], columns=["height", "visits", "smokes"]
    )
    numbers = json.loads(done.stdout)
    assert numbers["groups"] == moments.groups.tolist()
    assert numbers["group_sizes"] == moments.counts.tolist()
    rows = "1,a & b,c\n2,a,b & c\n4,x,y\n" * 3
    (tmp_path / "two.csv").write_text(f"v,g,h\n{rows}")
    line = fails("audit", "two.csv", "-g", "g", "-g", "h", cwd=tmp_path)
    assert "both be called 'a & b & c'" in line


def test_several_files_folders_and_compression(mixed, tmp_path):
    lines = (mixed / "m.csv").read_text().splitlines()
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "1.csv").write_text("\n".join(lines[:51]))
    (folder / "2.csv.gz").write_bytes(gzip.compress("\n".join([lines[0], *lines[51:]]).encode()))
    options = ["-g", "sex", "--drop", "id", "--json", "-"]
    expected = json.loads(run("audit", mixed / "m.csv", *options, cwd=tmp_path).stdout)
    for data in (["parts"], ["parts/2.csv.gz", "parts/1.csv"]):
        found = json.loads(run("audit", *data, *options, cwd=tmp_path).stdout)
        assert found["group_sizes"] == expected["group_sizes"]
        assert found["pca"][1]["group_errors"] == pytest.approx(expected["pca"][1]["group_errors"])


def test_no_rows_give_no_scores_and_infinity_is_refused(mixed, tmp_path):
    options = ["-g", "sex", "-r", "2", "--columns", "height,visits,smokes"]
    run("fit", mixed / "m.csv", *options, "--out", "m.safetensors", cwd=tmp_path)
    (tmp_path / "none.csv").write_text("id,height,visits,smokes\n")
    for out, read in (("s.csv", pc.read_csv), ("s.parquet", pq.read_table)):
        run("transform", "m.safetensors", "none.csv", "--keep", "id", "--out", out, cwd=tmp_path)
        assert read(tmp_path / out).column_names == ["id", "fairpca0", "fairpca1"]
        assert read(tmp_path / out).num_rows == 0
    assert pq.read_schema(tmp_path / "s.parquet").field("fairpca1").type == pa.float64()
    (tmp_path / "inf.csv").write_text("height,visits,smokes,sex\n1,2,true,a\n1,inf,false,b\n")
    line = fails("transform", "m.safetensors", "inf.csv", "--out", "t.csv", cwd=tmp_path)
    assert "inf.csv has infinity in column 'visits', line 3; correct the value" in line
    line = fails("audit", "inf.csv", "-g", "sex", "--drop-missing", cwd=tmp_path)
    assert "inf.csv has infinity in column 'visits', line 3; correct the value" in line
    (tmp_path / "gap.csv").write_text("height,visits,smokes\n1,2,true\n1,,false\n3,4,false\n")
    run("transform", "m.safetensors", "gap.csv", "--drop-missing", "--out", "u.csv", cwd=tmp_path)
    assert pc.read_csv(tmp_path / "u.csv").num_rows == 2


def test_wrong_columns_suggest_the_nearest(diabetes, tmp_path):
    path = diabetes / "d.csv"
    assert "did you mean 'sex'?" in fails("report", path, "--group", "Sexx", cwd=tmp_path)
    line = fails("report", path, "--group", "sex", "--drop", "idd", cwd=tmp_path)
    assert "did you mean 'id'" in line
    line = fails("report", path, cwd=tmp_path)
    assert "--group is missing" in line
    assert "'sex'" in line


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is empty"),
        (b"a,sex\n", "no rows"),
        (b"a,sex\n1,f\n2\n3,m\n", "line 3 of bad.csv has 1 values"),
        (b"a,sex\n1,f\n2,m,9\n", "line 3 of bad.csv has 3 values"),
        ("a,sex\n1,f\n2,m\u00e4nnlich\n".encode("latin-1"), "not UTF-8 text (line 3)"),
        ("\u00e4,sex\n1,f\n2,m\n".encode("latin-1"), "not UTF-8 text (line 1)"),
        (b"a,b,sex\n1,5,f\n1,5,m\n1,5,m\n", "no column of bad.csv varies"),
        (b"a,sex\n1,f\n2,f\n", "one group, 'f'"),
        (b"a,sex\n1,f\n,m\n3,\n", "2 of 3 rows of bad.csv have missing values"),
        (b"a,a,sex\n1,2,f\n", "two columns named 'a'"),
        (b"sex,t\nf,x\nm,y\n", "no numeric columns besides 'sex'"),
    ],
)
def test_bad_files_end_in_one_line(tmp_path, content, expected):
    (tmp_path / "bad.csv").write_bytes(content)
    assert expected in fails("report", "bad.csv", "--group", "sex", cwd=tmp_path)


def test_latin1_with_encoding_and_dropped_rows(tmp_path):
    rng = np.random.default_rng(0)
    groups = ["w", "m\u00e4nnlich", "m\u00e4nnlich"]
    lines = [f"{rng.normal()},{rng.normal()},{groups[i % 3]}" for i in range(40)]
    content = "a,b,g\n,1,w\n" + "\n".join(lines)
    (tmp_path / "l.csv").write_bytes(content.encode("latin-1"))
    done = run("audit", "l.csv", "-g", "g", "--encoding", "latin-1", "--drop-missing", cwd=tmp_path)
    assert "m\u00e4nnlich" in done.stdout
    assert "missing values: 1 of 41 rows" in done.stdout
    line = fails("audit", "l.csv", "-g", "g", "--encoding", "klingon", cwd=tmp_path)
    assert "'klingon' is not known" in line


def test_a_terminal_without_umlauts_still_gets_its_answer(tmp_path):
    (tmp_path / "u.csv").write_text(
        "a,b,g\n1,2,m\u00e4nn\n2,3,frau\n4,4,frau\n3,9,m\u00e4nn\n", "utf-8"
    )
    done = subprocess.run(
        [*COMMAND, "audit", "u.csv", "-g", "g"], cwd=tmp_path, capture_output=True, check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert b"m?nn" in done.stdout


def test_missing_and_unreadable_files(diabetes, tmp_path):
    shutil.copy(diabetes / "d.csv", tmp_path / "people.csv")
    line = fails("report", "peopel.csv", "--group", "sex", cwd=tmp_path)
    assert line.endswith("did you mean 'people.csv'?\n")
    odd = os.fsdecode(b"odd\xff.csv")
    shutil.copy(diabetes / "d.csv", tmp_path / odd)
    assert "is not UTF-8 text; rename" in fails("audit", odd, "--group", "sex", cwd=tmp_path)
    (tmp_path / "none").mkdir()
    assert "holds no data files" in fails("report", "none", "--group", "sex", cwd=tmp_path)
    (tmp_path / "x.parquet").write_bytes(b"hello")
    assert "damaged" in fails("report", "x.parquet", "--group", "sex", cwd=tmp_path)
    (tmp_path / "x.xlsx").write_bytes(b"hello")
    assert "cannot tell the format" in fails("report", "x.xlsx", "--group", "sex", cwd=tmp_path)


def test_unwritable_output_is_noticed_first(tmp_path):
    assert "No such file" in fails("report", "--out", "nowhere/r.html", cwd=tmp_path)
    (tmp_path / "folder").mkdir()
    assert "is a folder" in fails("report", "--out", "folder", cwd=tmp_path)
    assert "is a folder" in fails("report", "--json", "folder", cwd=tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_dash_is_standard_output(diabetes, tmp_path):
    page = run("report", "--out", "-", cwd=tmp_path).stdout
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    numbers = run("report", "--out", "page.html", "--json", "-", cwd=tmp_path).stdout
    assert json.loads(numbers)["groups"] == ["female", "male"]
    model = run("fit", diabetes / "d.csv", "-g", "sex", "--out", "-", cwd=tmp_path, text=False)
    (tmp_path / "m.safetensors").write_bytes(model.stdout)
    assert "male" in run("inspect", "m.safetensors", cwd=tmp_path).stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.safetensors", "page.html"]
    line = fails("report", "--out", "-", "--json", "-", cwd=tmp_path)
    assert "--out and --json both name '-'" in line


def test_errors_name_the_file_that_was_given(tmp_path):
    line = fails("report", "--out", "nowhere/r.html", cwd=tmp_path)
    assert line == "fairpca: nowhere/r.html: No such file or directory\n"
    line = fails("report", "--out", "/dev/full", cwd=tmp_path)
    assert line == "fairpca: /dev/full: No space left on device\n"


@pytest.mark.parametrize("rank", ["0", "-1", "1.5", "nan", "inf", "many"])
def test_impossible_ranks(tmp_path, rank):
    assert "such as 3" in fails("report", f"-r={rank}", cwd=tmp_path)


def test_impossible_numbers(tmp_path):
    for number in ("nan", "inf", "-0.1"):
        line = fails("audit", "--max-disparity", number, cwd=tmp_path)
        assert f"--max-disparity {number}" in line
    for number in ("0", "-1", "10"):
        assert "from 1 to 9" in fails("audit", "-r", number, cwd=tmp_path)
    line = fails("audit", "-r", "1.5", cwd=tmp_path)
    assert "'-r'" in line
    assert "integer. See fairpca --help." in line
    assert "--seed" in fails("report", "--seed", "-1", cwd=tmp_path)


def test_more_components_than_features(tmp_path):
    assert "from 1 to 9" in fails("report", "-r", "10", cwd=tmp_path)
    assert "from 1 to 9" in fails("audit", "-r", "10", cwd=tmp_path)


def test_unknown_options_and_commands_are_one_line(tmp_path):
    assert "--grup" in fails("report", "--grup", "sex", cwd=tmp_path)
    assert "reprot" in fails("reprot", cwd=tmp_path)


def test_reader_that_goes_away(diabetes, tmp_path):
    run("fit", diabetes / "d.csv", "-g", "sex", "-r", "2", "--columns", "age,bmi,bp",
        "--out", "m.safetensors", cwd=tmp_path)  # fmt: skip
    long = "age,bmi,bp\n" + "1,2,3\n" * 200_000
    (tmp_path / "long.csv").write_text(long)
    for command in (["transform", "m.safetensors", "long.csv", "--out", "-"], ["audit"]):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as stdout:
            done = subprocess.run(
                [*COMMAND, *command], cwd=tmp_path, stdout=stdout, stderr=subprocess.PIPE,
                timeout=120, check=False,
            )  # fmt: skip
        assert done.returncode == 141
        assert done.stderr == b""


def test_interrupt_leaves_nothing(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table({f"x{j}": rng.normal(size=3000) for j in range(150)})
    table = table.append_column("g", pa.array(["a", "b", "b"] * 1000))
    pq.write_table(table, tmp_path / "wide.parquet")
    process = subprocess.Popen(
        [*COMMAND, "report", "wide.parquet", "-g", "g", "-r", "40"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)  # until the temporary file shows that work has begun
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    # Python may die of the signal itself when it came during an import; shells call both 130.
    assert process.returncode in (130, -signal.SIGINT)
    assert errors == "fairpca: interrupted; nothing was written.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["wide.parquet"]


def test_interrupt_while_loading_is_one_line(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    line = fails("--help", cwd=tmp_path, code=130)  # -m looks into the working directory first
    assert line == "fairpca: interrupted; nothing was written.\n"


def test_progress_is_shown_on_a_terminal_only(tmp_path):
    """A slow reader makes the bar appear; it is gone, and nothing is written, at the end."""
    controller, terminal = os.openpty()
    process = subprocess.Popen(
        [*COMMAND, "audit", "-", "-g", "g", "--json", "out.json"], cwd=tmp_path,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=terminal, text=True,
    )  # fmt: skip
    os.close(terminal)
    time.sleep(4)
    process.communicate("a,g\n1,x\n2,y\n5,y\n", timeout=60)
    assert process.returncode == 0
    shown = os.read(controller, 1 << 16).decode()
    os.close(controller)
    assert "reading" in shown
    assert (tmp_path / "out.json").exists()


def test_rounding_is_not_printed_as_if_it_meant_something(tmp_path):
    done = run("report", "-r", "9", cwd=tmp_path)
    assert "e-" not in done.stdout
    assert "optimal to rounding error" in done.stdout
    done = run("audit", "-r", "9", "--max-disparity", "0", cwd=tmp_path)
    assert done.stdout.splitlines()[1].split() == ["9", "0", "0", "0"]
    run("report", "-r", "3", cwd=tmp_path)


def test_many_groups_and_long_names_fit_the_terminal(tmp_path):
    rng = np.random.default_rng(0)
    groups = [f"a rather long name of group {i % 12:02d}" for i in range(240)]
    table = pa.table({"a": rng.normal(size=240), "b": rng.normal(size=240), "g": groups})
    pq.write_table(table, tmp_path / "many.parquet")
    lines = run("audit", "many.parquet", "-g", "g", cwd=tmp_path).stdout.splitlines()
    assert "worst served" in lines[0]
    assert len(lines) == 3
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    done = run("report", "--out", folder / "r.html", cwd=tmp_path)
    assert f"written to {folder / 'r.html'}" in done.stdout
    assert "cost of fairness +1.31 %" in done.stdout


def test_hostile_names_stay_text_in_the_terminal(tmp_path):
    rng = np.random.default_rng(0)
    names = ["[red]x[/red]", "\x1b[31mred", "n" * 5000, "\u2028\U0001f600"]
    table = {name: rng.normal(size=30) for name in names}
    labels = ["[bold]a", "\x1b]0;title\x07b"]
    table = pa.table({**table, "g": [labels[i % 3 == 0] for i in range(30)]})
    pq.write_table(table, tmp_path / "h.parquet")
    done = run("report", "h.parquet", "-g", "g", "-r", "2", cwd=tmp_path)
    assert "\x1b" not in done.stdout
    assert "[bold]a" in done.stdout
    assert "\x1b" not in fails("report", "h.parquet", "-g", "\x1b[31mre", cwd=tmp_path)


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
        (None, []),
        (None, ["--drop", "age,bmi", "--label", "s1", "--no-standardize", "--parity"]),
        (None, ["--group", "sex", "--positive", "male", "--columns", "bmi,bp,s5", "-r", "2"]),
        ("odd name.csv", ["-g", "the group", *AWKWARD, "--encode", "-r", "3"]),
        ("odd name.csv", ["-g", "flag", "-g", "the group", *AWKWARD, "--drop", "income, yearly"]),
        ("odd name.csv", ["-g", "ort", "--positive", "M\u00fcnchen", *AWKWARD, "-r", "1",
                          "--columns", "it's $HOME `x`", "--columns", "b,a"]),
        ("odd name.parquet", ["-g", "flag", "--encode", "--label", "b", "--seed", "3"]),
    ],
)  # fmt: skip
def test_command_and_code_of_the_report_repeat_it(awkward, tmp_path, name, options):
    data = [] if name is None else [awkward / name]
    run("report", *data, *options, "--json", "out.json", cwd=tmp_path)
    first = json.loads((tmp_path / "out.json").read_text("utf-8"))
    code = f"{first['data']['code']}\nimport json; print(json.dumps(result.to_dict()))"
    again = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path,
                           capture_output=True, text=True, check=True)  # fmt: skip
    assert json.loads(again.stdout) == {k: v for k, v in first.items() if k != "data"}
    command = f'fairpca() {{ "{sys.executable}" -m fairpca "$@"; }}\n{first["data"]["command"]}'
    subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, check=True)
    assert json.loads((tmp_path / "out.json").read_text("utf-8")) == first


def test_names_with_commas_can_be_kept(awkward, tmp_path):
    run("fit", awkward / "odd name.parquet", "-g", "flag", "--columns", "b", "--columns",
        "income, yearly", "-r", "1", "--out", "m.safetensors", cwd=tmp_path)  # fmt: skip
    done = run("transform", "m.safetensors", awkward / "odd name.parquet", "--keep",
               "income, yearly", "--keep", "a,ort", "--out", "-", cwd=tmp_path)  # fmt: skip
    assert done.stdout.splitlines()[0] == '"income, yearly","a","ort","fairpca0"'


def test_help_is_fast_and_loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['fairpca', '--help']\n"
        "from fairpca.cli import run\n"
        "code = run()\n"
        "heavy = {'numpy', 'sklearn', 'pyarrow', 'altair', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'{heavy} {code}' if heavy or code else 0)"
    )
    busy = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Processor time: other work on the machine must not decide this.
        busy.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.returncode == 0, done.stderr
    assert min(busy) < 0.5


def test_version_and_installed_script():
    expected = f"fairpca {fairpca.__version__}"
    assert run("--version", cwd=Path()).stdout.strip() == expected
    script = shutil.which("fairpca")
    if script is None:
        pytest.skip("the fairpca command is not on PATH")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected
