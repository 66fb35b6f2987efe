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

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from fairpca._blas import parallel_map
from fairpca._cv.held_out import PCA, HeldOut, Intervals
from fairpca._cv.leave_out import Fold, LeaveOut
from fairpca._cv.path import FoldPath, Path, path_of
from fairpca._moments.operand import Operand
from fairpca._problems.problems import PLAIN_PCA, FairProblem
from fairpca._problems.solution import Solution, disparity
from fairpca._problems.status import Status
from fairpca._solvers import solve
from fairpca._typing import Array, Codes, Mask

_STOPS = np.linspace(0.0, 1.0, 5)  # where held-out errors are computed first
_HALVINGS = 10  # bisections that locate a limit to a thousandth of the distance between two stops
_INTERPOLATIONS = 2  # steps towards parity; held-out errors are nearly linear between two stops
_NEAR_PARITY = 0.02  # a disparity below this share of PCA's is noise of the folds
_GATE = 1.5  # a gain must exceed this many corrected standard errors, or PCA is kept


@dataclass
class CrossFit:
    """The held-out errors at stops, computed when they are asked for."""

    folds: LeaveOut
    path: Path
    relative_errors: bool  # whether errors are shares of each group's own variation
    n_eigensolves: int = 0
    _errors: dict[float, Array] = field(default_factory=dict)  # by stop
    _paths: dict[int, FoldPath] = field(default_factory=dict)  # those kept, by fold

    def at(self, stops: Iterable[float]) -> Curve:
        """Held-out errors at PCA, at these stops, and at those asked for before."""
        new = sorted({0.0, *map(float, stops)} - self._errors.keys())
        if new:
            self._measure(new)
        known = sorted(self._errors)
        errors = np.stack([self._errors[stop] for stop in known], axis=1)
        folds, path = self.folds, self.path
        held_out = HeldOut(errors, self._weights, self._variation, folds.odds, folds.repeats)
        if self.relative_errors:
            held_out = held_out.relative()
        sides = Sides(path.operand.compared, path.pca.harmed, path.pca.privileged)
        return Curve(np.array(known), held_out, sides)

    def _measure(self, stops: list[float]) -> None:
        """Fit all folds at these stops, and measure the rows left out."""
        self.n_eigensolves += self.path.prepare(stops)

        def measure(numbered: tuple[int, Fold]) -> tuple[Array, Array, Array, int]:
            number, fold = numbered
            path = self._path_of(number, fold)
            before = path.n_eigensolves
            errors, variation = fold.errors(path.bases(stops))
            return errors, fold.left_out.weights, variation, path.n_eigensolves - before

        found = list(parallel_map(measure, enumerate(self.folds), self.folds.n_threads))
        of_folds, weights, variation, counts = zip(*found, strict=True)
        self._weights, self._variation = np.array(weights), np.array(variation)
        self._errors |= dict(zip(stops, np.array(of_folds).swapaxes(0, 1), strict=True))
        self.n_eigensolves += sum(counts)

    def _path_of(self, number: int, fold: Fold) -> FoldPath:
        """The path of a fold, kept as long as the fold is."""
        path = self._paths.get(number)
        if path is None:
            operand = fold.operand.relative() if self.relative_errors else fold.operand
            path = self.path.of_fold(operand)
        if self.folds.are_kept:
            self._paths[number] = path
        return path


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
    path = path_of(replace(problem, max_group_increase=inf), pca, operand, tol)
    cross_fit = CrossFit(folds, path, relative_errors)
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
    solution = solve(path.at(stop.stop), operand, rank, tol, pca)
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
    for stops in one_by_one if len(cross_fit.path.operand.shares) == 2 else at_once:
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
