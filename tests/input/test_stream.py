"""Streams give what the same rows in memory give, are read once, and are closed."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from helpers.data import assert_same_moments, unequal_groups

from fairpca import (
    BlindPCA,
    FairColumns,
    FairPCA,
    FairPCACV,
    FairPLS,
    GroupEraser,
    GroupMoments,
    MinMaxPCA,
    WelfarePCA,
    tradeoff_path,
)

pa = pytest.importorskip("pyarrow", reason="streams need pyarrow (the extra fairpca[arrow])")
duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")
from pyarrow import dataset  # noqa: E402

X, SEX = unequal_groups()
COLUMNS = list("abcd")
WEIGHTS = np.arange(len(X)) % 5 * 0.5
EXPECTED = GroupMoments.from_data(X, SEX, WEIGHTS)
FRAME = pd.DataFrame(X, columns=COLUMNS).assign(sex=SEX, w=WEIGHTS)
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)
POLARS = pl.from_pandas(FRAME)


class OnlyArrow:
    """A table of a library that nobody knows, such as Ibis."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self):
        raise AssertionError("a stream was asked for its length")


def in_pieces(table, size=150):
    return [table[start : start + size] for start in range(0, len(table), size)]


STREAMS = {
    "duckdb": lambda: duckdb.from_arrow(TABLE),
    "reader": lambda: TABLE.to_reader(100),
    "scanner": lambda: dataset.dataset(TABLE).scanner(),
    "dataset": lambda: dataset.dataset(TABLE),
    "lazy": lambda: POLARS.lazy(),
    "categories": lambda: POLARS.lazy().with_columns(pl.col("sex").cast(pl.Categorical)),
    "unknown": lambda: OnlyArrow(TABLE),
    "batches": lambda: iter(TABLE.to_batches(max_chunksize=90)),
    "pandas frames": lambda: iter(in_pieces(FRAME[FRAME["a"] > -1e9])),
    "polars frames": lambda: (piece for piece in in_pieces(POLARS)),
}


@pytest.fixture(params=STREAMS)
def stream(request):
    return STREAMS[request.param]()


def test_moments_are_those_of_the_rows_in_memory(stream):
    moments = GroupMoments.from_data(stream, "sex", "w")
    assert moments.feature_names == COLUMNS
    assert_same_moments(moments, EXPECTED)


def test_streams_are_added_to_moments(stream):
    moments = GroupMoments.from_data(FRAME, "sex", "w").update(stream, "sex", "w")
    twice = GroupMoments.from_data(np.vstack([X, X]), [*SEX, *SEX], [*WEIGHTS, *WEIGHTS])
    assert_same_moments(moments, twice)


@pytest.mark.parametrize("whole", [FRAME, POLARS, TABLE, TABLE.combine_chunks().to_batches()[0]])
def test_columns_of_tables_in_memory_have_names(whole):
    assert_same_moments(GroupMoments.from_data(whole, "sex", "w"), EXPECTED)
    moments = GroupMoments.from_data(whole, ["sex"], "w")
    assert moments.groups.tolist() == EXPECTED.groups.tolist()


def test_large_batches_are_cut(monkeypatch):
    from fairpca._input import stream as door

    monkeypatch.setattr(door, "ENTRIES_AT_A_TIME", 1)
    n = 5000
    rows, groups = np.random.default_rng(0).normal(size=(n, 3)), np.arange(n) % 3 % 2
    table = pa.table({**dict(zip("abc", rows.T, strict=True)), "g": groups})
    sizes = [batch.X.n_rows for batch in door.open_input(table.to_reader(), "g").X.batches()]
    assert sizes == [1024, 1024, 1024, 1024, 904]
    assert_same_moments(
        GroupMoments.from_data(table.to_reader(), "g"), GroupMoments.from_data(rows, groups)
    )


