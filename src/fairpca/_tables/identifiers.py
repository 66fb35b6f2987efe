"""Columns that number or name the rows: not features, unless asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairpca._input.identifiers import is_identifier
from fairpca._tables.arrow import pa
from fairpca._tables.roles import Roles
from fairpca._tables.table import FileTable
from fairpca.exceptions import warn

_ENOUGH_ROWS = 20  # with fewer, measurements are often all different


def without_identifiers(
    table: FileTable, roles: Roles, keep: bool | Sequence[str] = False
) -> Roles:
    """The roles, without features that number or name the rows; they are in ``identifiers``.

    ``keep`` names such features that stay, or is True for all. If there were no others, all stay.
    """
    kept = set(roles.columns) if keep is True else set(keep or ())
    ids = [name for name in identifiers(table, roles.numbers) if name not in {*kept, roles.weight}]
    if not ids or len(ids) == len(roles.columns):
        return roles
    columns = tuple(name for name in roles.columns if name not in set(ids))
    return replace(roles, columns=columns, identifiers=tuple(ids))


def warn_of_identifiers(table: FileTable, roles: Roles) -> None:
    """Say that columns were left out, to somebody who sees no other output."""
    ids = list(roles.identifiers)
    if ids:
        warn(
            f"{table.name}: columns {ids} are left out, because they look like row numbers or ids; "
            "pass keep_ids=True to use them, or name the columns to use, columns=[...].",
            UserWarning,
        )


def identifiers(table: FileTable, names: Sequence[str]) -> list[str]:
    """Those of these columns that number or name the rows.

    By their names (``id``, ``person_id``, ``rownames``), or because they hold whole numbers of
    which no two are the same, as far as the first rows tell.
    """
    whole = [name for name in names if pa.types.is_integer(table.types[name])]
    batch = table.head(Roles((), keep=tuple(whole))) if whole else None
    different = set()
    if batch is not None and batch.num_rows >= _ENOUGH_ROWS:
        for name in whole:
            column = batch[name]
            if not column.null_count and len(column.unique()) == batch.num_rows:
                different.add(name)
    return [name for name in names if name in different or is_identifier(name)]
