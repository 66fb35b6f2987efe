"""Which columns of a table are features, groups, weights or a target, and what is left out."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import nan
from typing import Any, NamedTuple

import numpy as np

from fairpca._typing import Array
from fairpca.cli.reader.files import first_names, is_number, refuse_twin_names, refuse_unknown
from fairpca.cli.reader.table import HEAD_ROWS, Column, Table, head_rows
from fairpca.exceptions import TableError

Names = str | Sequence[str] | None

_MANY = 50  # A column with more different values is not a scale of answers.
_ENOUGH_ROWS = 20  # With fewer rows, measurements are often all different.
_MOST_CATEGORIES = 100  # values of a text column to encode
_FEW = 5  # values of a coarse column
_PROFILED = 1 << 21  # most numbers in the sample behind profiles
_FAR = 3.0  # A value is far from others if it is this many times their range away.
#: What has an id of its own: people, and other things.
_PEOPLE = (
    "applicant child client customer employee individual member mother participant patient person "
    "pers resp respondent staff student subj subject teacher user voter worker"
)
_THINGS = (
    "account case device family hh household obs order product record sample school session "
    "transaction visit c e h n o p s t u"
)
#: Names that say what a column is; by their last word, or their last two.
_NAMES = {
    "identifier": "id ids uuid guid obs nr seqn ssn rowid rownames rowname idno idnum idnumber "
    "rownumber rownum rowno rowindex",
    "phone or postcode": "phone telephone fax zip zipcode postcode postalcode plz",
}
#: Names that say so only if they are all of it: a birth weight and a body mass index are features.
_WHOLE_NAMES = {
    "identifier": "index idx",
    "weights": "w wt wgt weight weights pweight fnlwgt perwt finalweight sampleweight "
    "samplingweight surveyweight psu strata stratum",
    "phone or postcode": "tel mobile",
}


def named_like(name: str) -> str:
    """What the name of a column says that it holds, if that is no measurement; "" if it does not.

    Examples
    --------
    >>> [named_like(name) for name in ("person_id", "personID", "hhid", "paid", "bmi", "Zip code")]
    ['identifier', 'identifier', 'identifier', '', '', 'phone or postcode']
    """
    parts = [part.lower() for part in re.split(r"[\W_]+", name) if part]
    two = "".join(parts[-2:])
    ends = {*parts[-1:], two, two.rstrip("s")}
    for what, names in _WHOLE_NAMES.items():
        if "".join(parts) in names.split():
            return what
    for what, names in _NAMES.items():
        if ends & {*names.split()}:
            return what
    camel = re.search(r"[a-z](ID|Id)$", name) or re.fullmatch(r"Unnamed: \d+", name)
    owners = f"{_PEOPLE} {_THINGS}".split()
    if camel or _owner(parts) in owners:
        return "identifier"
    return ""


def owner_of(name: str) -> bool:
    """Whether the name of an id says that it is a person's."""
    spaced = re.sub(r"(?<=[a-z])(?=I[Dd]$)", "_", name)
    parts = [part.lower() for part in re.split(r"[\W_]+", spaced) if part]
    return bool({_owner(parts), *parts}.intersection(_PEOPLE.split()))


def _owner(parts: Sequence[str]) -> str:
    """The word before id in the last part of a name, as in hhid."""
    found = re.fullmatch(r"(\w+?)ids?", "".join(parts[-1:]))
    if found:
        return found[1]
    return ""


@dataclass(frozen=True)
class Roles:
    """The use of each column of a table."""

    features: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()  # several columns are crossed
    weight: str | None = None
    target: str | None = None
    unit: str | None = None  # whose row each is
    keep: tuple[str, ...] = ()  # carried along in front of scores
    #: The text columns among the features, and their values. Two values become one feature of
    #: zeros and ones, ``column=value``; three or more become one feature each.
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fill: Mapping[str, float] = field(default_factory=dict)  # what stands in for missing values
    #: What becomes of rows that lack a feature: "error", "drop", "median" or "available". Rows that
    #: lack a label or a weight are refused, unless they are dropped.
    missing: str = "error"
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
            if column in self.categories:
                names += [f"{column}={v}" for v in indicated(self.categories[column])]
            else:
                names.append(column)
        return names

    @property
    def may_lack(self) -> frozenset[str]:
        """The columns whose missing values do no harm."""
        if self.missing == "available":
            return frozenset(self.features)
        return frozenset(self.fill)


def indicated(values: Sequence[Any]) -> Sequence[Any]:
    """The values of a text column that become features: one of two, or all."""
    if len(values) == 2:
        return values[1:]
    return values


