"""Scores written to a Parquet, CSV or TSV file as they come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fairpca._tables.arrow import pa, pa_csv, pq
from fairpca._tables.atomic import FileName, refuse_inputs, replacing
from fairpca._tables.decode import RecordBatch

Write = Callable[[RecordBatch, Any], None]


@contextmanager
def score_writer(
    output: FileName, schema: Sequence[tuple[str, Any]], reads: Iterable[FileName] = ()
) -> Iterator[Write]:
    """A function that appends rows to ``output``: columns carried along, then scores.

    The file appears under its name only when it is complete: readers see the old file or the new
    one, and if two processes write the same file, the last one wins. ``-`` is CSV on standard
    output, written at once. Files and folders of ``reads`` are not written to.
    """
    columns = pa.schema(schema)
    if len(set(columns.names)) < len(columns):
        raise ValueError(
            f"two columns of {output} would have the same name ({columns.names}); leave the "
            "clashing one out of keep."
        )
    suffix = ".csv" if output == "-" else Path(output).suffix.lower()
    if suffix not in (".csv", ".tsv", ".parquet", ".pq"):
        raise ValueError(
            f"the name of {output} does not say what to write; end it in .parquet or .csv."
        )
    as_text = suffix in (".csv", ".tsv")
    nested = [f"{f.name!r} ({f.type})" for f in columns if as_text and pa.types.is_nested(f.type)]
    if nested:
        raise ValueError(
            f"columns {', '.join(nested)} cannot be written as text; leave them out of keep, or "
            "name the output .parquet."
        )
    with ExitStack() as stack:
        if output == "-":
            refuse_inputs(output, reads)
            sink: Any = sys.stdout.buffer
        else:
            sink = stack.enter_context(replacing(output, reads))
        if as_text:
            options = pa_csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ",")
            writer = stack.enter_context(pa_csv.CSVWriter(sink, columns, write_options=options))
        else:
            writer = stack.enter_context(pq.ParquetWriter(sink, columns))

        def write(kept: RecordBatch, scores: Any) -> None:
            arrays = [*kept.columns, *(pa.array(column) for column in scores.T)]
            arrays = [_cast(a, f) for a, f in zip(arrays, columns, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=columns))

        yield write


def _cast(values: Any, column: pa.Field) -> Any:
    try:
        return values.cast(column.type)
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"column {column.name!r} is {column.type} in the first file and {values.type} in "
            f"another, with values that cannot be converted ({error}); write it with the same type "
            "in all files, or leave it out of keep."
        ) from error
