"""From the relaxed solution of a k-group problem to a projection of rank r.

The central path ends at ``P = V S V'`` whose occupations ``s_i`` are 1 or 0, or in between on the
eigenvectors where eigenvalues r and r + 1 of ``W`` cross. Three steps follow.

**Face.** On those f eigenvectors ``W`` is a multiple of the identity, so every ``S`` with the same
trace and the same active rows is optimal as well. A symmetric ``E`` with ``tr E = 0`` that leaves
the active rows unchanged (the levels ``t`` may follow) exists while ``f (f + 1) / 2`` exceeds their
number; moving along it until an occupation reaches 0 or 1 lowers f. What cannot be removed is at
most ``floor(sqrt(2k + 1/4) - 3/2)`` beyond rank r, none for two groups.

**Rounding.** ``U`` is the top-r eigenspace of ``S``.

**Descent.** Sequential quadratic programming on the subspaces near ``U``, written ``U + N X`` with
``N`` the complement. With ``U'WU = diag(a)`` and ``N'WN = diag(b)``, for small ``X``::

    R_g(U + N X) = R_g(U) + <J_g, X> + ...      J_g = -2 N'C_g U
    w'R(U + N X): second-order term  sum_ji (a_i - b_j) X_ji^2  =  sum_ji D_ji X_ji^2 / 2

so the quadratic program is diagonal in ``X``: ``X = -(sum_g w_g J_g) / D`` for the multipliers of a
program in the k errors alone, ``R - G w`` with ``G_gh = <J_g, J_h / D>``. At its end the rows hold
to rounding, whatever the second step left open.

A face may hold many subspaces of which the first found is not the best; a few more starts inside
the fractional block are tried while the gap is open, until two of them have ended where the best
one did.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import nnls

from fairpca._problems.linear import LinearProblem
from fairpca._solvers.many_groups.barrier import Centre
from fairpca._typing import Array, Mask

_WHOLE = 1e-4  # an occupation this near to 0 or 1 is whole
_MAX_DESCENT = 60
_RESTARTS = 6
_FOUND_AGAIN = 2  # as often from other starts it is the best: of 496 open gaps none was missed
_LEAST_CURVATURE = 1e-8
_PROXIMITY = 1e-6


@dataclass(frozen=True)
class Candidate:
    """A subspace and how well it does.

    Attributes
    ----------
    basis : ndarray of shape (m, r)
    errors : ndarray of shape (k,)
    value, violation : float
        Objective and largest violation of a row, in the problem's units.
    prices : ndarray of shape (n,)
        The multipliers of the last quadratic program.
    """

    basis: Array
    errors: Array
    value: float
    violation: float
    prices: Array


def recover(
    centre: Centre,
    prices: Array,
    matrices: Array,
    traces: Array,
    rank: int,
    problem: LinearProblem,
    target: float,
) -> Candidate:
    """Find a rank-r projection near the relaxed solution.

    Parameters
    ----------
    centre : Centre
        Last point of the central path.
    prices : ndarray of shape (n,)
        The prices it leads to.
    matrices : ndarray of shape (k, m, m)
        ``V' C_g V``.
    traces : ndarray of shape (k,)
    rank : int
    problem : LinearProblem
        Scaled.
    target : float
        Objective at which to stop trying other starts.

    Returns
    -------
    Candidate
    """
    active = problem.equal | (centre.prices > centre.slack)
    occupations = centre.occupations
    fractional = (occupations > _WHOLE) & (occupations < 1.0 - _WHOLE)
    whole = centre.vectors[:, occupations >= 1.0 - _WHOLE]
    block = centre.vectors[:, fractional]

    S = _purify(centre, block, matrices, problem, active)
    start = np.linalg.eigh(S)[1][:, -rank:]
    best = _descend(start, matrices, traces, problem, prices)
    rng, found_again = np.random.default_rng(0), 0
    for _ in range(_RESTARTS if block.shape[1] > 1 else 0):
        if best.violation <= 1e-12 and (best.value <= target or found_again == _FOUND_AGAIN):
            break
        turn = rng.normal(size=(block.shape[1], rank - whole.shape[1]))
        start = np.hstack([whole, block @ np.linalg.qr(turn)[0]])
        other = _descend(start, matrices, traces, problem, prices)
        found_again += abs(other.value - best.value) <= 1e-8 and other.violation <= 1e-12
        if (max(other.violation, 1e-12), other.value) < (max(best.violation, 1e-12), best.value):
            best = other
    return best


def _purify(
    centre: Centre, block: Array, matrices: Array, problem: LinearProblem, active: Mask
) -> Array:
    """Walk in the optimal face to a relaxed solution with fewer fractional occupations."""
    vectors, s = centre.vectors, centre.occupations
    rows, levels = problem.rows[active], problem.levels[active]
    # What no change of the levels can make up for:
    fixed = null_space(levels.T).T @ rows if active.any() else rows
    S = (vectors * s) @ vectors.T
    rng = np.random.default_rng(0)
    for _ in range(block.shape[1]):
        s, vectors = np.linalg.eigh(S)
        inner = (s > _WHOLE) & (s < 1.0 - _WHOLE)
        f = int(inner.sum())
        if f < 2:
            break
        s = np.where(inner, s, np.round(s))
        s[inner] += (np.round(s[inner].sum()) - s[inner].sum()) / f
        S = (vectors * s) @ vectors.T

        T = vectors[:, inner]
        i, j = np.triu_indices(f)
        unit = np.where(i == j, 1.0, np.sqrt(2.0))
        gains = (T.T @ matrices @ T)[:, i, j] * unit  # <C_g, E> = gains @ e
        equations = np.vstack([i == j, fixed @ gains])
        equations /= np.maximum(np.linalg.norm(equations, axis=1, keepdims=True), 1e-12)
        e = rng.normal(size=len(i))
        e /= np.linalg.norm(e)
        e -= equations.T @ np.linalg.lstsq(equations.T, e, rcond=1e-7)[0]
        if np.linalg.norm(e) < 1e-7:
            break
        E = np.zeros((f, f))
        E[i, j] = E[j, i] = e / unit
        t = np.linalg.lstsq(levels, rows @ gains @ e, rcond=None)[0]
        used = (problem.levels @ t - problem.rows @ gains @ e)[~active]
        steps = [
            (_face_step(s[inner], sign * E, centre.slack[~active], sign * used), sign)
            for sign in (1.0, -1.0)
        ]
        step, sign = min(steps)
        if not np.isfinite(step):
            break
        S = S + step * sign * T @ E @ T.T
    return S


def _face_step(s: Array, E: Array, slack: Array, used: Array) -> float:
    """Step along E at which an occupation becomes whole; infinite if a row is violated first."""
    towards_zero = np.linalg.eigvalsh(-E / np.sqrt(np.outer(s, s)))[-1]
    towards_one = np.linalg.eigvalsh(E / np.sqrt(np.outer(1.0 - s, 1.0 - s)))[-1]
    step = 1.0 / max(towards_zero, towards_one)
    return float(step) if (step * used <= slack).all() else np.inf


def _descend(
    basis: Array, matrices: Array, traces: Array, problem: LinearProblem, prices: Array
) -> Candidate:
    """Sequential quadratic programming over subspaces, with an exact penalty as merit."""
    rank = basis.shape[1]
    damping = _LEAST_CURVATURE
    best = _candidate(basis, matrices, traces, problem, prices)
    for _ in range(_MAX_DESCENT):
        N = np.linalg.qr(best.basis, mode="complete")[0][:, rank:]
        W = np.tensordot(problem.weights(prices), matrices, 1)
        a, turn_u = np.linalg.eigh(best.basis.T @ W @ best.basis)
        b, turn_n = np.linalg.eigh(N.T @ W @ N)
        U, N = best.basis @ turn_u, N @ turn_n
        J = -2.0 * (N.T @ matrices @ U)
        scaled = J / np.maximum(2.0 * np.abs(a - b[:, np.newaxis]), damping)
        G = np.tensordot(J, scaled, ([1, 2], [1, 2]))
        prices = _multipliers(G, best.errors, problem, prices)
        step = N @ np.tensordot(problem.weights(prices), scaled, 1)
        penalty = 2.0 * (1.0 + np.abs(prices).sum())
        length, gain = 1.0, 0.0
        while length > 1e-3:
            turned = np.linalg.qr(U - length * step)[0]
            trial = _candidate(turned, matrices, traces, problem, prices)
            gain = best.value - trial.value + penalty * (best.violation - trial.violation)
            if gain > 0.0:
                break
            length *= 0.5
        if gain > 0.0:
            best = trial
            damping = max(damping / 10.0, _LEAST_CURVATURE) if length == 1.0 else damping
        else:
            damping = 100.0 * max(damping, 1e-6)
        if (np.abs(step).max() < 1e-8 and best.violation < 1e-15) or damping > 1e3:
            break
    return best


def _candidate(
    basis: Array, matrices: Array, traces: Array, problem: LinearProblem, prices: Array
) -> Candidate:
    errors = traces - np.einsum("gai,ai->g", matrices @ basis, basis)
    return Candidate(basis, errors, *problem.measure(errors), prices)


def _multipliers(G: Array, errors: Array, problem: LinearProblem, prices: Array) -> Array:
    """Prices of the quadratic program in which the errors are ``R - G w``.

    They minimise ``w'Gw / 2 - w'R + b'y`` subject to ``y >= 0`` and ``B'y = -q``: nonnegative least
    squares, once a proximal term has made it strictly convex and the levels are priced in.
    """
    values, vectors = np.linalg.eigh(G)
    root = np.sqrt(np.maximum(values, 0.0)) * vectors
    sign = np.hstack([np.eye(len(prices)), -np.eye(len(prices))[:, problem.equal]])
    near, strict = np.sqrt(_PROXIMITY), 1.0 / np.sqrt(_PROXIMITY)
    excess = problem.rows @ errors + problem.levels @ problem.best_levels(errors) - problem.limits
    system = np.vstack(
        [
            root.T @ problem.rows.T @ sign,
            near * np.eye(sign.shape[1]),
            strict * problem.levels.T @ sign,
        ]
    )
    target = np.concatenate(
        [
            -root.T @ problem.cost,
            near * np.maximum(sign.T @ prices, 0.0) + sign.T @ excess / near,
            -strict * problem.level_cost,
        ]
    )
    solution, _ = nnls(system, target, maxiter=100 * sign.shape[1])
    return sign @ solution