class Sentinel(NamedTuple):
    """A number that may stand for a missing value: it is far from all others of its column."""

    column: str
    value: float
    n_rows: int
    next_value: float


class Profile(NamedTuple):
    """A summary of a column of numbers."""

    median: float = nan
    same: float = 0.0  # the share of values that equal the median; all if the column is constant
    names: str = ""  # what the numbers are if they measure nothing, such as "row numbers"
    fine: bool = False  # whether there are many different ones
    sentinels: Sequence[Sentinel] = ()


def profiles_of(table: Table, names: Sequence[str], whole: bool = True) -> dict[str, Profile]:
    """Profile columns of numbers, in all rows or in the first ones, within bounded memory.

    The smallest and largest numbers are exact. The rest comes from a sample: every row or, in large
    tables, every second, every fourth, and so on.
    """
    if not names:
        return {}
    sample = [np.empty((len(names), 0))]
    step = 1
    n_rows = 0
    counts = np.zeros(len(names))
    least, largest = np.full((2, len(names)), nan)
    for batch in table.batches(names, limit=None if whole else head_rows(len(names))):
        block = np.array([floats_of(column) for column in batch.columns], np.float64)
        least = np.fmin(least, np.fmin.reduce(block, axis=1))
        largest = np.fmax(largest, np.fmax.reduce(block, axis=1))
        counts += np.count_nonzero(~np.isnan(block), axis=1)
        sample.append(block[:, -n_rows % step :: step].copy())
        n_rows += batch.num_rows
        while n_rows // step * len(names) > _PROFILED:
            sample = [np.hstack(sample)[:, ::2].copy()]
            step *= 2
    columns = zip(names, np.hstack(sample), counts, least.tolist(), largest.tolist(), strict=True)
    return {name: _profile(name, column, step, *exact) for name, column, *exact in columns}


