"""The exact front against brute force, SPEA2 against the exact front, and the four rules."""

from __future__ import annotations

import itertools
import math
import os
from functools import partial
from typing import get_args

import numpy as np
import pytest

from fairpca import datasets
from fairpca._problems.subset import Rule
from fairpca._solvers.subset import front as _subset
from fairpca._solvers.subset.front import Front, exact_front, spea2_front
from fairpca._solvers.subset.select import select

needs_data = pytest.mark.skipif(
    not os.environ.get("FAIRPCA_DATA"),
    reason="FAIRPCA_DATA names no folder with the paper's data files",
)


def objectives(lambdas, deltas, subset):
    left = [j for j in range(len(lambdas)) if j not in set(subset)]
    return math.fsum(lambdas[j] for j in left), math.fsum(deltas[j] for j in left) ** 2


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


def made(d, seed):
    rng = np.random.default_rng(seed)
    return np.sort(rng.gamma(1.0, size=d))[::-1], rng.normal(size=d)


def shares(bunch):
    """Eigenvalues of C, and v_j' (C_B - C_A) v_j."""
    X = bunch.data - bunch.data.mean(axis=0)
    mask = bunch.sensitive_features == bunch.groups[0]
    C_A, C_B = (X[rows].T @ X[rows] / rows.sum() for rows in (mask, ~mask))
    values, V = np.linalg.eigh(mask.mean() * C_A + (~mask).mean() * C_B)
    return values[::-1], np.einsum("ij,ij->j", V, (C_B - C_A) @ V)[::-1]


@pytest.fixture(scope="module")
def tcred():
    return shares(datasets.load_tcred())


def check(front, lambdas, deltas, r):
    """What holds for every front."""
    assert front.subsets.shape == (len(front), r)
    assert (np.diff(front.subsets, axis=1) > 0).all()
    assert (np.diff(front.errors) > 0).all()
    assert (np.diff(front.fairness) < 0).all()
    for subset, R, F in zip(front.subsets, front.errors, front.fairness, strict=True):
        expected = objectives(lambdas, deltas, subset.tolist())
        np.testing.assert_allclose((R, F), expected, rtol=1e-9, atol=1e-13)


# --- exact ------------------------------------------------------------------------------------


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


# --- the paper's data -------------------------------------------------------------------------


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


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("r", [2, 6, 11, 20])
def test_spea2_comes_close_to_exact_on_tcred(tcred, r):
    exact, found = exact_front(*tcred, r), spea2_front(*tcred, r, random_state=0)
    check(found, *tcred, r)
    never_dominates(found, exact)
    # Share of the area that the exact front dominates, out of the box it spans.
    corner = exact.errors[-1] * 1.01, exact.fairness[0] * 1.01
    assert area(found, corner) > 0.95 * area(exact, corner)


# --- SPEA2 ------------------------------------------------------------------------------------


def never_dominates(found, exact):
    for R, F in zip(found.errors, found.fairness, strict=True):
        assert ((exact.errors <= R + 1e-12) & (exact.fairness <= F + 1e-12)).any()


def area(front, corner):
    inside = (front.errors < corner[0]) & (front.fairness < corner[1])
    R, F = front.errors[inside], front.fairness[inside]
    return float(np.sum((corner[1] - F) * np.diff(np.append(R, corner[0]))))


SLOW = partial(pytest.param, marks=pytest.mark.slow)


@pytest.mark.parametrize(("d", "r"), [SLOW(3, 2), SLOW(5, 2), SLOW(6, 5), (9, 4), SLOW(12, 9)])
def test_spea2_finds_small_fronts(d, r):
    lambdas, deltas = made(d, 4)
    exact, found = exact_front(lambdas, deltas, r), spea2_front(lambdas, deltas, r, random_state=1)
    check(found, lambdas, deltas, r)
    never_dominates(found, exact)
    assert found.subsets[0].tolist() == exact.subsets[0].tolist()


def test_spea2_is_seeded_and_leaves_the_global_generator_alone():
    lambdas, deltas = made(40, 1)
    np.random.seed(5)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again = (spea2_front(lambdas, deltas, 15, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.subsets, again.subsets)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert first.subsets[0].tolist() == list(range(15))
    check(first, lambdas, deltas, 15)


@pytest.mark.parametrize("equal", ["lambdas", "deltas"])
def test_spea2_on_degenerate_data(equal):
    lambdas, deltas = made(14, 2)
    lambdas = np.ones(14) if equal == "lambdas" else lambdas
    deltas = np.zeros(14) if equal == "deltas" else deltas
    assert len(spea2_front(lambdas, deltas, 6, random_state=0, n_generations=5)) == 1


# --- rules ------------------------------------------------------------------------------------


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
