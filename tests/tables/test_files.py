"""Files give what the same rows in memory give, or are refused with their name and place."""

import io
import os
import signal
import subprocess
import sys
import tracemalloc
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from helpers.data import assert_same_moments, unequal_groups
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairpca import FairPCA, GroupMoments, MinMaxPCA
from fairpca._moments.prepare import prepare_table
from fairpca._tables import table as files_module
from fairpca._tables import text as text_module
from fairpca._tables.choices import Choices

WRITERS = {
    "csv": pa_csv.write_csv,
    "tsv": lambda t, path: pa_csv.write_csv(t, path, pa_csv.WriteOptions(delimiter="\t")),
    "parquet": pq.write_table,
    "arrow": lambda t, path: _write_ipc(t, path, pa.ipc.new_file),
    "feather": lambda t, path: _write_ipc(t, path, pa.ipc.new_file),
    "ipc": lambda t, path: _write_ipc(t, path, pa.ipc.new_stream),
}


def _write_ipc(table, path, new):
    with pa.OSFile(str(path), "wb") as sink, new(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


@pytest.fixture
def data():
    return unequal_groups()


def as_table(X, sex, **more):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    return pa.table({"id": [f"p{i}" for i in range(len(X))], **columns, "sex": sex, **more})


@pytest.mark.parametrize("kind", WRITERS)
def test_every_format_equals_memory(kind, data, tmp_path):
    X, sex = data
    WRITERS[kind](as_table(X, sex), tmp_path / f"d.{kind}")
    fractions = []
    moments = GroupMoments.from_files(
        tmp_path / f"d.{kind}", group="sex", progress=fractions.append
    )
    assert_same_moments(moments, GroupMoments.from_data(X, sex))
    assert moments.feature_names == ["x0", "x1", "x2", "x3"]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0

    fair = FairPCA(2).fit_files(tmp_path / f"d.{kind}", group="sex")
    expected = FairPCA(2).fit(X, sensitive_features=sex)
    np.testing.assert_allclose(fair.components_, expected.components_, atol=1e-10)
    np.testing.assert_allclose(fair.group_errors_, expected.group_errors_, rtol=1e-10)
    assert fair.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]


