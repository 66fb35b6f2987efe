"""Small blocks of rows, gathered until they are worth a pass.

A pass over a few hundred rows takes longer to begin and to end than to multiply them. So the rows
of small blocks are copied into a buffer and multiplied together: when it is full, or when a result
is asked for. Whoever holds sums and rows replaces them by one assignment, so an interrupt (Ctrl-C)
never leaves half a block behind: rows that were copied, but not counted, are overwritten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairpca._input.rows import ArrayRows, DenseRows, Rows
from fairpca._moments.accumulate import accumulate
from fairpca._moments.sums import Sums
from fairpca._typing import Array, Codes

_BUFFER_ENTRIES = 1 << 20  # 8 MiB, unless the Gram matrices take more
_SMALL = 4  # blocks at least must fit into the buffer
_SAFE = 1e100  # squares of such numbers, and weights times squares, do not overflow


class _Buffer(NamedTuple):
    values: Array
    codes: Codes
    weights: Array


@dataclass(frozen=True)
class Gathered:
    """Sums, and rows of the same groups that are yet to be added to them."""

    total: Sums
    buffer: _Buffer | None = None
    n_rows: int = 0  # in the buffer

    def plus(self, rows: Rows, codes: Codes, weights: Array | None) -> Gathered | None:
        """With these rows too; None if they are many, not on the host or perhaps unusable."""
        d = rows.n_features
        room = max(_BUFFER_ENTRIES, self.total.grams.size) // d
        if not isinstance(rows, DenseRows) or rows.n_rows > room // _SMALL:
            return None
        if self.n_rows + rows.n_rows > room:
            return self.settled().plus(rows, codes, weights)
        buffer = self.buffer or _Buffer(np.empty((room, d)), np.empty(room, int), np.empty(room))
        place = slice(self.n_rows, self.n_rows + rows.n_rows)
        Z, w = buffer.values[place], buffer.weights[place]
        Z[:] = rows.block(0, rows.n_rows)
        w[:] = 1.0 if weights is None else weights
        buffer.codes[place] = codes
        safe = Z.min() > -_SAFE and Z.max() < _SAFE and w.max() < _SAFE  # with NaN it is not
        return Gathered(self.total, buffer, place.stop) if safe else None

    def settled(self) -> Gathered:
        """With all rows added to the sums; an empty buffer is used again."""
        if self.buffer is None or self.n_rows == 0:
            return self
        values, codes, weights = (array[: self.n_rows] for array in self.buffer)
        k, d = self.total.sums.shape
        w = None if (weights == 1).all() else weights
        part = accumulate(ArrayRows(values), codes, k, w, self.total.shifts)
        total = Sums.combined(k, d, [(self.total, range(k)), (part, range(k))])
        return Gathered(total, self.buffer)
