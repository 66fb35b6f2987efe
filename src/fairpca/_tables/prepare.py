"""From the columns of a table to features, groups and moments, with a record of every choice made.

Rows are streamed, so memory does not grow with them unless they are few enough to be kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._blas import single_threaded_blas
from fairpca._input.folds import FoldRule
from fairpca._input.labels import CodedLabels, cell_text, cross_cells, label_vector, sort_labels
from fairpca._input.rows import ColumnRows
from fairpca._moments.group_moments import GroupMoments
from fairpca._progress import Progress, silent
from fairpca._tables.arrow import pa
from fairpca._tables.column_roles import (
    FittedColumns,
    Names,
    Profile,
    Roles,
    Sentinel,
    choose_roles,
    known_number,
    list_names,
    look_closer,
    no_group,
    profile_of,
    refuse_continuous,
    refuse_unknown,
    twin_labels,
    with_categories,
)
from fairpca._tables.files import TableError, first_names
from fairpca._tables.read import Table, open_table
from fairpca._typing import Codes, Labels, Mask
from fairpca.exceptions import warn

MOST_BYTES_IN_MEMORY = 200_000_000
_MOST_GROUPS, _MOST_CLASSES = 50, 20
_BATCH_ENTRIES, _BATCH_ROWS = 1 << 21, 1 << 16
_LARGE = 1e150  # sums of squares of larger numbers overflow


@dataclass(frozen=True)
class Record:
    """What became of the rows and columns of a table.

    Attributes
    ----------
    n_rows, n_dropped : int
        Rows in the table, and rows left out for missing values.
    missing, filled : dict of str to int
        Missing values of each column, and those that were filled in.
    dropped_by_group, filled_shares : dict
        Rows left out of each group, and the share of filled numbers among its features.
    lost_groups : list of str
        Groups all of whose rows were left out.
    left_out : dict of str to str
        Columns without a role and why: "text", "date", "empty", "other", "identifier",
        "row numbers", "index" (also of a path) or "asked".
    constant : list of str
        Features that do not vary.
    near_constant : dict of str to int
        Features of nearly one value, and how many rows have another.
    sentinels : list of Sentinel
    twin_labels : list of tuple of str
        Groups whose labels differ by upper case or blanks only.
    unordered : bool
        Whether the rows may come in another order next time.
    """

    n_rows: int
    n_dropped: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    filled: dict[str, int] = field(default_factory=dict)
    dropped_by_group: dict[str, int] = field(default_factory=dict)
    filled_shares: dict[str, float] = field(default_factory=dict)
    lost_groups: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    constant: list[str] = field(default_factory=list)
    near_constant: dict[str, int] = field(default_factory=dict)
    sentinels: list[Sentinel] = field(default_factory=list)
    twin_labels: list[tuple[str, ...]] = field(default_factory=list)
    unordered: bool = False


@dataclass(frozen=True)
class Block:
    """The complete rows of a record batch.

    Attributes
    ----------
    rows : ColumnRows
        The features.
    groups : CodedLabels or None
    weights, target : ndarray or None
    kept : RecordBatch
        The columns that are carried along.
    complete : ndarray of bool
        Which rows of the batch these are.
    codes : ndarray of int
        The group of every row of the batch, -1 for none; see ``groups``.
    missing : dict of str to ndarray of bool
        Where values of a column were missing, and ``filled`` where they were filled in.
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
    first_row: int

    @property
    def X(self) -> NDArray[Any]:
        """The features as an array."""
        return self.rows.block(0, self.rows.n_rows)


