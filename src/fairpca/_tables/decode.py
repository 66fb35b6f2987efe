"""Rows of Arrow record batches: numbers, labels and weights out of named columns.

Files, Spark partitions and whatever else speaks Arrow come through :func:`decode`. Nothing here
imports pyarrow; whoever has a record batch has done so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fairpca._input.crossing import cell_text, cross_cells
from fairpca._input.labels import (
    CodedLabels,
)
from fairpca._input.rows import ColumnRows
from fairpca._tables.roles import Layout

RecordBatch = Any

_LARGE = 1e150  # sums of squares of larger numbers overflow
_FILL = "fill it first, or leave such rows out with drop_missing=True (--drop-missing)"


@dataclass(frozen=True)
class Origin:
    """Where the rows of a batch come from, for messages."""

    name: str
    first_row: int
    unit: str = "row"

    def place(self, i: int) -> str:
        """Row i of the batch as a person counts: from 1, the line of column names included."""
        return f"{self.unit} {self.first_row + i + (2 if self.unit == 'line' else 1)}"

    def refuse(self, column: str, i: int, what: str, remedy: str) -> NoReturn:
        """Raise an error about an entry of the batch."""
        raise ValueError(f"{self.name} has {what} in column {column!r}, {self.place(i)}; {remedy}.")


@dataclass(frozen=True)
class Block:
    """A decoded record batch; rows with missing values are left out of it, or it is refused.

    Attributes
    ----------
    numbers : dict of str to ndarray
        The columns of numbers, the weights among them.
    labels : dict of str to CodedLabels
        Group labels and the values of text columns.
    kept : RecordBatch
    missing : Counter of str
        How many values each column lacked.
    left : ndarray of int or None
        Which rows of the batch are here, where some were left out.
    n_dropped : int
        Rows left out.
    """

    layout: Layout
    origin: Origin
    numbers: dict[str, NDArray[Any]]
    labels: dict[str, CodedLabels]
    kept: RecordBatch
    missing: Counter[str]
    left: NDArray[np.intp] | None
    n_dropped: int

    @cached_property
    def rows(self) -> ColumnRows:
        """The features."""
        columns: list[NDArray[Any]] = []
        for name in self.layout.columns:
            if name in self.numbers:
                columns.append(self.numbers[name])
            else:
                columns += self._encoded(name, self.layout.categories[name])
        return ColumnRows(columns, self.layout.feature_names)

    @cached_property
    def groups(self) -> CodedLabels | None:
        """The group of each row; of several columns a label is the tuple of their labels."""
        parts = [self.labels[name] for name in self.layout.groups]
        if not parts:
            return None
        coded = parts[0] if len(parts) == 1 else CodedLabels(*cross_cells(parts))
        positive = self.layout.positive
        if positive is None:
            return coded
        rest = f"not {positive}"
        versus = [label if cell_text(label) == positive else rest for label in coded.labels]
        return CodedLabels(coded.codes, versus)

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """The weight of each row."""
        return self.numbers[self.layout.weight].astype(np.float64) if self.layout.weight else None

    def scores(self, components: NDArray[Any], mean: NDArray[Any]) -> NDArray[np.float64]:
        """The rows, centred and projected."""
        X = self.rows.block(0, self.rows.n_rows)
        with np.errstate(invalid="ignore"):
            scores = np.asarray((X - mean) @ components.T)
        if not np.isfinite(scores).all():
            self.refuse_non_finite()
        return scores

    def refuse_non_finite(self) -> None:
        """Raise an error that says where the first NaN or infinity stands, if there is one.

        Asked for only when a result is not finite, which costs less than looking at every entry.
        """
        for name, column in self.numbers.items():
            _missing(name, column, False, self.origin)

    def refuse_large(self) -> None:
        """Raise an error that says where the largest number stands, if squares overflow by it."""
        for name, column in self.numbers.items():
            sizes = np.abs(column)
            if sizes.max(initial=0.0) > _LARGE:
                i = int(sizes.argmax())
                remedy = "its square overflows float64: correct the value, or rescale the column"
                self.origin.refuse(name, self._row(i), f"the value {column[i]}", remedy)

    def _row(self, i: int) -> int:
        """The row of the batch that is row i here."""
        return i if self.left is None else int(self.left[i])

    def _encoded(self, name: str, known: Sequence[str]) -> list[NDArray[np.float64]]:
        codes, values = self.labels[name]
        strange = [code for code in np.unique(codes).tolist() if values[code] not in known]
        if strange:
            first = int(np.argmax(codes == strange[0]))
            self.origin.refuse(
                name,
                self._row(first),
                f"the value {values[strange[0]]!r}",
                f"which was not there at the fit; known are {list(known)[:5]}",
            )
        position = {value: i for i, value in enumerate(known)}
        places = np.array([position.get(value, -1) for value in values])[codes]
        return [(places == i).astype(np.float64) for i in range(len(known))]


def decode(batch: RecordBatch, layout: Layout, drop_missing: bool, origin: Origin) -> Block:
    """Take the columns of ``layout`` out of a record batch.

    Rows with a missing value (null or NaN) in any number, label or weight are left out and counted
    with ``drop_missing``, otherwise refused with their place, as infinities and negative weights
    always are; NaN and infinity among the features by :meth:`Block.refuse_non_finite` only.
    """
    numbers = {name: _floats(batch.column(name)) for name in layout.numbers}
    labels: dict[str, CodedLabels] = {}
    gaps: dict[str, NDArray[np.bool_]] = {}
    for name, column in numbers.items():
        if drop_missing or name == layout.weight or batch.column(name).null_count:
            gaps[name] = _missing(name, column, drop_missing, origin)
        if name == layout.weight and (column < 0).any():
            i = int((column < 0).argmax())
            remedy = "give rows that should not count the weight 0"
            origin.refuse(name, i, f"the negative weight {column[i]}", remedy)
    for name in dict.fromkeys((*layout.categories, *layout.groups)):
        column = batch.column(name)
        coded, gaps[name] = _labels(column.cast("string") if name in layout.texts else column)
        if str(column.type) in ("double", "float"):  # NaN would have a text
            gaps[name] = gaps[name] | np.isnan(_floats(column))
        labels[name] = coded
        if gaps[name].any() and not drop_missing:
            origin.refuse(name, int(gaps[name].argmax()), "a missing label", _FILL)
    kept = batch.select(list(layout.keep))
    missing = Counter({name: int(gap.sum()) for name, gap in gaps.items() if gap.any()})
    left = None
    if missing:
        complete = ~np.logical_or.reduce(list(gaps.values()))
        left = np.flatnonzero(complete)
        numbers = {name: column[left] for name, column in numbers.items()}
        labels = {
            name: CodedLabels(coded.codes[left], coded.labels) for name, coded in labels.items()
        }
        kept = kept.filter(complete)
    n_dropped = 0 if left is None else batch.num_rows - len(left)
    return Block(layout, origin, numbers, labels, kept, missing, left, n_dropped)


def _missing(name: str, column: NDArray[Any], drop: bool, origin: Origin) -> NDArray[np.bool_]:
    """Which entries are NaN; refuses infinities, and NaN too unless they may be dropped."""
    infinite, nan = np.isinf(column), np.isnan(column)
    if infinite.any():
        remedy = "correct the value, or leave out the row or the column"
        origin.refuse(name, int(infinite.argmax()), "infinity", remedy)
    if nan.any() and not drop:
        origin.refuse(name, int(nan.argmax()), "a missing value", _FILL)
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
