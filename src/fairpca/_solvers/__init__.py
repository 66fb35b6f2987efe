"""How a problem is solved: :func:`solve` is the only place where a problem meets a solver.

It also decides how eigenspaces are found: by dense decomposition if there are few features or many
components, otherwise in a growing basis. Where the basis gives up, the dense way is taken. An
operand without matrices gets the best that the growing basis finds.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf

from fairpca._blas import single_threaded_blas
from fairpca._moments.operand import KEPT_BYTES, Operand
from fairpca._problems.problems import (
    FairProblem,
    MeanGapProblem,
    PLSProblem,
    WelfareProblem,
    WorstOffProblem,
)
from fairpca._problems.problems import Problem as Problem
from fairpca._problems.solution import Solution
from fairpca._solvers.eigenspaces.dense import Eigenspaces, Spaces, solve_pca
from fairpca._solvers.eigenspaces.many_features import GrowingBasis, ThinSpaces
from fairpca._solvers.many_groups.pareto import solve_pareto
from fairpca._solvers.many_groups.spread import solve_spread
from fairpca._solvers.mean_gap import solve_mean_gap
from fairpca._solvers.pls import solve_pls
from fairpca._solvers.two_groups.exact import solve_exact
from fairpca._solvers.two_groups.frontier import solve_fixed, solve_golden
from fairpca._solvers.welfare import solve_welfare, solve_welfare_of_two
from fairpca._solvers.worst_off import solve_minmax, solve_worst

# A growing basis is faster with at least this many features, in all and for each component. Without
# matrices it gets twice as many columns; a quarter suffices unless eigenvalues are close together.
_GROWING_BASIS_FROM, _PER_RANK = 600, 40


def solve(
    problem: Problem, operand: Operand, rank: int, tol: float = 1e-6, start: Solution | None = None
) -> Solution:
    """Find the best projection of one rank.

    ``tol`` is the gap at which the search may end for more than two groups, relative to what is
    minimised; two groups are solved to rounding. ``start`` is the solution of a similar problem
    with the same operand and rank; it saves time.
    """
    two = len(operand.shares) == 2
    in_basis = partial(search_in_basis, operand=operand, rank=rank, start=start)
    whole = partial(_search_whole, operand=operand, rank=rank)
    match problem:
        case PLSProblem():  # stated in features, so never in the coordinates of the rows
            with single_threaded_blas():
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
        case FairProblem(constraint="efficient"):
            return whole(partial(solve_pareto, problem=problem, tol=tol))
        case FairProblem():
            return whole(partial(solve_spread, problem=problem, tol=tol))
        case WorstOffProblem() if two:
            return in_basis(partial(solve_minmax, criterion=problem.criterion))
        case WorstOffProblem():
            return whole(partial(solve_worst, criterion=problem.criterion, tol=tol))
        case WelfareProblem(inequality_aversion=a) if a == inf:
            return solve(WorstOffProblem("variance"), operand, rank, tol, start)
        case WelfareProblem() if two:
            return in_basis(partial(solve_welfare_of_two, problem=problem))
        case WelfareProblem():
            return whole(partial(solve_welfare, problem=problem, tol=tol))


def in_compact_coordinates(find: Callable[[Operand], Solution], operand: Operand) -> Solution:
    """Find a solution in the coordinates of the rows' span, where rows are fewer than features."""
    with single_threaded_blas():
        if operand.frame is None:
            return find(operand)
        return find(operand.compact).lift(operand.frame, 0.0)


def search_in_basis(
    search: Callable[[Eigenspaces], Solution],
    operand: Operand,
    rank: int,
    start: Solution | None = None,
) -> Solution:
    """Run a search, inside a growing basis where that is faster.

    The eigenspaces are kept with the solution, for the searches that start from it.
    """

    def find(compact: Operand) -> Solution:
        guess, kept = (None, None) if start is None else (start.alpha, start.found_in)
        if not isinstance(kept, Spaces) or kept.operand is not compact:
            kept = spaces_of(compact, rank, one_basis=True)
        n_eigensolves = -kept.n_eigensolves
        if isinstance(kept, GrowingBasis):
            solution = kept.solve(search, guess)
            n_eigensolves += kept.n_eigensolves
            if kept.converged or compact.matrices is None:
                return replace(solution, n_eigensolves=n_eigensolves, found_in=kept)
        dense = kept if isinstance(kept, Eigenspaces) else Eigenspaces(compact, rank)
        dense.guess = guess
        solution = search(dense)
        return replace(solution, n_eigensolves=n_eigensolves + dense.n_eigensolves, found_in=dense)

    return in_compact_coordinates(find, operand)


def _search_whole(search: Callable[[Spaces], Solution], operand: Operand, rank: int) -> Solution:
    """Run a search that finds each eigenspace with all features."""

    def find(compact: Operand) -> Solution:
        spaces = spaces_of(compact, rank)
        return replace(search(spaces), n_eigensolves=spaces.n_eigensolves)

    return in_compact_coordinates(find, operand)


def spaces_of(operand: Operand, rank: int, *, one_basis: bool = False) -> Spaces:
    """All eigenspaces of one rank; many features get a growing basis for each, or ``one_basis``.

    A basis gives up early if there are matrices to fall back on.
    """
    d, k = operand.n_features, len(operand.shares)
    if operand.matrices is None:
        capacity = max(KEPT_BYTES // (4 * d * (k + 1)), 8 * rank + 16)
        return GrowingBasis(operand, rank, 2 * _PER_RANK * max(rank, 8), capacity)
    if d < max(_GROWING_BASIS_FROM, _PER_RANK * rank):
        return Eigenspaces(operand, rank)
    return GrowingBasis(operand, rank, d // 2) if one_basis else ThinSpaces(operand, rank)