def decode(batch: Any, roles: Roles, first_row: int = 0) -> Block:
    """Numbers, labels and weights out of a record batch with the columns of ``roles.sql``."""
    n, n_numbers = batch.num_rows, len(roles.numbers)
    numbers = {name: _floats(batch.column(j)) for j, name in enumerate(roles.numbers)}
    coded = {name: _labels(batch.column(n_numbers + j)) for j, name in enumerate(roles.labels)}
    missing: dict[str, Mask] = {}
    filled: dict[str, Mask] = {}
    for name, column in numbers.items():
        with np.errstate(over="ignore", invalid="ignore"):
            usable = np.isfinite(column @ column)
        if not usable:  # NaN, infinity, or a square that overflows
            gap = np.isnan(column)
            sizes = np.abs(column[~gap])
            if sizes.max(initial=0.0) > _LARGE:
                i = int(np.nanargmax(np.abs(column)))
                fact = f"column {name!r} holds {column[i]:g}, whose square is infinite"
                raise TableError("large", fact, "correct it, or leave out the column", column=name)
            if gap.any() and name in roles.fill:
                filled[name], numbers[name] = gap, np.where(gap, roles.fill[name], column)
            elif gap.any():
                missing[name] = gap
    for name, (codes, labels) in coded.items():
        if name in roles.groups and roles.missing_group is not None:
            coded[name] = CodedLabels(codes % len(labels), [*labels[:-1], roles.missing_group])
        elif (codes < 0).any():
            missing[name] = codes < 0
    if roles.weight is not None and (numbers[roles.weight] < 0).any():
        fact = f"column {roles.weight!r} holds negative weights"
        raise TableError(
            "weight", fact, "give rows that should not count the weight 0", column=roles.weight
        )
    complete = np.ones(n, bool)
    for gap in missing.values():
        complete &= ~gap
    groups = _crossed([coded[name] for name in roles.groups], roles.groups)
    whole = np.full(n, -1, np.intp) if groups is None else groups.codes.astype(np.intp)
    kept = batch.select(list(range(n_numbers + len(coded), batch.num_columns)))
    if not complete.all():
        numbers = {name: column[complete] for name, column in numbers.items()}
        coded = {name: CodedLabels(c[complete], labels) for name, (c, labels) in coded.items()}
        filled = {name: gap[complete] for name, gap in filled.items()}
        kept = kept.filter(pa.array(complete))
        groups = None if groups is None else CodedLabels(whole[complete], groups.labels)
    columns: list[NDArray[Any]] = []
    for name in roles.features:
        values = roles.categories.get(name)
        columns += [numbers[name]] if values is None else _indicators(name, coded[name], values)
    weights = None if roles.weight is None else numbers[roles.weight].astype(np.float64)
    target = None if roles.target is None else coded[roles.target]
    rows = ColumnRows(columns, roles.feature_names)
    return Block(rows, groups, weights, target, kept, complete, whole, missing, filled, first_row)


