"""Spark data frames: moments by task, merged on the workers in a tree.

Second moments of wide data are larger than the rows they sum up, so there must be few of them: the
frame is coalesced to as many partitions as tasks run at once, and each task sums all its rows into
one result. A result is one row per group. A few of these rows are merged at a time, level by level,
so that no task ever holds more, and the driver gets one row per group. This is the only file that
imports pyspark.
"""

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from fairpca._blas import single_threaded_blas
from fairpca._input.arrow import pa
from fairpca._input.device import library_of
from fairpca._input.folds import FoldRule
from fairpca._input.stream import Stream
from fairpca._moments.group_moments import (
    GroupMoments,
    fan_in,
    moments_of_stream,
    naming,
    refuse_no_rows,
)

try:
    from pyspark import TaskContext
    from pyspark.errors import PythonException
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import to_arrow_schema
except ImportError as error:
    raise ImportError(
        "Spark data frames need pyspark; install it with pip install pyspark pyarrow."
    ) from error

_PART = "key string, slot bigint, part binary"


def moments_of_spark(frame: Any, roles: Stream, folds: FoldRule | None) -> GroupMoments:
    """The moments of a Spark frame; ``roles`` are a stream that names its columns."""
    if library_of(frame) != "pyspark":
        fact = f"expected a Spark data frame, got {type(frame).__name__}"
        raise TypeError(f"{fact}; pass rows in memory and streams to fit.")
    names = frame.columns
    features = roles.features_in(to_arrow_schema(frame.schema))
    # Spark gives dots and backticks in names a meaning.
    plain = frame.toDF(*(f"c{j}" for j in range(len(names))))
    plain = plain.withColumn("partition", F.spark_partition_id())
    n_slots = _task_slots(frame)
    sum_up = partial(_sum_up, replace(roles, source=None), names, folds)
    parts = plain.coalesce(n_slots).mapInArrow(sum_up, _PART)
    at_once = fan_in(len(features), folds)
    while n_slots > 1:
        n_slots = -(-n_slots // at_once)
        chunk = F.floor(F.col("slot") / at_once).cast("bigint").alias("chunk")
        parts = parts.groupBy("key", chunk).applyInArrow(_merger(at_once), _PART)
    moments = GroupMoments().merge(*(pickle.loads(row["part"]) for row in _collect(parts)))
    refuse_no_rows(moments)
    return moments


def _task_slots(frame: Any) -> int:
    """How many tasks run at once, or the partitions of a shuffle if Spark Connect hides it."""
    session = frame.sparkSession
    try:
        return int(session.sparkContext.defaultParallelism)
    except Exception:
        return int(session.conf.get("spark.sql.shuffle.partitions"))


def _collect(frame: Any) -> list[Any]:
    """The rows of the frame; our own errors on a worker are raised here without its traceback."""
    try:
        return sorted(frame.collect(), key=itemgetter("key"))
    except PythonException as error:
        messages = re.findall(r"^(Value|Type)Error: (.*)$", str(error), re.MULTILINE)
        if not messages:
            raise
        kind, message = messages[-1]
        raise {"Value": ValueError, "Type": TypeError}[kind](message) from error


def _sum_up(
    roles: Stream, names: Sequence[str], folds: FoldRule | None, batches: Iterable[Any]
) -> Iterator[Any]:
    """The moments of all rows of a task, as one row per group."""
    moments = GroupMoments()
    # A task reads several partitions of the frame, one after the other. Rows are counted in each of
    # them, so that folds do not depend on the number of tasks.
    for partition, run in groupby(_runs(names, batches), key=itemgetter(0)):
        stream = replace(roles, source=(batch for _, batch in run))
        with single_threaded_blas(), naming(f"in partition {partition} of the Spark frame"):
            moments = moments.merge(moments_of_stream(stream, folds, partition=partition))
    task = TaskContext.get()
    assert task is not None
    for label, part in moments.by_group():
        yield _row(f"{type(label).__name__} {label}", task.partitionId(), part)


def _runs(names: Sequence[str], batches: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """The rows of each partition in turn, with the names that the columns of the frame have."""
    for batch in batches:
        *columns, ids = batch.columns
        numbers = ids.to_numpy()
        changes = (np.flatnonzero(np.diff(numbers)) + 1).tolist()
        for start, stop in pairwise([0, *changes, len(numbers)]):
            if start < stop:
                rows = pa.RecordBatch.from_arrays(columns, names).slice(start, stop - start)
                yield int(numbers[start]), rows


def _merger(at_once: int) -> Callable[[Any], Any]:
    """A function of one argument, as Spark wants it, that merges rows of the same group."""

    def merge(table: Any) -> Any:
        rows = sorted(table.select(["slot", "part"]).to_pylist(), key=itemgetter("slot"))
        merged = GroupMoments().merge(*(pickle.loads(row["part"]) for row in rows))
        row = _row(table["key"][0].as_py(), rows[0]["slot"] // at_once, merged)
        return pa.Table.from_batches([row])

    return merge


def _row(key: str, slot: int, moments: GroupMoments) -> Any:
    columns = {"key": [key], "slot": [slot], "part": [pickle.dumps(moments, protocol=5)]}
    types = {"key": pa.string(), "slot": pa.int64(), "part": pa.binary()}
    return pa.RecordBatch.from_pydict(columns, pa.schema(types))
