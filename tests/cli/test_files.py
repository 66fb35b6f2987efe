"""The command on files of every kind, good and bad."""

from __future__ import annotations

import gzip
import json
import os
import shutil

import numpy as np
import pytest
from helpers.command import fails, run

import fairpca

pa = pytest.importorskip("pyarrow", reason="the command line needs the cli extra")
pytest.importorskip("typer")
import pyarrow.csv as pc  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402


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


def test_wrong_columns_suggest_the_nearest(diabetes_files, tmp_path):
    path = diabetes_files / "d.csv"
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
        (b'a,sex,t\n1,f,u\n2,m,"v\n3,m,w\n4,f,w\n', "quotes opened in line 3 of bad.csv"),
        ("a,sex\n1,f\n2,m\n".encode("utf-16"), "bad.csv is UTF-16 text"),
    ],
)
def test_bad_files_end_in_one_line(tmp_path, content, expected):
    (tmp_path / "bad.csv").write_bytes(content)
    assert expected in fails("report", "bad.csv", "--group", "sex", cwd=tmp_path)


def test_quotes_within_a_value_are_just_text(tmp_path):
    text = 'x,pipe,sex\n1,5" wide,f\n2,"a ""b"", c",m\n4,d,m\n0,e,f\n'
    (tmp_path / "d.csv").write_text(text)
    done = run("audit", "d.csv", "-g", "sex", "--json", "-", cwd=tmp_path)
    assert json.loads(done.stdout)["group_sizes"] == [2, 2]


def test_labels_that_are_not_numbers_are_missing(tmp_path):
    labels = pa.array([0.0, 1.0, np.nan, 1.0, 0.0, 1.0], from_pandas=False)
    pq.write_table(pa.table({"x": np.arange(6.0) ** 2, "g": labels}), tmp_path / "d.parquet")
    line = fails("audit", "d.parquet", "-g", "g", cwd=tmp_path)
    assert "1 of 6 rows of d.parquet have missing values, in 'g' (1)" in line


def test_names_must_differ(tmp_path):
    rows = "".join(f"{i % 3},{i % 2},{'ru'[i % 2]}ed,{'fm'[i % 4 < 2]}\n" for i in range(12))
    (tmp_path / "d.csv").write_text("x,cat=red,cat,sex\n" + rows)
    line = fails("audit", "d.csv", "-g", "sex", "--encode", cwd=tmp_path)
    assert "makes two columns named 'cat=red'" in line
    line = fails("audit", "d.csv", "-g", "sex", "-g", "sex", cwd=tmp_path)
    assert "group (--group) has 'sex' twice" in line
    options = ["-g", "sex", "-r", "1", "--json", "-", "--out", "r.html"]
    once, twice = (
        json.loads(run("report", "d.csv", *options, "--columns", names, cwd=tmp_path).stdout)
        for names in ("x,cat=red", "x,cat=red,x")
    )
    assert once["pca"] == twice["pca"]


def test_first_file_may_be_empty(mixed, tmp_path):
    header, *lines = (mixed / "m.csv").read_text().splitlines()
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "1.csv").write_text(header + "\n")
    (folder / "2.csv").write_text("\n".join([header, *lines]))
    options = ["-g", "sex", "--drop", "id", "--json", "-"]
    parts, whole = (
        json.loads(run("audit", data, *options, cwd=tmp_path).stdout)
        for data in (folder, mixed / "m.csv")
    )
    assert parts["group_sizes"] == whole["group_sizes"]
    for part, all_at_once in zip(parts["pca"], whole["pca"], strict=True):
        assert part["group_errors"] == pytest.approx(all_at_once["group_errors"], abs=1e-12)
    moments = fairpca.GroupMoments.from_files(folder, group="sex", keep_ids=True)
    assert moments.counts.sum() == len(lines)


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


def test_missing_and_unreadable_files(diabetes_files, tmp_path):
    shutil.copy(diabetes_files / "d.csv", tmp_path / "people.csv")
    line = fails("report", "peopel.csv", "--group", "sex", cwd=tmp_path)
    assert line.endswith("did you mean 'people.csv'?\n")
    odd = os.fsdecode(b"odd\xff.csv")
    shutil.copy(diabetes_files / "d.csv", tmp_path / odd)
    assert "is not UTF-8 text; rename" in fails("audit", odd, "--group", "sex", cwd=tmp_path)
    (tmp_path / "none").mkdir()
    assert "holds no data files" in fails("report", "none", "--group", "sex", cwd=tmp_path)
    (tmp_path / "x.parquet").write_bytes(b"hello")
    assert "damaged" in fails("report", "x.parquet", "--group", "sex", cwd=tmp_path)
    (tmp_path / "x.dbf").write_bytes(b"hello")
    assert "cannot tell the format" in fails("report", "x.dbf", "--group", "sex", cwd=tmp_path)
