"""Rows of Arrow record batches: numbers, labels and weights out of named columns.

Files, Spark partitions and whatever else speaks Arrow come through :func:`decode`. Nothing here
imports pyarrow; the caller, who has a record batch, has done so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fairpca._input.crossing import cross_cells
from fairpca._input.labels import CodedLabels
from fairpca._input.rows import ColumnRows
from fairpca._tables.roles import Roles
from fairpca._threads import computed_once
from fairpca._typing import Array, Codes, Mask

RecordBatch = Any

_LARGE = 1e150  # sums of squares of larger numbers overflow
_FILL = (
    "fill it first, leave such rows out with drop_missing=True (--drop-missing), or fit a model "
    "that fills in numbers (fairpca fit --impute median)"
)


@dataclass(frozen=True)
class Origin:
    """Where the rows of a batch come from, for messages and for folds.

    ``number`` is that of the file among all, in the order of their names; a partition has none.
    """

    name: str
    first_row: int
    unit: str = "row"
    number: int | None = None

    @property
    def source(self) -> str:
        """What tells rows at the same place in two files, or partitions, apart.

        Not the name of the file: it may be renamed or converted. The first has nothing to tell, so
        rows of one file are like rows in memory.
        """
        if self.number is None:
            return self.name
        return f"file {self.number}" if self.number else ""

    def place(self, i: int) -> str:
        """Row i of the batch as people count: from 1, and lines with that of the column names."""
        return f"{self.unit} {self.first_row + i + (2 if self.unit == 'line' else 1)}"

    def refuse(self, column: str, i: int, what: str, remedy: str) -> NoReturn:
        """Raise an error about an entry of the batch."""
        raise ValueError(f"{self.name} has {what} in column {column!r}, {self.place(i)}; {remedy}.")


@dataclass(frozen=True)
class TableBlock:
    """The complete rows of a record batch, decoded.

    Attributes
    ----------
    roles : Roles
    origin : Origin
    numbers : dict of str to ndarray
        The columns of numbers, the weights among them.
    labels : dict of str to CodedLabels
        Group labels and the values of text columns.
    kept : RecordBatch
        The columns that are carried along.
    missing : Counter of str
        How many values were missing in each column.
    complete : ndarray of int or None
        Which rows of the batch these are; None if no row was left out.
    n_dropped : int
        How many rows were left out.
    dropped_labels : dict of str to set
        The labels in the group columns of these rows.
    filled : dict of str to ndarray of bool
        Which numbers of a column were missing and filled in, if any.
    """

    roles: Roles
    origin: Origin
    numbers: dict[str, NDArray[Any]]
    labels: dict[str, CodedLabels]
    kept: RecordBatch
    missing: Counter[str]
    complete: Codes | None = None
    n_dropped: int = 0
    dropped_labels: dict[str, set[Any]] = field(default_factory=dict)
    filled: dict[str, Mask] = field(default_factory=dict)

    @computed_once
    def rows(self) -> ColumnRows:
        """The features."""
        columns: list[NDArray[Any]] = []
        for name in self.roles.columns:
            if name in self.numbers:
                columns.append(self.numbers[name])
            else:
                columns += self._indicators(name, self.roles.categories[name])
        return ColumnRows(columns, self.roles.feature_names)

    @computed_once
    def groups(self) -> CodedLabels | None:
        """The group of each row; with several columns a label is the tuple of theirs."""
        parts = [self.labels[name] for name in self.roles.groups]
        if not parts:
            return None
        coded = parts[0] if len(parts) == 1 else CodedLabels(*cross_cells(parts))
        positive = self.roles.positive
        if positive is None:
            return coded
        is_positive = (self.roles.label_text(label) == positive for label in coded.labels)
        labels = [positive if equal else f"not {positive}" for equal in is_positive]
        return CodedLabels(coded.codes, labels)

    @property
    def positions(self) -> Codes:
        """Where each row stands in its file or partition, counted from 0."""
        n = self.rows.n_rows
        return self.origin.first_row + (np.arange(n) if self.complete is None else self.complete)

    @property
    def weights(self) -> Array | None:
        """The weight of each row."""
        return self.numbers[self.roles.weight].astype(np.float64) if self.roles.weight else None

    def scores(self, components: Array, mean: Array) -> Array:
        """The rows, centred and projected."""
        X = self.rows.block(0, self.rows.n_rows)
        with np.errstate(invalid="ignore"):
            scores = np.asarray((X - mean) @ components.T)
        if not np.isfinite(scores).all():
            self.refuse_non_finite()
        return scores

    def refuse_non_finite(self) -> None:
        """Raise an error that names the place of the first NaN or infinity, if there is one.

        Call this only when a result is not finite: that costs less than looking at every entry.
        """
        for name, column in self.numbers.items():
            _missing_numbers(name, column, False, self.origin)

    def refuse_large(self) -> None:
        """Raise an error that names the place of a number whose square overflows, if any."""
        for name, column in self.numbers.items():
            sizes = np.abs(column)
            if sizes.max(initial=0.0) > _LARGE:
                i = int(sizes.argmax())
                remedy = "its square overflows float64: correct the value, or rescale the column"
                self.origin.refuse(name, self._row_in_batch(i), f"the value {column[i]}", remedy)

    def _row_in_batch(self, i: int) -> int:
        return i if self.complete is None else int(self.complete[i])

    def _indicators(self, name: str, known: Sequence[str]) -> list[Array]:
        """A column of zeros and ones for each known value of a text column."""
        codes, values = self.labels[name]
        position = {value: i for i, value in enumerate(known)}
        places = np.array([position.get(value, -1) for value in values], np.intp)[codes]
        if (places < 0).any():
            i = int((places < 0).argmax())
            self.origin.refuse(
                name,
                self._row_in_batch(i),
                f"the value {values[codes[i]]!r}",
                f"the model was fitted to {list(known)[:5]}: correct the value, or fit again",
            )
        return [(places == i).astype(np.float64) for i in range(len(known))]


def decode(batch: RecordBatch, roles: Roles, drop_missing: bool, origin: Origin) -> TableBlock:
    """Take the columns of ``roles`` out of a record batch.

    With ``drop_missing`` rows with a missing value (null or NaN) in any number, label or weight are
    left out and counted; otherwise they are refused with their place, except numbers that
    ``roles.fill`` stands in for. Infinities and negative weights are always refused. NaN and
    infinity among the features may pass here; see
    :meth:`TableBlock.refuse_non_finite`.
    """
    numbers, gaps, filled = _decode_numbers(batch, roles, drop_missing, origin)
    labels, unlabelled = _decode_labels(batch, roles, drop_missing, origin)
    gaps |= unlabelled
    kept = batch.select(list(roles.keep))
    missing = Counter({name: int(gap.sum()) for name, gap in gaps.items() if gap.any()})
    if not missing:
        return TableBlock(roles, origin, numbers, labels, kept, missing, filled=filled)
    has_all = ~np.logical_or.reduce(list(gaps.values()))
    complete = np.flatnonzero(has_all)
    return TableBlock(
        roles,
        origin,
        {name: column[complete] for name, column in numbers.items()},
        {name: CodedLabels(codes[complete], values) for name, (codes, values) in labels.items()},
        kept.filter(has_all),
        missing,
        complete,
        n_dropped=batch.num_rows - len(complete),
        dropped_labels={name: _labels_at(labels[name], ~has_all) for name in roles.groups},
        filled={name: mask[complete] for name, mask in filled.items()},
    )


def _decode_numbers(
    batch: RecordBatch, roles: Roles, drop_missing: bool, origin: Origin
) -> tuple[dict[str, NDArray[Any]], dict[str, Mask], dict[str, Mask]]:
    """The columns of numbers, where they are missing, and where they were filled in."""
    numbers = {name: floats(batch.column(name)) for name in roles.numbers}
    gaps: dict[str, Mask] = {}
    filled: dict[str, Mask] = {}
    for name, column in numbers.items():
        if name in roles.fill:
            missing_here = _missing_numbers(name, column, True, origin)
            if missing_here.any():
                filled[name] = missing_here
                numbers[name] = np.where(missing_here, roles.fill[name], column)
        elif drop_missing or name == roles.weight or batch.column(name).null_count:
            gaps[name] = _missing_numbers(name, column, drop_missing, origin)
    if roles.weight:
        _refuse_negative(roles.weight, numbers[roles.weight], origin)
    return numbers, gaps, filled


def _decode_labels(
    batch: RecordBatch, roles: Roles, drop_missing: bool, origin: Origin
) -> tuple[dict[str, CodedLabels], dict[str, Mask]]:
    """The columns of text, of groups and of the target, and where they are missing."""
    labels: dict[str, CodedLabels] = {}
    gaps: dict[str, Mask] = {}
    target = [roles.target] if roles.target else []
    features = set(roles.numbers)
    for name in dict.fromkeys((*roles.categories, *roles.groups, *target)):
        column = batch.column(name)
        labels[name], gaps[name] = _labels(
            column.cast("string") if name in roles.categories else column
        )
        if gaps[name].any() and not drop_missing:
            origin.refuse(name, int(gaps[name].argmax()), "a missing label", _FILL)
        if name in features:  # a feature too, and 1 was read as 1.0
            labels[name] = CodedLabels(labels[name].codes, [*map(_whole, labels[name].labels)])
    return labels, gaps


def _whole(label: Any) -> Any:
    """A label without the fraction that it does not have."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


