"""From the columns of a table to features, groups and moments, with a record of every choice made.

Rows are streamed, so memory does not grow with them unless they are few enough to be kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairpca._blas import single_threaded_blas
from fairpca._input.checks import MOST_GROUPS
from fairpca._input.folds import FoldRule
from fairpca._input.labels import (
    CodedLabels,
    Groups,
    cell_text,
    cross_cells,
    encode_groups,
    label_vector,
    margins_of,
    sort_labels,
)
from fairpca._input.rows import ColumnRows
from fairpca._input.stream import Input, Stream
from fairpca._moments.group_moments import GroupMoments, moments_of_stream
from fairpca._moments.tolerances import SAFE_TO_SQUARE
from fairpca._progress import Progress, silent
from fairpca._typing import Array, Labels, Mask
from fairpca.cli.columns import roles as column_roles
from fairpca.cli.columns.roles import Profile, Roles, Sentinel, choose_roles, list_names
from fairpca.cli.columns.units import UnitFigures, refuse_repeats, unit_of
from fairpca.cli.reader.files import first_names, pa
from fairpca.cli.reader.table import Table, quoted
from fairpca.exceptions import TableError

_MOST_BYTES_IN_MEMORY = 200_000_000
_NEARLY_ALL = 0.99  # A column with this share of one value hardly varies.


@dataclass
class Record:
    """Which rows and columns of a table were left out or look odd; filled while it is read."""

    n_rows: int = 0
    n_dropped: int = 0  # rows left out for missing values
    first_gap: int = 0  # the first row that lacks a value that it needs, counted from 1
    missing: Counter[str] = field(default_factory=Counter)  # values that end the reading, by column
    gaps: Counter[str] = field(default_factory=Counter)  # values that rows may lack, by column
    seen: Counter[Any] = field(default_factory=Counter)  # rows of each group
    used: Counter[Any] = field(default_factory=Counter)  # those that were not left out
    gaps_in_group: Counter[Any] = field(default_factory=Counter)
    #: Columns without a role and why; see ``work``.
    left_out: dict[str, str] = field(default_factory=dict)
    constant: Sequence[str] = ()  # features that do not vary
    near_constant: Sequence[str] = ()  # features with one value in nearly all rows
    amounts: dict[str, str] = field(default_factory=dict)  # features such as $31,648, and one value
    sentinels: Sequence[Sentinel] = ()
    twin_labels: Sequence[tuple[str, ...]] = ()  # groups that differ only by case or blanks
    units: UnitFigures | None = None
    unordered: bool = False  # whether the rows may come in another order next time

    def count(self, block: Block, roles: Roles) -> None:
        """Count the rows and the missing values of a block."""
        for name, gap in block.missing.items():
            if name in roles.may_lack:
                self.gaps[name] += int((gap & block.complete).sum())
            else:
                self.missing[name] += int(gap.sum())
        if not (self.first_gap or block.complete.all()):
            self.first_gap = self.n_rows + int(block.complete.argmin()) + 1
        self.n_rows += len(block.complete)
        self.n_dropped += int((~block.complete).sum())
        if block.labels:
            self.seen.update(block.by_group(block.codes >= 0))
            self.used.update(block.by_group(block.complete))
            for name in roles.may_lack & block.missing.keys():
                self.gaps_in_group.update(block.by_group(block.missing[name] & block.complete))


class Block(NamedTuple):
    """The rows of a record batch; those that lack a value that they need are not among ``rows``."""

    rows: ColumnRows
    codes: NDArray[Any]  # the group of every row of the batch, -1 for none
    labels: Sequence[Any]  # the names of the groups
    margins: dict[Any, dict[str, str]]  # of crossed groups: the group in each column; see Groups
    weights: NDArray[Any] | None
    target: CodedLabels | None
    units: Any
    hashes: Any  # a number for each row, the same for rows that are alike
    kept: Any  # the columns that are carried along
    complete: Mask  # which rows of the batch are used
    missing: dict[str, Mask]  # by column, which rows of the batch lack its value

    @property
    def groups(self) -> Groups:
        """The groups of the rows that are used."""
        coded = CodedLabels(self.codes[self.complete], self.labels)
        return encode_groups(coded, self.rows.n_rows)._replace(margins=self.margins)

    def by_group(self, which: Mask) -> dict[Any, int]:
        """How many rows of each group are among these."""
        found, counts = np.unique(self.codes[which], return_counts=True)
        return dict(zip([self.labels[i] for i in found], counts.tolist(), strict=True))


def decode(batch: Any, roles: Roles) -> Block:
    """Numbers, labels and weights of a record batch of the columns ``read`` and ``keep``."""
    columns = iter(batch.columns)
    numbers = {name: column_roles.floats_of(next(columns)) for name in roles.numbers}
    coded = {name: _labels(next(columns)) for name in roles.labels}
    units = None
    if roles.unit:
        units = next(columns)
    texts = {name: _labels(next(columns)) for name in roles.categories}
    kept = [next(columns) for _ in roles.keep]
    missing = {name: gap for name, column in numbers.items() if (gap := _gaps(name, column)).any()}
    if roles.missing_group is not None:
        for name in roles.groups:
            coded[name] = _with_missing_group(name, coded[name], roles.missing_group)
    for name, (codes, _) in (*coded.items(), *texts.items()):
        if (codes < 0).any():
            missing[name] = codes < 0
    complete = np.ones(batch.num_rows, bool)
    for name in missing.keys() - roles.may_lack:
        complete &= ~missing[name]
    for name in roles.fill.keys() & missing.keys():
        numbers[name] = np.where(missing[name], roles.fill[name], numbers[name])
    features = list[Array]()
    for name in roles.features:
        if name in texts:
            features += _indicators(name, *texts[name], roles.categories[name])
        else:
            features.append(numbers[name])
    weights = None
    if roles.weight:
        weights = _weights(numbers[roles.weight], roles.weight)
    target = None
    if roles.target:
        target = coded[roles.target]
    hashes = next(columns, None)
    codes, labels = _crossed([coded[name] for name in roles.groups], batch.num_rows)
    if not complete.all():
        features = [column[complete] for column in features]
        kept = [column.filter(pa.array(complete)) for column in kept]
        if weights is not None:
            weights = weights[complete]
        if units is not None:
            units = units.filter(pa.array(complete))
        if target:
            target = CodedLabels(target.codes[complete], target.labels)
    rows = ColumnRows(features, roles.feature_names)
    named = [None if own is None else cell_text(_plain(own), roles.groups) for own in labels]
    margins = {}
    if len(roles.groups) > 1:
        cells = zip(named, labels, strict=True)
        margins = {text: margins_of(cell, roles.groups) for text, cell in cells if cell}
    return Block(
        rows, codes, named, margins, weights, target, units, hashes, kept, complete, missing
    )


def _gaps(name: str, column: Array) -> Mask:
    """Which numbers of a column are missing; refuses those that cannot be squared."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(column @ column):  # no NaN, no infinity, no square that overflows
            return np.zeros(0, bool)
    gap = np.isnan(column)
    row = int(np.argmax(np.where(gap, 0.0, np.abs(column))))
    if abs(column[row]) > SAFE_TO_SQUARE:
        fact = f"column {name!r} holds {column[row]:g}, whose square is infinite"
        raise TableError("large", fact, "correct it, or leave out the column", row=row)
    return gap


