"""The dual of a k-group problem, smoothed by a logarithmic barrier, and Newton's method on it.

Relax ``U U'`` to ``P`` with ``0 <= P <= I``, ``tr P = r``, inside the span of an orthonormal ``V``:
``P = V S V'``, with ``C_g`` standing for ``V' C_g V``. For prices ``y`` of the rows of a
``LinearProblem`` and ``W = sum_g w_g C_g``, ``w = c + A'y``, the dual function is ``min_S w'R(S) -
b'y``. It is concave but has a kink wherever eigenvalues r and r + 1 of ``W`` cross, which the
optimum seeks out. Hence the barrier, of parameter ``mu``::

    f(y) = min_S { w'R(S) - mu log det S - mu log det(I - S) } - b'y
           + mu sum_j log(y_j - l_j) + mu sum_j log(h - y_j)

The minimising ``S`` has the eigenvectors of ``W`` and, with ``x_i = (lambda_i - theta) / mu``, the
occupations ``s_i`` solving ``1/(1 - s_i) - 1/s_i = x_i``; ``theta`` is set by ``sum_i s_i = r``.
Subtracting two of these equations gives the divided differences without cancellation::

    K_ij = (s_i - s_j)/(lambda_i - lambda_j) = 1 / (mu [1/(s_i s_j) + 1/((1 - s_i)(1 - s_j))])

and so the Hessian in ``w``, with ``C_g`` written in the eigenvectors of ``W``::

    -H_gh = sum_ij K_ij (C_g - m_g I)_ij (C_h - m_h I)_ij,   m_g = sum_i K_ii (C_g)_ii / sum_i K_ii

``f / mu`` is self-concordant, so damped Newton converges from anywhere and the number of steps does
not depend on how many eigenvalues cross. ``dy/dmu`` on the path of maximisers comes from one more
right-hand side; it both predicts the next point and, at the end, removes the barrier's bias.

``l_j`` is 0, or ``-h`` on equalities. The ceiling ``h`` on prices makes the constraints elastic: an
infeasible problem, or one without interior, still has a path. It rises as ``mu`` falls, because in
a span that is still small constraints may look infeasible that are not.

Cost of a step, with m columns in ``V``: one m x m eigendecomposition and ``4 k m^3`` flops.

:func:`follow` follows the path of maximisers to the best prices at ``mu = 0``. Unless the span is
the whole space, it grows by the top eigenvectors at each point of the path, while the dual value
within the span exceeds the true one by more than the present gap of the path.
"""

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from scipy.optimize import brentq

from fairpca._moments.tolerances import ROUNDED
from fairpca._problems.linear import LinearProblem
from fairpca._solvers.eigenspaces.lapack import eigen
from fairpca._solvers.many_groups.workspace import MAX_STEPS, Proof, Workspace
from fairpca._typing import Array

_MAX_PRICE = 1e6  # a limit with a higher price counts as one that cannot be kept
_PACE = (0.1, 0.1, 0.3, 1.0, 3.0)  # factor of the next reduction of mu, by Newton steps needed


@dataclass(frozen=True)
class Centre:
    """A point on (or near) the central path."""

    prices: Array  # y
    mu: float
    value: float  # the dual without the barrier, in the span
    vectors: Array  # eigenvectors of W, as columns
    occupations: Array  # eigenvalues of S, ascending
    slack: Array  # what the rows leave unused at S, negative where they are violated
    newton: Array  # Newton step at this mu
    tangent: Array  # dy/dmu along the path
    steps: int  # Newton steps taken to get here


@dataclass(frozen=True)
class _Evaluation:
    """Value of ``f`` at one ``y``, with the pieces its derivatives need."""

    value: float
    prices: Array
    eigenvalues: Array
    vectors: Array
    theta: float
    filled: Array  # s
    empty: Array  # 1 - s


