"""Rows of Arrow record batches: numbers, labels and weights out of named columns.

Files, Spark partitions and whatever else speaks Arrow come through :func:`decode`. Nothing here
imports pyarrow; whoever has a record batch has done so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fairpca._intersections import cross_cells
from fairpca._validation import CodedLabels, refuse_unusable_columns

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

    def gather(self, start: int, stop: int, order: NDArray[np.intp], out: NDArray[Any]) -> None:
        """Put the rows from ``start`` to ``stop`` in this order into ``out``, column by column."""
        for j, column in enumerate(self.columns):
            if column.dtype == out.dtype:
                np.take(column[start:stop], order, out=out[:, j], mode="clip")
            else:
                out[:, j] = column[start:stop][order]

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
    groups: tuple[str, ...] = ()
    weight: str | None = None
    keep: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[str]:
        """The columns that must hold numbers: the features, then the weights."""
        return [*self.columns, *([self.weight] if self.weight else [])]

    @property
    def all(self) -> list[str]:
        """Every column that must be read, each once."""
        others = [name for name in (*self.groups, self.weight, *self.keep) if name is not None]
        return list(dict.fromkeys([*self.columns, *others]))

    @classmethod
    def choose(
        cls,
        source: str,
        types: Mapping[str, Any],
        is_number: Callable[[Any], bool],
        columns: Sequence[str] | None,
        group: str | Sequence[str] | None,
        weight: str | None,
        keep: Sequence[str],
    ) -> Layout:
        """The layout asked for; without ``columns``, all columns of numbers not used otherwise."""
        if isinstance(columns, str):
            raise TypeError(f"columns={columns!r} is one name; pass a list, columns=[{columns!r}].")
        groups = (group,) if isinstance(group, str) else tuple(group or ())
        if columns is None:
            used = {name for name in (*groups, weight, *keep) if name is not None}
            columns = [name for name, kind in types.items() if is_number(kind) and name not in used]
            if not columns:
                raise ValueError(
                    f"{source} has no column of numbers beside {sorted(used)}; its columns are "
                    f"{list(types)[:10]}."
                )
        for name in groups:
            if name in columns:
                raise ValueError(
                    f"the group column {name!r} is among the features; leave it out of columns."
                )
        return cls(tuple(columns), groups, weight, tuple(keep))

    def check(
        self, source: str, types: Mapping[str, Any], is_number: Callable[[Any], bool]
    ) -> None:
        """Refuse a table that lacks a column, or has text where numbers belong."""
        missing = [name for name in self.all if name not in types]
        if missing:
            raise ValueError(
                f"{source} has no column {', '.join(map(repr, missing[:5]))}; its columns are "
                f"{list(types)[:10]}{'...' if len(types) > 10 else ''}."
            )
        unusable = {name: types[name] for name in self.numbers if not is_number(types[name])}
        if unusable:
            refuse_unusable_columns(source, unusable)


@dataclass(frozen=True)
class Block:
    """A decoded record batch."""

    rows: ColumnRows
    groups: CodedLabels | None
    weights: NDArray[np.float64] | None
    kept: RecordBatch
    n_dropped: int
    origin: str
    first_row: int

    def scores(self, components: NDArray[Any], mean: NDArray[Any]) -> NDArray[np.float64]:
        """The rows, centred and projected."""
        X = self.rows.block(0, self.rows.n_rows)
        scores = np.asarray((X - mean) @ components.T)
        if not np.isfinite(scores).all():
            self.refuse_non_finite()
        return scores

    def refuse_non_finite(self) -> None:
        """Raise an error that says where the first NaN or infinity stands, if there is one.

        Asked for only when a result is not finite, which costs less than looking at every entry.
        """
        assert self.rows.feature_names is not None
        for name, column in zip(self.rows.feature_names, self.rows.columns, strict=True):
            _missing(name, column, False, self.origin, self.first_row)


def decode(
    batch: RecordBatch, layout: Layout, drop_missing: bool, origin: str, first_row: int
) -> Block:
    """Take the columns of ``layout`` out of a record batch.

    Rows with a missing value (null or NaN) in any number, label or weight are left out and counted
    with ``drop_missing``, otherwise refused with ``origin`` and their row number, as infinities
    always are; NaN and infinity among the features by :meth:`Block.refuse_non_finite` only.
    """
    columns = [_floats(batch.column(name)) for name in layout.numbers]
    missing = np.zeros(batch.num_rows, bool)
    for name, column in zip(layout.numbers, columns, strict=True):
        if drop_missing or name == layout.weight or batch.column(name).null_count:
            missing |= _missing(name, column, drop_missing, origin, first_row)
    groups = None
    parts = []
    for name in layout.groups:
        part, unknown = _labels(batch.column(name))
        if unknown.any():
            if not drop_missing:
                _refuse(name, origin, first_row + int(unknown.argmax()), "a missing label")
            missing |= unknown
        parts.append(part)
    if parts:
        groups = parts[0] if len(parts) == 1 else CodedLabels(*cross_cells(parts))
    kept = batch.select(list(layout.keep))
    n_dropped = int(np.count_nonzero(missing))
    if n_dropped:
        columns = [column[~missing] for column in columns]
        kept = kept.filter(~missing)
        if groups is not None:
            groups = CodedLabels(groups.codes[~missing], groups.labels)
    weights = columns.pop().astype(np.float64) if layout.weight else None
    rows = ColumnRows(columns, list(layout.columns))
    return Block(rows, groups, weights, kept, n_dropped, origin, first_row)


def _missing(
    name: str, column: NDArray[Any], drop: bool, origin: str, first_row: int
) -> NDArray[np.bool_]:
    """Which entries are NaN; refuses infinities, and NaN too unless they may be dropped."""
    infinite, nan = np.isinf(column), np.isnan(column)
    if infinite.any():
        _refuse(name, origin, first_row + int(infinite.argmax()), "infinity")
    if nan.any() and not drop:
        _refuse(name, origin, first_row + int(nan.argmax()), "a missing value")
    return np.asarray(nan)


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
