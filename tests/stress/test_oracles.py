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
    relaxed = Relaxation(moments, rank)
    d = X.shape[1]
    P = cp.Variable((d, d), symmetric=True)
    errors = cp.hstack(
        [1.0 / relaxed.scale * cp.trace(C @ (np.eye(d) - P)) for C in moments.matrices]
    )
    projections = [P >> 0, np.eye(d) - P >> 0, cp.trace(P) == rank]
    for objective, functional in (
        (cp.max(errors), relaxed.worst),
        (cp.max(errors) - cp.min(errors), relaxed.spread),
    ):
        value = cp.Problem(cp.Minimize(objective), projections).solve(solver=cp.CLARABEL)
        low, high = relaxed.least(functional)
        within("oracle against a semidefinite program", max(low - value, value - high), 1e-6)