def _weights(column: Array, name: str) -> Array:
    if (column < 0).any():
        fact = f"column {name!r} holds negative weights"
        row = int((column < 0).argmax())
        raise TableError("weight", fact, "give rows that should not count the weight 0", row=row)
    return column.astype(np.float64)


def _labels(column: Any) -> CodedLabels:
    """Codes and labels of a column; -1 codes a missing label, and the last label is None."""
    if not hasattr(column, "indices"):
        column = column.dictionary_encode()
    codes = column.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    labels = [None if label != label else label for label in [*column.dictionary.to_pylist(), None]]
    gaps = [i for i, label in enumerate(labels) if label is None]
    return CodedLabels(np.where(np.isin(codes, gaps), -1, codes), labels)


def _with_missing_group(name: str, column: CodedLabels, group: str) -> CodedLabels:
    """The labels with a group of the rows that have none."""
    codes, labels = column
    if group in labels:
        fact = f"--missing-group {group!r} is a group of column {name!r} already"
        raise TableError("missing", fact, "pass another name", row=0)
    return CodedLabels(codes % len(labels), [*labels[:-1], group])


def _indicators(
    name: str, codes: NDArray[Any], labels: Sequence[Any], values: Sequence[str]
) -> list[Array]:
    """A column of zeros and ones for each value of a text column that becomes a feature."""
    for i, label in enumerate(labels[:-1]):
        if label not in values and (codes == i).any():
            fact = f"{label!r} in column {name!r} is a value that the model does not know"
            facts = {"row": int((codes == i).argmax()), "column": name}
            raise TableError("categories", fact, "correct it, or fit again", **facts)
    known = np.where(codes < 0, np.nan, 1.0)
    shown = column_roles.indicated(values)
    return [known * np.array([label == value for label in labels])[codes] for value in shown]