def test_folds_and_outcomes_are_those_of_the_rows_in_memory(stream):
    y = np.where(X[:, 1] > 5, "ill", "well")
    table = TABLE.append_column("y", pa.array(y))
    expected = GroupMoments.from_data(X, SEX, target=y, folds=5, fold_seed=3)
    moments = GroupMoments.from_data(
        table.drop(["w"]).to_reader(64), "sex", target="y", folds=5, fold_seed=3
    )
    assert moments.outcomes.tolist() == ["ill", "well"]
    for fold in range(5):
        for ours, theirs in zip(moments.split(fold), expected.split(fold), strict=True):
            assert_same_moments(ours._by_outcome()[0], theirs._by_outcome()[0])


def test_several_columns_are_crossed():
    old = np.arange(len(X)) % 3 == 0
    groups = pd.DataFrame({"sex": SEX, "old": old})
    expected = GroupMoments.from_data(X, groups)
    table = TABLE.drop(["w"]).append_column("old", pa.array(old))
    assert_same_moments(GroupMoments.from_data(table.to_reader(64), ["sex", "old"]), expected)
    assert_same_moments(GroupMoments.from_data(table, ["sex", "old"]), expected)
    assert expected.groups.tolist()[0] == "g0 & old=False"


NUMBERS = {
    "half": pa.array(np.arange(6), pa.float16()),
    "float": pa.array(np.arange(6), pa.float32()),
    "small": pa.array(np.arange(6), pa.uint8()),
    "large": pa.array(np.arange(6), pa.int64()),
    "boolean": pa.array([True, False] * 3),
    "decimal": pa.array([Decimal(i) / 2 for i in range(6)], pa.decimal128(10, 3)),
    "huge": pa.array([Decimal(10**30 * i) for i in range(6)], pa.decimal128(38, 0)),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_every_type_are_cast(kind):
    values = NUMBERS[kind]
    expected = np.array([float(value) for value in values.to_pylist()])
    labels = pa.array(list("xyxyyx"))
    rows = np.column_stack([expected, np.ones(6)])
    table = pa.table({"a": values, "one": pa.array(np.ones(6)), "g": labels})
    moments = GroupMoments.from_data(table.to_reader(), "g")
    assert_same_moments(moments, GroupMoments.from_data(rows, labels.to_pylist()))


def test_hugeints_of_queries():
    relation = duckdb.sql(
        "SELECT i::hugeint AS a, i * i AS b, i % 2 + sum(0) OVER () AS g FROM range(9) t(i)"
    )
    rows = np.arange(9.0)
    moments = GroupMoments.from_data(relation, "g")
    assert moments.groups.tolist() == [0, 1]
    assert_same_moments(
        moments, GroupMoments.from_data(np.column_stack([rows, rows**2]), np.arange(9) % 2)
    )


OTHERS = {
    "date": (pa.array([datetime.date(2020, 1, 1)] * 4), "turn it into a number"),
    "time": (pa.array([datetime.time(12)] * 4), "turn it into a number"),
    "duration": (pa.array([datetime.timedelta(1)] * 4), "turn it into a number"),
    "text": (pa.array(list("abcd")), "encode it as numbers"),
    "list": (pa.array([[1.0]] * 4), "a column of each of its numbers"),
    "categories": (pa.array(list("abcd")).dictionary_encode(), "encode it as numbers"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_no_number_is_refused_by_name(kind):
    values, cure = OTHERS[kind]
    table = pa.table({"a": [1.0, 2, 3, 5], "odd": values, "g": [0, 1, 0, 1]})
    with pytest.raises(TypeError, match=f"column 'odd' of X is not of numbers .*{cure}"):
        GroupMoments.from_data(table.to_reader(), "g")
    named = GroupMoments.from_data(table.to_reader(), "g", target="odd") if kind != "list" else None
    assert named is None or named.feature_names == ["a"]


def test_nulls_are_missing_values():
    table = pa.table({"a": [1, None, 3, 4], "b": [1.0, 2, 3, 5], "g": ["x", "y", None, "x"]})
    moments = GroupMoments()
    with pytest.raises(
        ValueError, match=r"begins with row 0 of X: .* NaN in column 'a', first in row 1"
    ):
        moments.update(table.take([0, 1]).to_reader(), "g")
    with pytest.raises(ValueError, match="sensitive_features has 1 missing label"):
        moments.update(table.take([0, 2]).to_reader(), "g")
    weights = table.take([0, 3]).append_column("w", pa.array([1.0, None]))
    with pytest.raises(ValueError, match="row 1 has nan"):
        moments.update(weights.to_reader(), "g", "w")
    assert moments.n_features == 0


class Watched:
    """An iterator that knows whether it has been closed."""

    def __init__(self, parts):
        self._parts = iter(parts)
        self.closed = False

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._parts)

    def close(self):
        self.closed = True


@pytest.mark.parametrize(
    ("last", "error"), [(None, None), ("text", TypeError), (FRAME.assign(a="text"), TypeError)]
)
def test_streams_are_closed_whatever_happens(last, error):
    watched = Watched([TABLE, last] if error else [TABLE])
    if error is None:
        GroupMoments.from_data(watched, "sex", "w")
    else:
        with pytest.raises(error, match=r"items are of type|not of numbers"):
            GroupMoments.from_data(watched, "sex", "w")
    assert watched.closed


def test_duckdb_can_be_asked_again():
    """A connection is blocked while one of its streams is open."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE people AS SELECT i AS a, i * i AS b, i % 2 AS g FROM range(100000) t(i)"
    )
    for names in (["g"], ["h"]):
        relation = connection.sql("FROM people")
        try:
            GroupMoments.from_data(relation, names)
        except ValueError:
            assert names == ["h"]
        assert connection.sql("SELECT count(*) FROM people").fetchall() == [(100_000,)]


def test_what_is_refused():
    def moments(X, *names, **options):
        return GroupMoments.from_data(X, *names, **options)

    with pytest.raises(
        TypeError, match="sensitive_features must be the name of one of its columns"
    ):
        moments(TABLE.to_reader(), SEX)
    with pytest.raises(ValueError, match=r"X has no column 'sexe'; pass a name such as \['sex'\]"):
        moments(TABLE.to_reader(), "sexe")
    with pytest.raises(ValueError, match="X has no column 'sexe'"):
        moments(FRAME, "sexe")
    with pytest.raises(ValueError, match="may be labels or names of columns"):
        moments(FRAME[:1], ["sex"])
    with pytest.raises(ValueError, match="X has no features"):
        moments(TABLE.select(["sex"]).to_reader(), "sex")
    with pytest.raises(ValueError, match="no rows of positive weight"):
        moments(TABLE.slice(0, 0).to_reader(), "sex", "w")
    with pytest.raises(ValueError, match="no rows of positive weight"):
        moments(iter([]), "sex")
    with pytest.raises(TypeError, match=r"items are of type ndarray; .*moments\.update"):
        moments(iter([X]), "sex")
    with pytest.raises(ValueError, match="a number of folds"):
        moments(TABLE.to_reader(), "sex", folds=np.zeros(len(X), int))
    with pytest.raises(ValueError, match="columns that differ"):
        moments(iter([TABLE, TABLE.rename_columns(["a", "b", "c", "e", "sex", "w"])]), "sex", "w")
    many = pa.table({"a": np.arange(300.0), "g": np.arange(300)})
    with pytest.raises(ValueError, match="different numbers"):
        moments(iter(many.to_batches(max_chunksize=60)), "g")
    negative = TABLE.set_column(5, "w", pa.array(-WEIGHTS))
    with pytest.raises(ValueError, match="finite and non-negative"):
        moments(negative.to_reader(), "sex", "w")


def test_spark_frames_have_a_door_of_their_own():
    class DataFrame:
        """The name and module are all that we look at."""

    DataFrame.__module__ = "pyspark.sql.dataframe"
    with pytest.raises(TypeError, match=r"GroupMoments\.from_spark"):
        GroupMoments.from_data(DataFrame(), "sex")


Y = np.where(X[:, 1] > 5, "ill", "well")
MODELS = {
    "FairPCA": (lambda: FairPCA(2), {}),
    "standardized": (lambda: FairPCA(2, standardize=True), {"sample_weight": "w"}),
    "FairPCACV": (lambda: FairPCACV(2, cv=5), {}),
    "MinMaxPCA": (lambda: MinMaxPCA(2), {}),
    "WelfarePCA": (lambda: WelfarePCA(2), {"sample_weight": "w"}),
    "BlindPCA": (lambda: BlindPCA(2, notion="equalized_odds"), {"y": "y"}),
    "FairPLS": (lambda: FairPLS(2), {"y": "y"}),
    "FairPLS of numbers": (lambda: FairPLS(2), {"y": "w"}),
    "GroupEraser": (lambda: GroupEraser(), {"sample_weight": "w"}),
    "FairColumns": (lambda: FairColumns(2), {}),
}


@pytest.mark.parametrize("name", MODELS)
def test_estimators_are_fitted_to_streams_and_transform_them(name):
    make, names = MODELS[name]
    values = {"w": WEIGHTS, "y": Y}
    columns = [*COLUMNS, "sex", *names.values()]
    frame = FRAME.assign(y=Y)[columns]
    given = {argument: values[column] for argument, column in names.items()}
    expected = make().fit(FRAME[COLUMNS], sensitive_features=SEX, **given)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    wanted = np.asarray(expected.transform(FRAME[COLUMNS]))
    for source in (lambda: table.to_reader(90), lambda: duckdb.from_arrow(table), lambda: frame):
        model = make().fit(source(), sensitive_features="sex", **names)
        assert model.feature_names_in_.tolist() == COLUMNS
        assert model.groups_.tolist() == expected.groups_.tolist()
        np.testing.assert_allclose(model.transform(FRAME[COLUMNS]), wanted, atol=1e-8)
        np.testing.assert_allclose(model.transform(frame), wanted, atol=1e-8)
        reader = model.transform(source()) if source() is not frame else None
        if reader is not None:
            assert isinstance(reader, pa.RecordBatchReader)
            found = reader.read_all().to_pandas()
            kept = ["sex", *names.values()]
            assert found.columns.tolist() == [*kept, *model.get_feature_names_out()]
            assert found["sex"].tolist() == SEX.tolist()
            np.testing.assert_allclose(found.iloc[:, len(kept) :], wanted, atol=1e-8)


def test_blocks_may_be_streams():
    expected = FairPCA(2).fit(X, sensitive_features=SEX)
    pieces = in_pieces(FRAME[[*COLUMNS, "sex"]])
    model = FairPCA(2)
    model.partial_fit(pa.Table.from_pandas(pieces[0]).to_reader(), sensitive_features="sex")
    model.partial_fit(iter(pieces[1:3]), sensitive_features="sex")
    for piece in pieces[3:]:
        model.partial_fit(piece, sensitive_features="sex")
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-8)
    with pytest.raises(ValueError, match="columns that differ"):
        model.partial_fit(
            pa.table(pieces[0][["b", "a", "c", "d", "sex"]]).to_reader(), sensitive_features="sex"
        )


def test_paths_of_streams():
    expected = tradeoff_path(X, SEX, n_components=2, n_points=3, cv=3)
    path = tradeoff_path(TABLE.drop(["w"]).to_reader(64), "sex", n_components=2, n_points=3, cv=3)
    np.testing.assert_allclose(path.disparity, expected.disparity, atol=1e-8)
    np.testing.assert_allclose(path.held_out.disparity, expected.held_out.disparity, atol=1e-8)


def test_many_columns_form_matrices():
    rng = np.random.default_rng(0)
    rows, groups = rng.normal(size=(300, 200)) * np.linspace(3, 1, 200), np.arange(300) % 3 % 2
    table = pa.table({**{f"x{j}": column for j, column in enumerate(rows.T)}, "g": groups})
    moments = GroupMoments.from_data(table.to_reader(40), "g")
    assert_same_moments(moments, GroupMoments.from_data(rows, groups))


def test_transforming_nothing_and_what_is_refused():
    model = FairPCA(2).fit(FRAME, sensitive_features="sex", sample_weight="w")
    empty = model.transform(TABLE.slice(0, 0).to_reader()).read_all()
    assert empty.num_rows == 0
    assert empty.column_names == ["sex", "w", "fairpca0", "fairpca1"]
    assert model.transform(iter([])).read_all().num_rows == 0
    with pytest.raises(ValueError, match="X has no column 'd'"):
        model.transform(TABLE.drop(["d"]).to_reader())
    with pytest.raises(ValueError, match="two columns named 'fairpca0'"):
        model.transform(TABLE.rename_columns([*COLUMNS, "fairpca0", "w"]).to_reader())
    with pytest.raises(TypeError, match="column 'a' of X is not of numbers"):
        model.transform(TABLE.set_column(0, "a", TABLE["sex"]).to_reader())
    with pytest.raises(ValueError, match="feature names"):
        model.transform(FRAME.assign(other=1.0))
    broken = model.transform(
        TABLE.set_column(0, "a", pa.nulls(len(TABLE), pa.float64())).to_reader()
    )
    with pytest.raises(ValueError, match="NaN"):
        broken.read_all()


def test_readers_are_closed_when_the_scores_are_read_or_dropped():
    model = FairPCA(2).fit(FRAME, sensitive_features="sex", sample_weight="w")
    watched = Watched(TABLE.to_batches(max_chunksize=100))
    reader = model.transform(watched)
    reader.read_next_batch()
    assert not watched.closed
    del reader
    assert watched.closed
    watched = Watched([TABLE.drop(["a"])])
    with pytest.raises(ValueError, match="no column 'a'"):
        model.transform(watched)
    assert watched.closed


def test_splitters_and_pipelines_refuse_streams():
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline

    reader = TABLE.drop(["w"]).to_reader()
    with pytest.raises(ValueError, match="needs all rows at once"):
        FairPCACV(2, cv=StratifiedKFold(5)).fit(reader, sensitive_features="sex")
    pipeline = make_pipeline(FairPCA(2), GroupEraser())
    with pytest.raises(TypeError, match=r"is a stream .* which is read once"):
        pipeline.fit(reader, fairpca__sensitive_features="sex", grouperaser__sensitive_features=SEX)
    with pytest.raises(TypeError, match="is a stream"):
        FairPCA(2).fit_transform(reader, sensitive_features="sex")


def test_forgotten_groups_of_a_stream():
    with pytest.raises(TypeError, match="sensitive_features is missing"):
        FairPCA(2).fit(TABLE.to_reader())


def test_frames_keep_the_named_columns_wherever_a_model_is_used():
    from fairpca.metrics import disparity_scorer, row_reconstruction_errors

    frame = FRAME.drop(columns="w")
    model = FairPCA(2).fit(frame, sensitive_features="sex")
    assert model.score(frame) == model.score(frame[COLUMNS])
    errors = row_reconstruction_errors(model, frame)
    np.testing.assert_array_equal(errors, row_reconstruction_errors(model, frame[COLUMNS]))
    score = disparity_scorer(model, frame[COLUMNS], sensitive_features=SEX)
    assert disparity_scorer(model, frame, sensitive_features="sex") == score
    reader = TABLE.drop(["w"]).to_reader(90)
    assert disparity_scorer(model, reader, sensitive_features="sex") == pytest.approx(score)


def test_pictures_take_the_named_columns():
    pytest.importorskip("matplotlib")
    from fairpca.plotting import ScoresDisplay

    frame = FRAME.drop(columns="w")
    model = FairPCA(2).fit(frame, sensitive_features="sex")
    drawn = ScoresDisplay.from_estimator(model, frame, "sex")
    assert drawn.groups.tolist() == model.groups_.tolist()
    with pytest.raises(TypeError, match="a picture needs rows in memory"):
        ScoresDisplay.from_estimator(model, TABLE.to_reader(), "sex")
