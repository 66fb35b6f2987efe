"""Scores of the rows of files, written as they are read, in their order."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from fairpca._models.safetensors import load_model, read_extra
from fairpca._moments.prepare import split_names
from fairpca._progress import Step
from fairpca._tables.decode import Block
from fairpca._tables.roles import Layout
from fairpca._tables.table import FileTable
from fairpca._tables.writing import score_writer


def transform_steps(
    model_path: str | os.PathLike[str],
    data: Any,
    output: str,
    keep: Sequence[str],
    drop_missing: bool,
    encoding: str,
) -> Generator[Step, None, tuple[int, int]]:
    """Yield after each block what was done; return the numbers of rows written and left out.

    ``output`` is the file to write, or ``-`` for CSV on standard output. Columns in ``keep`` are
    copied, from text files as text.
    """
    model = load_model(model_path)
    table = FileTable(data, encoding=encoding)
    layout = _layout(model, read_extra(model_path), table, split_names(keep, table.types))
    projection = model[-1] if isinstance(model, Pipeline) else model
    scale = model[0].scale_ if isinstance(model, Pipeline) else 1.0
    components, mean = projection.components_ / scale, projection.mean_ * scale
    names = projection.get_feature_names_out().tolist()
    n_rows = n_dropped = 0

    def scores(block: Block) -> tuple[Any, Any, int]:
        return block.kept, block.scores(components, mean), block.n_dropped

    schema = [*table.kept_schema(layout), *((name, "float64") for name in names)]
    with score_writer(output, schema) as write:
        for kept, block_scores, dropped in table.map(layout, scores, drop_missing):
            write(kept, block_scores)
            n_rows += len(block_scores)
            n_dropped += dropped
            yield Step("rows", n_rows)
    return n_rows, n_dropped


def _layout(model: Any, extra: dict[str, Any], table: FileTable, keep: Sequence[str]) -> Layout:
    """The columns the model was fitted to: by name, or by number when it has no names."""
    columns = extra.get("columns", getattr(model, "feature_names_in_", None))
    if columns is None:
        columns = [name for name in table.default_columns if name not in keep]
        if len(columns) != model.n_features_in_:
            raise ValueError(
                f"the model was fitted to {model.n_features_in_} columns without names, and "
                f"{table.name} has {len(columns)} besides --keep; pass a file with just those "
                "columns."
            )
    names = tuple(str(name) for name in columns)
    layout = Layout(names, keep=tuple(keep), categories=extra.get("categories", {}))
    table.check(layout)
    return layout
