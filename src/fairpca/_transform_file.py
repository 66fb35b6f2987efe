"""Scores of the rows of a file, written a batch at a time in the order of the file."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from sklearn.pipeline import Pipeline

from fairpca._model_file import load_model, read_extra
from fairpca._preparation import Features
from fairpca.sources.tables import TableError, TableFile

_WRITERS = {".csv": pc.CSVWriter, ".parquet": pq.ParquetWriter, ".pq": pq.ParquetWriter}


def transform_steps(
    model_path: str | os.PathLike[str],
    data: str,
    out: str,
    target: Path | None,
    keep: Sequence[str],
    encoding: str,
) -> Generator[str, None, int]:
    """Yield after each batch what was done; return the number of rows.

    ``target`` is the file to write, in the format that the ending of ``out`` says; None writes CSV
    to standard output. Columns in ``keep`` are copied as text from text files.
    """
    kind = Path(out).suffix.lower() if target is not None else ".csv"
    if kind not in _WRITERS:
        raise TableError(f"--out {out!r} must end in .csv or .parquet, or be - for CSV.")
    model = load_model(model_path)
    file = TableFile(data, encoding)
    features = _features(model, read_extra(model_path), file, keep)
    projection = model[-1] if isinstance(model, Pipeline) else model
    names = [*keep, *projection.get_feature_names_out().tolist()]
    if len(set(names)) < len(names):
        raise TableError(f"--keep {keep!r} names a column twice, or one that the scores need.")
    kept = file.types(keep)
    schema = pa.schema([*kept.items(), *((name, pa.float64()) for name in names[len(keep) :])])
    n_rows = 0
    with _WRITERS[kind](sys.stdout.buffer if target is None else str(target), schema) as writer:
        for rows in file.batches(kept | features.types):
            _refuse_missing(rows.select(features.columns), n_rows, file.name)
            X = np.column_stack(
                [column.to_numpy() for column in features.table(rows, file.name).columns]
            )
            scores = _plain_transform(model, X)
            arrays = [*rows.select(list(keep)).columns, *(pa.array(s) for s in scores.T)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            n_rows += len(scores)
            yield f"{n_rows} rows"
    return n_rows


def _plain_transform(model: Any, X: Any) -> Any:
    """Transform columns that are known to be in order, whatever they are called."""
    if isinstance(model, Pipeline):
        scaler, projection = model[0], model[-1]
        return (X / scaler.scale_ - projection.mean_) @ projection.components_.T
    return (X - model.mean_) @ model.components_.T


def _features(model: Any, extra: dict[str, Any], file: TableFile, keep: Sequence[str]) -> Features:
    """The columns the model was fitted to: by name, or by number when it has no names."""
    if "columns" in extra:
        return Features(extra["columns"], extra.get("categories", {}))
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return Features([str(name) for name in names])
    others = [name for name in file.column_names() if name not in keep]
    if len(others) != model.n_features_in_:
        raise TableError(
            f"the model was fitted to {model.n_features_in_} columns without names, and "
            f"{file.name} has {len(others)} besides --keep; pass a file with just those columns."
        )
    return Features(others)


def _refuse_missing(rows: pa.Table, before: int, where: str) -> None:
    for name in rows.column_names:
        missing = rows[name].is_null(nan_is_null=True).to_numpy()
        if missing.any():
            raise TableError(
                f"column {name!r} of {where} has a missing value in row "
                f"{before + int(missing.argmax()) + 1}; fill it, or leave that row out."
            )
