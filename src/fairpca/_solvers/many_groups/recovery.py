"""From the relaxed solution of a k-group problem to a projection of rank r.

The central path ends at ``P = V S V'`` whose occupations ``s_i`` are 1 or 0, or in between on the
eigenvectors where eigenvalues r and r + 1 of ``W`` cross. Three steps follow.

**Face.** On those f eigenvectors ``W`` is a multiple of the identity, so every ``S`` with the same
trace and the same active rows is optimal as well. A symmetric ``E`` with ``tr E = 0`` that leaves
the active rows unchanged (the levels ``t`` may follow) exists while ``f (f + 1) / 2`` exceeds their
number; moving along it until an occupation reaches 0 or 1 lowers f. What cannot be removed is at
most ``floor(sqrt(2k + 1/4) - 3/2)`` beyond rank r, none for two groups.

**Rounding.** ``U`` is the top-r eigenspace of ``S``.

**Descent** from there (:mod:`fairpca._solvers.many_groups.descent`). At its end the rows hold to
rounding, whatever the second step left open.

A face may hold many subspaces of which the first found is not the best; a few more starts inside
the fractional block are tried while the gap is open, until two of them have ended where the best
one did.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space

from fairpca._problems.linear import LinearProblem
from fairpca._solvers.eigenspaces.decompose import eigen
from fairpca._solvers.many_groups.barrier import Centre
from fairpca._solvers.many_groups.descent import KEPT, Candidate, descend
from fairpca._solvers.many_groups.workspace import Workspace
from fairpca._typing import Array, Mask

_WHOLE = 1e-4  # an occupation this near to 0 or 1 is whole
_RESTARTS = 6
_FOUND_AGAIN = 2  # as often from other starts it is the best: of 496 open gaps none was missed


def recover(
    work: Workspace,
    problem: LinearProblem,
    centre: Centre,
    prices: Array,
    target: float,
) -> Candidate:
    """Find a rank-r projection near the relaxed solution.

    Parameters
    ----------
    work : Workspace
    problem : LinearProblem
        In units.
    centre : Centre
        Last point of the central path.
    prices : ndarray of shape (n,)
        The prices it leads to.
    target : float
        Objective at which to stop trying other starts.

    Returns
    -------
    Candidate
    """
    rank, kept = work.rank, KEPT * work.noise
    active = problem.equal | (centre.prices > centre.slack)
    occupations = centre.occupations
    fractional = (occupations > _WHOLE) & (occupations < 1.0 - _WHOLE)
    whole = centre.vectors[:, occupations >= 1.0 - _WHOLE]
    block = centre.vectors[:, fractional]

    S = _purify(centre, block, work.matrices, problem, active)
    best = descend(eigen(S)[1][:, -rank:], work, problem, prices)
    rng, found_again = np.random.default_rng(0), 0
    for _ in range(_RESTARTS if block.shape[1] > 1 else 0):
        if best.violation <= kept and (best.value <= target or found_again == _FOUND_AGAIN):
            break
        turn = rng.normal(size=(block.shape[1], rank - whole.shape[1]))
        start = np.hstack([whole, block @ np.linalg.qr(turn)[0]])
        other = descend(start, work, problem, prices)
        found_again += abs(other.value - best.value) <= 1e-8 and other.violation <= kept
        best = best.better(other, kept)
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
        s, vectors = eigen(S)
        inner = (s > _WHOLE) & (s < 1.0 - _WHOLE)
        f = int(inner.sum())
        if f < 2:
            break
        s = np.where(inner, s, np.round(s))
        s[inner] = np.clip(
            s[inner] + (np.round(s[inner].sum()) - s[inner].sum()) / f, 1e-9, 1 - 1e-9
        )
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
