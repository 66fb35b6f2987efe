"""Rows with targets as last columns, so that one pass gives the joint moments of both."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fairpca._input.device import DeviceRows, on_host
from fairpca._input.rows import DenseRows, Rows, SparseRows, as_rows
from fairpca._typing import Array


class NumericTarget(NamedTuple):
    """A target to be learnt as columns of numbers, not as classes."""

    values: Any


class JointRows(DenseRows):
    """Dense rows and their targets side by side, joined when a block is asked for."""

    def __init__(self, rows: DenseRows | DeviceRows, Y: Array) -> None:
        self._rows, self._Y = rows, Y
        self.n_targets = Y.shape[1]
        self.n_rows, self.n_features = rows.n_rows, rows.n_features + self.n_targets
        if rows.feature_names is not None:
            self.feature_names = [*rows.feature_names, *target_names(self.n_targets)]

    def block(self, start: int, stop: int) -> NDArray[Any]:
        """Rows ``start`` to ``stop``, the targets last."""
        block = np.empty((stop - start, self.n_features))
        block[:, : self._rows.n_features] = self._rows.block(start, stop)
        block[:, self._rows.n_features :] = self._Y[start:stop]
        return block

    def gather(self, start: int, stop: int, order: NDArray[np.intp], out: Array) -> None:
        """Put the rows from ``start`` to ``stop``, in this order, into ``out``."""
        out[:, : self._rows.n_features] = self._rows.block(start, stop)[order]
        out[:, self._rows.n_features :] = self._Y[start:stop][order]


def join_targets(X: Any, Y: Array) -> Rows:
    """X with the numbers Y, of shape (n_samples, n_targets), as last columns."""
    rows = as_rows(X)
    if len(Y) != rows.n_rows:
        raise ValueError(
            f"y has {len(Y)} rows but X has {rows.n_rows}; pass exactly one y per row of X."
        )
    if isinstance(rows, SparseRows):
        joint = SparseRows(sp.hstack([rows.block(0, rows.n_rows), sp.csr_array(Y)], format="csr"))
        joint.n_targets = Y.shape[1]
        return joint
    return JointRows(rows, Y)


def with_numeric_target(rows: Rows, target: Any) -> tuple[Rows, Any]:
    """Rows with a target of numbers as last columns, and what is left of the target."""
    if isinstance(target, NumericTarget):
        return join_targets(rows, as_targets(target.values)), None
    return rows, target


def as_targets(y: Any) -> Array:
    """Numbers of shape (n_samples, n_targets), all finite."""
    try:
        Y = np.asarray(on_host(y), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"y must be numbers for target_type='numbers', but could not be read: {error}; pass "
            "target_type='classes' for labels."
        ) from error
    Y = Y[:, None] if Y.ndim == 1 else Y
    if Y.ndim != 2 or Y.shape[1] == 0:
        raise ValueError(f"y has shape {Y.shape}; pass one number per row, or several columns.")
    bad = np.flatnonzero(~np.isfinite(Y).all(axis=1))
    if len(bad):
        raise ValueError(
            f"Input y contains NaN or infinity in {len(bad)} rows, first in row {bad[0]}; drop "
            "these rows of X, y and groups, or fill them."
        )
    return Y


def target_names(n_targets: int) -> list[str]:
    """What the columns of targets are called beside named features."""
    return [f"target {j}" for j in range(n_targets)]
