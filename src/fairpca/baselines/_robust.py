"""The least robust error of two groups, exactly, by branch and bound along the frontier.

The efficient frontier is the lower left edge of a convex set in the plane of both errors. Each of
its points is the best projection for weights ``(t, 1 - t)``, and ``S_0 - S_1`` is monotone in t. So
its root, if there is one, divides the frontier into two parts. On each of them the objective is one
increasing and *concave* function f of the errors, which may have several local minima.

Branch and bound finds the least one. The frontier between two of its points A and B lies in the
triangle of A, B and the corner C where their tangents meet, and a concave function is least at a
vertex: ``min(f(A), f(B), f(C))`` is a bound. The piece of the least bound is divided at the
point of the frontier that lies farthest from the chord AB, one eigenproblem. Each division shrinks
a triangle's height to about a quarter, so a few dozen prove the optimum to rounding.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np

from fairpca._moments.tolerances import ROUNDED, moment_noise
from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.two_groups.root import Line
from fairpca._typing import Array

_MAX_DIVISIONS = 1000  # a few dozen suffice; this many only where rounding hides the optimum


@dataclass(frozen=True)
class RobustProblem:
    """Minimise the error that can be promised to two groups whose moments are only nearly right.

    Vu et al. (2022) let the distribution of each group differ from the sample by at most ``eps_g``
    (in the Wasserstein distance of moments). The largest error that group g can then have is

        S_g = (sqrt(R_g) + sqrt(eps_g))^2

    and the objective is ``sum_g p_g S_g + lambda |S_A - S_B|``: the overall error and a price on
    the disparity, both at their worst. For ``lambda <= min(p_A, p_B)`` neither error is rewarded,
    so the optimum is Pareto efficient: on the frontier with non-negative weights.
    """

    radius: float  # eps_g = radius / sqrt(n_g), in squared units of the data
    penalty: float  # lambda as a fraction of the smaller share, from 0 to 1
    sizes: tuple[float, float] = (1.0, 1.0)  # n_g, the rows of both groups, or their total weight

    def worst(self, errors: Array) -> Array:
        """``S_g``."""
        radii = self.radius / np.sqrt(self.sizes)
        return np.asarray((np.sqrt(np.maximum(errors, 0.0)) + np.sqrt(radii)) ** 2)

    def measure(self, errors: Array, shares: Array) -> float:
        """The objective."""
        return self.side(errors, shares, int(self.worst(errors).argmax()))

    def side(self, errors: Array, shares: Array, worse: int) -> float:
        """The objective as if group ``worse`` were the one with the larger ``S_g``."""
        price = self.penalty * float(shares.min())
        weights = shares - price
        weights[worse] += 2 * price
        return float(weights @ self.worst(errors))


class Piece(NamedTuple):
    """The frontier between two points; no projection on it does better than ``bound``."""

    bound: float
    order: int  # breaks ties: the older piece comes first
    a: Point
    b: Point
    worse: int  # the group with the larger S_g


def solve_robust(spaces: Eigenspaces, problem: RobustProblem) -> Solution:
    """Find the least robust error of two groups."""

    def difference(_: float, errors: Array) -> float:
        worst = problem.worst(errors)
        return float(worst[0] - worst[1])

    best_for_0, best_for_1 = (spaces.top(unit, 1.0 - unit) for unit in np.eye(2))
    line = Line(spaces, spaces.top_of_two, difference, np.array([1.0, -1.0]))
    below, above = line.sample(1.0, best_for_0), line.sample(0.0, best_for_1)
    # Both ends of each part of the frontier, and its worse-off group.
    if below.value >= 0.0 or above.value <= 0.0:
        parts = [(best_for_0, best_for_1, 0 if below.value >= 0.0 else 1)]
    else:
        equal = line.cross(below, above).found
        parts = [(best_for_0, equal, 1), (equal, best_for_1, 0)]
    found, proof = _branch_and_bound(spaces, problem, parts)
    value = problem.measure(found.errors, spaces.shares)
    bound, rests_on = min(value, proof.bound), (found, proof.a, proof.b)
    extras = {"group_robust_errors_": problem.worst(found.errors)}
    return spaces.solution(
        found, Status.ROBUST, "robust", value, bound, rests_on=rests_on, extras=extras
    )


def _branch_and_bound(
    spaces: Eigenspaces, problem: RobustProblem, parts: list[tuple[Point, Point, int]]
) -> tuple[Point, Piece]:
    """The point of the least objective, and the piece of the least bound that was left."""

    def objective(point: Point) -> float:
        return problem.measure(point.errors, spaces.shares)

    def piece(a: Point, b: Point, worse: int, *corner: Array) -> Piece:
        vertices = (a.errors, b.errors, *corner)
        bound = min(problem.side(errors, spaces.shares, worse) for errors in vertices)
        return Piece(bound, next(order), a, b, worse)

    order = count()
    best = min((point for a, b, _ in parts for point in (a, b)), key=objective)
    pieces = sorted(piece(a, b, worse, _corner(a, b)) for a, b, worse in parts)
    for _ in range(_MAX_DIVISIONS):
        value = objective(best)
        # Rounding of the errors may matter much: the objective's slope is infinite at zero.
        noisy = problem.measure(np.maximum(best.errors, 0.0) + spaces.rounding, spaces.shares)
        noise = max(spaces.rounding, noisy - value, moment_noise(np.array([value])))
        if value - pieces[0].bound <= noise:
            break
        _, _, a, b, worse = heappop(pieces)
        weights = np.abs(a.errors - b.errors)[::-1]  # both ends are equally good for these
        middle = spaces.top(weights / weights.sum())
        if middle.weights @ a.errors - middle.bound <= spaces.rounding:
            heappush(pieces, piece(a, b, worse))  # the chord itself is the frontier
            continue
        best = min(best, middle, key=objective)
        heappush(pieces, piece(a, middle, worse, _corner(a, middle)))
        heappush(pieces, piece(middle, b, worse, _corner(middle, b)))
    return best, pieces[0]


def _corner(a: Point, b: Point) -> Array:
    """The point where two tangents meet; if parallel, the point below and left of both."""
    lowest, highest = np.minimum(a.errors, b.errors), np.maximum(a.errors, b.errors)
    (a_0, a_1), (b_0, b_1) = a.weights, b.weights
    determinant = a_0 * b_1 - a_1 * b_0
    if abs(determinant) < ROUNDED:
        return lowest
    corner = np.array([b_1 * a.bound - a_1 * b.bound, a_0 * b.bound - b_0 * a.bound]) / determinant
    return np.asarray(np.minimum(np.maximum(corner, lowest), highest))
