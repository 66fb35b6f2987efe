"""The worst-off of many groups made as well off as possible."""

from __future__ import annotations

import numpy as np

from fairpca._problems.linear import least_maximum
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._problems.worst_off import Criterion
from fairpca._solvers.balance import Balance
from fairpca._solvers.eigenspaces.growing import Spaces
from fairpca._solvers.many_groups.dual import EQUAL, minimise
from fairpca._solvers.many_groups.workspace import Workspace


def solve_worst(spaces: Spaces, criterion: Criterion, tol: float = 1e-9) -> Solution:
    """Least largest loss or error, or largest least variance, of the groups compared."""
    balance = Balance(spaces, criterion)
    if spaces.rank == spaces.n_features or not spaces.traces.any():
        weights = np.where(balance.compared, 1.0, 0.0) / np.count_nonzero(balance.compared)
        point = balance.pca  # nothing is lost, whatever the basis
        value = balance.worst(point.errors)
        return balance.solution(point.basis, point.errors, Status.GROUPS_EQUAL, weights, value)
    work = Workspace(spaces, balance.pca)
    found = minimise(work, least_maximum(balance.offsets, spaces.compared), tol)
    assert found is not None  # without a ceiling there is always an answer
    values = balance.values(found.errors)[balance.compared]
    n_worst = np.count_nonzero(values >= values.max() - EQUAL * work.unit)
    if n_worst == 1:
        status = Status.ONE_GROUP_DECIDES
    else:
        status = Status.GROUPS_EQUAL if n_worst == len(values) else Status.WORST_EQUAL
    return balance.solution(found.basis, found.errors, status, found.weights, found.bound)
