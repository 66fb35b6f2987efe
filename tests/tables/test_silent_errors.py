"""Tables that could be misread without a word: read as they are meant, or refused."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.files import fitted_to, read_table, write_scores_of

from fairpca import FairPCA
from fairpca.exceptions import TableError

SEX = ["f", "m"] * 30
X = np.random.default_rng(0).normal(size=(60, 3)).round(3)
COLUMNS = dict(zip("xyz", X.T, strict=True))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(path, **columns):
    """A CSV or Parquet file of the columns."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    if path.endswith(".parquet"):
        pq.write_table(pa.table(columns), path)
        return
    rows = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    Path(path).write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("data", ["all/*.csv", "SELECT * FROM 'all/a.csv'"])
def test_an_input_named_by_a_pattern_or_a_query_is_not_written_over(data):
    write("all/a.csv", **COLUMNS, sex=SEX)
    before = Path("all/a.csv").read_text()
    fair = fitted_to(FairPCA(2), data, sensitive_features="sex")
    with pytest.raises(ValueError, match="is a file that is read"):
        write_scores_of(fair, data, "all/a.csv")
    assert Path("all/a.csv").read_text() == before


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_brackets_in_a_name_are_no_pattern(ending):
    write(f"people[1].{ending}", **COLUMNS, sex=SEX)
    write(f"people1.{ending}", **{name: column + 1000 for name, column in COLUMNS.items()}, sex=SEX)
    np.testing.assert_array_equal(read_table(f"people[1].{ending}", "sex").data["x"], X[:, 0])


def test_a_query_reads_a_csv_file_as_its_path_does():
    write("a.csv", **COLUMNS, sex=SEX)
    text = Path("a.csv").read_text()
    Path("na.csv").write_text(text.replace(f"{X[30, 0]},", "NA,", 1))
    for data in ("na.csv", "SELECT * FROM 'na.csv'"):
        with pytest.raises(TableError, match="1 of 60 rows"):
            read_table(data, "sex")
    lines = text.splitlines(keepends=True)
    Path("note.csv").write_text("".join([*lines[:20], "# a note\n", *lines[20:]]))
    for data in ("note.csv", "SELECT * FROM 'note.csv'"):
        with pytest.raises(TableError):
            read_table(data, "sex")
    Path("comma.csv").write_text("x;sex\n" + "".join(f"1.{i:03d},5;f\n2;m\n" for i in range(9)))
    found = read_table("SELECT * FROM 'comma.csv'", "sex", decimal=",").data["x"].to_pylist()
    assert found[::2] == [1000.5 + i for i in range(9)]


def test_a_wide_text_file():
    names = [f"g{j}" for j in range(2500)]
    rows = np.random.default_rng(0).integers(0, 9, (40, len(names)))
    write("wide.csv", **dict(zip(names, rows.T, strict=True)), sex=SEX[:40])
    np.testing.assert_array_equal(read_table("wide.csv", "sex").data["g2499"], rows[:, -1])


def test_fit_files_does_not_lose_a_group():
    race = np.array(["a", "b", "other"] * 20)
    y = np.where(race == "other", "", X[:, 1].astype(str))
    write("lost.csv", x=X[:, 0], y=y, race=race)
    with pytest.raises(TableError, match="every row of 'other'"):
        fitted_to(FairPCA(1), "lost.csv", sensitive_features="race", missing="drop")


def test_text_in_one_part_is_cast_whichever_comes_first():
    for order in ("ab", "ba"):
        numbers, texts = (f"parts_{order}/{name}.parquet" for name in order)
        write(numbers, **COLUMNS, sex=SEX)
        write(texts, **COLUMNS | {"x": X[:, 0].astype(str)}, sex=SEX)
        found = read_table(f"parts_{order}", "sex").data["x"]
        np.testing.assert_array_equal(found, np.tile(X[:, 0], 2))


def test_parts_with_names_that_differ_in_case_are_refused():
    write("case/a.parquet", x=X[:, 0], X=X[:, 1], sex=SEX)
    write("case/b.parquet", X=X[:, 1], x=X[:, 0], sex=SEX)
    with pytest.raises(TableError, match="differ only in case"):
        read_table("case", "sex")
    assert read_table("case/b.parquet", "sex").feature_names == ["X", "x"]


