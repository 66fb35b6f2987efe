"""Every way to read a table follows one set of rules."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.files import moments_of, read_table
from helpers.tables import WRITERS

from fairpca import GroupMoments
from fairpca.exceptions import TableError


def rows_of(labels, n=12):
    rng = np.random.default_rng(0)
    return [f"{rng.normal():.3f},{rng.normal():.3f},{labels[i % 3]}" for i in range(n)]


def sizes_of(moments):
    return dict(zip(moments.groups.tolist(), moments.counts.tolist(), strict=True))


@pytest.mark.parametrize("labels", [["01", "1", "2"], ["1.0", "1", "true"], ["1e1", "10", "x"]])
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_labels_in_text_are_text(labels, ending, tmp_path):
    text = "\n".join(["a,b,g", *rows_of(labels)])
    path = tmp_path / f"d.{ending}"
    path.write_text(text if ending == "csv" else text.replace(",", "\t"))
    sizes = sizes_of(moments_of(path, sensitive_features="g"))
    assert sizes == dict.fromkeys(sorted(labels), 4)
    assert Counter(read_table(path, "g").sensitive_features.tolist()) == sizes


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        ([2, 10, 3], ["10", "2", "3"]),
        ([True, False, True], ["False", "True"]),
        ([0.5, 1.0, 2.0], ["0.5", "1", "2"]),
        (["x", "01", "1"], ["01", "1", "x"]),
    ],
)
def test_labels_with_types_are_shown_as_text(labels, texts, tmp_path):
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=12), "b": rng.normal(size=12), "g": labels * 4}
    pq.write_table(pa.table(table), tmp_path / "d.parquet")
    moments = moments_of(tmp_path / "d.parquet", sensitive_features="g")
    assert moments.groups.tolist() == texts
    shown = Counter(read_table(tmp_path / "d.parquet", "g").sensitive_features.tolist())
    assert sorted(shown) == texts
    assert sorted(shown.values()) == sorted(moments.counts.tolist())


def test_crossed_labels_have_the_same_names(tmp_path):
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=24), "b": rng.normal(size=24)}
    table |= {"year": [2020, 2021, 2021] * 8, "sex": ["f", "m"] * 12}
    pq.write_table(pa.table(table), tmp_path / "d.parquet")
    names = {"sensitive_features": ["sex", "year"], "features": ["a", "b"]}
    moments = moments_of(tmp_path / "d.parquet", **names)
    assert "f & year=2020" in sizes_of(moments)
    bunch = read_table(tmp_path / "d.parquet", **names)
    assert Counter(bunch.sensitive_features.tolist()) == sizes_of(moments)


def test_columns_without_values_are_no_features(tmp_path):
    lines = [f"{line},,{i % 5}" for i, line in enumerate(rows_of("xyz"))]
    (tmp_path / "d.csv").write_text("\n".join(["a,b,g,empty,c", *lines]))
    columns = {"a": np.arange(6.0) ** 2, "empty": pa.nulls(6), "g": ["x", "y"] * 3}
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    for name, features in (("d.csv", ["a", "b", "c"]), ("d.parquet", ["a"])):
        path = tmp_path / name
        assert moments_of(path, sensitive_features="g").feature_names == features
        assert read_table(path, "g").record.left_out == {"empty": "empty"}
        with pytest.raises(TableError, match="missing values, in 'empty'"):
            moments_of(path, sensitive_features="g", features=["a", "empty"])


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_later_file_tells_the_type_of_an_empty_column(kind, tmp_path):
    for name, values in (("a", pa.nulls(4)), ("b", pa.array([1.0, 2.0, 4.0, 3.0]))):
        table = pa.table({"x": values, "y": [1.0, 5.0, 2.0, 2.0], "g": ["u", "v", "v", "u"]})
        WRITERS[kind](table, tmp_path / f"{name}.{kind}")
    moments = moments_of(tmp_path, sensitive_features="g", missing="drop")
    assert moments.feature_names == ["x", "y"]
    assert moments.n_dropped == 4


def test_text_named_as_a_feature_is_refused_with_its_line(tmp_path):
    (tmp_path / "d.csv").write_text("a,ward,g\n1,north,x\n2,south,y\n")
    message = r"line 2 of .*d\.csv has 'north' in column 'ward'"
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / "d.csv", "g", features=["a", "ward"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,g\n1,x\n 2.5 ,y\ntrue,y\n", "line 4 of .* has 'true' in column 'a'"),
        ("a,g\n1,x\n2,y\n3,y,4\nq,y\n", "line 4 of .* has more than 2 values"),
        ("a,f,g\n" + "1,true,x\n" * 99 + "2,maybe,y\n", "line 101 of .* 'maybe' in column 'f'"),
    ],
)
def test_the_first_wrong_line_is_named(content, expected, tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.cli.reader.table.HEAD_ROWS", 2)
    (tmp_path / "d.csv").write_text(content)
    columns = content.split("\n")[0].split(",")[:-1]
    with pytest.raises(TableError, match=expected):
        moments_of(tmp_path / "d.csv", sensitive_features="g", features=columns)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_text_becomes_columns_of_zeros_and_ones(kind, tmp_path):
    columns = {
        "x": [1.0, 2.0, 4.0, 8.0],
        "smoker": ["no", "yes", "yes", "no"],
        "city": ["u", "v", "w", "v"],
        "g": ["a", "b", "b", "a"],
    }
    path = tmp_path / f"d.{kind}"
    if kind == "csv":
        lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
        path.write_text("\n".join([",".join(columns), *lines]))
    else:
        pq.write_table(pa.table(columns), path)
    assert read_table(path, "g").record.left_out == {"smoker": "text", "city": "text"}
    table = read_table(path, "g", encode=True)
    assert table.feature_names == ["x", "smoker=yes", "city=u", "city=v", "city=w"]
    assert table.data["smoker=yes"].to_pylist() == [0, 1, 1, 0]
    assert table.data["city=v"].to_pylist() == [0, 1, 0, 1]


def test_many_texts_of_many_values_are_encoded(tmp_path):
    rng = np.random.default_rng(0)
    texts = rng.integers(0, 90, (300, 4))
    rows = [",".join([*(f"t{t}" for t in row), str(i), "ab"[i % 2]]) for i, row in enumerate(texts)]
    (tmp_path / "d.csv").write_text("\n".join(["p,q,r,s,x,g", *rows]))
    table = read_table(tmp_path / "d.csv", "g", features=["p", "q", "r", "s", "x"], encode=True)
    for j, name in enumerate("pqrs"):
        for value in np.unique(texts[:, j]):
            found = table.data[f"{name}=t{value}"].to_numpy()
            np.testing.assert_array_equal(found, texts[:, j] == value)
    assert len(table.feature_names) == 1 + sum(len(np.unique(column)) for column in texts.T)


def test_dates_are_not_encoded(tmp_path):
    rows = [f"2024-01-{1 + i % 28:02},{i},{'ab'[i % 2]}" for i in range(40)]
    (tmp_path / "d.csv").write_text("\n".join(["day,x,g", *rows]))
    table = read_table(tmp_path / "d.csv", "g", features=None, encode=True)
    assert table.record.left_out["day"] == "date"


def test_dictionary_encoded_numbers_are_features(tmp_path):
    values = pa.array([1.5, 2.5, 1.5, 4.0])
    table = pa.table({"x": values.dictionary_encode(), "y": values, "g": ["a", "b", "a", "b"]})
    with pa.ipc.new_file(str(tmp_path / "d.arrow"), table.schema) as writer:
        writer.write_table(table)
    pq.write_table(table, tmp_path / "d.parquet")
    for name in ("d.arrow", "d.parquet"):
        found = read_table(tmp_path / name, "g")
        assert found.data.to_pydict() == {"x": values.to_pylist(), "y": values.to_pylist()}


def test_what_is_suspicious_is_recorded(tmp_path):
    rng = np.random.default_rng(0)
    n = 400
    columns = {
        "kilos": np.where(rng.random(n) < 0.02, -999.0, rng.normal(70, 10, n).round(1)),
        "steps": np.where(np.arange(n) == 7, 999999.375, rng.uniform(0, 55, n).round(2)),
        "rich": np.exp(rng.normal(size=n) * 2),  # a long tail is no code
        "same": np.full(n, 3.5),
        "rare": (np.arange(n) == 9).astype(float),
        "sex": rng.choice(["female", " FEMALE", "male"], n),
    }
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    record = read_table(tmp_path / "d.parquet", "sex").record
    codes = {(s.column, s.value): s.n_rows for s in record.sentinels}
    n_codes = int((columns["kilos"] == -999).sum())
    assert codes == {("kilos", -999.0): n_codes, ("steps", 999999.375): 1}
    assert record.constant == ["same"]
    assert record.near_constant == ["rare"]
    assert record.twin_labels == [(" FEMALE", "female")]


def test_weights_count_as_rows_that_stand_there_several_times(tmp_path):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(30, 2)), rng.integers(1, 4, 30)
    g = np.array(["a", "b", "a"] * 10)
    table = pa.table({"x": X[:, 0], "y": X[:, 1], "w": w, "g": g})
    pq.write_table(table, tmp_path / "d.parquet")
    names = {"sensitive_features": "g", "sample_weight": "w"}
    expected = GroupMoments.from_data(np.repeat(X, w, axis=0), np.repeat(g, w))
    bunch = read_table(tmp_path / "d.parquet", **names)
    np.testing.assert_array_equal(bunch.sample_weight, w)
    for moments in (
        moments_of(tmp_path / "d.parquet", **names),
        GroupMoments.from_data(bunch.data, bunch.sensitive_features, bunch.sample_weight),
    ):
        assert moments.feature_names == ["x", "y"]
        np.testing.assert_allclose(moments.means, expected.means, rtol=1e-12)
        np.testing.assert_allclose(moments.second_moments(), expected.second_moments(), rtol=1e-10)
