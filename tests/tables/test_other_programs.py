"""Files and queries as other programs and people write them: read like any other."""

import os
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.files import fitted_to, moments_of, read_table, write_scores_of

from fairpca import FairPCA
from fairpca.exceptions import TableError

X = np.random.default_rng(0).normal(size=(60, 3)).round(3)
SEX = ["f", "m"] * 30
TABLE = pa.table({**dict(zip("xyz", X.T, strict=True)), "sex": SEX})
CSV = "x,y,z,sex\n" + "".join(
    f"{','.join(map(str, row))},{sex}\n" for row, sex in zip(X.tolist(), SEX, strict=True)
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_read(data):
    read = read_table(data, "sex")
    assert (read.feature_names, read.sensitive_features.tolist()) == (["x", "y", "z"], SEX)
    np.testing.assert_array_equal(np.column_stack(read.data.columns), X)


@pytest.mark.parametrize("name", ["with weights.csv", "From HR.csv", "select 2.csv"])
def test_a_file_whose_name_begins_like_a_query_is_a_file(name):
    Path(name).write_text(CSV)
    assert_read(name)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM 'p.csv'; -- größe; all",
        "-- größe; all\nSELECT * FROM 'p.csv' ;\n/* the end; */",
        "/* people */ (SELECT * FROM 'p.csv')",
        "SELECT* FROM 'p.csv'",
        "SELECT *, 'ö; -- no comment' AS note FROM 'p.csv';",
    ],
)
def test_comments_brackets_and_a_semicolon_belong_to_a_query(query):
    Path("p.csv").write_text(CSV)
    assert_read(query)


def test_a_path_in_double_quotes_is_read_alike_and_not_written_over():
    Path("p.csv").write_text(CSV)
    query = 'SELECT * FROM "p.csv"'
    assert_read(query)
    fair = fitted_to(FairPCA(1), query, sensitive_features="sex")
    with pytest.raises(ValueError, match="is a file that is read"):
        write_scores_of(fair, query, "p.csv")


def test_a_query_knows_decimal_commas():
    Path("p.csv").write_text(CSV.replace(",", ";").replace(".", ","))
    assert_read("SELECT * FROM 'p.csv'")


def test_links_to_folders_are_followed():
    Path("far").mkdir()
    Path("data").mkdir()
    pq.write_table(TABLE.slice(0, 20), "far/a.parquet")
    pq.write_table(TABLE.slice(20), "data/z.parquet")
    os.symlink(os.path.abspath("far"), "data/b")
    os.symlink(os.path.abspath("data"), "far/back")  # nothing is read twice
    assert_read("data")


def test_the_home_folder(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    Path("p.csv").write_text(CSV)
    assert_read("~/p.csv")
    assert_read(["~/p.csv"])


def test_tables_of_all_schemas_are_named():
    with duckdb.connect("people.duckdb") as database:
        database.execute("CREATE SCHEMA hr; CREATE TABLE hr.staff (x DOUBLE)")
    with pytest.raises(TableError, match=r"tables 'hr\.staff'; .*FROM \"hr\"\.\"staff\""):
        read_table("people.duckdb", "sex")


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view()])
@pytest.mark.parametrize("index", [pa.uint8(), pa.uint32()])
def test_categories_of_arrow(kind, index):
    codes = pa.array([0, 1] * 30, index)
    sex = pa.DictionaryArray.from_arrays(codes, pa.array(["f", "m"], kind))
    table = TABLE.set_column(3, "sex", sex)
    with pa.ipc.new_file("p.arrow", table.schema) as sink:
        sink.write_table(table, max_chunksize=25)
    assert_read("p.arrow")


def test_progress_moves_within_a_row_group():
    n_rows = 100_000
    columns = {"x": np.linspace(0, 1, n_rows), "y": np.ones(n_rows), "sex": ["f", "m"] * 50_000}
    pq.write_table(pa.table(columns), "p.parquet", row_group_size=n_rows)
    shown = []
    moments_of("p.parquet", sensitive_features="sex", progress=shown.append)
    assert shown == sorted(shown)
    assert any(0.2 < fraction < 0.8 for fraction in shown)
    assert shown[-1] == 1
