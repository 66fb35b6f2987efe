"""One pass over the rows of files, with a record of what was missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import partial
from typing import Any

import numpy as np

from fairpca._input.crossing import name_cells
from fairpca._input.labels import label_vector, sort_labels
from fairpca._moments.from_tables import decoded_moments
from fairpca._moments.group_moments import GroupMoments
from fairpca._progress import Progress
from fairpca._tables.arrow import pa
from fairpca._tables.choices import Choices
from fairpca._tables.decode import TableBlock
from fairpca._tables.missing import refuse_missing, some_of, ways_out, worst
from fairpca._tables.roles import Roles
from fairpca._tables.table import FileTable
from fairpca._typing import Labels

_MOST_GROUPS = 50
_MOST_CLASSES = 20


class TableReading:
    """One pass over the rows: moments, missing values, and the rows themselves if they are few."""

    def __init__(
        self, table: FileTable, roles: Roles, rows_up_to: float, fitted: bool = False
    ) -> None:
        self.table, self.roles, self._fitted = table, roles, fitted
        self._bytes_left = rows_up_to
        self._blocks: list[TableBlock] | None = [] if rows_up_to else None
        self._moments, self._missing = GroupMoments(), Counter[str]()
        self._dropped_labels: dict[str, set[Any]] = {name: set() for name in roles.groups}
        self.before: dict[tuple[str, int], dict[str, int]] = {}
        self.filled, self._filled_in = Counter[str](), Counter[Any]()

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
            self._count_filled(block)
            for name, labels in block.dropped_labels.items():
                self._dropped_labels[name] |= labels
            if self._blocks is not None:
                self._bytes_left -= 8 * block.rows.n_rows * block.rows.n_features
                self._blocks.append(block)
                if self._bytes_left < 0:
                    self._blocks = None

    def _count_filled(self, block: TableBlock) -> None:
        """Count the missing numbers that were filled in, by column and by group."""
        for name, mask in block.filled.items():
            assert block.groups is not None
            self.filled[name] += int(mask.sum())
            for code, n in Counter(block.groups.codes[mask].tolist()).items():
                self._filled_in[block.groups.labels[code]] += n

    def filled_shares(self) -> dict[str, float]:
        """The share of numbers that were filled in among the features of each group."""
        if not self.filled:
            return {}
        names, sizes = self._names(), self._moments.counts.tolist()
        sized = zip(self._moments.groups.tolist(), sizes, strict=True)
        d = self._moments.n_features
        return {names[label]: self._filled_in[label] / (n * d) for label, n in sized}

    def _sum_up(self, block: TableBlock) -> tuple[GroupMoments, TableBlock]:
        assert block.groups is not None
        present = np.unique(block.groups.codes)[: _MOST_GROUPS + 1].tolist()
        self._refuse_many({block.groups.labels[code] for code in present})
        return decoded_moments(block), block

    def named_moments(self, choices: Choices) -> GroupMoments:
        """The moments with text for labels; refuses data that cannot be compared."""
        where, moments, group_name = self.table.name, self._moments, " & ".join(self.roles.groups)
        n_rows = int(moments.counts.sum()) + moments.n_dropped
        if n_rows == 0:
            raise ValueError(f"{where} has column names but no rows.")
        counts = moments.n_dropped, n_rows
        refuse_missing(where, self._missing, *counts, choices, self.roles, self._fitted)
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
                f"{', or '.join(ways_out(self._missing, n_rows, self.roles, self._fitted))}."
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

    def rows(self, as_missing: bool) -> tuple[Any, Labels | None]:
        """All rows and their groups, if they were kept; what was filled in may be NaN again."""
        if self._blocks is None:
            return None, None
        blocks = [block for block in self._blocks if block.rows.n_rows]
        parts = zip(*(block.rows.columns for block in blocks), strict=True)
        columns = [np.concatenate(part) for part in parts]
        for name in self.filled if as_missing else ():
            none = [block.filled.get(name, np.zeros(block.rows.n_rows, bool)) for block in blocks]
            columns[self.roles.feature_names.index(name)][np.concatenate(none)] = np.nan
        X = pa.table(dict(zip(self.roles.feature_names, columns, strict=True)))
        names = self._names()
        coded = [block.groups for block in blocks if block.groups is not None]
        labels = [np.array([names.get(v) for v in g.labels], object)[g.codes] for g in coded]
        return X, np.concatenate(labels)

    def target(self, name: str) -> Labels:
        """The classes in a column that was kept, which must be two or more."""
        if self._blocks is None:
            raise ValueError(
                f"{self.table.name} is too large to keep in memory, which --target {name!r} needs; "
                "take a sample of the rows."
            )
        values = [value for block in self._blocks for value in block.kept[name].to_pylist()]
        classes = sort_labels(list(dict.fromkeys(values)))
        if not 2 <= len(classes) <= _MOST_CLASSES:
            many = f"{len(classes)} values, such as " if len(classes) > 5 else ""
            raise ValueError(
                f"--target {name!r} of {self.table.name} must hold two classes, or up to "
                f"{_MOST_CLASSES} with --target-positive, but holds {many}{classes[:5]}."
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