class SmoothedDual:
    """The function ``f`` of the module docstring, for a problem in units and the present span."""

    def __init__(self, work: Workspace, problem: LinearProblem) -> None:
        self.problem = problem
        self.rank = work.rank
        self.matrices = work.matrices
        self.traces = work.traces
        #: Number of logarithms; the duality gap on the path is at most ``mu`` times as large.
        self.n_terms = 2 * self.matrices.shape[1] + 2 * len(problem.limits)
        self.n_evaluations = 0  # eigendecompositions so far

    def centre(self, prices: Array, mu: float, tol: float) -> Centre:
        """Maximise ``f`` from strictly feasible prices by damped Newton steps.

        They stop at a Newton decrement of ``tol``, or where rounding leaves nothing to gain.
        """
        if not self._allowed(prices, mu):
            raise ArithmeticError("rounding has moved the prices out of their limits")
        at = self._evaluate(prices, mu)
        for steps in range(MAX_STEPS + 1):
            newton, tangent, decrement = self._directions(at, mu)
            if decrement < tol or steps == MAX_STEPS:
                break
            better = self._search(at, newton, decrement, mu)
            if better is None:
                break
            at = better
        prices = at.prices
        low, high = self._room(prices, mu)
        value = self._bound(prices, at.eigenvalues)
        slack = mu / low - mu / high
        return Centre(prices, mu, value, at.vectors, at.filled, slack, newton, tangent, steps)

    def predict(self, centre: Centre, mu: float) -> tuple[Array, float]:
        """Follow the tangent towards a smaller ``mu``, stopping short of the price limits.

        The prices come with the ``mu`` they belong to, which is not below the one asked for.
        """
        step = centre.newton + (mu - centre.mu) * centre.tangent
        while self._reach(centre.prices, step, centre.mu) <= 1.02 and mu < 0.9 * centre.mu:
            mu = float(np.sqrt(mu * centre.mu))
            step = centre.newton + (mu - centre.mu) * centre.tangent
        length = min(1.0, 0.95 * self._reach(centre.prices, step, centre.mu))
        prices = balanced(self.problem, centre.prices + length * step)
        if not self._allowed(prices, mu):
            prices = centre.prices
        return prices, mu

    def limit(self, centre: Centre) -> Array:
        """Prices extrapolated to ``mu = 0``: the error is of order ``mu**2``, not ``mu``."""
        step = centre.newton - centre.mu * centre.tangent
        length = min(1.0, 0.999 * self._reach(centre.prices, step, centre.mu))
        return balanced(self.problem, centre.prices + length * step)

    def value(self, prices: Array) -> float:
        """Dual value without the barrier."""
        self.n_evaluations += 1
        weighted = np.tensordot(self.problem.weights(prices), self.matrices, 1)
        return self._bound(prices, eigen(weighted)[0])

    def _bound(self, prices: Array, eigenvalues: Array) -> float:
        lost = self.problem.weights(prices) @ self.traces - eigenvalues[-self.rank :].sum()
        return float(lost - self.problem.limits @ prices)

    def _search(
        self, at: _Evaluation, newton: Array, decrement: float, mu: float
    ) -> _Evaluation | None:
        """Point along the Newton step with a fair part of the gain it promises, if any."""
        if not np.isfinite(newton).all():
            return None
        longest = min(1.0, 0.95 * self._reach(at.prices, newton, mu))
        for length in longest * 0.5 ** np.arange(10):
            prices = balanced(self.problem, at.prices + length * newton)
            if self._allowed(prices, mu):
                trial = self._evaluate(prices, mu)
                if trial.value >= at.value + 0.1 * length * mu * decrement**2:
                    return trial
        return None

    def _room(self, prices: Array, mu: float) -> tuple[Array, Array]:
        """Distances of the prices from their limits below and above."""
        ceiling = min(_MAX_PRICE, 10.0 / mu)
        return prices + np.where(self.problem.equal, ceiling, 0.0), ceiling - prices

    def _allowed(self, prices: Array, mu: float) -> bool:
        """Whether prices are numbers strictly between their limits."""
        return all(bool((room > 0.0).all()) for room in self._room(prices, mu))

    def _reach(self, prices: Array, direction: Array, mu: float) -> float:
        """Longest step along a direction before a price meets its limit."""
        low, high = self._room(prices, mu)
        down = direction < 0.0
        up = direction > 0.0
        steps = np.concatenate([-low[down] / direction[down], high[up] / direction[up]])
        return float(steps.min(initial=np.inf))

    def _evaluate(self, prices: Array, mu: float) -> _Evaluation:
        self.n_evaluations += 1
        weights = self.problem.weights(prices)
        eigenvalues, vectors = eigen(np.tensordot(weights, self.matrices, 1))
        theta, filled, empty = _occupy(eigenvalues, self.rank, mu)
        low, high = self._room(prices, mu)
        barrier = np.log(low).sum() + np.log(high).sum()
        barrier -= np.log(filled).sum() + np.log(empty).sum()
        value = weights @ self.traces - eigenvalues @ filled - self.problem.limits @ prices
        total = float(value + mu * barrier)
        return _Evaluation(total, prices, eigenvalues, vectors, theta, filled, empty)

    def _directions(self, at: _Evaluation, mu: float) -> tuple[Array, Array, float]:
        """Newton step, tangent ``dy/dmu`` and Newton decrement."""
        problem = self.problem
        rotated = at.vectors.T @ self.matrices @ at.vectors
        diagonals = np.einsum("gii->gi", rotated)
        s = at.filled
        e = at.empty
        K = 1.0 / (mu * (1.0 / np.outer(s, s) + 1.0 / np.outer(e, e)))
        k_ii = np.diag(K)
        mean = diagonals @ k_ii / k_ii.sum()
        root = rotated - mean[:, np.newaxis, np.newaxis] * np.eye(len(s))
        root = (root * np.sqrt(K)).reshape(len(rotated), -1)
        H = root @ root.T
        x = (at.eigenvalues - at.theta) / mu
        ds_dmu = k_ii * (k_ii @ x / k_ii.sum() - x)

        low, high = self._room(at.prices, mu)
        errors = self.traces - diagonals @ s
        gradient = problem.rows @ errors - problem.limits + mu / low - mu / high
        d_gradient = 1.0 / low - 1.0 / high - problem.rows @ (diagonals @ ds_dmu)
        least = mu / low**2 + mu / high**2
        N = problem.rows @ H @ problem.rows.T + np.diag(least)

        # Steps keep B'y = -q. The diagonal is scaled to one, because entries range from mu to
        # 1 / mu. The ridge holds prices without effect: rows may repeat or contradict each other.
        n, n_levels = problem.levels.shape
        unit = 1.0 / np.sqrt(np.maximum(np.diag(N), least))  # rounding may make it negative
        levels = unit[:, np.newaxis] * problem.levels
        levels /= np.linalg.norm(levels, axis=0)
        kkt = np.zeros((n + n_levels, n + n_levels))
        kkt[:n, :n] = N * np.outer(unit, unit) + ROUNDED * np.eye(n)
        kkt[:n, n:] = levels
        kkt[n:, :n] = levels.T
        right = np.zeros((n + n_levels, 2))
        right[:n] = unit[:, np.newaxis] * np.column_stack([gradient, d_gradient])
        newton, tangent = (unit[:, np.newaxis] * np.linalg.solve(kkt, right)[:n]).T
        decrement = float(np.sqrt(max(newton @ N @ newton, 0.0) / mu))
        return newton, tangent, decrement


