"""Which columns of a table are features, groups, weights or a target, and what is left out."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any, NamedTuple

import numpy as np

from fairpca._tables.files import first_names, refuse_twin_names, refuse_unknown
from fairpca._tables.read import HEAD_ROWS, Column, Table
from fairpca._typing import Array
from fairpca.exceptions import TableError

Names = str | Sequence[str] | None

_ENOUGH_ROWS = 20  # With fewer rows, measurements are often all different.
_MOST_CATEGORIES, _FEW = 100, 5  # values of a text column to encode; values of a coarse column
_PROFILED = 1 << 21  # most numbers in the sample behind profiles
_FAR = 3.0  # A value is far from others if it is this many times their range away.
#: The words before "id" are listed, because other words end in id too: paid, humid.
_IDENTIFIER = re.compile(
    r"(?i:(.*[\W_])?(id|ids|id[\W_]?(no|num|number)|obs|uuid|guid|rowid|rownames?|row[\W_]?(number|num|no|id|name)s?))"
    r"|(?i:(row[\W_])?(index|idx)|Unnamed: \d+|seqn|ssn)|.*[a-z](ID|Id)"
    r"|(?i:(.*[\W_])?([cehnopstu]|account|applicant|case|child|client|customer|device|employee"
    r"|family|hh|household|individual|member|mother|obs|order|participant|patient|person|pers"
    r"|product|record|resp|respondent|sample|school|session|staff|student|subj|subject|teacher"
    r"|transaction|user|visit|worker)ids?)"
)


def is_identifier(name: str) -> bool:
    """Whether a column of this name numbers or names the rows."""
    return _IDENTIFIER.fullmatch(name) is not None


@dataclass(frozen=True)
class Roles:
    """The use of each column of a table."""

    features: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()  # several columns are crossed
    weight: str | None = None
    target: str | None = None
    keep: tuple[str, ...] = ()  # carried along in front of scores
    #: The text columns among the features, and their values. Two values become one feature of
    #: zeros and ones, ``column=value``; three or more become one feature each.
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fill: Mapping[str, float] = field(default_factory=dict)  # what stands in for missing values
    drop_missing: bool = False  # leave out rows with missing values; otherwise they are refused
    missing_group: str | None = None  # the group of rows without one

    @property
    def labels(self) -> list[str]:
        """The columns that are read as labels."""
        return list(dict.fromkeys([*self.groups, *filter(None, [self.target])]))

    @property
    def numbers(self) -> list[str]:
        """The columns that are read as numbers."""
        features = [name for name in self.features if name not in self.categories]
        return [*features, *filter(None, [self.weight])]

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in order."""
        names: list[str] = []
        for column in self.features:
            values = self.categories.get(column)
            names += [column] if values is None else [f"{column}={v}" for v in indicated(values)]
        return names

    @property
    def read(self) -> list[str]:
        """The columns that are read, in this order: numbers, labels, text to encode."""
        return [*self.numbers, *self.labels, *self.categories]

    def sql(self, table: Table) -> list[str]:
        """The SQL that reads ``read`` and the columns carried along."""
        columns = table.columns
        numbers = [columns[name].number for name in self.numbers]
        labels = [columns[name].label for name in self.labels]
        texts = [f"CAST({columns[name].label} AS VARCHAR)" for name in self.categories]
        kept = [columns[n].number if n in self.numbers else columns[n].raw for n in self.keep]
        return [*numbers, *labels, *texts, *kept]


def indicated(values: Sequence[Any]) -> Sequence[Any]:
    """The values of a text column that become features: one of two, or all."""
    return values[1:] if len(values) == 2 else values


class Sentinel(NamedTuple):
    """A number that may stand for a missing value: it is far from all others of its column."""

    column: str
    value: float
    n_rows: int
    next_value: float


class Profile(NamedTuple):
    """What a column of numbers holds."""

    median: float = nan
    same: float = 0.0  # the share of values that equal the median; all if the column is constant
    row_numbers: bool = False
    sentinels: Sequence[Sentinel] = ()


