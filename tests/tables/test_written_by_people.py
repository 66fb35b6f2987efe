"""Numbers, names and missing values as people and their programs write them."""

import json

import numpy as np
import pytest
from helpers.command import fails, run
from helpers.data import assert_same_moments

from fairpca import GroupMoments
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
    line = fails("audit", "d.csv", "-g", "c3", "--no-header", cwd=tmp_path)
    assert "line 31 of d.csv has 'odd' in column 'c1'" in line


def test_texts_that_stand_for_missing_values(data, tmp_path):
    X, groups = data
    write(tmp_path / "d.csv", X, groups, ",", ".", names="x;y;z;g")
    text = (tmp_path / "d.csv").read_text() + "\n1.0,unknown,2.0,a\n1.0,-,2.0,b"
    (tmp_path / "d.csv").write_text(text)
    line = fails("audit", "d.csv", "-g", "g", cwd=tmp_path)
    assert "'unknown' in column 'y'" in line
    assert "--missing-value 'unknown'" in line
    told = ["--missing-value", "unknown", "--missing-value", "-", "--drop-missing"]
    done = run("audit", "d.csv", "-g", "g", *told, cwd=tmp_path)
    assert "left out, missing values: 2 of 32 rows" in done.stdout
    assert run("audit", "d.csv", "-g", "g", "--drop-column", "y", cwd=tmp_path).stdout


def test_a_spreadsheet_is_refused_with_the_way_out(tmp_path):
    (tmp_path / "d.xlsx").write_bytes(b"PK")
    line = fails("audit", "d.xlsx", "-g", "g", cwd=tmp_path)
    assert "d.xlsx is a spreadsheet; save its sheet as CSV" in line
