"""Spark data frames: moments by task, merged on the workers in a tree.

Second moments of wide data are larger than the rows they sum up, so there must be few of them: the
frame is coalesced to as many partitions as tasks run at once, and each task sums all its rows into
one result. A result is one row per group, with the upper triangle of its matrices. A few of these
rows are merged at a time, level by level, so that no task ever holds more, and the driver gets one
row per group. This is the only file that imports pyspark.
"""

import pickle
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from fairpca._input.device import library_of
from fairpca._input.folds import FoldRule
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.sums import Sums
from fairpca._tables import merge_fan_in
from fairpca._typing import Array
from fairpca.cli.columns.prepare import Block, Summing, decode
from fairpca.cli.columns.roles import Roles, choose_roles, no_group, no_rows
from fairpca.cli.reader.files import first_names, pa, refuse_twin_names
from fairpca.cli.reader.table import Column, Table
from fairpca.exceptions import TableError

try:
    from pyspark import TaskContext
    from pyspark.errors import PythonException
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType
except ImportError as error:
    raise ImportError(
        "Spark data frames need pyspark; install it with pip install pyspark pyarrow."
    ) from error

_SOURCE = "the Spark frame"
_PART = "key string, slot bigint, part binary"
_TYPES = {"key": pa.string(), "slot": pa.int64(), "part": pa.binary()}
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean")


def moments_of_spark(frame: Any, *, folds: FoldRule | None, **columns: Any) -> GroupMoments:
    """The moments of a Spark frame; ``columns`` are arguments of :func:`choose_roles`."""
    roles = _frame_roles(frame, **columns)
    n_slots = _task_slots(frame)
    chosen = _select(frame, roles).withColumn("partition", F.spark_partition_id())
    parts = chosen.coalesce(n_slots).mapInArrow(partial(_sum_up, roles, folds), _PART)
    fan_in = merge_fan_in(len(roles.feature_names), folds)
    while n_slots > 1:
        n_slots = -(-n_slots // fan_in)
        chunk = F.floor(F.col("slot") / fan_in).cast("bigint").alias("chunk")
        parts = parts.groupBy("key", chunk).applyInArrow(_merger(fan_in), _PART)
    rows = sorted(_collect(parts), key=lambda row: row["key"])
    found = [_unpacked(row["part"]) for row in rows]
    moments = reduce(GroupMoments.merge, found, GroupMoments())
    lost = [
        row["key"].partition(" ")[2]
        for row, group in zip(rows, found, strict=True)
        if row["key"] and group.n_dropped and not group.n_features
    ]
    if moments.n_features and (lost or moments.n_dropped > moments.counts.sum()):
        what = f"every row of {first_names(lost)}" if lost else "more than half of the rows"
        fact = f"{what} of {_SOURCE} would be left out, as they have missing values"
        raise TableError("missing", fact, "fill them in, or leave out columns with many")
    if not moments.n_features:
        raise no_rows(_SOURCE, moments.n_dropped)
    return moments


def map_scores(
    frame: Any, names: Sequence[str], encoder: Array, mean: Array, **columns: Any
) -> Any:
    """The frame of kept columns and scores, not yet computed."""
    roles = _frame_roles(frame, **columns)
    if len(roles.features) != len(mean):
        fact = f"the Spark frame gives {len(roles.features)} features, but {len(mean)} were fitted"
        raise TableError("no_features", fact, "pass their names as features")
    refuse_twin_names("the scores", [*roles.keep, *names], "leave one out of keep")
    schema = StructType([frame.schema[name] for name in roles.keep])
    for name in names:
        schema = schema.add(name, "double")

    def score(batches: Iterable[Any]) -> Iterator[Any]:
        partition, first_row = _task_index(), 0
        for batch in batches:
            block = _decoded(batch, roles, partition, first_row)
            first_row += batch.num_rows
            scores = block.scores(encoder, mean).T.copy()
            yield pa.RecordBatch.from_arrays([*block.kept.columns, *map(pa.array, scores)], kept)

    kept = [*roles.keep, *names]
    return _select(frame, roles).mapInArrow(score, schema)


def _frame_roles(frame: Any, **names: Any) -> Roles:
    if library_of(frame) != "pyspark":
        fact = f"expected a Spark data frame, got {type(frame).__name__}"
        raise TypeError(f"{fact}; pass rows in memory to fit, or spark.createDataFrame(table).")
    refuse_twin_names(_SOURCE, frame.columns)
    columns = {}
    for name, kind in frame.dtypes:
        number = kind in _NUMBERS or kind.startswith("decimal")
        columns[name] = Column(name, "number" if number else "text", *[name] * 4)
    rows = {"batches": lambda **_: ()}  # none are looked at
    table = cast(Table, SimpleNamespace(columns=columns, name=_SOURCE, **rows))
    if not names.get("sensitive_features", True):
        raise no_group(table)
    return choose_roles(table, **names)[0]


def _select(frame: Any, roles: Roles) -> Any:
    """The columns of the roles under plain names: Spark gives dots and backticks a meaning."""
    plain = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
    wanted = [*roles.read, *roles.keep]
    picked = (F.col(f"c{frame.columns.index(name)}") for name in wanted)
    return plain.select(*(column.alias(f"v{j}") for j, column in enumerate(picked)))


def _task_slots(frame: Any) -> int:
    """How many tasks run at once, or the partitions of a shuffle if Spark Connect hides it."""
    session = frame.sparkSession
    try:
        return int(session.sparkContext.defaultParallelism)
    except Exception:
        return int(session.conf.get("spark.sql.shuffle.partitions"))


def _task_index() -> int:
    task = TaskContext.get()
    assert task is not None
    return int(task.partitionId())


def _collect(frame: Any) -> list[Any]:
    """The rows of the frame; our own errors on a worker are raised here without its traceback."""
    try:
        return list(frame.collect())
    except PythonException as error:
        messages = re.findall(r"^[\w.]*(?:Value|Type|Table)Error: (.*)$", str(error), re.MULTILINE)
        if not messages:
            raise
        raise ValueError(messages[-1]) from error


def _sum_up(roles: Roles, folds: FoldRule | None, batches: Iterable[Any]) -> Iterator[Any]:
    """The moments of all rows of a task, as one row per group."""
    # A task reads several partitions of the frame, one after the other. Rows are counted in each of
    # them, so that folds do not depend on the number of tasks.
    summing, first_row, partition = Summing(roles), 0, -1
    for batch in batches:
        ids = batch.column(batch.num_columns - 1).to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist(), len(ids)]
        for start, stop in pairwise(edges):
            if stop > start and ids[start] != partition:
                partition, first_row = int(ids[start]), 0
                summing.start(None if folds is None else folds.within(partition))
            rows = batch.slice(start, stop - start).select(range(batch.num_columns - 1))
            summing.add(_decoded(rows, roles, partition, first_row))
            first_row += stop - start
    moments = summing.finished()
    if moments.n_features:
        moments._rule = folds
    yield from _packed(moments, summing.dropped, _task_index())


