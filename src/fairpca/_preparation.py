"""From the columns of a file to numbers and groups, with a record of every choice made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from fairpca.sources.tables import TableError, TableFile, unknown_column

Frame = nw.DataFrame[Any]

_MOST_CATEGORIES = 100
_MOST_GROUPS = 50


@dataclass(frozen=True)
class Choices:
    """What the user asked for; see the options of ``fairpca report``."""

    groups: Sequence[str]
    columns: Sequence[str] = ()
    drop: Sequence[str] = ()
    label: str | None = None
    encode: bool = False
    drop_missing: bool = False
    positive: str | None = None

    def split(self, known: Collection[str]) -> Choices:
        """With the names of a table's columns that were given with commas between them."""
        return replace(
            self, columns=split_names(self.columns, known), drop=split_names(self.drop, known)
        )


def split_names(values: Sequence[str], known: Collection[str]) -> list[str]:
    """Names with commas between them, except where the whole is the name of a column.

    Examples
    --------
    >>> split_names(["age, bmi", "income, yearly"], ["age", "bmi", "income, yearly"])
    ['age', 'bmi', 'income, yearly']
    """
    parts = [[value] if value in known else value.split(",") for value in values]
    names = [part if part in known else part.strip() for some in parts for part in some]
    return [name for name in names if name]


