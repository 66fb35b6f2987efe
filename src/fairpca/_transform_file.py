"""Scores of the rows of a file, written a batch at a time in the order of the file."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import narwhals.stable.v1 as nw
from sklearn.pipeline import Pipeline

from fairpca._model_file import load_model, read_extra
from fairpca._preparation import Features, missing_rows, split_names
from fairpca._steps import Step
from fairpca.sources.tables import TableError, TableFile, TableWriter


def transform_steps(
    model_path: str | os.PathLike[str],
    data: str,
    out: str,
    target: Path | None,
    keep: Sequence[str],
    encoding: str,
) -> Generator[Step, None, int]:
    """Yield after each batch what was done; return the number of rows.

    ``target`` is the file to write, in the format that the ending of ``out`` says; None writes CSV
    to standard output. Columns in ``keep`` are copied, from text files as text.
    """
    model = load_model(model_path)
    file = TableFile(data, encoding)
    keep = split_names(keep, file.column_names())
    features = _features(model, read_extra(model_path), file, keep)
    projection = model[-1] if isinstance(model, Pipeline) else model
    names = projection.get_feature_names_out().tolist()
    if len({*keep, *names}) < len(keep) + len(names):
        raise TableError(f"--keep {list(keep)} names a column twice, or one of the scores {names}.")
    text = list(features.categories)
    numbers = [column for column in features.columns if column not in features.categories]
    n_rows = 0
    with TableWriter(target, ".csv" if target is None else Path(out).suffix.lower()) as writer:
        for batch in file.batches(numbers, text, keep):
            rows = nw.from_native(batch, eager_only=True)
            for name in features.columns:
                missing = missing_rows(rows[name])
                if missing.any():
                    raise TableError(
                        f"column {name!r} of {file.name} has a missing value in row "
                        f"{n_rows + int(missing.argmax()) + 1}; fill it, or leave that row out."
                    )
            scores = _transform(model, features.frame(rows, file.name).to_numpy())
            columns = [rows.select(*keep)] if keep else []
            columns.append(nw.from_numpy(scores, names, backend=rows.implementation))
            writer.write(nw.concat(columns, how="horizontal").to_native())
            n_rows += len(scores)
            yield Step("rows", n_rows)
    return n_rows


def _transform(model: Any, X: Any) -> Any:
    """Transform columns that are known to be in order, whatever they are called."""
    if isinstance(model, Pipeline):
        return _transform(model[-1], X / model[0].scale_)
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