@pytest.mark.parametrize("output", ["scores.parquet", "scores.csv", "scores.tsv"])
def test_scores_are_written_in_row_order(output, data, tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "_BATCH_ROWS", 64)
    X, sex = data
    pq.write_table(as_table(X[:300], sex[:300]), tmp_path / "a.parquet")
    pq.write_table(as_table(X[300:], sex[300:]), tmp_path / "b.parquet")
    paths = [tmp_path / "b.parquet", tmp_path / "a.parquet"]
    fair = FairPCA(2).fit_files(paths, group="sex")
    written = fair.transform_files(paths, tmp_path / output, keep=["id", "sex"])
    assert written == tmp_path / output
    if output.endswith("parquet"):
        table = pq.read_table(written)
    else:
        separator = pa_csv.ParseOptions(delimiter="\t" if output.endswith("tsv") else ",")
        table = pa_csv.read_csv(written, parse_options=separator)
    assert table.column_names == ["id", "sex", "fairpca0", "fairpca1"]
    order = np.r_[300:700, 0:300]
    np.testing.assert_array_equal(table["sex"].to_pylist(), sex[order])
    scores = np.column_stack([table["fairpca0"], table["fairpca1"]])
    expected = (X[order] - fair.mean_) @ fair.components_.T
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-8)
    assert sorted(os.listdir(tmp_path)) == sorted(["a.parquet", "b.parquet", output])


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(cuts=st.lists(st.integers(0, 700), max_size=5), rows=st.integers(1, 400))
def test_any_split_into_files_and_batches(cuts, rows, data, tmp_path_factory):
    X, sex = data
    folder = tmp_path_factory.mktemp("split")
    edges = [0, *sorted(cuts), len(X)]
    table = as_table(X, sex)
    for i, (a, b) in enumerate(pairwise(edges)):
        pq.write_table(table.slice(a, b - a), folder / f"{i}.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files_module, "_BATCH_ROWS", rows)
        moments = GroupMoments.from_files(folder, group="sex")
    assert_same_moments(moments, GroupMoments.from_data(X, sex))


def test_results_repeat_to_the_last_bit(data, tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "_BATCH_ROWS", 32)
    X, sex = data
    pq.write_table(as_table(X, sex), tmp_path / "d.parquet")
    first, second = (GroupMoments.from_files(tmp_path / "d.parquet", group="sex") for _ in range(2))
    np.testing.assert_array_equal(first.second_moments(), second.second_moments())


@pytest.mark.parametrize("partitioned_by", ["sex", "year"])
def test_partitioned_folder(partitioned_by, data, tmp_path):
    X, sex = data
    year = np.where(np.arange(len(X)) % 3 == 0, 2020, 2021)
    table = as_table(X, sex, year=year)
    pq.write_to_dataset(table, tmp_path / "d", partition_cols=[partitioned_by])
    (tmp_path / "d" / "_SUCCESS").touch()
    features = ["x0", "x1", "x2", "x3"]
    moments = GroupMoments.from_files(tmp_path / "d", group=partitioned_by, columns=features)
    labels = sex if partitioned_by == "sex" else year
    assert_same_moments(moments, GroupMoments.from_data(X, labels))
    if partitioned_by == "year":
        assert moments.groups.tolist() == [2020, 2021]
        default = GroupMoments.from_files(tmp_path / "d", group="sex")
        assert default.feature_names == features
        chosen = GroupMoments.from_files(tmp_path / "d", group="sex", columns=["x0", "year"])
        assert_same_moments(chosen, GroupMoments.from_data(np.column_stack([X[:, 0], year]), sex))


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["a", "b"], pa.string()),
        (["a", "b"], pa.large_string()),
        (["a", "b"], pa.string_view()),
        (["a", "b"], pa.dictionary(pa.int8(), pa.string())),
        ([3, 7], pa.int8()),
        ([3, 7], pa.dictionary(pa.int32(), pa.int64())),
        ([False, True], pa.bool_()),
        ([0.5, 1.5], pa.float64()),
    ],
)
def test_label_types(labels, kind, data, tmp_path):
    X, sex = data
    values = [labels[0] if s == "g0" else labels[1] for s in sex]
    table = as_table(X, sex).set_column(5, "sex", pa.array(values, kind))
    _write_ipc(table, tmp_path / "d.arrow", pa.ipc.new_file)
    moments = GroupMoments.from_files(tmp_path / "d.arrow", group="sex")
    assert moments.groups.tolist() == labels
    assert_same_moments(moments, GroupMoments.from_data(X, values))


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_several_group_columns_are_crossed(kind, data, tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "_BATCH_ROWS", 50)
    X, sex = data
    rng = np.random.default_rng(3)
    year, adult = rng.choice([2020, 2021], len(X)), rng.random(len(X)) < 0.5
    table = as_table(X, sex, year=year, adult=adult)
    WRITERS[kind](table, tmp_path / f"d.{kind}")
    group, columns = ["sex", "year", "adult"], ["x0", "x1", "x2", "x3"]
    crossed = table.select(group).to_pandas()
    if kind == "csv":  # where all labels are text
        crossed = crossed.astype(str).assign(adult=np.where(adult, "true", "false"))
    moments = GroupMoments.from_files(tmp_path / f"d.{kind}", group=group, columns=columns)
    first = "g0 & 2020 & false" if kind == "csv" else "g0 & year=2020 & adult=False"
    assert moments.groups.tolist()[0] == first
    assert_same_moments(moments, GroupMoments.from_data(X, crossed))
    fair = MinMaxPCA(2).fit_files(tmp_path / f"d.{kind}", group=group, columns=columns)
    expected = MinMaxPCA(2).fit(X, sensitive_features=crossed)
    np.testing.assert_allclose(fair.components_, expected.components_, atol=1e-10)
    np.testing.assert_allclose(fair.group_errors_, expected.group_errors_, rtol=1e-10)


def test_crossed_labels_are_not_merged(data, tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "_BATCH_ROWS", 2)
    X, _ = data
    first, second = ["a & b", "x", "a", "x"], ["c", "y", "b & c", "y"]
    table = as_table(X[:4], first, other=second)
    pq.write_table(table, tmp_path / "d.parquet")
    with pytest.raises(ValueError, match="both be called 'a & b & c'"):
        GroupMoments.from_files(tmp_path / "d.parquet", group=["sex", "other"])


