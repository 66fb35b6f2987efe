"""From the columns of a table to features, groups and moments, with a record of every choice made.

Rows are streamed, so memory does not grow with them unless they are few enough to be kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite, isnan, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairpca._blas import single_threaded_blas
from fairpca._input.checks import MOST_GROUPS
from fairpca._input.folds import FoldRule
from fairpca._input.labels import (
    CodedLabels,
    cell_text,
    cross_cells,
    encode_groups,
    label_vector,
    margins_of,
    sort_labels,
)
from fairpca._input.rows import ColumnRows
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.tolerances import SAFE_TO_SQUARE
from fairpca._progress import Progress, silent
from fairpca._typing import Array, Labels, Mask
from fairpca.cli.columns import roles as column_roles
from fairpca.cli.columns.roles import Profile, Roles, Sentinel, choose_roles, list_names
from fairpca.cli.reader.files import first_names, pa
from fairpca.cli.reader.read import open_table
from fairpca.cli.reader.table import Table
from fairpca.exceptions import TableError, warn

_MOST_BYTES_IN_MEMORY = 200_000_000
_NEARLY_ALL = 0.99  # A column with this share of one value hardly varies.


@dataclass
class Record:
    """Which rows and columns of a table were left out or look odd; filled while it is read."""

    n_rows: int = 0
    n_dropped: int = 0  # rows left out for missing values
    first_gap: int = 0  # the first row that lacks a value, counted from 1
    missing: Counter[str] = field(default_factory=Counter)  # values not filled in, by column
    filled: Counter[str] = field(default_factory=Counter)  # values filled in, by column
    dropped_by_group: dict[str, int] = field(default_factory=dict)
    filled_shares: dict[str, float] = field(default_factory=dict)  # of each group's numbers
    #: Columns without a role and why: "text", "date", "empty", "other", "identifier",
    #: "row numbers", "index" (also of a path) or "asked".
    left_out: dict[str, str] = field(default_factory=dict)
    constant: Sequence[str] = ()  # features that do not vary
    near_constant: Sequence[str] = ()  # features with one value in nearly all rows
    sentinels: Sequence[Sentinel] = ()
    twin_labels: Sequence[tuple[str, ...]] = ()  # groups that differ only by case or blanks
    unordered: bool = False  # whether the rows may come in another order next time

    def count(self, block: Block, roles: Roles) -> None:
        """Count the rows and the missing values of a block."""
        for name, gap in block.missing.items():
            if name in roles.fill:
                self.filled[name] += int((gap & block.complete).sum())
            else:
                self.missing[name] += int(gap.sum())
        if not (self.first_gap or block.complete.all()):
            self.first_gap = self.n_rows + int(block.complete.argmin()) + 1
        self.n_rows += len(block.complete)
        self.n_dropped += int((~block.complete).sum())


class Block(NamedTuple):
    """The complete rows of a record batch."""

    rows: ColumnRows
    groups: CodedLabels | None
    weights: NDArray[Any] | None
    target: CodedLabels | None
    kept: Any  # the columns that are carried along
    complete: Mask  # which rows of the batch these are
    codes: NDArray[Any]  # the group of every row of the batch, -1 for none
    missing: dict[str, Mask]  # by column, which rows of the batch lack its value

    def scores(self, encoder: Array, mean: Array) -> Array:
        """The rows, centred and projected."""
        return np.asarray((self.rows.block(0, self.rows.n_rows) - mean) @ encoder.T)


def decode(batch: Any, roles: Roles) -> Block:
    """Numbers, labels and weights of a record batch of the columns ``read`` and ``keep``."""
    missing, complete = dict[str, Mask](), np.ones(batch.num_rows, bool)
    columns = iter(batch.columns)
    numbers = {name: column_roles.floats_of(next(columns)) for name in roles.numbers}
    coded = {name: _labels(next(columns)) for name in roles.labels}
    texts = {name: _labels(next(columns)) for name in roles.categories}
    for name, column in numbers.items():
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(column @ column):  # no NaN, no infinity, no square that overflows
                continue
        gap = np.isnan(column)
        row = int(np.argmax(np.where(gap, 0.0, np.abs(column))))
        if abs(column[row]) > SAFE_TO_SQUARE:
            fact = f"column {name!r} holds {column[row]:g}, whose square is infinite"
            raise TableError("large", fact, "correct it, or leave out the column", row=row)
        missing |= {name: gap} if gap.any() else {}
        if name in roles.fill:
            numbers[name] = np.where(gap, roles.fill[name], column)
        else:
            complete &= ~gap
    for name in roles.groups if roles.missing_group is not None else ():
        codes, labels = coded[name]
        if roles.missing_group in labels:
            fact = f"missing_group={roles.missing_group!r} is a group of column {name!r} already"
            raise TableError("missing", fact, "pass another name", row=0)
        coded[name] = CodedLabels(codes % len(labels), [*labels[:-1], roles.missing_group])
    for name, (codes, _) in (*coded.items(), *texts.items()):
        missing |= {name: codes < 0} if (codes < 0).any() else {}
        complete &= codes >= 0
    features = []
    for name in roles.features:
        if name in texts:
            features += _indicators(name, *texts[name], roles.categories[name])
        else:
            features.append(numbers[name])
    weights = None if roles.weight is None else numbers[roles.weight].astype(np.float64)
    if weights is not None and (weights < 0).any():
        fact, row = f"column {roles.weight!r} holds negative weights", int((weights < 0).argmax())
        raise TableError("weight", fact, "give rows that should not count the weight 0", row=row)
    groups = _crossed([coded[name] for name in roles.groups])
    target = None if roles.target is None else coded[roles.target]
    kept = batch.select(range(len(roles.read), batch.num_columns))
    whole = np.full(batch.num_rows, -1) if groups is None else groups.codes
    if not complete.all():
        features = [column[complete] for column in features]
        kept = kept.filter(pa.array(complete))
        groups, target = (c and CodedLabels(c.codes[complete], c.labels) for c in (groups, target))
        weights = None if weights is None else weights[complete]
    rows = ColumnRows(features, roles.feature_names)
    return Block(rows, groups, weights, target, kept, complete, whole, missing)


def _labels(column: Any) -> CodedLabels:
    """Codes and labels of a column; -1 codes a missing label, and the last label is None."""
    coded = column if hasattr(column, "indices") else column.dictionary_encode()
    codes = coded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    labels = [None if label != label else label for label in [*coded.dictionary.to_pylist(), None]]
    gaps = [i for i, label in enumerate(labels) if label is None]
    return CodedLabels(np.where(np.isin(codes, gaps), -1, codes), labels)


def _indicators(
    name: str, codes: NDArray[Any], labels: Sequence[Any], values: Sequence[str]
) -> list[Array]:
    """A column of zeros and ones for each value of a text column that becomes a feature."""
    for i, label in enumerate(labels[:-1]):
        if label not in values and (codes == i).any():
            fact = f"{label!r} in column {name!r} is a value that the model does not know"
            facts = {"row": int((codes == i).argmax()), "column": name}
            raise TableError("categories", fact, "correct it, or fit again", **facts)
    shown = column_roles.indicated(values)
    return [np.array([float(label == value) for label in labels])[codes] for value in shown]


def _crossed(columns: Sequence[CodedLabels]) -> CodedLabels | None:
    """The group of each row, -1 for none; groups of several columns are tuples of labels."""
    if len(columns) < 2:
        return columns[0] if columns else None
    known = np.logical_and.reduce([codes >= 0 for codes, _ in columns])
    codes, cells = cross_cells([(np.maximum(codes, 0), labels) for codes, labels in columns])
    return CodedLabels(np.where(known, codes, -1), [*cells, None])


def blocks_of(
    table: Table, roles: Roles, record: Record, progress: Callable[[float], object] | None = None
) -> Iterator[Block]:
    """The rows of a table as a stream; what becomes of them is recorded.

    Missing values that may not be dropped end the stream; they are counted before the error.
    """
    labels = [*roles.labels, *roles.categories]
    for batch in table.batches(roles.numbers, labels, roles.keep, progress=progress):
        try:
            with single_threaded_blas():
                block = decode(batch, roles)
        except TableError as error:
            place = table.place_of(record.n_rows + error.facts["row"] + 1)
            raise error.at(place) from error
        record.count(block, roles)
        if roles.drop_missing or not record.n_dropped:
            yield block
    if record.n_dropped and not roles.drop_missing:
        raise missing_values(table, roles, record)


def missing_values(table: Table, roles: Roles, record: Record) -> TableError:
    """The error for missing values: where they are, and what each way out costs."""
    n_rows, n_gone, missing = record.n_rows, record.n_dropped, dict(record.missing.most_common())
    empty = [name for name, n in missing.items() if n > n_rows / 2]
    features = [name for name in missing if name in roles.features]
    worst = ", ".join(f"{name!r} ({n})" for name, n in [*missing.items()][:4])
    place = table.place_of(record.first_gap)
    fact = f"{n_gone} of {n_rows} rows of {table.name} have missing values, in {worst}"
    columns = (empty or features)[:30]
    ways = {  # by option: in words, and whether it helps
        "drop": (f"leave out columns, drop={columns!r}", bool(features)),
        "impute": (
            "fill numbers in, read_table(..., impute='median')",
            any(name in roles.numbers for name in features),
        ),
        "drop_missing": (
            f"leave out {n_gone} row{'s' * (n_gone > 1)}, drop_missing=True",
            2 * n_gone <= n_rows and not roles.drop_missing,
        ),
        "missing_group": (
            "make a group of rows without one, read_table(..., missing_group='not recorded')",
            any(name in roles.groups for name in missing),
        ),
    }
    advice = ", or ".join(way for way, helps in ways.values() if helps) or "complete the table"
    facts = {
        "columns": ",".join(columns),
        "useless": [n for n, (_, helps) in ways.items() if not helps],
    }
    return TableError("missing", f"{fact} (the first is {place})", advice, **facts)


class Summing:
    """Sum up blocks: moments, by fold if asked for, and the sizes of groups.

    With ``as_text``, groups are named by texts, and moments are not kept by outcome.
    """

    def __init__(
        self,
        roles: Roles,
        folds: FoldRule | None = None,
        as_text: bool = False,
        crossing: bool = True,
    ) -> None:
        self.moments, self.roles, self._as_text = GroupMoments(), roles, as_text
        self.crossing = crossing
        self.margins: dict[Any, dict[str, str]] = {}  # of crossed groups; see Groups
        self.filled_in_group, self.dropped = Counter[Any](), Counter[Any]()
        self.start(folds)

    def start(self, folds: FoldRule | None) -> None:
        """Count the rows of groups from zero, as in the next partition of a cluster."""
        self._folds, self.sizes, self.seen = folds, Counter[Any](), Counter[Any]()

    def add(self, block: Block) -> Block:
        """Add a block; returns it with its groups named."""
        assert block.groups is not None
        labels = [self.name(label) for label in block.groups.labels]
        groups, folds = CodedLabels(block.groups.codes, labels), None
        if not self.crossing and len(self.roles.groups) > 1:
            cells = zip(labels, block.groups.labels, strict=True)
            self.margins |= {
                text: margins_of(cell, self.roles.groups) for text, cell in cells if cell
            }
        if self._folds is not None:  # by the rank in the group, counting dropped rows too
            seen = np.array([self.seen[label] for label in labels], np.intp)
            known, of_all = block.codes >= 0, np.zeros(len(block.codes), np.intp)
            of_all[known] = self._folds.folds_of(block.codes[known], seen)
            folds = of_all[block.complete]
        for name in self.roles.fill.keys() & block.missing.keys():
            filled = block.codes[block.missing[name] & block.complete]
            self.filled_in_group.update(_counts(filled, labels))
        self.seen.update(_counts(block.codes, labels))
        self.dropped.update(_counts(block.codes[~block.complete], labels))
        self.sizes.update(_counts(groups.codes, labels))
        self._refuse_many()
        without_gaps = all(map(isfinite, self.roles.fill.values()))
        if without_gaps and block.rows.n_rows and (block.weights is None or block.weights.any()):
            target = None if self._as_text else block.target
            coded = encode_groups(groups, block.rows.n_rows)._replace(margins=self.margins)
            self.moments.update(
                block.rows, coded, block.weights, target, folds=folds, crossing=self.crossing
            )
        self.moments.n_dropped += len(block.complete) - block.rows.n_rows
        return block._replace(groups=groups)

    def _refuse_many(self) -> None:
        """Refuse too many groups before their moments fill the memory."""
        sizes = self.sizes
        if self.margins:
            sizes = Counter()
            for label, n in self.sizes.items():
                sizes.update(dict.fromkeys(self.margins[label].values(), n))
        alone = [*sizes.values()].count(1)
        if len(sizes) > MOST_GROUPS and (self._as_text or 2 * alone > len(sizes)):
            some = first_names(sorted(map(str, sizes))[:6])
            columns = " & ".join(self.roles.groups)
            fact = f"{columns!r} holds more than {MOST_GROUPS} groups ({some})"
            advice = "make bands in a query, SELECT *, floor(age / 10) * 10 AS band, join groups "
            raise TableError("many_groups", fact, advice + "with CASE, or choose another column")

    def finished(self, where: str = "") -> GroupMoments:
        """The moments, to which further rows can be added; refuses none ``where`` it is given."""
        if where and not self.moments.n_features:
            raise column_roles.no_rows(where, self.moments.n_dropped)
        if self._folds is not None and self.moments.n_features:
            self.moments.go_on_with(self._folds, Counter(self.seen))
        return self.moments

    def name(self, label: Any) -> Any:
        """The name of a group."""
        columns = self.roles.groups
        if label is None or (len(columns) < 2 and not self._as_text):
            return label
        if isinstance(label, float) and label.is_integer():
            label = int(label)  # a band of a query: 20, not 20.0
        return cell_text(label, columns)


def _counts(codes: NDArray[Any], labels: Sequence[Any]) -> dict[Any, int]:
    found, counts = np.unique(codes[codes >= 0], return_counts=True)
    return {labels[i]: int(c) for i, c in zip(found.tolist(), counts.tolist(), strict=True)}


def moments_of_table(
    data: Any,
    reading: dict[str, Any],
    progress: Callable[[float], object] | None,
    folds: FoldRule | None,
    **columns: Any,
) -> GroupMoments:
    """The moments of a table, in one pass; see :meth:`GroupMoments.from_files`."""
    table = open_table(data, **reading)
    roles, _, _ = judge_columns(table, warns=True, **columns)
    if folds is not None and table.unordered:
        warn(
            "the query joins or groups rows without ORDER BY, so their order, and with it the "
            "folds, may differ when it is run again; add ORDER BY to the query.",
            UserWarning,
        )
    summing, record = Summing(roles, folds), Record()
    for block in blocks_of(table, roles, record, progress):
        summing.add(block)
    _refuse_lost(table, summing, record)
    return summing.finished(table.name)


def judge_columns(
    table: Table, whole: bool = False, warns: bool = False, **columns: Any
) -> tuple[Roles, dict[str, str], dict[str, Profile]]:
    """Roles, columns that are left out and why, and profiles of the columns of numbers.

    Columns are judged by all rows or by the first ones. Features that number the rows are left out,
    unless they are named, there are no others, or the table is for a fitted model.
    """
    if not list_names(columns.get("sensitive_features")):
        raise column_roles.no_group(table)
    roles, left_out = choose_roles(table, **columns)
    profiles = column_roles.profiles_of(table, roles.numbers, whole)
    counting = [n for n in roles.features if n in profiles and profiles[n].row_numbers]
    free = columns.get("fitted") is None and columns.get("features") is None
    if free and len(counting) < len(roles.features):
        left_out |= dict.fromkeys(counting, "row numbers")
        roles = replace(roles, features=tuple(n for n in roles.features if n not in counting))
    ids = [name for name, why in left_out.items() if why in ("identifier", "row numbers")]
    if warns and ids:
        warn(
            f"{table.name}: columns {ids} are left out, because they look like row numbers or ids; "
            "name the columns to use, features=[...], to have them.",
            UserWarning,
        )
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
    # Of crossed groups, if each column is to count alone.
    margins: dict[Any, dict[str, str]] = field(default_factory=dict)

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


def prepare(
    data: Any,
    *,
    impute: str | None = None,
    keep_missing: bool = False,
    fitted: Roles | None = None,
    whole: bool = True,
    warns: bool = False,
    rows_up_to: float = _MOST_BYTES_IN_MEMORY,
    folds: FoldRule | None = None,
    crossing: bool = True,
    progress: Progress = silent,
    **columns: Any,
) -> Prepared:
    """Choose, encode and check the columns of a table, and sum up its groups.

    Arguments are those of :func:`fairpca.read_table`. ``fitted`` holds the columns of a model.
    ``whole`` and ``warns`` are those of :func:`judge_columns`. Rows are kept if they take no more
    than ``rows_up_to`` bytes.
    """
    table = open_table(data)
    if impute not in (None, "median") or (impute and keep_missing):
        given = f"impute={impute!r}" + " with keep_missing=True" * keep_missing
        raise ValueError(f"{given} is not known; pass impute='median' or keep_missing=True.")
    progress("looking at the columns")
    roles, left_out, profiles = judge_columns(table, whole, warns, fitted=fitted, **columns)
    if fitted is None and (impute or keep_missing):
        medians = {n: profiles[n].median for n in roles.features if n in profiles}
        empty = [name for name, median in medians.items() if isnan(median)]
        if empty and not keep_missing:
            fact = f"no value of {empty[0]!r} in {table.name} is known"
            raise TableError("missing", fact, f"leave it out, drop={empty!r}")
        roles = replace(roles, fill=dict.fromkeys(medians, nan) if keep_missing else medians)
    chosen = {name: profiles[name] for name in roles.features if name in profiles}
    record = Record(
        left_out=left_out,
        constant=[name for name, profile in chosen.items() if profile.same == 1],
        near_constant=[n for n, p in chosen.items() if _NEARLY_ALL <= p.same < 1],
        sentinels=[sentinel for profile in chosen.values() for sentinel in profile.sentinels],
        unordered=table.unordered,
    )
    summing, kept = Summing(roles, folds, as_text=True, crossing=crossing), list[Block]()
    for block in blocks_of(table, roles, record, partial(progress, "reading")):
        named = summing.add(block)
        rows_up_to -= 8 * named.rows.n_rows * named.rows.n_features
        if rows_up_to >= 0:
            kept.append(named)
        else:
            kept.clear()
    if not record.n_rows:
        raise column_roles.no_rows(table.name)
    _refuse_lost(table, summing, record)
    if len(summing.sizes) < 2:
        fact = f"all rows of {table.name} are in one group, {next(iter(summing.sizes))!r}"
        raise TableError("one_group", fact, "choose another column")
    record.dropped_by_group = dict(summing.dropped)
    for group, n in summing.filled_in_group.items():
        record.filled_shares[group] = n / (summing.sizes[group] * len(roles.feature_names))
    record.twin_labels = column_roles.twin_labels(summing.sizes)
    moments = summing.finished()
    data, groups, target, weights = _joined(roles, kept)
    return Prepared(table, roles, record, moments, data, groups, target, weights, summing.margins)


def _refuse_lost(table: Table, summing: Summing, record: Record) -> None:
    """Refuse to lose a whole group, or more than half of the rows, to missing values."""
    lost = [label for label in sort_labels([*summing.seen]) if label not in summing.sizes]
    if lost or 2 * record.n_dropped > record.n_rows:
        error = missing_values(table, summing.roles, record)
        what = f"every row of {first_names(lost)}" if lost else "more than half of the rows"
        raise error.at(f"{what} would be left out")
    moments = summing.moments
    weights = dict(zip(moments.groups.tolist(), moments.weights.tolist(), strict=True))
    labels = [*weights] if summing.margins else sort_labels([*summing.sizes])
    weightless = [label for label in labels if not weights.get(label)]
    if any(weights.values()) and weightless:
        fact = f"every row of {first_names(weightless)} has the weight 0"
        raise TableError("weight", fact, "leave such rows out in a query, or weigh them")


def _joined(roles: Roles, blocks: Sequence[Block]) -> tuple[Any, ...]:
    """Features, groups, target and weights of all rows; None for all if they were not kept."""
    if not blocks:
        return None, None, None, None
    parts = zip(*(block.rows.columns for block in blocks if block.rows.n_rows), strict=True)
    columns = [np.concatenate(part).astype(np.float64, copy=False) for part in parts]
    weights = [block.weights for block in blocks if block.weights is not None]
    return (
        pa.table(dict(zip(roles.feature_names, columns, strict=True))),
        _spread([block.groups for block in blocks]),
        None if roles.target is None else _spread([block.target for block in blocks]),
        np.concatenate(weights) if weights else None,
    )


def _spread(parts: Sequence[CodedLabels | None]) -> Labels:
    """The label of each row."""
    return label_vector([p.labels[code] for p in parts if p for code in p.codes.tolist()])