def _crossed(columns: Sequence[CodedLabels], n_rows: int) -> CodedLabels:
    """The group of each row, -1 for none; groups of several columns are tuples of labels."""
    if not columns:
        return CodedLabels(np.full(n_rows, -1), [])
    if len(columns) == 1:
        return columns[0]
    known = np.logical_and.reduce([codes >= 0 for codes, _ in columns])
    codes, cells = cross_cells([(np.maximum(codes, 0), labels) for codes, labels in columns])
    return CodedLabels(np.where(known, codes, -1), [*cells, None])


def _plain(label: Any) -> Any:
    """The label; a whole number is one, as a band of a query: 20, not 20.0."""
    if isinstance(label, float) and label.is_integer():
        return int(label)
    return label


def blocks_of(
    table: Table,
    roles: Roles,
    record: Record,
    progress: Callable[[float], object] | None = None,
    hashed: bool = False,
) -> Iterator[Block]:
    """The rows of a table as a stream; what becomes of them is recorded.

    Missing values that may not be dropped end the stream; they are counted before the error.
    """
    labels = [*roles.labels, *filter(None, [roles.unit]), *roles.categories]
    batches = table.batches(roles.numbers, labels, roles.keep, progress=progress, hashed=hashed)
    for batch in batches:
        try:
            with single_threaded_blas():
                block = decode(batch, roles)
        except TableError as error:
            place = table.place_of(record.n_rows + error.facts["row"] + 1)
            raise error.at(place) from error
        record.count(block, roles)
        if roles.missing == "drop" or not record.n_dropped:
            yield block
    if record.n_dropped and roles.missing != "drop":
        raise missing_values(table, roles, record)


def missing_values(table: Table, roles: Roles, record: Record) -> TableError:
    """The error for missing values: where they are, and what each way out costs."""
    n_rows = record.n_rows
    n_gone = record.n_dropped
    missing = dict(record.missing.most_common())
    empty = [name for name, n in missing.items() if n > n_rows / 2]
    features = [name for name in missing if name in roles.features]
    worst = ", ".join(f"{name!r} ({n})" for name, n in [*missing.items()][:4])
    place = table.place_of(record.first_gap)
    fact = f"{n_gone} of {n_rows} rows of {table.name} have missing values, in {worst}"
    ways = []
    if roles.missing != "drop" and 2 * n_gone <= n_rows:
        ways.append("leave these rows out with --missing drop")
    if roles.groups and any(name in roles.numbers for name in features):
        ways.append("fill numbers in with --missing median")
    if roles.groups and features:
        ways.append(f"leave columns out: --drop {quoted(','.join((empty or features)[:30]))}")
    if any(name in roles.groups for name in missing):
        ways.append("make a group of rows without one: --missing-group 'not recorded'")
    advice = ", or ".join(ways) or "complete the table"
    return TableError("missing", f"{fact} (the first is {place})", advice)


def judge_columns(
    table: Table, whole: bool = False, **columns: Any
) -> tuple[Roles, dict[str, str], dict[str, Profile]]:
    """Roles, columns that are left out and why, and profiles of the columns of numbers.

    Columns are judged by all rows or by the first ones. Features that number the rows, and dates
    such as 20240131, are left out, unless they are named, there are no others, or the table is for
    a fitted model.
    """
    if not list_names(columns.get("sensitive_features")):
        raise column_roles.no_group(table)
    roles, left_out = choose_roles(table, **columns)
    profiles = column_roles.profiles_of(table, roles.numbers, whole)
    told = {name: profiles[name].names for name in roles.features if name in profiles}
    told = {name: why for name, why in told.items() if why}
    free = columns.get("fitted") is None and columns.get("features") is None
    if free and len(told) < len(roles.features):
        left_out |= told
        roles = replace(roles, features=tuple(n for n in roles.features if n not in told))
    return roles, left_out, profiles


