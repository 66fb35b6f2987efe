"""The largest welfare of the groups: exactly for two groups, certified for any number.

Only groups that are compared and that vary take part: a group that does not vary keeps no variance
under any projection.

**Two groups** are solved by root finding on the efficient frontier. For weights ``x`` and ``1 - x``
of the groups' *shares* of variance ``v_g = V_g / tr C_g`` let ``U(x)`` be the best projection. As x
rises, ``v_0`` never falls and ``v_1`` never rises. Welfare is largest where the weights are those
of its gradient, and that is where

    x t_0^(a-1) v_0^a  =  (1 - x) t_1^(a-1) v_1^a,        t_g = tr C_g.

The left side rises with x and the right side falls, so there is one root; at a jump of the
eigenspace the answer lies on the path between both sides. The a-th root of both sides is taken
where a is above one, so that a large aversion causes no overflow: both sides tend to ``V_g``.

**More groups** are solved by fully corrective Frank-Wolfe steps. Relax ``U U'`` to ``P`` with
``0 <= P <= I``, ``tr P = r``. The variances ``V`` that such a P leaves the groups form a convex set
in k dimensions, and the welfare is concave on it. At V the gradient w gives one eigenproblem, whose
top-r eigenspace S has two uses:

* ``w'V(S)`` bounds the welfare of every projection (see ``WelfareProblem``);
* ``V(S)`` is an *atom*: the next V is the best average of all atoms found so far.

Most optima have one atom, which is the projection asked for: then a handful of steps suffices.
Where eigenvalues cross, the optimum is an average of several atoms, no projection of rank r may
attain it, and :func:`_climb` finds one that comes near.

**The best average.** In units of the present V, ``log E_a`` has the gradient ``s``, which adds up
to one (``portions``), and the Hessian ``-(a diag(s) + (1 - a) s s')``. With ``q = sqrt(s)`` a
square root of the Hessian is ``L' = (sqrt(a) I + (1 - sqrt(a)) q q') diag(q)``, and ``L'1 = L^-1 s
= q``. So Newton's step over averages minimises ``|L' V / V_now - 2 q|``: nonnegative least squares.
An exact line search makes it safe.

**The climb** is Newton's method on the subspaces near U: ``U + N X'`` with N the complement. In
units of the present variances, with H the negative Hessian above, ``W = sum_g (s_g / V_g) C_g``,
``U'WU = diag(a)`` and ``N'WN = diag(b)``, for small X::

    log E(U + N X') = log E(U) + s'JX - (X'DX + (JX)'H(JX)) / 2,      J_g = 2 U'C_gN / V_g,
                                                                       D_ij = 2 (a_i - b_j)

so X takes a diagonal and a system of k equations: ``z = JX`` solves ``(I + G H) z = G s`` with
``G = J D^-1 J'``, and ``X = D^-1 J'(s - H z)``. The first start is the top-r eigenspace of the
average; random starts follow while the welfare is below its target.
"""

from dataclasses import dataclass, replace
from itertools import compress
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, nnls

from fairpca._moments.tolerances import EPS, ROOT_EPS, ROUNDED, TINY, varying_groups
from fairpca._problems.problems import WelfareProblem
from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Eigenspaces, Spaces
from fairpca._solvers.many_groups.recovery import random_starts, split
from fairpca._solvers.many_groups.workspace import MAX_STEPS, Workspace
from fairpca._solvers.two_groups.root import Line
from fairpca._typing import Array

_SUM_TO_ONE = 1e4  # weight of the equation "shares add up to one" among the least squares


class Welfare:
    """The groups, and their welfare under a projection."""

    def __init__(self, spaces: Spaces, problem: WelfareProblem) -> None:
        self.spaces = spaces
        self.problem = problem
        self.members = np.flatnonzero(spaces.compared & varying_groups(spaces.traces))

    def kept(self, errors: Array) -> Array:
        """``V_g`` of the groups that take part."""
        return np.asarray(np.maximum((self.spaces.traces - errors)[self.members], 0.0))

    def weights(self, of_members: Array | float) -> Array:
        """Weights of all groups."""
        weights = np.zeros(len(self.spaces.traces))
        weights[self.members] = of_members
        return weights

    def best_average(self) -> Solution:
        """The largest mean variance, which one eigenproblem solves; PCA where no group varies."""
        point = self.spaces.pca
        if len(self.members):
            point = self.spaces.top(self.weights(1 / len(self.members)))
        return self.solution(point, point)

    def proof(self, kept: Array) -> Point:
        """The point whose weights, the gradient where this is kept, bound the welfare."""
        return self.spaces.top(self.weights(self.problem.gradient(kept)))

    def most(self, point: Point) -> float:
        """The largest welfare that the weights of a point leave possible."""
        return float(point.weights @ self.spaces.traces) - point.bound

    def solution(
        self, found: Point, proof: Point, *rests_on: Point, tol: float = np.inf
    ) -> Solution:
        """A projection with a bound; the best one up to a gap of ``tol`` times the largest trace.

        Where no group takes part, the welfare is zero.
        """
        most = self.most(proof)
        value = 0.0
        if len(self.members):
            value = self.problem.measure(self.kept(found.errors))
        status = Status.WELFARE_UNPROVEN
        if most - value <= tol * float(self.spaces.traces.max()):
            status = Status.WELFARE_BEST
        found = replace(found, weights=proof.weights)
        rests_on = (proof, *rests_on)
        return self.spaces.solution(found, status, "welfare", -value, -most, rests_on=rests_on)


