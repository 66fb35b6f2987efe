"""The best prices of a k-group problem, by following the central path of its dual.

The barrier smooths the dual function ``q``; its maximisers form a path that ends, as the smoothing
``mu`` goes to zero, at the best prices. With few features the path is followed in the whole space.
Otherwise in a growing span: the top eigenvectors at each point of the path are added while the
span's own value of ``q`` is above the true one by more than the path's present gap. The span ends
with a few dozen vectors after ten to twenty eigen-solves, however many features there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairpca._problems.linear import LinearProblem
from fairpca._solvers.many_groups.barrier import Centre, SmoothedDual
from fairpca._solvers.many_groups.workspace import Proof, Workspace
from fairpca._typing import Array

_FIRST_MU, _LAST_MU = 0.1, 1e-9
_MAX_POINTS = 300
_PACE = (0.1, 0.1, 0.3, 1.0, 3.0)  # change of pace after so many Newton steps


@dataclass(frozen=True)
class PathEnd:
    """Where the central path was left: its last centre, the prices it leads to, the best proof."""

    centre: Centre
    prices: Array
    proof: Proof


def follow(work: Workspace, problem: LinearProblem, tol: float, ceiling: float = np.inf) -> PathEnd:
    """Follow the central path to its end, or until the bound passes a ceiling; all in units."""

    def smoothed() -> SmoothedDual:
        return SmoothedDual(problem, work.matrices, work.traces, work.rank)

    last_mu = max(_LAST_MU, 1e-2 * tol, 10.0 * work.noise)
    prices, mu, shrink = problem.start, _FIRST_MU, 0.1
    best = Proof(prices, -np.inf)
    dual, before = smoothed(), None
    for _ in range(_MAX_POINTS):
        last = mu <= last_mu
        centre = dual.centre(prices, mu, 1e-2) if last else dual.centre(prices, mu)
        if last and before is not None and centre.value < before.value - mu * dual.n_terms:
            centre = before  # no centre has so small a value: rounding ended Newton's method
        prices = dual.limit(centre) if last else centre.prices
        here = dual.value(prices) if last else centre.value
        proof = Proof(prices, here) if work.closed else work.prove(problem, prices)
        best = max(best, proof, key=lambda proof: proof.bound)
        allowed = max(1e-3 * tol, work.noise, 0.0 if last else 0.1 * mu * dual.n_terms)
        missing = here - proof.bound > allowed and best.bound <= ceiling
        if missing and proof.reach is not None and work.grow(proof.reach):
            dual, before, prices = smoothed(), None, centre.prices
            continue
        if last or best.bound > ceiling:
            break
        shrink = float(np.clip(shrink * _PACE[min(centre.steps, 4)], 1e-3, 0.5))
        prices, mu = dual.predict(centre, max(mu * shrink, last_mu))
        before = centre
    if work.closed:
        work.spaces.n_eigensolves += dual.n_evaluations
        best = work.prove(problem, best.prices)
    return PathEnd(centre, prices, best)