def _decoded(batch: Any, roles: Roles, partition: int, first_row: int) -> Block:
    where = f"partition {partition} of {_SOURCE}"
    try:
        block = decode(batch, roles)
    except TableError as error:
        raise error.at(where) from error
    if not (roles.drop_missing or block.complete.all()):
        name, gap = next(iter(block.missing.items()))
        row = first_row + int(gap.argmax()) + 1
        fact = f"{where} has a missing value in column {name!r}, row {row}"
        raise TableError("missing", fact, "fill it, or pass drop_missing=True")
    return block


def _merger(fan_in: int) -> Any:
    """A function of one argument, as Spark wants it, that merges rows of the same group."""

    def merge(table: Any) -> Any:
        slots, parts = table["slot"].to_pylist(), table["part"]
        order = sorted(range(len(slots)), key=slots.__getitem__)
        merged = reduce(GroupMoments.merge, (_unpacked(parts[i].as_buffer()) for i in order))
        return pa.Table.from_batches([_row(table["key"][0].as_py(), slots[0] // fan_in, merged)])

    return merge


def _row(key: str, slot: int, moments: GroupMoments) -> Any:
    """Moments as a row; their symmetric matrices are cut down to upper triangles."""
    state, sums = vars(moments).copy(), moments._sums
    if isinstance(sums, Sums):
        above = np.triu_indices(moments.n_features)
        state["_sums"] = replace(sums, grams=sums.grams[:, *above])
    columns = {"key": [key], "slot": [slot], "part": [pickle.dumps(state, protocol=5)]}
    return pa.RecordBatch.from_pydict(columns, pa.schema(_TYPES))


def _packed(moments: GroupMoments, dropped: Counter[Any], slot: int) -> Iterator[Any]:
    """A row with the moments and the number of dropped rows of each group, and of rows of none."""
    codes = {label: g for g, label in enumerate(moments.groups.tolist())}
    for label in [*codes, *(dropped.keys() - codes.keys()), None]:
        part = GroupMoments()
        if label in codes:
            part = moments._take(moments._cells[-1] == codes[label])
            part.groups, part._cells[-1] = moments.groups[[codes[label]]], 0
            part._seen = Counter({label: moments._seen[label]})
        part.n_dropped = dropped[label]
        if label is None:
            part.n_dropped = moments.n_dropped - sum(dropped.values())
        key = "" if label is None else f"{type(label).__name__} {label}"
        yield _row(key, slot, part)


def _unpacked(content: Any) -> GroupMoments:
    moments, state = GroupMoments(), pickle.loads(content)
    if isinstance(state["_sums"], Sums):
        halves, d = state["_sums"].grams, state["n_features"]
        rows, columns = np.triu_indices(d)
        grams = np.empty((len(halves), d, d))
        grams[:, rows, columns] = grams[:, columns, rows] = halves
        state["_sums"] = replace(state["_sums"], grams=grams)
    vars(moments).update(state)
    return moments