@pytest.mark.parametrize(
    "kind", ["float", "double", "halffloat", "int8", "int64", "uint64", "bool", "decimal128(9, 2)"]
)
def test_number_types(kind, data, tmp_path):
    X, sex = data
    values = np.round(X[:, :2]) if "int" in kind else X[:, :2]
    values = np.abs(values) if kind == "uint64" else values
    values = values > 0 if kind == "bool" else values
    arrow = pa.decimal128(9, 2) if kind.startswith("decimal") else pa.type_for_alias(kind)
    columns = [pa.array(v).cast(arrow, safe=False) for v in values.T]
    pq.write_table(pa.table([*columns, pa.array(sex)], ["a", "b", "sex"]), tmp_path / "d.parquet")
    expected = np.column_stack([c.cast("float64", safe=False).to_numpy() for c in columns])
    moments = GroupMoments.from_files(tmp_path / "d.parquet", group="sex")
    assert moments.feature_names == ["a", "b"]
    assert_same_moments(moments, GroupMoments.from_data(expected, sex))


def test_weights_are_a_column(data, tmp_path):
    X, sex = data
    weights = np.random.default_rng(1).integers(0, 4, len(X)) * 0.5
    weights[:100] = 0  # a whole block weighs nothing
    table = as_table(X, sex, w=weights)
    pq.write_table(table, tmp_path / "d.parquet", row_group_size=50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files_module, "_BATCH_ROWS", 50)
        moments = GroupMoments.from_files(tmp_path / "d.parquet", group="sex", sample_weight="w")
    assert moments.feature_names == ["x0", "x1", "x2", "x3"]
    assert_same_moments(moments, GroupMoments.from_data(X, sex, weights))


@pytest.mark.parametrize("drop_missing", [False, True])
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("w", -3.0, r"the negative weight -3\.0 in column 'w'"),
        ("x1", -1e200, r"the value -1e\+200 in column 'x1'"),
    ],
)
def test_unusable_numbers_are_named(column, value, message, drop_missing, data, tmp_path):
    X, sex = data
    columns = as_table(X, sex, w=np.ones(len(X))).to_pydict()
    columns[column][417] = value
    columns["x2"][405] = None if drop_missing else 1.0
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files_module, "_BATCH_ROWS", 50)
        with pytest.raises(ValueError, match=rf"d\.parquet has {message}, row 418; "):
            GroupMoments.from_files(
                tmp_path / "d.parquet", group="sex", sample_weight="w", drop_missing=drop_missing
            )


