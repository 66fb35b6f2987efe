"""One problem that is linear in the group errors, solved and certified by its dual.

Letters as in the paper: ``C_g`` second moments of group g about the overall mean, ``p_g`` its
share, ``U`` (d x r) orthonormal, ``R_g(U) = tr C_g - tr U'C_g U``, overall error
``R = sum_g p_g R_g``.

For prices ``y`` of the rows of a :class:`~fairpca._problems.linear.LinearProblem`, with
``w = c + A'y``::

    q(y) = min_U w'R(U) - b'y  =  w'tr C - (sum of the r largest eigenvalues of sum_g w_g C_g) - b'y

bounds the objective of every rank-r projection from below: one eigen-solve certifies. ``q`` is
concave; its maximum is the value of the relaxation ``0 <= P <= I``, ``tr P = r`` of ``P = U U'``.

The quick way is tried first: descend from a projection near the answer, such as PCA, and see
whether the multipliers found there prove it to be the best. They do wherever the relaxation is
tight and no eigenvalues cross. Otherwise the central path leads to the maximum of ``q``, and
recovery to a projection near it. Where the relaxation is not tight, the gap between value and bound
is at least the price of asking for rank r.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import inf, nan

import numpy as np

from fairpca._moments.tolerances import KEPT
from fairpca._problems.linear import LinearProblem
from fairpca._problems.problems import FairProblem
from fairpca._problems.solution import Objective, Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Spaces, solve_pca
from fairpca._solvers.many_groups.barrier import balanced, follow
from fairpca._solvers.many_groups.descent import Candidate, descend
from fairpca._solvers.many_groups.recovery import recover, search_elsewhere
from fairpca._solvers.many_groups.workspace import MAX_STEPS, Proof, Workspace
from fairpca._typing import Array


@dataclass(frozen=True)
class Minimum:
    """The best projection found for a problem that is linear in the group errors, and its proof."""

    basis: Array  # d x r
    errors: Array
    value: float  # the objective
    bound: float  # its proven lower bound
    prices: Array  # prices of the rows, which prove the bound
    weights: Array  # weights of the groups at these prices
    violation: float  # largest amount by which a row is violated

    def at(self, other: Minimum | Solution, value: float) -> Minimum:
        """The same proof, for another projection with this value of the objective."""
        basis = other.basis
        errors = other.errors
        violation = other.violation
        return replace(self, basis=basis, errors=errors, violation=violation, value=value)

    def solution(
        self, work: Workspace, objective: Objective, status: Status, error_gap: float | None = None
    ) -> Solution:
        """The form in which every solver returns its answer.

        ``error_gap`` says how far the overall error can be from the least one; it defaults to the
        gap of the objective.
        """
        if error_gap is None:
            error_gap = self.value - self.bound
        solution = work.spaces.solution(
            Point(self.weights, self.basis, self.errors, nan),
            status,
            objective,
            self.value,
            self.bound,
            extras={"error_gap_": max(error_gap, 0.0)},
        )
        return replace(solution, violation=self.violation)


def minimise(
    work: Workspace,
    problem: LinearProblem,
    tol: float,
    basis: Array | None = None,
    prices: Array | None = None,
    *,
    ceiling: float = inf,
    nearby_only: bool = False,
) -> Minimum:
    """Solve one problem that is linear in the group errors.

    ``tol`` is the gap to reach, relative to the value, or to the unit where the value may be zero.
    The search starts from the prices and from the basis, which must lie in the span. Without a
    basis it starts from the best projection at these prices, without prices from PCA. It ends once
    the bound passes the ceiling. With ``nearby_only`` the optimum next to the start is good enough,
    proven or not.
    """
    problem = problem.in_units(work.unit)
    ceiling = ceiling / work.unit
    if basis is not None:
        inside = work.basis.T @ basis
    elif prices is not None:
        inside = work.leading(problem.weights(prices))
    else:
        inside = work.leading(work.spaces.shares)
    if prices is None:
        prices = problem.start
    found, proof = _nearby(work, problem, tol, inside, prices)
    if not (nearby_only or proof.bound > ceiling or _proven(work, problem, found, proof, tol)):
        found, proof = _improved(work, problem, tol, ceiling, found, proof)
    return Minimum(
        basis=work.basis @ found.basis,
        errors=found.errors * work.unit,
        value=found.value * work.unit,
        bound=proof.bound * work.unit,
        prices=proof.prices,
        weights=problem.weights(proof.prices),
        violation=found.violation * work.unit,
    )


def minimise_in_face(
    work: Workspace, problem: LinearProblem, weights: Array, tol: float
) -> Minimum | None:
    """Solve a problem among the projections that are optimal for given weights of the groups.

    None if there is only one such projection, because eigenvalue r of ``W`` is simple.
    """
    fixed, inner = work.face(weights)
    if inner.basis.shape[1] == inner.rank:
        return None
    found = minimise(inner, problem, tol)
    return replace(found, basis=np.hstack([work.basis @ fixed, found.basis]))


def _allowed(work: Workspace, problem: LinearProblem, value: float, tol: float) -> float:
    """The gap at which to end, relative to what is minimised unless that may vanish."""
    scale = abs(value)
    if len(problem.level_cost) == 2:
        scale = 1.0
    return max(tol * scale, KEPT * work.noise)


def _proven(
    work: Workspace, problem: LinearProblem, found: Candidate, proof: Proof, tol: float
) -> bool:
    kept = found.violation <= work.kept
    return kept and found.value - proof.bound <= _allowed(work, problem, found.value, tol)


def _nearby(
    work: Workspace, problem: LinearProblem, tol: float, basis: Array, prices: Array
) -> tuple[Candidate, Proof]:
    """The end of the descent from a start, and the bound that its multipliers prove."""
    for _ in range(MAX_STEPS):
        found = descend(basis, work, problem, prices)
        proof = _priced(work, problem, found.prices, certain=False)
        if proof.reach is None or _proven(work, problem, found, proof, tol):
            break
        if not work.grow(proof.reach):
            break
        basis = work.padded(found.basis)
        prices = found.prices
    if not proof.certain:
        proof = _priced(work, problem, found.prices)
    return found, proof


def _improved(
    work: Workspace,
    problem: LinearProblem,
    tol: float,
    ceiling: float,
    nearby: Candidate,
    known: Proof,
) -> tuple[Candidate, Proof]:
    """The end of the central path and a projection near it, or what is known if that is better."""
    try:
        centre, prices, proof = follow(work, problem, tol, ceiling)
        proof = max(known, proof, key=lambda proof: proof.bound)
        if proof.bound > ceiling:
            return nearby, proof
        found = recover(work, problem, centre, prices)
        if not _proven(work, problem, found, proof, tol):
            # Where an active row has the price zero, the path approaches its end slowly, whereas
            # the multipliers of the descent are exact.
            proof = max(proof, _priced(work, problem, found.prices), key=lambda proof: proof.bound)
            target = proof.bound + _allowed(work, problem, found.value, tol)
            found = search_elsewhere(work, problem, centre, prices, found, target)
    except (np.linalg.LinAlgError, ArithmeticError):  # the path left the range of the arithmetic
        return nearby, known
    nearby = replace(nearby, basis=work.padded(nearby.basis))
    return found.better(nearby, work.kept), proof


def _priced(
    work: Workspace, problem: LinearProblem, prices: Array, *, certain: bool = True
) -> Proof:
    """Make multipliers feasible as prices, and compute the bound that they prove."""
    prices = balanced(problem, np.where(problem.equal, prices, np.maximum(prices, 0.0)))
    if (prices < 0.0)[~problem.equal].any():
        return Proof(problem.start, -inf)
    return work.prove(problem, prices, certain=certain)


class FrontierOfMany(ABC):
    """The path from PCA, at stop 0, towards fairer projections of more than two groups.

    ``like`` is a frontier of similar matrices: the search for a stop starts from the prices found
    there for the same stop.
    """

    @property
    @abstractmethod
    def end(self) -> Solution:
        """The projection where the path ends, at stop 1."""

    @abstractmethod
    def part(self, stop: float) -> Solution:
        """The projection at a stop."""

    def basis(self, stop: float) -> Array:
        """A basis of the projection at a stop."""
        return self.part(stop).basis

    def __init__(self, spaces: Spaces, tol: float, like: FrontierOfMany | None = None) -> None:
        self.prices: dict[float, Array] = {}  # where the search for each stop ended
        self._known: dict[float, Array] = {}  # where it ended on a similar frontier
        if like is not None:
            self._known = like.prices
        self.pca = replace(solve_pca(spaces), alpha=nan, extras={"error_gap_": 0.0})
        self.work = Workspace(spaces)
        self.tol = tol
        self.shares = spaces.shares
        self.compared = spaces.compared
        self.rounding = self.work.rounding
        self.highest = self.largest(self.pca.errors)
        self._near: tuple[Array | None, ...] = ()  # basis and prices where the last search ended

    def largest(self, errors: Array) -> float:
        """The largest error of a group that is compared."""
        return float(errors[self.compared].max())

    def spread(self, errors: Array) -> float:
        """The largest error minus the smallest, of the groups compared."""
        return float(np.ptp(errors[self.compared]))

    def is_fair(self, errors: Array, max_spread: float) -> bool:
        """Whether the spread is within the one allowed, or so small that the groups are equal."""
        return self.spread(errors) <= max(max_spread + self.rounding, self.work.parity)

    def largest_error_allowed(self, problem: FairProblem) -> float:
        """The overall error that a problem allows; infinite where no projection can exceed it."""
        limit = (1.0 + problem.max_error_increase) * float(self.shares @ self.pca.errors)
        if limit < float(self.shares @ self.work.spaces.traces):
            return limit
        return inf

    def group_errors_allowed(self, problem: FairProblem) -> Array:
        """The largest error that a problem allows each group; infinite if it limits no group."""
        traces = self.work.spaces.traces  # no error exceeds these
        errors = np.maximum(self.pca.errors, 0.0)  # rounding below zero must not become -inf
        with np.errstate(over="ignore", invalid="ignore"):
            limits = errors + problem.max_group_increase * errors
        limits = np.fmin(limits, traces)
        if (limits < traces).any():
            return limits
        return np.full_like(traces, inf)

    def _at_stop(self, stop: float, problem: LinearProblem) -> Minimum:
        """Least overall error at a stop, found from the prices known for it or the last result."""
        known = self._known.get(stop)
        if known is not None and known.shape == problem.limits.shape:
            self._near = None, known
        found = self._next(problem)
        self.prices[stop] = found.prices
        return found

    def _next(self, problem: LinearProblem, *, nearby_only: bool = False) -> Minimum:
        """Least overall error, found from the last result; the end if limits cannot be kept."""
        found = minimise(self.work, problem, self.tol, *self._near, nearby_only=nearby_only)
        if nearby_only and found.violation > self.rounding:
            return self._next(problem)
        self._near = found.basis, found.prices
        if found.violation > self.rounding:
            found = found.at(self.end, float(self.shares @ self.end.errors))
        return found
