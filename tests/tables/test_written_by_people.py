"""Numbers, names and missing values as people and their programs write them."""

import datetime
import json
import sys
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from helpers.command import fails, run
from helpers.data import assert_same_moments

from fairpca import GroupMoments
from fairpca._tables import text_reader
from fairpca._tables.numerals import are_numerals, numbers_of
from fairpca.report import read_table


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 3)).round(4) * 100, np.array(["a", "b", "a"] * 10)


def write(path, X, groups, mark=";", decimal=",", names="x;y;z;g"):
    rows = [
        mark.join([*(f"{v:.4f}".replace(".", decimal) for v in row), g])
        for row, g in zip(X.tolist(), groups, strict=True)
    ]
    path.write_text("\n".join([*([names.replace(";", mark)] if names else []), *rows]))


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_decimal_comma_is_detected(mark, data, tmp_path):
    write(tmp_path / "d.csv", *data, mark)
    moments = GroupMoments.from_files(tmp_path / "d.csv", group="g")
    assert_same_moments(moments, GroupMoments.from_data(*data))


def test_a_decimal_point_stays_one_beside_semicolons(data, tmp_path):
    write(tmp_path / "d.csv", *data, ";", ".")
    assert_same_moments(
        GroupMoments.from_files(tmp_path / "d.csv", group="g"), GroupMoments.from_data(*data)
    )


def test_the_decimal_point_can_be_said(data, tmp_path):
    write(tmp_path / "d.csv", *data)
    auto = run("audit", "d.csv", "-g", "g", "--json", "-", cwd=tmp_path).stdout
    said = run("audit", "d.csv", "-g", "g", "--decimal", ",", "--json", "-", cwd=tmp_path).stdout
    assert auto == said
    assert len(json.loads(said)["pca"]) == 3
    line = fails("audit", "d.csv", "-g", "g", "--decimal", ";", cwd=tmp_path)
    assert "the decimal point ';' is not known; pass '.' or ','" in line


def test_files_without_names(data, tmp_path):
    X, groups = data
    write(tmp_path / "d.csv", X, groups, ",", ".", names="")
    table = read_table(str(tmp_path / "d.csv"), ["c3"], no_header=True)
    assert table.feature_names == ["c0", "c1", "c2"]
    np.testing.assert_allclose(table.data.to_pandas().to_numpy(), X, rtol=1e-12)
    options = ["--no-header", "-q"]
    run("fit", "d.csv", "-g", "c3", "-r", "1", "-o", "m.safetensors", *options, cwd=tmp_path)
    run("transform", "m.safetensors", "d.csv", "-o", "s.csv", *options, cwd=tmp_path)
    assert len((tmp_path / "s.csv").read_text().splitlines()) == len(X) + 1
    with (tmp_path / "d.csv").open("a") as file:
        file.write("\n1.0,odd,2.0,a")
    line = fails("audit", "d.csv", "-g", "sex", cwd=tmp_path)
    assert "first line holds no names, pass --no-header" in line
    line = fails("audit", "d.csv", "-g", "c3", "--no-header", cwd=tmp_path)
    assert "line 31 of d.csv has 'odd' in column 'c1'" in line


@pytest.mark.parametrize("mark", ["\t", "|", ";"])
def test_text_files_of_any_usual_separator(data, tmp_path, mark):
    X, groups = data
    write(tmp_path / "d.txt", X, groups, mark, ".")
    table = read_table(str(tmp_path / "d.txt"), ["g"])
    np.testing.assert_allclose(table.data.to_pandas().to_numpy(), X, rtol=1e-12)
    write(tmp_path / "d.csv", X, groups, ",", ".")
    read_table(str(tmp_path), ["g"])  # a text beside the data of a folder is no part of them


def test_a_title_above_the_names_is_guessed(data, tmp_path):
    write(tmp_path / "d.csv", *data, ",", ".", names="Wages of 1985\nx;y;z;g")
    line = fails("audit", "d.csv", "-g", "g", cwd=tmp_path)
    assert "line 2 of d.csv has 4 values where the line of column names has 1" in line
    assert "leave out the line above if it is a title" in line


