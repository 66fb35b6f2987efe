"""From the columns of files to features, groups and moments, with a record of every choice made.

This is how the command line and the report read data. Files are streamed, so memory does not grow
with their rows: once, and once before that to find the values of text columns that are encoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fairpca._input.crossing import name_cells
from fairpca._input.labels import label_vector, sort_labels
from fairpca._moments.group_moments import GroupMoments, decoded_moments
from fairpca._progress import Progress, silent
from fairpca._tables.arrow import pa
from fairpca._tables.choices import Choices
from fairpca._tables.decode import TableBlock
from fairpca._tables.missing import how_to_drop, refuse_missing, some_of, worst
from fairpca._tables.roles import Roles
from fairpca._tables.table import FileTable
from fairpca._typing import Labels

_MOST_CATEGORIES = 100
_MOST_GROUPS = 50
MOST_BYTES_IN_MEMORY = 200_000_000


@dataclass(frozen=True)
class Prepared:
    """The moments of the groups of some files, and what became of the other columns.

    Attributes
    ----------
    table : FileTable
    roles : Roles
        Which columns became features and groups.
    moments : GroupMoments
        Their labels are text.
    not_numbers, constant : list of str
        Columns left out because they are not numbers, and features that do not vary.
    lost_groups : list of str
        Labels that only rows with missing values have.
    before : dict of (str, int) to dict of str to int
        For each block, by its file and the number of its first row there: how many rows of each
        group came before it.
    X, groups : pyarrow.Table, ndarray of str or None
        All rows, if they were asked for and are not too many.
    y : ndarray or None
        The target of each of these rows, if there is one.
    """

    table: FileTable
    roles: Roles
    moments: GroupMoments
    not_numbers: list[str]
    constant: list[str]
    lost_groups: list[str]
    before: dict[tuple[str, int], dict[str, int]]
    X: Any
    groups: Labels | None
    y: Labels | None = None

    @property
    def source(self) -> str:
        """Name of the file, or what the data are."""
        return self.table.name

    @property
    def group_name(self) -> str:
        """The columns that name the groups."""
        return " & ".join(self.roles.groups)

    @property
    def n_dropped(self) -> int:
        """Rows dropped for missing values."""
        return self.moments.n_dropped

    @property
    def n_read(self) -> int:
        """Rows in the files."""
        return int(self.moments.counts.sum()) + self.n_dropped

    @property
    def streamed(self) -> bool:
        """Whether the rows were not kept in memory."""
        return self.X is None


def prepare_table(
    data: Any,
    choices: Choices,
    encoding: str = "utf-8",
    rows_up_to: float = 0,
    progress: Progress = silent,
) -> Prepared:
    """Choose, encode and check the columns of files, and sum up their groups.

    Parameters
    ----------
    data : path or list of paths
    choices : Choices
    encoding : str
        The encoding of text files.
    rows_up_to : float
        Keep the rows too, if they take no more than this many bytes.
    progress : Progress

    Returns
    -------
    Prepared
    """
    table = FileTable(data, text=choices.text_format(encoding))
    roles = choices.roles(table)
    not_numbers = [] if choices.columns else table.left_out(roles, choices.dropped(table))
    if roles.categories:
        roles = _with_categories(table, roles, progress)
    reading = _Reading(table, roles, rows_up_to)
    reading.run(progress)
    moments = reading.named_moments(choices)
    constant = np.array(roles.feature_names)[~moments.varying].tolist()
    if len(constant) == moments.n_features:
        raise ValueError(f"no column of {table.name} varies, so there is nothing to analyse.")
    X, groups = reading.rows()
    y = None if choices.target is None else reading.target(choices.target)
    return Prepared(
        table,
        roles,
        moments,
        not_numbers,
        constant,
        reading.lost_groups(),
        reading.before,
        X,
        groups,
        y,
    )


class _Reading:
    """One pass over the rows: moments, missing values, and the rows themselves if they are few."""

    def __init__(self, table: FileTable, roles: Roles, rows_up_to: float) -> None:
        self.table, self.roles = table, roles
        self._bytes_left = rows_up_to
        self._blocks: list[TableBlock] | None = [] if rows_up_to else None
        self._moments, self._missing = GroupMoments(), Counter[str]()
        self._dropped_labels: dict[str, set[Any]] = {name: set() for name in roles.groups}
        self.before: dict[tuple[str, int], dict[str, int]] = {}

    def run(self, progress: Progress) -> None:
        """Read all rows."""
        report = partial(progress, "reading")
        for part, block in self.table.map(self.roles, self._sum_up, True, report):
            so_far = zip(self._moments.groups.tolist(), self._moments.counts.tolist(), strict=True)
            place = block.origin.name, block.origin.first_row
            self.before[place] = {self.roles.label_text(label): n for label, n in so_far}
            self._moments = self._moments.merge(part)
            self._refuse_many(self._moments.groups.tolist())
            self._missing += block.missing
            for name, labels in block.dropped_labels.items():
                self._dropped_labels[name] |= labels
            if self._blocks is not None:
                self._bytes_left -= 8 * block.rows.n_rows * block.rows.n_features
                self._blocks.append(block)
                if self._bytes_left < 0:
                    self._blocks = None

    def _sum_up(self, block: TableBlock) -> tuple[GroupMoments, TableBlock]:
        assert block.groups is not None
        present = np.unique(block.groups.codes)[: _MOST_GROUPS + 1].tolist()
        self._refuse_many({block.groups.labels[code] for code in present})
        return decoded_moments(block), block

    def named_moments(self, choices: Choices) -> GroupMoments:
        """The moments with text for labels, once they are known to be of use."""
        where, moments, group_name = self.table.name, self._moments, " & ".join(self.roles.groups)
        n_rows = int(moments.counts.sum()) + moments.n_dropped
        if n_rows == 0:
            raise ValueError(f"{where} has column names but no rows.")
        refuse_missing(where, self._missing, moments.n_dropped, n_rows, choices)
        named = moments.relabel(self._names())
        positive = self.roles.positive
        if positive is not None and positive not in named.groups:
            raise ValueError(
                f"--positive {positive!r} (in Python positive=) is not a value of {group_name!r} "
                f"in {where}; it holds {self._first_labels()}."
            )
        if len(named.groups) == 1:
            label, lost = named.groups.tolist()[0], self.lost_groups()
            raise ValueError(
                f"all complete rows of {where} are in one group, {label!r}; every row of "
                f"{some_of(lost)} has a missing value, in {worst(self._missing)}: "
                f"{how_to_drop(list(self._missing))}."
                if lost
                else f"all rows of {where} are in one group, {label!r}; choose another column with "
                "--group (in Python groups=)."
            )
        return named

    def lost_groups(self) -> list[str]:
        """Labels that only rows with missing values have, column by column."""
        cells = [label if isinstance(label, tuple) else (label,) for label in self._moments.groups]
        lost: list[str] = []
        if self.roles.positive is None:
            for j, labels in enumerate(self._dropped_labels.values()):
                lost += map(str, sort_labels(list(labels - {cell[j] for cell in cells})))
        return lost

    def rows(self) -> tuple[Any, Labels | None]:
        """All rows and their groups, if they were kept."""
        if self._blocks is None:
            return None, None
        blocks = [block for block in self._blocks if block.rows.n_rows]
        parts = zip(*(block.rows.columns for block in blocks), strict=True)
        columns = [np.concatenate(part) for part in parts]
        X = pa.table(dict(zip(self.roles.feature_names, columns, strict=True)))
        names = self._names()
        coded = [block.groups for block in blocks if block.groups is not None]
        labels = [np.array([names.get(v) for v in g.labels], object)[g.codes] for g in coded]
        return X, np.concatenate(labels)

    def target(self, name: str) -> Labels:
        """The classes in a column that was kept, which must be two."""
        if self._blocks is None:
            raise ValueError(
                f"{self.table.name} is too large to keep in memory, which --target {name!r} needs; "
                "take a sample of the rows."
            )
        values = [value for block in self._blocks for value in block.kept[name].to_pylist()]
        classes = sort_labels(list(dict.fromkeys(values)))
        if None in classes or len(classes) != 2:
            raise ValueError(
                f"--target {name!r} of {self.table.name} must hold two classes and nothing "
                f"missing, but holds {len(classes)} values, such as {classes[:5]}."
            )
        return label_vector(values)

    def _names(self) -> dict[Any, str]:
        """The text of every label."""
        labels = self._moments.groups.tolist()
        return dict(zip(labels, name_cells(labels, self.roles.groups), strict=True))

    def _refuse_many(self, labels: Collection[Any]) -> None:
        if len(labels) > _MOST_GROUPS:
            raise ValueError(
                f"{' & '.join(self.roles.groups)!r} holds more than {_MOST_GROUPS} groups, such as "
                f"{self._first_labels()}; compare one with the rest, for example --positive "
                f"{min(map(self.roles.label_text, labels))!r} (in Python positive=)."
            )

    def _first_labels(self) -> str:
        """Some labels of the first rows, for a message."""
        batch = self.table.head(Roles((), self.roles.groups))
        columns = [] if batch is None else [batch[name].to_pylist() for name in self.roles.groups]
        cells = [cell for cell in zip(*columns, strict=True) if None not in cell]
        texts = (self.roles.label_text(cell if len(cell) > 1 else cell[0]) for cell in cells)
        labels = list(dict.fromkeys(texts))
        return f"{', '.join(map(repr, labels[:6]))}{', ...' if len(labels) > 6 else ''}"


def _with_categories(table: FileTable, roles: Roles, progress: Progress) -> Roles:
    """The roles with the values of their text columns, in rows without missing ones."""

    def values_in(block: TableBlock) -> dict[str, set[str]]:
        coded = {name: block.labels[name] for name in roles.categories}
        return {name: {g.labels[c] for c in np.unique(g.codes)} for name, g in coded.items()}

    seen: dict[str, set[str]] = {name: set() for name in roles.categories}
    report = partial(progress, "reading the values of text columns")
    for found in table.map(roles, values_in, True, report):
        for name, values in found.items():
            seen[name] |= values
            if len(seen[name]) > _MOST_CATEGORIES:
                raise ValueError(
                    f"column {name!r} of {table.name} has more than {_MOST_CATEGORIES} different "
                    f"values, too many to encode; {how_to_drop([name])}."
                )
    roles = replace(roles, categories={name: sorted(values) for name, values in seen.items()})
    twice = [name for name, count in Counter(roles.feature_names).items() if count > 1]
    if twice:
        raise ValueError(
            f"encoding {table.name} makes two columns named {twice[0]!r}; rename one, or leave one "
            "out with --drop (in Python drop=)."
        )
    return roles
