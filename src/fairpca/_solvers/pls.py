"""Partial least squares from moments (SIMPLS, de Jong 1993), with a penalty on what tells groups.

One direction after the other maximises ``alpha |S_yx w|^2 - (1 - alpha) |D w|^2``, both in units of
their norms, over unit vectors w whose scores are uncorrelated with those before: w is orthogonal to
``C w'`` for each earlier ``w'``. With alpha = 1 this is SIMPLS; in the limit of alpha = 0 it is
SIMPLS in the complement of D. Between them the budget ``tr U'BU <= max_mean_gap`` is met by
bisection. Each direction costs one product with C and a decomposition as small as the number of
targets and groups.

Only the span of the directions counts here. Greedy steps prove nothing, so there is no bound. Where
the target is used up, the directions of largest variance follow.
"""

from __future__ import annotations

from math import inf, nan

import numpy as np

from fairpca._moments.complement import Complement
from fairpca._moments.operand import TINY, Operand
from fairpca._problems.pls import PLSProblem
from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import top_eigenvectors
from fairpca._typing import Array

_USED_UP = 1e-12  # of the covariance with the target: rounding
_BISECTIONS = 60
_CLOSE = 1e-9  # of the budget


def solve_pls(problem: PLSProblem, operand: Operand, rank: int) -> Solution:
    """SIMPLS, or as near to it as the budget allows."""
    if problem.max_mean_gap == 0.0:
        return _greedy_solution(operand, _hidden(problem, operand, rank), 0.0, Status.MEANS_HIDDEN)
    basis = _directions(problem, operand, 1.0, rank)
    if problem.max_mean_gap == inf:
        return _greedy_solution(operand, basis, 1.0, Status.SUPERVISED)
    if _gap(problem, basis) <= problem.max_mean_gap:
        return _greedy_solution(operand, basis, 1.0, Status.ALREADY_FAIR)
    low, high, best = 0.0, 1.0, _hidden(problem, operand, rank)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        basis = _directions(problem, operand, middle, rank)
        left = problem.max_mean_gap - _gap(problem, basis)
        if left < 0:
            high = middle
        else:
            low, best = middle, basis
            if left <= _CLOSE * problem.max_mean_gap:
                break
    return _greedy_solution(operand, best, low, Status.MEAN_GAP_BUDGET)


def _gap(problem: PLSProblem, basis: Array) -> float:
    return float(np.sum((problem.differences @ basis) ** 2))


def _hidden(problem: PLSProblem, operand: Operand, rank: int) -> Array:
    """SIMPLS in the complement of the directions that tell the groups apart."""
    complement = problem.complement
    inside = PLSProblem(
        complement.reduce(problem.covariance),
        np.zeros((0, complement.n_features)),
        Complement(np.zeros((complement.n_features, 0))),
    )
    return complement.lift(_directions(inside, complement.inside(operand), 1.0, rank))


def _directions(problem: PLSProblem, operand: Operand, alpha: float, rank: int) -> Array:
    """An orthonormal basis of the span of ``rank`` directions."""
    S, D = problem.covariance, problem.differences.T
    wanted = np.sqrt(alpha) * S / max(float(np.linalg.norm(S)), TINY)
    unwanted = np.sqrt(1 - alpha) * D / max(float(np.linalg.norm(D)), TINY)
    W: list[Array] = []
    loadings = np.zeros((len(S), 0))
    least = _USED_UP * float(np.linalg.norm(wanted))
    while len(W) < rank and float(np.linalg.norm(wanted)) > max(least, TINY):
        W.append(_best_direction(wanted, unwanted))
        p = operand.shares @ operand.products(W[-1][:, None])[:, :, 0]
        for _ in range(2):  # twice is enough
            p = p - loadings @ (loadings.T @ p)
        v = p / max(float(np.linalg.norm(p)), TINY)
        loadings = np.column_stack([loadings, v])
        wanted, unwanted = (M - np.outer(v, v @ M) for M in (wanted, unwanted))
    basis = np.linalg.qr(np.array(W).reshape(-1, len(S)).T)[0]
    return basis if len(W) == rank else _filled(operand, basis, rank)


def _best_direction(wanted: Array, unwanted: Array) -> Array:
    """The top eigenvector of ``wanted wanted' - unwanted unwanted'``, inside their span."""
    Q, R = np.linalg.qr(np.hstack([wanted, unwanted]))
    m = wanted.shape[1]
    small = R[:, :m] @ R[:, :m].T - R[:, m:] @ R[:, m:].T
    w = Q @ np.linalg.eigh(small)[1][:, -1]
    return np.asarray(w / np.linalg.norm(w))


def _filled(operand: Operand, basis: Array, rank: int) -> Array:
    """The basis, and the directions of largest variance among the rest."""
    rest = Complement(basis)
    inside = rest.inside(operand)
    if inside.matrices is None:
        raise ValueError(
            f"{basis.shape[1]} components explain all of the target that the features can; pass "
            f"n_components={max(basis.shape[1], 1)}."
        )
    C = np.tensordot(inside.shares, inside.matrices, axes=1)
    return np.hstack([basis, rest.lift(top_eigenvectors(C, rank - basis.shape[1])[1])])


def _greedy_solution(operand: Operand, basis: Array, alpha: float, status: Status) -> Solution:
    errors = operand.errors(basis)
    point = Point(np.full(len(errors), nan), basis, errors, nan)
    return Solution(
        basis=basis,
        errors=errors,
        status=status,
        objective="error",
        value=nan,
        bound=nan,
        weights=point.weights,
        pca=point,
        privileged=0,
        harmed=1,
        alpha=alpha,
    )
