"""The welfare of any number of groups, by fully corrective Frank-Wolfe steps, and certified.

Relax ``U U'`` to ``P`` with ``0 <= P <= I``, ``tr P = r``. The variances ``V`` that some P leaves
the groups form a convex set in k dimensions, and the welfare is concave on it. At V the gradient w
gives one eigenproblem; its top-r eigenspace S does two things:

* ``w'V(S)`` bounds the welfare of every projection (see :mod:`fairpca._problems.welfare`);
* ``V(S)`` is an *atom*: the next V is the best average of all atoms found so far.

Most optima have one atom, which is the projection asked for: then a handful of steps suffices.
Where eigenvalues cross, the optimum is an average of several, no projection of rank r may attain
it, and :func:`fairpca._solvers.many_groups.ascent.climb` finds one that comes near.

The best average. In units of the present V, ``log E_a`` has the gradient ``s``, which adds up to
one (``portions``), and the Hessian ``-(a diag(s) + (1 - a) s s')``. With ``q = sqrt(s)`` a square
root of it is ``L' = (sqrt(a) I + (1 - sqrt(a)) q q') diag(q)``, and ``L'1 = L^-1 s = q``. So
Newton's step over averages minimises ``|L' V / V_now - 2 q|``: nonnegative least squares. An exact
line search makes it safe.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, nnls

from fairpca._problems.solution import Point, Solution
from fairpca._problems.welfare import WelfareProblem
from fairpca._solvers.eigenspaces.growing import Spaces
from fairpca._solvers.many_groups.ascent import climb
from fairpca._solvers.many_groups.workspace import Workspace
from fairpca._solvers.welfare import Welfare
from fairpca._typing import Array

_MAX_STEPS = 300
_MAX_CORRECTIONS = 30
_SUM_TO_ONE = 1e4  # weight of this equation among the least squares
_CONVERGED = 1e-14
_ALMOST_NOTHING = 1e-30


@dataclass
class Atoms:
    """Projections found so far, the variances they leave, and their shares in the average.

    The average begins with ``P = (r / d) I``, inside of the set, where every group keeps something;
    None stands for it among the bases.
    """

    bases: list[Array | None]
    kept: Array  # one row for each
    shares: Array

    def add(self, basis: Array, kept: Array) -> None:
        """One more, not yet part of the average."""
        self.bases.append(basis)
        self.kept = np.vstack([self.kept, kept])
        self.shares = np.append(self.shares, 0.0)

    def forget_unused(self) -> None:
        """Drop those that the average does without."""
        used = self.shares > 0.0
        self.bases = [basis for basis, use in zip(self.bases, used, strict=True) if use]
        self.kept, self.shares = self.kept[used], self.shares[used]


def solve_frank_wolfe(spaces: Spaces, problem: WelfareProblem, tol: float = 1e-9) -> Solution:
    """Most welfare for any number of groups; ``tol`` is relative to the largest trace."""
    welfare = Welfare(spaces, problem)
    if problem.inequality_aversion == 0.0 or len(welfare.members) < 2:
        return welfare.best_average()
    target = tol * float(spaces.traces.max())
    proof, atoms = _relax(welfare, 0.1 * target)
    work = Workspace(spaces, welfare.pca, unit=1.0)
    found = climb(work, welfare, _average(work, atoms), welfare.most(proof) - target)
    return welfare.certified(found, proof=proof, tol=tol)


def _relax(welfare: Welfare, tol: float) -> tuple[Point, Atoms]:
    """The point that bounds the welfare best, and atoms whose average is within ``tol`` of it."""
    spaces, problem = welfare.spaces, welfare.problem
    uniform = spaces.traces[welfare.members] * spaces.rank / spaces.n_features
    atoms = Atoms([None], uniform[np.newaxis], np.ones(1))
    best, least = welfare.pca, np.inf
    for _ in range(_MAX_STEPS):
        average = atoms.shares @ atoms.kept
        point = spaces.top(welfare.weights(problem.gradient(average)))
        if welfare.most(point) < least:
            best, least = point, welfare.most(point)
        if least - problem.measure(average) <= tol:
            break
        atoms.add(point.basis, welfare.kept(point.errors))
        _correct(atoms, problem)
        atoms.forget_unused()
    return best, atoms


def _average(work: Workspace, atoms: Atoms) -> Array:
    """The average of the atoms as a matrix, in a span that holds them."""
    for basis in atoms.bases:
        if basis is not None:
            work.grow(basis)
    uniform = np.eye(work.basis.shape[1]) * work.rank / work.spaces.n_features
    P = np.zeros_like(uniform)
    for share, basis in zip(atoms.shares, atoms.bases, strict=True):
        inside = None if basis is None else work.basis.T @ basis
        P += share * (uniform if inside is None else inside @ inside.T)
    return P


def _correct(atoms: Atoms, problem: WelfareProblem) -> None:
    """Give the atoms the shares of most welfare, by Newton's method."""
    root_a = np.sqrt(problem.inequality_aversion)
    for _ in range(_MAX_CORRECTIONS):
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
        if length * float(s @ (change / average)) <= _CONVERGED:
            break


def _line_search(problem: WelfareProblem, average: Array, change: Array) -> float:
    """Where the welfare is largest on the way from one average to another."""

    def slope(length: float) -> float:
        kept = np.maximum(average + length * change, _ALMOST_NOTHING * average)
        return float(problem.portions(kept) @ (change / kept))

    if slope(1.0) >= 0.0:
        return 1.0
    return float(brentq(slope, 0.0, 1.0, xtol=1e-15)) if slope(0.0) > 0.0 else 0.0
