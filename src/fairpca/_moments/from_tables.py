"""Moments of tables in files, in Spark frames and in dask collections, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fairpca._input.crossing import name_cells
from fairpca._input.labels import Cell, CodedLabels
from fairpca._moments.fold_labels import (
    FoldOptions,
    HashedFolds,
    check_hashed_folds,
    group_of,
    with_group,
)
from fairpca._moments.group_moments import GroupMoments
from fairpca._tables.decode import TableBlock
from fairpca._tables.paths import FileFormat
from fairpca._tables.roles import refuse_no_group
from fairpca._typing import Codes


def moments_of_files(
    paths: Any,
    *,
    group: str | Sequence[str],
    columns: Sequence[str] | None,
    sample_weight: str | None,
    target: str | None,
    keep_ids: bool | Sequence[str],
    drop_missing: bool,
    file_format: FileFormat | None,
    encoding: str,
    progress: Callable[[float], object] | None,
    folds: int | None,
    fold_seed: int,
) -> GroupMoments:
    """What :meth:`GroupMoments.from_files` returns."""
    from fairpca._tables.identifiers import warn_of_identifiers, without_identifiers
    from fairpca._tables.table import FileTable

    refuse_no_group(group)
    table = FileTable(paths, file_format, encoding)
    roles = table.choose(columns, _crossed_columns(group, target), sample_weight)
    roles = without_identifiers(table, roles, columns is not None or keep_ids)
    warn_of_identifiers(table, roles)
    make = partial(decoded_moments, folds=check_hashed_folds(folds, fold_seed))
    moments = GroupMoments()
    for part in table.map(roles, make, drop_missing, progress):
        moments = moments.merge(part)
    _refuse_empty(moments, table.name)
    return _name_intersections(moments, roles.groups, target)


def moments_of_spark(
    frame: Any,
    *,
    group: str | Sequence[str],
    columns: Sequence[str] | None,
    sample_weight: str | None,
    target: str | None,
    drop_missing: bool,
    folds: int | None,
    fold_seed: int,
) -> GroupMoments:
    """What :meth:`GroupMoments.from_spark` returns."""
    from fairpca._tables.spark import reduce_partitions

    refuse_no_group(group)
    crossed = _crossed_columns(group, target)
    moments = reduce_partitions(
        frame,
        columns,
        crossed,
        sample_weight,
        drop_missing,
        make=partial(decoded_moments, folds=check_hashed_folds(folds, fold_seed)),
        merge=GroupMoments.merge,
        nothing=GroupMoments(),
    )
    _refuse_empty(moments, "the Spark frame")
    return _name_intersections(moments, crossed, target)


def moments_of_dask(
    X: Any, groups: Any, sample_weight: Any, target: Any, folds: FoldOptions
) -> GroupMoments:
    """Moments of a dask array or data frame, reduced where its blocks are."""
    from fairpca._tables.dask import reduce_blocks

    make = partial(_dask_block_moments, folds)
    moments = reduce_blocks(X, groups, sample_weight, target, make, GroupMoments.merge)
    _refuse_empty(moments, "X")
    return moments


def block_moments(
    X: Any,
    groups: Any,
    sample_weight: Any,
    target: Any = None,
    n_dropped: int = 0,
    folds: Codes | None = None,
) -> GroupMoments:
    """Moments of one of many blocks, which unlike whole data may be empty or weigh nothing."""
    n_labels = len(groups.codes if isinstance(groups, CodedLabels) else groups)
    empty = X.shape[0] == n_labels == 0
    weightless = sample_weight is not None and not np.any(sample_weight)
    moments = GroupMoments()
    if not empty and not weightless:
        moments.update(X, groups, sample_weight, target, folds=folds)
    moments.n_dropped = n_dropped
    return moments


def decoded_moments(block: TableBlock, folds: HashedFolds | None = None) -> GroupMoments:
    """Moments of a block of a file or of a Spark partition."""
    numbers = None
    if folds is not None:
        numbers = folds.of(block.positions, block.origin.source)
    try:
        return block_moments(
            block.rows, block.groups, block.weights, n_dropped=block.n_dropped, folds=numbers
        )
    except ValueError:
        block.refuse_non_finite()
        block.refuse_large()
        raise


def _dask_block_moments(
    folds: FoldOptions, X: Any, groups: Any, weights: Any, target: Any, number: int
) -> GroupMoments:
    """Moments of a block of a dask collection."""
    if folds is not None and not isinstance(folds, HashedFolds):
        raise ValueError(
            "for dask collections pass how many folds there are, for example folds=10."
        )
    numbers = None if folds is None else folds.of(np.arange(len(X)), f"block {number}")
    return block_moments(X, groups, weights, target, folds=numbers)


def _crossed_columns(group: str | Sequence[str], target: str | None) -> list[str]:
    """The columns whose labels are crossed, the target last."""
    groups = [group] if isinstance(group, str) else list(group)
    return groups if target is None else [*groups, target]


def _refuse_empty(moments: GroupMoments, source: str) -> None:
    if not moments.n_features:
        raise ValueError(
            f"there are no rows of positive weight to learn from in {source} "
            f"({moments.n_dropped} were dropped because of missing values); pass complete rows."
        )


def _name_intersections(
    moments: GroupMoments, columns: Sequence[str], target: str | None
) -> GroupMoments:
    """Labels as crossed columns in memory have them, in place of one label per column."""
    if len(columns) < 2:
        return moments
    known = moments.groups.tolist()
    found = list(dict.fromkeys(map(group_of, known)))
    if target is None:
        named = dict(zip(found, name_cells(found, columns), strict=True))
    else:
        groups = list(dict.fromkeys(labels[:-1] for labels in found))
        crossed = len(columns) > 2
        names = name_cells(groups, columns) if crossed else [label for (label,) in groups]
        of = dict(zip(groups, names, strict=True))
        named = {labels: Cell(of[labels[:-1]], labels[-1]) for labels in found}
    return moments.relabel({g: with_group(g, named[group_of(g)]) for g in known})
