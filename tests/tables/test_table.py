"""Files give what the same rows in memory give, or are refused with their name and place."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.data import assert_same_moments
from helpers.files import fitted_to, moments_of, read_table, write_scores_of
from helpers.tables import WRITERS, as_table, write_ipc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairpca import FairPCA, GroupMoments, MinMaxPCA


@pytest.mark.parametrize("kind", WRITERS)
def test_every_format_equals_memory(kind, data, tmp_path):
    X, sex = data
    WRITERS[kind](as_table(X, sex), tmp_path / f"d.{kind}")
    fractions = []
    moments = moments_of(
        tmp_path / f"d.{kind}", sensitive_features="sex", progress=fractions.append
    )
    assert_same_moments(moments, GroupMoments.from_data(X, sex))
    assert moments.feature_names == ["x0", "x1", "x2", "x3"]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0

    fair = fitted_to(FairPCA(2), tmp_path / f"d.{kind}", sensitive_features="sex")
    expected = FairPCA(2).fit(X, sensitive_features=sex)
    np.testing.assert_allclose(fair.components_, expected.components_, atol=1e-10)
    np.testing.assert_allclose(fair.group_errors_, expected.group_errors_, rtol=1e-10)
    assert fair.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]


def test_a_row_group_larger_than_the_memory_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.cli.reader.table._MEMORY", 30)
    rng, n = np.random.default_rng(0), 250_000
    X, sex = rng.normal(size=(n, 20)), np.where(rng.random(n) < 0.3, "f", "m")
    columns = {f"x{j}": column for j, column in enumerate(X.T)} | {"sex": sex}
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")  # 40 MB, one row group
    fractions = []
    moments = moments_of(
        tmp_path / "d.parquet", sensitive_features="sex", progress=fractions.append
    )
    assert_same_moments(moments, GroupMoments.from_data(X, sex))
    assert len(set(fractions)) > 2  # the progress is that of the engine


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(cuts=st.lists(st.integers(0, 100), max_size=5), rows=st.integers(1, 60))
def test_any_split_into_files_and_batches(cuts, rows, data, tmp_path_factory):
    X, sex = (part[:100] for part in data)
    folder = tmp_path_factory.mktemp("split")
    edges = [0, *sorted(cuts), len(X)]
    table = as_table(X, sex)
    for i, (a, b) in enumerate(pairwise(edges)):
        pq.write_table(table.slice(a, b - a), folder / f"{i}.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairpca.cli.reader.table._BATCH_ROWS", rows)
        moments = moments_of(folder, sensitive_features="sex")
    assert_same_moments(moments, GroupMoments.from_data(X, sex))


def test_results_repeat_to_the_last_bit(data, tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.cli.reader.table._BATCH_ROWS", 32)
    X, sex = data
    pq.write_table(as_table(X, sex), tmp_path / "d.parquet")
    first, second = (moments_of(tmp_path / "d.parquet", sensitive_features="sex") for _ in range(2))
    np.testing.assert_array_equal(first.second_moments(), second.second_moments())


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
    write_ipc(table, tmp_path / "d.arrow", pa.ipc.new_file)
    moments = moments_of(tmp_path / "d.arrow", sensitive_features="sex")
    assert moments.groups.tolist() == [
        f"{label:g}" if label == 0.5 else str(label) for label in labels
    ]
    assert_same_moments(moments, GroupMoments.from_data(X, list(map(str, values))))


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_several_group_columns_are_crossed(kind, data, tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.cli.reader.table._BATCH_ROWS", 50)
    X, sex = data
    rng = np.random.default_rng(3)
    year, adult = rng.choice([2020, 2021], len(X)), rng.random(len(X)) < 0.5
    table = as_table(X, sex, year=year, adult=adult)
    WRITERS[kind](table, tmp_path / f"d.{kind}")
    group, columns = ["sex", "year", "adult"], ["x0", "x1", "x2", "x3"]
    crossed = table.select(group).to_pandas()
    if kind == "csv":  # where all labels are text
        crossed = crossed.astype(str).assign(adult=np.where(adult, "true", "false"))
    moments = moments_of(tmp_path / f"d.{kind}", sensitive_features=group, features=columns)
    first = "g0 & 2020 & false" if kind == "csv" else "g0 & year=2020 & adult=False"
    assert moments.groups.tolist()[0] == first
    assert_same_moments(moments, GroupMoments.from_data(X, crossed))
    fair = fitted_to(
        MinMaxPCA(2), tmp_path / f"d.{kind}", sensitive_features=group, features=columns
    )
    expected = MinMaxPCA(2).fit(X, sensitive_features=crossed)
    np.testing.assert_allclose(fair.components_, expected.components_, atol=1e-10)
    np.testing.assert_allclose(fair.group_errors_, expected.group_errors_, rtol=1e-10)


def test_folds_depend_on_rows_not_on_the_names_and_formats_of_files(data, tmp_path, monkeypatch):
    def folds_of(paths):
        return means(moments_of(paths, sensitive_features="sex", folds=4))

    def means(moments):
        return [moments.split(fold)[1].means.tolist() for fold in range(moments.n_folds)]

    X, sex = data
    table, paths = as_table(X, sex), {}
    for kind in WRITERS:
        WRITERS[kind](table, tmp_path / f"{kind}_people.{kind}")
        ends = {"a": table.slice(0, 100), "b": table.slice(100)}
        paths[kind] = [tmp_path / f"{name}.{kind}" for name in ends]
        for part, path in zip(ends.values(), paths[kind], strict=True):
            WRITERS[kind](part, path)
    expected = means(GroupMoments.from_data(X, sex, folds=4))
    monkeypatch.setattr("fairpca.cli.reader.table._BATCH_ROWS", 50)
    for kind in WRITERS:
        for source in (tmp_path / f"{kind}_people.{kind}", paths[kind]):
            np.testing.assert_allclose(folds_of(source), expected, rtol=1e-9)


def test_crossed_labels_are_not_merged(data, tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.cli.reader.table._BATCH_ROWS", 2)
    X, _ = data
    first, second = ["a & b", "x", "a", "x"], ["c", "y", "b & c", "y"]
    table = as_table(X[:4], first, other=second)
    pq.write_table(table, tmp_path / "d.parquet")
    moments = moments_of(tmp_path / "d.parquet", sensitive_features=["sex", "other"])
    assert moments.groups.tolist() == ["a & b && c", "a && b & c", "x & y"]


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
    moments = moments_of(tmp_path / "d.parquet", sensitive_features="sex")
    assert moments.feature_names == ["a", "b"]
    assert_same_moments(moments, GroupMoments.from_data(expected, sex))


def test_weights_are_a_column(data, tmp_path):
    X, sex = data
    weights = np.random.default_rng(1).integers(0, 4, len(X)) * 0.5
    weights[:100] = 0  # a whole block weighs nothing
    table = as_table(X, sex, w=weights)
    pq.write_table(table, tmp_path / "d.parquet", row_group_size=50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairpca.cli.reader.table._BATCH_ROWS", 50)
        moments = moments_of(tmp_path / "d.parquet", sensitive_features="sex", sample_weight="w")
    assert moments.feature_names == ["x0", "x1", "x2", "x3"]
    assert_same_moments(moments, GroupMoments.from_data(X, sex, weights))


@pytest.mark.parametrize("missing", ["error", "drop"])
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("w", -3.0, "column 'w' holds negative weights"),
        ("x1", -1e200, r"column 'x1' holds -1e\+200"),
    ],
)
def test_unusable_numbers_are_named(column, value, message, missing, data, tmp_path):
    X, sex = data
    columns = as_table(X, sex, w=np.ones(len(X))).to_pydict()
    columns[column][417] = value
    columns["x2"][405] = None if missing == "drop" else 1.0
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairpca.cli.reader.table._BATCH_ROWS", 50)
        with pytest.raises(ValueError, match=rf"row 418 of .*d\.parquet: {message}"):
            moments_of(
                tmp_path / "d.parquet", sensitive_features="sex", sample_weight="w", missing=missing
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
        ValueError,
        match=rf"missing values, in '{column}' \(2\) .*{place} of {path}.*--missing drop",
    ):
        moments_of(path, sensitive_features="sex")
    moments = moments_of(path, sensitive_features="sex", missing="drop")
    assert moments.n_dropped == 2
    assert_same_moments(moments, GroupMoments.from_data(X[~gone], sex[~gone]))
    assert moments.merge(moments).n_dropped == 4


def test_nan_and_infinity(data, tmp_path):
    X, sex = data
    X[5, 2] = np.nan
    pq.write_table(as_table(X, sex), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"in 'x2' .1. .the first is row 6 of"):
        moments_of(tmp_path / "d.parquet", sensitive_features="sex")
    assert (
        moments_of(tmp_path / "d.parquet", sensitive_features="sex", missing="drop").n_dropped == 1
    )
    X[5, 2] = np.inf
    pq.write_table(as_table(X, sex), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"row 6 of .*: column 'x2' holds inf"):
        moments_of(tmp_path / "d.parquet", sensitive_features="sex", missing="drop")
    pq.write_table(as_table(np.full((3, 2), np.nan), sex[:3]), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"every row of .* would be left out: 3 of 3 rows"):
        moments_of(tmp_path / "d.parquet", sensitive_features="sex", missing="drop")


def _peak_of_reading(path):
    """Bytes that Python and Arrow hold at most while a file is summed up and transformed."""
    before, held = pa.total_allocated_bytes(), []
    tracemalloc.start()

    def note(*_):
        held.append(pa.total_allocated_bytes() - before)

    moments_of(path, sensitive_features="sex", drop="id", progress=note)
    write_scores_of(
        fitted_to(FairPCA(2), path, sensitive_features="sex"),
        path,
        path.with_suffix(".scores.csv"),
        progress=note,
    )
    peak = max(held) + tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_memory_does_not_grow_with_rows(kind, tmp_path):
    rng = np.random.default_rng(0)
    peaks = []
    for n in (300_000, 900_000):
        path = tmp_path / f"{n}.{kind}"
        X, sex = rng.normal(size=(n, 8)).round(3), np.where(rng.random(n) < 0.3, "f", "m")
        if kind == "parquet":
            pq.write_table(as_table(X, sex), path, row_group_size=20_000)
        else:
            WRITERS[kind](as_table(X, sex), path)
        del X, sex
        peaks.append(_peak_of_reading(path))
    assert peaks[1] < 1.3 * peaks[0]  # the numbers alone would be 38 MB more


def test_whole_numbers_in_one_file_and_fractions_or_text_in_another(data, tmp_path):
    X, sex = data
    whole = np.round(X)
    columns = {f"x{j}": whole[:, j].astype(int) for j in range(4)}
    pq.write_table(pa.table({**columns, "sex": sex}), tmp_path / "a.parquet")
    pq.write_table(as_table(X, sex).drop_columns("id"), tmp_path / "b.parquet")
    texts = {name: column.astype(str) for name, column in columns.items()}
    pq.write_table(pa.table({**texts, "sex": sex}), tmp_path / "c.parquet")
    moments = moments_of(tmp_path, sensitive_features="sex", features=list(columns))
    expected = GroupMoments.from_data(np.vstack([whole, X, whole]), np.tile(sex, 3))
    assert_same_moments(moments, expected)
    texts["x2"][5] = "many"
    pq.write_table(pa.table({**texts, "sex": sex}), tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"row 6 of .*c\.parquet has 'many' in column 'x2'"):
        moments_of(tmp_path, sensitive_features="sex", features=list(columns))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sensitive_features": "gender"}, "no column 'gender' in .*d.parquet; its columns are"),
        ({"sensitive_features": ["sex", "idd"]}, "no column 'idd' in .*; did you mean 'id'"),
        ({"sensitive_features": ["sex", "x0"], "features": ["x0"]}, "'x0' is named twice"),
        (
            {"sensitive_features": "sex", "features": ["x0", "x9"]},
            "no column 'x9' in .*; its columns are 'id'",
        ),
        ({"sensitive_features": "sex", "features": ["x0", "id"]}, "not numbers: 'id'"),
        ({"sensitive_features": "sex", "features": ["x0", "sex"]}, "leave it out of features"),
        ({"sensitive_features": "sex", "features": ["x0", "x1", "x0"]}, "named twice"),
        ({"sensitive_features": "sex", "features": []}, r"features=\[\] leaves none; name some"),
        ({"sensitive_features": []}, "holds the groups .columns of few values: 'sex'"),
        ({"sensitive_features": "sex", "sample_weight": "id"}, "not numbers: 'id'"),
    ],
)
def test_wrong_arguments(arguments, message, data, tmp_path):
    pq.write_table(as_table(*data), tmp_path / "d.parquet")
    with pytest.raises((ValueError, TypeError), match=message):
        moments_of(tmp_path / "d.parquet", **arguments)


@pytest.mark.parametrize(("n", "end"), [(21, "'c19', 'c20'."), (22, "'c19' and 2 more.")])
def test_no_name_is_hidden_among_twenty(n, end, tmp_path):
    table = pa.table({f"c{j:02}": [0.0] for j in range(n)})
    pq.write_table(table, tmp_path / "d.parquet")
    with pytest.raises(ValueError, match="no column 'gender'") as caught:
        moments_of(tmp_path / "d.parquet", sensitive_features="gender")
    assert str(caught.value).endswith(f"'c18', {end}")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("index", ["__index_level_0__", "x0"])
def test_index_of_a_pandas_frame_is_no_feature_unless_named(index, kind, data, tmp_path):
    path = tmp_path / f"d.{kind}"
    frame = as_table(*data).to_pandas()
    frame = frame.set_index("x0") if index == "x0" else frame[frame.x0 > frame.x0.median()]
    WRITERS[kind](pa.Table.from_pandas(frame), path)
    features = [name for name in ("x0", "x1", "x2", "x3") if name != index]
    assert moments_of(path, sensitive_features="sex").feature_names == features
    assert read_table(path, "sex").feature_names == features
    named = moments_of(path, sensitive_features="sex", features=["x1", index])
    assert named.feature_names == ["x1", index]
    assert named.counts.sum() == len(frame)


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_two_columns_of_one_name_in_a_later_file(kind, data, tmp_path):
    table = as_table(*data)
    first, second = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    WRITERS[kind](table, first)
    WRITERS[kind](table.append_column("x1", table["x2"]), second)
    with pytest.raises(ValueError, match=r"b\.\w+ has two columns named 'x1'; rename one"):
        moments_of([first, second], sensitive_features="sex")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_types_of_labels(kind, tmp_path):
    def write(name, labels):
        WRITERS[kind](pa.table({"x": [1.0, 3.0], "g": labels}), tmp_path / f"{name}.{kind}")
        return tmp_path / f"{name}.{kind}"

    whole, short = write("whole", [1, 2]), write("short", pa.array([1, 2], pa.int8()))
    text = write("text", ["1", "2"])
    coded = write("coded", pa.array(["1", "2"]).dictionary_encode())
    for paths, groups in (
        ([whole, short], ["1", "2"]),
        ([text, coded], ["1", "2"]),
        ([whole, text], ["1", "2"]),
        ([whole, write("half", [1.0, 1.5])], ["1", "1.5", "2"]),
    ):
        assert moments_of(paths, sensitive_features="g").groups.tolist() == groups
