"""The worse-off of two groups made as well off as possible: exactly, or as first published.

========  ==================================================================
symbol    meaning
========  ==================================================================
R_g(U)    error of group g
b_g       what group g is measured against, see below
w         ``(t, 1 - t)``, weights of the two groups, t in [0, 1]
phi(t)    ``min_U t (R_0 - b_0) + (1 - t)(R_1 - b_1)``: one top-r eigenproblem
========  ==================================================================

All criteria minimise ``max_g (R_g - b_g)``: the *loss* of Samadi et al. has ``b_g = min_V R_g(V)``,
the *error* has ``b_g = 0``, and to have the least explained *variance* as large as possible take
``b_g = tr C_g``.

Exact. ``phi`` is concave and ``phi(t) <= min_U max_g (R_g - b_g)`` for every t. Its slope is the
difference of the two groups at ``U(t)``, so the largest phi is at a root of that difference, with
equality of both sides there; or at an end, where one group is worse off even under a projection of
its own. ``gap``, the value found minus ``phi``, is therefore zero up to rounding.

Multiplicative weights (Samadi et al. 2018). Start from equal weights; in each of T rounds take the
best projection for the weights, then multiply each weight by ``exp(eta * value of its group)`` and
normalise. The published code compares the average P of the T projection matrices with the last one
and keeps that of the smaller largest value. An average of projections has no rank r, so the code
goes on with ``I - sqrt(I - P)``, of full rank; here the top-r eigenspace of P stands for it, and
that is also what is compared. The best ``phi`` of all rounds bounds what is left to gain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from fairpca._crossings import cross_slack
from fairpca._problems import Criterion, Status
from fairpca._roots import Sample
from fairpca._spectral import DenseFamily, Point, top_eigenvectors

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MinMaxSolution:
    """A projection, the groups' losses under it, and the weights that prove how good it is."""

    basis: Array
    losses: Array
    weights: Array
    status: Status
    gap: float
    decisive: tuple[Point, ...]

    def lift(self, V: Array, slack: float) -> MinMaxSolution:
        """The same solution after ``x -> V x``, its gap known up to ``slack``."""
        return replace(self, basis=V @ self.basis, gap=self.gap + slack, decisive=())


class _Balance:
    """Two groups of a family, compared by a criterion."""

    def __init__(self, family: DenseFamily, criterion: Criterion) -> None:
        self.family = family
        self.own = (self.at(1.0), self.at(0.0))
        self.least = np.array([self.own[0].errors[0], self.own[1].errors[1]])
        self.offsets = {
            "loss": self.least,
            "error": np.zeros(2),
            "variance": family.traces,
        }[criterion]

    def at(self, t: float) -> Point:
        """The best projection for weights (t, 1 - t); at the ends ties go to the other group."""
        weights = np.array([t, 1.0 - t])
        return self.family.top(weights, weights[::-1] if t in (0.0, 1.0) else None)

    def values(self, errors: Array) -> Array:
        """What is to be made small, of each group."""
        return np.asarray(errors - self.offsets)

    def difference(self, errors: Array) -> float:
        """Group 0 minus group 1: falls as t rises."""
        first, second = self.values(errors)
        return float(first - second)

    def phi(self, point: Point) -> float:
        """The bound that the projection for some weights gives."""
        return point.bound - float(point.weights @ self.offsets)

    def solution(
        self, basis: Array, errors: Array, bound: Point, status: Status, *decisive: Point
    ) -> MinMaxSolution:
        """Package a projection with the gap that ``bound`` leaves."""
        return MinMaxSolution(
            basis=basis,
            losses=errors - self.least,
            weights=bound.weights,
            status=status,
            gap=float(self.values(errors).max()) - self.phi(bound),
            decisive=(*self.own, *decisive),
        )


def solve_minmax(family: DenseFamily, criterion: Criterion) -> MinMaxSolution:
    """Find the largest phi by root finding."""
    balance = _Balance(family, criterion)
    below, above = (
        Sample(t, balance.difference(point.errors), point)
        for t, point in zip((1.0, 0.0), balance.own, strict=True)
    )
    for end, excess in ((below, below.value), (above, -above.value)):
        if excess >= -family.rounding:
            equal = excess <= family.rounding
            status = Status.GROUPS_EQUAL if equal else Status.ONE_GROUP_DECIDES
            return balance.solution(end.payload.basis, end.payload.errors, end.payload, status)
    point, crossing = cross_slack(family, balance.at, balance.difference, below, above)
    return balance.solution(
        point.basis,
        point.errors,
        crossing.at.payload,
        Status.GROUPS_EQUAL,
        crossing.below.payload,
        crossing.above.payload,
    )


def solve_multiplicative_weights(
    family: DenseFamily, criterion: Criterion, eta: float, n_iter: int
) -> MinMaxSolution:
    """Run the published iteration for ``n_iter`` rounds."""
    balance = _Balance(family, criterion)
    logarithms = np.zeros(2)  # of the weights: a weight that underflowed would never come back
    average = np.zeros((family.n_features, family.n_features))
    rounds: list[Point] = []
    for _ in range(n_iter):
        last = family.top(softmax(logarithms))
        rounds.append(last)
        average += last.basis @ last.basis.T / n_iter
        logarithms += eta * balance.values(last.errors)
    mean_basis = top_eigenvectors(average, family.rank)[1]
    candidates = [(mean_basis, family.errors(mean_basis)), (last.basis, last.errors)]
    basis, errors = min(candidates, key=lambda found: float(balance.values(found[1]).max()))
    bound = max(rounds, key=balance.phi)
    return balance.solution(basis, errors, bound, Status.ITERATED, rounds[0], last, bound)
