"""Fair PCA for any number of groups: certified solutions from the dual.

Letters as in the paper: ``C_g`` second moments of group g about the overall mean, ``p_g`` its
share, ``U`` (d x r) orthonormal, ``R_g(U) = tr C_g - tr U'C_g U``, overall error
``R = sum_g p_g R_g``. The *spread* ``max_g R_g - min_g R_g`` stands where the disparity D stands
for two groups.

Each criterion is a :class:`~fairpca._group_problems.Problem`, linear in the errors. For prices
``y`` of its rows, with ``w = c + A'y``::

    q(y) = min_U w'R(U) - b'y  =  w'tr C - (sum of the r largest eigenvalues of sum_g w_g C_g) - b'y

bounds the objective of every rank-r projection from below: one eigen-solve certifies. ``q`` is
concave; its maximum is the value of the relaxation ``0 <= P <= I``, ``tr P = r`` of ``P = U U'``.

The maximum is found on the central path of :mod:`fairpca._barrier`, in the whole space for few
features, otherwise in a growing span: the top eigenvectors at each point of the path are added
while the span's own value of ``q`` is above the true one by more than the path's present gap. The
span ends with a few dozen vectors after ten to twenty eigen-solves, however many features there
are. :mod:`fairpca._recovery` then finds the projection. The ``gap`` between its value and the bound
is zero up to rounding where the relaxation is tight, as it always is for two groups; elsewhere it
is at least the price of asking for rank r.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fairpca._barrier import Centre, SmoothedDual
from fairpca._group_problems import Array, Mask, Problem, least_error, least_maximum, least_spread
from fairpca._recovery import recover
from fairpca._spectral import Family, Point, bordered

__all__ = ["DualSolution", "minimise", "minimise_maximum", "minimise_spread"]

_WHOLE_SPACE = 64  # up to this many features the span is everything from the start
_FIRST_MU, _LAST_MU = 0.1, 1e-9
_MAX_POINTS = 300
_PACE = (0.1, 0.1, 0.3, 1.0, 3.0)  # change of pace after so many Newton steps
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
    work = _Workspace(family)
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
    end = _follow(work, problem, weights, tol, ceiling)
    if end.bound <= ceiling:
        solution = _finish(work, end, "error", tol)
        if solution.violation <= rounding and solution.value <= ceiling + rounding:
            return solution

    problem = least_spread(shares, compared, cap=cap, max_error=max_error)
    end = _follow(work, problem, weights, tol)
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
    work = _Workspace(family)
    if family.rank == family.n_features or not family.traces.any():
        point = work.top(family.shares)
        return _settled(work, point, objective, *problem.measure(point.errors))
    return _finish(work, _follow(work, problem, weights, tol), objective, tol)


class _Workspace:
    """The span of the eigenvectors met so far, and the count of the work done."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.traces = family.traces
        self.rank = family.rank
        self.n_eigensolves = 0
        self.iterations = 0
        d = family.n_features
        self.closed = d <= _WHOLE_SPACE
        self.basis = np.eye(d, d if self.closed else 0)
        self.matrices = self.basis.T @ family.products(self.basis)

    def top(self, weights: Array) -> Point:
        """Solve the eigenproblem in the whole space."""
        self.n_eigensolves += 1
        return self.family.top(weights)

    def grow(self, block: Array) -> bool:
        """Add the columns of a block to the span; false if they were in it."""
        for _ in range(2):
            block = block - self.basis @ (self.basis.T @ block)
            left, sizes, _ = np.linalg.svd(block, full_matrices=False)
            block = left[:, sizes > 1e-9]
        if block.shape[1]:
            products = self.family.products(block)
            self.matrices = bordered(self.matrices, self.basis, block, products)
            self.basis = np.hstack([self.basis, block])
        return bool(block.shape[1])

    def within(self, fixed: Array, block: Array) -> _Workspace:
        """The problem that is left when U contains `fixed` and lies in `fixed` and `block`."""
        inner = copy(self)
        inner.traces = self.traces - np.einsum("gai,ai->g", self.matrices @ fixed, fixed)
        inner.rank = self.rank - fixed.shape[1]
        inner.basis = self.basis @ block
        inner.matrices = block.T @ self.matrices @ block
        inner.closed = True
        return inner


@dataclass(frozen=True)
class _PathEnd:
    """Where the central path was left: its last centre, the prices it leads to, their bound."""

    problem: Problem  # scaled
    row_scale: float
    objective_scale: float
    centre: Centre
    prices: Array
    bound: float


def _follow(
    work: _Workspace,
    problem: Problem,
    weights: Array | None,
    tol: float,
    ceiling: float = np.inf,
) -> _PathEnd:
    """Follow the central path to its end, or until the bound passes a ceiling."""
    family = work.family
    scaled, row_scale, objective_scale = problem.scaled(work.traces)
    if not work.closed:
        if not work.basis.size:
            work.grow(work.top(family.shares).basis)
        if weights is not None:
            work.grow(work.top(weights).basis)
        if work.basis.shape[1] <= family.rank:
            work.grow(np.eye(family.n_features, family.rank + 1))

    def smoothed() -> SmoothedDual:
        return SmoothedDual(scaled, work.matrices, work.traces, work.rank)

    last_mu, highest = max(_LAST_MU, 1e-2 * tol), ceiling * objective_scale
    prices, mu, shrink = scaled.start, _FIRST_MU, 0.1
    bound = -np.inf
    dual = smoothed()
    for _ in range(_MAX_POINTS):
        last = mu <= last_mu
        centre = dual.centre(prices, mu, 1e-2) if last else dual.centre(prices, mu)
        work.iterations += centre.steps
        prices = dual.limit(centre) if last else centre.prices
        here = dual.value(prices) if last else centre.value
        if work.closed:
            bound = max(bound, here)
        else:
            point = work.top(scaled.weights(prices))
            true = point.bound - float(scaled.limits @ prices)
            bound = max(bound, true)
            allowed = 1e-3 * tol if last else max(1e-3 * tol, 0.1 * mu * dual.n_terms)
            if bound <= highest and here - true > allowed and work.grow(point.basis):
                dual, prices = smoothed(), centre.prices
                continue
        if last or bound > highest:
            break
        shrink = float(np.clip(shrink * _PACE[min(centre.steps, 4)], 1e-3, 0.5))
        prices, mu = dual.predict(centre, max(mu * shrink, last_mu))
    if work.closed:
        work.n_eigensolves += dual.n_evaluations
    return _PathEnd(scaled, row_scale, objective_scale, centre, prices, bound / objective_scale)


def _finish(work: _Workspace, end: _PathEnd, objective: Objective, tol: float) -> DualSolution:
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


def _sharpened(work: _Workspace, end: _PathEnd, prices: Array) -> _PathEnd:
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
    work: _Workspace, point: Point, objective: Objective, value: float, violation: float = 0.0
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
    work: _Workspace, solution: DualSolution, compared: Mask, cap: float | None, tol: float
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
    lower = _finish(inner, _follow(inner, problem, None, tol), "error", tol)
    if lower.violation > rounding or lower.value >= shares @ solution.errors - rounding:
        return solution
    return replace(
        solution,
        basis=np.hstack([work.basis @ fixed, lower.basis]),
        errors=lower.errors,
        value=float(np.ptp(lower.errors[compared])),
        iterations=lower.iterations,
    )
