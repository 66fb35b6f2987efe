"""Columns that say which row it is, not what it is like: no features, unless asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fairpca._tables.arrow import pa
from fairpca._tables.roles import Roles
from fairpca._tables.table import FileTable

_NAME = re.compile(
    r"(.*[\W_])?(id|ids|index|idx|uuid|guid|rowid|rownames?|row[\W_]?(number|num|no|id|name)s?)"
    r"|Unnamed: \d+|seqn",
    re.IGNORECASE,
)
_CAMEL = re.compile(r".*[a-z](ID|Id)")
_ENOUGH_ROWS = 20  # with fewer, measurements are often all different


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
    return [
        name
        for name in names
        if name in different or _NAME.fullmatch(name) or _CAMEL.fullmatch(name)
    ]