@pytest.mark.parametrize("column", ["x1", "sex"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_missing_values(kind, column, data, tmp_path):
    X, sex = data
    table = as_table(X, sex)
    gone = np.zeros(len(X), bool)
    gone[[417, 600]] = True
    values = pa.array(table[column].to_numpy(), mask=gone)
    table = table.set_column(table.column_names.index(column), column, values)
    path = tmp_path / f"d.{kind}"
    WRITERS[kind](table, path)
    place = "line 419" if kind == "csv" else "row 418"
    with pytest.raises(
        ValueError, match=rf"{path} has a missing .*'{column}', {place}; .*drop_mis"
    ):
        GroupMoments.from_files(path, group="sex")
    moments = GroupMoments.from_files(path, group="sex", drop_missing=True)
    assert moments.n_dropped == 2
    assert_same_moments(moments, GroupMoments.from_data(X[~gone], sex[~gone]))
    assert moments.merge(moments).n_dropped == 4


def test_nan_and_infinity(data, tmp_path):
    X, sex = data
    X[5, 2] = np.nan
    pq.write_table(as_table(X, sex), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match="missing value in column 'x2', row 6;"):
        GroupMoments.from_files(tmp_path / "d.parquet", group="sex")
    assert (
        GroupMoments.from_files(tmp_path / "d.parquet", group="sex", drop_missing=True).n_dropped
        == 1
    )
    X[5, 2] = np.inf
    pq.write_table(as_table(X, sex), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match="infinity in column 'x2', row 6;"):
        GroupMoments.from_files(tmp_path / "d.parquet", group="sex", drop_missing=True)
    pq.write_table(as_table(np.full((3, 2), np.nan), sex[:3]), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"no rows .* to learn from .*3 were dropped"):
        GroupMoments.from_files(tmp_path / "d.parquet", group="sex", drop_missing=True)


def test_csv_types_are_not_fixed_by_the_first_rows(data, tmp_path, monkeypatch):
    monkeypatch.setattr(text_module, "_HEAD_BYTES", 2000)
    monkeypatch.setattr(text_module, "_BLOCK_BYTES", 2000)
    rows = [f"{i},{i % 2 == 0},a" for i in range(500)]
    rows += [f"{i}.5,{i % 2 == 0},b" for i in range(500)]
    (tmp_path / "d.csv").write_text("\n".join(["x,flag,g", *rows, ""]))
    moments = GroupMoments.from_files(tmp_path / "d.csv", group="g")
    X = np.array([[i + (j * 0.5), i % 2 == 0] for j in range(2) for i in range(500)], float)
    assert_same_moments(moments, GroupMoments.from_data(X, np.repeat(["a", "b"], 500)))


@pytest.mark.parametrize("part", [0.03, 0.5, 0.97])
@pytest.mark.parametrize("kind", WRITERS)
def test_truncated_files_are_refused(kind, part, data, tmp_path):
    X, sex = data
    whole, cut = tmp_path / f"whole.{kind}", tmp_path / f"cut.{kind}"
    WRITERS[kind](as_table(X, sex), whole)
    content = whole.read_bytes()
    cut.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(ValueError, match=str(cut)):
        GroupMoments.from_files([whole, cut], group="sex")
    fair = FairPCA(2).fit_files(whole, group="sex")
    (tmp_path / "scores.csv").write_text("old")
    with pytest.raises(ValueError, match=str(cut)):
        fair.transform_files([whole, cut], tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == sorted([whole.name, cut.name, "scores.csv"])


def test_csv_need_not_end_in_a_line_break(tmp_path):
    lines = ["x,y,sex", *(f'{i}.5,{i * i},"g{i % 2}"' for i in range(30))]
    whole = "\n".join(lines)
    path = tmp_path / "d.csv"
    path.write_text(whole)
    assert GroupMoments.from_files(path, group="sex").counts.sum() == 30
    for cut in range(1, len(lines[-1])):
        path.write_text(whole[:-cut])
        left = lines[-1][:-cut]
        with pytest.raises(
            ValueError, match=r"line 31 of .*d\.csv (has|are never closed)|d\.csv .*line 31"
        ):
            GroupMoments.from_files(path, group="sex")
        assert left.count(",") < 2 or left.endswith(",") or left.count('"') == 1
    path.write_text(whole.replace('"', ""))
    assert GroupMoments.from_files(path, group="sex").counts.tolist() == [15, 15]


def _peak_of_reading(path, n_blocks):
    """Bytes that Python and Arrow hold at most while a file is summed up and transformed."""
    before, held = pa.total_allocated_bytes(), []
    tracemalloc.start()

    def note(doing, fraction):
        held.append(pa.total_allocated_bytes() - before)

    prepare_table(path, Choices(["sex"], drop=["id"]), progress=note)
    assert len(held) > n_blocks
    FairPCA(2).fit_files(path, group="sex").transform_files(
        path,
        path.with_suffix(".scores.csv"),
        progress=lambda _: held.append(pa.total_allocated_bytes() - before),
    )
    peak = max(held) + tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_memory_does_not_grow_with_rows(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "_BATCH_ROWS", 1024)
    monkeypatch.setattr(text_module, "_BLOCK_BYTES", 1 << 17)
    rng = np.random.default_rng(0)
    peaks = []
    for n in (30_000, 120_000):
        path = tmp_path / f"{n}.{kind}"
        table = as_table(rng.normal(size=(n, 8)), np.where(rng.random(n) < 0.3, "f", "m"))
        if kind == "parquet":
            pq.write_table(table, path, row_group_size=5000)
        else:
            WRITERS[kind](table, path)
        del table
        peaks.append(_peak_of_reading(path, n / 6000))
    assert peaks[1] < 1.3 * peaks[0] + 500_000  # the rows would be 6 MB more


def test_altered_text_is_refused_with_its_row(data, tmp_path, monkeypatch):
    monkeypatch.setattr(text_module, "_HEAD_BYTES", 4000)
    monkeypatch.setattr(text_module, "_BLOCK_BYTES", 4000)
    X, sex = data
    pa_csv.write_csv(as_table(X, sex), tmp_path / "d.csv")
    lines = (tmp_path / "d.csv").read_text().split("\n")
    lines[400] = lines[400].replace(".", "#")
    (tmp_path / "d.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"line 401 of .*d\.csv has '[^']*#.* in column 'x"):
        GroupMoments.from_files(tmp_path / "d.csv", group="sex")
    lines[400] = "1,2"
    (tmp_path / "d.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"line 401 of .*d\.csv has 2 values where .* has 6"):
        GroupMoments.from_files(tmp_path / "d.csv", group="sex")


@pytest.mark.parametrize("value", ["1.2x", "?"])
def test_column_that_is_text_by_a_few_values_is_not_left_out(value, data, tmp_path):
    X, sex = data
    table = as_table(X, sex, code=[f"{i}A" if i % 5 else str(i) for i in range(len(sex))])
    pa_csv.write_csv(table, tmp_path / "d.csv")
    fair = FairPCA(2).fit_files(tmp_path / "d.csv", group="sex")
    assert "code" not in fair.feature_names_in_
    lines = (tmp_path / "d.csv").read_text().split("\n")
    person, _, *rest = lines[40].split(",")
    lines[40] = ",".join([person, value, *rest])
    (tmp_path / "d.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"line 41 .* in column 'x0', which otherwise"):
        FairPCA(2).fit_files(tmp_path / "d.csv", group="sex")
    others = ["x1", "x2", "x3"]
    fair = FairPCA(2).fit_files(tmp_path / "d.csv", group="sex", columns=others)
    assert fair.feature_names_in_.tolist() == others


def test_such_a_column_after_a_file_without_rows(data, tmp_path):
    (tmp_path / "a.csv").write_text("a,b,sex\n")
    rows = [f"{i},{'?' if i == 4 else i * i % 7},{'fm'[i % 2]}" for i in range(50)]
    (tmp_path / "b.csv").write_text("\n".join(["a,b,sex", *rows]))
    with pytest.raises(ValueError, match=r"line 6 of .*b\.csv has '\?' in column 'b'"):
        GroupMoments.from_files(tmp_path, group="sex")


def test_kept_column_of_two_types(data, tmp_path):
    X, sex = data
    table = as_table(X, sex)
    for name, ids in (("a", np.arange(700, dtype=np.int32)), ("b", np.arange(700) + 2**40)):
        pq.write_table(table.set_column(0, "id", pa.array(ids)), tmp_path / f"{name}.parquet")
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    fair = FairPCA(2).fit_files(paths, group="sex", columns=["x0", "x1", "x2"])
    with pytest.raises(ValueError, match="'id' is int32 in the first file and int64 in another"):
        fair.transform_files(paths, tmp_path / "s.parquet", keep="id")
    assert not (tmp_path / "s.parquet").exists()


def test_whole_numbers_in_one_format_and_fractions_in_another(data, tmp_path):
    X, sex = data
    whole = np.round(X)
    columns = {f"x{j}": whole[:, j].astype(int) for j in range(4)}
    pq.write_table(pa.table({**columns, "sex": sex}), tmp_path / "a.parquet")
    pa_csv.write_csv(as_table(X, sex), tmp_path / "b.csv")
    paths = [tmp_path / "a.parquet", tmp_path / "b.csv"]
    moments = GroupMoments.from_files(paths, group="sex", columns=list(columns))
    expected = GroupMoments.from_data(np.vstack([whole, X]), np.tile(sex, 2))
    assert_same_moments(moments, expected)


def test_index_of_a_pandas_frame_in_text_is_no_feature(data, tmp_path):
    X, sex = data
    as_table(X, sex).to_pandas().to_csv(tmp_path / "d.csv")
    moments = GroupMoments.from_files(tmp_path / "d.csv", group="sex")
    assert moments.feature_names == ["x0", "x1", "x2", "x3"]


def test_encoding_of_text(tmp_path):
    rng = np.random.default_rng(0)
    groups = ["wm\u00e4", "m\u00e4"]
    lines = [f"{rng.normal()},{rng.normal()},{groups[i % 2]}" for i in range(40)]
    (tmp_path / "l.csv").write_bytes(("a,b,g\n" + "\n".join(lines)).encode("latin-1"))
    with pytest.raises(ValueError, match=r"line 2\); name .* in Python encoding='latin-1'"):
        FairPCA(1).fit_files(tmp_path / "l.csv", group="g")
    for unknown in ("klingon", "hex", None):
        with pytest.raises(ValueError, match=f"encoding {unknown!r} is not known"):
            FairPCA(1).fit_files(tmp_path / "l.csv", group="g", encoding=unknown)
    fair = FairPCA(1).fit_files(tmp_path / "l.csv", group="g", encoding="latin-1")
    assert fair.groups_.tolist() == sorted(groups)
    scores = fair.transform_files(
        tmp_path / "l.csv", tmp_path / "s.parquet", keep="g", encoding="latin-1"
    )
    assert pq.read_table(scores)["g"][0].as_py() == groups[0]


def test_column_in_the_path_of_a_single_file(data, tmp_path):
    X, sex = data
    pq.write_to_dataset(as_table(X, sex), tmp_path / "d", partition_cols=["sex"])
    files = sorted((tmp_path / "d").rglob("*.parquet"))
    with pytest.raises(ValueError, match=r"'sex' in .*; it is in the path: pass the folder"):
        GroupMoments.from_files(files, group="sex")


def test_long_numbers_in_paths_stay_text(data, tmp_path):
    X, sex = data
    for label in np.unique(sex):
        folder = tmp_path / "d" / f"id=9999999999999999999{ord(label[-1])}"
        folder.mkdir(parents=True)
        pq.write_table(as_table(X[sex == label], sex[sex == label]), folder / "p.parquet")
    moments = GroupMoments.from_files(tmp_path / "d", group="id")
    assert all(label.startswith("9999999999999999999") for label in moments.groups)


def test_altered_pages_are_refused(data, tmp_path):
    X, sex = data
    path = tmp_path / "d.parquet"
    pq.write_table(as_table(X, sex), path, write_page_checksum=True, compression="none")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"d\.parquet cannot be read past row"):
        GroupMoments.from_files(path, group="sex")


def test_altered_arrow_files_are_refused(tmp_path):
    """In a process of its own: offsets that point outside of the file would end it."""
    table = pa.table({"a": [1.0, 2.0] * 1000, "sex": ["f", "m"] * 1000})
    for new in (pa.ipc.new_file, pa.ipc.new_stream):
        path = tmp_path / f"{new.__name__}.arrow"
        with new(str(path), table.schema) as writer:
            writer.write_table(table)
        whole = path.read_bytes()
        path.with_stem(f"{path.stem}_name").write_bytes(whole.replace(b"sex", b"s\xe5x"))
        offsets = bytearray(whole)
        offsets[whole.find(np.arange(100, 110, dtype="<i4").tobytes()) + 3] ^= 0x10
        path.write_bytes(offsets)
    code = (
        "import sys; from fairpca import GroupMoments\n"
        "for path in sys.argv[1:]:\n"
        "    try: GroupMoments.from_files(path, group='sex')\n"
        "    except ValueError as error: print(error)"
    )
    paths = sorted(tmp_path.iterdir())
    run = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True)
    said = run.stdout.splitlines()
    assert len(said) == len(paths) == 4
    for path, line in zip(paths, said, strict=True):
        assert f"{path.name} cannot be read past row 0: it is cut off, damaged" in line


@pytest.mark.parametrize("legacy", [False, True])
def test_stream_cut_between_batches_is_refused(legacy, data, tmp_path):
    path = tmp_path / "d.arrow"
    table = as_table(*data)
    options = pa.ipc.IpcWriteOptions(use_legacy_format=legacy)
    with pa.ipc.new_stream(str(path), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=100)
    assert GroupMoments.from_files(path, group="sex").counts.sum() == len(table)
    path.write_bytes(path.read_bytes()[: -4 if legacy else -8])
    with pytest.raises(ValueError, match=r"d\.arrow cannot be read .* cut off.* end of the stream"):
        GroupMoments.from_files(path, group="sex")


def test_file_changed_while_it_is_read(data, tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "_BATCH_ROWS", 100)
    X, sex = data
    path = tmp_path / "d.arrow"
    _write_ipc(as_table(X, sex), path, pa.ipc.new_file)

    def touch(fraction):
        os.utime(path, ns=(1, 1))

    with pytest.raises(ValueError, match=r"d\.arrow was changed while it was being read"):
        GroupMoments.from_files(path, group="sex", progress=touch)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"group": "gender"}, "no column 'gender' in .*d.parquet; its columns are"),
        ({"group": ["sex", "idd"]}, "no column 'idd' in .*; did you mean 'id'"),
        ({"group": ["sex", "x0"], "columns": ["x0"]}, "'x0' is among the features"),
        ({"group": "sex", "columns": ["x0", "x9"]}, "no column 'x9' in .*; did you mean 'x"),
        ({"group": "sex", "columns": ["x0", "id"]}, "not numbers: 'id'"),
        ({"group": "sex", "columns": ["x0", "sex"]}, "leave it out of columns"),
        ({"group": "sex", "columns": "x0"}, r"columns=\['x0'\]"),
        ({"group": "sex", "columns": ["x0", "x1", "x0"]}, "columns has 'x0' twice"),
        ({"group": "sex", "columns": []}, r"columns=\[\] leaves no features; name some"),
        ({"group": []}, r"group=\[\] names no column; pass the name"),
        ({"group": None}, "group=None names no column; pass the name"),
        ({"group": "sex", "sample_weight": "id"}, "not numbers: 'id'"),
        ({"group": "sex", "file_format": "xlsx"}, "pass 'csv', 'tsv', 'parquet' or 'arrow'"),
    ],
)
def test_wrong_arguments(arguments, message, data, tmp_path):
    pq.write_table(as_table(*data), tmp_path / "d.parquet")
    with pytest.raises((ValueError, TypeError), match=message):
        GroupMoments.from_files(tmp_path / "d.parquet", **arguments)


