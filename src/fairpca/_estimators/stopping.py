"""Where to stop on the way from PCA, judged by rows that were not fitted to.

Limits and targets are those of :class:`~fairpca._problems.fair.FairProblem`, for held-out errors:

* the walk ends where the overall error exceeds its budget, or (``"no_worse"``) where a group is
  worse off than the worst-off group was under PCA;
* until then, stop at the first place where the disparity is small enough; if there is none, at the
  least disparity;
* ``"pareto"`` without a budget: :func:`kindest`, at most up to the place where the groups change
  sides.

Held-out errors are nearly monotone along the way, not exactly. So they are computed at ``_STOPS``;
where a limit or a target is passed, that place is found by bisection. For :func:`kindest` the place
where the groups change sides is found by interpolation: from there on the group that PCA serves
worst is no longer the worst-off one. Elsewhere errors are flat around its best stop: on the data
that it was tried on more stops gained hardly anything. Only where the eigenvalues of all folds
cross between two stops is a better one overlooked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, isfinite

import numpy as np

from fairpca._estimators.held_out import CrossFit, HeldOutErrors
from fairpca._moments.folds import Folds
from fairpca._moments.operand import Operand
from fairpca._problems.fair import PLAIN_PCA, FairProblem
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._solvers import solve
from fairpca._solvers.walk import Walk
from fairpca._typing import Array, Mask

_STOPS = np.linspace(0.0, 1.0, 5)
_HALVINGS = 10
_INTERPOLATIONS = 2
_NEAR_PARITY = 0.02  # of PCA's disparity: less is noise of the folds
_CAUTION = 0.75  # standard errors that count against a stop


def solve_by_folds(
    problem: FairProblem, folds: Folds, operand: Operand, rank: int, normalize: bool, tol: float
) -> Solution:
    """The projection for all rows, at the stop that is best for rows not fitted to.

    It is optimal for its stop, and that is what the bound says.
    """
    pca = solve(PLAIN_PCA, operand, rank, tol)
    walk = Walk(problem, pca, operand.shares, operand.compared, tol)
    cross_fit = CrossFit(folds, walk, rank, normalize)
    held_out, chosen = choose_stop(cross_fit, problem)
    solution = solve(walk.at(float(held_out.stops[chosen])), operand, rank, tol, pca)
    return replace(
        solution,
        status=Status.CROSS_VALIDATED if held_out.stops[chosen] > 0 else Status.NO_GAIN,
        n_eigensolves=pca.n_eigensolves + cross_fit.n_eigensolves + solution.n_eigensolves,
        extras={**solution.extras, **held_out.published(chosen)},
    )


def choose_stop(cross_fit: CrossFit, problem: FairProblem) -> tuple[HeldOutErrors, int]:
    """The stop of a problem: held-out errors, and which of their stops it is."""

    def too_far(held_out: HeldOutErrors) -> Mask:
        return _exceeds(held_out, problem)

    def fair(held_out: HeldOutErrors) -> Mask:
        return np.asarray(held_out.disparity <= problem.max_disparity)

    def allowed(held_out: HeldOutErrors) -> Mask:
        return ~np.logical_or.accumulate(too_far(held_out))

    def fairest(held_out: HeldOutErrors) -> int:
        return int(np.where(allowed(held_out), held_out.disparity, inf).argmin())

    if problem.constraint == "pareto" and not problem.has_budget:
        held_out = _up_to_parity(cross_fit)
        return held_out, kindest(held_out)
    held_out = _locate(cross_fit, cross_fit.at(_STOPS), too_far)
    held_out = _locate(cross_fit, held_out, lambda h: fair(h) | too_far(h))
    fair_enough = fair(held_out) & allowed(held_out)
    if fair_enough.any():
        return held_out, int(fair_enough.argmax())
    held_out = cross_fit.at(_midpoints(held_out.stops, fairest(held_out)))
    return held_out, fairest(held_out)


def kindest(held_out: HeldOutErrors) -> int:
    """The stop that is best for the worst-off group, if it gains beyond chance.

    Whether to leave PCA and where to stop are two questions. PCA is left if at some stop the group
    that it serves worst gains more than one corrected standard error. Then of all stops at which
    that group gains, the best has the least largest error of a group, each with three quarters of
    a usual standard error of its change added. At most one stop lies past parity, the first: far
    past it only where the projection jumps.
    """
    errors = held_out.group_errors[:, held_out.walk.compared]
    uncertain = held_out.standard_errors[:, held_out.walk.compared]
    worst = np.flatnonzero(held_out.walk.compared)[errors[0].argmax()]
    gains = -held_out.changes[:, worst]
    beyond = np.logical_or.accumulate(held_out.disparity <= 0)
    gains[1:][beyond[:-1]] = 0.0
    if not (gains > held_out.corrected_errors[:, worst]).any():
        return 0
    cautious = (errors + _CAUTION * uncertain).max(axis=1)
    return int(np.where(gains > 0, cautious, inf).argmin())


def _exceeds(held_out: HeldOutErrors, problem: FairProblem) -> Mask:
    """Where a limit is exceeded; never at PCA."""
    R = held_out.overall
    limited = isfinite(problem.max_error_increase)
    exceeds = (R[0] * (1 + problem.max_error_increase) if limited else inf) < R
    if problem.constraint == "no_worse":
        worst = held_out.group_errors[:, held_out.walk.compared].max(axis=1)
        exceeds |= worst > worst[0]
    exceeds[0] = False
    return np.asarray(exceeds)


def _up_to_parity(cross_fit: CrossFit) -> HeldOutErrors:
    """Held-out errors up to where parity is first passed, with a few more stops near to it."""
    one_by_one, at_once = _STOPS[1:, np.newaxis], [_STOPS]
    # More than two groups never change sides, and their searches share the ends of the way.
    for stops in one_by_one if len(cross_fit.walk.shares) == 2 else at_once:
        held_out = cross_fit.at(stops)
        if held_out.disparity[-1] <= 0:
            break
    for _ in range(_INTERPOLATIONS):
        D, stops = held_out.disparity, held_out.stops
        first = int((D <= 0).argmax())
        if D[first] > 0 or first == 0:
            break
        if np.abs(D[first - 1 : first + 1]).min() <= _NEAR_PARITY * D[0]:
            break
        part = D[first - 1] / (D[first - 1] - D[first])
        held_out = cross_fit.at([stops[first - 1] + part * (stops[first] - stops[first - 1])])
    return held_out


def _midpoints(stops: Array, i: int) -> Array:
    """Between a stop and its neighbours."""
    near = stops[max(i - 1, 0) : i + 2]
    return np.asarray((near[1:] + near[:-1]) / 2)


def _locate(
    cross_fit: CrossFit, held_out: HeldOutErrors, passed: Callable[[HeldOutErrors], Mask]
) -> HeldOutErrors:
    """Held-out errors with more stops where something is first passed."""
    for _ in range(_HALVINGS):
        where = passed(held_out)
        first = int(where.argmax())
        if not where[first] or first == 0:
            break
        held_out = cross_fit.at([held_out.stops[first - 1 : first + 1].mean()])
    return held_out
