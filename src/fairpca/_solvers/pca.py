"""Plain PCA."""

from __future__ import annotations

from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Spaces


def solve_pca(spaces: Spaces) -> Solution:
    """The projection of least overall error, for any number of groups."""
    error = float(spaces.shares @ spaces.pca.errors)
    return spaces.solution(spaces.pca, Status.FIXED, "error", error, spaces.pca.bound, alpha=1.0)
