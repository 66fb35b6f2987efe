"""The problems as data, one class for each; :func:`fairpca._solvers.solve` solves them.

Throughout, ``R_g`` is the error of group g under a projection U of rank r, ``p_g`` the group's
share of the rows, and ``R = sum_g p_g R_g`` the overall error.
"""

from dataclasses import dataclass
from math import exp, inf
from typing import Literal

import numpy as np
from scipy.special import softmax

from fairpca._moments.group_differences import Target
from fairpca._moments.operand import Complement
from fairpca._moments.tolerances import TINY
from fairpca._typing import Array

#: Where the walk from PCA ends at the latest. ``"efficient"``: where the worst-off group is at its
#: best, because further on every group only gets worse. ``"no_worse"``: where an error would exceed
#: that of the harmed group under PCA (c-FPCA). ``"parity"``: nowhere (u-FPCA).
Constraint = Literal["efficient", "no_worse", "parity"]

#: What the worst-off group is compared by.
Criterion = Literal["loss", "error", "variance"]


@dataclass(frozen=True)
class FairProblem:
    """Walk from PCA towards equal errors until a limit binds.

    With A the group that PCA favours, B the one it harms and ``D = R_B - R_A``, the walk follows
    the frontier of ``alpha R + (1 - alpha) D``, from ``alpha = 1`` (PCA) down to 0. Each limit on
    the way is a *slack* that is non-negative at PCA and shrinks. The answer is where the first of
    them is used up. For more than two groups the spread, largest minus smallest error, takes the
    place of D.
    """

    constraint: Constraint = "parity"
    max_disparity: float | None = None  # stop at this D, with the least R that allows it
    max_error_increase: float = inf  # stop at R = (1 + this) R(PCA), with the least D at that price
    max_group_increase: float = inf  # stop where a group has R_g = (1 + this) R_g(PCA)
    #: Stop here, whatever the limits: theorem 1 of the paper, with its sign corrected. 1 is PCA.
    alpha: float | None = None
    #: For more than two groups: stop at this part of the way from PCA to where the walk would end,
    #: 0 to 1. With ``"efficient"`` the largest error measures the way, otherwise the spread does.
    fraction: float | None = None
    solver: Literal["exact", "golden"] = "exact"  # "golden": parity as the paper searches for it


#: Plain PCA, for any number of groups.
PLAIN_PCA = FairProblem(alpha=1.0)


@dataclass(frozen=True)
class WorstOffProblem:
    """Make the worst-off group as well off as possible: minimise ``max_g (R_g - b_g)``.

    The *loss* of Samadi et al. has ``b_g = min_V R_g(V)``, the error under a projection of the
    group's own. The *error* has ``b_g = 0``. To make the least explained *variance* as large as
    possible, take ``b_g = tr C_g``.
    """

    criterion: Criterion = "loss"


@dataclass(frozen=True)
class WelfareProblem:
    """Make the welfare of the groups as large as possible.

    The *welfare* of a projection is the power mean of the variances ``V_g = tr U'C_gU`` that the
    groups keep, each group counted once whatever its size::

        E_a(V) = (mean_g V_g^(1-a))^(1/(1-a))

    If every group kept exactly this variance, the welfare would be the same. With ``a = 0``
    it is the mean variance (group-balanced PCA), with ``a = 1`` the geometric mean (Nash welfare),
    and with infinite a the least variance (max-min).

    ``E_a`` is concave and homogeneous, so for all V and V'::

        E_a(V') <= w'V',    w = gradient of E_a at V

    and the top-r eigenvalues of ``sum_g w_g C_g`` bound the welfare of every projection.
    """

    inequality_aversion: float = 1.0  # a, from 0 to infinity: how much worse-off groups count

    def measure(self, kept: Array) -> float:
        """``E_a`` of the variances kept.

        Examples
        --------
        >>> import numpy as np
        >>> [round(WelfareProblem(a).measure(np.array([1.0, 4.0])), 3) for a in (0, 1, 2, np.inf)]
        [2.5, 2.0, 1.6, 1.0]
        """
        logs = np.log(np.maximum(kept, TINY))
        power = 1.0 - self.inequality_aversion
        if power == -inf:
            return float(kept.min())
        if power == 0.0:
            return exp(logs.mean())
        most = logs[(power * logs).argmax()]  # the group that counts most
        return exp(most + np.log1p(np.expm1(power * (logs - most)).mean()) / power)

    def portions(self, kept: Array) -> Array:
        """How much each group counts: elasticities of ``E_a``, which add up to one."""
        logs = np.log(np.maximum(kept, TINY))
        return np.asarray(softmax((1.0 - self.inequality_aversion) * logs))

    def gradient(self, kept: Array) -> Array:
        """The weights w for which ``w'V'`` bounds the welfare of every projection."""
        return self.measure(kept) * self.portions(kept) / np.maximum(kept, TINY)


@dataclass(frozen=True)
class MeanGapProblem:
    """Minimise the overall error R subject to ``tr U'BU <= max_mean_gap``.

    B holds the variance between the groups' means. The operand is a ``MeanGapOperand``.
    """

    max_mean_gap: float  # positive; with 0 the directions of B are left out of the operand instead


@dataclass(frozen=True, eq=False)
class PLSProblem:
    """Directions of the largest covariance with the targets, each uncorrelated with those before.

    The variance between the groups' mean scores, ``tr U'BU``, is limited.
    """

    target: Target  # with the covariance S_xy of features and targets
    differences: Array  # D, of shape (q, d), with D'D = B
    complement: Complement  # orthogonal complement of the rows of D
    max_mean_gap: float = inf  # the limit; with 0 all directions lie in the complement


#: Every problem that :func:`fairpca._solvers.solve` solves.
Problem = FairProblem | WorstOffProblem | WelfareProblem | MeanGapProblem | PLSProblem
