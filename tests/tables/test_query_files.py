"""A query reads files as their paths are read: nothing is rounded, joined, lost or written over."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.files import fitted_to, read_table, write_scores_of

from fairpca import FairPCA
from fairpca.exceptions import TableError

N = 40_000


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(path, **columns):
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    Path(path).write_text("\n".join(lines))


GROUPS = ["f", "m"] * 20
NUMBERS = np.random.default_rng(0).normal(size=40).round(3)


def test_late_fractions_are_not_rounded():
    whole = [*range(N - 1), 2.75]
    write("f.csv", a=[i * 1.5 for i in range(N)], b=whole, g=["f", "m"] * (N // 2))
    for data in ("f.csv", "SELECT * FROM 'f.csv'", 'FROM "f.csv" WHERE a >= 0'):
        assert read_table(data, "g").data["b"].to_pylist() == whole


def test_parts_of_several_types_are_not_rounded():
    Path("parts").mkdir()
    values = [[1, 2, 3, 4], [1.75, 2.6, 3.2, 4.9]]
    for i, part in enumerate(values):
        pq.write_table(pa.table({"a": part, "g": list("xyxy")}), f"parts/{i}.parquet")
    found = read_table("SELECT * FROM 'parts/*.parquet'", "g").data["a"]
    assert found.to_pylist() == [*values[0], *values[1]]


def test_labels_stay_as_they_are_written():
    texts = {"zip": ["01", "1"] * 20, "flag": ["T", "t"] * 20, "word": ["True", "false"] * 20}
    write("l.csv", x=NUMBERS, **texts)
    for name in ("zip", "flag"):
        found = read_table("SELECT * FROM 'l.csv'", name, features="x").sensitive_features
        assert found.tolist() == texts[name]
    assert set(read_table("SELECT * FROM 'l.csv'", "word", features="x").sensitive_features) == {
        "False",
        "True",
    }


def test_whole_numbers_keep_all_digits():
    names = [9007199254740993 + i for i in range(40)]
    write("n.csv", x=NUMBERS, y=NUMBERS[::-1], name=names, g=GROUPS)
    fair = fitted_to(FairPCA(1), "n.csv", sensitive_features="g", drop="name")
    scores = write_scores_of(fair, "SELECT * FROM 'n.csv'", "s.parquet", keep="name")
    assert pq.read_table(scores)["name"].to_pylist() == names


SPELLINGS = [
    "FROM 'p.csv' t",
    "FROM 'one.csv' k, 'p.csv' t",
    "FROM('p.csv') t",
    'FROM/**/"p.csv" t',
    "FROM 'it''s.csv' t",
    "FROM (TABLE 'p.csv') t",
    "FROM p.csv t",
    "FROM query_table('p.csv') t",
    "FROM read_csv('p.csv') t",
    "FROM read_csv_auto('p.csv') t",
    "FROM read_csv('p.' || 'csv') t",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_loses_lines_or_writes_over_its_file(spelling):
    Path("p.csv").write_text("name,a,g\n1,1.5,x\n#2,3,y\n3,5,x\n4,1,y\n")
    Path("it's.csv").write_text(Path("p.csv").read_text())
    Path("one.csv").write_text("h\n10\n")
    query = f"SELECT t.a, t.g {spelling}"
    try:
        assert read_table(query, "g").data["a"].to_pylist() == [1.5, 3, 5, 1]
    except TableError as error:
        assert error.problem == "query"  # noqa: PT017
        assert "FROM 'people" in error.advice  # noqa: PT017
    fair = FairPCA(1).fit(np.array([[1.0], [2.0], [4.0]]), sensitive_features=["x", "y", "x"])
    for path in ("p.csv", "it's.csv"):
        before = Path(path).read_text()
        try:
            write_scores_of(fair, query, path, features=["a"])
        except ValueError:
            assert Path(path).read_text() == before
        else:
            assert f"'{path}'" not in spelling.replace("''", "'")
            Path(path).write_text(before)


def test_a_database_reads_no_files():
    write("p.csv", x=NUMBERS, g=GROUPS)
    with duckdb.connect("d.duckdb") as database:
        database.execute("CREATE VIEW v AS FROM 'p.csv'; CREATE TABLE t AS FROM 'p.csv'")
    assert read_table("d.duckdb", "g", query="FROM t").data.num_rows == 40
    for query in ("FROM v", "FROM 'p.csv'", "FROM t, read_csv('p.csv')"):
        with pytest.raises(TableError):
            read_table("d.duckdb", "g", query=query)


@pytest.mark.parametrize("data", ["o.csv", "SELECT * FROM 'o.csv'"])
def test_an_odd_value_does_not_remove_its_column(data):
    odd = [*NUMBERS[:7], "?", *NUMBERS[8:]]
    write("o.csv", a=NUMBERS, b=odd, g=GROUPS)
    with pytest.raises(TableError, match=r"line 9 of o\.csv has '\?' in column 'b'"):
        read_table(data, "g")
    found = read_table(data, "g", missing_values="?", missing="drop")
    assert (found.feature_names, found.data.num_rows) == (["a", "b"], 39)


def test_damage_is_told_as_for_a_path():
    write("r.csv", a=NUMBERS, g=GROUPS)
    Path("r.csv").write_text(Path("r.csv").read_text() + "\n1\n2,f,3")
    with pytest.raises(TableError, match=r"line 42 of r\.csv has 1 values where"):
        read_table("SELECT * FROM 'r.csv'", "g")
    Path("l.csv").write_bytes("größe,g\n1,f\n2,m\n".encode("latin-1"))
    with pytest.raises(TableError, match=r"l\.csv is not UTF-8 text.*encoding='latin-1'"):
        read_table("SELECT * FROM 'l.csv'", "g")
    read = read_table("SELECT * FROM 'l.csv'", "g", encoding="latin-1")
    assert read.feature_names == ["größe"]
    with pytest.raises(TableError, match=r"no file or folder 'nowhere\.csv'"):
        read_table("SELECT * FROM 'nowhere.csv'", "g")


def test_text_files_of_any_ending_are_found():
    write("p.txt", x=NUMBERS, g=GROUPS)
    assert read_table("SELECT * FROM 'p.txt'", "g").data["x"].to_pylist() == NUMBERS.tolist()


def test_outputs_of_a_report_do_not_replace_the_files_of_its_query():
    from helpers.command import run

    write("emp.csv", x=NUMBERS, y=NUMBERS[::-1], g=GROUPS)
    before = Path("emp.csv").read_text()
    query = "SELECT * FROM emp.csv"
    run("audit", query, "-g", "g", "-r", "1", "--json", "emp.csv", cwd=".", code=2)
    assert Path("emp.csv").read_text() == before


def test_files_whose_names_differ_in_case_are_not_mixed_up():
    write("A.csv", a=[1, 2], g=["x", "y"])
    write("a.csv", a=[100, 200], g=["x", "y"])
    if Path("A.csv").read_text() == Path("a.csv").read_text():
        pytest.skip("names of files ignore case here")
    with pytest.raises(TableError, match="already exists"):
        read_table("SELECT * FROM 'A.csv' UNION ALL SELECT * FROM 'a.csv'", "g")


def test_a_file_in_a_comment_is_none():
    write("p.csv", x=NUMBERS, g=GROUPS)
    assert read_table("SELECT * FROM 'p.csv' -- was 'old.csv'", "g").data.num_rows == 40


def test_a_late_value_in_another_notation_is_named():
    late = [i % 7 / 4 for i in range(30_000)] + ["1,000.5"]
    rows = "".join(f"{x};{'fm'[i % 2]}\n" for i, x in enumerate(late))
    Path("late.csv").write_text("x;g\n" + rows)
    for data in ("late.csv", "SELECT * FROM 'late.csv'"):
        with pytest.raises(
            TableError, match=r"line 30002 of late\.csv has '1,000\.5'.*decimal='\.'"
        ):
            read_table(data, "g")
        assert read_table(data, "g", decimal=".").data["x"][-1].as_py() == 1000.5


def test_a_query_is_no_database():
    write("p.csv", x=NUMBERS, g=GROUPS)
    with pytest.raises(TableError, match="query= is for a DuckDB database"):
        read_table("SELECT * FROM 'p.csv'", "g", query="SELECT 1")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "xlsx", "feather", "parquet"])
def test_files_of_all_formats_and_with_an_index(kind):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"a": NUMBERS, 'q"uo': NUMBERS[::-1], "g": GROUPS, "ill": [True, False] * 20}
    )
    if kind == "xlsx":
        pytest.importorskip("python_calamine")
        frame.assign(ill=frame.ill.astype(int)).to_excel("d.xlsx", index=False)
    elif kind in ("feather", "parquet"):
        getattr(frame, f"to_{kind}")(f"d.{kind}")
    else:
        frame.to_csv(f"d.{kind}", sep="\t" if kind == "tsv" else ",")
    found = read_table(f"SELECT * FROM 'd.{kind}' WHERE a < 9", "g")
    assert found.feature_names == ["a", 'q"uo', "ill"]
    assert found.data["a"].to_pylist() == NUMBERS.tolist()
    assert found.data["ill"].to_pylist() == [1, 0] * 20


def test_rows_of_several_files_come_in_turn(monkeypatch):
    monkeypatch.setattr("fairpca.cli.reader.table.blas_threads", lambda: 2)
    Path("parts").mkdir()
    first = np.random.default_rng(1).normal(size=6)
    for k, start in enumerate(first):
        write(
            f"parts/{k}.csv",
            a=start + np.arange(50) / 8,
            b=NUMBERS[:10].repeat(5),
            g=GROUPS[:10] * 5,
        )
    rows = np.add.outer(first, np.arange(50) / 8).ravel()
    for data in ["parts", "SELECT * FROM 'parts/*.csv'"] * 8:
        np.testing.assert_array_equal(read_table(data, "g").data["a"].to_numpy(), rows)


def test_ids_of_19_digits_stay_apart_in_a_join():
    ids = [9007199254740993000 + i for i in range(40)]
    write("a.csv", key=ids, x=NUMBERS, g=GROUPS)
    write("b.csv", key=ids, y=NUMBERS)
    joined = "SELECT x, y, g FROM 'a.csv' JOIN 'b.csv' USING (key) ORDER BY key"
    assert read_table(joined, "g").data["y"].to_pylist() == NUMBERS.tolist()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_codes_for_missing_values_leave_the_columns_of_a_query_but_not_its_groups(suffix):
    columns = {
        "a": [i * i for i in range(39)] + [-99],
        "b": [*NUMBERS[:38], -99, 1.5],
        "g": [1, -99] * 20,
    }
    write("a.csv", **columns)
    pq.write_table(pa.table(columns), "a.parquet")
    query = f"SELECT *, sum(a) OVER () AS total FROM 'a.{suffix}'"
    people = read_table(query, "g", missing_values="-99", missing="available")
    missing = {name: sum(map(np.isnan, people.data[name].to_pylist())) for name in "ab"}
    assert missing == {"a": 1, "b": 1}
    assert set(people.data["total"].to_pylist()) == {sum(columns["a"])}  # as it is stored
    assert set(people.sensitive_features) == {"1", "-99"}


def test_names_of_folders_are_numbers_and_names_of_files_are_plain():
    for year in (2023, 2024):
        Path(f"by/year={year}").mkdir(parents=True)
        write(f"by/year={year}/a[1].csv", a=NUMBERS + year, g=GROUPS)
    query = "SELECT a, g FROM 'by/*/*.csv' WHERE year + 1 > 2024"
    assert read_table(query, "g").data["a"].to_pylist() == (NUMBERS + 2024).tolist()
    query = "SELECT a, g FROM 'by/year=2024/a[1].csv'"
    assert read_table(query, "g").data.num_rows == 40


def test_a_query_over_a_file_without_rows():
    Path("none.csv").write_text("a,g\n")
    with pytest.raises(TableError, match=r"no (rows|columns of numbers)"):
        read_table("SELECT * FROM 'none.csv'", "g")


def test_a_wrong_query_is_not_blamed_on_its_file():
    write("c.csv", a=NUMBERS, g=GROUPS)
    for query in ("SELECT nobody, g FROM 'c.csv'", "SELECT c.a, g FROM 'c.csv' AS d"):
        with pytest.raises(TableError) as caught:
            read_table(query, "g")
        assert (caught.value.problem, caught.value.advice) == ("query", "correct the query")
