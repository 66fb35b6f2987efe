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
from fairpca._moments.few_rows import FewRows
from fairpca._moments.sums import Sums
from fairpca._typing import Array, Codes

_BUFFER_ENTRIES = 1 << 20  # 8 MiB, unless the Gram matrices take more
_SMALL = 4  # blocks at least must fit into the buffer; larger ones are quicker added at once
_SAFE = 1e100  # squares of such numbers, and weights times squares, do not overflow


class _Buffer(NamedTuple):
    values: Array
    codes: Codes
    weights: Array

    @classmethod
    def of(cls, n_rows: int, d: int) -> _Buffer:
        return cls(np.empty((n_rows, d)), np.empty(n_rows, np.intp), np.empty(n_rows))


@dataclass(frozen=True)
class Gathered:
    """Sums, and rows of the same groups that are yet to be added to them."""

    total: Sums | FewRows
    buffer: _Buffer | None = None
    n_rows: int = 0  # in the buffer

    @property
    def _room(self) -> int:
        """How many rows the buffer holds; none if the rows are kept anyway."""
        if isinstance(self.total, FewRows):
            return 0
        return int(max(_BUFFER_ENTRIES, self.total.grams.size) // self.total.sums.shape[1])

    def with_room(self, n_rows: int) -> Gathered:
        """With room for so many rows; if need be, those in the buffer are added to the sums."""
        if self.n_rows + n_rows <= self._room or isinstance(self.total, FewRows):
            return self
        return Gathered(self.settled().total, self.buffer)

    def plus(self, rows: Rows, codes: Codes, weights: Array | None) -> Gathered | None:
        """With these rows, for which there is room; None if they do not go into the buffer.

        Large blocks, rows on a device, and rows that may have to be refused do not.
        """
        if not isinstance(rows, DenseRows) or rows.n_rows > self._room // _SMALL:
            return None
        buffer = self.buffer or _Buffer.of(self._room, rows.n_features)
        place = slice(self.n_rows, self.n_rows + rows.n_rows)
        Z, w = buffer.values[place], buffer.weights[place]
        Z[:] = rows.block(0, rows.n_rows)
        w[:] = 1.0 if weights is None else weights
        buffer.codes[place] = codes
        safe = Z.min() > -_SAFE and Z.max() < _SAFE  # with NaN it is not
        safe = safe and (weights is None or w.max() < _SAFE)
        return Gathered(self.total, buffer, place.stop) if safe else None

    def settled(self) -> Gathered:
        """With all rows added to the sums, and without the buffer."""
        if self.buffer is None or self.n_rows == 0 or isinstance(self.total, FewRows):
            return Gathered(self.total)
        (k, d), n = self.total.sums.shape, self.n_rows
        rows, codes = ArrayRows(self.buffer.values[:n]), self.buffer.codes[:n]
        w = self.buffer.weights[:n]
        part = accumulate(rows, codes, k, None if (w == 1).all() else w, self.total.shifts)
        return Gathered(Sums.combined(k, d, [(self.total, range(k)), (part, range(k))]))