@dataclass(frozen=True)
class Features:
    """Which columns become features, and the values of those that are encoded.

    A plain column gives itself; an encoded one a feature ``column=value`` for each value.
    """

    columns: list[str]
    categories: dict[str, list[str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Names of the features, in order."""
        names: list[str] = []
        for column in self.columns:
            values = self.categories.get(column)
            names += [column] if values is None else [f"{column}={value}" for value in values]
        return names

    def frame(self, rows: Frame, where: str) -> Frame:
        """The features of some rows, all float64."""
        series = []
        for column in self.columns:
            if column not in self.categories:
                series.append(rows[column].cast(nw.Float64))
                continue
            text = rows[column].cast(nw.String)
            known = self.categories[column]
            strange = text.filter(~text.is_in(known))
            if len(strange):
                raise TableError(
                    f"column {column!r} of {where} holds {strange[0]!r}, which the model has not "
                    f"seen; it knows {known[:5]}."
                )
            series += [
                (text == value).cast(nw.Float64).alias(f"{column}={value}") for value in known
            ]
        return rows.select(*series)


@dataclass(frozen=True)
class Prepared:
    """Numbers and groups, and what became of the rest.

    Attributes
    ----------
    source : str
        Name of the file, or what the data are.
    frame : narwhals.DataFrame
        The features, all float64.
    groups : ndarray of str
    features : Features
    group_name : str
    not_numbers, constant : list of str
        Columns left out because they are not numbers, and features that do not vary.
    n_read, n_dropped : int
        Rows in the file, and rows dropped for missing values.
    """

    source: str
    frame: Frame
    groups: NDArray[Any]
    features: Features
    group_name: str
    not_numbers: list[str]
    constant: list[str]
    n_read: int
    n_dropped: int


def read_prepared(data: str | None, choices: Choices, encoding: str = "utf-8") -> Prepared:
    """The features and groups of a file, or of the bundled data."""
    if data is None:
        source, table = bundled_table()
        choices = replace(choices, groups=choices.groups or ["sex"])
    else:
        file = TableFile(data, encoding)
        source, table = file.name, file.read(as_text=choices.groups)
    if not choices.groups:
        raise missing_group(table, source)
    return prepare(table, choices, source)


def prepare(table: Any, choices: Choices, where: str) -> Prepared:
    """Choose, encode and check the columns of a table, and find the groups."""
    frame: Frame = nw.from_native(table, eager_only=True)
    choices = choices.split(frame.columns)
    named = [*choices.groups, *choices.columns, *choices.drop]
    for name in named if choices.label is None else [*named, choices.label]:
        if name not in frame.columns:
            raise unknown_column(name, frame.columns, where)
    aside = {*choices.groups, *choices.drop, choices.label}
    wanted = [name for name in (choices.columns or frame.columns) if name not in aside]
    others = [name for name in wanted if not _is_number(frame.schema[name])]
    if choices.columns and others and not choices.encode:
        raise TableError(
            f"column {others[0]!r} of {where} is not numeric; leave it out of --columns, or turn "
            "its values into columns with --encode."
        )
    kept = wanted if choices.encode else [name for name in wanted if name not in others]
    if not kept:
        raise TableError(
            f"{where} has no numeric columns besides {', '.join(map(repr, choices.groups))}; "
            "turn text into columns with --encode."
        )
    n_read = len(frame)
    frame = _without_missing(frame.select(*choices.groups, *kept), choices, where)
    features = Features(kept, _categories(frame, others if choices.encode else [], where))
    numbers = features.frame(frame, where)
    constant = [name for name in numbers.columns if numbers[name].min() == numbers[name].max()]
    if len(constant) == len(numbers.columns):
        raise TableError(f"no column of {where} varies, so there is nothing to analyse.")
    return Prepared(
        source=where,
        frame=numbers,
        groups=_groups(frame, choices, where),
        features=features,
        group_name=" & ".join(choices.groups),
        not_numbers=[] if choices.encode else others,
        constant=constant,
        n_read=n_read,
        n_dropped=n_read - len(frame),
    )


def bundled_table() -> tuple[str, Any]:
    """The data of a report that was given none: what to call them, and a table."""
    from fairpca.datasets import load_diabetes_by_sex

    diabetes = load_diabetes_by_sex(prepare=False)
    columns = dict(zip(diabetes.feature_names, diabetes.data.T.tolist(), strict=True))
    columns["sex"] = diabetes.sensitive_features.tolist()
    return "diabetes data (bundled)", nw.from_dict(columns, backend="pyarrow").to_native()


def missing_group(table: Any, where: str) -> TableError:
    """The error for a forgotten ``--group``, with the columns that could be meant."""
    frame: Frame = nw.from_native(table, eager_only=True).head(10_000)
    fitting = [
        repr(name) for name in frame.columns if 2 <= frame[name].drop_nulls().n_unique() <= 5
    ]
    hint = f"; columns of few values: {', '.join(fitting[:6])}" if fitting else ""
    return TableError(
        f"--group is missing: name the column of {where} that holds the groups{hint}."
    )


def missing_rows(values: nw.Series[Any]) -> NDArray[np.bool_]:
    """Where a column holds nothing, or NaN."""
    missing = values.is_null()
    if values.dtype.is_float():
        missing = missing | values.is_nan().fill_null(False)
    return np.asarray(missing.to_numpy(), dtype=bool)


def _is_number(kind: Any) -> bool:
    return bool(kind.is_numeric() or kind == nw.Boolean)


def _without_missing(frame: Frame, choices: Choices, where: str) -> Frame:
    missing = np.zeros(len(frame), bool)
    counts: Counter[str] = Counter()
    for name in frame.columns:
        here = missing_rows(frame[name])
        if here.any():
            counts[name] = int(here.sum())
            missing |= here
    if not counts:
        return frame
    if not choices.drop_missing:
        columns = ", ".join(f"{name!r} ({count})" for name, count in counts.most_common(3))
        raise TableError(
            f"{int(missing.sum())} of {len(frame)} rows of {where} have missing values, in "
            f"{columns}{' and others' if len(counts) > 3 else ''}; leave these rows out with "
            "--drop-missing, or the columns with --drop."
        )
    if missing.all():
        raise TableError(
            f"every row of {where} has a missing value; leave columns out with --drop."
        )
    return frame.filter((~missing).tolist())


def _categories(frame: Frame, columns: Sequence[str], where: str) -> dict[str, list[str]]:
    categories = {}
    for name in columns:
        values = sorted(frame[name].cast(nw.String).unique().to_list())
        if len(values) > _MOST_CATEGORIES:
            raise TableError(
                f"column {name!r} of {where} has {len(values)} different values, too many to "
                f"encode (at most {_MOST_CATEGORIES}); leave it out with --drop {name!r}."
            )
        categories[name] = values
    return categories


def _groups(frame: Frame, choices: Choices, where: str) -> NDArray[Any]:
    parts = [frame[name].cast(nw.String).to_list() for name in choices.groups]
    labels = [" & ".join(row) for row in zip(*parts, strict=True)]
    sizes = Counter(labels)
    if choices.positive is not None:
        if choices.positive not in sizes:
            raise TableError(
                f"--positive {choices.positive!r} is no value of "
                f"{' & '.join(choices.groups)!r} in {where}; {_listed(sizes)}."
            )
        labels = [
            label if label == choices.positive else f"not {choices.positive}" for label in labels
        ]
        sizes = Counter(labels)
    if len(sizes) == 1:
        raise TableError(
            f"all rows of {where} are in one group, {next(iter(sizes))!r}; choose another column "
            "with --group."
        )
    if len(sizes) > _MOST_GROUPS:
        first = sizes.most_common(1)[0][0]
        raise TableError(
            f"{' & '.join(choices.groups)!r} holds {len(sizes)} groups, more than {_MOST_GROUPS}; "
            f"{_listed(sizes)}. Compare one with the rest, for example --positive {first!r}."
        )
    return np.array(labels, dtype=object)


def _listed(sizes: Counter[str]) -> str:
    shown = ", ".join(f"{label!r} ({size})" for label, size in sizes.most_common(6))
    return f"it holds {shown}{', ...' if len(sizes) > 6 else ''}"
