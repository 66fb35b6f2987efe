"""From the columns of a file to numbers and groups, with a record of every choice made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pac
from numpy.typing import NDArray

from fairpca.sources.tables import TableError, unknown_column

_MOST_CATEGORIES = 100


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

    @property
    def types(self) -> dict[str, pa.DataType]:
        """How to read each column."""
        return {
            column: pa.string() if column in self.categories else pa.float64()
            for column in self.columns
        }

    def table(self, rows: pa.Table, where: str) -> pa.Table:
        """The features of some rows, all float64."""
        arrays = []
        for column in self.columns:
            values = rows[column]
            if column not in self.categories:
                arrays.append(values.cast(pa.float64(), safe=False))
                continue
            text = values.cast(pa.string())
            known = self.categories[column]
            strange = pac.unique(text.filter(pac.invert(pac.is_in(text, pa.array(known)))))
            if len(strange):
                raise TableError(
                    f"column {column!r} of {where} holds {strange[0].as_py()!r}, which the model "
                    f"has not seen; it knows {known[:5]}."
                )
            arrays += [pac.equal(text, value).cast(pa.float64()) for value in known]
        return pa.Table.from_arrays(arrays, names=self.names)


@dataclass(frozen=True)
class Prepared:
    """Numbers and groups, and what became of the rest.

    Attributes
    ----------
    table : pyarrow.Table
        The features, all float64.
    groups : ndarray of str
    features : Features
    group_name : str
    not_numbers, constant : list of str
        Columns left out because they are not numbers, and features that do not vary.
    n_read, n_dropped : int
        Rows in the file, and rows dropped for missing values.
    """

    table: pa.Table
    groups: NDArray[Any]
    features: Features
    group_name: str
    not_numbers: list[str]
    constant: list[str]
    n_read: int
    n_dropped: int


def prepare(table: pa.Table, choices: Choices, where: str) -> Prepared:
    """Choose, encode and check the columns of a table, and find the groups."""
    named = [*choices.groups, *choices.columns, *choices.drop]
    for name in named if choices.label is None else [*named, choices.label]:
        if name not in table.column_names:
            raise unknown_column(name, table.column_names, where)
    aside = {*choices.groups, *choices.drop, choices.label}
    wanted = [name for name in (choices.columns or table.column_names) if name not in aside]
    usable = [name for name in wanted if _is_number(table.schema.field(name).type)]
    others = [name for name in wanted if name not in usable]
    if choices.columns and others and not choices.encode:
        raise TableError(
            f"column {others[0]!r} of {where} is not numeric ({table.schema.field(others[0]).type})"
            "; leave it out of --columns, or turn its values into columns with --encode."
        )
    kept = wanted if choices.encode else usable
    if not kept:
        raise TableError(
            f"{where} has no numeric columns besides {', '.join(map(repr, choices.groups))}; "
            "turn text into columns with --encode."
        )
    n_read = table.num_rows
    table = _without_missing(table.select([*choices.groups, *kept]), choices, where)
    features = Features(kept, _categories(table, others if choices.encode else [], where))
    numbers = features.table(table, where)
    constant = [name for name in numbers.column_names if _is_constant(numbers[name])]
    if len(constant) == numbers.num_columns:
        raise TableError(f"no column of {where} varies, so there is nothing to analyse.")
    return Prepared(
        table=numbers,
        groups=_groups(table, choices, where),
        features=features,
        group_name=" & ".join(choices.groups),
        not_numbers=[] if choices.encode else others,
        constant=constant,
        n_read=n_read,
        n_dropped=n_read - table.num_rows,
    )


def bundled_table() -> tuple[str, pa.Table]:
    """The data of a report that was given none: what to call them, and a table."""
    from fairpca.datasets import load_diabetes_by_sex

    diabetes = load_diabetes_by_sex(prepare=False)
    columns = dict(zip(diabetes.feature_names, diabetes.data.T, strict=True))
    table = pa.table({**columns, "sex": diabetes.sensitive_features.tolist()})
    return "diabetes data (bundled)", table


def missing_group(table: pa.Table, where: str) -> TableError:
    """The error for a forgotten ``--group``, with the columns that could be meant."""
    fitting = [
        repr(name)
        for name in table.column_names
        if 2 <= len(table[name].slice(0, 10_000).drop_null().unique()) <= 5
    ]
    hint = f"; columns of few values: {', '.join(fitting[:6])}" if fitting else ""
    return TableError(
        f"--group is missing: name the column of {where} that holds the groups{hint}."
    )


def _is_number(kind: pa.DataType) -> bool:
    return any(
        is_kind(kind)
        for is_kind in (
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_boolean,
            pa.types.is_decimal,
        )
    )


def _without_missing(table: pa.Table, choices: Choices, where: str) -> pa.Table:
    missing = np.zeros(table.num_rows, bool)
    counts = {}
    for name in table.column_names:
        here = pac.is_null(table[name], nan_is_null=True).to_numpy()
        if here.any():
            counts[name] = int(here.sum())
            missing |= here
    if not counts:
        return table
    if not choices.drop_missing:
        worst = sorted(counts, key=lambda name: -counts[name])[:3]
        columns = ", ".join(f"{name!r} ({counts[name]})" for name in worst)
        raise TableError(
            f"{int(missing.sum())} of {table.num_rows} rows of {where} have missing values, in "
            f"{columns}{' and others' if len(counts) > 3 else ''}; leave these rows out with "
            "--drop-missing, or the columns with --drop."
        )
    if missing.all():
        raise TableError(
            f"every row of {where} has a missing value; leave columns out with --drop."
        )
    return table.filter(pa.array(~missing))


def _categories(table: pa.Table, columns: Sequence[str], where: str) -> dict[str, list[str]]:
    categories = {}
    for name in columns:
        values = sorted(pac.unique(table[name].cast(pa.string())).to_pylist())
        if len(values) > _MOST_CATEGORIES:
            raise TableError(
                f"column {name!r} of {where} has {len(values)} different values, too many to "
                f"encode (at most {_MOST_CATEGORIES}); leave it out with --drop {name!r}."
            )
        categories[name] = values
    return categories


def _is_constant(values: pa.ChunkedArray) -> bool:
    ends = pac.min_max(values).as_py()
    return bool(ends["min"] == ends["max"])


def _groups(table: pa.Table, choices: Choices, where: str) -> NDArray[Any]:
    parts = [table[name].cast(pa.string()).to_pylist() for name in choices.groups]
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
    if len(sizes) > 2:
        first = sizes.most_common(1)[0][0]
        raise TableError(
            f"{' & '.join(choices.groups)!r} holds {len(sizes)} groups and two are compared; "
            f"{_listed(sizes)}. Compare one with the rest, for example --positive {first!r}."
        )
    return np.array(labels, dtype=object)


def _listed(sizes: Counter[str]) -> str:
    shown = ", ".join(f"{label!r} ({size})" for label, size in sizes.most_common(6))
    return f"it holds {shown}{', ...' if len(sizes) > 6 else ''}"