@dataclass(frozen=True)
class Prepared:
    """The moments of a table, what became of its columns, and its rows if they are few enough."""

    table: Table
    roles: Roles
    record: Record
    moments: GroupMoments
    data: Any
    sensitive_features: Labels | None
    target: Labels | None
    sample_weight: NDArray[Any] | None
    units: Any
    kept: Any  # a table of the columns that are carried along, if there are any
    margins: dict[Any, dict[str, str]]  # of crossed groups, if each column is to count alone

    @property
    def groups(self) -> Any:
        """The groups of the rows, as a fit takes them."""
        if self.sensitive_features is None or not self.margins:
            return self.sensitive_features
        coded = encode_groups(self.sensitive_features, len(self.sensitive_features))
        return coded._replace(margins=self.margins)

    @property
    def streamed(self) -> bool:
        """Whether the rows were not kept in memory."""
        return self.data is None


@dataclass(frozen=True)
class _Rows(Stream):
    """The blocks of a table as a stream of the library; those that fit into memory are kept."""

    kept: list[Block] = field(default_factory=list)
    hashes: list[NDArray[Any]] = field(default_factory=list)
    record: Record = field(default_factory=Record)
    margins: dict[Any, dict[str, str]] = field(default_factory=dict)
    rows_up_to: float = _MOST_BYTES_IN_MEMORY

    def batches(self) -> Iterator[Input]:  # type: ignore[override]
        """The rows, in batches of limited size."""
        room = self.rows_up_to
        for block in self.source:
            if not self.crossing:
                self.margins.update(block.margins)
            self.refuse_many()
            room -= 8 * block.rows.n_rows * block.rows.n_features
            if room >= 0:
                self.kept.append(block)
            else:
                self.kept.clear()
            if block.hashes is not None:
                self.hashes.append(block.hashes.to_numpy(zero_copy_only=False))
            if block.rows.n_rows and (block.weights is None or block.weights.any()):
                yield Input(
                    block.rows,
                    block.groups,
                    block.weights,
                    units=block.units,
                    may_miss=self.may_miss,
                    crossing=self.crossing,
                )

    def refuse_many(self) -> None:
        """Refuse too many groups before their moments fill the memory."""
        names = {*self.record.used}
        if self.margins:
            names = {name for own in self.margins.values() for name in own.values()}
        if len(names) > MOST_GROUPS:
            columns = " & ".join(self.sensitive_features)
            some = first_names(sorted(map(str, names))[:6])
            fact = f"{columns!r} holds more than {MOST_GROUPS} groups ({some})"
            advice = "make bands in a query, SELECT *, floor(age / 10) * 10 AS band, join groups "
            raise TableError("many_groups", fact, advice + "with CASE, or choose another column")