def test_values_are_not_taken_for_names(data, tmp_path):
    write(tmp_path / "d.csv", data[0], ["1", "2", "1"] * 10, ",", ".", names="")
    line = fails("audit", "d.csv", "-g", "c3", cwd=tmp_path)
    assert "the first line of d.csv holds numbers" in line
    assert "--no-header" in line
    run("audit", "d.csv", "-g", "c3", "--no-header", cwd=tmp_path)
    write(tmp_path / "n.csv", data[0], ["1", "2", "1"] * 10, ",", ".", names="0;1;2;3")
    run("audit", "n.csv", "-g", "3", cwd=tmp_path)  # as pandas numbers its columns


def test_a_second_line_of_names_is_recognised(data, tmp_path):
    write(tmp_path / "d.csv", *data, ",", ".", names="x;y;z;g\nX1;X2;X3;G")
    line = fails("audit", "d.csv", "-g", "g", cwd=tmp_path)
    assert "line 2 of d.csv has 'X1' in column 'x', which otherwise holds numbers" in line
    assert "leave out this line if it holds names" in line


def test_texts_that_stand_for_missing_values(data, tmp_path):
    X, groups = data
    write(tmp_path / "d.csv", X, groups, ",", ".", names="x;y;z;g")
    text = (tmp_path / "d.csv").read_text() + "\n1.0,unknown,2.0,a\n1.0,-,2.0,b"
    (tmp_path / "d.csv").write_text(text)
    line = fails("audit", "d.csv", "-g", "g", cwd=tmp_path)
    assert "'unknown' in column 'y'" in line
    assert "--missing-value unknown, in Python read_table(..., missing_values=['unknown'])" in line
    told = ["--missing-value", "unknown", "--missing-value", "-", "--drop-missing"]
    done = run("audit", "d.csv", "-g", "g", *told, cwd=tmp_path)
    assert "left out, missing values: 2 of 32 rows" in done.stdout
    assert run("audit", "d.csv", "-g", "g", "--drop-column", "y", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("texts", "decimal", "values"),
    [
        (["1,234.5", "12", ".5", "-1,000,000"], ".", [1234.5, 12, 0.5, -1e6]),
        (["1.234,5", "12", "12.000.000", "0,25"], ",", [1234.5, 12, 12e6, 0.25]),
        (["$5.10", "-$1,000", "$-2", "3", None], ".", [5.1, -1000, -2, 3, None]),
        (["5,5 €", "1 234 €", "1\u202f000,5\u00a0€"], ",", [5.5, 1234, 1000.5]),
        (["5 %", "12.5%"], ".", [5, 12.5]),
        (["1'234", " 1e3 "], ".", [1234, 1000]),
    ],
)
def test_numbers_as_people_write_them(texts, decimal, values):
    column = pa.array(texts)
    assert are_numerals(column, decimal)
    assert numbers_of(column, decimal).to_pylist() == values


@pytest.mark.parametrize(
    "texts",
    [["1,23"], ["1,2345"], ["$5", "€5"], ["5 %", "5"], ["1,234 567"], ["0,123"], ["a"], ["-"], [""],
     ["1-2"], ["2020-01-01"], ["$"], [None], ["1.234.567"], ["12 34"]],
)  # fmt: skip
def test_what_is_no_number(texts):
    assert not are_numerals(pa.array(texts, pa.string()), ".")


def test_columns_of_written_numbers_are_features(data, tmp_path):
    X, groups = np.abs(data[0]) * 50, data[1]
    write(tmp_path / "plain.csv", X, groups, ";", ".")
    marks = ("${:,.4f}", "{:,.4f}", "{:.4f} %")
    lines = [
        ";".join([*(mark.format(v) for mark, v in zip(marks, row, strict=True)), g])
        for row, g in zip(X.tolist(), groups, strict=True)
    ]
    (tmp_path / "d.csv").write_text("\n".join(["x;y;z;g", *lines]))
    moments = GroupMoments.from_files(tmp_path / "d.csv", group="g")
    assert_same_moments(moments, GroupMoments.from_files(tmp_path / "plain.csv", group="g"))
    assert "read as numbers: x, y, z" in run("audit", "d.csv", "-g", "g", cwd=tmp_path).stdout
    (tmp_path / "d.csv").write_text("\n".join(["x;y;z;g", *lines, "$1;n/k;2 %;a"]))
    line = fails("audit", "d.csv", "-g", "g", cwd=tmp_path)
    assert "line 32 of d.csv has 'n/k' in column 'y', which otherwise holds numbers" in line
    assert "--missing-value n/k" in line
    assert "--drop-column y" in line