def solve_welfare_of_two(spaces: Eigenspaces, problem: WelfareProblem) -> Solution:
    """Find the weights at which the welfare of two groups is largest."""
    welfare = Welfare(spaces, problem)
    a = problem.inequality_aversion
    if a == 0.0 or len(welfare.members) < 2:
        return welfare.best_average()
    traces = spaces.traces
    scale = float(spaces.traces.max())
    coefficients = (traces / scale) ** ((a - 1.0) / max(a, 1.0))
    coefficients = scale * coefficients / coefficients.max()

    def at(x: float) -> Point:
        return spaces.top(np.array([x, 1.0 - x]) * (scale / traces))

    def difference(x: float, errors: Array) -> float:
        """The left side minus the right side."""
        shares = np.maximum(1.0 - errors / traces, 0.0)
        sides = np.array([x, 1.0 - x]) ** (1.0 / max(a, 1.0)) * shares ** min(a, 1.0)
        return float(coefficients[0] * sides[0] - coefficients[1] * sides[1])

    # At the ends one group decides, and the other one only breaks ties.
    line = Line(spaces, at, difference, np.array([1.0, -1.0]) * (scale / traces))
    only_0, only_1 = (spaces.top(unit, 1.0 - unit) for unit in np.eye(2))
    edge = 4 * EPS  # at the ends of the interval a weight would be zero
    below = line.sample(edge, only_1)
    above = line.sample(1.0 - edge, only_0)
    if below.value >= 0.0:
        found = rests_on = below.point
    elif above.value <= 0.0:
        found = rests_on = above.point
    else:
        crossing = line.cross(below, above)
        found = crossing.found
        rests_on = crossing.at.point
    return welfare.solution(found, welfare.proof(welfare.kept(found.errors)), rests_on)


@dataclass
class _Atoms:
    """Projections found so far, the variances they leave, and their shares in the average.

    The first atom is ``P = (r / d) I``, inside the set, where every group keeps something.
    """

    bases: list[Array]  # of the atoms but the first
    kept: Array  # the variances, one row per atom
    shares: Array

    def add(self, basis: Array, kept: Array, problem: WelfareProblem) -> None:
        """Add an atom, and drop those that the best average does without."""
        self.bases.append(basis)
        self.kept = np.vstack([self.kept, kept])
        self.shares = np.append(self.shares, 0.0)
        _correct(self, problem)
        used = self.shares > 0.0
        used[0] = True
        self.bases = list(compress(self.bases, used[1:]))
        self.kept = self.kept[used]
        self.shares = self.shares[used]


def solve_welfare(spaces: Spaces, problem: WelfareProblem, tol: float = 1e-9) -> Solution:
    """The largest welfare of any number of groups; ``tol`` is relative to the largest trace."""
    welfare = Welfare(spaces, problem)
    if problem.inequality_aversion == 0.0 or len(welfare.members) < 2:
        return welfare.best_average()
    target = tol * float(spaces.traces.max())
    proof, atoms = _relax(welfare, 0.1 * target)
    work = Workspace(spaces, unit=1.0)
    found = _climb(work, welfare, atoms, welfare.most(proof) - target)
    own = welfare.proof(welfare.kept(found.errors))
    return welfare.solution(found, min(own, proof, key=welfare.most), tol=tol)


def _relax(welfare: Welfare, tol: float) -> tuple[Point, _Atoms]:
    """The point that bounds the welfare best, and atoms whose average is within ``tol`` of it."""
    spaces = welfare.spaces
    problem = welfare.problem
    uniform = spaces.traces[welfare.members] * spaces.rank / spaces.n_features
    atoms = _Atoms([], uniform[np.newaxis], np.ones(1))
    best = spaces.pca
    least = np.inf
    for _ in range(5 * MAX_STEPS):
        average = atoms.shares @ atoms.kept
        point = welfare.proof(average)
        if welfare.most(point) < least:
            best = point
            least = welfare.most(point)
        if least - problem.measure(average) <= tol:
            break
        atoms.add(point.basis, welfare.kept(point.errors), problem)
    return best, atoms


