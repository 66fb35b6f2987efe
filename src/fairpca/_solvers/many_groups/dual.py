"""One problem that is linear in the group errors, solved and certified by its dual.

Letters as in the paper: ``C_g`` second moments of group g about the overall mean, ``p_g`` its
share, ``U`` (d x r) orthonormal, ``R_g(U) = tr C_g - tr U'C_g U``, overall error
``R = sum_g p_g R_g``.

For prices ``y`` of the rows of a :class:`~fairpca._problems.linear.LinearProblem`, with
``w = c + A'y``::

    q(y) = min_U w'R(U) - b'y  =  w'tr C - (sum of the r largest eigenvalues of sum_g w_g C_g) - b'y

bounds the objective of every rank-r projection from below: one eigen-solve certifies. ``q`` is
concave; its maximum is the value of the relaxation ``0 <= P <= I``, ``tr P = r`` of ``P = U U'``.

The maximum is found by following the central path, a projection near it by recovery. The gap
between its value and the bound is zero up to rounding where the relaxation is tight, as it always
is for two groups; elsewhere it is at least the price of asking for rank r.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairpca._problems.linear import LinearProblem
from fairpca._problems.solution import Objective, Solution, best_and_worst
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import rounding_of
from fairpca._solvers.many_groups.barrier import balanced
from fairpca._solvers.many_groups.central_path import PathEnd, Workspace, follow
from fairpca._solvers.many_groups.recovery import recover
from fairpca._typing import Array

EQUAL = 1e-8  # of the largest trace: limits are met, and groups equal, to within this


def minimise(
    work: Workspace,
    problem: LinearProblem,
    objective: Objective,
    tol: float,
    ceiling: float = np.inf,
) -> Solution | None:
    """Solve one problem that is linear in the group errors.

    Parameters
    ----------
    work : Workspace
    problem : LinearProblem
    objective : str
        What the problem minimises.
    tol : float
        Gap to reach, relative to the problem's scale.
    ceiling : float
        No projection within the limits can have a larger objective.

    Returns
    -------
    Solution or None
        Its status is open. None when the bound passes the ceiling, which proves that no projection
        keeps to the limits.
    """
    end = follow(work, problem, tol, ceiling)
    if end.bound > ceiling:
        return None
    found = recover(
        end.centre,
        end.prices,
        work.matrices,
        work.traces,
        work.rank,
        end.problem,
        target=end.bound * end.objective_scale + tol,
    )
    if found.value - end.bound * end.objective_scale > tol:
        end = _sharpened(work, end, found.prices)
    weights = end.problem.weights(end.prices) / end.objective_scale
    privileged, harmed = best_and_worst(work.pca.errors, work.spaces.compared)
    return Solution(
        basis=work.basis @ found.basis,
        errors=found.errors,
        status=Status.UNPROVEN,
        objective=objective,
        value=found.value / end.objective_scale,
        bound=end.bound - _rounding(work, end),
        weights=weights,
        pca=work.pca,
        privileged=privileged,
        harmed=harmed,
        violation=found.violation / end.row_scale,
    )


def _rounding(work: Workspace, end: PathEnd) -> float:
    """What arithmetic may have added to the bound: its terms can be far larger than itself."""
    weights, prices = end.problem.weights(end.prices), end.prices
    terms = np.abs(weights) @ work.traces + np.abs(end.problem.limits) @ np.abs(prices)
    return rounding_of(len(work.matrices[0])) * float(terms) / end.objective_scale


def _sharpened(work: Workspace, end: PathEnd, prices: Array) -> PathEnd:
    """Try the multipliers of the projection itself as prices.

    They are exact, zeros included, where the central path only tends to its end slowly: at a
    row that is active at no price.
    """
    prices = balanced(end.problem, prices)
    if (prices < 0.0)[~end.problem.equal].any():
        return end
    weights = end.problem.weights(prices)
    if work.closed:
        work.spaces.n_eigensolves += 1
        kept = np.linalg.eigvalsh(np.tensordot(weights, work.matrices, 1))[-work.rank :].sum()
        least = float(weights @ work.traces - kept)
    else:
        least = work.spaces.top(weights).bound
    bound = (least - float(end.problem.limits @ prices)) / end.objective_scale
    return replace(end, prices=prices, bound=bound) if bound > end.bound else end