def test_an_odd_value_after_the_first_rows_is_named(data, tmp_path, monkeypatch):
    monkeypatch.setattr(text_reader, "_HEAD_BYTES", 300)
    monkeypatch.setattr(text_reader, "_BLOCK_BYTES", 300)
    rows = [f"{v * 1000:.1f} €;{i % 7};{g}" for i, (v, g) in enumerate(zip(*data, strict=True))
            for v in v[:1]]  # fmt: skip
    (tmp_path / "d.csv").write_text("\n".join(["x;y;g", *rows, "136A;1;a"]))
    with pytest.raises(ValueError, match=r"line 32 of .* has '136A' in column 'x'"):
        GroupMoments.from_files(tmp_path / "d.csv", group="g")


def test_an_odd_value_beside_decimal_commas_is_named(data, tmp_path):
    write(tmp_path / "d.csv", *data)
    with (tmp_path / "d.csv").open("a") as file:
        file.write("\n136A;1,5;2,5;a")
    line = fails("audit", "d.csv", "-g", "g", cwd=tmp_path)
    assert "line 32 of d.csv has '136A' in column 'x'" in line


def test_commas_that_may_mean_either_are_asked_about(tmp_path):
    rows = [f"{i + 1},{i:03d};{i % 4};{'ab'[i % 2]}" for i in range(30)]
    (tmp_path / "d.csv").write_text("\n".join(["x;y;g", *rows]))
    line = fails("audit", "d.csv", "-g", "g", cwd=tmp_path)
    assert "'1,000' in d.csv may be a fraction or thousands; say which with --decimal" in line
    comma, point = (
        read_table(str(tmp_path / "d.csv"), ["g"], decimal=decimal).data["x"].to_numpy()
        for decimal in (",", ".")
    )
    np.testing.assert_allclose(point, 1000 * comma)
    quoted = [f'"{i},{i % 10}",{i % 4},{"ab"[i % 2]}' for i in range(30)]
    (tmp_path / "q.csv").write_text("\n".join(["x,y,g", *quoted]))
    assert "with --decimal , (" in fails("audit", "q.csv", "-g", "g", cwd=tmp_path)
    run("audit", "q.csv", "-g", "g", "--decimal", ",", cwd=tmp_path)


@pytest.mark.parametrize("mark", [";", "\t"])
def test_points_that_may_be_thousands_are_asked_about(mark, tmp_path):
    incomes = ["1.243", "2.080", "641", "4.040", "542", "12.500", "NA", "-1.000"]
    rows = [f"{x};{i % 4};{'ab'[i % 2]}" for i, x in enumerate(incomes)]
    text = "\n".join(["x;y;g", *rows])
    (tmp_path / "d.csv").write_text(text.replace(";", mark))
    line = fails("audit", "d.csv", "-g", "g", cwd=tmp_path)
    assert "'1.243' in d.csv may be a fraction or thousands; say which with --decimal" in line
    thousands, fractions = (
        read_table(str(tmp_path / "d.csv"), ["g"], decimal=decimal, drop_missing=True).data["x"]
        for decimal in (",", ".")
    )
    assert thousands.to_pylist() == [1243, 2080, 641, 4040, 542, 12500, -1000]
    assert fractions.to_pylist() == [1.243, 2.08, 641, 4.04, 542, 12.5, -1]
    (tmp_path / "c.csv").write_text(text.replace(";", ","))
    plain = read_table(str(tmp_path / "c.csv"), ["g"], drop_missing=True)
    assert plain.data["x"].to_pylist() == fractions.to_pylist()


@pytest.mark.parametrize(
    "values",
    [
        ["1.243", "12.500", "641.000"],  # measurements to three decimals
        ["1.243", "0.500", "641"],
        ["1.243", "2.5", "641"],
        ["1.243", "1243", "641"],
        ["1.243", "1.243e2", "641"],
        ["1.243", "1000.125", "641"],
        ["1", "20", "641"],
    ],
)
def test_points_of_fractions_raise_no_question(values, tmp_path):
    rows = [f"{x};{'ab'[i % 2]}" for i, x in enumerate(values)]
    (tmp_path / "d.csv").write_text("\n".join(["x;g", *rows]))
    found = read_table(str(tmp_path / "d.csv"), ["g"]).data["x"]
    assert found.to_pylist() == [float(x) for x in values]


@pytest.mark.parametrize(("other", "value"), [("0.5", 1.243), ("0,5", 1243)])
def test_another_column_tells_what_a_point_is(other, value, tmp_path):
    rows = [f"{x};{other};{'ab'[i % 2]}" for i, x in enumerate(["1.243", "641"])]
    (tmp_path / "d.csv").write_text("\n".join(["x;y;g", *rows]))
    assert read_table(str(tmp_path / "d.csv"), ["g"]).data["x"].to_pylist() == [value, 641]


