"""From the columns of files to features, groups and moments, with a record of every choice made.

Files are streamed, so memory does not grow with their rows: once, and once before to find the
values of text columns that are encoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from fairpca._input.crossing import cell_text, name_cells
from fairpca._moments.group_moments import GroupMoments, decoded_moments
from fairpca._progress import Progress, silent
from fairpca._tables.decode import Block
from fairpca._tables.roles import Layout, unknown_column
from fairpca._tables.table import (
    FileTable,
    as_table,
    is_empty,
    is_label,
    is_number,
    spooled_table,
)

_MOST_CATEGORIES = 100
_MOST_GROUPS = 50
MOST_BYTES_IN_MEMORY = 200_000_000


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
class Prepared:
    """The moments of the groups of some files, and what became of the rest.

    Attributes
    ----------
    table : FileTable
    layout : Layout
        Which columns became features and groups.
    moments : GroupMoments
    not_numbers, constant : list of str
        Columns left out because they are not numbers, and features that do not vary.
    n_dropped : int
        Rows dropped for missing values.
    before : dict of (str, int) to dict of str to int
        For each block, by its file and the number of its first row there: how many rows of each
        group came before it.
    X, groups : pyarrow.Table, ndarray of str or None
        All rows, where they were asked for and are not too many.
    """

    table: FileTable
    layout: Layout
    moments: GroupMoments
    not_numbers: list[str]
    constant: list[str]
    n_dropped: int
    before: dict[tuple[str, int], dict[str, int]]
    X: Any
    groups: NDArray[Any] | None

    @property
    def source(self) -> str:
        """Name of the file, or what the data are."""
        return self.table.name

    @property
    def group_name(self) -> str:
        """The columns that name the groups."""
        return " & ".join(self.layout.groups)

    @property
    def n_read(self) -> int:
        """Rows in the files."""
        return int(self.moments.counts.sum()) + self.n_dropped

    @property
    def streamed(self) -> bool:
        """Whether the rows were not kept in memory."""
        return self.X is None


def prepare(
    data: Any,
    choices: Choices,
    encoding: str = "utf-8",
    rows_up_to: float = 0,
    progress: Progress = silent,
) -> Prepared:
    """Choose, encode and check the columns of files, and sum up their groups.

    Parameters
    ----------
    data : path, list of paths or None
        None is the bundled data.
    choices : Choices
    encoding : str
        Of text files.
    rows_up_to : float
        Keep the rows too, while they take no more than so many bytes.
    progress : Progress

    Returns
    -------
    Prepared
    """
    if data is None:
        choices = replace(choices, groups=choices.groups or ["sex"])
    table = FileTable(_bundled() if data is None else data, encoding=encoding)
    choices = choices.split(table.types)
    layout, not_numbers = _chosen(table, choices)
    if layout.categories:
        layout = _with_categories(table, layout, progress)
        _refuse_same_names(layout, table.name)
    reading = _Reading(table, layout, choices, rows_up_to)
    reading.run(progress)
    moments = reading.result()
    constant = np.array(layout.feature_names)[~moments.varying].tolist()
    if len(constant) == moments.n_features:
        raise ValueError(f"no column of {table.name} varies, so there is nothing to analyse.")
    X, groups = reading.rows()
    return Prepared(
        table,
        layout,
        moments,
        not_numbers,
        constant,
        moments.n_dropped,
        reading.before,
        X,
        groups,
    )


class _Reading:
    """One pass over the rows: moments, missing values, and the rows themselves while few."""

    def __init__(
        self, table: FileTable, layout: Layout, choices: Choices, rows_up_to: float
    ) -> None:
        self.table, self.layout, self.choices = table, layout, choices
        self._room = rows_up_to
        self._blocks: list[Block] | None = [] if rows_up_to else None
        self._moments, self._missing = GroupMoments(), Counter[str]()
        self.before: dict[tuple[str, int], dict[str, int]] = {}

    def run(self, progress: Progress) -> None:
        """Read all rows."""
        report = partial(progress, "reading")
        for part, block in self.table.map(self.layout, self._summed_up, True, report):
            so_far = zip(self._moments.groups.tolist(), self._moments.counts.tolist(), strict=True)
            place = block.origin.name, block.origin.first_row
            self.before[place] = {cell_text(label): n for label, n in so_far}
            self._moments._absorb(part)
            self._refuse_many(self._moments.groups.tolist())
            self._missing += block.missing
            if self._blocks is not None:
                self._room -= 8 * block.rows.n_rows * block.rows.n_features
                self._blocks.append(block)
                if self._room < 0:
                    self._blocks = None

    def _summed_up(self, block: Block) -> tuple[GroupMoments, Block]:
        assert block.groups is not None
        present = np.unique(block.groups.codes)[: _MOST_GROUPS + 1].tolist()
        self._refuse_many({block.groups.labels[code] for code in present})
        return decoded_moments(block), block

    def result(self) -> GroupMoments:
        """The moments of the named groups, once they are known to be of use."""
        where, columns, moments = self.table.name, self.layout.groups, self._moments
        n_rows = int(moments.counts.sum()) + moments.n_dropped
        if n_rows == 0:
            raise _no_rows(self.table)
        if self._missing and not self.choices.drop_missing:
            _refuse_missing(where, self._missing, moments.n_dropped, n_rows)
        if moments.n_dropped == n_rows:
            raise ValueError(
                f"every row of {where} has a missing value; leave columns out with --drop."
            )
        named = moments._name_intersections(columns)
        positive = self.choices.positive
        if positive is not None and positive not in named.groups:
            raise ValueError(
                f"--positive {positive!r} is no value of {' & '.join(columns)!r} in {where}; it "
                f"holds {_first_labels(self.table, columns)}."
            )
        if len(named.groups) == 1:
            raise ValueError(
                f"all rows of {where} are in one group, {named.groups.tolist()[0]!r}; choose "
                "another column with --group."
            )
        return named

    def rows(self) -> tuple[Any, NDArray[Any] | None]:
        """All rows and their groups, if they were kept."""
        if self._blocks is None:
            return None, None
        blocks = [block for block in self._blocks if block.rows.n_rows]
        parts = zip(*(block.rows.columns for block in blocks), strict=True)
        columns = [np.concatenate(part) for part in parts]
        X = as_table(dict(zip(self.layout.feature_names, columns, strict=True)))
        cells = self._moments.groups.tolist()
        names = dict(zip(cells, name_cells(cells, self.layout.groups), strict=True))
        coded = [block.groups for block in blocks if block.groups is not None]
        labels = [np.array([names.get(v) for v in g.labels], object)[g.codes] for g in coded]
        return X, np.concatenate(labels)

    def _refuse_many(self, labels: Collection[Any]) -> None:
        if len(labels) > _MOST_GROUPS:
            raise ValueError(
                f"{' & '.join(self.layout.groups)!r} holds more than {_MOST_GROUPS} groups, such "
                f"as {_first_labels(self.table, self.layout.groups)}; compare one with the rest, "
                f"for example --positive {min(map(cell_text, labels))!r}."
            )


def _chosen(table: FileTable, choices: Choices) -> tuple[Layout, list[str]]:
    """The layout that was asked for, and the columns left out because they are not numbers."""
    where, types = table.name, table.types
    named = [*choices.groups, *choices.columns, *choices.drop]
    for name in named if choices.label is None else [*named, choices.label]:
        if name not in types:
            raise unknown_column(name, list(types), where)
    if not choices.groups:
        raise _missing_group(table)
    if len(set(choices.groups)) < len(choices.groups):
        raise ValueError(f"--group names a column twice: {', '.join(choices.groups)}.")
    for name in choices.groups:
        if not (is_label(types[name]) or is_empty(types[name])):
            raise ValueError(f"column {name!r} of {where} ({types[name]}) cannot name groups.")
    aside = {*choices.groups, *choices.drop, choices.label}
    asked = dict.fromkeys(choices.columns or table.default_columns)
    wanted = [name for name in asked if name not in aside]
    numbers = [name for name in wanted if is_number(types[name]) and not is_empty(types[name])]
    others = [name for name in wanted if name not in numbers]
    text = [name for name in others if choices.encode and is_label(types[name])]
    left_out = [name for name in others if name not in text]
    table.refuse_almost_numbers(left_out)
    if choices.columns and left_out:
        raise ValueError(
            f"column {left_out[0]!r} of {where} is not numeric; leave it out of --columns, or turn "
            "its values into columns with --encode."
        )
    kept = tuple(name for name in wanted if name not in left_out)
    if not kept and table.head().num_rows == 0:
        raise _no_rows(table)
    if not kept:
        raise ValueError(
            f"{where} has no numeric columns besides {', '.join(map(repr, choices.groups))}; "
            "turn text into columns with --encode."
        )
    layout = Layout(
        kept,
        tuple(choices.groups),
        categories=dict.fromkeys(text, ()),
        text_groups=True,
        positive=choices.positive,
    )
    return layout, left_out


def _with_categories(table: FileTable, layout: Layout, progress: Progress) -> Layout:
    """The layout with the values of its text columns, in rows without missing ones."""

    def values(block: Block) -> dict[str, set[str]]:
        coded = {name: block.labels[name] for name in layout.categories}
        return {name: {g.labels[c] for c in np.unique(g.codes)} for name, g in coded.items()}

    seen: dict[str, set[str]] = {name: set() for name in layout.categories}
    report = partial(progress, "reading the values of text columns")
    for found in table.map(layout, values, True, report):
        for name, more in found.items():
            seen[name] |= more
            if len(seen[name]) > _MOST_CATEGORIES:
                raise ValueError(
                    f"column {name!r} of {table.name} has more than {_MOST_CATEGORIES} different "
                    f"values, too many to encode; leave it out with --drop {name!r}."
                )
    return replace(layout, categories={name: sorted(found) for name, found in seen.items()})


def _refuse_same_names(layout: Layout, where: str) -> None:
    twice = [name for name, count in Counter(layout.feature_names).items() if count > 1]
    if twice:
        raise ValueError(
            f"encoding {where} makes two columns named {twice[0]!r}; rename one, or leave one out "
            "with --drop."
        )


def _bundled() -> Any:
    from fairpca.datasets import load_diabetes_by_sex

    diabetes = load_diabetes_by_sex(prepare=False)
    columns = dict(zip(diabetes.feature_names, diabetes.data.T.copy(), strict=True))
    return spooled_table("diabetes data (bundled)", columns | {"sex": diabetes.sensitive_features})


def _missing_group(table: FileTable) -> ValueError:
    """The error for a forgotten ``--group``, with the columns that could be meant."""
    frame = nw.from_native(table.head(), eager_only=True)
    fitting = [
        repr(name) for name in frame.columns if 2 <= frame[name].drop_nulls().n_unique() <= 5
    ]
    hint = f"; columns of few values: {', '.join(fitting[:6])}" if fitting else ""
    return ValueError(
        f"--group is missing: name the column of {table.name} that holds the groups{hint}."
    )


def _first_labels(table: FileTable, columns: Sequence[str]) -> str:
    """Some labels of the first rows, for a message."""
    frame = nw.from_native(table.head(columns), eager_only=True).drop_nulls(list(columns))
    texts = zip(*(frame[name].cast(nw.String).to_list() for name in columns), strict=True)
    labels = list(dict.fromkeys(map(cell_text, texts)))
    return f"{', '.join(map(repr, labels[:6]))}{', ...' if len(labels) > 6 else ''}"


def _no_rows(table: FileTable) -> ValueError:
    return ValueError(f"{table.name} has column names but no rows.")


def _refuse_missing(where: str, missing: Counter[str], n_missing: int, n_rows: int) -> None:
    columns = ", ".join(f"{name!r} ({count})" for name, count in missing.most_common(3))
    raise ValueError(
        f"{n_missing} of {n_rows} rows of {where} have missing values, in {columns}"
        f"{' and others' if len(missing) > 3 else ''}; leave these rows out with --drop-missing, "
        "or the columns with --drop."
    )