def test_wrong_paths(data, tmp_path):
    table = as_table(*data)
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        GroupMoments.from_files(tmp_path / "nowhere.csv", group="sex")
    with pytest.raises(ValueError, match="holds no data files"):
        GroupMoments.from_files(tmp_path, group="sex")
    with pytest.raises(ValueError, match="no files were given"):
        GroupMoments.from_files([], group="sex")
    with pytest.raises(TypeError, match="paths=None is not a path; pass a path"):
        GroupMoments.from_files(None, group="sex")
    pq.write_table(table, tmp_path / "d")
    with pytest.raises(ValueError, match="file_format="):
        GroupMoments.from_files(tmp_path / "d", group="sex")
    assert_same_moments(
        GroupMoments.from_files(tmp_path / "d", group="sex", file_format="parquet"),
        GroupMoments.from_data(*data),
    )
    pq.write_table(table, tmp_path / "d.parquet")
    pq.write_table(table.drop_columns("x2"), tmp_path / "e.parquet")
    with pytest.raises(ValueError, match=r"no column 'x2' in .*e\.parquet"):
        GroupMoments.from_files(tmp_path, group="sex")
    (tmp_path / "e.parquet").unlink()
    pa_csv.write_csv(table, tmp_path / "d.csv")
    with pytest.raises(ValueError, match="several formats"):
        GroupMoments.from_files(tmp_path, group="sex")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("index", ["__index_level_0__", "x0"])
