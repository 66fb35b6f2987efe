"""The four rules that pick a point of the front."""

from __future__ import annotations

from typing import get_args

import numpy as np
from helpers.fronts import made
from helpers.inside import Front, Rule, exact_front, select


def front_of(errors, fairness):
    m = len(errors)
    return Front(np.arange(m)[:, None], np.array(errors, float), np.array(fairness, float))


def test_rules():
    front = front_of([1.0, 2.0, 3.0, 11.0], [10.0, 4.0, 3.0, 0.0])
    assert select(front, "least_error") == 0
    assert select(front, "fairest") == 3
    # Scaled: (0, 1), (.1, .4), (.2, .3), (1, 0): the second and third tie, the smaller error wins.
    assert select(front, "balanced") == 1
    # Ranges 1 and 100 for r = 1 make the error dear; 100 and 1 the fairness measure.
    assert select(front, "weighted", first=front_of([5.0, 6.0], [100.0, 0.0])) == 0
    assert select(front, "weighted", first=front_of([5.0, 105.0], [1.0, 0.0])) == 3
    # One point: its values take the place of the ranges.
    assert select(front, "weighted", first=front_of([1.0], [100.0])) == 0
    assert select(front, "weighted", first=front_of([1.0], [0.0])) == 3


def test_one_point_is_picked_by_every_rule():
    front = front_of([0.0], [0.0])
    assert [select(front, rule, first=front) for rule in get_args(Rule)] == [0, 0, 0, 0]


def test_two_points_balance_and_the_smaller_error_wins():
    rng = np.random.default_rng(0)
    for _ in range(50):
        R, F = np.sort(rng.random(2)), np.sort(rng.random(2))[::-1]
        assert select(front_of(R, F), "balanced") == 0


def test_balanced_ignores_units():
    lambdas, deltas = made(12, 8)
    front = exact_front(lambdas, deltas, 5)
    other = Front(front.subsets, 1e6 * front.errors + 3, 1e-6 * front.fairness)
    assert select(front) == select(other)
