"""Partial least squares from moments (SIMPLS, de Jong 1993), with a penalty on group differences.

One direction after the other maximises ``alpha |S_yx w|^2 - (1 - alpha) |D w|^2``, both in units of
their norms, over unit vectors w whose scores are uncorrelated with those before: w is orthogonal to
``C w'`` for each earlier ``w'``. With alpha = 1 this is SIMPLS; in the limit of alpha = 0 it is
SIMPLS in the complement of D. Each direction costs one product with C and a decomposition as small
as the number of targets and groups.

A budget ``tr U'BU <= max_mean_gap`` allows the walk from alpha = 0 up to where the gap exceeds it.
What a linear model of the scores explains need not grow on the way: PLS is drawn to directions of
large variance, and where these tell the groups apart and little about the target, hiding them
helps. So the answer is the best of some places tried within the budget. It never explains less than
hidden means do. A larger budget may explain less than a smaller one, but only because the places
tried are not dense.

Only the span of the directions counts here. Greedy steps prove nothing, so there is no bound. When
no covariance with the target is left, the directions of largest variance follow.
"""

from dataclasses import replace
from functools import partial
from math import inf, nan
from typing import NamedTuple

import numpy as np

from fairpca._moments.group_differences import mean_gap
from fairpca._moments.operand import Complement, Operand
from fairpca._moments.tolerances import EPS, TINY, moment_noise
from fairpca._problems.problems import PLSProblem
from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import top_eigenvectors
from fairpca._typing import Array

_STEPS = np.linspace(0, 1, 25)[1:].tolist()  # alpha is the fourth power of a step


def solve_pls(problem: PLSProblem, operand: Operand, rank: int) -> Solution:
    """SIMPLS, hidden or plain, or the best place between them that the budget allows."""
    if problem.max_mean_gap == 0.0:
        basis, alpha, status = _hidden(problem, operand, rank), 0.0, Status.MEANS_HIDDEN
    elif problem.max_mean_gap == inf:
        basis, alpha, status = _directions(problem, operand, 1.0, rank), 1.0, Status.SUPERVISED
    else:
        best = _best_place(problem, operand, rank)
        basis, alpha = best.basis, best.step**4
        status = Status.ALREADY_FAIR if best.step == 1.0 else Status.MEAN_GAP_BUDGET
    # A projection without proof; the caller adds PCA and the groups.
    point = Point(np.full(len(operand.shares), nan), basis, operand.errors(basis), nan)
    return Solution(
        basis, point.errors, status, "error", nan, nan, point.weights, point, 0, 1, alpha=alpha
    )


class _Place(NamedTuple):
    """A place on the walk from hidden means, step 0, to plain PLS, step 1."""

    step: float
    basis: Array
    explained: float
    left: float  # what is left of the budget


def _best_place(problem: PLSProblem, operand: Operand, rank: int) -> _Place:
    """The place that explains most before the budget is exceeded.

    Where more components are wanted than hiding leaves, the first places may exceed it too.
    """
    at = partial(_place, problem, operand, rank)
    places = [at(0.0)] if problem.complement.n_features >= rank else []
    for step in _STEPS:
        place = at(step)
        if place.left >= 0:
            places.append(place)
        elif places:  # bisect for the last place within the budget
            within, beyond = places[-1], place
            while within.left > 1e-7 * problem.max_mean_gap and beyond.step - within.step > EPS:
                place = at(0.5 * (within.step + beyond.step))
                within, beyond = (within, place) if place.left < 0 else (place, beyond)
            places.append(within)
            break
    if not places:
        limit, left = problem.max_mean_gap, problem.complement.n_features
        fewer = f"n_components={left} or less" if left else "fewer n_components"
        raise ValueError(
            f"with n_components={rank} no projection between hidden means, which leave {left}, and "
            f"plain PLS keeps to max_mean_gap={limit:g}: the nearest to hidden means has "
            f"{limit - at(_STEPS[0]).left:.6g}. Pass {fewer}, or a larger max_mean_gap."
        )
    return max(places, key=lambda place: place.explained)


def _place(problem: PLSProblem, operand: Operand, rank: int, step: float) -> _Place:
    """The place after this part of the way."""
    if step == 0.0:
        basis, gap = _hidden(problem, operand, rank), 0.0
    else:
        basis = _directions(problem, operand, step**4, rank)
        gap = mean_gap(problem.differences, basis)
    C_U = np.tensordot(operand.shares, operand.products(basis), axes=1)
    total = float(operand.shares @ operand.traces)
    explained = problem.target.explained(basis, basis.T @ C_U, total)
    return _Place(step, basis, explained, problem.max_mean_gap - gap)


def _hidden(problem: PLSProblem, operand: Operand, rank: int) -> Array:
    """SIMPLS in the complement of the directions that tell the groups apart."""
    complement = problem.complement
    inside = PLSProblem(
        replace(problem.target, covariance=complement.reduce(problem.target.covariance)),
        np.zeros((0, complement.n_features)),
        Complement(np.zeros((complement.n_features, 0))),
    )
    return complement.lift(_directions(inside, complement.inside(operand), 1.0, rank))


def _directions(problem: PLSProblem, operand: Operand, alpha: float, rank: int) -> Array:
    """An orthonormal basis of the span of ``rank`` directions."""
    S, D = problem.target.covariance, problem.differences.T
    wanted = np.sqrt(alpha) * S / max(float(np.linalg.norm(S)), TINY)
    unwanted = np.sqrt(1 - alpha) * D / max(float(np.linalg.norm(D)), TINY)
    W: list[Array] = []
    loadings = np.zeros((len(S), 0))
    least = max(moment_noise(np.array([np.linalg.norm(wanted)])), TINY)
    while len(W) < rank and float(np.linalg.norm(wanted)) > least:
        # The top eigenvector of wanted wanted' - unwanted unwanted', inside their span.
        Q, R = np.linalg.qr(np.hstack([wanted, unwanted]))
        R_w, R_u = np.split(R, [wanted.shape[1]], axis=1)
        w = Q @ np.linalg.eigh(R_w @ R_w.T - R_u @ R_u.T)[1][:, -1]
        W.append(w / np.linalg.norm(w))
        p = operand.shares @ operand.products(W[-1][:, None])[:, :, 0]
        for _ in range(2):  # orthogonalising twice is enough
            p = p - loadings @ (loadings.T @ p)
        v = p / max(float(np.linalg.norm(p)), TINY)
        loadings = np.column_stack([loadings, v])
        wanted, unwanted = (M - np.outer(v, v @ M) for M in (wanted, unwanted))
    basis = np.linalg.qr(np.array(W).reshape(-1, len(S)).T)[0]
    if len(W) == rank:
        return basis
    # The directions of largest variance among the rest follow.
    rest = Complement(basis)
    inside = rest.inside(operand)
    if inside.matrices is None:
        raise ValueError(
            f"{len(W)} components explain all of the target that the features can; pass "
            f"n_components={max(len(W), 1)}."
        )
    C = np.tensordot(inside.shares, inside.matrices, axes=1)
    return np.hstack([basis, rest.lift(top_eigenvectors(C, rank - len(W))[1])])
