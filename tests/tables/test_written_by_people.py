"""Numbers, names and missing values as people and their programs write them."""

import datetime
import sys
from unittest.mock import patch

import numpy as np
import pytest
from helpers.data import assert_same_moments
from helpers.files import fitted_to, moments_of, read_table, write_scores_of

from fairpca import FairPCA, GroupMoments
from fairpca.exceptions import TableError


def refused(path, problem, **options):
    """The error that reading a file ends with."""
    with pytest.raises(TableError) as caught:
        read_table(path, "g", **options)
    assert caught.value.problem == problem
    return caught.value


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
    moments = moments_of(tmp_path / "d.csv", sensitive_features="g")
    assert_same_moments(moments, GroupMoments.from_data(*data))


def test_a_decimal_point_stays_one_beside_semicolons(data, tmp_path):
    write(tmp_path / "d.csv", *data, ";", ".")
    assert_same_moments(
        moments_of(tmp_path / "d.csv", sensitive_features="g"), GroupMoments.from_data(*data)
    )


def test_the_decimal_point_can_be_said(data, tmp_path):
    write(tmp_path / "d.csv", *data)
    detected = read_table(tmp_path / "d.csv", "g")
    said = read_table(tmp_path / "d.csv", "g", decimal=",")
    assert detected.data.equals(said.data)
    assert "pass '.' or ','" in refused(tmp_path / "d.csv", "decimal", decimal=";").advice


def test_files_without_names(data, tmp_path):
    X, groups = data
    write(tmp_path / "d.csv", X, groups, ",", ".", names="")
    table = read_table(str(tmp_path / "d.csv"), ["c3"], header=False)
    assert table.feature_names == ["c0", "c1", "c2"]
    np.testing.assert_allclose(table.data.to_pandas().to_numpy(), X, rtol=1e-12)
    with (tmp_path / "d.csv").open("a") as file:
        file.write("\n1.0,odd,2.0,a")
    assert "first line holds no names" in refused(tmp_path / "d.csv", "unknown_column").advice
    with pytest.raises(TableError, match=r"line 31 of .*d.csv has 'odd' in column 'c1'"):
        read_table(tmp_path / "d.csv", "c3", header=False)


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
    error = refused(tmp_path / "d.csv", "ragged")
    assert "line 2 of" in error.fact
    assert "has more than 1 values where the first line has 1" in error.fact
    assert "the first if it is a title" in error.advice


def test_values_are_not_taken_for_names(data, tmp_path):
    write(tmp_path / "d.csv", data[0], ["1", "2", "1"] * 10, ",", ".", names="")
    assert "header=False" in refused(tmp_path / "d.csv", "no_names").advice
    read_table(tmp_path / "d.csv", "c3", header=False)
    write(tmp_path / "n.csv", data[0], ["1", "2", "1"] * 10, ",", ".", names="0;1;2;3")
    read_table(tmp_path / "n.csv", "3")  # as pandas numbers its columns


def test_a_second_line_of_names_is_recognised(data, tmp_path):
    write(tmp_path / "d.csv", *data, ",", ".", names="x;y;z;g\nX1;X2;X3;G")
    error = refused(tmp_path / "d.csv", "odd_value")
    assert "line 2 of" in error.fact
    assert (error.facts["column"], error.facts["value"]) == ("x", "X1")
    assert "leave out the line, if it holds names" in error.advice


def test_texts_that_stand_for_missing_values(data, tmp_path):
    X, groups = data
    write(tmp_path / "d.csv", X, groups, ",", ".", names="x;y;z;g")
    text = (tmp_path / "d.csv").read_text() + "\n1.0,unknown,2.0,a\n1.0,-,2.0,b"
    (tmp_path / "d.csv").write_text(text)
    error = refused(tmp_path / "d.csv", "odd_value")
    assert error.facts["value"] == "unknown"
    assert "missing_values=['unknown']" in error.advice
    told = {"missing_values": ["unknown", "-"], "missing": "drop"}
    assert read_table(tmp_path / "d.csv", "g", **told).record.n_dropped == 2
    assert read_table(tmp_path / "d.csv", "g", drop="y").feature_names == ["x", "z"]


