"""A table is a query: one statement that reads, and nothing else."""

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.files import fitted_to, moments_of, read_table, write_scores_of

from fairpca import FairPCA
from fairpca.exceptions import TableError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    (tmp_path / "people").mkdir()
    for year in (2023, 2024):
        columns = {"x": rng.normal(size=50), "y": rng.normal(size=50)}
        columns |= {"age": rng.integers(20, 60, 50), "year": [year] * 50, "sex": ["f", "m"] * 25}
        pq.write_table(pa.table(columns), tmp_path / "people" / f"{year}.parquet")
    with duckdb.connect(str(tmp_path / "people.duckdb")) as database:
        database.execute(f"CREATE TABLE people AS FROM '{tmp_path}/people/*.parquet'")
    monkeypatch.chdir(tmp_path)
    return tmp_path


FILTERED = "SELECT x, y, sex FROM 'people/*.parquet' WHERE year = 2024"


def test_a_query_gives_what_its_rows_give(folder):
    rows = pq.read_table("people/2024.parquet")
    X = np.column_stack([rows["x"], rows["y"]])
    expected = FairPCA(1).fit(X, sensitive_features=rows["sex"].to_pylist())
    fair = fitted_to(FairPCA(1), FILTERED, sensitive_features="sex")
    np.testing.assert_allclose(fair.components_, expected.components_, atol=1e-12)
    np.testing.assert_allclose(read_table(FILTERED, "sex").data["x"], X[:, 0])
    in_database = "SELECT x, y, sex FROM people WHERE year = 2024"
    moments = moments_of("people.duckdb", query=in_database, sensitive_features="sex")
    np.testing.assert_allclose(moments.means, fair.moments_.means, rtol=1e-12)
    write_scores_of(fair, FILTERED, "scores.parquet")
    assert pq.read_table("scores.parquet").num_rows == 50


def test_bands_and_patterns_need_no_code(folder):
    banded = "SELECT *, floor(age / 20) * 20 AS band FROM 'people/*.parquet'"
    table = read_table(banded, "band", features=["x", "y"])
    assert set(table.sensitive_features) == {"20", "40"}
    assert read_table("people/*.parquet", "sex", features=["x", "y"]).data.num_rows == 100


def test_a_join_without_an_order_is_recorded(folder):
    joined = (
        "SELECT a.x, b.y, a.sex FROM 'people/2023.parquet' a "
        "JOIN 'people/2024.parquet' b USING (age)"
    )
    assert read_table(joined, "sex").record.unordered
    assert not read_table(joined + " ORDER BY a.x, b.y", "sex").record.unordered
    assert not read_table(FILTERED, "sex").record.unordered


@pytest.mark.parametrize(
    "query",
    [
        "COPY (SELECT 1) TO 'stolen.csv'",
        "ATTACH 'stolen.duckdb'",
        "SELECT x, sex FROM 'people/2024.parquet'; COPY (SELECT 1) TO 'stolen.csv'",
        "WITH t AS (SELECT 1) INSERT INTO people SELECT * FROM t",
        "WITH t AS (DELETE FROM people RETURNING *) FROM t",
        "FROM query('COPY (SELECT 1) TO ''stolen.csv''')",
        "SELECT * FROM 'https://example.com/people.parquet'",
        "SELECT * FROM 's3://bucket/people.parquet'",
        "SELECT * FROM sqlite_scan('people.sqlite', 'people')",
        "SET threads = 1",
        "INSTALL httpfs",
    ],
)
def test_nothing_is_written_attached_or_fetched(query, folder):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(TableError):
        read_table("people.duckdb", "sex", query=query)
    with pytest.raises(TableError):
        read_table(query, "sex")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_database_is_only_read(folder):
    before = (folder / "people.duckdb").read_bytes()
    read_table("people.duckdb", "sex", query="FROM people", features=["x", "y"])
    assert (folder / "people.duckdb").read_bytes() == before
    with pytest.raises(TableError, match="the tables 'people'; pass query='SELECT"):
        read_table("people.duckdb", "sex")


def test_variables_of_python_are_no_tables(folder):
    people = pq.read_table("people/2024.parquet")
    with pytest.raises(TableError, match="people does not exist"):
        read_table("SELECT * FROM people", "sex")
    assert people.num_rows == 50


def test_errors_of_a_query_are_shown(folder):
    for query, message in [
        ("SELECT x, sex FRM people", "syntax error"),
        ("SELECT nothing, sex FROM 'people/2024.parquet'", "nothing"),
        ("SELECT x, sex FROM 'nowhere.parquet'", "nowhere.parquet"),
    ]:
        with pytest.raises(TableError, match=message) as caught:
            read_table(query, "sex")
        assert caught.value.problem == ("no_file" if "nowhere" in message else "query")
    with pytest.raises(TableError, match="query= is for a DuckDB database"):
        read_table("people/2024.parquet", "sex", query="SELECT 1")
