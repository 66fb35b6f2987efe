"""Scores of the rows of a table, written to a Parquet, CSV or TSV file as they are read."""

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._atomic import FileName, refuse_inputs, replacing
from fairpca.cli.columns.prepare import Record, blocks_of
from fairpca.cli.columns.roles import Roles
from fairpca.cli.reader.files import pa, pa_csv, pc, pq, refuse_twin_names
from fairpca.cli.reader.table import Table
from fairpca.exceptions import TableError


def write_scores(
    table: Table,
    roles: Roles,
    output: FileName,
    model: Any,
    *,
    progress: Callable[[float], object] | None = None,
    reads: Sequence[FileName] = (),
) -> tuple[int, int]:
    """Transform every row of a table; returns how many rows were written, and how many left out.

    The scores stand behind the columns that ``roles`` keeps. ``output`` is a Parquet, CSV or TSV
    file, which appears only when it is complete, or ``-`` for CSV on standard output; files of the
    table and ``reads`` are refused.
    """
    names = model.get_feature_names_out().tolist()
    types = dict(zip(roles.keep, table.types_of(roles.keep), strict=True))
    types |= {name: pa.float64() for name in roles.keep if name in roles.numbers}
    types |= {name: pa.string() for name, kind in types.items() if pa.types.is_dictionary(kind)}
    fields = [*((name, types[name]) for name in roles.keep), *((n, pa.float64()) for n in names)]
    refuse_twin_names(str(output), [name for name, _ in fields], "leave one out of keep")
    suffix = ".csv"
    if output != "-":
        suffix = Path(output).suffix.lower()
    if suffix not in (".csv", ".tsv", ".parquet", ".pq"):
        fact = f"the name of {output} does not say what to write"
        raise TableError("output", fact, "end it in .parquet or .csv")
    as_text = suffix in (".csv", ".tsv")
    other = [f"{name!r} ({kind})" for name, kind in fields if _is_no_text(kind)]
    if as_text and other:
        fact = f"columns {', '.join(other)} cannot be written as text"
        raise TableError("output", fact, "leave them out of keep, or name the output .parquet")
    if as_text:  # a spreadsheet would take some names for formulas
        fields = [(re.sub(r"^(?=[-=+@\t\r])", "'", name), kind) for name, kind in fields]
    schema = pa.schema(fields)
    record = Record()
    with ExitStack() as stack:
        refuse_inputs(output, [*table.inputs, *reads])
        sink: Any = sys.stdout.buffer
        if output != "-":
            sink = stack.enter_context(replacing(output))
        if as_text:
            options = pa_csv.WriteOptions(delimiter={".tsv": "\t"}.get(suffix, ","))
            writer = stack.enter_context(pa_csv.CSVWriter(sink, schema, write_options=options))
        else:
            writer = stack.enter_context(pq.ParquetWriter(sink, schema))
        for block in blocks_of(table, roles, record, progress):
            if not block.rows.n_rows:
                continue
            columns = [c.cast(t) for c, t in zip(block.kept, types.values(), strict=True)]
            if as_text:
                columns = list(map(_without_formulas, columns))
            by_name = hasattr(model, "feature_names_in_")
            X = block.rows.as_table() if by_name else block.rows.block(0, block.rows.n_rows)
            scores = np.asarray(model.transform(X), np.float64)
            columns += [pa.array(score) for score in scores.T]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    return record.n_rows - record.n_dropped, record.n_dropped


def _is_no_text(kind: Any) -> bool:
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return bool(binary or pa.types.is_nested(kind))


def _without_formulas(column: Any) -> Any:
    """Put an apostrophe in front of texts that a spreadsheet would run as formulas."""
    if not pa.types.is_string(column.type):
        return column
    minus = pc.match_substring_regex(column, r"^-")
    number = pc.match_substring_regex(column, r"^-[\d.,]+([eE][-+]?\d+)?$")
    runs = pc.or_(pc.match_substring_regex(column, r"^[=+@\t\r]"), pc.and_not(minus, number))
    return pc.if_else(runs, pc.binary_join_element_wise("'", column, ""), column)