def values_of(texts, tmp_path, **options):
    """The numbers that a column of these texts becomes, or None if it is left out."""
    rows = [f'"{text}";{i};{"ab"[i % 2]}' for i, text in enumerate(texts)]
    (tmp_path / "v.csv").write_text("\n".join(["x;y;g", *rows]))
    table = read_table(tmp_path / "v.csv", "g", **options)
    return table.data["x"].to_pylist() if "x" in table.feature_names else None


@pytest.mark.parametrize(
    ("texts", "decimal", "values"),
    [
        (["1,234.5", "12", ".5", "-1,000,000"], ".", [1234.5, 12, 0.5, -1e6]),
        (["1.234,5", "12", "12.000.000", "0,25"], ",", [1234.5, 12, 12e6, 0.25]),
        ([" 1e3 ", "+5", "-.5"], ".", [1000, 5, -0.5]),
        (["true", "FALSE", "True"], ".", [1, 0, 1]),
    ],
)
def test_numbers_as_people_write_them(texts, decimal, values, tmp_path):
    assert values_of(texts, tmp_path) == values
    assert values_of(texts, tmp_path, decimal=decimal) == values


@pytest.mark.parametrize(
    "texts",
    [["1,2345"], ["$5", "€6"], ["5 %", "6"], ["1,234 567"], ["a"], ["-"], ["1-2"], ["2020-01-01"],
     ["$"], ["12 34"], ["0x1F"], ["1'23"]],
)  # fmt: skip
def test_what_is_no_number_is_left_out_as_text(texts, tmp_path):
    assert values_of([*texts, *texts], tmp_path, decimal=".") is None


