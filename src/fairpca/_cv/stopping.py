"""Where to stop on the path from PCA, judged by held-out rows.

Limits and targets are those of :class:`~fairpca._problems.problems.FairProblem`, applied to
held-out errors:

* no stop from the first one on counts at which the overall error exceeds its budget, a group's
  error exceeds its limit, or (``"no_worse"``) a group is worse off than the worst-off group was
  under PCA;
* of the others, the first at which the disparity is small enough; if there is none, the one of
  least disparity;
* ``"efficient"`` without a budget: the stop at which the worst-off group is best off, at the latest
  where the groups change sides. PCA is left only if the group that PCA serves worst gains beyond
  chance, see :func:`chosen_stop`.

Held-out errors are nearly monotone along the path, not exactly. So they are computed at ``_STOPS``
first. Bisection finds where a limit or a target is passed, and interpolation where the groups
change sides.

Held-out figures flatter the stop that was chosen by them. What is published is
:attr:`Stop.honest`: each fold is judged at the stop that the other folds choose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np

from fairpca._cv.cross_fit import CrossFit, Curve
from fairpca._cv.held_out import BASELINE, RELIABLE, HeldOut
from fairpca._cv.leave_out import LeaveOut
from fairpca._cv.path import path_of
from fairpca._moments.operand import Operand
from fairpca._moments.tolerances import moment_noise
from fairpca._problems.problems import PLAIN_PCA, FairProblem
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._solvers import solve
from fairpca._typing import Codes, Mask

_STOPS = np.linspace(0.0, 1.0, 5)  # where held-out errors are computed first
_HALVINGS = 10  # bisections that locate a limit to a thousandth of the distance between two stops
_INTERPOLATIONS = 2  # steps towards parity; held-out errors are nearly linear between two stops
_NEAR_PARITY = 0.02  # a disparity below this share of PCA's is noise of the folds


@dataclass(frozen=True)
class Stop:
    """The stop that was chosen."""

    curve: Curve
    chosen: int  # the number of the stop on the curve
    of_folds: Codes  # for each fold, the number of the stop that the other folds choose

    @property
    def stop(self) -> float:
        """The stop itself: 0 is PCA, 1 the end of the path."""
        return float(self.curve.stops[self.chosen])

    @property
    def honest(self) -> HeldOut:
        """Sums for PCA, and for each fold at the stop that the other folds choose."""
        return self.curve.held_out.judged_at(self.of_folds, self.chosen)


def solve_by_folds(
    problem: FairProblem,
    folds: LeaveOut,
    operand: Operand,
    rank: int,
    relative_errors: bool,
    tol: float,
) -> tuple[Solution, Stop]:
    """The projection for all rows, at the stop that is best for held-out rows.

    The bound proves only that the projection is optimal at its stop.
    """
    pca = solve(PLAIN_PCA, operand, rank, tol)
    path = path_of(replace(problem, max_group_increase=inf), pca, operand, tol)
    cross_fit = CrossFit(folds, path, relative_errors)
    if pca.pca.errors.max() <= moment_noise(operand.traces):
        curve = cross_fit.at([])  # PCA loses nothing, and rounding must not decide
    elif worst_off_decides(problem):
        curve = _up_to_parity(cross_fit)
    else:
        curve = _around_limits(cross_fit, problem)
    stop = chosen_stop(curve, problem)
    solution = solve(path.at(stop.stop), operand, rank, tol, pca)
    n_eigensolves = pca.n_eigensolves + cross_fit.n_eigensolves + solution.n_eigensolves
    status = Status.NO_GAIN if stop.stop == 0 else Status.CROSS_VALIDATED
    return replace(solution, status=status, n_eigensolves=n_eigensolves), stop


def chosen_stop(
    curve: Curve, problem: FairProblem, gate: float = RELIABLE, reliable: float = RELIABLE
) -> Stop:
    """The stop that all folds choose together, and the one that the others choose for each fold.

    Where the worst-off group decides, PCA is left only if two things hold of the group that PCA
    serves worst: at the stop chosen it gains more than ``gate`` corrected standard errors, and at
    the stops that the other folds choose more than ``reliable`` of them
    (:meth:`HeldOut.gain_t`). The first sum is flattered by the choice, the second is not.
    """
    nowhere = np.full(len(curve.held_out.errors), BASELINE)
    chosen = choose(curve, problem, gate)
    if chosen == BASELINE:
        return Stop(curve, BASELINE, nowhere)

    def chosen_by(others: HeldOut) -> int:
        return choose(replace(curve, held_out=others), problem, gate, leave=True)

    stop = Stop(curve, chosen, curve.held_out.choices(chosen_by))
    if worst_off_decides(problem):
        gain = stop.honest.gain_t(curve.sides.compared)
        if gain <= reliable:
            return Stop(curve, BASELINE, nowhere)
    return stop


def choose(
    curve: Curve, problem: FairProblem, gate: float = RELIABLE, *, leave: bool = False
) -> int:
    """The best stop; told to ``leave`` PCA, it is PCA only where no other stop is allowed."""
    if worst_off_decides(problem):
        return _best_for_worst_off(curve, gate, leave)
    D = curve.disparity
    allowed = _allowed(curve, problem)
    if leave and allowed[1:].any():
        allowed[BASELINE] = False
    fair_enough = ((problem.max_disparity or 0.0) >= D) & allowed
    if fair_enough.any():
        return int(fair_enough.argmax())
    return int(np.where(allowed, D, inf).argmin())


def worst_off_decides(problem: FairProblem) -> bool:
    """Whether the worst-off group alone decides."""
    unlimited = problem.max_error_increase == problem.max_group_increase == inf
    return problem.constraint == "efficient" and not problem.max_disparity and unlimited


def _best_for_worst_off(curve: Curve, gate: float, leave: bool) -> int:
    """The best stop for the worst-off group, among those at which it gains beyond chance.

    A stop counts if the group that PCA serves worst gains more than ``gate`` corrected standard
    errors there. Of these stops, the best has the smallest largest group error, after adding one
    uncorrected standard error of its change to each error. Of the stops beyond parity only the
    first is eligible; unless the projection jumps it lies close to parity.
    """
    compared = curve.sides.compared
    held_out = curve.held_out
    worst = held_out.worst_off(compared)
    corrected = held_out.standard_error(lambda totals: totals.changes[:, worst])
    beyond = np.logical_or.accumulate(curve.disparity <= 0)
    eligible = np.append(False, ~beyond[:-1])
    certain = eligible & (-held_out.totals.changes[:, worst] > gate * corrected)
    if certain.any() or not leave:
        eligible = certain
    if not eligible.any():
        return min(1, len(curve.stops) - 1) if leave else BASELINE
    usual = held_out.standard_error(lambda totals: totals.changes, corrected=False)
    cautious = (held_out.totals.group_errors + usual)[:, compared].max(axis=1)
    return int(np.where(eligible, cautious, inf).argmin())


# -- limits ----------------------------------------------------------------------------------------


def _allowed(curve: Curve, problem: FairProblem) -> Mask:
    """The stops before the first that exceeds a limit."""
    return ~np.logical_or.accumulate(_exceeds(curve, problem))


@np.errstate(over="ignore")  # a limit so large that it overflows is no limit
def _exceeds(curve: Curve, problem: FairProblem) -> Mask:
    """Whether each stop exceeds a limit; PCA never does."""
    totals = curve.held_out.totals
    errors = totals.group_errors[:, curve.sides.compared]
    exceeds = np.zeros(len(errors), bool)
    if isfinite(problem.max_error_increase):
        R = totals.overall
        exceeds |= (1 + problem.max_error_increase) * R[BASELINE] < R
    if isfinite(problem.max_group_increase):
        exceeds |= (errors > (1 + problem.max_group_increase) * errors[BASELINE]).any(axis=1)
    if problem.constraint == "no_worse":
        largest = errors.max(axis=1)
        exceeds |= largest > largest[BASELINE]
    exceeds[BASELINE] = False
    return exceeds


# -- where to look ------------------------------------------------------------------------------


def _up_to_parity(cross_fit: CrossFit) -> Curve:
    """Held-out errors along the path, with more stops near where parity is first passed."""
    curve = cross_fit.at(_STOPS)
    for _ in range(_INTERPOLATIONS):
        D = curve.disparity
        stops = curve.stops
        first = int((D <= 0).argmax())
        if D[first] > 0 or first == 0:
            break
        if np.abs(D[first - 1 : first + 1]).min() <= _NEAR_PARITY * D[BASELINE]:
            break
        share = D[first - 1] / (D[first - 1] - D[first])
        curve = cross_fit.at([stops[first - 1] + share * (stops[first] - stops[first - 1])])
    return curve


def _around_limits(cross_fit: CrossFit, problem: FairProblem) -> Curve:
    """Held-out errors with more stops near the limits, and near the least disparity."""

    def exceeds(curve: Curve) -> Mask:
        return _exceeds(curve, problem)

    def fair(curve: Curve) -> Mask:
        return np.asarray(curve.disparity <= (problem.max_disparity or 0.0))

    curve = _locate(cross_fit, cross_fit.at(_STOPS), exceeds)
    curve = _locate(cross_fit, curve, lambda curve: fair(curve) | exceeds(curve))
    if (fair(curve) & _allowed(curve, problem)).any():
        return curve
    best = choose(curve, problem)
    near = curve.stops[max(best - 1, 0) : best + 2]
    return cross_fit.at((near[1:] + near[:-1]) / 2)


def _locate(cross_fit: CrossFit, curve: Curve, passed: Callable[[Curve], Mask]) -> Curve:
    """Held-out errors with more stops near the first one that is ``passed``, by bisection."""
    for _ in range(_HALVINGS):
        where = passed(curve)
        first = int(where.argmax())
        if not where[first] or first == 0:
            break
        curve = cross_fit.at([curve.stops[first - 1 : first + 1].mean()])
    return curve
