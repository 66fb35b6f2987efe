"""Scores written to files: order, columns kept, and files that are replaced whole."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from helpers.files import fitted_to, write_scores_of
from helpers.tables import as_table

from fairpca import FairPCA


@pytest.mark.parametrize("output", ["scores.parquet", "scores.csv", "scores.tsv"])
def test_scores_are_written_in_row_order(output, data, tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.cli.reader.table._BATCH_ROWS", 64)
    X, sex = data
    pq.write_table(as_table(X[:300], sex[:300]), tmp_path / "a.parquet")
    pq.write_table(as_table(X[300:], sex[300:]), tmp_path / "b.parquet")
    paths = [tmp_path / "b.parquet", tmp_path / "a.parquet"]
    fair = fitted_to(FairPCA(2), paths, sensitive_features="sex")
    written = write_scores_of(fair, paths, tmp_path / output, keep=["id", "sex"])
    assert written == tmp_path / output
    if output.endswith("parquet"):
        table = pq.read_table(written)
    else:
        separator = pa_csv.ParseOptions(delimiter="\t" if output.endswith("tsv") else ",")
        table = pa_csv.read_csv(written, parse_options=separator)
    assert table.column_names == ["id", "sex", "fairpca0", "fairpca1"]
    order = np.r_[300:700, 0:300]
    np.testing.assert_array_equal(table["sex"].to_pylist(), sex[order])
    scores = np.column_stack([table["fairpca0"], table["fairpca1"]])
    expected = (X[order] - fair.mean_) @ fair.components_.T
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-8)
    assert sorted(os.listdir(tmp_path)) == sorted(["a.parquet", "b.parquet", output])


def test_kept_column_of_two_types(data, tmp_path):
    X, sex = data
    table = as_table(X, sex)
    for name, ids in (("a", np.arange(700, dtype=np.int32)), ("b", np.arange(700) + 2**40)):
        pq.write_table(table.set_column(0, "id", pa.array(ids)), tmp_path / f"{name}.parquet")
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    fair = fitted_to(FairPCA(2), paths, sensitive_features="sex", features=["x0", "x1", "x2"])
    scores = write_scores_of(fair, paths, tmp_path / "s.parquet", keep="id")
    assert pq.read_table(scores)["id"].to_pylist() == [*range(700), *(np.arange(700) + 2**40)]


def test_one_column_to_keep_needs_no_list(data, tmp_path):
    pq.write_table(as_table(*data), tmp_path / "d.parquet")
    fair = fitted_to(FairPCA(2), tmp_path / "d.parquet", sensitive_features="sex")
    scores = write_scores_of(fair, tmp_path / "d.parquet", tmp_path / "s.parquet", keep="id")
    assert pq.read_table(scores).column_names == ["id", "fairpca0", "fairpca1"]


def test_kept_text_stays_unless_it_is_a_feature(data, tmp_path):
    fair = FairPCA(2).fit(data[0][:, :3], sensitive_features=data[1])
    (tmp_path / "d.csv").write_text("x0,x1,x2,zip\n1.50,2,3,01234\n")
    options = {"features": ["x0", "x1", "x2"], "keep": ["zip", "x0"]}
    scores = write_scores_of(fair, tmp_path / "d.csv", tmp_path / "s.csv", **options)
    assert scores.read_text().splitlines()[1].split(",")[:2] == ['"01234"', "1.5"]
    (tmp_path / "d.csv").write_text("x0,x1,x2,land\n1.50,2,3,NA\n1,2,3,DE\nNA,2,3,FR\n")
    scores = write_scores_of(fair,
        tmp_path / "d.csv", tmp_path / "s.csv", keep="land", features=list(options["features"]),
        missing="drop",
    )  # fmt: skip
    lines = scores.read_text().splitlines()[1:]
    assert [line.split(",")[0] for line in lines] == ['"NA"', '"DE"']


def test_wrong_outputs(data, tmp_path):
    X, sex = data
    path = tmp_path / "d.parquet"
    pq.write_table(as_table(X, sex, fairpca0=X[:, 0]), path)
    fair = fitted_to(FairPCA(2), path, sensitive_features="sex", features=["x0", "x1", "x2"])
    with pytest.raises(ValueError, match=r"end it in \.parquet or \.csv"):
        write_scores_of(fair, path, tmp_path / "scores.xlsx")
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        write_scores_of(fair, path, tmp_path / "nowhere" / "scores.csv")
    with pytest.raises(ValueError, match="two columns named"):
        write_scores_of(fair, path, tmp_path / "scores.csv", keep=["fairpca0"])


def test_lists_are_kept_in_parquet_and_refused_in_text(data, tmp_path):
    X, sex = data
    fair = FairPCA(2).fit(X, sensitive_features=sex)
    tags = [[i, i + 1] for i in range(len(X))]
    pq.write_table(as_table(X, sex, tags=tags), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"'tags' \(list.*name the output .parquet"):
        write_scores_of(fair, tmp_path / "d.parquet", tmp_path / "s.csv", keep=["tags"])
    assert not (tmp_path / "s.csv").exists()
    write_scores_of(fair, tmp_path / "d.parquet", tmp_path / "s.parquet", keep=["tags"])
    assert pq.read_table(tmp_path / "s.parquet")["tags"].to_pylist() == tags


_WRITE_SCORES = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from helpers.files import fitted_to, write_scores_of
from fairpca import FairPCA
model, data, output, step = sys.argv[1:]
fair = fitted_to(FairPCA(2), model, sensitive_features="sex")
write_scores_of(fair,
    data, output, keep=["id"], progress=lambda f: print(f, flush=True)
)
"""


def _start_writer(folder, model, data):
    command = [sys.executable, "-c", _WRITE_SCORES, folder / model, folder / data]
    return subprocess.Popen(
        [*map(str, command), str(folder / "scores.parquet"), ""], stdout=subprocess.PIPE, text=True
    )


@pytest.fixture
def long_file(data, tmp_path):
    X, sex = data
    pq.write_table(as_table(X, sex), tmp_path / "model.parquet")
    pq.write_table(as_table(X[:, ::-1] * [1e5, 1, 1, 1], sex), tmp_path / "other.parquet")
    schema = as_table(X, sex).schema
    with pq.ParquetWriter(tmp_path / "long.parquet", schema) as writer:
        for _ in range(1500):
            writer.write_table(as_table(X, sex))
    return tmp_path


@pytest.mark.slow
def test_killed_while_writing_leaves_the_old_file(long_file):
    output = long_file / "scores.parquet"
    output.write_text("old")
    for rounds in (1, 4, 9):
        writer = _start_writer(long_file, "model.parquet", "long.parquet")
        for _ in range(rounds):
            assert writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert output.read_text() == "old"


@pytest.mark.slow
def test_two_writers_of_one_file_do_not_mix(long_file):
    def scores():
        # One open: pyarrow opens a path twice, and may get the old file first and then the new.
        return pq.read_table(io.BytesIO((long_file / "scores.parquet").read_bytes()))

    expected = {}
    for model in ("model.parquet", "other.parquet"):
        writer = _start_writer(long_file, model, "long.parquet")
        writer.communicate()
        expected[model] = scores()
    first, second = expected.values()
    assert not first.equals(second)
    writers = [_start_writer(long_file, model, "long.parquet") for model in expected]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        table = scores()
        seen.add(next(name for name, whole in expected.items() if whole.equals(table)))
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    final = scores()
    assert any(final.equals(whole) for whole in expected.values())
    assert not list(long_file.glob(".*"))