def _floats(column: Any) -> NDArray[Any]:
    """Arrow numbers or booleans as floats; nulls become NaN."""
    if str(column.type) not in ("double", "float"):
        column = column.cast("float64", safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _labels(column: Any) -> CodedLabels:
    """Codes and labels of a column; -1 is the code of a row without a label, and None the last."""
    coded = column if hasattr(column, "indices") else column.dictionary_encode()
    labels = coded.dictionary.to_pylist()
    codes = coded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    nan = [i for i, label in enumerate(labels) if label is None or label != label]
    return CodedLabels(np.where(np.isin(codes, nan), -1, codes) if nan else codes, [*labels, None])


def _crossed(columns: Sequence[CodedLabels], names: Sequence[str]) -> CodedLabels | None:
    """The group of each row, -1 for none; labels of several columns are joined by " & "."""
    if len(columns) < 2:
        return columns[0] if columns else None
    known = np.logical_and.reduce([codes >= 0 for codes, _ in columns])
    codes, cells = cross_cells([(np.maximum(codes, 0), labels) for codes, labels in columns])
    return CodedLabels(np.where(known, codes, -1), [*cells, None])


def _indicators(name: str, coded: CodedLabels, known: Sequence[str]) -> list[NDArray[Any]]:
    """Columns of zeros and ones for the known values of a text column; one for two values."""
    position = {value: i for i, value in enumerate(known)}
    places = np.array([position.get(value, -1) for value in coded.labels], np.intp)[coded.codes]
    if (places < 0).any():
        value = coded.labels[coded.codes[int((places < 0).argmax())]]
        fact = f"column {name!r} has the value {value!r}, and the model knows {list(known)[:5]}"
        raise TableError(
            "categories", fact, "correct the value, or fit again", column=name, value=value
        )
    wanted = range(1, 2) if len(known) == 2 else range(len(known))
    return [(places == i).astype(np.float64) for i in wanted]


def blocks_of(
    table: Table, roles: Roles, progress: Callable[[float], object] | None = None
) -> Iterator[Block]:
    """The rows of a table as a stream; refuses missing values unless they may be dropped."""
    sql = roles.sql(table)
    rows = min(_BATCH_ROWS, max(1024, _BATCH_ENTRIES // max(1, len(sql))))
    first_row = 0
    for batch in table.batches(sql, rows=rows, progress=progress):
        try:
            with single_threaded_blas():
                block = decode(batch, roles, first_row)
        except TableError as error:
            raise _placed(table, error) from error
        if block.missing and not roles.drop_missing:
            raise missing_values(table, roles)
        first_row += batch.num_rows
        yield block


def _placed(table: Table, error: TableError) -> TableError:
    """The error, with the place of the value in the table."""
    column, problem = table.columns[error.facts["column"]], error.problem
    condition = f"abs({column.number}) > {_LARGE}" if problem == "large" else f"{column.number} < 0"
    if problem == "categories":
        condition = f"{column.label} = '" + str(error.facts["value"]).replace("'", "''") + "'"
    place = table.place_of(condition) or table.name
    return TableError(problem, f"{place}: {error.fact}", error.advice, **error.facts)


def missing_values(table: Table, roles: Roles) -> TableError:
    """The error for missing values: where they are, and what each way out costs."""
    names = [n for n in dict.fromkeys([*roles.numbers, *roles.labels]) if n not in roles.fill]
    if roles.missing_group is not None:
        names = [name for name in names if name not in roles.groups]
    columns = [table.columns[name] for name in names]
    known = [known_number(c) if c.name in roles.numbers else c.label for c in columns]
    sql = [
        "count(*)",
        "count(*) FILTER (" + " AND ".join(f"v{j} IS NOT NULL" for j in range(len(names))) + ")",
    ]
    n_rows, n_complete, *counts = table.figures(
        [*sql, *(f"count(v{j})" for j in range(len(names)))], known
    )
    missing = {n: n_rows - c for n, c in zip(names, counts, strict=True) if c < n_rows}
    missing = dict(sorted(missing.items(), key=lambda item: -item[1]))
    empty = [name for name, n in missing.items() if n > n_rows / 2]
    worst = ", ".join(f"{name!r} ({n})" for name, n in [*missing.items()][:4])
    place = table.place_of(" OR ".join(f"({sql}) IS NULL" for sql in known))
    fact = f"{n_rows - n_complete} of {n_rows} rows of {table.name} have missing values, in {worst}"
    fact += f" (the first is {place})" if place else ""
    features = [name for name in missing if name in roles.features]
    ways = (
        [f"leave out the column{'s' * (len(features) > 1)}, drop={(empty or features)[:30]!r}"]
        if features
        else []
    )
    if any(name in roles.numbers for name in features):
        ways.append("fill numbers in, impute='median'")
    if 2 * n_complete >= n_rows:
        ways.append(f"leave out these {n_rows - n_complete} rows, drop_missing=True")
    if any(name in roles.groups for name in missing):
        ways.append("make a group of rows without one, missing_group='not recorded'")
    facts = {
        "missing": missing,
        "n_incomplete": n_rows - n_complete,
        "n_rows": n_rows,
        "mostly_empty": empty,
    }
    return TableError("missing", fact, ", or ".join(ways) or "complete the table", **facts)


@dataclass(frozen=True)
class Prepared:
    """The moments of a table, what became of its columns, and its rows if they are few enough.

    Attributes
    ----------
    table, roles, profile, record, moments
    data : pyarrow.Table or None
        The features of all rows, as float64; None if they are too many.
    sensitive_features, target, sample_weight : ndarray or None
        The group, outcome and weight of each of these rows.
    """

    table: Table
    roles: Roles
    profile: Profile
    record: Record
    moments: GroupMoments
    data: Any = None
    sensitive_features: Labels | None = None
    target: Labels | None = None
    sample_weight: NDArray[Any] | None = None

    @property
    def source(self) -> str:
        """The name of the table."""
        return self.table.name

    @property
    def group_name(self) -> str:
        """The columns that name the groups."""
        return " & ".join(self.roles.groups)

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""
        return self.roles.feature_names

    @property
    def streamed(self) -> bool:
        """Whether the rows were not kept in memory."""
        return self.data is None

    def blocks(self, progress: Callable[[float], object] | None = None) -> Iterator[Block]:
        """The complete rows again, as a stream; labels of groups are text, as in ``moments``."""
        naming = _Naming(self.roles.groups, as_text=True)
        for block in blocks_of(self.table, self.roles, progress):
            yield replace(block, groups=naming(block.groups))


class _Naming:
    """Gives groups their names, and refuses two crossed groups of one name."""

    def __init__(self, columns: Sequence[str], as_text: bool) -> None:
        self._columns, self._as_text = columns, as_text
        self._cells: dict[Any, Any] = {}

    def __call__(self, groups: CodedLabels | None) -> CodedLabels | None:
        if groups is None or (len(self._columns) < 2 and not self._as_text):
            return groups
        return CodedLabels(groups.codes, [self.name(label) for label in groups.labels])

    def name(self, label: Any) -> Any:
        """The name of a group."""
        if label is None:
            return None
        if isinstance(label, float) and label.is_integer():
            label = int(label)  # a band of a query: 20, not 20.0
        text = cell_text(label, self._columns)
        if self._cells.setdefault(text, label) != label:
            fact = (
                f"two intersections of {' and '.join(self._columns)} would both be called {text!r}"
            )
            raise TableError("many_groups", fact, "rename labels so that they do not contain ' & '")
        return text


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
        self._by_outcome = by_outcome
        self._name = _Naming(roles.groups, as_text)
        self._seen, self.sizes = Counter[Any](), Counter[Any]()
        self.n_rows = 0
        self.missing, self.filled = Counter[str](), Counter[str]()
        self.dropped, self.filled_in = Counter[Any](), Counter[Any]()

    def add(self, block: Block) -> Block:
        """Add a block; returns it with its groups named."""
        n = len(block.complete)
        block = replace(block, groups=self._name(block.groups))
        if block.groups is None:
            return block
        labels = block.groups.labels
        self.n_rows += n
        self.missing.update({name: int(gap.sum()) for name, gap in block.missing.items()})
        self.filled.update({name: int(gap.sum()) for name, gap in block.filled.items()})
        for gap in block.filled.values():
            self.filled_in.update(self._counts(block.groups.codes[gap], labels))
        if not block.complete.all():
            self.dropped.update(self._counts(block.codes[~block.complete], labels))
        folds = None if self._folds is None else self._fold_of(block, labels)
        self.sizes.update(self._counts(block.groups.codes, labels))
        known = all(map(isfinite, self.roles.fill.values()))
        if known and block.rows.n_rows and (block.weights is None or block.weights.any()):
            target = block.target if self._by_outcome else None
            self.moments.update(block.rows, block.groups, block.weights, target, folds=folds)
        self.moments.n_dropped += n - block.rows.n_rows
        return block

    def start(self, folds: FoldRule | None) -> None:
        """Count rows from zero again, in the next partition of a cluster."""
        self._folds, self._seen = folds, Counter()

    def finished(self) -> GroupMoments:
        """The moments, to which further rows can be added."""
        if self._folds is not None and self.moments.n_features:
            self.moments._rule, self.moments._seen = self._folds, dict(self._seen)
        return self.moments

    @staticmethod
    def _counts(codes: NDArray[Any], labels: Sequence[Any]) -> dict[Any, int]:
        found, counts = np.unique(codes[codes >= 0], return_counts=True)
        return {labels[i]: int(c) for i, c in zip(found.tolist(), counts.tolist(), strict=True)}

    def _fold_of(self, block: Block, labels: Sequence[Any]) -> Codes:
        """The fold of each complete row, by its rank in its group among all rows of the source."""
        assert self._folds is not None
        seen = np.array([self._seen[label] for label in labels], np.intp)
        has_group = block.codes >= 0
        folds = np.zeros(len(block.codes), np.intp)
        folds[has_group] = self._folds.folds_of(block.codes[has_group], seen)
        self._seen.update(self._counts(block.codes, labels))
        return folds[block.complete]


def moments_of_table(
    data: Any,
    *,
    sensitive_features: Names,
    features: Names = None,
    sample_weight: str | None = None,
    target: str | None = None,
    drop_missing: bool = False,
    progress: Callable[[float], object] | None = None,
    folds: FoldRule | None = None,
    **options: Any,
) -> GroupMoments:
    """The moments of a table, in one pass; see :meth:`GroupMoments.from_files`."""
    table = open_table(data, **options)
    if not list_names(sensitive_features):
        raise no_group(table)
    roles = _roles_by_head(
        table,
        sensitive_features=sensitive_features,
        features=features,
        sample_weight=sample_weight,
        target=target,
    )
    summing = Summing(replace(roles, drop_missing=drop_missing), folds=folds, by_outcome=True)
    for block in blocks_of(table, summing.roles, progress):
        summing.add(block)
    moments = summing.finished()
    if not moments.n_features:
        fact = f"there are no rows of positive weight to learn from in {table.name}"
        advice = f"pass complete rows ({moments.n_dropped} were dropped because of missing values)"
        raise TableError("no_rows", fact, advice, n_dropped=moments.n_dropped)
    return moments


def _roles_by_head(table: Table, **names: Any) -> Roles:
    """The roles of the columns, told from the first rows; warns of columns that look like ids."""
    roles, left_out = choose_roles(table, **names)
    if names.get("features") is None:
        head = profile_of(table, roles.numbers, whole=False)
        roles = _without_row_numbers(roles, look_closer(table, head).row_numbers, left_out)
        warn_of_identifiers(table, left_out)
    return roles


def features_of(
    table: Table,
    *,
    sensitive_features: Names,
    features: Names = None,
    sample_weight: str | None = None,
    target: str | None = None,
    **_: Any,
) -> tuple[str, ...]:
    """The columns that :func:`moments_of_table` takes for features."""
    names = {"sensitive_features": sensitive_features, "features": features}
    return _roles_by_head(table, sample_weight=sample_weight, target=target, **names).features


def _without_row_numbers(roles: Roles, names: Sequence[str], left_out: dict[str, str]) -> Roles:
    """The roles without features that number the rows, unless there are no others."""
    features = tuple(name for name in roles.features if name not in names)
    if not features:
        return roles
    left_out |= dict.fromkeys((name for name in names if name in roles.features), "row numbers")
    return replace(roles, features=features)


def prepare(
    data: Any,
    *,
    sensitive_features: Names = (),
    features: Names = None,
    drop: Names = (),
    target: str | None = None,
    sample_weight: str | None = None,
    encode: bool = False,
    drop_missing: bool = False,
    impute: str | None = None,
    missing_group: str | None = None,
    fitted: FittedColumns | None = None,
    profile: str = "whole",
    rows_up_to: float = MOST_BYTES_IN_MEMORY,
    folds: FoldRule | None = None,
    progress: Progress = silent,
    keep_missing: bool = False,
    **options: Any,
) -> Prepared:
    """Choose, encode and check the columns of a table, and sum up its groups.

    Parameters
    ----------
    data : Table, or what :func:`open_table` takes
        ``options`` are passed on to it.
    sensitive_features, features, drop : str or sequence of str
        Columns that name the groups, that are features, and that are neither.
    target, sample_weight : str, optional
    encode : bool
        Turn the values of text columns into columns; otherwise these are left out.
    drop_missing : bool
        Leave out rows with missing values, unless they are more than half or a whole group.
    impute : {"median"}, optional
        Fill in missing numbers with the median of all rows.
    missing_group : str, optional
        The group of rows without one; otherwise they are rows with missing values.
    fitted : FittedColumns, optional
        The columns of a model.
    profile : {"whole", "head"}
        Whether the columns are judged by all rows, or by the first ones.
    rows_up_to : float
        Keep the rows too, if they take no more than this many bytes.
    folds : FoldRule, optional
        Keep the moments of folds apart.
    progress : Progress
    keep_missing : bool
        Leave missing numbers as they are, NaN.

    Returns
    -------
    Prepared
    """
    table = open_table(data, **options)
    if impute not in (None, "median"):
        raise ValueError(f"impute={impute!r} is not known; pass 'median'.")
    groups = list_names(sensitive_features) or (tuple(fitted.groups) if fitted else ())
    if not groups:
        raise no_group(table)
    if fitted is not None and fitted.columns:
        left_out: dict[str, str] = {}
        roles = model_roles(table, fitted, groups=groups, target=target)
        roles = replace(roles, weight=sample_weight)
    else:
        roles, left_out = choose_roles(
            table,
            sensitive_features=groups,
            features=features,
            drop=drop,
            target=target,
            sample_weight=sample_weight,
            encode=encode,
        )
    progress("looking at the columns")
    found = profile_of(table, [*roles.numbers, *roles.labels], profile == "whole")
    if found.n_rows == 0:
        raise TableError("no_rows", f"{table.name} has column names but no rows", "add rows")
    refuse_continuous(roles, found)
    findings = look_closer(table, found)
    if fitted is None:
        if features is None:
            roles = _without_row_numbers(roles, findings.row_numbers, left_out)
        roles = with_categories(table, roles)
        if impute or keep_missing:
            roles = _with_fill(table, roles, found, keep_missing)
    roles = replace(roles, drop_missing=drop_missing, missing_group=missing_group)
    summing, kept = Summing(roles, as_text=True, folds=folds), _Rows(rows_up_to)
    for block in blocks_of(table, roles, partial(progress, "reading")):
        kept.add(summing.add(block))
        _refuse_many(roles, summing.sizes)
    record = _record(table, roles, found, summing, left_out)
    chosen = set(roles.features)
    record = replace(
        record,
        sentinels=[s for s in findings.sentinels if s.column in chosen],
        near_constant={n: k for n, k in findings.near_constant.items() if n in chosen},
    )
    return Prepared(table, roles, found, record, summing.finished(), *kept.joined(roles))


def warn_of_identifiers(table: Table, left_out: Mapping[str, str]) -> None:
    """Say that columns of numbers were left out, to somebody who sees no other output."""
    ids = [name for name, why in left_out.items() if why in ("identifier", "row numbers")]
    if ids:
        warn(
            f"{table.name}: columns {ids} are left out, because they look like row numbers or ids; "
            "name the columns to use, features=[...], to have them.",
            UserWarning,
        )


def model_roles(
    table: Table,
    fitted: FittedColumns,
    *,
    groups: Names = (),
    target: str | None = None,
    keep: Names = (),
) -> Roles:
    """The roles of the columns of a model in another table."""
    for needed in (fitted.columns, list_names(groups), list_names(keep)):
        lacking = [name for name in needed if name not in table.columns]
        if lacking and needed is fitted.columns:
            what = f"the column{'s' * (len(lacking) > 1)} {first_names(lacking)}"
            fact = f"{fitted.model or 'the model'} needs {what}, which {table.name} does not have"
            advice = "pass the table it was fitted to, or one like it"
            raise TableError("unknown_column", fact, advice,
                             column=lacking[0], columns=[*table.columns], near=[])  # fmt: skip
        refuse_unknown(table, lacking)
    roles = Roles(tuple(fitted.columns), list_names(groups), target=target, keep=list_names(keep))
    roles = replace(roles, categories=dict(fitted.categories), fill=dict(fitted.fill))
    for name in roles.numbers:
        column = table.columns[name]
        if table.is_text and column.kind == "text":
            raise table.odd_value(name, column.odd[1] if column.odd else table.first_text(name))
        if column.kind not in ("number", "empty"):
            fact = f"{table.name} has features that are not numbers: {name!r} ({column.kind})"
            raise TableError("no_features", fact, "pass columns of numbers", column=name)
    return roles


def _with_fill(table: Table, roles: Roles, profile: Profile, keep: bool) -> Roles:
    """The roles with what stands in for missing numbers: the medians, or NaN to keep them."""
    numbers = [name for name in roles.features if name not in roles.categories]
    medians = {name: profile.columns[name].median for name in numbers}
    empty = [name for name, median in medians.items() if median is None]
    if empty and not keep:
        fact = f"no value of {empty[0]!r} in {table.name} is known"
        raise TableError(
            "missing", fact, f"leave it out, drop={empty!r}", missing={}, mostly_empty=empty
        )
    known = {
        name: float("nan" if keep or median is None else median) for name, median in medians.items()
    }
    return replace(roles, fill=known)


def _refuse_many(roles: Roles, sizes: Mapping[str, int]) -> None:
    if len(sizes) > _MOST_GROUPS:
        name, some = " & ".join(roles.groups), first_names(sorted(sizes)[:6])
        fact = f"{name!r} holds more than {_MOST_GROUPS} groups, such as {some}"
        advice = "join some of them in a query, with CASE WHEN ... END, or choose another column"
        raise TableError("many_groups", fact, advice, column=name, n=len(sizes), continuous=False)


def _record(
    table: Table, roles: Roles, profile: Profile, summing: Summing, left_out: dict[str, str]
) -> Record:
    """The record of a pass; refuses groups and rows that were lost to missing values."""
    moments, n_rows = summing.moments, summing.n_rows
    present = sort_labels([*summing.sizes])
    lost = [label for label in sort_labels([*summing.dropped]) if label not in present]
    if moments.n_dropped and (2 * moments.n_dropped > n_rows or lost):
        error = missing_values(table, roles)
        what = f"every row of {first_names(lost)}" if lost else "more than half of the rows"
        fact = f"{what} would be left out: {error.fact}"
        raise TableError("missing", fact, error.advice, lost=lost, **error.facts)
    if len(present) < 2:
        fact = f"all rows of {table.name} are in one group, {present[0]!r}"
        raise TableError("one_group", fact, "choose another column", label=present[0])
    columns, d = profile.columns, len(roles.feature_names)
    constant = [n for n in roles.numbers if n in columns and columns[n].least == columns[n].largest]
    return Record(
        n_rows,
        moments.n_dropped,
        missing=dict(summing.missing),
        filled=dict(summing.filled),
        dropped_by_group=dict(summing.dropped),
        filled_shares={g: n / (summing.sizes[g] * d) for g, n in summing.filled_in.items()},
        left_out=left_out,
        constant=constant,
        twin_labels=twin_labels(present),
        unordered=table.unordered,
    )


class _Rows:
    """All rows, as long as they take no more than so many bytes."""

    def __init__(self, rows_up_to: float) -> None:
        self._left, self._blocks = rows_up_to, list[Block]()

    def add(self, block: Block) -> None:
        """Keep the rows of a block."""
        self._left -= 8 * block.rows.n_rows * block.rows.n_features
        if self._left < 0:
            self._blocks = []
        elif block.rows.n_rows:
            self._blocks.append(replace(block, kept=None, missing={}, filled={}))

    def joined(self, roles: Roles) -> tuple[Any, ...]:
        """Features, groups, target and weights of all rows; None for all if they were too many."""
        if not self._blocks or self._left < 0:
            return None, None, None, None
        parts = zip(*(block.rows.columns for block in self._blocks), strict=True)
        columns = [np.concatenate(part).astype(np.float64, copy=False) for part in parts]
        data = pa.table(dict(zip(roles.feature_names, columns, strict=True)))
        groups = [_spread(block.groups) for block in self._blocks]
        targets = [_spread(block.target) for block in self._blocks if block.target is not None]
        weights = [block.weights for block in self._blocks if block.weights is not None]
        return (
            data,
            label_vector([*np.concatenate(groups)]),
            label_vector([*np.concatenate(targets)]) if targets else None,
            np.concatenate(weights) if weights else None,
        )


def _spread(coded: CodedLabels | None) -> Labels:
    """The label of each row."""
    if coded is None:
        return np.empty(0, object)
    labels = np.empty(len(coded.labels), object)
    labels[:] = coded.labels
    return np.asarray(labels[coded.codes])
