"""Which library an object comes from, told without importing that library."""

from __future__ import annotations

from typing import Any


def is_dask(X: Any) -> bool:
    """Whether X is a dask array or data frame: a recipe for blocks, not yet computed."""
    return type(X).__module__.partition(".")[0] == "dask"


def is_in_memory(X: Any) -> bool:
    """Whether the rows of X can be read again and again, here: arrays, sparse matrices, frames."""
    return not is_dask(X)