def test_index_of_a_pandas_frame_is_no_feature_unless_named(index, kind, data, tmp_path):
    path = tmp_path / f"d.{kind}"
    frame = as_table(*data).to_pandas()
    frame = frame.set_index("x0") if index == "x0" else frame[frame.x0 > frame.x0.median()]
    WRITERS[kind](pa.Table.from_pandas(frame), path)
    features = [name for name in ("x0", "x1", "x2", "x3") if name != index]
    assert GroupMoments.from_files(path, group="sex").feature_names == features
    of_command_line = Choices(["sex"]).roles(files_module.FileTable(path))
    assert list(of_command_line.columns) == features
    named = GroupMoments.from_files(path, group="sex", columns=["x1", index])
    assert named.feature_names == ["x1", index]
    assert named.counts.sum() == len(frame)


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_two_columns_of_one_name_in_a_later_file(kind, data, tmp_path):
    table = as_table(*data)
    first, second = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    WRITERS[kind](table, first)
    WRITERS[kind](table.append_column("x1", table["x2"]), second)
    with pytest.raises(ValueError, match=r"b\.\w+ has two columns named 'x1'; rename one"):
        GroupMoments.from_files([first, second], group="sex")
    moments = GroupMoments.from_files([first, second], group="sex", columns=["x0", "x2"])
    assert moments.counts.sum() == 2 * len(table)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_types_of_labels(kind, tmp_path):
    def write(name, labels):
        WRITERS[kind](pa.table({"x": [1.0, 3.0], "g": labels}), tmp_path / f"{name}.{kind}")
        return tmp_path / f"{name}.{kind}"

    whole, short = write("whole", [1, 2]), write("short", pa.array([1, 2], pa.int8()))
    text = write("text", ["1", "2"])
    coded = write("coded", pa.array(["1", "2"]).dictionary_encode())
    assert GroupMoments.from_files([whole, short], group="g").groups.tolist() == [1, 2]
    assert GroupMoments.from_files([text, coded], group="g").groups.tolist() == ["1", "2"]
    message = r"'g' is int64 in .*whole\.\w+ but string in .*text\.\w+, .*same type in both files"
    with pytest.raises(ValueError, match=message):
        GroupMoments.from_files([whole, text], group="g")
    spans = write("spans", pa.array([1, 2], pa.duration("s")))
    with pytest.raises(ValueError, match=r"'g' of .*spans\.\w+ \(duration\[s\]\) cannot name gro"):
        GroupMoments.from_files(spans, group="g")


