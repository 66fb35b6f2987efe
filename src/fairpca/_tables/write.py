"""Scores of the rows of a table, written to a Parquet, CSV or TSV file as they are read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._tables.arrow import pa, pa_csv, pc, pq
from fairpca._tables.atomic import FileName, refuse_inputs, replacing
from fairpca._tables.column_roles import Roles
from fairpca._tables.files import TableError
from fairpca._tables.prepare import Block, blocks_of
from fairpca._tables.read import Table
from fairpca._typing import Array

_FORMULA = r"^([=+@\t\r])"  # what a spreadsheet would run


def write_scores(
    table: Table,
    roles: Roles,
    output: FileName,
    names: Sequence[str],
    encoder: Array,
    mean: Array,
    *,
    progress: Callable[[float], object] | None = None,
    reads: Sequence[FileName] = (),
) -> tuple[int, int]:
    """Project every row of a table.

    Parameters
    ----------
    table : Table
    roles : Roles
        The features, and the columns that are carried along in front of the scores.
    output : path
        A Parquet, CSV or TSV file; ``-`` for CSV on standard output. The file appears under its
        name only when it is complete.
    names : sequence of str
        Names of the scores.
    encoder, mean : ndarray of shape (r, d), (d,)
        The scores of a row x are ``encoder @ (x - mean)``.
    progress : callable, optional
        Called with the fraction done.
    reads : sequence of paths
        Files that are read besides the table; none of these may be ``output``.

    Returns
    -------
    n_rows, n_dropped : int
        How many rows were written, and how many left out for missing values.
    """
    n_rows = n_dropped = 0
    kept = table.schema_of(roles.sql(table)[len(roles.numbers) + len(roles.labels) :])
    fields = [*zip(roles.keep, kept.types, strict=True), *((name, pa.float64()) for name in names)]
    with score_writer(output, pa.schema(fields), [*table.inputs, *reads]) as write:
        for block in blocks_of(table, roles, progress):
            write(block.kept, block_scores(block, encoder, mean))
            n_rows += block.rows.n_rows
            n_dropped += int((~block.complete).sum())
    return n_rows, n_dropped


def block_scores(block: Block, encoder: Array, mean: Array) -> Array:
    """The rows of a block, centred and projected."""
    return np.asarray((block.X - mean) @ encoder.T)


@contextmanager
def score_writer(
    output: FileName, schema: pa.Schema, reads: Iterable[FileName] = ()
) -> Iterator[Callable[[Any, Array], None]]:
    """A function that appends rows to ``output``: columns carried along, then scores."""
    if len(set(schema.names)) < len(schema):
        fact = f"two columns of {output} would have the same name ({schema.names})"
        raise TableError("output", fact, "leave the clashing one out of keep")
    suffix = ".csv" if output == "-" else Path(output).suffix.lower()
    if suffix not in (".csv", ".tsv", ".parquet", ".pq"):
        fact = f"the name of {output} does not say what to write"
        raise TableError("output", fact, "end it in .parquet or .csv")
    as_text = suffix in (".csv", ".tsv")
    nested = [f"{f.name!r} ({f.type})" for f in schema if as_text and pa.types.is_nested(f.type)]
    if nested:
        fact = f"columns {', '.join(nested)} cannot be written as text"
        raise TableError("output", fact, "leave them out of keep, or name the output .parquet")
    named = pa.schema([f.with_name(_unlike_formula(f.name)) if as_text else f for f in schema])
    with ExitStack() as stack:
        if output == "-":
            refuse_inputs(output, reads)
            sink: Any = sys.stdout.buffer
        else:
            sink = stack.enter_context(replacing(output, reads))
        if as_text:
            options = pa_csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ",")
            writer = stack.enter_context(pa_csv.CSVWriter(sink, named, write_options=options))
        else:
            writer = stack.enter_context(pq.ParquetWriter(sink, named))

        def write(kept: Any, scores: Array) -> None:
            columns = [_without_formulas(c) if as_text else c for c in kept.columns]
            columns += [pa.array(score) for score in scores.T]
            writer.write_batch(pa.record_batch(columns, schema=named))

        yield write


def _without_formulas(column: Any) -> Any:
    """Text cells that begin like a formula get an apostrophe in front, as spreadsheets write it."""
    if not pa.types.is_string(column.type):
        return column
    return pc.replace_substring_regex(column, _FORMULA, r"'\1")


def _unlike_formula(name: str) -> str:
    return f"'{name}" if name[:1] in "=+@\t\r" and name else name
