"""The oracles themselves: both agree with each other, and with a semidefinite program."""

from __future__ import annotations

import numpy as np
import pytest
from stress.generators import any_kind, any_rank, gaussian
from stress.oracles import Moments, Relaxation, TwoGroups

pytestmark = pytest.mark.stress


def test_two_groups_against_the_relaxation(rng, within):
    X, groups = any_kind(rng, 2)
    moments, rank = Moments.of_rows(X, groups), any_rank(rng, X)
    two, relaxed = TwoGroups(moments, rank), Relaxation(moments, rank)
    at_most = float(moments.shares @ moments.best(rank, np.array([0.3, 0.7])))
    at_most += 1e-12 * moments.scale  # at a tie it is the least there is, out of reach by rounding
    low, high = two.least([1.0, 0.0], moments.shares, at_most)
    limit = (relaxed.overall, at_most)
    relaxed_low, relaxed_high = relaxed.least(np.array([1.0, 0, 0, 0]), limit)
    within("oracles that disagree", low / two.scale - relaxed_high, 1e-7)
    within("oracles that disagree", relaxed_low - high / two.scale, 1e-7)


def test_relaxation_against_a_semidefinite_program(rng, within):
    cp = pytest.importorskip("cvxpy")
    X, groups = gaussian(rng, int(rng.integers(3, 6)))
    moments, rank = Moments.of_rows(X, groups), any_rank(rng, X)
    compared = rng.random(len(moments.shares)) < 0.7
    compared[:2] = True
    relaxed = Relaxation(moments, rank, compared=compared)
    d = X.shape[1]
    P = cp.Variable((d, d), symmetric=True)
    errors = cp.hstack(
        [1.0 / relaxed.scale * cp.trace(C @ (np.eye(d) - P)) for C in moments.matrices]
    )
    projections = [P >> 0, np.eye(d) - P >> 0, cp.trace(P) == rank]
    own = errors[np.flatnonzero(compared)]
    spread = cp.max(own) - cp.min(own)
    at_most = float(np.ptp(moments.best(rank, moments.shares)[compared])) * rng.random()
    wide_enough = at_most > relaxed.least(relaxed.spread)[1] * relaxed.scale
    for objective, functional, limits in (
        (cp.max(own), relaxed.worst, []),
        (spread, relaxed.spread, []),
        (moments.shares @ errors, relaxed.overall, [(relaxed.spread, at_most)] * wide_enough),
    ):
        within_limits = [spread <= limit / relaxed.scale for _, limit in limits]
        problem = cp.Problem(cp.Minimize(objective), [*projections, *within_limits])
        value = problem.solve(solver=cp.CLARABEL)
        low, high = relaxed.least(functional, *limits)
        within("oracle against a semidefinite program", max(low - value, value - high), 1e-6)
