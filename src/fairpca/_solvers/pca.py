"""Plain PCA, and which groups it serves best and worst."""

from __future__ import annotations

from fairpca._problems.solution import Solution, best_and_worst
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.many_features import Spaces


def solve_pca(spaces: Spaces) -> Solution:
    """The projection of least overall error, for any number of groups."""
    pca = spaces.top(spaces.shares)
    privileged, harmed = best_and_worst(pca.errors, spaces.traces, spaces.compared)
    return Solution(
        basis=pca.basis,
        errors=pca.errors,
        status=Status.FIXED,
        objective="error",
        value=float(spaces.shares @ pca.errors),
        bound=pca.bound,
        weights=pca.weights,
        pca=pca,
        privileged=privileged,
        harmed=harmed,
        alpha=1.0,
        rests_on=(pca,),
    )
