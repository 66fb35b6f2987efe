"""The problems of :class:`FairPCA` for more than two groups, handed to the dual solver.

The spread ``max_g R_g - min_g R_g`` over the groups compared takes the place of the disparity D.
Groups that are not compared count in the overall error only, which the two-group solver cannot do:
its cap rests on ``C`` being made of the two groups and nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, isinf, nan

import numpy as np

from fairpca._problems.fair import Criterion, FairProblem, Status
from fairpca._solvers.eigenspaces.operand import Family
from fairpca._solvers.many_groups.dual import DualSolution, minimise_maximum, minimise_spread
from fairpca._solvers.two_groups.exact import Solution, solve_pca
from fairpca._solvers.two_groups.minmax import Balance, MinMaxSolution
from fairpca._typing import Array, Mask

_EQUAL = 1e-8  # of the largest trace: limits and groups nearer than this are met


def solve_spread(family: Family, problem: FairProblem, compared: Mask, tol: float) -> Solution:
    """Least spread, then least overall error, within the limits."""
    pca = solve_pca(family, compared)
    before = pca.errors[compared]
    cap = float(before.max()) if problem.no_worse else None
    max_error = None
    if not isinf(problem.max_error_increase):
        max_error = float(family.shares @ pca.errors) * (1 + problem.max_error_increase)
    n_eigensolves = family.n_eigensolves
    found = minimise_spread(
        family,
        cap=cap,
        max_spread=problem.max_disparity,
        max_error=max_error,
        compared=compared,
        tol=tol,
    )
    family.n_eigensolves = n_eigensolves + found.n_eigensolves
    return replace(
        pca,
        basis=found.basis,
        errors=found.errors,
        alpha=nan,
        status=_status(family, problem, compared, before, found, cap, max_error),
        gap=found.gap,
    )


def _status(
    family: Family,
    problem: FairProblem,
    compared: Mask,
    before: Array,
    found: DualSolution,
    cap: float | None,
    max_error: float | None,
) -> Status:
    near = _EQUAL * float(family.traces.max())
    if found.iterations == 0 and np.ptp(before) <= problem.max_disparity + near:
        return Status.ALREADY_FAIR
    after = found.errors[compared]
    if np.ptp(after) <= problem.max_disparity + near:
        return Status.DISPARITY_BUDGET if problem.max_disparity > 0 else Status.PARITY
    left = {
        Status.CAPPED: inf if cap is None else cap - float(after.max()),
        Status.ERROR_BUDGET: (
            inf if max_error is None else max_error - float(family.shares @ found.errors)
        ),
    }
    tightest = min(left, key=lambda limit: left[limit])
    if left[tightest] <= near:
        return tightest
    proven = found.bound > problem.max_disparity + near
    return Status.INFEASIBLE if proven else Status.UNPROVEN


def solve_worst(family: Family, criterion: Criterion, compared: Mask, tol: float) -> MinMaxSolution:
    """Least largest loss or error, or largest least variance, of the groups compared."""
    balance = Balance(family, criterion, compared)
    n_eigensolves = family.n_eigensolves
    found = minimise_maximum(family, offsets=balance.offsets, compared=compared, tol=tol)
    family.n_eigensolves = n_eigensolves + found.n_eigensolves
    values = balance.values(found.errors)[compared]
    n_worst = np.count_nonzero(values >= values.max() - _EQUAL * family.traces.max())
    if n_worst == 1:
        status = Status.ONE_GROUP_DECIDES
    else:
        status = Status.GROUPS_EQUAL if n_worst == len(values) else Status.WORST_EQUAL
    return MinMaxSolution(
        basis=found.basis,
        losses=found.errors - balance.least,
        weights=found.weights,
        status=status,
        gap=found.gap,
        decisive=(),
    )