def profiles_of(table: Table, names: Sequence[str], whole: bool = True) -> dict[str, Profile]:
    """Profile columns of numbers, in all rows or in the first ones, within bounded memory.

    The smallest and largest numbers are exact. The rest comes from a sample: every row or, in large
    tables, every second, every fourth, and so on.
    """
    if not names:
        return {}
    sample, step, n_rows = [np.empty((len(names), 0))], 1, 0
    least, largest = np.full((2, len(names)), nan)
    sql = [table.columns[name].number for name in names]
    for batch in table.batches(sql, limit=None if whole else HEAD_ROWS):
        block = np.array([floats_of(column) for column in batch.columns], np.float64)
        least = np.fmin(least, np.fmin.reduce(block, axis=1))
        largest = np.fmax(largest, np.fmax.reduce(block, axis=1))
        sample.append(block[:, -n_rows % step :: step].copy())
        n_rows += batch.num_rows
        while n_rows // step * len(names) > _PROFILED:
            sample, step = [np.hstack(sample)[:, ::2].copy()], 2 * step
    columns = zip(names, np.hstack(sample), least.tolist(), largest.tolist(), strict=True)
    return {name: _profile(name, column, step, *ends) for name, column, *ends in columns}


def floats_of(column: Any) -> Any:
    """Arrow numbers or booleans as floats; nulls become NaN."""
    if str(column.type) not in ("double", "float"):
        column = column.cast("float64", safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _profile(name: str, column: Array, step: int, least: float, largest: float) -> Profile:
    known = np.sort(column[~np.isnan(column)])
    median = float(np.median(known)) if len(known) else nan
    if len(known) == 0 or not np.isfinite(largest - least):
        return Profile(median)
    spread = np.subtract(*np.quantile(known, [0.75, 0.25]))
    distinct = np.unique(np.append(known, [least, largest]))
    found = []
    for end, beside, other in ((0, 1, -1), (-1, -2, 0)):
        value = float(distinct[end])
        if len(distinct) > _FEW and abs(value - median) > _FAR * spread:
            count, following = int((known == value).sum()), float(distinct[beside])
            is_code = re.fullmatch(r"-?([6-9])\1+(\.\d+)?", f"{value:.12g}") is not None
            far = abs(value - following) > _FAR * abs(following - distinct[other])
            if far and (is_code or count > 1):
                found.append(Sentinel(name, value, max(1, step * count), following))
    in_steps = len(known) >= _ENOUGH_ROWS and (np.diff(known) == step).all()
    whole = bool(in_steps and known[0] == np.floor(known[0]))
    same = float(least == largest or min((known == median).mean(), 1 - 1 / len(known)))
    return Profile(median, same, row_numbers=whole, sentinels=found)


def list_names(names: Names) -> tuple[str, ...]:
    """The names as a tuple, also if there is only one."""
    return (names,) if isinstance(names, str) else () if names is None else tuple(map(str, names))


def choose_roles(
    table: Table,
    *,
    sensitive_features: Names = (),
    features: Names = None,
    drop: Names = (),
    target: str | None = None,
    sample_weight: str | None = None,
    keep: Names = (),
    encode: bool = False,
    fitted: Roles | None = None,
    **missing: Any,
) -> tuple[Roles, dict[str, str]]:
    """The roles of the columns, and why the others have none.

    Without ``features`` all columns of numbers are features, and with ``encode`` text columns too,
    except for columns with another role, indexes, and columns named like an id. ``fitted`` holds
    the features of a model, if it knows them. ``missing`` are further fields of the roles.
    """
    groups, kept, dropped, named = map(list_names, (sensitive_features, keep, drop, features))
    others = [*groups, *kept, *filter(None, (target, sample_weight))]
    refuse_unknown([*others, *dropped, *named], [*table.columns], table.name)
    given: dict[str, Any] = {"groups": groups, "target": target, "keep": kept, **missing}
    given["weight"] = sample_weight
    if fitted is not None and fitted.features:
        refuse_unknown(fitted.features, [*table.columns], f"{table.name}, but the model needs it")
        roles = replace(fitted, **given)
        refuse_text(table, roles.numbers)
        return roles, {}
    if len(set(groups)) < len(groups) or len(set(named)) < len(named):
        raise TableError("unknown_column", "a column is named twice", "name each column once")
    if features is not None and not named:
        raise TableError("no_features", "features=[] leaves none", "name some, or leave it out")
    for name in named:
        if name in (*groups, target, sample_weight):
            fact = f"the column {name!r} is among the features and has another role"
            raise TableError("two_roles", fact, "leave it out of features")
    free = [c for c in table.columns.values() if not named and c.name not in (*others, *dropped)]
    reasons = {column.name: _reason(column, encode) for column in free}
    chosen = [*named, *(name for name, reason in reasons.items() if not reason)]
    left_out = dict.fromkeys(dropped, "asked") | {n: why for n, why in reasons.items() if why}
    texts = [name for name in chosen if encode and table.columns[name].kind == "text"]
    refuse_text(table, [name for name in chosen if name not in texts])
    weight = table.columns[sample_weight] if sample_weight else None
    if weight is not None and weight.kind != "number":
        fact = f"the weights of {table.name} are not numbers: {sample_weight!r} ({weight.kind})"
        raise TableError("weight", fact, "name another column")
    if not chosen and not table.figures(["count(*)"], [], 1)[0]:
        raise no_rows(table.name)
    if not chosen:
        why = ", ".join(f"{name!r} ({why})" for name, why in [*left_out.items()][:10])
        fact = f"{table.name} has no columns of numbers besides {first_names(others)} ({why})"
        raise TableError("no_features", fact, "pass encode=True to use text")
    roles = Roles(tuple(chosen), categories=_categories(table, texts), **given)
    refuse_twin_names(f"{table.name}, encoded,", roles.feature_names)
    return roles, left_out


def _reason(column: Column, encode: bool) -> str:
    """Why a column is not a feature by default; "" if it is one."""
    if not column.usual:
        return "index"
    if column.kind == "number" or (column.kind == "text" and (encode or column.mixed)):
        return "identifier" if is_identifier(column.name) else ""
    return column.kind


def refuse_text(table: Table, names: Iterable[str]) -> None:
    """Refuse columns that do not hold numbers."""
    for column in (table.columns[name] for name in names):
        if column.odd:
            raise table.odd_value(column.name, column.odd)
        if column.kind not in ("number", "empty"):
            fact = f"{table.name} has features that are not numbers: {column.name!r}"
            raise TableError("no_features", f"{fact} ({column.kind})", "drop or encode them")


def no_rows(name: str) -> TableError:
    """The error for a table without rows."""
    return TableError("no_rows", f"{name} has column names but no rows", "add rows")


def no_group(table: Table) -> TableError:
    """The error if no column of groups was named; it suggests columns of few values."""
    texts = [c for c in table.columns.values() if c.kind == "text" or c.name in ("sex", "race")]
    counts = [f"count(DISTINCT v{j})" for j in range(len(texts))]
    found = table.figures(counts, [c.label for c in texts], HEAD_ROWS) if texts else []
    few = [c.name for c, n in zip(texts, found, strict=True) if 2 <= n <= _FEW]
    hint = f" (columns of few values: {first_names(few)})" if few else ""
    fact = f"no column of {table.name} is named as the one that holds the groups{hint}"
    return TableError("no_group", fact, "pass its name as sensitive_features")


def _categories(table: Table, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The values of text columns."""
    listed = [f"list(DISTINCT v{j}) FILTER (v{j} IS NOT NULL)" for j in range(len(names))]
    found = table.figures(listed, [table.columns[name].label for name in names]) if names else []
    values = {name: sorted(own or ()) for name, own in zip(names, found, strict=True)}
    for name, known in values.items():
        if len(known) > _MOST_CATEGORIES:
            fact = f"column {name!r} of {table.name} has {len(known)} values, too many to encode"
            raise TableError("categories", fact, f"leave it out, drop=[{name!r}]", column=name)
    return values


def twin_labels(labels: Iterable[str]) -> list[tuple[str, ...]]:
    """Labels that differ only by case or blanks."""
    alike = defaultdict(list)
    for label in sorted(labels):
        alike[" ".join(label.casefold().split())].append(label)
    return [tuple(group) for group in alike.values() if len(group) > 1]
