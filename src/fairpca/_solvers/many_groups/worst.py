"""The worst-off of many groups made as well off as possible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairpca._moments.tolerances import varying_groups
from fairpca._problems.linear import least_maximum
from fairpca._problems.problems import Criterion
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._solvers.balance import Balance
from fairpca._solvers.eigenspaces.many_features import Spaces
from fairpca._solvers.many_groups.dual import minimise
from fairpca._solvers.many_groups.workspace import Workspace
from fairpca._typing import Array, Mask


def solve_worst(spaces: Spaces, criterion: Criterion, tol: float = 1e-9) -> Solution:
    """Least largest loss or error, or largest least variance, of the groups compared.

    A group that does not vary keeps no variance under any projection, so it is left out where the
    least variance decides.
    """
    balance, compared = Balance(spaces, criterion), spaces.compared
    work, varying = Workspace(spaces, balance.pca), varying_groups(spaces.traces)
    if criterion == "variance" and (compared & varying).any():
        compared = compared & varying
    if spaces.rank == spaces.n_features or not varying.any():
        basis, errors = balance.pca.basis, balance.pca.errors  # nothing is lost, whatever the basis
        worst = _worst_off(balance.values(errors), compared, work.parity)
        weights = np.where(worst, 1.0, 0.0) / np.count_nonzero(worst)
        bound = float(balance.values(errors)[compared].max())
    else:
        found = minimise(work, least_maximum(balance.offsets, compared), tol)
        basis, errors, weights, bound = found.basis, found.errors, found.weights, found.bound
        # A group that has weight 1 / k in the bound is off by at most k times the gap.
        gap = len(spaces.shares) * (found.value - found.bound)
        tolerance = max(work.parity, min(gap, tol * work.unit))
        worst = _worst_off(balance.values(errors), compared, tolerance)
    if np.count_nonzero(worst) == np.count_nonzero(compared):
        status = Status.GROUPS_EQUAL
    else:
        status = Status.ONE_GROUP_DECIDES if worst.sum() == 1 else Status.WORST_EQUAL
    value = float(balance.values(errors)[compared].max())
    return replace(balance.solution(basis, errors, status, weights, bound), value=value)


def _worst_off(values: Array, compared: Mask, tolerance: float) -> Mask:
    """The groups compared that are the worst off, to within a tolerance."""
    return np.asarray(compared & (values >= values[compared].max() - tolerance))
