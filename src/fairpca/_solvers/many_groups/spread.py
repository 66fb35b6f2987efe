"""Equal errors for more than two groups: the spread takes the place of the disparity.

The spread is ``max_g R_g - min_g R_g`` over the groups compared. Groups that are not compared count
in the overall error only, which the two-group solver cannot do: its cap rests on ``C`` being made
of the two groups and nothing else.

First the least overall error at the spread asked for. Where that is out of reach, or was not
reached, the least spread, and then the least overall error that it leaves free.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, isinf, nan

import numpy as np

from fairpca._problems.fair import FairProblem
from fairpca._problems.linear import least_error, least_spread
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.growing import Spaces
from fairpca._solvers.many_groups.central_path import Workspace
from fairpca._solvers.many_groups.dual import EQUAL, minimise
from fairpca._solvers.pca import solve_pca
from fairpca._typing import Array

_ROUNDING = 1e-12  # of the largest trace
_TIE = 1e-7  # relative distance below which eigenvalues count as equal


def solve_spread(spaces: Spaces, problem: FairProblem, tol: float = 1e-9) -> Solution:
    """Least spread, then least overall error, within the limits of the problem."""
    pca = replace(solve_pca(spaces), alpha=nan)
    limits = _Limits(spaces, problem, pca.errors)
    if limits.spread(pca.errors) <= limits.max_spread + limits.rounding:
        return replace(pca, status=Status.ALREADY_FAIR)
    if limits.max_error is not None and limits.max_error <= pca.value:
        return replace(pca, status=limits.status(pca.errors))
    work = Workspace(spaces, pca.pca)
    wanted = least_error(
        limits.shares, limits.compared, max_spread=limits.max_spread, cap=limits.cap
    )
    solution = minimise(work, wanted, "error", tol, limits.ceiling)
    if solution is not None and limits.kept_by(solution):
        return replace(solution, status=limits.status(solution.errors))
    nearest = least_spread(
        limits.shares, limits.compared, cap=limits.cap, max_error=limits.max_error
    )
    solution = minimise(work, nearest, "disparity", tol)
    assert solution is not None  # without a ceiling there is always an answer
    solution = replace(solution, bound=max(solution.bound, 0.0))
    solution = _least_error_in_face(work, limits, solution, tol)
    return replace(solution, status=limits.status(solution.errors, solution.bound))


class _Limits:
    """What a problem allows, given PCA, and which limit ended the search."""

    def __init__(self, spaces: Spaces, problem: FairProblem, before: Array) -> None:
        self.shares, self.compared, traces = spaces.shares, spaces.compared, spaces.traces
        self.max_spread = problem.max_disparity
        self.cap = float(before[self.compared].max()) if problem.constraint == "no_worse" else None
        self.max_error: float | None = None
        if not isinf(problem.max_error_increase):
            self.max_error = float(self.shares @ before) * (1 + problem.max_error_increase)
        self.rounding = _ROUNDING * float(traces.max())
        self.near = EQUAL * float(traces.max())
        # No overall error is above this, so a higher bound proves that the spread is out of reach.
        most = traces.copy()
        if self.cap is not None:
            most[self.compared] = np.minimum(self.cap, traces[self.compared])
        total = float(self.shares @ most) + self.rounding
        self.ceiling = total if self.max_error is None else self.max_error

    def spread(self, errors: Array) -> float:
        return float(np.ptp(errors[self.compared]))

    def kept_by(self, solution: Solution) -> bool:
        within = solution.violation <= self.rounding
        return within and solution.value <= self.ceiling + self.rounding

    def status(self, errors: Array, bound: float = 0.0) -> Status:
        """Which limit binds; ``bound`` is what the spread is proven to be at least."""
        if self.spread(errors) <= self.max_spread + self.near:
            return Status.DISPARITY_BUDGET if self.max_spread > 0 else Status.PARITY
        left = {
            Status.CAPPED: inf if self.cap is None else self.cap - errors[self.compared].max(),
            Status.ERROR_BUDGET: (
                inf if self.max_error is None else self.max_error - self.shares @ errors
            ),
        }
        tightest = min(left, key=lambda limit: float(left[limit]))
        if left[tightest] <= self.near:
            return tightest
        return Status.INFEASIBLE if bound > self.max_spread + self.near else Status.UNPROVEN


def _least_error_in_face(
    work: Workspace, limits: _Limits, solution: Solution, tol: float
) -> Solution:
    """Lower the overall error as far as the least spread leaves it free.

    It does where eigenvalue r of ``W`` is multiple: the eigenvectors above it belong to every
    solution, those equal to it are open.
    """
    eigenvalues, vectors = np.linalg.eigh(np.tensordot(solution.weights, work.matrices, 1))
    height = eigenvalues - eigenvalues[-work.rank]
    width = _TIE * max(float(np.abs(eigenvalues).max()), _TIE)
    fixed, block = vectors[:, height > width], vectors[:, np.abs(height) <= width]
    inner = work.within(fixed, block)
    if block.shape[1] == inner.rank:
        return solution
    spread = limits.spread(solution.errors) + limits.rounding
    problem = least_error(limits.shares, limits.compared, max_spread=spread, cap=limits.cap)
    lower = minimise(inner, problem, "error", tol)
    assert lower is not None  # without a ceiling there is always an answer
    no_gain = lower.value >= limits.shares @ solution.errors - limits.rounding
    if lower.violation > limits.rounding or no_gain:
        return solution
    return replace(
        solution,
        basis=np.hstack([work.basis @ fixed, lower.basis]),
        errors=lower.errors,
        value=limits.spread(lower.errors),
    )
