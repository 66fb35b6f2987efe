"""From the columns of a table to features, groups and moments, with a record of every choice made.

Rows are streamed, so memory does not grow with them unless they are few enough to be kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, isnan, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairpca._blas import single_threaded_blas
from fairpca._input.folds import FoldRule
from fairpca._input.labels import CodedLabels, cell_text, cross_cells, label_vector, sort_labels
from fairpca._input.rows import ColumnRows
from fairpca._moments.group_moments import GroupMoments
from fairpca._progress import Progress, silent
from fairpca._tables.column_roles import (
    Names,
    Profile,
    Roles,
    Sentinel,
    choose_roles,
    floats_of,
    indicated,
    list_names,
    no_group,
    no_rows,
    profiles_of,
    refuse_text,
    refuse_unknown,
    twin_labels,
    with_categories,
)
from fairpca._tables.files import TableError, first_names, pa
from fairpca._tables.read import ROW, Table, open_table
from fairpca._typing import Codes, Labels, Mask
from fairpca.exceptions import warn

_MOST_BYTES_IN_MEMORY = 200_000_000
_MOST_GROUPS = 50
_BATCH_ENTRIES, _BATCH_ROWS = 1 << 21, 1 << 16
_LARGE = 1e150  # Sums of squares of larger numbers overflow.


@dataclass(frozen=True)
class Record:
    """What became of the rows and columns of a table."""

    n_rows: int
    n_dropped: int  # rows left out for missing values
    missing: dict[str, int]  # how many values of each column are missing,
    filled: dict[str, int]  # and how many were filled in
    dropped_by_group: dict[str, int]
    filled_shares: dict[str, float]  # of the numbers of each group
    #: Columns without a role and why: "text", "date", "empty", "other", "identifier",
    #: "row numbers", "index" (also of a path) or "asked".
    left_out: dict[str, str]
    constant: list[str]  # features that do not vary
    near_constant: dict[str, int]  # features of nearly one value; how many rows have another
    sentinels: list[Sentinel]
    twin_labels: list[tuple[str, ...]]  # groups that differ by upper case or blanks only
    unordered: bool  # whether the rows may come in another order next time


class Block(NamedTuple):
    """The complete rows of a record batch.

    ``complete`` says which rows of the batch these are, and ``codes`` is the group of every row of
    the batch, -1 for none. ``kept`` are the columns that are carried along. ``missing`` says where
    values of a column were missing in the batch, and ``filled`` where they were filled in.
    """

    rows: ColumnRows
    groups: CodedLabels | None
    weights: NDArray[Any] | None
    target: CodedLabels | None
    kept: Any
    complete: Mask
    codes: NDArray[Any]
    missing: dict[str, Mask]
    filled: dict[str, Mask]

    @property
    def X(self) -> NDArray[Any]:
        """The features as an array."""
        return self.rows.block(0, self.rows.n_rows)


def decode(batch: Any, roles: Roles) -> Block:
    """Numbers, labels and weights out of a record batch with the columns of ``roles.sql``.

    Errors have the row of the batch among their facts.
    """
    n_numbers = len(roles.numbers)
    numbers = {name: floats_of(batch.column(j)) for j, name in enumerate(roles.numbers)}
    coded = {name: _labels(batch.column(n_numbers + j)) for j, name in enumerate(roles.labels)}
    missing: dict[str, Mask] = {}
    filled: dict[str, Mask] = {}
    for name, column in numbers.items():
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(column @ column):  # no NaN, no infinity, no square that overflows
                continue
        gap = np.isnan(column)
        row = int(np.argmax(np.where(gap, 0.0, np.abs(column))))
        if abs(column[row]) > _LARGE:
            fact = f"column {name!r} holds {column[row]:g}, whose square is infinite"
            advice = "correct it, or leave out the column"
            raise TableError("large", fact, advice, column=name, row=row)
        if gap.any() and name in roles.fill:
            filled[name], numbers[name] = gap, np.where(gap, roles.fill[name], column)
        elif gap.any():
            missing[name] = gap
    for name, (codes, labels) in coded.items():
        if name in roles.groups and roles.missing_group is not None:
            coded[name] = CodedLabels(codes % len(labels), [*labels[:-1], roles.missing_group])
        elif (codes < 0).any():
            missing[name] = codes < 0
    weights = None if roles.weight is None else numbers[roles.weight].astype(np.float64)
    if weights is not None and (weights < 0).any():
        fact, row = f"column {roles.weight!r} holds negative weights", int((weights < 0).argmax())
        advice = "give rows that should not count the weight 0"
        raise TableError("weight", fact, advice, column=roles.weight, row=row)
    columns: list[NDArray[Any]] = []
    for name in roles.features:
        values = roles.categories.get(name)
        columns += [numbers[name]] if values is None else _indicators(name, coded[name], values)
    groups = _crossed([coded[name] for name in roles.groups])
    target = None if roles.target is None else coded[roles.target]
    kept = batch.select(range(n_numbers + len(coded), batch.num_columns))
    complete = ~np.logical_or.reduce([np.zeros(batch.num_rows, bool), *missing.values()])
    whole = np.full(batch.num_rows, -1) if groups is None else groups.codes
    if not complete.all():
        columns = [column[complete] for column in columns]
        filled = {name: gap[complete] for name, gap in filled.items()}
        kept = kept.filter(pa.array(complete))
        groups, target = (c and CodedLabels(c.codes[complete], c.labels) for c in (groups, target))
        weights = None if weights is None else weights[complete]
    rows = ColumnRows(columns, roles.feature_names)
    return Block(rows, groups, weights, target, kept, complete, whole, missing, filled)


def _labels(column: Any) -> CodedLabels:
    """Codes and labels of a column; -1 is the code of a row without a label, and None the last."""
    coded = column if hasattr(column, "indices") else column.dictionary_encode()
    labels = coded.dictionary.to_pylist()
    codes = coded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    nan = [i for i, label in enumerate(labels) if label is None or label != label]
    return CodedLabels(np.where(np.isin(codes, nan), -1, codes) if nan else codes, [*labels, None])


def _crossed(columns: Sequence[CodedLabels]) -> CodedLabels | None:
    """The group of each row, -1 for none; groups of several columns are tuples of labels."""
    if len(columns) < 2:
        return columns[0] if columns else None
    known = np.logical_and.reduce([codes >= 0 for codes, _ in columns])
    codes, cells = cross_cells([(np.maximum(codes, 0), labels) for codes, labels in columns])
    return CodedLabels(np.where(known, codes, -1), [*cells, None])


def _indicators(name: str, coded: CodedLabels, known: Sequence[str]) -> list[NDArray[Any]]:
    """Columns of zeros and ones for the known values of a text column; one for two values."""
    place = {label: i for i, label in enumerate(coded.labels)}
    codes = [place.get(value, len(place)) for value in known]
    strange = ~np.isin(coded.codes, [-1, *codes])
    if strange.any():
        row = int(strange.argmax())
        value = coded.labels[coded.codes[row]]
        fact = f"column {name!r} has the value {value!r}, and the model knows {list(known)[:5]}"
        raise TableError("categories", fact, "correct it, or fit again", column=name, row=row)
    return [(coded.codes == code).astype(np.float64) for code in indicated(codes)]


def blocks_of(
    table: Table, roles: Roles, progress: Callable[[float], object] | None = None
) -> Iterator[Block]:
    """The rows of a table as a stream; refuses missing values unless they may be dropped."""
    sql, n_rows = roles.sql(table), 0
    size = min(_BATCH_ROWS, max(1024, _BATCH_ENTRIES // max(1, len(sql))))
    for batch in table.batches(sql, rows=size, progress=progress):
        try:
            with single_threaded_blas():
                block = decode(batch, roles)
        except TableError as error:
            place = table.place_of(f"{ROW} = {n_rows + error.facts['row'] + 1}") or table.name
            fact = f"{place}: {error.fact}"
            raise TableError(error.problem, fact, error.advice, **error.facts) from error
        if block.missing and not roles.drop_missing:
            raise missing_values(table, roles)
        n_rows += batch.num_rows
        yield block


def missing_values(table: Table, roles: Roles) -> TableError:
    """The error for missing values: where they are, and what each way out costs."""
    counts, n_rows, n_gone, first = Counter[str](), 0, 0, 0
    for block in blocks_of(table, replace(roles, drop_missing=True)):
        counts.update({name: int(gap.sum()) for name, gap in block.missing.items()})
        if not first and block.missing:
            first = n_rows + int(block.complete.argmin()) + 1
        n_rows += len(block.complete)
        n_gone += int((~block.complete).sum())
    missing = dict(counts.most_common())
    empty = [name for name, n in missing.items() if n > n_rows / 2]
    features = [name for name in missing if name in roles.features]
    worst = ", ".join(f"{name!r} ({n})" for name, n in [*missing.items()][:4])
    place = table.place_of(f"{ROW} = {first}")
    fact = f"{n_gone} of {n_rows} rows of {table.name} have missing values, in {worst}"
    ways = {
        f"leave out columns, drop={(empty or features)[:30]!r}": bool(features),
        "fill numbers in, impute='median'": any(name in roles.numbers for name in features),
        f"leave out these {n_gone} rows, drop_missing=True": 2 * n_gone <= n_rows,
        "make a group of rows without one, missing_group='not recorded'": any(
            name in roles.groups for name in missing
        ),
    }
    advice = ", or ".join(way for way, helps in ways.items() if helps) or "complete the table"
    facts = {"missing": missing, "n_incomplete": n_gone, "mostly_empty": empty}
    return TableError("missing", f"{fact} (the first is {place})", advice, **facts)


class Summing:
    """Sums up blocks: moments, by fold if asked for, and counts of what was left out."""

    def __init__(
        self,
        roles: Roles,
        as_text: bool = False,
        folds: FoldRule | None = None,
        by_outcome: bool = False,
    ) -> None:
        self.moments, self.roles, self._folds = GroupMoments(), roles, folds
        self._as_text, self._by_outcome = as_text, by_outcome
        self._cells: dict[str, Any] = {}
        self._seen, self.sizes = Counter[Any](), Counter[Any]()
        self.n_rows = 0
        self.missing, self.filled = Counter[str](), Counter[str]()
        self.dropped, self.filled_in = Counter[Any](), Counter[Any]()

    def add(self, block: Block) -> Block:
        """Add a block; returns it with its groups named."""
        assert block.groups is not None
        labels = [self._name(label) for label in block.groups.labels]
        groups = CodedLabels(block.groups.codes, labels)
        block = block._replace(groups=groups)
        self.n_rows += len(block.complete)
        self.missing.update({name: int(gap.sum()) for name, gap in block.missing.items()})
        self.filled.update({name: int(gap.sum()) for name, gap in block.filled.items()})
        for gap in block.filled.values():
            self.filled_in.update(_counts(groups.codes[gap], labels))
        if not block.complete.all():
            self.dropped.update(_counts(block.codes[~block.complete], labels))
        self.sizes.update(_counts(groups.codes, labels))
        folds = None if self._folds is None else self._fold_of(block, labels)
        known = all(map(isfinite, self.roles.fill.values()))
        if known and block.rows.n_rows and (block.weights is None or block.weights.any()):
            target = block.target if self._by_outcome else None
            self.moments.update(block.rows, groups, block.weights, target, folds=folds)
        self.moments.n_dropped += len(block.complete) - block.rows.n_rows
        return block

    def start(self, folds: FoldRule | None) -> None:
        """Count rows from zero again, in the next partition of a cluster."""
        self._folds, self._seen = folds, Counter()

    def finished(self) -> GroupMoments:
        """The moments, to which further rows can be added."""
        if self._folds is not None and self.moments.n_features:
            self.moments._rule, self.moments._seen = self._folds, dict(self._seen)
        return self.moments

    def _name(self, label: Any) -> Any:
        """The name of a group; refuses two crossed groups of one name."""
        columns = self.roles.groups
        if label is None or (len(columns) < 2 and not self._as_text):
            return label
        if isinstance(label, float) and label.is_integer():
            label = int(label)  # a band of a query: 20, not 20.0
        text = cell_text(label, columns)
        if self._cells.setdefault(text, label) != label:
            fact = f"two intersections of {' and '.join(columns)} would both be called {text!r}"
            raise TableError("many_groups", fact, "rename labels so that they do not contain ' & '")
        return text

    def _fold_of(self, block: Block, labels: Sequence[Any]) -> Codes:
        """The fold of each complete row, by its rank in its group among all rows of the source."""
        assert self._folds is not None
        seen = np.array([self._seen[label] for label in labels], np.intp)
        has_group = block.codes >= 0
        folds = np.zeros(len(block.codes), np.intp)
        folds[has_group] = self._folds.folds_of(block.codes[has_group], seen)
        self._seen.update(_counts(block.codes, labels))
        return folds[block.complete]


def _counts(codes: NDArray[Any], labels: Sequence[Any]) -> dict[Any, int]:
    found, counts = np.unique(codes[codes >= 0], return_counts=True)
    return {labels[i]: int(c) for i, c in zip(found.tolist(), counts.tolist(), strict=True)}


def moments_of_table(
    data: Any,
    *,
    drop_missing: bool = False,
    progress: Callable[[float], object] | None = None,
    folds: FoldRule | None = None,
    query: str | None = None,
    file_format: str | None = None,
    encoding: str | None = None,
    **columns: Any,
) -> GroupMoments:
    """The moments of a table, in one pass; see :meth:`GroupMoments.from_files`."""
    table = open_table(data, query=query, file_format=file_format, encoding=encoding)
    roles = replace(roles_by_head(table, **columns), drop_missing=drop_missing)
    if folds is not None and table.unordered:
        warn(
            "the query joins or groups rows without ORDER BY, so their order, and with it the "
            "folds, may differ when it is run again; add ORDER BY to the query.",
            UserWarning,
        )
    summing = Summing(roles, folds=folds, by_outcome=True)
    for block in blocks_of(table, roles, progress):
        summing.add(block)
    return not_empty(summing.finished(), table.name)


def not_empty(moments: GroupMoments, where: str) -> GroupMoments:
    """The moments, unless no rows were summed up."""
    if not moments.n_features:
        fact = f"there are no rows of positive weight to learn from in {where}"
        advice = f"pass complete rows ({moments.n_dropped} were dropped because of missing values)"
        raise TableError("no_rows", fact, advice)
    return moments


def roles_by_head(table: Table, **columns: Any) -> Roles:
    """The roles of the columns, told from the first rows; warns of columns that look like ids."""
    if not list_names(columns.get("sensitive_features")):
        raise no_group(table)
    roles, left_out = choose_roles(table, **columns)
    if columns.get("features") is None:
        profiles = profiles_of(table, roles.numbers, whole=False)
        roles = _without_row_numbers(roles, profiles, left_out)
        warn_of_identifiers(table, left_out)
    return roles


def _without_row_numbers(
    roles: Roles, profiles: Mapping[str, Profile], left_out: dict[str, str]
) -> Roles:
    """The roles without features that number the rows, unless there are no others."""
    features = tuple(n for n in roles.features if n not in profiles or not profiles[n].row_numbers)
    if not features:
        return roles
    left_out |= {name: "row numbers" for name in roles.features if name not in features}
    return replace(roles, features=features)


def warn_of_identifiers(table: Table, left_out: dict[str, str]) -> None:
    """Say that columns of numbers were left out, to somebody who sees no other output."""
    ids = [name for name, why in left_out.items() if why in ("identifier", "row numbers")]
    if ids:
        warn(
            f"{table.name}: columns {ids} are left out, because they look like row numbers or ids; "
            "name the columns to use, features=[...], to have them.",
            UserWarning,
        )


@dataclass(frozen=True)
class Prepared:
    """The moments of a table, what became of its columns, and its rows if they are few enough."""

    table: Table
    roles: Roles
    record: Record
    moments: GroupMoments
    data: Any = None
    sensitive_features: Labels | None = None
    target: Labels | None = None
    sample_weight: NDArray[Any] | None = None

    @property
    def streamed(self) -> bool:
        """Whether the rows were not kept in memory."""
        return self.data is None


def prepare(
    data: Any,
    *,
    sensitive_features: Names = (),
    drop_missing: bool = False,
    impute: str | None = None,
    keep_missing: bool = False,
    missing_group: str | None = None,
    fitted: Roles | None = None,
    whole: bool = True,
    rows_up_to: float = _MOST_BYTES_IN_MEMORY,
    folds: FoldRule | None = None,
    progress: Progress = silent,
    **columns: Any,
) -> Prepared:
    """Choose, encode and check the columns of a table, and sum up its groups.

    Columns and ways to treat missing values are those of :func:`fairpca.read_table`. ``fitted`` are
    the columns of a model. Columns are judged by all rows, or with ``whole=False`` by the first
    ones. Rows are kept if they take no more than ``rows_up_to`` bytes.
    """
    table = open_table(data)
    if impute not in (None, "median"):
        raise ValueError(f"impute={impute!r} is not known; pass 'median'.")
    groups = list_names(sensitive_features) or (fitted.groups if fitted else ())
    if not groups:
        raise no_group(table)
    left_out: dict[str, str] = {}
    if fitted is not None and fitted.features:
        target, weight = columns.get("target"), columns.get("sample_weight")
        roles = replace(model_roles(table, fitted, groups), target=target, weight=weight)
    else:
        roles, left_out = choose_roles(table, sensitive_features=groups, **columns)
    progress("looking at the columns")
    profiles = profiles_of(table, roles.numbers, whole)
    if fitted is None:
        if columns.get("features") is None:
            roles = _without_row_numbers(roles, profiles, left_out)
        roles = with_categories(table, roles)
        if impute or keep_missing:
            medians = {n: profiles[n].median for n in roles.features if n in profiles}
            empty = [name for name, median in medians.items() if isnan(median)]
            if empty and not keep_missing:
                fact = f"no value of {empty[0]!r} in {table.name} is known"
                raise TableError("missing", fact, f"leave it out, drop={empty!r}")
            roles = replace(roles, fill=dict.fromkeys(medians, nan) if keep_missing else medians)
    roles = replace(roles, drop_missing=drop_missing, missing_group=missing_group)
    summing, kept = Summing(roles, as_text=True, folds=folds), list[Block]()
    for block in blocks_of(table, roles, partial(progress, "reading")):
        named = summing.add(block)
        if len(summing.sizes) > _MOST_GROUPS:
            fact = f"{' & '.join(roles.groups)!r} holds more than {_MOST_GROUPS} groups, such as "
            fact += first_names(sorted(summing.sizes)[:6])
            advice = "make bands of numbers in a query, SELECT *, floor(age / 10) * 10 AS band, "
            advice += "join groups with CASE WHEN ... END, or choose another column"
            raise TableError("many_groups", fact, advice)
        rows_up_to -= 8 * named.rows.n_rows * named.rows.n_features
        if rows_up_to >= 0:
            kept.append(named)
        else:
            kept.clear()
    if not summing.n_rows:
        raise no_rows(table.name)
    _refuse_lost(table, summing)
    chosen = {name: profiles[name] for name in roles.features if name in profiles}
    record = Record(
        summing.n_rows,
        summing.moments.n_dropped,
        missing=dict(summing.missing),
        filled=dict(summing.filled),
        dropped_by_group=dict(summing.dropped),
        filled_shares={
            group: n / (summing.sizes[group] * len(roles.feature_names))
            for group, n in summing.filled_in.items()
        },
        left_out=left_out,
        constant=[name for name, profile in chosen.items() if profile.constant],
        near_constant={name: p.n_unlike for name, p in chosen.items() if p.n_unlike},
        sentinels=[sentinel for profile in chosen.values() for sentinel in profile.sentinels],
        twin_labels=twin_labels(summing.sizes),
        unordered=table.unordered,
    )
    return Prepared(table, roles, record, summing.finished(), *_joined(roles, kept))


def model_roles(table: Table, fitted: Roles, groups: Names = (), keep: Names = ()) -> Roles:
    """The roles of the columns of a model in another table."""
    lacking = [name for name in fitted.features if name not in table.columns]
    if lacking:
        what = f"the column{'s' * (len(lacking) > 1)} {first_names(lacking)}"
        fact = f"the model needs {what}, which {table.name} does not have"
        advice = "pass the table it was fitted to, or one like it"
        raise TableError("unknown_column", fact, advice, column=lacking[0])
    refuse_unknown(table, [*list_names(groups), *list_names(keep)])
    roles = replace(fitted, groups=list_names(groups), keep=list_names(keep))
    refuse_text(table, roles.numbers)
    return roles


def _refuse_lost(table: Table, summing: Summing) -> None:
    """Refuse groups and rows that were lost to missing values, and a single group."""
    lost = [label for label in sort_labels([*summing.dropped]) if label not in summing.sizes]
    if lost or 2 * summing.moments.n_dropped > summing.n_rows:
        error = missing_values(table, summing.roles)
        what = f"every row of {first_names(lost)}" if lost else "more than half of the rows"
        fact = f"{what} would be left out: {error.fact}"
        raise TableError("missing", fact, error.advice, lost=lost, **error.facts)
    if len(summing.sizes) < 2:
        fact = f"all rows of {table.name} are in one group, {next(iter(summing.sizes))!r}"
        raise TableError("one_group", fact, "choose another column")


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
    return label_vector(
        [part.labels[code] for part in parts if part is not None for code in part.codes.tolist()]
    )
