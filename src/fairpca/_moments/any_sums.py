"""Sums of rows of any kind: which kind fits them, and sums of different kinds added up."""

from collections.abc import Sequence

import numpy as np

from fairpca._input.rows import Rows, SparseRows, dense_blocks
from fairpca._moments.accumulate import accumulate
from fairpca._moments.few_rows import FewRows, are_few
from fairpca._moments.pair_sums import PairSums
from fairpca._moments.sums import Sums
from fairpca._typing import Array, Codes

AnySums = Sums | FewRows | PairSums


def sum_up(
    rows: Rows, codes: Codes, k: int, weights: Array | None, may_miss: bool = False
) -> AnySums:
    """Sums of k groups of rows; NaN is refused unless values may be missing."""
    if may_miss and _has_missing(rows):
        return PairSums.of(rows, codes, k, weights)
    if are_few(rows.n_rows, rows.n_features):
        return FewRows.of(rows, codes, k, weights)
    return accumulate(rows, codes, k, weights)


def combined(k: int, d: int, parts: Sequence[tuple[AnySums, Sequence[int]]]) -> AnySums:
    """Sums of k groups; group g of a part adds to the group ``places[g]``."""
    sums = [(part, places) for part, places in parts if isinstance(part, Sums)]
    few = [(part, places) for part, places in parts if isinstance(part, FewRows)]
    pairs = [(part, places) for part, places in parts if isinstance(part, PairSums)]
    if few:
        kept = FewRows.combined(k, d, few)
        if not (sums or pairs) and are_few(len(kept.factor), d):
            return kept
        sums.append((kept.multiplied(), range(k)))
    if not pairs:
        return Sums.combined(k, d, sums)
    if sums:
        complete = PairSums.of_complete(Sums.combined(k, d, sums))
        pairs.append((complete, range(k)))
    return PairSums.combined(k, d, pairs)


def _has_missing(rows: Rows) -> bool:
    """Whether there is a NaN; a sum tells, and costs one look at each number."""
    if isinstance(rows, SparseRows):
        return bool(np.isnan(rows.block(0, rows.n_rows).data).any())
    return any(np.isnan(block.sum()) for _, block in dense_blocks(rows))
