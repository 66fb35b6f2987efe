"""Moments of Dask arrays and data frames, summed where the blocks are and merged in a tree.

Only moments travel between the workers. Blocks are merged in their order, so a block that is
computed again on another worker changes nothing. This is the only file that imports dask.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from fairpca._blas import single_threaded_blas
from fairpca._input.device import is_dask
from fairpca._input.folds import FoldRule
from fairpca._input.rows import NumericTarget
from fairpca._input.stream import Input, as_chosen, open_input
from fairpca._moments.group_moments import GroupMoments, fan_in, moments_of_rows, naming
from fairpca._sklearn import num_samples, safe_indexing

try:
    import dask.array as da
    from dask.delayed import delayed
except ImportError as error:
    raise ImportError(
        "dask collections need dask; install it with pip install "
        "'dask[array,dataframe,distributed]'."
    ) from error


def moments_of_dask(given: Input, folds: FoldRule | None) -> GroupMoments:
    """Moments of a dask array or data frame, reduced where its blocks are."""
    X = given.X
    at_once = fan_in(count_columns(X), folds)
    whole = X
    if hasattr(X, "rechunk"):
        whole = X.rechunk({1: -1})
    blocks = _delayed(whole)
    n = len(blocks)
    groups = _cut_like(X, given.sensitive_features, "sensitive_features", n)
    weights = _cut_like(X, given.sample_weight, "sample_weight", n)
    units = _cut_like(X, given.units, "units", n)
    numbers = isinstance(given.y, NumericTarget)
    y = given.y
    if numbers:
        y = given.y.values
    outcomes = _cut_like(X, y, "y", n)
    learn = delayed(_block_moments, pure=False)
    columns = zip(blocks, groups, weights, outcomes, units, strict=True)
    how = "available" if given.may_miss else "error", given.crossing
    parts = [learn(folds, i, numbers, how, *block) for i, block in enumerate(columns)]
    merge = delayed(GroupMoments.merge, pure=False)
    while len(parts) > 1:
        parts = [merge(*parts[i : i + at_once]) for i in range(0, len(parts), at_once)]
    moments: GroupMoments = parts[0].compute()
    return moments


def _block_moments(
    folds: FoldRule | None,
    i: int,
    numbers: bool,
    how: tuple[str, bool],
    X: Any,
    groups: Any,
    weights: Any,
    y: Any,
    units: Any,
) -> GroupMoments:
    """Moments of a block, which unlike whole data may be empty."""
    if X.shape[0] == len(groups) == 0:
        return GroupMoments()
    with single_threaded_blas(), naming(f"in block {i} of X"):
        if numbers:
            y = NumericTarget(y)
        given = open_input(X, groups, weights, y, units)
        return moments_of_rows(as_chosen(given, *how), folds, partition=i)


def map_rows(X: Any, function: Callable[[Any], Any], n_columns: int) -> Any:
    """Call ``function`` for every block of rows: a lazy dask array of ``n_columns`` columns."""
    kind: type[np.floating[Any]] = np.float64
    if getattr(X, "dtype", None) == np.float32:
        kind = np.float32
    if hasattr(X, "map_partitions"):
        return X.map_partitions(function, meta=np.empty((0, n_columns), kind))
    X = X.rechunk({1: -1})
    return X.map_blocks(function, dtype=kind, chunks=(X.chunks[0], (n_columns,)))


def count_columns(X: Any) -> int:
    """How many columns X has; refuses what is not two-dimensional."""
    if X.ndim != 2:
        advice = "pass X[:, None], or frame[['a']], if it is one column"
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead; {advice}.")
    return int(X.shape[1])


def _delayed(values: Any) -> list[Any]:
    """The blocks of a frame, column or array."""
    # Dask would optimise each column of a frame by itself and join Parquet files if few columns are
    # read; labels and X would then be cut at different rows.
    return list(np.ravel(values.to_delayed(optimize_graph=isinstance(values, da.Array))))


def _cut_like(X: Any, values: Any, name: str, n_blocks: int) -> list[Any]:
    """Labels, weights or outcomes, cut where X is cut."""
    if values is None:
        return [None] * n_blocks
    lengths = (np.nan,)
    if isinstance(X, da.Array):
        lengths = X.chunks[0]
    known = not np.isnan(lengths).any()
    in_memory = not is_dask(values)
    if isinstance(values, da.Array) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if known and (in_memory or (isinstance(values, da.Array) and not np.isnan(values.shape[0]))):
        if num_samples(values) != X.shape[0]:
            fact = f"{name} has {num_samples(values)} entries but X has {X.shape[0]} rows"
            raise ValueError(f"{fact}; pass exactly one per row of X.")
        if in_memory:
            edges = np.cumsum([0, *lengths]).tolist()
            return [safe_indexing(values, slice(a, b)) for a, b in pairwise(edges)]
        values = values.rechunk({0: lengths, **({1: -1} if values.ndim == 2 else {})})
    blocks = []
    if not in_memory:
        blocks = _delayed(values)
    if len(blocks) != n_blocks:
        lazy = [(own, called) for own, called in ((X, "X"), (values, name)) if is_dask(own)]
        arrays = [c if isinstance(own, da.Array) else f"{c}.to_dask_array()" for own, c in lazy]
        ways = " and ".join(f"{array}.compute_chunk_sizes()" for array in arrays)
        raise ValueError(
            f"X has {n_blocks} blocks but {name} has {len(blocks) or 'none'}, and not all their "
            "lengths are known. Pass columns of one frame, frame[['a', 'b']] and frame['sex'], or "
            f"{ways}."
        )
    return blocks
