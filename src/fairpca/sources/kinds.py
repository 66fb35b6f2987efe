"""Which library an object comes from, told without importing that library."""

from __future__ import annotations

from typing import Any

import numpy as np


def library_of(X: Any) -> str:
    """The name of the package that defines the type of X."""
    return type(X).__module__.partition(".")[0]


def is_dask(X: Any) -> bool:
    """Whether X is a dask array or data frame: a recipe for blocks, not yet computed."""
    return library_of(X) == "dask"


def is_device_array(X: Any) -> bool:
    """Whether X is an array of another library than numpy, perhaps not in main memory."""
    if isinstance(X, (np.ndarray, np.generic)) or is_dask(X):
        return False
    return hasattr(X, "__array_namespace__") or library_of(X) in ("torch", "cupy")
