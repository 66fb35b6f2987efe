"""The worst-off group made as well off as possible: exactly for two, or as first published.

========  ==================================================================
symbol    meaning
========  ==================================================================
R_g(U)    error of group g
b_g       what group g is measured against, see below
w         weights of the groups, not negative, of sum one; ``(t, 1 - t)`` for two
phi(w)    ``min_U sum_g w_g (R_g - b_g)``: one top-r eigenproblem
========  ==================================================================

All criteria minimise ``max_g (R_g - b_g)``: the *loss* of Samadi et al. has ``b_g = min_V R_g(V)``,
the *error* has ``b_g = 0``, and to have the least explained *variance* as large as possible take
``b_g = tr C_g``.

Exact, two groups. ``phi`` is concave and ``phi <= min_U max_g (R_g - b_g)`` for all weights. Its
slope in t is the difference of the two groups at ``U(t)``, so the largest phi is at a root of that
difference, with equality of both sides there; or at an end, where one group is worse off even under
a projection of its own. ``gap``, the value found minus ``phi``, is therefore zero up to rounding.

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

from fairpca._problems.fair import Criterion, Status
from fairpca._solvers.eigenspaces.operand import DenseFamily, Family, Point, top_eigenvectors
from fairpca._solvers.two_groups.crossing import cross_slack
from fairpca._solvers.two_groups.root import Sample
from fairpca._typing import Array


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


class Balance:
    """The groups of a family, compared by a criterion.

    ``own`` are the groups' own best projections, ``least`` their errors, ``offsets`` the ``b_g``.
    """

    def __init__(
        self,
        family: Family,
        criterion: Criterion,
        compared: NDArray[np.bool_],
        own: tuple[Point, ...] | None = None,
    ) -> None:
        self.family = family
        self.compared = compared
        k = len(family.shares)
        self.own = own or tuple(family.top(unit) for unit in np.eye(k))
        self.least = np.array([point.errors[g] for g, point in enumerate(self.own)])
        self.offsets = {
            "loss": self.least,
            "error": np.zeros(k),
            "variance": family.traces,
        }[criterion]

    def at(self, t: float) -> Point:
        """The best projection of two groups for weights (t, 1 - t)."""
        return self.family.top(np.array([t, 1.0 - t]))

    def values(self, errors: Array) -> Array:
        """What is to be made small, of each group."""
        return np.asarray(errors - self.offsets)

    def worst(self, errors: Array) -> float:
        """The largest of the values of the groups compared."""
        return float(self.values(errors)[self.compared].max())

    def difference(self, errors: Array) -> float:
        """Group 0 minus group 1 of two: falls as t rises."""
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
            gap=self.worst(errors) - self.phi(bound),
            decisive=(*self.own, *decisive),
        )


def solve_minmax(family: DenseFamily, criterion: Criterion) -> MinMaxSolution:
    """Find the largest phi for two groups by root finding."""
    # At the ends of the interval of t ties decide.
    own = tuple(family.top(unit, 1.0 - unit) for unit in np.eye(2))
    balance = Balance(family, criterion, np.ones(2, dtype=bool), own)
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
    family: DenseFamily,
    criterion: Criterion,
    compared: NDArray[np.bool_],
    eta: float,
    n_iter: int,
) -> MinMaxSolution:
    """Run the published iteration for ``n_iter`` rounds."""
    balance = Balance(family, criterion, compared)
    # Logarithms, because a weight that underflowed would never come back.
    logarithms = np.where(compared, 0.0, -np.inf)
    average = np.zeros((family.n_features, family.n_features))
    rounds: list[Point] = []
    for _ in range(n_iter):
        last = family.top(softmax(logarithms))
        rounds.append(last)
        average += last.basis @ last.basis.T / n_iter
        logarithms += eta * balance.values(last.errors)
    mean_basis = top_eigenvectors(average, family.rank)[1]
    candidates = [(mean_basis, family.errors(mean_basis)), (last.basis, last.errors)]
    basis, errors = min(candidates, key=lambda found: balance.worst(found[1]))
    bound = max(rounds, key=balance.phi)
    return balance.solution(basis, errors, bound, Status.ITERATED, rounds[0], last, bound)
