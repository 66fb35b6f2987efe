"""Descent to the best projection nearby: sequential quadratic programming over subspaces.

Subspaces near ``U`` are written ``U + N X`` with ``N`` the complement. With ``U'WU = diag(a)`` and
``N'WN = diag(b)``, for small ``X``::

    R_g(U + N X) = R_g(U) + <J_g, X> + ...      J_g = -2 N'C_g U
    w'R(U + N X): second-order term  sum_ji (a_i - b_j) X_ji^2  =  sum_ji D_ji X_ji^2 / 2

so the quadratic program is diagonal in ``X``: ``X = -(sum_g w_g J_g) / D``, with the multipliers of
a program in the k errors alone, ``R - G w`` with ``G_gh = <J_g, J_h / D>``. Near a strict optimum
the descent converges quadratically, and its multipliers are prices that prove the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from fairpca._moments.tolerances import KEPT, ROOT_EPS
from fairpca._problems.linear import LinearProblem
from fairpca._solvers.eigenspaces.lapack import eigen
from fairpca._solvers.many_groups.workspace import MAX_STEPS, Workspace
from fairpca._typing import Array

_PROXIMITY = 1e-6  # weight of the old prices, which makes the program for new ones strictly convex


@dataclass(frozen=True)
class Candidate:
    """A subspace of the span and how well it does, in units."""

    basis: Array  # m x r
    errors: Array
    value: float  # the objective
    violation: float  # largest violation of a row
    prices: Array  # multipliers of the last quadratic program

    def better(self, other: Candidate, kept: float) -> Candidate:
        """The candidate that exceeds the limits less; of two that keep them, the lower one."""
        return min(self, other, key=lambda one: (max(one.violation, kept), one.value))


def descend(basis: Array, work: Workspace, problem: LinearProblem, prices: Array) -> Candidate:
    """Descend from a subspace of the span to one that no small change improves.

    The problem is in units; ``prices`` are a first guess of the multipliers.
    """
    damping = ROOT_EPS
    best = _candidate(basis, work, problem, prices)
    for _ in range(MAX_STEPS):
        try:
            U, step, prices, promised = _quadratic_step(best, work, problem, prices, damping)
        except (np.linalg.LinAlgError, RuntimeError):  # from LAPACK and nnls: numbers out of range
            break
        penalty = 2.0 * (1.0 + np.abs(prices).sum())
        # The last step gains nothing measurable, but doubles the correct digits of the basis.
        last = promised <= work.noise
        least = -penalty * work.noise * last
        length = 1.0
        gain = least
        while length > 1e-3:
            turned = np.linalg.qr(U + length * step)[0]
            trial = _candidate(turned, work, problem, prices)
            gain = best.value - trial.value + penalty * (best.violation - trial.violation)
            if gain > least:
                break
            length *= 0.5
        # Where a limit is out of reach, or kept as well as rounding allows, a step changes nothing.
        nothing = work.noise
        if trial.violation <= work.kept:
            nothing = work.kept
        stuck = length == 1.0 and abs(best.violation - trial.violation) <= nothing
        if gain <= least:
            damping = 100.0 * max(damping, 1e-6)
        elif length == 1.0:
            damping = max(damping / 10.0, ROOT_EPS)
        if gain > least:
            best = trial
        if (last and (stuck or best.violation <= KEPT * work.noise)) or damping > 1e3:
            break
    return replace(best, prices=prices)


def _quadratic_step(
    at: Candidate, work: Workspace, problem: LinearProblem, prices: Array, damping: float
) -> tuple[Array, Array, Array, float]:
    """A basis of the same subspace, the step from it, prices, and the gain that is promised."""
    U, N, slopes, curvature = work.turns(at.basis, problem.weights(prices))
    curvature = np.maximum(curvature, damping)
    scaled = slopes / np.sqrt(curvature)
    prices = _multipliers(scaled, at.errors, problem, prices)
    X = -np.tensordot(problem.weights(prices), scaled, 1)
    return U, N @ (X / np.sqrt(curvature)).T, prices, 0.5 * float((X**2).sum())


def _candidate(basis: Array, work: Workspace, problem: LinearProblem, prices: Array) -> Candidate:
    errors = work.errors(basis)
    return Candidate(basis, errors, *problem.measure(errors), prices)


def _multipliers(scaled: Array, errors: Array, problem: LinearProblem, prices: Array) -> Array:
    """Prices of the quadratic program in which the errors are ``R - G w``.

    They minimise ``w'Gw / 2 - w'R + b'y`` subject to ``y >= 0`` and ``B'y = -q``. With a proximal
    term, and a penalty in place of the equations, that is nonnegative least squares. ``scaled`` is
    the factor ``J / sqrt(D)`` of ``G``, of shape (k, r, m - r).
    """
    flat = scaled.reshape(len(scaled), -1)
    values, vectors = eigen(flat @ flat.T)
    root = (np.sqrt(np.maximum(values, 0.0)) * vectors).T
    excess, _ = problem.excess(errors)
    sign = np.eye(len(prices))
    if problem.equal.any():
        sign = np.hstack([sign, -sign[:, problem.equal]])
    near = np.sqrt(_PROXIMITY)
    strict = 1.0 / np.sqrt(_PROXIMITY)
    system = np.vstack(
        [
            root @ problem.rows.T @ sign,
            near * np.eye(sign.shape[1]),
            strict * problem.levels.T @ sign,
        ]
    )
    target = np.concatenate(
        [
            -root @ problem.cost,
            near * np.maximum(sign.T @ prices, 0.0) + sign.T @ excess / near,
            -strict * problem.level_cost,
        ]
    )
    solution, _ = nnls(system, target, maxiter=100 * sign.shape[1])
    return np.asarray(sign @ solution)