def balanced(problem: LinearProblem, prices: Array) -> Array:
    """Prices with ``B'y = -q`` to rounding, without which they prove no bound.

    Each price changes in proportion to its square, so that small ones keep their sign.
    """
    influence = prices[:, np.newaxis] ** 2 * problem.levels
    residual = problem.levels.T @ prices + problem.level_cost
    shift, *_ = np.linalg.lstsq(problem.levels.T @ influence, residual, rcond=None)
    return np.asarray(prices - influence @ shift)


def _occupy(eigenvalues: Array, rank: int, mu: float) -> tuple[float, Array, Array]:
    """Threshold ``theta``, occupations ``s`` and ``1 - s``, both to full relative precision."""

    def fill(theta: float) -> tuple[Array, Array]:
        x = (eigenvalues - theta) / mu
        minor = 2.0 / (2.0 + np.abs(x) + np.sqrt(4.0 + x * x))
        return np.where(x > 0.0, 1.0 - minor, minor), np.where(x > 0.0, minor, 1.0 - minor)

    share = rank / len(eigenvalues)
    margin = mu * (1.0 + abs(1.0 / (1.0 - share) - 1.0 / share))
    low = eigenvalues[0] - margin
    high = eigenvalues[-1] + margin
    theta = brentq(lambda t: fill(t)[0].sum() - rank, low, high, xtol=1e-300, rtol=1e-15)
    return theta, *fill(theta)


def follow(
    work: Workspace, problem: LinearProblem, tol: float, ceiling: float = np.inf
) -> tuple[Centre, Array, Proof]:
    """Follow the central path to its end, or until the bound passes a ceiling; all in units.

    Returns the last centre, the prices it leads to, and the best proof on the way.
    """
    last_mu = max(1e-9, 1e-2 * tol, 10.0 * work.noise)  # a smaller mu only adds rounding
    prices = problem.start
    mu = 0.1
    shrink = 0.1
    best = Proof(prices, -np.inf)
    dual = SmoothedDual(work, problem)
    before = None
    for _ in range(5 * MAX_STEPS):
        last = mu <= last_mu
        path_gap = mu * dual.n_terms
        allowed = max(1e-3 * tol, work.noise)
        if last:
            centre = dual.centre(prices, mu, 1e-2)
            if before is not None and centre.value < before.value - path_gap:
                centre = before  # the value is too small: rounding ended Newton's method
            prices = dual.limit(centre)
            here = dual.value(prices)
        else:
            centre = dual.centre(prices, mu, 0.3)  # this will do for the tangent
            prices = centre.prices
            here = centre.value
            allowed = max(allowed, 0.1 * path_gap)
        proof = Proof(prices, here)
        if not work.closed:
            proof = work.prove(problem, prices)
        best = max(best, proof, key=attrgetter("bound"))
        missing = here - proof.bound > allowed and best.bound <= ceiling
        if missing and proof.reach is not None and work.grow(proof.reach):
            dual = SmoothedDual(work, problem)
            before = None
            prices = centre.prices
            continue
        if last or best.bound > ceiling:
            break
        shrink = float(np.clip(shrink * _PACE[min(centre.steps, 4)], 1e-3, 0.5))
        prices, mu = dual.predict(centre, max(mu * shrink, last_mu))
        before = centre
    if work.closed:
        work.spaces.n_eigensolves += dual.n_evaluations
        best = work.prove(problem, best.prices)
    return centre, prices, best
