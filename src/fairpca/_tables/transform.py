"""Scores of the rows of files, written as they are read, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairpca._tables.atomic import FileName
from fairpca._tables.decode import RecordBatch, TableBlock
from fairpca._tables.roles import Roles
from fairpca._tables.table import FileTable
from fairpca._tables.writing import score_writer
from fairpca._typing import Array


def write_scores(
    table: FileTable,
    roles: Roles,
    output: FileName,
    names: Sequence[str],
    components: Array,
    mean: Array,
    drop_missing: bool = False,
    progress: Callable[[float], object] | None = None,
    reads: Sequence[FileName] = (),
) -> tuple[int, int]:
    """Project every row of a table.

    Parameters
    ----------
    table : FileTable
    roles : Roles
        The features, and the columns that are carried along in front of the scores.
    output : path
        A Parquet, CSV or TSV file; ``-`` for CSV on standard output.
    names : sequence of str
        Names of the scores.
    components : ndarray of shape (r, d)
    mean : ndarray of shape (d,)
    drop_missing : bool
    progress : callable, optional
        Called with the fraction done.
    reads : sequence of paths
        Files that are read besides the table; neither may be ``output``.

    Returns
    -------
    n_rows, n_dropped : int
        How many rows were written, and how many left out for missing values.
    """
    n_rows = n_dropped = 0

    def scored(block: TableBlock) -> tuple[RecordBatch, Array, int]:
        return block.kept, block.scores(components, mean), block.n_dropped

    schema = [*table.kept_schema(roles), *((name, "float64") for name in names)]
    with score_writer(output, schema, [*table.reads, *reads]) as write:
        for kept, scores, dropped in table.map(roles, scored, drop_missing, progress):
            write(kept, scores)
            n_rows += len(scores)
            n_dropped += dropped
    return n_rows, n_dropped
