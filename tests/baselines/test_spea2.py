"""SPEA2 against the exact front."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.fronts import check, made
from helpers.inside import exact_front, generations, spea2_front
from helpers.marks import needs_data, slow_case

pytest.importorskip("pymoo", reason="needs the subset extra")


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


def never_dominates(found, exact):
    for R, F in zip(found.errors, found.fairness, strict=True):
        assert ((exact.errors <= R + 1e-12) & (exact.fairness <= F + 1e-12)).any()


def area(front, corner):
    inside = (front.errors < corner[0]) & (front.fairness < corner[1])
    R, F = front.errors[inside], front.fairness[inside]
    return float(np.sum((corner[1] - F) * np.diff(np.append(R, corner[0]))))


@pytest.mark.parametrize(("d", "r"), [slow_case(3, 2), slow_case(6, 5), (7, 3), slow_case(12, 9)])
def test_spea2_finds_small_fronts(d, r):
    lambdas, deltas = made(d, 4)
    exact, found = exact_front(lambdas, deltas, r), spea2_front(lambdas, deltas, r, random_state=1)
    check(found, lambdas, deltas, r)
    never_dominates(found, exact)
    assert found.subsets[0].tolist() == exact.subsets[0].tolist()


@pytest.mark.slow
def test_spea2_is_seeded_and_leaves_the_global_generator_alone():
    lambdas, deltas = made(9, 1)
    np.random.seed(5)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again = (spea2_front(lambdas, deltas, 3, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.subsets, again.subsets)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert first.subsets[0].tolist() == list(range(3))
    check(first, lambdas, deltas, 3)


@pytest.mark.parametrize("equal", ["lambdas", "deltas"])
def test_spea2_on_degenerate_data(equal, monkeypatch):
    generations(monkeypatch, 10)
    lambdas, deltas = made(7, 2)
    lambdas = np.ones(7) if equal == "lambdas" else lambdas
    deltas = np.zeros(7) if equal == "deltas" else deltas
    assert len(spea2_front(lambdas, deltas, 3, random_state=0)) == 1
