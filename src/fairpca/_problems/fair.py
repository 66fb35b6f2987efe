"""Equal errors: how far to walk from PCA towards parity.

With A the group that PCA favours, B the one it harms, ``D = R_B - R_A`` and ``R`` the overall
error, the walk follows the frontier of ``alpha R + (1 - alpha) D``, from ``alpha = 1`` (PCA) down
to 0. Each limit on the way is a *slack* that is non-negative at PCA and shrinks. The answer is
where the first of them is used up. For more than two groups the spread, largest minus smallest
error, takes the place of D.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

#: Where the walk ends at the latest: where only levelling down is left; where the harmed group is
#: as badly off as under PCA (c-FPCA); nowhere (u-FPCA).
Constraint = Literal["pareto", "no_worse"] | None


@dataclass(frozen=True)
class FairProblem:
    """Walk from PCA towards parity until a limit binds.

    Parameters
    ----------
    constraint : {"pareto", "no_worse"} or None
        ``"pareto"``: stop where the group worse off is at its best, because further on every group
        only gets worse. ``"no_worse"``: keep ``R_A`` and ``R_B`` at or below ``R_B`` of PCA
        (c-FPCA). None: go all the way (u-FPCA).
    max_disparity : float
        Stop at ``D = max_disparity``: the least R among projections that fair.
    max_error_increase : float
        Stop at ``R = (1 + max_error_increase) R(PCA)``: the least D at that price.
    alpha : float, optional
        Stop here, whatever the limits: theorem 1 of the paper, with its sign corrected. 1 is PCA.
    fraction : float, optional
        Of more than two groups: stop at this part of the way from PCA to where the walk would end,
        0 to 1. With ``"pareto"`` the way is that of the largest error, otherwise of the spread.
    solver : {"exact", "golden"}
        ``"golden"`` searches for parity as the paper prints it.
    """

    constraint: Constraint = None
    max_disparity: float = 0.0
    max_error_increase: float = inf
    alpha: float | None = None
    fraction: float | None = None
    solver: Literal["exact", "golden"] = "exact"

    @property
    def has_budget(self) -> bool:
        """Whether a disparity or an overall error is asked for."""
        return self.max_disparity > 0 or self.max_error_increase < inf


#: Plain PCA, for any number of groups.
PLAIN_PCA = FairProblem(alpha=1.0)
