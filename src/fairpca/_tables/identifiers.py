"""Columns that number or name the rows: not features, unless asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairpca._input.identifiers import ENOUGH_ROWS, are_row_numbers, is_identifier
from fairpca._tables.arrow import pa
from fairpca._tables.decode import floats
from fairpca._tables.roles import Roles
from fairpca._tables.table import FileTable
from fairpca.exceptions import warn


def without_identifiers(
    table: FileTable, roles: Roles, keep: bool | Sequence[str] = False
) -> Roles:
    """The roles, without features that number or name the rows; they are in ``identifiers``.

    ``keep`` names such features that stay, or is True for all. If there were no others, all stay.
    A column without a name, as pandas writes its index, never is a feature.
    """
    kept = {*(roles.columns if keep is True else keep or ()), roles.weight}
    ids = identifiers(table, [name for name in roles.numbers if name not in kept])
    if len(ids) == len(roles.columns):
        ids = []
    left_out = set(ids)
    columns = tuple(name for name in roles.columns if name not in left_out)
    unnamed = [name for name in table.types if not name]
    return replace(roles, columns=columns, identifiers=(*unnamed, *ids))


def warn_of_identifiers(table: FileTable, roles: Roles) -> None:
    """Say that columns were left out, to somebody who sees no other output."""
    ids = [name for name in roles.identifiers if name]
    if ids:
        warn(
            f"{table.name}: columns {ids} are left out, because they look like row numbers or ids; "
            "pass keep_ids=True to use them, or name the columns to use, columns=[...].",
            UserWarning,
        )


def identifiers(table: FileTable, names: Sequence[str]) -> list[str]:
    """Those of these columns that number or name the rows, as far as the first rows tell.

    By their names (``id``, ``person_id``, ``rownames``), or because they hold whole numbers of
    which no two are the same. Those stored as fractions may be measurements, which are often all
    different: they must be row numbers in order. Values may be missing.
    """
    found = {name for name in names if is_identifier(name)}
    of_type = {name: table.types[name] for name in names if name not in found}
    whole = [name for name, kind in of_type.items() if pa.types.is_integer(kind)]
    fractions = [name for name, kind in of_type.items() if pa.types.is_floating(kind)]
    roles = Roles(tuple(fractions), keep=tuple(whole))
    batch = table.head(roles) if roles.all else None
    if batch is not None:
        found |= {name for name in whole if _all_different(batch[name].drop_null())}
        found |= {name for name in fractions if are_row_numbers(floats(batch[name]))}
    return [name for name in names if name in found]


def _all_different(column: pa.Array) -> bool:
    return len(column) >= ENOUGH_ROWS and len(column.unique()) == len(column)