def test_one_column_to_keep_needs_no_list(data, tmp_path):
    pq.write_table(as_table(*data), tmp_path / "d.parquet")
    fair = FairPCA(2).fit_files(tmp_path / "d.parquet", group="sex")
    scores = fair.transform_files(tmp_path / "d.parquet", tmp_path / "s.parquet", keep="id")
    assert pq.read_table(scores).column_names == ["id", "fairpca0", "fairpca1"]


def test_kept_text_stays_unless_it_is_a_feature(data, tmp_path):
    fair = FairPCA(2).fit(data[0][:, :3], sensitive_features=data[1])
    (tmp_path / "d.csv").write_text("x0,x1,x2,zip\n1.50,2,3,01234\n")
    options = {"columns": ["x0", "x1", "x2"], "keep": ["zip", "x0"]}
    scores = fair.transform_files(tmp_path / "d.csv", tmp_path / "s.csv", **options)
    assert scores.read_text().splitlines()[1].split(",")[:2] == ['"01234"', "1.5"]


def test_wrong_outputs(data, tmp_path):
    X, sex = data
    path = tmp_path / "d.parquet"
    pq.write_table(as_table(X, sex, fairpca0=X[:, 0]), path)
    fair = FairPCA(2).fit_files(path, group="sex", columns=["x0", "x1", "x2"])
    with pytest.raises(ValueError, match=r"end it in \.parquet or \.csv"):
        fair.transform_files(path, tmp_path / "scores.xlsx")
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        fair.transform_files(path, tmp_path / "nowhere" / "scores.csv")
    with pytest.raises(ValueError, match="same name"):
        fair.transform_files(path, tmp_path / "scores.csv", keep=["fairpca0"])
    with pytest.raises(ValueError, match="4 features"):
        fair.transform_files(path, tmp_path / "scores.csv", columns=["x0", "x1", "x2", "x3"])


