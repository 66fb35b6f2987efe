"""The rows behind an audit: in memory, or streamed from files again for every question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairpca._audit.in_memory import RowsInMemory
from fairpca._audit.streamed import StreamedRows

if TYPE_CHECKING:
    from fairpca._moments.prepare import Prepared

#: The rows of an audit, wherever they are.
AuditedRows = RowsInMemory | StreamedRows


def rows_of(prepared: Prepared, seed: int) -> AuditedRows:
    """The rows of a table that was read for the command line."""
    if prepared.X is None:
        return StreamedRows(prepared.table, prepared.roles, prepared.moments, prepared.before, seed)
    # Summed up again, as by the code that the report shows: both agree to the last bit.
    return RowsInMemory(prepared.X, prepared.groups, impute=bool(prepared.filled))
