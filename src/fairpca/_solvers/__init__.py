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
from fairpca._solvers.eigenspaces.many_features import Basis, GrowingBasis, LeadingBasis, ThinSpaces
from fairpca._solvers.many_groups.pareto import solve_pareto
from fairpca._solvers.many_groups.spread import solve_spread
from fairpca._solvers.mean_gap import solve_mean_gap
from fairpca._solvers.pls import solve_pls
from fairpca._solvers.two_groups.exact import solve_exact
from fairpca._solvers.two_groups.frontier import solve_fixed, solve_golden
from fairpca._solvers.welfare import solve_welfare, solve_welfare_of_two
from fairpca._solvers.worst_off import solve_minmax, solve_worst

# Full decompositions are faster below this many features, in all and for each component. From there
# on two groups are searched in a basis of leading eigenvectors.
_LEADING_BASIS_FROM = 150
_LEADING_BASIS_PER_RANK = 15

# A basis that grows by residuals is faster still from this many on. Without matrices it gets twice
# as many columns; a quarter suffices unless eigenvalues are close together.
_GROWING_BASIS_FROM = 600
_GROWING_BASIS_PER_RANK = 40


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
        return find(operand.compact).lifted(operand.frame.lift)


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
        spaces = getattr(start, "found_in", None)
        if not isinstance(spaces, Eigenspaces | Basis) or spaces.operand is not compact:
            spaces = _spaces_of_one_search(compact, rank)
        before = spaces.n_eigensolves
        if isinstance(spaces, Basis):
            solution = spaces.solve(search)
            if not spaces.converged and compact.matrices is not None:
                before -= spaces.n_eigensolves
                spaces = Eigenspaces(compact, rank)
                solution = search(spaces)
        else:
            solution = search(spaces)
        n_eigensolves = spaces.n_eigensolves - before
        return replace(solution, n_eigensolves=n_eigensolves, found_in=spaces)

    return in_compact_coordinates(find, operand)


def _search_whole(search: Callable[[Spaces], Solution], operand: Operand, rank: int) -> Solution:
    """Run a search that finds each eigenspace with all features."""

    def find(compact: Operand) -> Solution:
        spaces = spaces_of(compact, rank)
        return replace(search(spaces), n_eigensolves=spaces.n_eigensolves)

    return in_compact_coordinates(find, operand)


def spaces_of(operand: Operand, rank: int) -> Spaces:
    """All eigenspaces of one rank; many features get a growing basis for each eigenspace.

    A basis gives up early if there are matrices to fall back on.
    """
    if operand.matrices is None:
        return _basis_of_products(operand, rank)
    if _residuals_are_faster(operand, rank):
        return ThinSpaces(operand, rank)
    return Eigenspaces(operand, rank)


def _spaces_of_one_search(operand: Operand, rank: int) -> Eigenspaces | Basis:
    """All eigenspaces of one rank; many features get one basis for a whole search."""
    d = operand.n_features
    if operand.matrices is None:
        return _basis_of_products(operand, rank)
    if _residuals_are_faster(operand, rank):
        return GrowingBasis(operand, rank, limit=d // 2)
    if d >= max(_LEADING_BASIS_FROM, _LEADING_BASIS_PER_RANK * rank):
        return LeadingBasis(operand, rank)
    return Eigenspaces(operand, rank)


def _residuals_are_faster(operand: Operand, rank: int) -> bool:
    return operand.n_features >= max(_GROWING_BASIS_FROM, _GROWING_BASIS_PER_RANK * rank)


def _basis_of_products(operand: Operand, rank: int) -> GrowingBasis:
    d = operand.n_features
    k = len(operand.shares)
    capacity = max(KEPT_BYTES // (4 * d * (k + 1)), 8 * rank + 16)
    limit = 2 * _GROWING_BASIS_PER_RANK * max(rank, 8)
    return GrowingBasis(operand, rank, limit, capacity)
