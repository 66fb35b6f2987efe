"""Spark data frames: moments by partition, merged on the workers before they reach the driver.

The only file that imports pyspark. Rows travel from the JVM to Python as Arrow record batches
(``mapInArrow``) and are decoded as those of files are; every partition becomes one row that holds
its pickled moments, and these are merged in at most ``_MERGERS`` tasks, in the order of partitions.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, TypeVar

from fairpca._input.device import library_of
from fairpca._tables.arrow import pa
from fairpca._tables.decode import Origin, RecordBatch, TableBlock, decode
from fairpca._tables.roles import Roles, choose_roles

try:
    from pyspark import TaskContext
    from pyspark.errors import PythonException
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType
except ImportError as error:
    raise ImportError(
        "Spark data frames need pyspark; install it with pip install 'fairpca[spark]'."
    ) from error

Part = TypeVar("Part")

_MERGERS = 8
_PART = "partition bigint, result binary"
_SOURCE = "the Spark frame"


def reduce_partitions(
    frame: Any,
    columns: Sequence[str] | None,
    group: str | Sequence[str],
    weight: str | None,
    drop_missing: bool,
    make: Callable[[TableBlock], Part],
    merge: Callable[[Part, Part], Part],
    nothing: Part,
) -> Part:
    """Call ``make`` for every record batch of the frame and merge the results, now."""
    roles = _frame_roles(frame, columns, group, weight, ())
    parts = _select(frame, roles.all).mapInArrow(
        partial(_reduce_batches, roles, drop_missing, make, merge), _PART
    )
    merged = parts.repartition(_MERGERS, F.col("partition") % _MERGERS).mapInArrow(
        partial(_merge_parts, merge), _PART
    )
    rows = sorted(_collect(merged), key=lambda row: row["partition"])
    return reduce(merge, (pickle.loads(row["result"]) for row in rows), nothing)


def map_scores(
    frame: Any,
    columns: Sequence[str] | None,
    keep: str | Sequence[str],
    drop_missing: bool,
    names: Sequence[str],
    components: Any,
    mean: Any,
) -> Any:
    """The frame of kept columns and scores, not yet computed."""
    roles = _frame_roles(frame, columns, None, None, keep)
    if len(roles.columns) != len(mean):
        raise ValueError(
            f"the Spark frame gives {len(roles.columns)} features, but {len(mean)} were fitted; "
            "pass their names as columns."
        )
    scored = [*roles.keep, *names]
    if len(set(scored)) < len(scored):
        raise ValueError(
            f"two columns of the scores would have the same name ({scored}); leave the clashing "
            "one out of keep."
        )
    schema = StructType([frame.schema[name] for name in roles.keep])
    for name in names:
        schema = schema.add(name, "double")
    work = partial(_score_batches, roles, drop_missing, names, components, mean)
    return _select(frame, roles.all).mapInArrow(work, schema)


def _frame_roles(
    frame: Any,
    columns: Sequence[str] | None,
    group: str | Sequence[str] | None,
    weight: str | None,
    keep: str | Sequence[str],
) -> Roles:
    if library_of(frame) != "pyspark":
        raise TypeError(
            f"expected a Spark data frame, got {type(frame).__name__}; pass rows in memory to fit "
            "and transform, or make a frame with spark.createDataFrame(table)."
        )
    for name in frame.columns:
        if frame.columns.count(name) > 1:
            raise ValueError(
                f"the Spark frame has two columns named {name!r}; rename one, for example with "
                "frame.toDF(*names)."
            )
    types = dict(frame.dtypes)
    usual = [name for name, kind in types.items() if _is_number(kind)]
    roles = choose_roles(_SOURCE, list(types), usual, columns, group, weight, keep)
    roles.check(_SOURCE, types, _is_number)
    return roles


def _is_number(kind: str) -> bool:
    numbers = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean")
    return kind in numbers or kind.startswith("decimal")


def _select(frame: Any, names: list[str]) -> Any:
    """These columns under plain names: Spark gives dots, backticks and upper case a meaning."""
    plain = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
    return plain.select(*(f"c{frame.columns.index(name)}" for name in names))


def _collect(frame: Any) -> list[Any]:
    """The rows of the frame; our own errors on a worker are raised here without its traceback."""
    try:
        rows: list[Any] = frame.collect()
    except PythonException as error:
        messages = re.findall(r"^(?:Value|Type)Error: (.*)$", str(error), re.MULTILINE)
        if not messages:
            raise
        raise ValueError(messages[-1]) from error
    return rows


def _decoded(
    batches: Iterable[RecordBatch], roles: Roles, drop_missing: bool
) -> Iterator[TableBlock]:
    origin, first_row = f"partition {_partition_id()} of {_SOURCE}", 0
    for batch in batches:
        batch = batch.rename_columns(roles.all)
        yield decode(batch, roles, drop_missing, Origin(origin, first_row))
        first_row += batch.num_rows


def _partition_id() -> int:
    task = TaskContext.get()
    assert task is not None, "this runs on a worker"
    return int(task.partitionId())


def _reduce_batches(
    roles: Roles,
    drop_missing: bool,
    make: Callable[[TableBlock], Part],
    merge: Callable[[Part, Part], Part],
    batches: Iterable[RecordBatch],
) -> Iterator[RecordBatch]:
    parts = map(make, _decoded(batches, roles, drop_missing))
    total = next(parts, None)
    if total is not None:
        yield _part(_partition_id(), reduce(merge, parts, total))


def _merge_parts(
    merge: Callable[[Part, Part], Part], batches: Iterable[RecordBatch]
) -> Iterator[RecordBatch]:
    parts = [part for batch in batches for part in batch.to_pylist()]
    if parts:
        parts.sort(key=lambda part: part["partition"])
        total: Any = reduce(merge, (pickle.loads(part["result"]) for part in parts))
        yield _part(parts[0]["partition"], total)


def _part(partition: int, result: Any) -> RecordBatch:
    return pa.RecordBatch.from_pydict({"partition": [partition], "result": [pickle.dumps(result)]})


def _score_batches(
    roles: Roles,
    drop_missing: bool,
    names: Sequence[str],
    components: Any,
    mean: Any,
    batches: Iterable[RecordBatch],
) -> Iterator[RecordBatch]:
    for block in _decoded(batches, roles, drop_missing):
        scores = block.scores(components, mean)
        kept = dict(zip(roles.keep, block.kept.columns, strict=True))
        yield pa.RecordBatch.from_pydict({**kept, **dict(zip(names, scores.T.copy(), strict=True))})
