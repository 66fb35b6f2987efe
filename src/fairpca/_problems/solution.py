"""The one form in which every solver returns its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import nan
from typing import Literal

import numpy as np

from fairpca._moments.tolerances import TINY, moment_noise
from fairpca._problems.status import Status
from fairpca._typing import Array, Mask

#: What a solver minimised: the overall error R; the disparity D, or the spread of more than two
#: groups; the harmed group's error; the largest value of a group; the weighted sum of R and D;
#: the paper's ``F = D^2``; minus the welfare; or the robust error.
Objective = Literal[
    "error", "disparity", "harmed", "worst", "weighted", "fairness", "welfare", "robust"
]


#: From an orthonormal basis in few coordinates to one in more.
Lift = Callable[[Array], Array]


@dataclass(frozen=True)
class Point:
    """The optimal projection for one vector of group weights.

    ``tied_bound``, if asked for, is the least value for a second vector of weights among the
    projections that are equally good for the first.
    """

    weights: Array
    basis: Array
    errors: Array  # measured on the basis
    bound: float  # least sum_g w_g R_g over all projections of rank r, from the eigenvalues alone
    tied_bound: float = nan

    def lifted(self, lift: Lift, slack: float = 0.0) -> Point:
        """The same point in more coordinates; outside ours, others may be better by ``slack``."""
        return replace(self, basis=lift(self.basis), bound=self.bound - slack)


@dataclass(frozen=True)
class Solution:
    """A projection, what it costs each group, and the proof of how good it is."""

    basis: Array  # d x r, orthonormal, in no particular rotation
    errors: Array  # R_g(U)
    status: Status
    objective: Objective  # what value and bound measure
    value: float  # the objective at U; NaN where nothing was proven
    bound: float  # its proven lower bound over all projections that keep to the limits
    weights: Array  # group weights of the eigenproblem behind the bound
    pca: Point  # plain PCA of the same rank
    privileged: int  # the group that PCA treats best, of those compared
    harmed: int  # the group that PCA treats worst
    alpha: float = nan  # the weights of two groups as the paper writes them
    violation: float = 0.0  # largest amount by which a limit is exceeded, in units of error
    rests_on: tuple[Point, ...] = ()  # the solution is right if these eigenspaces are
    n_eigensolves: int = 0  # number of eigendecompositions
    # The eigenspaces that were used, for a search that starts from here (fairpca._solvers.solve).
    found_in: object = field(default=None, repr=False)
    extras: Mapping[str, object] = field(default_factory=dict)  # attributes of some estimators only

    @property
    def gap(self) -> float:
        """How far the projection can be from the best one."""
        return self.value - self.bound

    def beside(self, pca: Solution, errors: Array, **extras: object) -> Solution:
        """The same projection with its errors under other moments, their PCA, and more extras."""
        return replace(
            self,
            errors=errors,
            pca=pca.pca,
            privileged=pca.privileged,
            harmed=pca.harmed,
            n_eigensolves=self.n_eigensolves + pca.n_eigensolves,
            extras={**self.extras, **extras},
        )

    def alpha_of(self, shares: Array) -> float:
        """The alpha for which ``M(w)`` is a multiple of ``alpha C + (1 - alpha)(C_B - C_A)``."""
        if len(shares) != 2:
            return nan
        excess = shares - self.weights / max(float(self.weights.sum()), TINY)
        return float(1 / (1 + excess[self.privileged]))

    def lifted(self, lift: Lift, slack: float = 0.0) -> Solution:
        """The same solution in more coordinates, as :meth:`Point.lifted`."""
        return replace(
            self,
            basis=lift(self.basis),
            bound=self.bound - slack,
            pca=self.pca.lifted(lift, slack),
            rests_on=(),
        )


def best_and_worst(errors: Array, traces: Array, compared: Mask) -> tuple[int, int]:
    """The groups compared with the smallest and the largest error; always two different groups.

    Where errors are equal to rounding, the first group is the best and the last the worst, so that
    the answer does not depend on the processor.
    """
    members = np.flatnonzero(compared)
    errors = errors[compared]
    noise = moment_noise(traces)
    best = np.flatnonzero(errors <= errors.min() + noise)[0]
    worst = np.flatnonzero(errors >= errors.max() - noise)[-1]
    return int(members[best]), int(members[worst])


def disparity(errors: Array, compared: Mask, harmed: int, privileged: int) -> Array:
    """The difference between group errors, over the last axis of ``errors``.

    With two groups compared it is signed: the error of the harmed group minus that of the
    privileged one, as PCA treats them. With more it is the largest error minus the smallest.

    Examples
    --------
    >>> import numpy as np
    >>> errors = np.array([1.0, 4.0, 2.0])
    >>> float(disparity(errors, np.array([True, False, True]), harmed=0, privileged=2))
    -1.0
    >>> float(disparity(errors, np.array([True, True, True]), harmed=0, privileged=2))
    3.0
    """
    if np.count_nonzero(compared) == 2:
        return np.asarray(errors[..., harmed] - errors[..., privileged])
    return np.asarray(np.ptp(errors[..., compared], axis=-1))
