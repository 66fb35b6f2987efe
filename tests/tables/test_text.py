"""CSV and TSV files: types, encodings, endings."""

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from helpers.data import assert_same_moments, make_groups
from helpers.tables import as_table

from fairpca import FairPCA, GroupMoments, read_table
from fairpca._tables import read


def test_csv_types_are_not_fixed_by_the_first_rows(data, tmp_path, monkeypatch):
    monkeypatch.setattr(read, "HEAD_ROWS", 100)
    rows = [f"{i},{i % 2 == 0},a" for i in range(500)]
    rows += [f"{i}.5,{i % 2 == 0},b" for i in range(500)]
    (tmp_path / "d.csv").write_text("\n".join(["x,flag,g", *rows, ""]))
    moments = GroupMoments.from_files(
        tmp_path / "d.csv", sensitive_features="g", features=["x", "flag"]
    )
    X = np.array([[i + (j * 0.5), i % 2 == 0] for j in range(2) for i in range(500)], float)
    assert_same_moments(moments, GroupMoments.from_data(X, np.repeat(["a", "b"], 500)))


def test_csv_need_not_end_in_a_line_break(tmp_path):
    lines = ["x,y,sex", *(f'{i}.5,{i * i % 9},"g{i % 2}"' for i in range(30))]
    whole = "\n".join(lines)
    path = tmp_path / "d.csv"
    path.write_text(whole)
    assert GroupMoments.from_files(path, sensitive_features="sex").counts.sum() == 30
    for cut in range(1, len(lines[-1])):
        path.write_text(whole[:-cut])
        left = lines[-1][:-cut]
        with pytest.raises(
            ValueError, match=r"line 31 of .*d\.csv (has|are never closed)|d\.csv .*line 31"
        ):
            GroupMoments.from_files(path, sensitive_features="sex")
        assert left.count(",") < 2 or left.endswith(",") or left.count('"') == 1
    path.write_text(whole.replace('"', ""))
    assert GroupMoments.from_files(path, sensitive_features="sex").counts.tolist() == [15, 15]


@pytest.mark.parametrize("value", ["1.2x", "?"])
def test_column_that_is_text_by_a_few_values_is_not_left_out(value, data, tmp_path):
    X, sex = data
    table = as_table(X, sex, code=[f"{i}A" if i % 5 else str(i) for i in range(len(sex))])
    pa_csv.write_csv(table, tmp_path / "d.csv")
    fair = FairPCA(2).fit_files(tmp_path / "d.csv", sensitive_features="sex")
    assert "code" not in fair.feature_names_in_
    lines = (tmp_path / "d.csv").read_text().split("\n")
    person, _, *rest = lines[40].split(",")
    lines[40] = ",".join([person, value, *rest])
    (tmp_path / "d.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"line 41 .* in column 'x0', which otherwise"):
        FairPCA(2).fit_files(tmp_path / "d.csv", sensitive_features="sex")
    others = ["x1", "x2", "x3"]
    fair = FairPCA(2).fit_files(tmp_path / "d.csv", sensitive_features="sex", features=others)
    assert fair.feature_names_in_.tolist() == others


def test_such_a_column_after_a_file_without_rows(data, tmp_path):
    (tmp_path / "a.csv").write_text("a,b,sex\n")
    rows = [f"{i},{'?' if i == 4 else i * i % 7},{'fm'[i % 2]}" for i in range(50)]
    (tmp_path / "b.csv").write_text("\n".join(["a,b,sex", *rows]))
    with pytest.raises(ValueError, match=r"line 6 of .*b\.csv has '\?' in column 'b'"):
        GroupMoments.from_files(tmp_path, sensitive_features="sex")


def test_index_of_a_pandas_frame_in_text_is_no_feature(data, tmp_path):
    X, sex = data
    as_table(X, sex).to_pandas().to_csv(tmp_path / "d.csv")
    moments = GroupMoments.from_files(tmp_path / "d.csv", sensitive_features="sex")
    assert moments.feature_names == ["x0", "x1", "x2", "x3"]


def test_encoding_of_text(tmp_path):
    rng = np.random.default_rng(0)
    groups = ["wm\u00e4", "m\u00e4"]
    lines = [f"{rng.normal()},{rng.normal()},{groups[i % 2]}" for i in range(40)]
    (tmp_path / "l.csv").write_bytes(("a,b,g\n" + "\n".join(lines)).encode("latin-1"))
    with pytest.raises(ValueError, match=r"line 2\); name .* encoding='latin-1'"):
        FairPCA(1).fit_files(tmp_path / "l.csv", sensitive_features="g")
    for unknown in ("klingon", "hex", 7):
        with pytest.raises(ValueError, match=f"encoding {unknown!r} is not known"):
            FairPCA(1).fit_files(tmp_path / "l.csv", sensitive_features="g", encoding=unknown)
    fair = FairPCA(1).fit_files(tmp_path / "l.csv", sensitive_features="g", encoding="latin-1")
    assert fair.groups_.tolist() == sorted(groups)
    scores = fair.transform_files(
        tmp_path / "l.csv", tmp_path / "s.parquet", keep="g", encoding="latin-1"
    )
    assert pq.read_table(scores)["g"][0].as_py() == groups[0]


def test_lines_longer_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "_LINE_BYTES", 1 << 10)
    X, groups = make_groups((9, 5), d=300)
    names = [f"a_rather_long_name_{j}" for j in range(300)]
    rows = [",".join([*map(repr, row.tolist()), g]) for row, g in zip(X, groups, strict=True)]
    (tmp_path / "wide.csv").write_text("\n".join([",".join([*names, "g"]), *rows]))
    moments = GroupMoments.from_files(tmp_path / "wide.csv", sensitive_features="g")
    assert_same_moments(moments, GroupMoments.from_data(X, groups))


def test_reading_goes_on_where_a_fast_cast_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "HEAD_ROWS", 100)
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(70_000, 2)).round(4), rng.choice(["a", "b"], 70_000)
    rows = [f"{x},{y},{g}" for (x, y), g in zip(X.tolist(), groups, strict=True)]
    rows[69_000] = f'"1,000.5",{X[69_000, 1]}, NA '  # a thousand, and a group that is missing
    rows[69_500] = f" NA ,{X[69_500, 1]},a"
    X[69_000, 0] = 1000.5
    (tmp_path / "d.csv").write_text("\n".join(["x,y,g", *rows]))
    moments = GroupMoments.from_files(
        tmp_path / "d.csv", sensitive_features="g", folds=3, drop_missing=True
    )
    assert moments.n_dropped == 2
    keep = np.ones(len(X), bool)
    keep[[69_000, 69_500]] = False
    assert_same_moments(moments, GroupMoments.from_data(X[keep], groups[keep]))


def test_plain_numbers_are_cast_as_they_are_read(tmp_path):
    X, groups = make_groups((150, 150), d=1200)
    rows = [
        ",".join([*map(str, row), g]) for row, g in zip(X.round(3).tolist(), groups, strict=True)
    ]
    (tmp_path / "wide.csv").write_text(
        "\n".join([",".join([*(f"x{j}" for j in range(1200)), "g"]), *rows])
    )
    assert len(read_table(tmp_path / "wide.csv", "g").feature_names) == 1200
    table = read.open_table(tmp_path / "wide.csv")
    assert all(table.columns[f"x{j}"].declared == "DOUBLE" for j in range(1200))
