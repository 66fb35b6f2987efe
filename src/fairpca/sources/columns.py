"""Rows of Arrow record batches: numbers, labels and weights out of named columns.

Files, Spark partitions and whatever else speaks Arrow come through :func:`decode`. Nothing here
imports pyarrow; whoever has a record batch has done so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fairpca._validation import CodedLabels

RecordBatch = Any


class ColumnRows:
    """Equally long numpy columns seen as rows; a block is put together when it is asked for."""

    is_sparse = False

    def __init__(self, columns: list[NDArray[Any]], names: list[str]) -> None:
        self.columns = columns
        self.feature_names: list[str] | None = names
        self.shape = self.n_rows, self.n_features = len(columns[0]), len(columns)
        single = all(column.dtype == np.float32 for column in columns)
        self.dtype = np.dtype(np.float32 if single else np.float64)

    def block(self, start: int, stop: int) -> NDArray[Any]:
        """Rows ``start`` to ``stop``, row by row in memory."""
        block = np.empty((stop - start, self.n_features), self.dtype)
        for j, column in enumerate(self.columns):
            block[:, j] = column[start:stop]
        return block


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are what."""

    columns: tuple[str, ...]
    group: str | None = None
    weight: str | None = None
    keep: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[str]:
        """The columns that must hold numbers: the features, then the weights."""
        return [*self.columns, *([self.weight] if self.weight else [])]

    @property
    def all(self) -> list[str]:
        """Every column that must be read, each once."""
        others = [name for name in (self.group, self.weight, *self.keep) if name is not None]
        return list(dict.fromkeys([*self.columns, *others]))


@dataclass(frozen=True)
class Block:
    """A decoded record batch."""

    rows: ColumnRows
    groups: CodedLabels | None
    weights: NDArray[np.float64] | None
    kept: RecordBatch
    n_dropped: int


def decode(
    batch: RecordBatch, layout: Layout, drop_missing: bool, origin: str, first_row: int
) -> Block:
    """Take the columns of ``layout`` out of a record batch.

    Rows with a missing value (null or NaN) in any number, label or weight are left out and counted
    with ``drop_missing``, otherwise refused with ``origin`` and their row number; infinities always
    are.
    """
    columns = [_floats(batch.column(name)) for name in layout.numbers]
    missing = np.zeros(batch.num_rows, bool)
    for name, column in zip(layout.numbers, columns, strict=True):
        if np.isfinite(column).all():
            continue
        infinite = np.isinf(column)
        if infinite.any():
            _refuse(name, origin, first_row + int(infinite.argmax()), "infinity")
        if not drop_missing:
            row = first_row + int(np.isnan(column).argmax())
            _refuse(name, origin, row, "a missing value")
        missing |= np.isnan(column)
    groups = None
    if layout.group is not None:
        groups, unknown = _labels(batch.column(layout.group))
        if unknown.any():
            if not drop_missing:
                row = first_row + int(unknown.argmax())
                _refuse(layout.group, origin, row, "a missing label")
            missing |= unknown
    kept = batch.select(list(layout.keep))
    n_dropped = int(np.count_nonzero(missing))
    if n_dropped:
        columns = [column[~missing] for column in columns]
        kept = kept.filter(~missing)
        if groups is not None:
            groups = CodedLabels(groups.codes[~missing], groups.labels)
    weights = columns.pop().astype(np.float64) if layout.weight else None
    return Block(ColumnRows(columns, list(layout.columns)), groups, weights, kept, n_dropped)


def _floats(column: Any) -> NDArray[Any]:
    """Arrow numbers or booleans as floats; nulls become NaN."""
    if str(column.type) not in ("double", "float"):
        column = column.cast("float64", safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _labels(column: Any) -> tuple[CodedLabels, NDArray[np.bool_]]:
    """Codes and labels of a column, and which rows have none."""
    coded = column if hasattr(column, "indices") else column.dictionary_encode()
    labels = coded.dictionary.to_pylist()
    codes = coded.indices.cast("int64").fill_null(len(labels)).to_numpy(zero_copy_only=False)
    no_label = np.array([label is None or label != label for label in [*labels, None]])
    return CodedLabels(codes, [*labels, None]), no_label[codes]


def _refuse(name: str, origin: str, row: int, what: str) -> NoReturn:
    remedy = (
        "correct the value or leave the column out"
        if what == "infinity"
        else "pass drop_missing=True to leave such rows out, or fill them first"
    )
    raise ValueError(
        f"{origin} has {what} in column {name!r}, row {row} (counting from 0); {remedy}."
    )