def prepare(
    table: Table,
    *,
    missing: str = "error",
    unit: str | None = None,
    keep_duplicates: bool = False,
    fitted: Roles | None = None,
    whole: bool = True,
    rows_up_to: float = _MOST_BYTES_IN_MEMORY,
    folds: FoldRule | None = None,
    crossing: bool = True,
    progress: Progress = silent,
    **columns: Any,
) -> Prepared:
    """Choose, encode and check the columns of a table, and sum up its groups.

    ``fitted`` holds the columns of a model, and ``columns`` are arguments of
    :func:`~fairpca.cli.columns.roles.choose_roles`. With ``whole``, columns are judged by all rows
    and not by the first ones. Rows are kept if they take no more than ``rows_up_to`` bytes. Without
    a ``unit`` it is found among the ids; "none" says that there is none.
    """
    progress("looking at the columns")
    named = None if unit == "none" else unit
    roles, left_out, profiles = judge_columns(
        table, whole, fitted=fitted, missing=missing, unit=named, **columns
    )
    chosen = {name: profiles[name] for name in roles.features if name in profiles}
    if fitted is None and missing == "median":
        medians = {name: profile.median for name, profile in chosen.items()}
        if empty := [name for name, median in medians.items() if isnan(median)]:
            fact = f"no value of {empty[0]!r} in {table.name} is known"
            raise TableError("missing", fact, f"leave it out, --drop {quoted(empty[0])}")
        roles = replace(roles, fill=medians)
    record = Record(
        left_out=left_out,
        constant=[name for name, profile in chosen.items() if profile.same == 1],
        near_constant=[n for n, p in chosen.items() if _NEARLY_ALL <= p.same < 1],
        amounts={n: e for n in roles.features if n and (e := table.columns[n].example)},
        unordered=table.unordered,
    )
    record.sentinels = [own for profile in chosen.values() for own in profile.sentinels]
    if unit != "none":
        record.units = unit_of(table, roles, left_out)
        roles = replace(roles, unit=record.units.column if record.units else None)
    fine = 2 * sum(profile.fine for profile in chosen.values()) >= max(len(chosen), 1)
    hashed = fine and roles.unit is None and not keep_duplicates
    blocks = blocks_of(table, roles, record, partial(progress, "reading"), hashed)
    rows = _Rows(
        blocks,
        roles.groups,
        may_miss=missing == "available",
        crossing=crossing or len(roles.groups) < 2,
        record=record,
        rows_up_to=rows_up_to,
    )
    moments = moments_of_stream(rows, folds)
    moments.n_dropped = record.n_dropped
    if not record.n_rows:
        raise column_roles.no_rows(table.name)
    _refuse_lost(table, roles, record, moments)
    if len(record.used) < 2:
        fact = f"all rows of {table.name} are in one group, {next(iter(record.used))!r}"
        raise TableError("one_group", fact, "choose another column")
    refuse_repeats(table, rows.hashes)
    record.twin_labels = column_roles.twin_labels(record.used)
    data, groups, target, weights, units = _joined(roles, rows.kept)
    kept = _kept(table, roles, rows.kept)
    return Prepared(
        table, roles, record, moments, data, groups, target, weights, units, kept, rows.margins
    )


def _refuse_lost(table: Table, roles: Roles, record: Record, moments: GroupMoments) -> None:
    """Refuse to lose a whole group, or more than half of the rows, to missing values."""
    lost = [label for label in sort_labels([*record.seen]) if label not in record.used]
    if lost or 2 * record.n_dropped > record.n_rows:
        error = missing_values(table, roles, record)
        what = "more than half of the rows"
        if lost:
            what = f"every row of {first_names(lost)}"
        raise error.at(f"{what} would be left out")
    weights = dict(zip(moments.groups.tolist(), moments.weights.tolist(), strict=True))
    if record.used.keys() & weights.keys():  # otherwise they are those of each column
        weights = dict.fromkeys(record.used, 0.0) | weights
    weightless = [label for label in sort_labels([*weights]) if not weights[label]]
    if not weights:
        raise column_roles.no_rows(table.name, record.n_dropped)
    if weightless:
        fact = f"every row of {first_names(weightless)} has the weight 0"
        raise TableError("weight", fact, "leave such rows out in a query, or weigh them")


def _joined(roles: Roles, blocks: Sequence[Block]) -> tuple[Any, ...]:
    """Features, groups, target, weights and units of all rows; None for all that were not kept."""
    if not blocks:
        return None, None, None, None, None
    parts = zip(*(block.rows.columns for block in blocks if block.rows.n_rows), strict=True)
    columns = [np.concatenate(part).astype(np.float64, copy=False) for part in parts]
    weights = [block.weights for block in blocks if block.weights is not None]
    units = [block.units for block in blocks if block.units is not None]
    return (
        pa.table(dict(zip(roles.feature_names, columns, strict=True))),
        _spread([block.groups for block in blocks]),
        _spread([block.target for block in blocks]) if roles.target else None,
        np.concatenate(weights) if weights else None,
        pa.chunked_array(units) if units else None,
    )


def _kept(table: Table, roles: Roles, blocks: Sequence[Block]) -> Any:
    """The columns that are carried along, numbers as numbers; None if there are none."""
    if not blocks or not roles.keep:
        return None
    columns = zip(*(block.kept for block in blocks), strict=True)
    kept = {}
    for name, parts in zip(roles.keep, columns, strict=True):
        column = pa.chunked_array(parts)
        if table.columns[name].kind == "number":
            column = column_roles.floats_of(column)
        kept[name] = column
    return pa.table(kept)


def _spread(parts: Sequence[CodedLabels | Groups | None]) -> Labels:
    """The label of each row."""
    return label_vector([p.labels[code] for p in parts if p for code in p.codes.tolist()])
