"""The best prices of a k-group problem, by following the central path of its dual.

The barrier smooths the dual function ``q``; its maximisers form a path that ends, as the smoothing
``mu`` goes to zero, at the best prices. With few features the path is followed in the whole space.
Otherwise in a growing span: the top eigenvectors at each point of the path are added while the
span's own value of ``q`` is above the true one by more than the path's present gap. The span ends
with a few dozen vectors after ten to twenty eigen-solves, however many features there are.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from fairpca._problems.linear import LinearProblem
from fairpca._problems.solution import Point
from fairpca._solvers.eigenspaces.growing import Spaces, bordered
from fairpca._solvers.many_groups.barrier import Centre, SmoothedDual
from fairpca._typing import Array

_WHOLE_SPACE = 64  # up to this many features the span is everything from the start
_FIRST_MU, _LAST_MU = 0.1, 1e-9
_MAX_POINTS = 300
_PACE = (0.1, 0.1, 0.3, 1.0, 3.0)  # change of pace after so many Newton steps


class Workspace:
    """The span of the eigenvectors met so far, and the count of the work done."""

    def __init__(self, spaces: Spaces, pca: Point) -> None:
        self.spaces = spaces
        self.pca = pca
        self.traces = spaces.traces
        self.rank = spaces.rank
        d = spaces.n_features
        self.closed = d <= _WHOLE_SPACE
        self.basis = np.eye(d, d if self.closed else 0)
        self.matrices = self.basis.T @ spaces.products(self.basis)
        if not self.closed:
            self.grow(pca.basis)
            if self.basis.shape[1] <= self.rank:
                self.grow(np.eye(d, self.rank + 1))

    def grow(self, block: Array) -> bool:
        """Add the columns of a block to the span; false if they were in it."""
        for _ in range(2):
            block = block - self.basis @ (self.basis.T @ block)
            left, sizes, _ = np.linalg.svd(block, full_matrices=False)
            block = left[:, sizes > 1e-9]
        if block.shape[1]:
            products = self.spaces.products(block)
            self.matrices = bordered(self.matrices, self.basis, block, products)
            self.basis = np.hstack([self.basis, block])
        return bool(block.shape[1])

    def within(self, fixed: Array, block: Array) -> Workspace:
        """The problem that is left when U contains `fixed` and lies in `fixed` and `block`."""
        inner = copy(self)
        inner.traces = self.traces - np.einsum("gai,ai->g", self.matrices @ fixed, fixed)
        inner.rank = self.rank - fixed.shape[1]
        inner.basis = self.basis @ block
        inner.matrices = block.T @ self.matrices @ block
        inner.closed = True
        return inner


@dataclass(frozen=True)
class PathEnd:
    """Where the central path was left: its last centre, the prices it leads to, their bound."""

    problem: LinearProblem  # scaled
    row_scale: float
    objective_scale: float
    centre: Centre
    prices: Array
    bound: float


def follow(work: Workspace, problem: LinearProblem, tol: float, ceiling: float = np.inf) -> PathEnd:
    """Follow the central path to its end, or until the bound passes a ceiling."""
    scaled, row_scale, objective_scale = problem.scaled(work.traces)

    def smoothed() -> SmoothedDual:
        return SmoothedDual(scaled, work.matrices, work.traces, work.rank)

    last_mu, highest = max(_LAST_MU, 1e-2 * tol), ceiling * objective_scale
    prices, mu, shrink = scaled.start, _FIRST_MU, 0.1
    bound = -np.inf
    dual = smoothed()
    for _ in range(_MAX_POINTS):
        last = mu <= last_mu
        centre = dual.centre(prices, mu, 1e-2) if last else dual.centre(prices, mu)
        prices = dual.limit(centre) if last else centre.prices
        here = dual.value(prices) if last else centre.value
        if work.closed:
            bound = max(bound, here)
        else:
            point = work.spaces.top(scaled.weights(prices))
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
        work.spaces.n_eigensolves += dual.n_evaluations
    return PathEnd(scaled, row_scale, objective_scale, centre, prices, bound / objective_scale)
