"""From an average of projections to one projection of nearly as much welfare.

Newton's method on the subspaces near U, written ``U + N X`` with N the complement. In units of the
present variances, with ``s`` and H the gradient and the negative Hessian of ``log E_a``,
``W = sum_g (s_g / V_g) C_g``, ``U'WU = diag(a)`` and ``N'WN = diag(b)``, for small X::

    log E(U + N X) = log E(U) + s'JX - (X'DX + (JX)'H(JX)) / 2,      J_g = 2 N'C_gU / V_g,
                                                                      D_ji = 2 (a_i - b_j)

so X takes a diagonal and a system of k equations: ``z = JX`` solves ``(I + G H) z = G s`` with
``G = J D^-1 J'``, and ``X = D^-1 J'(s - H z)``.

The first start is the top-r eigenspace of the average. Inside the block of directions that the
average keeps only in part there may be better ones: a few more starts are drawn there while the
welfare is below its target.
"""

from __future__ import annotations

import numpy as np

from fairpca._moments.operand import group_errors
from fairpca._problems.solution import Point
from fairpca._solvers.many_groups.workspace import Workspace
from fairpca._solvers.welfare import Welfare
from fairpca._typing import Array

_WHOLE = 1e-4  # an occupation this near to 0 or 1 is whole
_RESTARTS = 6
_MAX_ASCENT = 60
_LEAST_CURVATURE = 1e-8  # of the largest
_CONVERGED = 1e-9  # size of a step, in radians


def climb(work: Workspace, welfare: Welfare, P: Array, target: float) -> Point:
    """A projection of much welfare near an average of projections.

    Parameters
    ----------
    work : Workspace
        The span in which to search.
    welfare : Welfare
    P : ndarray of shape (m, m)
        The average, in the coordinates of the span.
    target : float
        The welfare at which no further start is tried.
    """
    occupations, vectors = np.linalg.eigh(P)
    whole = vectors[:, occupations >= 1.0 - _WHOLE]
    block = vectors[:, (occupations > _WHOLE) & (occupations < 1.0 - _WHOLE)]
    best = _ascend(work, welfare, vectors[:, -work.rank :])
    rng = np.random.default_rng(0)
    for _ in range(_RESTARTS if block.shape[1] > 1 else 0):
        if _welfare_of(welfare, best) >= target:
            break
        turn = rng.normal(size=(block.shape[1], work.rank - whole.shape[1]))
        start = np.hstack([whole, block @ np.linalg.qr(turn)[0]])
        best = max(best, _ascend(work, welfare, start), key=lambda p: _welfare_of(welfare, p))
    return best.lift(work.basis)


def _welfare_of(welfare: Welfare, point: Point) -> float:
    return welfare.problem.measure(welfare.kept(point.errors))


def _ascend(work: Workspace, welfare: Welfare, basis: Array) -> Point:
    """Newton's method from one start; every step gains."""
    best, value = _point(work, welfare, basis)
    for _ in range(_MAX_ASCENT):
        U, step = _newton_step(work, welfare, best)
        length, size = 1.0, float(np.abs(step).max(initial=0.0))
        while length * size > _CONVERGED:
            trial, gained = _point(work, welfare, np.linalg.qr(U + length * step)[0])
            if gained > value:
                best, value = trial, gained
                break
            length *= 0.5
        else:
            break
    return best


def _point(work: Workspace, welfare: Welfare, basis: Array) -> tuple[Point, float]:
    errors = group_errors(work.traces, work.matrices, basis)
    point = Point(np.zeros(len(errors)), basis, errors, np.nan)
    return point, _welfare_of(welfare, point)


def _newton_step(work: Workspace, welfare: Welfare, at: Point) -> tuple[Array, Array]:
    """A basis of the same subspace, and the change to add to it."""
    a, rank = welfare.problem.inequality_aversion, at.basis.shape[1]
    kept = welfare.kept(at.errors)
    s = welfare.problem.portions(kept)
    matrices = (
        work.matrices[welfare.members]
        / np.maximum(kept, kept.max() * _LEAST_CURVATURE)[:, np.newaxis, np.newaxis]
    )
    W = np.tensordot(s, matrices, axes=1)
    N = np.linalg.qr(at.basis, mode="complete")[0][:, rank:]
    top, turn_u = np.linalg.eigh(at.basis.T @ W @ at.basis)
    rest, turn_n = np.linalg.eigh(N.T @ W @ N)
    U, N = at.basis @ turn_u, N @ turn_n
    J = 2.0 * (N.T @ matrices @ U)
    D = 2.0 * np.abs(top - rest[:, np.newaxis])
    scaled = J / np.maximum(D, _LEAST_CURVATURE * max(float(top.max()), float(rest.max(initial=0))))
    G = np.tensordot(J, scaled, ([1, 2], [1, 2]))
    H = a * np.diag(s) + (1.0 - a) * np.outer(s, s)
    z = np.linalg.solve(np.eye(len(s)) + G @ H, G @ s)
    return U, N @ np.tensordot(s - H @ z, scaled, axes=1)
