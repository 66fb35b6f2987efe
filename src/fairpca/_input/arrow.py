"""Streams of Arrow batches: how they are opened, cut, decoded and closed.

The only file of the library that imports pyarrow; the command line has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._input.checks import refuse_twins, refuse_unknown_columns
from fairpca._input.device import ENTRIES_AT_A_TIME, library_of
from fairpca._input.labels import CodedLabels
from fairpca._typing import Array

try:
    import pyarrow as pa
except ImportError as error:
    raise ImportError(
        "streams of rows need pyarrow; install it with pip install pyarrow."
    ) from error

__all__ = ["pa"]


def record_batches(source: Any) -> Generator[Any]:
    """The record batches of a stream, which is opened once and closed whatever happens."""
    parts: Iterable[Any] = [source]
    if hasattr(source, "collect_batches"):  # a LazyFrame of polars
        parts = source.collect_batches()
    elif not hasattr(source, "__arrow_c_stream__") and isinstance(source, Iterator):
        parts = source
    try:
        for part in parts:
            with closing(_reader_of(part)) as reader:
                yield from _or_none(reader)
    finally:
        if hasattr(parts, "close"):
            parts.close()


def _reader_of(part: Any) -> Any:
    """A reader of the record batches of a frame, a batch or anything that exports a stream."""
    if library_of(part) == "pandas":  # it would export its index as a column
        return pa.Table.from_pandas(part, preserve_index=False).to_reader()
    if isinstance(part, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(part.schema, [part])
    if hasattr(part, "scanner"):  # a dataset of pyarrow
        part = part.scanner()
    if hasattr(part, "to_reader"):  # a scanner, or a table
        return part.to_reader()
    if not hasattr(part, "__arrow_c_stream__"):
        raise TypeError(
            f"X is an iterator whose items are of type {type(part).__name__}; pass an iterator of "
            "record batches or data frames, or add arrays one after the other, "
            "moments.update(X, sensitive_features)."
        )
    try:
        return pa.RecordBatchReader.from_stream(part)
    except pa.ArrowInvalid as error:
        problem = f"pyarrow cannot read a column of X ({error})"
        raise TypeError(f"{problem}; cast it to floating-point numbers, or leave it out.") from None


def _or_none(reader: Any) -> Iterator[Any]:
    """The batches of a reader, or one without rows, so that its columns are checked."""
    empty = True
    for batch in reader:
        empty = False
        yield batch
    if empty:
        yield pa.RecordBatch.from_pylist([], reader.schema)


def mapped(
    source: Any, features: Sequence[str], names: Sequence[str], function: Callable[[Any], Any]
) -> Any:
    """A reader of the columns of a stream that are no features, and then of new columns.

    ``function`` makes the new columns, called ``names``, of a table of the features. Without their
    names, all columns are features.
    """
    batches = record_batches(source)
    try:
        first: Any = next(batches, None)
        columns = list(features) if first is None else first.schema.names
        refuse_unknown_columns(features, columns)
        wanted = list(features) or columns
        kept = [name for name in columns if name not in wanted]
        refuse_twins([*kept, *names])
        if first is not None:
            refuse_columns(first.schema, wanted)
        new = [pa.field(name, pa.float64()) for name in names]
        schema = pa.schema([*(first.schema.field(name) for name in kept), *new])
    except BaseException:
        batches.close()
        raise

    def outputs() -> Iterator[Any]:
        with closing(batches):
            for whole in [] if first is None else chain([first], batches):
                for batch in pieces(whole, ENTRIES_AT_A_TIME):
                    numbers = [numbers_of(batch.column(name)) for name in wanted]
                    table = pa.table(dict(zip(wanted, numbers, strict=True)))
                    scores = np.asarray(function(table), np.float64)
                    carried = [batch.column(name) for name in kept]
                    yield pa.record_batch([*carried, *map(pa.array, scores.T.copy())], schema)

    return pa.RecordBatchReader.from_batches(schema, outputs())


def pieces(batch: Any, n_entries: int) -> Iterator[Any]:
    """A record batch cut into parts of about so many entries, without copying; none if empty."""
    size = max(n_entries // max(batch.num_columns, 1), 1024)
    for start in range(0, batch.num_rows, size):
        yield batch.slice(start, size)


def refuse_columns(schema: Any, features: Sequence[str]) -> None:
    """Refuse features that are not numbers, and say what to do with each kind of column."""
    for name in features:
        kind = schema.field(name).type
        if holds_numbers(kind) or pa.types.is_null(kind):
            continue
        cure = "leave it out"
        if pa.types.is_temporal(kind):
            cure += ", or turn it into a number, such as a year or a number of days"
        elif pa.types.is_nested(kind):
            cure += ", or make a column of each of its numbers"
        else:
            cure += ", encode it as numbers, or name it: sensitive_features, sample_weight or y"
        raise TypeError(f"column {name!r} of X is not of numbers ({kind}); {cure}.")


def holds_numbers(kind: Any) -> bool:
    """Whether a column of this type holds numbers, or booleans, which are 0 and 1."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )


def numbers_of(column: Any) -> NDArray[Any]:
    """A column as floating-point numbers, NaN where it is null; a view where that is possible."""
    if not (pa.types.is_float64(column.type) or pa.types.is_float32(column.type)):
        column = column.cast("float64", safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def labels_of(column: Any) -> CodedLabels:
    """A column of labels by code and dictionary; nulls have the label None."""
    coded = column
    if not pa.types.is_dictionary(column.type):
        coded = column.dictionary_encode()
    labels = [_plain(label) for label in coded.dictionary.to_pylist()]
    codes = coded.indices.cast("int64").fill_null(len(labels)).to_numpy(zero_copy_only=False)
    return CodedLabels(codes, [*labels, None])


def _plain(label: Any) -> Any:
    """A label as Python has it; whole decimals, which queries make of sums, are integers."""
    if not isinstance(label, Decimal):
        return label
    if label == label.to_integral_value():
        return int(label)
    return float(label)


def chunked(column: Any) -> Any:
    """A column that narwhals knows."""
    return pa.chunked_array([column])


def outcomes_of(column: Any) -> CodedLabels | Array:
    """A column of outcomes: numbers as they are, anything else as labels."""
    if holds_numbers(column.type):
        return numbers_of(column)
    return labels_of(column)