def _correct(atoms: _Atoms, problem: WelfareProblem) -> None:
    """Give the atoms the shares that maximise the welfare, by Newton's method."""
    root_a = np.sqrt(problem.inequality_aversion)
    for _ in range(MAX_STEPS):
        average = atoms.shares @ atoms.kept
        s = problem.portions(average)
        q = np.sqrt(s)
        L = root_a * np.diag(q) + (1.0 - root_a) * np.outer(q, s)
        system = L @ (atoms.kept / average).T
        system = np.vstack([system, np.full(len(atoms.shares), _SUM_TO_ONE)])
        shares, _ = nnls(system, np.append(2.0 * q, _SUM_TO_ONE))
        step = shares / shares.sum() - atoms.shares
        change = step @ atoms.kept
        length = _line_search(problem, average, change)
        atoms.shares = np.maximum(atoms.shares + length * step, 0.0)
        if length * float(s @ (change / average)) <= ROUNDED:
            break


def _line_search(problem: WelfareProblem, average: Array, change: Array) -> float:
    """The part of the way from one average to another at which the welfare is largest."""

    def slope(length: float) -> float:
        kept = np.maximum(average + length * change, np.maximum(EPS**2 * average, TINY))
        return float(problem.portions(kept) @ (change / kept))

    if slope(1.0) >= 0.0:
        return 1.0
    if slope(0.0) <= 0.0:
        return 0.0
    return float(brentq(slope, 0.0, 1.0, xtol=4 * EPS))


def _climb(work: Workspace, welfare: Welfare, atoms: _Atoms, target: float) -> Point:
    """A projection near the average of the atoms; the search ends at the target welfare."""
    for basis in atoms.bases:
        work.grow(basis)
    P = atoms.shares[0] * np.eye(work.basis.shape[1]) * work.rank / work.spaces.n_features
    for share, basis in zip(atoms.shares[1:], atoms.bases, strict=True):
        inside = work.basis.T @ basis
        P += share * inside @ inside.T
    occupations, vectors = np.linalg.eigh(P)
    best = _ascend(work, welfare, vectors[:, -work.rank :])
    for start in random_starts(*split(occupations, vectors), work.rank):
        if best.welfare >= target:
            break
        best = max(best, _ascend(work, welfare, start), key=attrgetter("welfare"))
    return Point(np.zeros(len(best.errors)), work.basis @ best.basis, best.errors, np.nan)


class _Place(NamedTuple):
    """A subspace of the span, and the welfare there."""

    basis: Array
    errors: Array
    welfare: float

    @classmethod
    def at(cls, work: Workspace, welfare: Welfare, basis: Array) -> "_Place":
        """The place with this basis."""
        errors = work.errors(basis)
        return cls(basis, errors, welfare.problem.measure(welfare.kept(errors)))


def _ascend(work: Workspace, welfare: Welfare, basis: Array) -> _Place:
    """Newton's method from one start; every step gains."""
    best = _Place.at(work, welfare, basis)
    for _ in range(MAX_STEPS):
        better = _better(work, welfare, best)
        if better is None:
            break
        best = better
    return best


def _better(work: Workspace, welfare: Welfare, than: _Place) -> _Place | None:
    """A place along Newton's step that gains; None if rounding leaves no gain."""
    U, step = _newton_step(work, welfare, than)
    while np.abs(step).max(initial=0.0) > ROOT_EPS:  # radians
        trial = _Place.at(work, welfare, np.linalg.qr(U + step)[0])
        if trial.welfare > than.welfare:
            return trial
        step *= 0.5
    return None


def _newton_step(work: Workspace, welfare: Welfare, at: _Place) -> tuple[Array, Array]:
    """A basis of the same subspace, and the change to add to it."""
    a = welfare.problem.inequality_aversion
    kept = welfare.kept(at.errors)
    s = welfare.problem.portions(kept)
    unit = np.maximum(kept, kept.max() * ROOT_EPS)
    U, N, slopes, curvature = work.turns(at.basis, welfare.weights(s / unit))
    J = -slopes[welfare.members] / unit[:, np.newaxis, np.newaxis]
    scaled = J / np.maximum(curvature, ROOT_EPS)  # the eigenvalues inside U add up to one
    G = np.tensordot(J, scaled, ([1, 2], [1, 2]))
    H = a * np.diag(s) + (1.0 - a) * np.outer(s, s)
    z = np.linalg.solve(np.eye(len(s)) + G @ H, G @ s)
    return U, N @ np.tensordot(s - H @ z, scaled, axes=1).T
