"""Whose rows they are: the column of units, and rows that repeat others without one.

Among the columns named like an id, the unit is the one with the most different values that repeat,
if at least two groups have enough units to be judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fairpca._input.units import repeats_among
from fairpca.cli.columns.roles import Roles, named_like, owner_of
from fairpca.cli.reader.table import Table
from fairpca.exceptions import TableError

_LEAST_UNITS = 10  # in each of two groups; with fewer, nothing can be judged


class UnitFigures(NamedTuple):
    """The column of units, and how many there are."""

    column: str
    n_units: int
    n_rows: int
    others: Sequence[str] = ()  # columns that could be units too

    @property
    def what(self) -> str:
        """What the units are, by the name of the column."""
        if owner_of(self.column):
            return "people"
        return "units"


def unit_of(table: Table, roles: Roles, left_out: dict[str, str]) -> UnitFigures | None:
    """The unit that was asked for, or the one that the columns show; None if rows are units."""
    used = {*roles.groups, *roles.features, roles.weight, roles.target}
    names = [
        column.name
        for column in table.columns.values()
        if column.kind in ("number", "text")
        and column.name not in used
        and left_out.get(column.name) != "asked"
        and named_like(column.name) == "identifier"
    ]
    if roles.unit:
        names = [roles.unit]
    if not names:
        return None
    listed = ", ".join(f"count(DISTINCT {table.columns[name].label}::VARCHAR)" for name in names)
    groups = ", ".join(table.columns[name].label for name in roles.groups) or "NULL"
    sql = f"SELECT count(*), {listed} FROM {table.source()}"
    [(n_rows, *n_units)] = table.rows(sql)
    by_group = np.array(table.rows(f"{sql} GROUP BY {groups}"))[:, 1:]
    able = (by_group >= _LEAST_UNITS).sum(axis=0) >= 2
    found = {
        name: n
        for name, n, enough in zip(names, n_units, able.tolist(), strict=True)
        if n < n_rows and (enough or roles.unit)
    }
    if not found:
        return UnitFigures(roles.unit, n_units[0], n_rows) if roles.unit else None
    best = max(found, key=lambda name: found[name])
    return UnitFigures(best, found[best], n_rows, [name for name in found if name != best])


def refuse_repeats(table: Table, hashes: Sequence[Any]) -> None:
    """Refuse rows that repeat others entirely, if nothing says whose they are."""
    if not hashes:
        return
    if fact := repeats_among(np.concatenate(hashes)):
        advice = "name the column that says whose they are, or keep them as different people"
        raise TableError(
            "duplicates", f"{fact} in {table.name}, in all columns and the group", advice
        )
