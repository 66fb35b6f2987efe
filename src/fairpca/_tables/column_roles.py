"""Which columns of a table are features, groups, weights or a target, and what is left out."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import Any, NamedTuple

from fairpca._tables.files import TableError, first_names, unknown_column
from fairpca._tables.read import Column, Table

Names = str | Sequence[str] | None

_ENOUGH_ROWS = 20  # with fewer, measurements are often all different
_MOST_GROUPS, _MOST_CATEGORIES, _FEW = 50, 100, 5
_HEAD_ROWS, _AT_A_TIME = 20_000, 200
_FAR = 3.0  # times the range of all other values
_SAME = 0.99  # of the rows
_IDENTIFIER = re.compile(
    r"(.*[\W_])?(id|ids|uuid|guid|rowid|rownames?|row[\W_]?(number|num|no|id|name)s?)"
    r"|(row[\W_])?(index|idx)|Unnamed: \d+|seqn|ssn",
    re.IGNORECASE,
)
_CAMEL = re.compile(r".*[a-z](ID|Id)")
#: What has ids, in names without a separator. A list, because many words end in id: paid, humid.
_JOINED = re.compile(
    r"(.*[\W_])?([cehnopstu]|account|applicant|case|child|client|customer|device|employee|family"
    r"|hh|household|individual|member|mother|obs|order|participant|patient|person|pers|product"
    r"|record|resp|respondent|sample|school|session|staff|student|subj|subject|teacher|transaction"
    r"|user|visit|worker)ids?",
    re.IGNORECASE,
)


def is_identifier(name: str) -> bool:
    """Whether a column of this name numbers or names the rows.

    Examples
    --------
    >>> [is_identifier(name) for name in ("person_id", "rownames", "PersonID", "caseid", "age")]
    [True, True, True, True, False]
    >>> [is_identifier(name) for name in ("bid", "paid", "body_mass_index")]
    [False, False, False]
    """
    return any(pattern.fullmatch(name) for pattern in (_IDENTIFIER, _CAMEL, _JOINED))


@dataclass(frozen=True)
class Roles:
    """What each column of a table is used for.

    Attributes
    ----------
    features, groups, keep : tuple of str
        Columns that become features, that name the groups (several are crossed), and that are
        carried along.
    weight, target : str or None
    categories : mapping of str to sequence of str
        The text columns among the features, and their values. Two values become one feature of
        zeros and ones, ``column=value``, more become one each.
    fill : mapping of str to float
        What stands in for missing values of these columns.
    drop_missing : bool
        Whether rows with missing values are left out; otherwise they are refused.
    missing_group : str or None
        The group of rows without one.
    """

    features: tuple[str, ...]
    groups: tuple[str, ...] = ()
    weight: str | None = None
    target: str | None = None
    keep: tuple[str, ...] = ()
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fill: Mapping[str, float] = field(default_factory=dict)
    drop_missing: bool = False
    missing_group: str | None = None

    @property
    def labels(self) -> list[str]:
        """The columns that are read as labels."""
        return list(dict.fromkeys([*self.categories, *self.groups, *filter(None, [self.target])]))

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
            names += [column] if values is None else [f"{column}={v}" for v in _indicated(values)]
        return names

    def sql(self, table: Table) -> list[str]:
        """The SQL that reads numbers, labels and columns carried along, in this order."""
        read = table.columns
        return [
            *(read[name].number for name in self.numbers),
            *(_text_of(read[name], name in self.categories) for name in self.labels),
            *(read[name].number if name in self.numbers else read[name].raw for name in self.keep),
        ]


def known_number(column: Column) -> str:
    """SQL for a number, null in place of NaN."""
    return f"CASE WHEN isnan({column.number}) THEN NULL ELSE {column.number} END"


def _indicated(values: Sequence[str]) -> Sequence[str]:
    return values[1:] if len(values) == 2 else values


def _text_of(column: Column, as_text: bool) -> str:
    return f"CAST({column.label} AS VARCHAR)" if as_text else column.label


@dataclass(frozen=True)
class FittedColumns:
    """What a model knows of the columns it was fitted to; see :class:`Roles`."""

    columns: Sequence[str] = ()
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fill: Mapping[str, float] = field(default_factory=dict)
    groups: Sequence[str] = ()
    model: str = ""


class ColumnProfile(NamedTuple):
    """What a column holds.

    ``spread`` is the range of the middle half of its numbers, and ``same`` says whether 99 % of
    them are equal.
    """

    kind: str
    n_missing: int
    n_distinct: int
    least: Any
    median: float | None
    largest: Any
    spread: float = nan
    same: bool = False


class Profile(NamedTuple):
    """What the columns of a table hold, in all rows or in the first ones."""

    n_rows: int
    columns: dict[str, ColumnProfile]
    whole: bool


class Sentinel(NamedTuple):
    """A number that may stand for a missing value: it is far from all others of its column."""

    column: str
    value: float
    n_rows: int
    next_value: float


def profile_of(table: Table, names: Iterable[str], whole: bool = True) -> Profile:
    """Missing and distinct values, least, median and largest of some columns, in one query.

    Medians and numbers of distinct values are approximate in large tables.
    """
    columns = [table.columns[name] for name in names]
    exact = not whole or table.is_small()
    quantiles = (
        f"{'quantile_cont' if exact else 'approx_quantile'}({{v}}, [0.005, 0.25, 0.5, 0.75, 0.995])"
    )
    text = ["count({v})", "count(DISTINCT {v})", "min({v})", "max({v})", "NULL"]
    number = ["count({v})", "approx_count_distinct({v})", "min({v})", "max({v})", quantiles]
    asked = [number if c.kind == "number" else text for c in columns]
    n_rows, *figures = _aggregates(table, columns, asked, whole)
    found = {}
    for column, (known, n_distinct, least, largest, of) in zip(columns, figures, strict=True):
        low, quarter, median, upper, high = of or (nan, nan, nan, nan, None)
        found[column.name] = ColumnProfile(
            column.kind,
            n_rows - known,
            n_distinct,
            least,
            None if of is None else median,
            largest,
            upper - quarter,
            low == high,
        )
    return Profile(n_rows, found, whole)


def _aggregates(
    table: Table, columns: Sequence[Column], asked: Sequence[Sequence[str]], whole: bool
) -> list[Any]:
    """The number of rows, and some aggregates of each column, in which {v} stands for its value."""
    answers: list[Any] = [0]
    for start in range(0, max(1, len(columns)), _AT_A_TIME):  # each takes DuckDB a megabyte or more
        some, questions = columns[start : start + _AT_A_TIME], asked[start : start + _AT_A_TIME]
        values = [known_number(c) if c.kind == "number" else _text_of(c, True) for c in some]
        sql = [s.format(v=f"v{j}") for j, aggregates in enumerate(questions) for s in aggregates]
        answers[0], *flat = table.figures(["count(*)", *sql], values, None if whole else _HEAD_ROWS)
        rest = iter(flat)
        answers += [[next(rest) for _ in aggregates] for aggregates in questions]
    return answers


class Findings(NamedTuple):
    """What is suspicious about columns of numbers."""

    row_numbers: list[str]
    sentinels: list[Sentinel]
    near_constant: dict[str, int]


def look_closer(table: Table, profile: Profile) -> Findings:
    """Row numbers, values that may mean a missing one, and columns of nearly one value.

    Only columns whose profile is suspicious are read again.
    """
    asked = {name: _questions(p, profile.n_rows) for name, p in profile.columns.items()}
    asked = {name: questions for name, questions in asked.items() if set(questions) != {"NULL"}}
    found = Findings([], [], {})
    columns = [table.columns[name] for name in asked]
    answers = _aggregates(table, columns, [*asked.values()], profile.whole)[1:] if asked else []
    for name, (is_sequence, n_others, *ends) in zip(asked, answers, strict=True):
        p = profile.columns[name]
        if is_sequence:
            found.row_numbers.append(name)
        if n_others is not None and n_others <= (1 - _SAME) * profile.n_rows:
            found.near_constant[name] = n_others
        for value, n, beside in ((p.least, *ends[:2]), (p.largest, *ends[2:])):
            if n and beside is not None:
                others = p.largest - beside if value == p.least else beside - p.least
                is_code = re.fullmatch(r"-?([6-9])\1+(\.\d+)?", f"{value:.12g}") is not None
                if abs(value - beside) > _FAR * others and (is_code or n > 1):
                    found.sentinels.append(Sentinel(name, value, n, beside))
    return found


def _questions(p: ColumnProfile, n_rows: int) -> list[str]:
    """SQL: is it a sequence, rows unlike the median, rows at either end and the value beside."""
    if p.median is None or not isfinite(p.largest - p.least):
        return ["NULL"] * 6
    n_known, sequence, others = n_rows - p.n_missing, "NULL", "NULL"
    if n_known >= _ENOUGH_ROWS and p.largest - p.least + 1 == n_known:
        sequence = "count(DISTINCT {v}) = count({v}) AND bool_and({v} = floor({v}))"
    if p.same and p.least < p.largest:
        others = f"count({{v}}) FILTER ({{v}} <> {p.median!r})"
    ends = []
    for end, beside in (
        (p.least, "min({{v}}) FILTER ({{v}} > {})"),
        (p.largest, "max({{v}}) FILTER ({{v}} < {})"),
    ):
        far = p.n_distinct > _FEW and abs(end - p.median) > _FAR * p.spread
        ends += (
            [f"count({{v}}) FILTER ({{v}} = {end!r})", beside.format(repr(end))]
            if far
            else ["NULL"] * 2
        )
    return [sequence, others, *ends]


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
) -> tuple[Roles, dict[str, str]]:
    """The roles of the columns, and why the others have none.

    Without ``features`` all columns of numbers are features, with ``encode`` also those of text,
    except for those that have another role, an index, or a name like that of an id.
    """
    groups, kept, dropped = map(list_names, (sensitive_features, keep, drop))
    named = list_names(features)
    others = [*groups, *kept, *filter(None, (target, sample_weight))]
    refuse_unknown(table, [*others, *dropped, *named])
    if len(set(groups)) < len(groups) or len(set(named)) < len(named):
        raise TableError("unknown_column", "a column is named twice", "name each column once")
    if features is not None and not named:
        raise TableError("no_features", "features=[] leaves none", "name some, or leave it out")
    both = [name for name in named if name in (*groups, target, sample_weight)]
    if both:
        fact = f"the column {both[0]!r} is among the features and has another role"
        raise TableError("no_features", fact, "leave it out of features", column=both[0])
    left_out = dict.fromkeys(dropped, "asked")
    chosen, texts = [], []
    for name in named or [name for name in table.columns if name not in (*others, *dropped)]:
        column, reason = table.columns[name], ""
        if not named:
            reason = _reason(column, encode)
        if reason:
            left_out[name] = reason
            continue
        if column.kind == "text" and encode:
            texts.append(name)
        elif table.is_text and column.kind in ("text", "date"):
            raise table.odd_value(name, column.odd[1] if column.odd else table.first_text(name))
        elif column.kind not in ("number", "empty"):
            fact = f"{table.name} has features that are not numbers: {name!r} ({column.kind})"
            raise TableError("no_features", fact, "drop or encode them", column=name)
        chosen.append(name)
    weight = table.columns[sample_weight] if sample_weight else None
    if weight is not None and weight.kind != "number":
        fact = f"the weights of {table.name} are not numbers: {sample_weight!r} ({weight.kind})"
        raise TableError("weight", fact, "name another column", column=sample_weight)
    if not chosen and not table.figures(["count(*)"], [], 1)[0]:
        raise TableError("no_rows", f"{table.name} has column names but no rows", "add rows")
    if not chosen:
        reasons = ", ".join(f"{name!r} ({why})" for name, why in [*left_out.items()][:10])
        fact = f"{table.name} has no columns of numbers besides {first_names(others)} ({reasons})"
        raise TableError("no_features", fact, "pass encode=True to use text", left_out=left_out)
    roles = Roles(tuple(chosen), groups, sample_weight, target, kept)
    return replace(roles, categories=dict.fromkeys(texts, ())), left_out


def _reason(column: Column, encode: bool) -> str:
    """Why a column that nobody named is no feature; "" if it is one."""
    if not column.usual:
        return "index"
    if column.kind == "number":
        return "identifier" if is_identifier(column.name) else ""
    if column.kind == "text" and (encode or column.odd is not None):
        return "identifier" if is_identifier(column.name) else ""
    return column.kind


def refuse_unknown(table: Table, names: Iterable[str]) -> None:
    """Refuse names of columns that a table does not have."""
    for name in names:
        if name not in table.columns:
            raise unknown_column(name, [*table.columns], table.name)


def no_group(table: Table) -> TableError:
    """The error for a table whose group column nobody named, with those that could be meant."""
    texts = [
        c for c in table.columns.values() if c.kind == "text" or c.name.lower() in ("sex", "race")
    ]
    asked = [["count(DISTINCT {v})"] for _ in texts]
    counts = _aggregates(table, texts, asked, whole=False)[1:] if texts else []
    few = [c.name for c, (n,) in zip(texts, counts, strict=True) if 2 <= n <= _FEW]
    fact = f"no column of {table.name} is named as the one that holds the groups"
    advice = "pass its name as sensitive_features"
    advice += f"; columns of few values: {first_names(few)}" if few else ""
    return TableError("no_group", fact, advice, columns=few)


def refuse_continuous(roles: Roles, profile: Profile) -> None:
    """Refuse group columns of very many values, which look continuous."""
    for name in roles.groups:
        p = profile.columns[name]
        if p.n_distinct > _MOST_GROUPS:
            number = p.kind == "number"
            fact = (
                f"{name!r} holds {p.n_distinct} different values, from {p.least!r} to {p.largest!r}"
            )
            advice = (
                "make bands of it in a query, for example SELECT *, floor(age / 10) * 10 AS band"
            )
            facts = {"column": name, "n": p.n_distinct, "continuous": number}
            raise TableError("many_groups", fact, advice, least=p.least, largest=p.largest, **facts)


def with_categories(table: Table, roles: Roles) -> Roles:
    """The roles with the values of their text columns."""
    if not roles.categories:
        return roles
    columns = [table.columns[name] for name in roles.categories]
    asked = [[f"list_sort(list_slice(list(DISTINCT {{v}}), 1, {_MOST_CATEGORIES + 1}))"]] * len(
        columns
    )
    values = [list(found or ()) for (found,) in _aggregates(table, columns, asked, True)[1:]]
    for name, found in zip(roles.categories, values, strict=True):
        if len(found) > _MOST_CATEGORIES:
            fact = f"column {name!r} of {table.name} has more than {_MOST_CATEGORIES} values"
            advice = f"leave it out, drop=[{name!r}]"
            raise TableError("categories", f"{fact}, too many to encode", advice, column=name)
    roles = replace(roles, categories=dict(zip(roles.categories, values, strict=True)))
    twice = {name for name in roles.feature_names if roles.feature_names.count(name) > 1}
    if twice:
        fact = f"encoding {table.name} makes two columns named {min(twice)!r}"
        raise TableError("twin_columns", fact, "rename or drop one", column=min(twice))
    return roles


def twin_labels(labels: Iterable[str]) -> list[tuple[str, ...]]:
    """Labels that differ by upper case or blanks only.

    Examples
    --------
    >>> twin_labels(["female", " FEMALE", "male"])
    [(' FEMALE', 'female')]
    """
    alike = defaultdict(list)
    for label in sorted(labels):
        alike[" ".join(label.casefold().split())].append(label)
    return [tuple(group) for group in alike.values() if len(group) > 1]