def test_lists_are_kept_in_parquet_and_refused_in_text(data, tmp_path):
    X, sex = data
    fair = FairPCA(2).fit(X, sensitive_features=sex)
    tags = [[i, i + 1] for i in range(len(X))]
    pq.write_table(as_table(X, sex, tags=tags), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"'tags' \(list.*name the output .parquet"):
        fair.transform_files(tmp_path / "d.parquet", tmp_path / "s.csv", keep=["tags"])
    assert not (tmp_path / "s.csv").exists()
    fair.transform_files(tmp_path / "d.parquet", tmp_path / "s.parquet", keep=["tags"])
    assert pq.read_table(tmp_path / "s.parquet")["tags"].to_pylist() == tags


_WRITE_SCORES = """
import sys
from fairpca import FairPCA
model, data, output, step = sys.argv[1:]
fair = FairPCA(2).fit_files(model, group="sex")
fair.transform_files(
    data, output, keep=["id"], progress=lambda f: print(f, flush=True)
)
"""


def _start_writer(folder, model, data):
    command = [sys.executable, "-c", _WRITE_SCORES, folder / model, folder / data]
    return subprocess.Popen(
        [*map(str, command), str(folder / "scores.parquet"), ""], stdout=subprocess.PIPE, text=True
    )


@pytest.fixture
def long_file(data, tmp_path):
    X, sex = data
    pq.write_table(as_table(X, sex), tmp_path / "model.parquet")
    pq.write_table(as_table(X[:, ::-1] * [1e5, 1, 1, 1], sex), tmp_path / "other.parquet")
    schema = as_table(X, sex).schema
    with pq.ParquetWriter(tmp_path / "long.parquet", schema) as writer:
        for _ in range(1500):
            writer.write_table(as_table(X, sex))
    return tmp_path


@pytest.mark.slow
def test_killed_while_writing_leaves_the_old_file(long_file):
    output = long_file / "scores.parquet"
    output.write_text("old")
    for rounds in (1, 4, 9):
        writer = _start_writer(long_file, "model.parquet", "long.parquet")
        for _ in range(rounds):
            assert writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert output.read_text() == "old"


@pytest.mark.slow
def test_two_writers_of_one_file_do_not_mix(long_file):
    def scores():
        # One open: pyarrow opens a path twice, and may get the old file first and then the new.
        return pq.read_table(io.BytesIO((long_file / "scores.parquet").read_bytes()))

    expected = {}
    for model in ("model.parquet", "other.parquet"):
        writer = _start_writer(long_file, model, "long.parquet")
        writer.communicate()
        expected[model] = scores()
    first, second = expected.values()
    assert not first.equals(second)
    writers = [_start_writer(long_file, model, "long.parquet") for model in expected]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        table = scores()
        seen.add(next(name for name, whole in expected.items() if whole.equals(table)))
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    final = scores()
    assert any(final.equals(whole) for whole in expected.values())
    assert not list(long_file.glob(".*"))
