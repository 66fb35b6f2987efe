"""Little variance between the groups' mean scores, at the least overall error."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeanGapProblem:
    """Minimise the overall error R subject to ``tr U'BU <= max_mean_gap``.

    Its operand is a :class:`~fairpca._moments.strata.MeanGapOperand`.

    Parameters
    ----------
    max_mean_gap : float
        Positive; with 0 the directions of B are left out of the operand instead.
    """

    max_mean_gap: float
