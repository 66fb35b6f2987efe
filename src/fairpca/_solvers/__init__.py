"""How a problem is solved: :func:`solve` is the only place where a problem meets a solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf

from fairpca._blas import single_threaded_blas
from fairpca._moments.operand import Operand
from fairpca._problems.problems import (
    FairProblem,
    MeanGapProblem,
    PLSProblem,
    RobustProblem,
    SubsetProblem,
    WelfareProblem,
    WorstOffProblem,
)
from fairpca._problems.problems import Problem as Problem
from fairpca._problems.solution import Solution
from fairpca._solvers.eigenspaces.choose import search_in_basis, search_whole, spaces_of
from fairpca._solvers.many_groups.pareto import EfficientFrontier, solve_pareto
from fairpca._solvers.many_groups.spread import SpreadFrontier, solve_spread
from fairpca._solvers.many_groups.welfare import solve_welfare
from fairpca._solvers.many_groups.worst import solve_worst
from fairpca._solvers.mean_gap import solve_mean_gap
from fairpca._solvers.multiplicative_weights import solve_multiplicative_weights
from fairpca._solvers.pca import solve_pca
from fairpca._solvers.pls import solve_pls
from fairpca._solvers.subset import solve_subset
from fairpca._solvers.two_groups.exact import solve_exact
from fairpca._solvers.two_groups.frontier import solve_fixed
from fairpca._solvers.two_groups.golden import solve_golden
from fairpca._solvers.two_groups.minmax import solve_minmax
from fairpca._solvers.two_groups.robust import solve_robust
from fairpca._solvers.two_groups.welfare import solve_welfare_of_two


def solve(
    problem: Problem, operand: Operand, rank: int, tol: float = 1e-6, start: Solution | None = None
) -> Solution:
    """Find the best projection of one rank.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    operand : Operand
        The groups' second moments.
    rank : int
        Number of components.
    tol : float
        Gap at which the search may end for more than two groups, relative to what is minimised.
        Two groups are solved to rounding.
    start : Solution, optional
        Solution of a similar problem with the same operand and rank; saves time.

    Returns
    -------
    Solution
    """
    compact, frame = operand.compact, operand.frame
    if frame is not None and not isinstance(problem, PLSProblem):  # which is stated in features
        start = None if start is None else start.lift(frame.T, 0.0)
        return solve(problem, compact, rank, tol, start).lift(frame, 0.0)
    two = len(operand.shares) == 2
    in_basis = partial(search_in_basis, operand=operand, rank=rank, start=start)
    whole = partial(search_whole, operand=operand, rank=rank)
    with single_threaded_blas():
        match problem:
            case SubsetProblem():
                return solve_subset(problem, operand, rank)
            case PLSProblem():
                return solve_pls(problem, operand, rank)
            case MeanGapProblem(max_mean_gap):
                return in_basis(partial(solve_mean_gap, max_mean_gap=max_mean_gap))
            case FairProblem(alpha=1.0):
                return in_basis(solve_pca)
            case FairProblem(alpha=float(alpha)):
                return in_basis(partial(solve_fixed, alpha=alpha))
            case FairProblem(solver="golden"):
                return in_basis(partial(solve_golden, constraint=problem.constraint))
            case FairProblem() if two:
                return in_basis(partial(solve_exact, problem=problem))
            case FairProblem(constraint="pareto"):
                return whole(partial(solve_pareto, problem=problem, tol=tol))
            case FairProblem():
                return whole(partial(solve_spread, problem=problem, tol=tol))
            case WorstOffProblem(solver="multiplicative_weights"):
                return in_basis(partial(solve_multiplicative_weights, problem=problem))
            case WorstOffProblem() if two:
                return in_basis(partial(solve_minmax, criterion=problem.criterion))
            case WorstOffProblem():
                return whole(partial(solve_worst, criterion=problem.criterion, tol=tol))
            case RobustProblem():
                return in_basis(partial(solve_robust, problem=problem))
            case WelfareProblem(inequality_aversion=a) if a == inf:
                return solve(WorstOffProblem("variance"), operand, rank, tol, start)
            case WelfareProblem() if two:
                return in_basis(partial(solve_welfare_of_two, problem=problem))
            case WelfareProblem():
                return whole(partial(solve_welfare, problem=problem, tol=tol))


def solve_fractions(
    problem: FairProblem, operand: Operand, rank: int, fractions: Sequence[float], tol: float = 1e-6
) -> list[Solution]:
    """The solutions at several fractions of the way from PCA, for more than two groups.

    As :func:`solve` with ``fraction`` set to each of them, but the ends of the way are found once
    and each search starts where the one before it ended: pass the fractions in order. Each counts
    the eigendecompositions that it took, the first those of the ends as well.
    """
    solutions, before = [], 0
    with single_threaded_blas():
        spaces = spaces_of(operand, rank)
        efficient = problem.constraint == "pareto"
        way = EfficientFrontier(spaces, tol) if efficient else SpreadFrontier(spaces, problem, tol)
        for fraction in fractions:
            found = way.part(fraction)
            solutions.append(replace(found, n_eigensolves=spaces.n_eigensolves - before))
            before = spaces.n_eigensolves
    return solutions
