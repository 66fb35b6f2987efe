"""From the relaxed solution of a k-group problem to a projection of rank r.

The central path ends at ``P = V S V'``. Its occupations ``s_i`` are 1 or 0, or lie in between on
the eigenvectors where eigenvalues r and r + 1 of ``W`` cross. Three steps follow.

**Face.** On those f eigenvectors ``W`` is a multiple of the identity, so every ``S`` with the same
trace and the same active rows is optimal as well. A symmetric ``E`` with ``tr E = 0`` that leaves
the active rows unchanged (the levels ``t`` may follow) exists while ``f (f + 1) / 2`` exceeds the
number of active rows; moving along ``E`` until an occupation reaches 0 or 1 lowers f. The rank that
remains exceeds r by at most ``floor(sqrt(2k + 1/4) - 3/2)``, by nothing for two groups.

**Rounding.** ``U`` is the top-r eigenspace of ``S``.

**Descent** from there (:mod:`fairpca._solvers.many_groups.descent`). At its end the rows hold to
rounding, whatever the second step left open.

The descent may end at a local optimum, or where a row cannot be met. While the gap is open,
:func:`search_elsewhere` descends from random subspaces, alternately inside the fractional block and
anywhere in the span, at most six of each kind. It stops once four of them end at the best value.
"""

from collections.abc import Iterator
from math import inf

import numpy as np
from scipy.linalg import null_space

from fairpca._problems.linear import LinearProblem
from fairpca._solvers.eigenspaces.lapack import eigen
from fairpca._solvers.many_groups.barrier import Centre
from fairpca._solvers.many_groups.descent import Candidate, descend
from fairpca._solvers.many_groups.workspace import Workspace
from fairpca._typing import Array

_WHOLE = 1e-4  # an occupation this near to 0 or 1 counts as 0 or 1


def recover(work: Workspace, problem: LinearProblem, centre: Centre, prices: Array) -> Candidate:
    """Find a rank-r projection near the relaxed solution of a problem in units.

    ``centre`` is the last point of the central path, ``prices`` are those it leads to.
    """
    S = _purify(centre, work.matrices, problem)
    return descend(eigen(S)[1][:, -work.rank :], work, problem, prices)


def search_elsewhere(
    work: Workspace,
    problem: LinearProblem,
    centre: Centre,
    prices: Array,
    best: Candidate,
    target: float,
) -> Candidate:
    """The best of a projection found before and of descents from elsewhere, until a target."""
    found_again = 0
    for start in random_starts(*split(centre.occupations, centre.vectors), work.rank):
        if best.violation <= work.kept and (best.value <= target or found_again == 4):
            break
        other = descend(start, work, problem, prices)
        same = abs(other.value - best.value) <= _WHOLE**2  # descent is far more exact than this
        found_again += same and other.violation <= work.kept
        if not same and best.better(other, work.kept) is other:
            found_again = 0
        best = best.better(other, work.kept)
    return best


def split(occupations: Array, vectors: Array) -> tuple[Array, Array]:
    """The eigenvectors that a relaxed solution keeps whole, and those that it keeps in part."""
    whole = occupations >= 1.0 - _WHOLE
    return vectors[:, whole], vectors[:, ~whole & (occupations > _WHOLE)]


def random_starts(whole: Array, block: Array, rank: int) -> Iterator[Array]:
    """Random subspaces of the span, alternating with ones that are random in the block only."""
    rng = np.random.default_rng(0)
    for _ in range(6):
        if block.shape[1] > 1:
            turn = rng.normal(size=(block.shape[1], rank - whole.shape[1]))
            yield np.hstack([whole, block @ np.linalg.qr(turn)[0]])
        yield np.linalg.qr(rng.normal(size=(len(block), rank)))[0]


def _purify(centre: Centre, matrices: Array, problem: LinearProblem) -> Array:
    """Walk in the optimal face to a relaxed solution with fewer fractional occupations."""
    active = problem.equal | (centre.prices > centre.slack)
    vectors = centre.vectors
    s = centre.occupations
    rows = problem.rows[active]
    levels = problem.levels[active]
    # Combinations of the rows that no change of the levels can make up for.
    fixed = rows
    if active.any():
        fixed = null_space(levels.T).T @ rows
    S = (vectors * s) @ vectors.T
    rng = np.random.default_rng(0)
    for _ in range(len(s)):
        s, vectors = eigen(S)
        inner = (s > _WHOLE) & (s < 1.0 - _WHOLE)
        f = int(inner.sum())
        if f < 2:
            break
        total = s[inner].sum()
        s = np.where(inner, s + (np.round(total) - total) / f, np.round(s))
        s[inner] = np.clip(s[inner], 1e-9, 1 - 1e-9)
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
        slack = centre.slack[~active]
        steps = [sign * _face_step(s[inner], sign * E, slack, sign * used) for sign in (-1.0, 1.0)]
        step = min(steps, key=abs)
        if not np.isfinite(step):
            break
        S = S + step * T @ E @ T.T
    return S


def _face_step(s: Array, E: Array, slack: Array, used: Array) -> float:
    """Step along E at which an occupation becomes whole; infinite if a row is violated first."""
    towards_zero = np.linalg.eigvalsh(-E / np.sqrt(np.outer(s, s)))[-1]
    towards_one = np.linalg.eigvalsh(E / np.sqrt(np.outer(1.0 - s, 1.0 - s)))[-1]
    step = 1.0 / max(towards_zero, towards_one)
    if (step * used > slack).any():
        return inf
    return float(step)
