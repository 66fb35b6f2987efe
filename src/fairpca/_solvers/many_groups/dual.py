"""Fair PCA for any number of groups: certified solutions from the dual.

Letters as in the paper: ``C_g`` second moments of group g about the overall mean, ``p_g`` its
share, ``U`` (d x r) orthonormal, ``R_g(U) = tr C_g - tr U'C_g U``, overall error
``R = sum_g p_g R_g``. The *spread* ``max_g R_g - min_g R_g`` stands where the disparity D stands
for two groups.

Each criterion is a :class:`~fairpca._problems.linear.Problem`, linear in the errors. For prices
``y`` of its rows, with ``w = c + A'y``::

    q(y) = min_U w'R(U) - b'y  =  w'tr C - (sum of the r largest eigenvalues of sum_g w_g C_g) - b'y

bounds the objective of every rank-r projection from below: one eigen-solve certifies. ``q`` is
concave; its maximum is the value of the relaxation ``0 <= P <= I``, ``tr P = r`` of ``P = U U'``.

The maximum is found by :mod:`fairpca._solvers.many_groups.central_path`, a projection near it by
:mod:`fairpca._solvers.many_groups.recovery`. The ``gap`` between its value and the bound
is zero up to rounding where the relaxation is tight, as it always is for two groups; elsewhere it
is at least the price of asking for rank r.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fairpca._problems.linear import Problem, least_error, least_maximum, least_spread
from fairpca._solvers.eigenspaces.operand import Family, Point
from fairpca._solvers.many_groups.central_path import PathEnd, Workspace, follow
from fairpca._solvers.many_groups.recovery import recover
from fairpca._typing import Array, Mask

__all__ = ["DualSolution", "minimise", "minimise_maximum", "minimise_spread"]

_ROUNDING = 1e-12
_TIE = 1e-7  # relative distance below which eigenvalues count as equal

Objective = Literal["error", "spread", "maximum"]


@dataclass(frozen=True)
class DualSolution:
    """A projection and its certificate.

    Attributes
    ----------
    basis : ndarray of shape (d, r)
        Orthonormal ``U``, in no particular rotation.
    errors : ndarray of shape (k,)
        ``R_g(U)``.
    objective : {"error", "spread", "maximum"}
        What `value` and `bound` measure: the overall error, the spread, or the largest term.
    value, bound : float
        At ``U``; and below it for every projection that satisfies the constraints.
    gap : float
        ``value - bound``, not negative.
    violation : float
        Largest amount by which a constraint is exceeded, in units of error.
    weights : ndarray of shape (k,)
        ``w``, the eigenproblem behind `bound`.
    n_eigensolves : int
        Eigen-solves with all d features.
    iterations : int
        Newton steps on the central path.
    converged : bool
        Whether gap and violation are within tolerance. Not so if the problem is infeasible, or
        if no projection of rank r attains the relaxation's value.
    """

    basis: Array
    errors: Array
    objective: Objective
    value: float
    bound: float
    gap: float
    violation: float
    weights: Array
    n_eigensolves: int
    iterations: int
    converged: bool


def minimise_maximum(
    family: Family,
    scales: Array | None = None,
    offsets: Array | None = None,
    *,
    compared: Mask | None = None,
    weights: Array | None = None,
    tol: float = 1e-9,
) -> DualSolution:
    """Minimise ``max_g (scales_g R_g - offsets_g)``.

    Parameters
    ----------
    family : Family
    scales : ndarray of shape (k,), optional
        Positive and finite; ones by default. ``1 / tr C_g`` maximises the least explained variance.
    offsets : ndarray of shape (k,), optional
        Zeros by default, the largest error. ``min_V R_g(V)`` gives the loss of Samadi et al.
    compared : ndarray of bool, shape (k,), optional
        The groups that count; all by default.
    weights : ndarray of shape (k,), optional
        Weights thought to be near the optimal ones.
    tol : float
        Gap to reach, relative to the largest scaled trace.

    Returns
    -------
    DualSolution
    """
    k = len(family.traces)
    problem = least_maximum(
        np.ones(k) if scales is None else scales,
        np.zeros(k) if offsets is None else offsets,
        np.ones(k, dtype=bool) if compared is None else compared,
    )
    return minimise(family, problem, "maximum", weights=weights, tol=tol)


def minimise_spread(
    family: Family,
    *,
    cap: float | None = None,
    max_spread: float | None = None,
    max_error: float | None = None,
    compared: Mask | None = None,
    weights: Array | None = None,
    tol: float = 1e-9,
) -> DualSolution:
    """Least spread, then least overall error; or the best of one within a budget on the other.

    Parameters
    ----------
    family : Family
    cap : float, optional
        Largest error allowed to any group.
    max_spread : float, optional
        Minimise the overall error among projections with at most this spread. If there are none,
        the answer is that of least spread.
    max_error : float, optional
        Largest overall error allowed; not below that of PCA.
    compared : ndarray of bool, shape (k,), optional
        The groups whose errors are compared and capped; all by default. The others count in the
        overall error only.
    weights : ndarray of shape (k,), optional
        Weights thought to be near the optimal ones.
    tol : float
        Gap to reach, relative to the largest trace.

    Returns
    -------
    DualSolution
        With ``objective == "error"`` the spread asked for is reached (zero if none was) and the
        overall error is certified. With ``"spread"`` it cannot be, or could not, and the spread
        is certified.
    """
    work = Workspace(family)
    shares, traces = family.shares, family.traces
    compared = np.ones(len(shares), dtype=bool) if compared is None else compared
    rounding = _ROUNDING * float(traces.max())
    pca = work.top(shares)
    pca_error = float(shares @ pca.errors)
    fair = np.ptp(pca.errors[compared]) <= (max_spread or 0.0) + rounding
    capped = cap is None or pca.errors[compared].max() <= cap + rounding
    if (fair and capped) or (max_error is not None and max_error <= pca_error):
        return _settled(work, pca, "error", pca_error)
    work.grow(pca.basis)

    # No overall error is above this, so a higher bound proves that the spread is out of reach.
    most = traces if cap is None else np.where(compared, np.minimum(cap, traces), traces)
    ceiling = float(shares @ most) + rounding if max_error is None else max_error
    problem = least_error(shares, compared, max_spread=max_spread or 0.0, cap=cap)
    end = follow(work, problem, weights, tol, ceiling)
    if end.bound <= ceiling:
        solution = _finish(work, end, "error", tol)
        if solution.violation <= rounding and solution.value <= ceiling + rounding:
            return solution

    problem = least_spread(shares, compared, cap=cap, max_error=max_error)
    end = follow(work, problem, weights, tol)
    solution = _finish(work, replace(end, bound=max(end.bound, 0.0)), "spread", tol)
    return _least_error_in_face(work, solution, compared, cap, tol)


def minimise(
    family: Family,
    problem: Problem,
    objective: Objective,
    *,
    weights: Array | None = None,
    tol: float = 1e-9,
) -> DualSolution:
    """Solve one problem that is linear in the group errors.

    Parameters
    ----------
    family : Family
    problem : Problem
    objective : {"error", "spread", "maximum"}
        Name for what the problem minimises.
    weights : ndarray of shape (k,), optional
        Weights thought to be near the optimal ones.
    tol : float
        Gap to reach, relative to the problem's scale.

    Returns
    -------
    DualSolution
    """
    work = Workspace(family)
    if family.rank == family.n_features or not family.traces.any():
        point = work.top(family.shares)
        return _settled(work, point, objective, *problem.measure(point.errors))
    return _finish(work, follow(work, problem, weights, tol), objective, tol)


def _finish(work: Workspace, end: PathEnd, objective: Objective, tol: float) -> DualSolution:
    """Recover a projection and compare it with the bound."""
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
    value = found.value / end.objective_scale
    gap = max(value - end.bound, 0.0)
    return DualSolution(
        basis=work.basis @ found.basis,
        errors=found.errors,
        objective=objective,
        value=value,
        bound=end.bound,
        gap=gap,
        violation=found.violation / end.row_scale,
        weights=end.problem.weights(end.prices) / end.objective_scale,
        n_eigensolves=work.n_eigensolves,
        iterations=work.iterations,
        converged=gap * end.objective_scale <= tol and found.violation <= _ROUNDING,
    )


def _sharpened(work: Workspace, end: PathEnd, prices: Array) -> PathEnd:
    """Try the multipliers of the projection itself as prices.

    They are exact, zeros included, where the central path only tends to its end slowly: at a
    row that is active at no price.
    """
    prices = end.problem.balanced(prices)
    if (prices < 0.0)[~end.problem.equal].any():
        return end
    weights = end.problem.weights(prices)
    if work.closed:
        work.n_eigensolves += 1
        kept = np.linalg.eigvalsh(np.tensordot(weights, work.matrices, 1))[-work.rank :].sum()
        least = float(weights @ work.traces - kept)
    else:
        least = work.top(weights).bound
    bound = (least - float(end.problem.limits @ prices)) / end.objective_scale
    return replace(end, prices=prices, bound=bound) if bound > end.bound else end


def _settled(
    work: Workspace, point: Point, objective: Objective, value: float, violation: float = 0.0
) -> DualSolution:
    """The solution when an eigenspace known to be optimal is at hand."""
    return DualSolution(
        basis=point.basis,
        errors=point.errors,
        objective=objective,
        value=value,
        bound=value,
        gap=0.0,
        violation=violation,
        weights=work.family.shares,
        n_eigensolves=work.n_eigensolves,
        iterations=work.iterations,
        converged=violation <= _ROUNDING * float(work.family.traces.max()),
    )


def _least_error_in_face(
    work: Workspace, solution: DualSolution, compared: Mask, cap: float | None, tol: float
) -> DualSolution:
    """Lower the overall error as far as the least spread leaves it free.

    It does where eigenvalue r of ``W`` is multiple: the eigenvectors above it belong to every
    solution, those equal to it are open.
    """
    eigenvalues, vectors = np.linalg.eigh(np.tensordot(solution.weights, work.matrices, 1))
    height = eigenvalues - eigenvalues[-work.rank]
    width = _TIE * max(float(np.abs(eigenvalues).max()), _TIE)
    fixed, block = vectors[:, height > width], vectors[:, np.abs(height) <= width]
    inner = work.within(fixed, block)
    if block.shape[1] == inner.rank:
        return solution
    shares, rounding = work.family.shares, _ROUNDING * float(work.traces.max())
    spread = float(np.ptp(solution.errors[compared]))
    problem = least_error(shares, compared, max_spread=spread + rounding, cap=cap)
    lower = _finish(inner, follow(inner, problem, None, tol), "error", tol)
    if lower.violation > rounding or lower.value >= shares @ solution.errors - rounding:
        return solution
    return replace(
        solution,
        basis=np.hstack([work.basis @ fixed, lower.basis]),
        errors=lower.errors,
        value=float(np.ptp(lower.errors[compared])),
        iterations=lower.iterations,
    )