def test_a_column_that_is_blank_at_first_is_not_called_empty():
    n = 21_000
    late = ["" if i < 20_500 else i for i in range(n)]
    write("late.csv", x=[i % 7 for i in range(n)], late=late, sex=["f", "m"] * (n // 2))
    with pytest.raises(TableError, match="'late' is blank in the first rows"):
        read_table("late.csv", "sex")
    assert read_table("late.csv", "sex", drop="late").feature_names == ["x"]


def test_a_column_of_nothing_but_codes_for_missing_values_is_empty():
    write("codes.csv", x=X[:, 0], y=[" -"] * 60, sex=SEX)
    assert read_table("codes.csv", "sex", missing_values="-").record.left_out == {"y": "empty"}


def test_shuffled_row_numbers_of_a_large_table():
    n, rng = 60_000, np.random.default_rng(0)
    columns = {f"a{j}": rng.normal(size=n) for j in range(41)}
    write("big.parquet", nr=rng.permutation(n), **columns, sex=["f", "m"] * (n // 2))
    found = read_table("big.parquet", "sex")
    assert found.feature_names == [*columns]


def test_an_enumeration_is_text():
    with duckdb.connect("e.duckdb") as database:
        database.execute(
            "CREATE TYPE kind AS ENUM ('=1+1', 'MINT'); CREATE TABLE people AS SELECT sin(i) AS x, "
            "cos(i) AS y, ['f', 'm'][1 + i % 2] AS sex, ['=1+1', 'MINT'][1 + i % 2]::kind AS e "
            "FROM range(60) t(i)"
        )
    query = {"query": "SELECT * FROM people"}
    assert read_table("e.duckdb", "sex", **query).record.left_out == {"e": "text"}
    fair = fitted_to(FairPCA(1), "e.duckdb", sensitive_features="sex", **query)
    write_scores_of(fair, "e.duckdb", "scores.csv", keep="e", **query)
    assert Path("scores.csv").read_text().splitlines()[1].startswith('"\'=1+1"')


def test_names_in_another_encoding_are_refused():
    write("a.csv", größe=X[:, 0], y=X[:, 1], sex=SEX)
    Path("latin.csv").write_bytes(Path("a.csv").read_text().encode("latin-1"))
    with pytest.raises(TableError, match="not UTF-8 text"):
        read_table("latin.csv", "sex")
    assert read_table("latin.csv", "sex", encoding="latin-1").feature_names == ["größe", "y"]


def test_two_codes_for_missing_values():
    x = X[:, 0].copy()
    x[[3, 9, 17]], x[[5, 11]] = 9999, 7777
    write("codes.csv", x=x, y=X[:, 1], sex=SEX)
    found = read_table("codes.csv", "sex").record.sentinels
    assert [(code.column, code.value, code.n_rows) for code in found] == [
        ("x", 9999, 3),
        ("x", 7777, 2),
    ]
    assert read_table("codes.csv", "sex", missing="drop", missing_values=9999).record.n_dropped == 3


def test_a_damaged_part_is_named():
    for part in "abc":
        write(f"parts/{part}.parquet", **COLUMNS, sex=SEX)
    content = bytearray(Path("parts/b.parquet").read_bytes())
    content[4:60] = bytes(56)
    Path("parts/b.parquet").write_bytes(content)
    with pytest.raises(TableError, match=r"parts/b.parquet cannot be read"):
        read_table("parts", "sex")


def test_a_file_outside_the_folders_that_name_columns_is_refused():
    for sex in "fm":
        write(f"by/sex={sex}/a.csv", **COLUMNS)
    write("by/zz.csv", **COLUMNS)
    with pytest.raises(TableError, match=r"zz.csv do not name the same columns"):
        read_table("by", "sex")


@pytest.mark.parametrize(
    ("query", "unordered"),
    [
        ("SELECT a.* FROM 'a.csv' a, 'b.csv' b WHERE a.x = b.x", True),
        ("SELECT a.* FROM 'a.csv' a, 'b.csv' b WHERE a.x = b.x ORDER BY a.x", False),
        ("SELECT *, rank() OVER (ORDER BY x) FROM 'a.csv' JOIN 'b.csv' USING (x, y, z, sex)", True),
        ("SELECT * FROM 'a.csv' WHERE random() < 2", True),
        ("SELECT * FROM 'a.csv'", False),
    ],
)
def test_rows_that_may_come_in_another_order(query, unordered):
    for name in "ab":
        write(f"{name}.csv", **COLUMNS, sex=SEX)
    assert read_table(query, "sex", features=["x", "y"]).record.unordered is unordered


def test_codes_for_missing_values_at_both_ends():
    ages = np.random.default_rng(0).integers(20, 65, 120).astype(float)
    ages[3], ages[5] = -999, 999
    write("ends.csv", age=ages, y=np.tile(X[:, 0], 2), sex=SEX * 2)
    found = read_table("ends.csv", "sex").record.sentinels
    assert [(code.value, code.n_rows) for code in found] == [(-999, 1), (999, 1)]


def test_a_missing_group_is_not_called_like_another():
    write("missing.csv", x=X[:, 0], sex=["f", "m", ""] * 20)
    with pytest.raises(TableError, match="'f' is a group"):
        read_table("missing.csv", "sex", missing_group="f")


def test_groups_of_numbers_may_be_missing():
    groups = [1.5, float("nan"), 2.5, 1.5] * 10
    write("nan.parquet", x=X[:40, 0], g=pa.array(groups))
    assert read_table("nan.parquet", "g", missing="drop").data.num_rows == 30
    found = read_table("nan.parquet", "g", missing_group="none").sensitive_features
    assert set(found) == {"1.5", "2.5", "none"}


def test_a_generator_of_paths_guards_its_files():
    write("a.csv", **COLUMNS, sex=SEX)
    fair = fitted_to(FairPCA(2), "a.csv", sensitive_features="sex")
    with pytest.raises(ValueError, match="is a file that is read"):
        write_scores_of(fair, (path for path in ["a.csv"]), "a.csv")


def test_a_part_whose_column_became_a_time_is_named():
    write("times/a.parquet", x=X[:, 0], y=X[:, 1], sex=SEX)
    stamps = np.arange(60).astype("datetime64[ms]")
    write("times/b.parquet", x=X[:, 0], y=stamps, sex=SEX)
    with pytest.raises(TableError, match=r"'y' is timestamp.* in times/b.parquet, but double in"):
        read_table("times", "sex")


def test_durations_are_no_features():
    lasts = pa.array(np.arange(60).astype("timedelta64[ns]"))
    write("long.parquet", **COLUMNS, lasts=lasts, sex=SEX)
    assert read_table("long.parquet", "sex").record.left_out == {"lasts": "date"}


def test_texts_that_a_spreadsheet_would_run():
    texts = ["-2+3+cmd|' /C calc'!A0", "-2.5", "-", "a-b", "=1", "-1e5"] * 10
    write("cells.parquet", **COLUMNS, sex=SEX, name=texts)
    fair = fitted_to(FairPCA(1), "cells.parquet", sensitive_features="sex")
    write_scores_of(fair, "cells.parquet", "scores.csv", keep="name")
    cells = [line.split('"')[1] for line in Path("scores.csv").read_text().splitlines()[1:7]]
    assert cells == ["'" + texts[0], "-2.5", "'-", "a-b", "'=1", "-1e5"]


def test_options_for_other_formats_are_refused():
    write("a.parquet", **COLUMNS, sex=SEX)
    for option in ({"encoding": "latin-1"}, {"header": False}):
        with pytest.raises(TableError, match=r"is for text.*and a\.parquet is none"):
            read_table("a.parquet", "sex", **option)


def test_a_group_without_weights_is_not_lost():
    weights = [0 if sex == "f" else 1 for sex in SEX]
    write("w.csv", **COLUMNS, w=weights, sex=SEX)
    with pytest.raises(TableError, match=r"every row of 'f' has the weight 0"):
        read_table("w.csv", "sex", sample_weight="w")


def test_a_file_is_not_read_twice():
    write("twice/a.csv", **COLUMNS, sex=SEX)
    for paths in (["twice/a.csv", "./twice/a.csv"], ["twice", "twice/a.csv"]):
        with pytest.raises(TableError, match=r"a\.csv is read 2 times"):
            read_table(paths, "sex")


def test_line_ends_that_change_late_are_named():
    lines = "".join(f"{i},{i * 2.5},{'fm'[i % 2]}\r\n" for i in range(100_000))
    Path("mixed.csv").write_text(f"a,b,sex\r\n{lines}1,2,f\n3,4,m\n", newline="")
    with pytest.raises(TableError, match=r"mixed\.csv ends some lines in another way"):
        read_table("mixed.csv", "sex")
