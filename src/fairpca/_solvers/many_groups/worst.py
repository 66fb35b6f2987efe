"""The worst-off of many groups made as well off as possible."""

from __future__ import annotations

from dataclasses import replace
from math import nan

import numpy as np

from fairpca._moments.tolerances import varying_groups
from fairpca._problems.linear import least_maximum
from fairpca._problems.problems import Criterion
from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Spaces
from fairpca._solvers.many_groups.dual import minimise
from fairpca._solvers.many_groups.workspace import Workspace
from fairpca._solvers.worst_off import Balance
from fairpca._typing import Array, Mask


def solve_worst(spaces: Spaces, criterion: Criterion, tol: float = 1e-9) -> Solution:
    """Least largest loss or error, or largest least variance, of the groups compared.

    A group that does not vary keeps no variance under any projection, so it is left out where the
    least variance decides.
    """
    balance, compared, pca = Balance(spaces, criterion), spaces.compared, spaces.pca
    work, varying = Workspace(spaces), varying_groups(spaces.traces)
    if criterion == "variance" and (compared & varying).any():
        compared = compared & varying
    if spaces.rank == spaces.n_features or not varying.any():
        found, values = pca, pca.errors - balance.offsets  # nothing is lost, whatever the basis
        worst = _worst_off(values, compared, work.parity)
        weights, bound = worst / np.count_nonzero(worst), float(values[compared].max())
    else:
        best = minimise(work, least_maximum(balance.offsets, compared), tol)
        found = Point(best.weights, best.basis, best.errors, nan)
        values, weights, bound = found.errors - balance.offsets, best.weights, best.bound
        # A group that has weight 1 / k in the bound is off by at most k times the gap.
        gap = len(spaces.shares) * (best.value - best.bound)
        worst = _worst_off(values, compared, max(work.parity, min(gap, tol * work.unit)))
    if np.count_nonzero(worst) == np.count_nonzero(compared):
        status = Status.GROUPS_EQUAL
    else:
        status = Status.ONE_GROUP_DECIDES if worst.sum() == 1 else Status.WORST_EQUAL
    solution = balance.solution(found, status, weights, bound)
    return replace(solution, value=float(values[compared].max()))


def _worst_off(values: Array, compared: Mask, tolerance: float) -> Mask:
    """The groups compared that are the worst off, to within a tolerance."""
    return np.asarray(compared & (values >= values[compared].max() - tolerance))
