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

Redundant columns leave directions in which no row varies. A component along them would meet any
budget by shrinking the scores, so the search stays in the space of the rows. Only if more
components are wanted than this space holds do such directions follow.

Only the span of the directions counts here. Greedy steps prove nothing, so there is no bound. When
no covariance with the target is left, the directions of largest variance follow.
"""

from dataclasses import replace
from functools import partial
from math import inf, nan
from typing import NamedTuple

import numpy as np

from fairpca._moments.group_differences import mean_gap, spanned
from fairpca._moments.operand import Complement, Operand
from fairpca._moments.tolerances import EPS, MEAN_NOISE, TINY
from fairpca._problems.problems import PLSProblem
from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.between import last_allowed
from fairpca._solvers.eigenspaces.lapack import descending, top_eigenvectors
from fairpca._typing import Array

_STEPS = np.linspace(0, 1, 25)[1:].tolist()  # alpha is the fourth power of a step


class _Place(NamedTuple):
    """A place on the walk from hidden means, step 0, to plain PLS, step 1."""

    step: float
    basis: Array
    explained: float = nan
    left: float = nan  # what is left of the budget


def solve_pls(problem: PLSProblem, operand: Operand, rank: int) -> Solution:
    """SIMPLS, hidden or plain, or the best place between them that the budget allows."""
    V = row_space(operand)
    if V is None:
        place = _find(problem, operand, rank)
    else:
        inside = _within(problem, operand, V)
        largest = V.shape[1] if problem.max_mean_gap else inside.complement.n_features
        place = _find(inside, operand.within(V), min(rank, largest))
        place = place._replace(basis=filled(V @ place.basis, V, rank))
    if problem.max_mean_gap == 0.0:
        status = Status.MEANS_HIDDEN
    elif problem.max_mean_gap == inf:
        status = Status.SUPERVISED
    elif place.step == 1.0:
        status = Status.ALREADY_FAIR
    else:
        status = Status.MEAN_GAP_BUDGET
    # A projection without proof; the caller adds PCA and the groups.
    point = Point(np.full(len(operand.shares), nan), place.basis, operand.errors(place.basis), nan)
    return Solution(
        basis=point.basis,
        errors=point.errors,
        status=status,
        objective="error",
        value=nan,
        bound=nan,
        weights=point.weights,
        pca=point,
        privileged=0,
        harmed=1,
        alpha=place.step**4,
    )


def row_space(operand: Operand) -> Array | None:
    """An orthonormal basis of the space in which the rows vary, or None if that is all of it.

    None as well where there are products only, which cannot tell. Correlations decide, so that a
    column in small units counts as much as any other.
    """
    compact = operand.compact
    if compact.matrices is None:
        return None
    C = np.tensordot(compact.shares, compact.matrices, axes=1)
    deviations = np.sqrt(np.diagonal(C))
    units = np.where(deviations > 0.0, deviations, inf)
    values, vectors = descending(C / units / units[:, np.newaxis])
    varying = values > MEAN_NOISE * values[0]
    if varying.all() and operand.frame is None:
        return None
    V = np.linalg.qr(deviations[:, np.newaxis] * vectors[:, varying])[0]
    if operand.frame is None:
        return V
    return operand.frame.lift(V)


def _within(problem: PLSProblem, operand: Operand, V: Array) -> PLSProblem:
    """The same problem in the coordinates V."""
    differences = problem.differences @ V
    variance = float(operand.shares @ operand.traces)
    return replace(
        problem,
        target=replace(problem.target, covariance=V.T @ problem.target.covariance),
        differences=differences,
        complement=Complement(spanned(differences, variance)),
    )


def filled(basis: Array, V: Array, rank: int) -> Array:
    """The basis, and as many directions in which no row varies as are lacking."""
    outside = Complement(V)
    lacking = rank - basis.shape[1]
    return np.hstack([basis, outside.lift(np.eye(outside.n_features, lacking))])


def _find(problem: PLSProblem, operand: Operand, rank: int) -> _Place:
    """The directions for the budget of the problem."""
    if problem.max_mean_gap == 0.0:
        return _Place(0.0, _hidden(problem, operand, rank))
    if problem.max_mean_gap == inf:
        return _Place(1.0, _directions(problem, operand, 1.0, rank))
    return _best_place(problem, operand, rank)


def _best_place(problem: PLSProblem, operand: Operand, rank: int) -> _Place:
    """The place that explains most before the budget is exceeded.

    Where more components are wanted than hiding leaves, the first places may exceed it too.
    """
    at = partial(_place, problem, operand, rank)
    places = []
    if problem.complement.n_features >= rank:
        places.append(at(0.0))
    for step in _STEPS:
        place = at(step)
        if place.left >= 0:
            places.append(place)
        elif places:
            places.append(_last_within(problem, operand, places[-1], place))
            break
    if not places:
        limit = problem.max_mean_gap
        left = problem.complement.n_features
        fewer = f"n_components={left} or less" if left else "fewer n_components"
        raise ValueError(
            f"with n_components={rank} no projection between hidden means, which leave {left}, and "
            f"plain PLS keeps to max_mean_gap={limit:g}: the nearest to hidden means has "
            f"{limit - at(_STEPS[0]).left:.6g}. Pass {fewer}, or a larger max_mean_gap."
        )
    return max(places, key=lambda place: place.explained)


def _last_within(problem: PLSProblem, operand: Operand, within: _Place, beyond: _Place) -> _Place:
    """The last place within the budget, by bisection.

    Where the directions jump, it lies between their subspaces before and after.
    """
    rank = within.basis.shape[1]
    spare = 1e-7 * problem.max_mean_gap
    while within.left > spare and beyond.step - within.step > EPS:
        place = _place(problem, operand, rank, 0.5 * (within.step + beyond.step))
        if place.left < 0:
            beyond = place
        else:
            within = place
    if within.left <= spare:
        return within

    def keeps_budget(basis: Array) -> bool:
        return mean_gap(problem.differences, basis) <= problem.max_mean_gap

    basis = last_allowed(within.basis, beyond.basis, keeps_budget)
    return _judged(problem, operand, within.step, basis)


def _place(problem: PLSProblem, operand: Operand, rank: int, step: float) -> _Place:
    """The place after this part of the way."""
    if step == 0.0:
        hidden = _judged(problem, operand, step, _hidden(problem, operand, rank))
        return hidden._replace(left=problem.max_mean_gap)
    return _judged(problem, operand, step, _directions(problem, operand, step**4, rank))


def _judged(problem: PLSProblem, operand: Operand, step: float, basis: Array) -> _Place:
    """A place with what it explains, and what it leaves of the budget."""
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
    wanted = _of_unit_norm(problem.target.covariance)
    unwanted = _of_unit_norm(problem.differences.T)
    W = np.zeros((len(wanted), 0))
    loadings = np.zeros((len(wanted), 0))
    while W.shape[1] < rank and np.linalg.norm(wanted, 2) > MEAN_NOISE:
        w = _direction(wanted, unwanted, alpha)
        W = np.column_stack([W, w])
        p = operand.shares @ operand.products(w[:, np.newaxis])[:, :, 0]
        for _ in range(2):  # orthogonalising twice is enough
            p = p - loadings @ (loadings.T @ p)
        v = p / max(float(np.linalg.norm(p)), TINY)
        loadings = np.column_stack([loadings, v])
        wanted = wanted - np.outer(v, v @ wanted)
        unwanted = unwanted - np.outer(v, v @ unwanted)
    basis = np.linalg.qr(W)[0]
    found = W.shape[1]
    if found == rank:
        return basis
    # The directions of largest variance among the rest follow.
    rest = Complement(basis)
    inside = rest.inside(operand)
    if inside.matrices is None:
        raise ValueError(
            f"{found} components explain all of the target that the features can; pass "
            f"n_components={max(found, 1)}."
        )
    C = np.tensordot(inside.shares, inside.matrices, axes=1)
    return np.hstack([basis, rest.lift(top_eigenvectors(C, rank - found)[1])])


def _direction(wanted: Array, unwanted: Array, alpha: float) -> Array:
    """The top eigenvector of ``alpha wanted wanted' - (1 - alpha) unwanted unwanted'``.

    It is sought in the span of their columns: a direction across all of them explains nothing, but
    would be preferred where the columns wanted lie among those unwanted.
    """
    directions, sizes, _ = np.linalg.svd(np.hstack([wanted, unwanted]), full_matrices=False)
    Q = directions[:, sizes > MEAN_NOISE]
    gains = Q.T @ wanted
    losses = Q.T @ unwanted
    w = Q @ np.linalg.eigh(alpha * gains @ gains.T - (1 - alpha) * losses @ losses.T)[1][:, -1]
    return np.asarray(w / np.linalg.norm(w))


def _of_unit_norm(M: Array) -> Array:
    return M / max(float(np.linalg.norm(M)), TINY)