def floats_of(column: Any) -> Any:
    """Arrow numbers or booleans as floats; nulls become NaN."""
    if str(column.type) not in ("double", "float"):
        column = column.cast("float64", safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _profile(
    name: str, column: Array, step: int, count: int, least: float, largest: float
) -> Profile:
    known = np.sort(column[~np.isnan(column)])
    if len(known) == 0:
        return Profile()
    median = float(np.median(known))
    if not np.isfinite(largest - least):
        return Profile(median)
    spread = np.subtract(*np.quantile(known, [0.75, 0.25]))
    distinct = np.unique(np.append(known, [least, largest]))
    found = []
    for values in (distinct, distinct[::-1]):  # codes may stand at either end, up to three of them
        if len(values) <= _FEW:
            break
        n_codes = 0
        end = values[max(4, len(values) - 4)]
        for n, (value, following) in enumerate(pairwise(values[:4].tolist()), start=1):
            far = abs(value - following) > _FAR * abs(following - end)
            if far and abs(value - median) > _FAR * spread:
                n_codes = n
        for value in values[:n_codes].tolist():
            n_alike = int((known == value).sum())
            is_code = re.fullmatch(r"-?([6-9])\1+(\.\d+)?", f"{value:.12g}") is not None
            if is_code or n_alike > 1:
                following = float(values[n_codes])
                found.append(Sentinel(name, value, max(1, step * n_alike), following))
    same = float(least == largest or min((known == median).mean(), 1 - 1 / len(known)))
    fine = len(distinct) > _MANY
    return Profile(median, same, _what_it_names(known, distinct, count), fine, found)


def _what_it_names(known: Array, distinct: Array, count: int) -> str:
    """What numbers in ascending order are, if they are whole and measure nothing."""
    if len(known) < _ENOUGH_ROWS or (known % 1 != 0).any():
        return ""
    if distinct[-1] - distinct[0] == count - 1 and (np.diff(known) >= 1).all():
        return "row numbers"  # without a gap or a repetition, in any order
    month = distinct // 100 % 100
    day = distinct % 100
    dated = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    century = (distinct > 1800_00_00) & (distinct < 2200_00_00)
    if len(distinct) > 1 and (dated & century).all():
        return "date"
    return ""


def list_names(names: Names) -> tuple[str, ...]:
    """The names as a tuple, also if there is only one."""
    if isinstance(names, str):
        return (names,)
    if names is None:
        return ()
    return tuple(map(str, names))


def choose_roles(
    table: Table,
    *,
    sensitive_features: Names = (),
    features: Names = None,
    drop: Names = (),
    target: str | None = None,
    sample_weight: str | None = None,
    unit: str | None = None,
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
    others = [*groups, *kept, *filter(None, (target, sample_weight, unit))]
    refuse_unknown([*others, *dropped, *named], [*table.columns], table.name)
    given: dict[str, Any] = {
        "groups": groups,
        "weight": sample_weight,
        "target": target,
        "keep": kept,
        "unit": unit,
        **missing,
    }
    if fitted is not None and fitted.features:
        refuse_unknown(fitted.features, [*table.columns], f"{table.name}, but the model needs it")
        roles = replace(fitted, **given)
        refuse_text(table, roles.numbers)
        return roles, {}
    uses = Counter([*named, *groups, *({target, sample_weight} - {*groups})])
    if unit in (*named, *groups):
        uses[unit] += 1
    if twice := [name for name, times in uses.items() if times > 1]:
        fact = f"the column {twice[0]!r} is named twice"
        raise TableError("two_roles", fact, "give it one role, or leave it out of features")
    if features is not None and not named:
        raise TableError("no_features", "features=[] leaves none", "name some, or leave it out")
    free = [c for c in table.columns.values() if not named and c.name not in (*others, *dropped)]
    reasons = {column.name: _reason(column, encode) for column in free}
    chosen = [*named, *(name for name, reason in reasons.items() if not reason)]
    left_out = dict.fromkeys(dropped, "asked") | {n: why for n, why in reasons.items() if why}
    blank = [name for name, why in left_out.items() if why == "empty"]
    for name, late in _labels_in(table, blank).items():  # the first rows tell not enough
        if {value.strip() for value in late}.difference(table.missing):
            fact = f"{name!r} is blank in the first rows of {table.name}, but not later"
            raise TableError("categories", fact, f"leave it out, drop=[{name!r}]", column=name)
    texts = [name for name in chosen if encode and table.columns[name].kind == "text"]
    numbers = [name for name in chosen if name not in texts]
    refuse_text(table, [*numbers, *filter(None, [sample_weight])])
    if not chosen and all(column.kind == "empty" for column in table.columns.values()):
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
        return named_like(column.name) or ("code" if column.padded else "")
    return column.kind


def refuse_text(table: Table, names: Iterable[str]) -> None:
    """Refuse columns that do not hold numbers."""
    for column in (table.columns[name] for name in names):
        if column.odd and (error := table.odd_value([column.name])):
            raise error
        if column.kind not in ("number", "empty"):
            fact = f"{table.name} has columns that are not numbers: {column.name!r} ({column.kind})"
            raise TableError("no_features", fact, "drop or encode them, or name others")


def no_rows(where: str, n_dropped: int = 0) -> TableError:
    """The error for a table without rows."""
    fact = f"there are no rows of positive weight to learn from in {where}"
    advice = f"pass complete rows ({n_dropped} were dropped because of missing values)"
    return TableError("no_rows", fact, advice)


def no_group(table: Table) -> TableError:
    """The error if no column of groups was named; it suggests columns of few values."""
    texts = [c for c in table.columns.values() if c.kind == "text" or c.name in ("sex", "race")]
    labels = _labels_in(table, [column.name for column in texts], HEAD_ROWS)
    few = [name for name, values in labels.items() if 2 <= len(values) <= _FEW]
    fact = f"nothing says which column of {table.name} holds the groups"
    if few:
        fact += f" (columns of few values: {first_names(few)})"
    return TableError("no_group", fact, "pass its name as sensitive_features")


def _categories(table: Table, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The values of text columns."""
    values = _labels_in(table, names)
    for name, known in values.items():
        if len(known) > _MOST_CATEGORIES:
            fact = f"column {name!r} of {table.name} has {len(known)} values, too many to encode"
            raise TableError("categories", fact, f"leave it out, drop=[{name!r}]", column=name)
    return {name: sorted(known) for name, known in values.items()}


def _labels_in(table: Table, names: Sequence[str], limit: int | None = None) -> dict[str, set[str]]:
    """The labels of each column, in all rows or in the first ones."""
    found: dict[str, set[str]] = {name: set() for name in names}
    if not names:
        return found
    for batch in table.batches(labels=names, limit=limit):
        for labels, column in zip(found.values(), batch.columns, strict=True):
            labels.update(column.drop_null().unique().to_pylist())
    return found


def twin_labels(labels: Iterable[str]) -> list[tuple[str, ...]]:
    """Labels that differ only by case or blanks."""
    alike = defaultdict(list)
    for label in sorted(labels):
        folded = " ".join(label.casefold().split())
        if is_number(folded):
            folded = f"{float(folded):g}"
        alike[folded].append(label)
    return [tuple(group) for group in alike.values() if len(group) > 1]
