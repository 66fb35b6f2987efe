"""The fewest components with which every group keeps a given share of its variance."""

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np
from scipy.special import softmax

from fairpca._blas import single_threaded_blas
from fairpca._moments.operand import Operand
from fairpca._moments.tolerances import ROUNDED, varying_groups
from fairpca._problems.solution import Solution
from fairpca._solvers.eigenspaces.lapack import descending
from fairpca._typing import Array


def solve_fewest_components(
    operand: Operand, share: float, solve_rank: Callable[[int], Solution]
) -> Solution:
    """Solve with the fewest components that leave every group compared this share of its variance.

    More components are assumed to keep more of every group. The search starts from the number that
    PCA needs, goes up or down in doubling steps until it has a number that is too small and one
    that is enough, and bisects. ``solve_rank`` solves with a given number.
    """
    matrices = operand.compact.dense_matrices
    may_lose = (1.0 - share) * operand.traces + ROUNDED * float(operand.traces.max())
    may_lose[~operand.compared] = inf
    with single_threaded_blas():
        least = _least_rank(matrices, operand.traces, may_lose)
        V = descending(np.tensordot(operand.shares, matrices, axes=1))[1]
        lost = operand.traces[:, None] - np.cumsum(np.einsum("kij,ij->kj", matrices @ V, V), axis=1)
        under_pca = np.append((lost <= may_lose[:, None]).all(axis=0)[:-1], True)
        rank = max(least, 1 + int(under_pca.argmax()))
    solutions: dict[int, Solution] = {}
    too_few = least - 1
    enough = operand.n_features + 1
    step = 1
    while enough - too_few > 1:
        solutions[rank] = solution = solve_rank(rank)
        if (solution.errors <= may_lose).all() or rank == operand.n_features:
            enough = rank
        else:
            too_few = rank
        if enough > operand.n_features:
            rank = min(too_few + step, operand.n_features)
        elif too_few < least:
            rank = max(enough - step, least)
        else:
            rank = (too_few + enough) // 2
        step *= 2
    n_eigensolves = sum(solution.n_eigensolves for solution in solutions.values())
    return replace(solutions[enough], n_eigensolves=n_eigensolves)


def _least_rank(matrices: Array, traces: Array, may_lose: Array) -> int:
    """A number of components below which some group loses too much under any projection.

    Let ``a_g`` be what group g may lose. A projection that suffices has
    ``sum_g w_g R_g(U) / a_g <= 1`` for all weights w of sum one, and one eigendecomposition gives
    the least value of this sum over the projections of each rank. The weights start equal and move
    towards the groups that lose too much (multiplicative weights), until no group does.
    """
    count = varying_groups(traces) & (may_lose < inf)
    if not count.any():
        return 1
    matrices = matrices[count] / may_lose[count, None, None]
    whole = traces[count] / may_lose[count]
    least = 1
    weights = np.full(len(matrices), 1 / len(matrices))
    for step in 0.7 ** np.arange(8):
        values, V = descending(np.tensordot(weights, matrices, axes=1))
        lost = weights @ whole - np.cumsum(values)[:-1]  # with rank 1, ..., m - 1
        least = max(least, 1 + int(np.count_nonzero(lost > 1 + 1e-9)))
        U = V[:, :least]
        errors = whole - np.einsum("kij,ij->k", matrices @ U, U)
        if errors.max() <= 1:
            break
        weights = softmax(np.log(weights) + step * errors / max(np.ptp(errors), 1e-9))
    return least
