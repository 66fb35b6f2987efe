"""CSV and TSV files: types, encodings, endings."""

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from helpers.command import run
from helpers.data import assert_same_moments, make_groups
from helpers.files import fitted_to, moments_of, read_table, write_scores_of
from helpers.tables import as_table

from fairpca import FairPCA, GroupMoments


def test_csv_types_are_not_fixed_by_the_first_rows(data, tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.cli.reader.table.HEAD_ROWS", 100)
    rows = [f"{i},{i % 2 == 0},a" for i in range(500)]
    rows += [f"{i}.5,{i % 2 == 0},b" for i in range(500)]
    (tmp_path / "d.csv").write_text("\n".join(["x,flag,g", *rows, ""]))
    moments = moments_of(tmp_path / "d.csv", sensitive_features="g", features=["x", "flag"])
    X = np.array([[i + (j * 0.5), i % 2 == 0] for j in range(2) for i in range(500)], float)
    assert_same_moments(moments, GroupMoments.from_data(X, np.repeat(["a", "b"], 500)))


def test_csv_need_not_end_in_a_line_break(tmp_path):
    lines = ["x,y,sex", *(f'{i}.5,{i * i % 9},"g{i % 2}"' for i in range(30))]
    whole = "\n".join(lines)
    path = tmp_path / "d.csv"
    path.write_text(whole)
    assert moments_of(path, sensitive_features="sex").counts.sum() == 30
    for cut in range(1, len(lines[-1])):
        path.write_text(whole[:-cut])
        left = lines[-1][:-cut]
        with pytest.raises(
            ValueError, match=r"line 31 of .*d\.csv (has|are never closed)|d\.csv .*line 31"
        ):
            moments_of(path, sensitive_features="sex")
        assert left.count(",") < 2 or left.endswith(",") or left.count('"') == 1
    path.write_text(whole.replace('"', ""))
    assert moments_of(path, sensitive_features="sex").counts.tolist() == [15, 15]


@pytest.mark.parametrize("value", ["1.2x", "?"])
def test_column_that_is_text_by_a_few_values_is_not_left_out(value, data, tmp_path):
    X, sex = data
    table = as_table(X, sex, code=[f"{i}A" if i % 5 else str(i) for i in range(len(sex))])
    pa_csv.write_csv(table, tmp_path / "d.csv")
    fair = fitted_to(FairPCA(2), tmp_path / "d.csv", sensitive_features="sex")
    assert "code" not in fair.feature_names_in_
    lines = (tmp_path / "d.csv").read_text().split("\n")
    person, _, *rest = lines[40].split(",")
    lines[40] = ",".join([person, value, *rest])
    (tmp_path / "d.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"line 41 .* in column 'x0', which otherwise"):
        fitted_to(FairPCA(2), tmp_path / "d.csv", sensitive_features="sex")
    others = ["x1", "x2", "x3"]
    fair = fitted_to(FairPCA(2), tmp_path / "d.csv", sensitive_features="sex", features=others)
    assert fair.feature_names_in_.tolist() == others


def test_such_a_column_after_a_file_without_rows(data, tmp_path):
    (tmp_path / "a.csv").write_text("a,b,sex\n")
    rows = [f"{i},{'?' if i == 4 else i * i % 7},{'fm'[i % 2]}" for i in range(50)]
    (tmp_path / "b.csv").write_text("\n".join(["a,b,sex", *rows]))
    with pytest.raises(ValueError, match=r"line 6 of .*b\.csv has '\?' in column 'b'"):
        moments_of(tmp_path, sensitive_features="sex")


def test_index_of_a_pandas_frame_in_text_is_no_feature(data, tmp_path):
    X, sex = data
    as_table(X, sex).to_pandas().to_csv(tmp_path / "d.csv")
    moments = moments_of(tmp_path / "d.csv", sensitive_features="sex")
    assert moments.feature_names == ["x0", "x1", "x2", "x3"]


def test_encoding_of_text(tmp_path):
    rng = np.random.default_rng(0)
    groups = ["wm\u00e4", "m\u00e4"]
    lines = [f"{rng.normal()},{rng.normal()},{groups[i % 2]}" for i in range(40)]
    (tmp_path / "l.csv").write_bytes(("a,b,g\n" + "\n".join(lines)).encode("latin-1"))
    with pytest.raises(ValueError, match=r"line 2\); name .* encoding='latin-1'"):
        fitted_to(FairPCA(1), tmp_path / "l.csv", sensitive_features="g")
    for unknown in ("klingon", "hex", 7):
        with pytest.raises(ValueError, match=f"encoding {unknown!r} is not known"):
            fitted_to(FairPCA(1), tmp_path / "l.csv", sensitive_features="g", encoding=unknown)
    fair = fitted_to(FairPCA(1), tmp_path / "l.csv", sensitive_features="g", encoding="latin-1")
    assert fair.groups_.tolist() == sorted(groups)
    scores = write_scores_of(
        fair, tmp_path / "l.csv", tmp_path / "s.parquet", keep="g", encoding="latin-1"
    )
    assert pq.read_table(scores)["g"][0].as_py() == groups[0]


def test_a_first_line_of_more_than_131_kilobytes(tmp_path):
    names = [f"a_rather_long_name_of_a_column_{j}" for j in range(4000)]
    rows = [",".join([*["1.5"] * 3999, str(i), "ab"[i % 2]]) for i in range(4)]
    (tmp_path / "wide.csv").write_text("\n".join([",".join([*names, "g"]), *rows]))
    found = read_table(tmp_path / "wide.csv", "g", features=names[-2:])
    assert found.data[names[-1]].to_pylist() == [0, 1, 2, 3]


@pytest.mark.parametrize("missing", ["NA", "N/A", "NULL", "nan", ""])
def test_missing_values_may_come_late(missing, tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.cli.reader.table.HEAD_ROWS", 100)
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(1000, 2)).round(4), rng.choice(["a", "b"], 1000)
    rows = [f"{x},{y},{g}" for (x, y), g in zip(X.tolist(), groups, strict=True)]
    rows[700] = f"{X[700, 0]},{X[700, 1]}, {missing} "
    rows[800] = f"{missing},{X[800, 1]},a"
    (tmp_path / "d.csv").write_text("\n".join(["x,y,g", *rows]))
    moments = moments_of(tmp_path / "d.csv", sensitive_features="g", folds=3, missing="drop")
    assert moments.n_dropped == 2
    keep = np.ones(len(X), bool)
    keep[[700, 800]] = False
    assert_same_moments(moments, GroupMoments.from_data(X[keep], groups[keep]))


@pytest.mark.parametrize(
    ("late", "advice", "options", "value"),
    [
        ('"1,000.5"', "decimal='.'", {"decimal": "."}, 1000.5),
        (" NA ", r"missing_values=\['NA'\]", {"missing_values": "NA"}, np.nan),
        ("-", r"missing_values=\['-'\]", {"missing_values": "-"}, np.nan),
    ],
)
def test_a_late_value_in_another_notation_is_refused_with_the_way_out(
    late, advice, options, value, tmp_path, monkeypatch
):
    monkeypatch.setattr("fairpca.cli.reader.table.HEAD_ROWS", 100)
    rows = [f"{i % 7 / 4},{i % 3},{'ab'[i % 2]}" for i in range(400)]
    rows[300] = f"{late},1,a"
    (tmp_path / "d.csv").write_text("\n".join(["x,y,g", *rows]))
    place = r"line 302 of .*d\.csv has '.*' in column 'x', which otherwise holds numbers"
    with pytest.raises(ValueError, match=f"{place}.*{advice}"):
        read_table(tmp_path / "d.csv", "g")
    table = read_table(tmp_path / "d.csv", "g", missing="available", **options)
    np.testing.assert_array_equal(table.data["x"][300].as_py(), value)


def test_files_with_other_columns_are_refused_with_the_way_out(tmp_path):
    (tmp_path / "a.csv").write_text("x,y,g\n1,2,a\n3,5,b\n")
    (tmp_path / "b.csv").write_text("g,more,y,x\na,,7,8\nb,,9,4\n")
    with pytest.raises(ValueError, match=r"b\.csv does not begin with the same line as .*a\.csv"):
        read_table(tmp_path, "g")
    one, two = (f"SELECT x, y, g FROM '{tmp_path}/{name}.csv'" for name in "ab")
    table = read_table(f"{one} UNION ALL {two}", "g", features=["x", "y"])
    assert table.data.to_pydict() == {"x": [1, 3, 8, 4], "y": [2, 5, 7, 9]}
    (tmp_path / "b.csv").write_text("x,g\n1,a\n")
    with pytest.raises(ValueError, match=r"no column 'y' in .*b\.csv"):
        read_table(tmp_path, "g")


def test_a_later_file_is_named_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.cli.reader.table.HEAD_ROWS", 2)
    (tmp_path / "a.csv").write_text("x,y,g\n1,2,a\n3,5,b\n")
    (tmp_path / "b.csv").write_text("x,y,g\n8,7,a\n4,odd,b\n")
    for options in ({}, {"decimal": "."}):
        with pytest.raises(ValueError, match=r"line 3 of .*b\.csv has 'odd' in column 'y'"):
            read_table(tmp_path, "g", **options)


def test_a_thousand_columns_of_text(tmp_path):
    X, groups = make_groups((30, 30), d=1200)
    rows = [
        ",".join([*map(str, row), g]) for row, g in zip(X.round(3).tolist(), groups, strict=True)
    ]
    (tmp_path / "wide.csv").write_text(
        "\n".join([",".join([*(f"x{j}" for j in range(1200)), "g"]), *rows])
    )
    assert len(read_table(tmp_path / "wide.csv", "g").feature_names) == 1200


@pytest.mark.filterwarnings("always:column 'sex' of X")
def test_a_model_is_judged_by_groups_that_are_among_its_features(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"{x:.3f},{y:.3f},{z:.3f},{i % 2},{'uvw'[i % 3]}"
        for i, (x, y, z) in enumerate(rng.normal(size=(300, 3)))
    ]
    (tmp_path / "d.csv").write_text("\n".join(["x,y,z,sex,race", *rows]))
    fitted_to(
        FairPCA(2), tmp_path / "d.csv", sensitive_features="race", features=["x", "y", "z", "sex"]
    ).save(tmp_path / "m.safetensors")
    found = run("audit", "d.csv", "--model", "m.safetensors", "--group", "sex", cwd=tmp_path)
    assert "column 'sex' of X tells the group" in found.stderr
    assert "sex" in found.stdout


def test_lines_are_counted_as_in_an_editor(tmp_path):
    (tmp_path / "d.csv").write_text('a,note,g\n1,"x\ny\nz",u\n2,o,v\n\n3,o,u\nbad,o,v\n5,6,u\n')
    with pytest.raises(ValueError, match=r"line 8 of .*d\.csv has 'bad' in column 'a'"):
        read_table(tmp_path / "d.csv", "g", features="a")
    text = (tmp_path / "d.csv").read_text()
    (tmp_path / "d.csv").write_text(text.replace("bad", ""))
    with pytest.raises(ValueError, match=r"the first is line 8 of"):
        read_table(tmp_path / "d.csv", "g", features="a")


def test_other_encodings_are_recognised(tmp_path):
    text = "a,g\n1,u\n2,v\n"
    (tmp_path / "d.csv").write_bytes(text.encode("utf-16-le"))
    with pytest.raises(ValueError, match=r"not UTF-8 text .*name its encoding"):
        read_table(tmp_path / "d.csv", "g")
    (tmp_path / "d.csv").write_bytes(text.encode("utf-8-sig"))
    assert read_table(tmp_path / "d.csv", "g", encoding="latin-1").feature_names == ["a"]