def test_an_odd_value_after_the_first_rows_is_named(data, tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.cli.reader.table.HEAD_ROWS", 10)
    write(tmp_path / "d.csv", *data)
    with (tmp_path / "d.csv").open("a") as file:
        file.write("\n136A;1,5;2,5;a")
    with pytest.raises(ValueError, match=r"line 32 of .* has '136A' in column 'x'"):
        moments_of(tmp_path / "d.csv", sensitive_features="g")


def test_an_odd_value_beside_decimal_commas_is_named(data, tmp_path):
    write(tmp_path / "d.csv", *data)
    with (tmp_path / "d.csv").open("a") as file:
        file.write("\n136A;1,5;2,5;a")
    assert "line 32 of" in refused(tmp_path / "d.csv", "odd_value").fact


def test_commas_that_may_mean_either_are_asked_about(tmp_path):
    rows = [f"{i + 1},{i:03d};{i % 4};{'ab'[i % 2]}" for i in range(30)]
    (tmp_path / "d.csv").write_text("\n".join(["x;y;g", *rows]))
    assert "'1,000' in column 'x'" in refused(tmp_path / "d.csv", "decimal").fact
    comma, point = (
        read_table(str(tmp_path / "d.csv"), ["g"], decimal=decimal).data["x"].to_numpy()
        for decimal in (",", ".")
    )
    np.testing.assert_allclose(point, 1000 * comma)
    quoted = [f'"{i},{i % 10}",{i % 4},{"ab"[i % 2]}' for i in range(30)]
    (tmp_path / "q.csv").write_text("\n".join(["x,y,g", *quoted]))
    found = read_table(tmp_path / "q.csv", "g", features="x").data["x"].to_pylist()
    assert found == [float(f"{i}.{i % 10}") for i in range(30)]


@pytest.mark.parametrize("mark", [";", "\t", ","])
def test_points_are_thousands_only_if_it_is_said(mark, tmp_path):
    incomes = ["1.243", "2.080", "641", "4.040", "542", "12.500", "NA", "-1.000"]
    rows = [f"{x}{mark}{i % 4}{mark}{'ab'[i % 2]}" for i, x in enumerate(incomes)]
    (tmp_path / "d.csv").write_text("\n".join([f"x{mark}y{mark}g", *rows]))
    told, thousands = (
        read_table(tmp_path / "d.csv", "g", decimal=decimal, missing="drop").data["x"]
        for decimal in (None, ",")
    )
    assert told.to_pylist() == [1.243, 2.08, 641, 4.04, 542, 12.5, -1]
    assert thousands.to_pylist() == [1243, 2080, 641, 4040, 542, 12500, -1000]


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


@pytest.mark.parametrize(("other", "value"), [("0.5", 1.243), ("1.000,5", 1243)])
def test_another_column_tells_what_a_point_is(other, value, tmp_path):
    rows = [f"{x};{other};{'ab'[i % 2]}" for i, x in enumerate(["1.243", "641"])]
    (tmp_path / "d.csv").write_text("\n".join(["x;y;g", *rows]))
    assert read_table(str(tmp_path / "d.csv"), ["g"]).data["x"].to_pylist() == [value, 641]


def test_two_decimal_marks_are_not_guessed(tmp_path):
    rows = [f"{x};0,5;{'ab'[i % 2]}" for i, x in enumerate(["1.243", "641"])]
    (tmp_path / "d.csv").write_text("\n".join(["x;y;g", *rows]))
    with pytest.raises(TableError, match=r"'y'.*'x'.*decimal=") as caught:
        read_table(tmp_path / "d.csv", "g")
    assert caught.value.problem == "decimal"
    found = read_table(tmp_path / "d.csv", "g", decimal=",").data
    assert found["x"].to_pylist() == [1243, 641]


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
    sheet = read_table(tmp_path / "d.xlsx", "g")
    text = read_table(tmp_path / "d.csv", "g")
    assert sheet.feature_names == text.feature_names == ["x", "y", "z"]
    assert sheet.record.left_out == {"id": "identifier", "day": "date"}
    np.testing.assert_allclose(sheet.data.to_pandas(), text.data.to_pandas(), rtol=1e-12)
    workbook.active["C3"] = "136A"
    workbook.active["C4"] = None
    workbook.save(tmp_path / "odd.xlsx")
    error = refused(tmp_path / "odd.xlsx", "odd_value")
    assert "line 3 of" in error.fact
    assert "odd.xlsx has '136A' in column 'y'" in error.fact
    options = {"missing_values": "136A", "missing": "drop", "drop": "id"}
    assert read_table(tmp_path / "odd.xlsx", "g", **options).record.n_dropped == 2


def test_which_sheet_is_asked_and_said(workbook, tmp_path):
    pytest.importorskip("python_calamine")
    workbook["nothing"].append(["x", "y", "g"])
    for i in range(12):
        workbook["nothing"].append([i % 5, i % 3, "ab"[i % 2]])
    workbook.save(tmp_path / "two.xlsx")
    assert "several sheets, 'Sheet', 'nothing'" in refused(tmp_path / "two.xlsx", "sheet").fact
    assert read_table(tmp_path / "two.xlsx", "g", sheet="nothing").data.num_rows == 12
    assert "no sheet 'x'" in refused(tmp_path / "two.xlsx", "sheet", sheet="x").fact
    assert "for a spreadsheet" in refused(tmp_path / "d.csv", "sheet", sheet="x").fact


def test_a_damaged_spreadsheet_is_refused(tmp_path):
    pytest.importorskip("python_calamine")
    (tmp_path / "d.xlsx").write_bytes(b"PK")
    assert "damaged or not a spreadsheet" in refused(tmp_path / "d.xlsx", "damaged").fact


def test_without_the_extra_a_spreadsheet_is_refused_with_the_way_out(tmp_path):
    (tmp_path / "d.xlsx").write_bytes(b"PK")
    with (
        patch.dict(sys.modules, {"python_calamine": None}),
        pytest.raises(ImportError, match="pip install python-calamine, or save the sheet as CSV"),
    ):
        read_table(tmp_path / "d.xlsx", "g")


def test_several_points_in_a_number_separate_thousands(tmp_path):
    rows = "".join(f"{'fm'[i % 2]};{12 + i}.{600 + i};{i % 7}\n" for i in range(40))
    (tmp_path / "d.csv").write_text(f"g;income;x\n{rows}m;5.654.006;3\n")
    assert "decimal=','" in refused(tmp_path / "d.csv", "decimal").advice
    assert read_table(tmp_path / "d.csv", "g", decimal=",").data["income"][-1].as_py() == 5654006


MESSY = {
    "byte order mark": ("\ufeffx,y,g\n1,2,a\n3,4,b\n", {}),
    "quoted line ends": ('x,note,y,g\n1,"two\nlines",2,a\n3,"a ""word""",4,b\n', {}),
    "blank lines": ("x,y,g\n1,2,a\n\n3,4,b\n\n", {}),
    "windows line ends": ("x,y,g\r\n1,2,a\r\n3,4,b\r\n", {}),
    "old mac line ends": ("x,y,g\r1,2,a\r3,4,b\r", {}),
    "line ends of two kinds": ("x,y,g\r\n1,2,a\n3,4,b\r\n", {}),
    "columns without names": (",x,y,g,,\n7,1,2,a,,\n8,3,4,b,,\n", {}),
    "blanks in the names": ("x, y , g\n1,2,a\n3,4,b\n", {}),
    "a comma in a name": ('"x",y,"g"\n1,2,a\n3,4,b\n', {}),
    "hash lines are rows": ("x,y,g\n1,2,a\n3,4,b\n", {}),
    "semicolons, a comma in a name": ('x;y;"k, l";g\n1;2;u;a\n3;4;v;b\n', {}),
}


@pytest.mark.parametrize("name", MESSY)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_messy_files_are_read_rightly(name, encoding, tmp_path):
    text, options = MESSY[name]
    (tmp_path / "d.csv").write_bytes(text.encode(encoding))
    table = read_table(tmp_path / "d.csv", "g", **options)
    assert table.feature_names == ["x", "y"]
    assert table.data.to_pydict() == {"x": [1.0, 3.0], "y": [2.0, 4.0]}
    assert table.sensitive_features.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        (" \n \n", "empty"),
        ("x,y,g\n", "no_rows"),
        ("x,y,g\n1,2,a\n3,4\n", "ragged"),
        ("x,y,g\n1,2,a\n3,4,b,5\n", "ragged"),
        ('x,y,g\n1,2,a\n3,"4,b\n', "quote"),
        ("x,x,g\n1,2,a\n3,4,b\n", "twin_columns"),
        ("x,y,g\n" + "1,2,a\n" * 9 + "#5,6,b\n", "odd_value"),
        ("x,y,h\n1,2,a\n3,4,b\n", "unknown_column"),
        ("day,g\n2020-01-01,a\n2020-01-02,b\n", "no_features"),
        ("x,g\n1,a\n2,a\n", "one_group"),
        ("x,g\n" + "".join(f"{i % 7},{i}.5\n" for i in range(60)), "many_groups"),
    ],
)
def test_other_files_are_refused_in_words(text, problem, tmp_path):
    (tmp_path / "d.csv").write_text(text)
    assert "d.csv" in str(refused(tmp_path / "d.csv", problem)) or problem == "many_groups"


def test_files_are_fitted_to_as_tables_are_read(tmp_path):
    rng = np.random.default_rng(0)
    texts = [f"{number:.3f}".replace(".", ",") for number in rng.uniform(1, 9, 400).tolist()]
    rows = [[*texts[i : i + 4], "fm"[i % 8 == 0]] for i in range(0, 400, 4)]
    rows[7][0] = "-9"
    lines = [";".join(row) for row in (["a", "b", "c", "d", "sex"], *rows)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines), "utf-8")
    how = {"decimal": ",", "missing_values": "-9"}  # 1,234 could be a thousand
    columns = {"sensitive_features": "sex", "drop": "d", "missing": "drop"}
    people = read_table(path, **columns, **how)
    assert people.data.num_rows == 99
    made = moments_of(path, **columns, **how)
    assert_same_moments(made, GroupMoments.from_data(people.data, people.sensitive_features))
    fair = fitted_to(FairPCA(2), path, **columns, **how)
    scores = write_scores_of(fair, path, tmp_path / "s.csv", missing="drop", **how)
    written = np.loadtxt(scores, delimiter=",", skiprows=1)
    np.testing.assert_allclose(written, fair.transform(people.data), rtol=1e-9)
