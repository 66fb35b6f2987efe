"""Python and the command read tables by one set of rules."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.command import fails, run

from fairpca import GroupMoments
from fairpca._tables import text_reader
from fairpca.report import read_table

pytest.importorskip("typer", reason="the command line needs the cli extra")


def rows_of(labels, n=12):
    rng = np.random.default_rng(0)
    return [f"{rng.normal():.3f},{rng.normal():.3f},{labels[i % 3]}" for i in range(n)]


def groups_of_command(*arguments, cwd):
    numbers = json.loads(run("audit", *arguments, "--json", "-", cwd=cwd).stdout)
    return dict(zip(numbers["groups"], numbers["group_sizes"], strict=True))


@pytest.mark.parametrize("labels", [["01", "1", "2"], ["1.0", "1", "true"], ["1e1", "10", "x"]])
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_labels_in_text_are_text(labels, ending, tmp_path):
    text = "\n".join(["a,b,g", *rows_of(labels)])
    path = tmp_path / f"d.{ending}"
    path.write_text(text if ending == "csv" else text.replace(",", "\t"))
    moments = GroupMoments.from_files(path, group="g")
    sizes = dict(zip(moments.groups.tolist(), moments.counts.tolist(), strict=True))
    assert sizes == dict.fromkeys(sorted(labels), 4)
    assert groups_of_command(path, "-g", "g", cwd=tmp_path) == sizes
    assert set(read_table(str(path), ["g"]).sensitive_features) == set(labels)


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        ([2, 10, 3], ["10", "2", "3"]),
        ([True, False, True], ["False", "True"]),
        ([0.5, 1.0, 2.0], ["0.5", "1.0", "2.0"]),
        (["x", "01", "1"], ["01", "1", "x"]),
    ],
)
def test_labels_with_types_keep_them_and_are_shown_as_text(labels, texts, tmp_path):
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=12), "b": rng.normal(size=12), "g": labels * 4}
    pq.write_table(pa.table(table), tmp_path / "d.parquet")
    moments = GroupMoments.from_files(tmp_path / "d.parquet", group="g")
    assert moments.groups.tolist() == sorted(set(labels))
    shown = groups_of_command("d.parquet", "-g", "g", cwd=tmp_path)
    assert list(shown) == texts
    assert sorted(shown.values()) == sorted(moments.counts.tolist())


def test_crossed_labels_have_the_same_names(tmp_path):
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=24), "b": rng.normal(size=24)}
    table |= {"year": [2020, 2021, 2021] * 8, "sex": ["f", "m"] * 12}
    pq.write_table(pa.table(table), tmp_path / "d.parquet")
    moments = GroupMoments.from_files(
        tmp_path / "d.parquet", group=["sex", "year"], columns=["a", "b"]
    )
    sizes = dict(zip(moments.groups.tolist(), moments.counts.tolist(), strict=True))
    groups = ["-g", "sex", "-g", "year"]
    assert groups_of_command("d.parquet", *groups, cwd=tmp_path) == sizes
    assert "f & year=2020" in sizes
    one = groups_of_command("d.parquet", *groups, "--positive", "f & year=2020", cwd=tmp_path)
    assert one == {"f & year=2020": 4, "not f & year=2020": 20}


def test_text_and_numbers_are_not_mixed(tmp_path):
    (tmp_path / "b.csv").write_text("\n".join(["a,b,g", *rows_of(["1", "2", "3"])]))
    pq.write_table(pa.table({"a": [1.0], "b": [2.0], "g": [1]}), tmp_path / "a.parquet")
    paths = [tmp_path / "a.parquet", tmp_path / "b.csv"]
    with pytest.raises(ValueError, match=r"'g' is int64 in .*a\.parquet but string in .*b\.csv"):
        GroupMoments.from_files(paths, group="g")
    assert "'g' is int64 in" in fails("audit", *paths, "-g", "g", cwd=tmp_path)


def test_columns_without_values_are_no_features(tmp_path):
    lines = [f"{line},,{i % 5}" for i, line in enumerate(rows_of("xyz"))]
    (tmp_path / "d.csv").write_text("\n".join(["a,b,g,empty,c", *lines]))
    columns = {"a": np.arange(6.0) ** 2, "empty": pa.nulls(6), "g": ["x", "y"] * 3}
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    for name, features in (("d.csv", ["a", "b", "c"]), ("d.parquet", ["a"])):
        moments = GroupMoments.from_files(tmp_path / name, group="g")
        assert moments.feature_names == features
        done = run("audit", name, "-g", "g", cwd=tmp_path)
        assert "left out, not numbers: empty" in done.stdout
        with pytest.raises(ValueError, match="missing value in column 'empty'"):
            GroupMoments.from_files(tmp_path / name, group="g", columns=["a", "empty"])


def test_a_later_file_tells_the_type_of_an_empty_column(tmp_path):
    for name, values in (("a", pa.nulls(4)), ("b", pa.array([1.0, 2.0, 4.0, 3.0]))):
        table = pa.table({"x": values, "y": [1.0, 5.0, 2.0, 2.0], "g": ["u", "v", "v", "u"]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    moments = GroupMoments.from_files(tmp_path, group="g", drop_missing=True)
    assert moments.feature_names == ["x", "y"]
    assert moments.n_dropped == 4


def test_text_named_as_a_feature_is_refused_with_its_line(tmp_path):
    (tmp_path / "d.csv").write_text("a,ward,g\n1,north,x\n2,south,y\n")
    message = "line 2 of {} has 'north' in column 'ward', which is not a number"
    with pytest.raises(ValueError, match=message.format(r".*d\.csv")):
        GroupMoments.from_files(tmp_path / "d.csv", group="g", columns=["a", "ward"])
    line = fails("audit", "d.csv", "-g", "g", "--columns", "a,ward", cwd=tmp_path)
    assert message.format("d.csv") in line
    assert "--encode" in line


def test_a_group_named_twice_is_refused(tmp_path):
    (tmp_path / "d.csv").write_text("\n".join(["a,b,g", *rows_of("xyz")]))
    with pytest.raises(ValueError, match=r"group \(--group\) has 'g' twice"):
        GroupMoments.from_files(tmp_path / "d.csv", group=["g", "g"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,g\n1,x\n 2.5 ,y\ntrue,y\n", "line 4 of .* has 'true' in column 'a'"),
        ("a,g\n1,x\n2,y\n3,y,4\nq,y\n", "line 4 of .* has 3 values"),
        ("a,f,g\n" + "1,true,x\n" * 99 + "2,maybe,y\n", "line 101 of .* 'maybe' .* true or false"),
    ],
)
def test_the_first_wrong_line_is_named(content, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(text_reader, "_HEAD_BYTES", 400)  # that tell the types
    (tmp_path / "d.csv").write_text(content)
    columns = content.split("\n")[0].split(",")[:-1]
    with pytest.raises(ValueError, match=expected):
        GroupMoments.from_files(tmp_path / "d.csv", group="g", columns=columns)
