"""What is minimised: problems as plain data, and the texts that say how they ended.

With A the group that PCA favours, B the one it harms, ``D = R_B - R_A`` and ``R`` the overall
error, every problem of :class:`FairPCA` asks how far to walk from PCA towards parity along the
frontier of ``alpha R + (1 - alpha) D``, from ``alpha = 1`` down to 0. Each limit on the way is a
*slack* that is non-negative at PCA and shrinks; the answer is where the first is used up.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Literal

#: What is made small for the worse-off of the groups: its error less that of a projection of its
#: own, its error, or (made large) the variance it keeps.
Criterion = Literal["loss", "error", "variance"]


class Status(StrEnum):
    """How a fit ended: the texts of ``status_``."""

    PARITY = "parity reached"
    INFEASIBLE = "parity infeasible at this rank"
    CAPPED = "capped"
    ALREADY_FAIR = "already fair"
    DISPARITY_BUDGET = "disparity budget met"
    ERROR_BUDGET = "error budget spent"
    UNPROVEN = "least disparity found, not proven"
    FIXED = "fixed alpha"
    SEARCHED = "golden section ended at its tolerance"
    GROUPS_EQUAL = "groups equal"
    WORST_EQUAL = "worst-off groups equal"
    ONE_GROUP_DECIDES = "one group decides"
    ITERATED = "multiplicative weights ended"
    SELECTED = "selected from the front"


#: Ends of searches that are run for comparison and claim to be no better than they are.
APPROXIMATE = frozenset({Status.SEARCHED, Status.ITERATED, Status.SELECTED})


@dataclass(frozen=True)
class FixedAlpha:
    """Minimise ``alpha R + (1 - alpha) D`` (theorem 1 of the paper, sign corrected)."""

    alpha: float


@dataclass(frozen=True)
class FairProblem:
    """Walk from PCA towards parity until a limit binds.

    Parameters
    ----------
    no_worse : bool
        Keep ``R_A`` and ``R_B`` at or below ``R_B`` of PCA (c-FPCA; without it u-FPCA).
    max_disparity : float
        Stop at ``D = max_disparity``: the least R among projections that fair.
    max_error_increase : float
        Stop at ``R = (1 + max_error_increase) R(PCA)``: the least D at that price.
    """

    no_worse: bool = False
    max_disparity: float = 0.0
    max_error_increase: float = inf