@pytest.fixture
def workbook(data, tmp_path):
    """The data as a CSV file and as a sheet, with row numbers, dates and an empty cell."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    rows = zip(data[0].tolist(), data[1].tolist(), strict=True)
    day = datetime.date(2024, 2, 1)
    for row in [
        ["id", "x", "y", "z", "day", "g"],
        *([i, *x, day, g] for i, (x, g) in enumerate(rows)),
    ]:
        book.active.append(row)
    book.create_sheet("nothing")
    book.save(tmp_path / "d.xlsx")
    write(tmp_path / "d.csv", *data, ",", ".")
    return book


def test_a_sheet_is_read_like_text(workbook, data, tmp_path):
    pytest.importorskip("python_calamine")
    sheet, text = (
        json.loads(run("audit", name, "-g", "g", "--json", "-", cwd=tmp_path).stdout)["pca"]
        for name in ("d.xlsx", "d.csv")
    )
    assert len(sheet) == 3  # row numbers and dates are left out
    assert sheet[0]["group_errors"] == pytest.approx(text[0]["group_errors"])
    workbook.active["C3"] = "136A"
    workbook.active["C4"] = None
    workbook.save(tmp_path / "odd.xlsx")
    line = fails("audit", "odd.xlsx", "-g", "g", cwd=tmp_path)
    assert "line 3 of odd.xlsx has '136A' in column 'y'" in line
    options = ["--missing-value", "136A", "--drop-missing"]
    done = run("audit", "odd.xlsx", "-g", "g", *options, cwd=tmp_path)
    assert "left out, missing values: 2 of 30 rows" in done.stdout


def test_which_sheet_is_asked_and_said(workbook, tmp_path):
    pytest.importorskip("python_calamine")
    workbook["nothing"].append(["x", "y", "g"])
    for i in range(12):
        workbook["nothing"].append([i % 5, i % 3, "ab"[i % 2]])
    workbook.save(tmp_path / "two.xlsx")
    line = fails("audit", "two.xlsx", "-g", "g", cwd=tmp_path)
    assert "has the sheets 'Sheet', 'nothing'; choose one, for example --sheet Sheet" in line
    done = run("audit", "two.xlsx", "-g", "g", "--sheet", "nothing", "--json", "-", cwd=tmp_path)
    assert json.loads(done.stdout)["group_sizes"] == [6, 6]
    run("fit", "two.xlsx", "-g", "g", "--sheet", "nothing", "-r", 1, "-o", "m", cwd=tmp_path)
    run("transform", "m", "two.xlsx", "--sheet", "nothing", "-o", "s.csv", cwd=tmp_path)
    assert "no sheet 'x'; its" in fails("audit", "two.xlsx", "--sheet", "x", cwd=tmp_path)
    assert "for spreadsheets" in fails("audit", "d.csv", "--sheet", "x", cwd=tmp_path)


def test_a_damaged_spreadsheet_is_refused(tmp_path):
    pytest.importorskip("python_calamine")
    (tmp_path / "d.xlsx").write_bytes(b"PK")
    line = fails("audit", "d.xlsx", "-g", "g", cwd=tmp_path)
    assert "d.xlsx cannot be read: it is damaged or not a spreadsheet" in line


def test_without_the_extra_a_spreadsheet_is_refused_with_the_way_out(tmp_path):
    (tmp_path / "d.xlsx").write_bytes(b"PK")
    with patch.dict(sys.modules, {"python_calamine": None}):
        line = fails("audit", "d.xlsx", "-g", "g", cwd=tmp_path)
    assert 'pip install "fairpca[excel]", or save the sheet as CSV' in line


def test_several_points_in_a_number_separate_thousands(tmp_path):
    rows = "".join(f"{'fm'[i % 2]};{12 + i}.{600 + i};{i % 7}\n" for i in range(40))
    (tmp_path / "d.csv").write_text(f"sex;income;x\n{rows}m;5.654.006;3\n")
    line = fails("audit", "d.csv", "-g", "sex", cwd=tmp_path)
    assert "if its points separate thousands, pass --decimal ," in line
    run("audit", "d.csv", "-g", "sex", "--decimal", ",", "-r", 1, cwd=tmp_path)