def _labels_at(coded: CodedLabels, rows: Mask) -> set[Any]:
    """The labels of some rows."""
    return {coded.labels[code] for code in np.unique(coded.codes[rows])} - {None}


def _missing_numbers(name: str, column: NDArray[Any], drop: bool, origin: Origin) -> Mask:
    """Which entries are NaN; refuses infinities, and NaN too unless they may be dropped."""
    infinite, nan = np.isinf(column), np.isnan(column)
    if infinite.any():
        remedy = "correct the value, or leave out the row or the column"
        origin.refuse(name, int(infinite.argmax()), "infinity", remedy)
    if nan.any() and not drop:
        origin.refuse(name, int(nan.argmax()), "a missing value", _FILL)
    return np.asarray(nan)


def _refuse_negative(name: str, weights: NDArray[Any], origin: Origin) -> None:
    if (weights < 0).any():
        i = int((weights < 0).argmax())
        remedy = "give rows that should not count the weight 0"
        origin.refuse(name, i, f"the negative weight {weights[i]}", remedy)


def floats(column: Any) -> NDArray[Any]:
    """Arrow numbers or booleans as floats; nulls become NaN."""
    if str(column.type) not in ("double", "float"):
        column = column.cast("float64", safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _labels(column: Any) -> tuple[CodedLabels, Mask]:
    """Codes and labels of a column, and which rows have none."""
    coded = column if hasattr(column, "indices") else column.dictionary_encode()
    labels = coded.dictionary.to_pylist()
    codes = coded.indices.cast("int64").fill_null(len(labels)).to_numpy(zero_copy_only=False)
    no_label = np.array([label is None or label != label for label in [*labels, None]])
    return CodedLabels(codes, [*labels, None]), no_label[codes]
