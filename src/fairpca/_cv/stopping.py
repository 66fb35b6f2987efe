"""Where to stop on the way from PCA, judged by held-out rows.

Limits and targets are those of :class:`~fairpca._problems.problems.FairProblem`, applied to
held-out errors:

* the walk ends where the overall error exceeds its budget, or (``"no_worse"``) where a group is
  worse off than the worst-off group was under PCA;
* before that, stop at the first place where the disparity is small enough; if there is none, at
  the least disparity;
* ``"efficient"`` without a budget: stop where the worst-off group is best off, at the latest where
  the groups change sides.

Held-out errors are nearly monotone along the way, not exactly. So they are computed at ``_STOPS``
first. Bisection finds where a limit or a target is passed, and interpolation where the groups
change sides.

Held-out figures flatter the stop that was chosen by them. What is published is
:attr:`Stop.honest`: each fold is judged at the stop that the other folds choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from fairpca._blas import parallel_map, single_threaded_blas
from fairpca._cv.held_out import PCA, HeldOut, Intervals
from fairpca._cv.leave_out import Fold, LeaveOut
from fairpca._moments.operand import Operand
from fairpca._problems.problems import PLAIN_PCA, FairProblem
from fairpca._problems.solution import Solution, disparity
from fairpca._problems.status import Status
from fairpca._solvers import solve, spaces_of
from fairpca._solvers.many_groups.pareto import EfficientFrontier
from fairpca._solvers.many_groups.spread import SpreadFrontier
from fairpca._typing import Array, Codes, Mask

_STOPS = np.linspace(0.0, 1.0, 5)  # where held-out errors are computed first
_HALVINGS = 10  # bisections that locate a limit to a thousandth of the distance between two stops
_INTERPOLATIONS = 2  # steps towards parity; held-out errors are nearly linear between two stops
_NEAR_PARITY = 0.02  # a disparity below this share of PCA's is noise of the folds
_GATE = 1.5  # a gain must exceed this many corrected standard errors, or PCA is kept


@dataclass(frozen=True)
class Walk:
    """The way that a problem prescribes from the PCA of all rows, stop 0, to its end, stop 1.

    With two groups alpha falls evenly from 1 to where the harmed group is at its best
    (``constraint="efficient"``) or to 0. All rows decide which group is harmed, also for the folds.
    With more groups the largest error or the spread falls evenly.

    Budgets of the problem do not apply: stops take their place. A limit for each group makes the
    way of the spread end sooner.
    """

    problem: FairProblem
    pca: Solution
    operand: Operand  # the second moments of all rows
    tol: float

    def at(self, stop: float) -> FairProblem:
        """The problem whose solution is the projection at this stop."""
        if stop == 0:
            return PLAIN_PCA
        if len(self.operand.shares) > 2:
            efficient = self.problem.constraint == "efficient"
            return FairProblem(constraint="efficient" if efficient else "parity", fraction=stop)
        return FairProblem(alpha=self._alpha(stop))

    def bases(self, operand: Operand, rank: int, stops: Sequence[float]) -> tuple[list[Array], int]:
        """The projections at these stops for other rows, and how many eigensolves they took.

        For more than two groups each search starts where the one before it ended, so take the
        stops in order.
        """
        tol = max(self.tol, 1e-4)  # held-out errors are far less certain than this
        with single_threaded_blas():
            spaces = spaces_of(operand.compact, rank)
            if len(self.operand.shares) == 2:
                towards_parity = np.zeros(2)
                towards_parity[[self.pca.privileged, self.pca.harmed]] = -1.0, 1.0
                alphas = [self._alpha(stop) for stop in stops]
                line = [a * spaces.shares + (1 - a) * towards_parity for a in alphas]
                bases = [spaces.top(weights).basis for weights in line]
            elif self.problem.constraint == "efficient":
                efficient = EfficientFrontier(spaces, tol)
                bases = [efficient.part(stop).basis for stop in stops]
            else:
                way = FairProblem(max_group_increase=self.problem.max_group_increase)
                frontier = SpreadFrontier(spaces, way, tol)
                bases = [frontier.part(stop).basis for stop in stops]
        frame = operand.frame
        return (bases if frame is None else [frame @ U for U in bases]), spaces.n_eigensolves

    def _alpha(self, stop: float) -> float:
        p_A = float(self.operand.shares[self.pca.privileged])
        end = 1.0 / (1.0 + p_A) if self.problem.constraint == "efficient" else 0.0
        return 1.0 - stop * (1.0 - end)


@dataclass
class CrossFit:
    """The held-out errors at stops, computed when they are asked for."""

    folds: LeaveOut
    walk: Walk
    rank: int
    relative_errors: bool  # whether errors are shares of each group's own variation
    n_eigensolves: int = 0
    _errors: dict[float, Array] = field(default_factory=dict)  # by stop

    def at(self, stops: Iterable[float]) -> Curve:
        """Held-out errors at PCA, at these stops, and at those asked for before."""
        folds, walk = self.folds, self.walk
        new = sorted({0.0, *map(float, stops)} - self._errors.keys())

        def measure(fold: Fold) -> tuple[Array, Array, Array, int]:
            operand = fold.operand.relative() if self.relative_errors else fold.operand
            bases, n_eigensolves = walk.bases(operand, self.rank, new)
            errors, variation = fold.left_out.errors(bases, fold.mean)
            return errors, fold.left_out.weights, variation, n_eigensolves

        if new:
            found = list(parallel_map(measure, folds, folds.n_threads))
            of_folds, weights, variation, counts = zip(*found, strict=True)
            self._weights, self._variation = np.array(weights), np.array(variation)
            self._errors |= dict(zip(new, np.array(of_folds).swapaxes(0, 1), strict=True))
            self.n_eigensolves += sum(counts)
        known = sorted(self._errors)
        errors = np.stack([self._errors[stop] for stop in known], axis=1)
        held_out = HeldOut(errors, self._weights, self._variation, folds.odds, folds.repeats)
        sides = Sides(walk.operand.compared, walk.pca.harmed, walk.pca.privileged)
        return Curve(
            np.array(known), held_out.relative() if self.relative_errors else held_out, sides
        )


class Sides(NamedTuple):
    """Which groups are compared, and which of them PCA of all rows treats worst and best."""

    compared: Mask
    harmed: int
    privileged: int


def disparity_interval(held_out: HeldOut, projection: int, sides: Sides) -> Intervals:
    """The interval of the disparity under one of the projections."""
    if np.count_nonzero(sides.compared) > 2:
        return held_out.spread_interval(projection, sides.compared)
    return held_out.interval(lambda totals: disparity(totals.group_errors[projection], *sides))


@dataclass(frozen=True)
class Curve:
    """Held-out errors along the way: the projections of ``held_out`` are the stops, PCA first."""

    stops: Array
    held_out: HeldOut
    sides: Sides

    @property
    def disparity(self) -> Array:
        """The held-out disparity at each stop, of shape (n_stops,)."""
        return disparity(self.held_out.totals.group_errors, *self.sides)


@dataclass(frozen=True)
class Stop:
    """The stop that was chosen."""

    curve: Curve
    chosen: int  # the number of the stop on the curve
    of_folds: Codes  # for each fold, the number of the stop that the other folds choose
    stop: float  # the stop itself: 0 is PCA, 1 the end of the way
    honest: HeldOut  # sums for PCA, and for each fold at the stop that the other folds choose


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
    walk = Walk(replace(problem, max_group_increase=inf), pca, operand, tol)
    cross_fit = CrossFit(folds, walk, rank, relative_errors)
    if _worst_off_decides(problem):
        curve = _up_to_parity(cross_fit)
    else:
        curve = _around_limits(cross_fit, problem)
    held_out = curve.held_out
    chosen, of_folds = choose(curve, problem), np.full(len(held_out.errors), PCA)
    if chosen != PCA:  # the folds choose a stop again, but not whether to leave PCA
        of_folds = held_out.choices(
            lambda others: choose(replace(curve, held_out=others), problem, gate=False)
        )
    honest = held_out.judged_at(of_folds, chosen)
    stop = Stop(curve, chosen, of_folds, float(curve.stops[chosen]), honest)
    solution = solve(walk.at(stop.stop), operand, rank, tol, pca)
    solution = replace(
        solution,
        status=Status.CROSS_VALIDATED if stop.stop > 0 else Status.NO_GAIN,
        n_eigensolves=pca.n_eigensolves + cross_fit.n_eigensolves + solution.n_eigensolves,
    )
    return solution, stop


def _around_limits(cross_fit: CrossFit, problem: FairProblem) -> Curve:
    """Held-out errors with more stops near the limits, and near the least disparity."""

    def fair(curve: Curve) -> Mask:
        return np.asarray(curve.disparity <= (problem.max_disparity or 0.0))

    curve = _locate(cross_fit, cross_fit.at(_STOPS), lambda c: _exceeds(c, problem))
    curve = _locate(cross_fit, curve, lambda c: fair(c) | _exceeds(c, problem))
    if (fair(curve) & _allowed(curve, problem)).any():
        return curve
    best = choose(curve, problem)
    near = curve.stops[max(best - 1, 0) : best + 2]
    return cross_fit.at((near[1:] + near[:-1]) / 2)


def choose(curve: Curve, problem: FairProblem, gate: bool = True) -> int:
    """The best stop; without the ``gate``, PCA is chosen only if no other stop is allowed."""
    if _worst_off_decides(problem):
        return _best_for_worst_off(curve, gate)
    D, allowed = curve.disparity, _allowed(curve, problem)
    if not gate and allowed[1:].any():
        allowed[PCA] = False
    fair_enough = ((problem.max_disparity or 0.0) >= D) & allowed
    if fair_enough.any():
        return int(fair_enough.argmax())
    return int(np.where(allowed, D, inf).argmin())


def _worst_off_decides(problem: FairProblem) -> bool:
    """Whether the worst-off group alone decides."""
    unlimited = problem.max_error_increase == problem.max_group_increase == inf
    return problem.constraint == "efficient" and not problem.max_disparity and unlimited


def _best_for_worst_off(curve: Curve, gate: bool) -> int:
    """The best stop for the worst-off group, among those at which it gains beyond chance.

    PCA is kept unless the group that it serves worst gains more than ``_GATE`` corrected standard
    errors. Among the stops that pass, the best has the smallest largest group error, after adding
    one uncorrected standard error of its change to each error. Both numbers were tuned on the
    public tables "to tune on" (benchmarks/held_out). Past parity only the first stop is
    eligible; it lies far past parity only where the projection jumps.
    """
    compared, held_out = curve.sides.compared, curve.held_out
    errors = curve.held_out.totals.group_errors[:, compared]
    usual, corrected = (
        held_out.standard_error(lambda totals: totals.changes, corrected=corrected)[:, compared]
        for corrected in (False, True)
    )
    worst = int(errors[PCA].argmax())
    gains = errors[PCA, worst] - errors[:, worst]
    beyond = np.logical_or.accumulate(curve.disparity <= 0)
    eligible = np.append(False, ~beyond[:-1])
    certain = eligible & (gains > _GATE * corrected[:, worst])
    if gate or certain.any():
        eligible = certain
    if not eligible.any():
        return PCA if gate else min(1, len(errors) - 1)
    cautious = (errors + usual).max(axis=1)
    return int(np.where(eligible, cautious, inf).argmin())


def _allowed(curve: Curve, problem: FairProblem) -> Mask:
    """The stops before the first that exceeds a limit."""
    return ~np.logical_or.accumulate(_exceeds(curve, problem))


@np.errstate(over="ignore")  # a very large limit is none
def _exceeds(curve: Curve, problem: FairProblem) -> Mask:
    """Whether each stop exceeds a limit; PCA never does."""
    R = curve.held_out.totals.overall
    limited = isfinite(problem.max_error_increase)
    exceeds = (R[PCA] * (1 + problem.max_error_increase) if limited else inf) < R
    errors = curve.held_out.totals.group_errors[:, curve.sides.compared]
    if isfinite(problem.max_group_increase):
        exceeds |= (errors > (1 + problem.max_group_increase) * errors[PCA]).any(axis=1)
    if problem.constraint == "no_worse":
        worst = errors.max(axis=1)
        exceeds |= worst > worst[PCA]
    exceeds[PCA] = False
    return np.asarray(exceeds)


def _up_to_parity(cross_fit: CrossFit) -> Curve:
    """Held-out errors up to where parity is first passed, with a few more stops near there."""
    one_by_one, at_once = _STOPS[1:, np.newaxis], [_STOPS]
    # More than two groups never change sides, and their searches share the ends of the way.
    for stops in one_by_one if len(cross_fit.walk.operand.shares) == 2 else at_once:
        curve = cross_fit.at(stops)
        if curve.disparity[-1] <= 0:
            break
    for _ in range(_INTERPOLATIONS):
        D, stops = curve.disparity, curve.stops
        first = int((D <= 0).argmax())
        if D[first] > 0 or first == 0:
            break
        if np.abs(D[first - 1 : first + 1]).min() <= _NEAR_PARITY * D[PCA]:
            break
        part = D[first - 1] / (D[first - 1] - D[first])
        curve = cross_fit.at([stops[first - 1] + part * (stops[first] - stops[first - 1])])
    return curve


def _locate(cross_fit: CrossFit, curve: Curve, passed: Callable[[Curve], Mask]) -> Curve:
    """Held-out errors with more stops near the first one that is ``passed``, by bisection."""
    for _ in range(_HALVINGS):
        where = passed(curve)
        first = int(where.argmax())
        if not where[first] or first == 0:
            break
        curve = cross_fit.at([curve.stops[first - 1 : first + 1].mean()])
    return curve
