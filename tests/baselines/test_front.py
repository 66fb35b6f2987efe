"""The exact front against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from helpers.fronts import check, made, objectives, shares
from helpers.inside import _subset, exact_front, select
from helpers.marks import needs_data

from fairpca import datasets


def brute_force(lambdas, deltas, r):
    """Every subset that no other dominates, one per point, by ascending error."""
    points = {
        s: objectives(lambdas, deltas, s) for s in itertools.combinations(range(len(lambdas)), r)
    }
    front, least = [], math.inf
    for subset, (R, F) in sorted(points.items(), key=lambda item: item[1]):
        if least > F:
            front.append((subset, R, F))
            least = F
    return front


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 9])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_exact_front_is_that_of_brute_force(d, seed):
    lambdas, deltas = made(d, seed)
    for r in range(1, d + 1):
        front = exact_front(lambdas, deltas, r)
        check(front, lambdas, deltas, r)
        expected = brute_force(lambdas, deltas, r)
        assert [tuple(subset) for subset in front.subsets.tolist()] == [e[0] for e in expected]


@pytest.mark.parametrize("r", [3, 6, 9])
def test_blocks_do_not_matter(r, monkeypatch):
    lambdas, deltas = made(12, 5)
    whole = exact_front(lambdas, deltas, r)
    monkeypatch.setattr(_subset, "_BLOCK", 7)
    np.testing.assert_array_equal(exact_front(lambdas, deltas, r).subsets, whole.subsets)


def test_order_scale_and_sign_do_not_matter():
    lambdas, deltas = made(10, 3)
    front = exact_front(lambdas, deltas, 4)
    order = np.random.default_rng(0).permutation(10)
    mixed = exact_front(lambdas[order], -deltas[order], 4)
    np.testing.assert_array_equal(np.sort(order[mixed.subsets], axis=1), front.subsets)
    scaled = exact_front(1e-9 * lambdas, 1e9 * deltas, 4)
    np.testing.assert_array_equal(scaled.subsets, front.subsets)


def test_keeping_all_leaves_nothing():
    front = exact_front([3.0, 2.0, 1.0], [1.0, -1.0, 5.0], 3)
    assert (front.subsets.tolist(), front.errors.tolist()) == ([[0, 1, 2]], [0.0])
    assert front.fairness.tolist() == [0.0]


def test_ties_go_to_pca():
    # 0.1 three times: the sums differ by their order of addition only.
    lambdas = [0.7, 0.1, 0.1, 0.1, 0.1, 0.1]
    for r in range(1, 6):
        front = exact_front(lambdas, [0.3, 0.1, 0.1, 0.1, 0.1, 0.1], r)
        assert front.subsets[0].tolist() == list(range(r))
        assert len(exact_front(lambdas, np.zeros(6), r)) == 1


def test_equal_eigenvalues_leave_only_the_fairest():
    front = exact_front([0.1] * 6, [0.3, -0.7, 0.2, 0.4, 0.9, -0.6], 3)
    assert len(front) == 1
    best = min(brute_force([0.0] * 6, [0.3, -0.7, 0.2, 0.4, 0.9, -0.6], 3), key=lambda e: e[2])
    assert front.fairness[0] == pytest.approx(best[2], abs=1e-15)


def test_zero_eigenvalues():
    lambdas, deltas = [3.0, 2.0, 1.0, 1e-17, 0.0], [1.0, 2.0, -1.0, -1e-17, 0.0]
    for r in (3, 4, 5):
        front = exact_front(lambdas, deltas, r)
        assert len(front) == 1
        assert front.subsets[0].tolist() == list(range(r))


def test_many_features_and_few_components():
    lambdas, deltas = made(1200, 0)
    front = exact_front(lambdas, deltas, 2)
    check(front, lambdas, deltas, 2)
    assert front.subsets[0].tolist() == [0, 1]


@needs_data
def test_known_figures_on_tcred(tcred):
    known = {4: (0.036, 8.948), 5: (0.0097, 8.060), 6: (1.2e-4, 7.101), 7: (1e-8, 5.882)}
    for r, (F, R) in known.items():
        front = exact_front(*tcred, r)
        row = select(front, "balanced")
        assert float(f"{front.fairness[row]:.2g}") == F
        assert float(f"{front.errors[row]:.3f}") == R


@needs_data
def test_all_fronts_of_tcred(tcred):
    for r in range(1, 22):
        check(exact_front(*tcred, r), *tcred, r)


@needs_data
def test_lsac_beyond_its_rank():
    lambdas, deltas = shares(datasets.load_lsac())
    for r in range(1, 11):
        front = exact_front(lambdas, deltas, r)
        check(front, lambdas, deltas, r)
        if r >= 9:
            assert len(front) == 1
            assert abs(front.errors[0]) < 1e-12
