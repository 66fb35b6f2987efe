"""The bracketing root finder on smooth functions, jumps and intervals far from zero."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.inside import Sample, find_crossing
from hypothesis import example, given, settings
from hypothesis import strategies as st


class Counted:
    def __init__(self, f):
        self.f, self.calls = f, 0

    def __call__(self, x):
        self.calls += 1
        return Sample(x, self.f(x), None)


finite = st.floats(-1e3, 1e3, allow_nan=False)


@settings(deadline=None)
@given(
    left=finite,
    width=st.floats(1e-3, 1e3),
    at=st.floats(0.01, 0.99),
    power=st.sampled_from([1, 3, 5, 1 / 3]),
    sign=st.sampled_from([-1, 1]),
)
@example(left=-1e-5, width=1e-3, at=0.01, power=1 / 3, sign=-1)  # the root is zero, to rounding
def test_smooth_roots_on_any_interval(left, width, at, power, sign):
    root, right = left + at * width, left + width

    def f(x):
        return sign * np.sign(x - root) * abs(x - root) ** power

    counted = Counted(f)
    ends = sorted([Sample(x, f(x), None) for x in (left, right)], key=lambda end: end.value)
    found = find_crossing(counted, *ends, ftol=0.0)
    assert abs(found.at.x - root) <= 1e-14 * max(1.0, abs(left), abs(right))
    assert found.below.value <= 0 <= found.above.value
    assert counted.calls <= 120


@settings(deadline=None)
@given(
    left=finite,
    width=st.floats(1e-3, 1e3),
    at=st.floats(0.01, 0.99),
    low=st.floats(-1e3, -1e-6),
    high=st.floats(1e-6, 1e3),
)
def test_jumps_are_bracketed_to_rounding(left, width, at, low, high):
    place, right = left + at * width, left + width
    f = Counted(lambda x: low if x < place else high)
    found = find_crossing(f, Sample(left, low, None), Sample(right, high, None), 0.0)
    assert found.below.x < place <= found.above.x
    assert found.above.x - found.below.x <= 1e-15 * max(1e-3, abs(left), abs(right))
    assert (found.below.value, found.above.value) == (low, high)


def test_smooth_roots_are_found_superlinearly():
    f = Counted(lambda x: np.exp(x) - 20.0)
    ends = Sample(2.0, np.exp(2.0) - 20, None), Sample(5.0, np.exp(5.0) - 20, None)
    found = find_crossing(f, *ends, ftol=1e-14)
    assert found.at.x == pytest.approx(np.log(20.0), rel=1e-15)
    assert f.calls <= 12


def test_a_proven_jump_ends_the_search():
    f = Counted(lambda x: -1.0 if x < 3.25 else 2.0)

    def find_jump(lo, hi):
        return Sample(3.25, 2.0, "jump"), True

    found = find_crossing(f, Sample(3.0, -1.0, None), Sample(4.0, 2.0, None), 0.0, find_jump)
    assert found.at.point == "jump"
    assert f.calls <= 3
    assert (found.below.value, found.above.value) == (-1.0, 2.0)


def test_an_end_that_is_a_root():
    for ends in [(Sample(1.0, 0.0, None), Sample(2.0, 5.0, None))]:
        found = find_crossing(Counted(float), *ends, ftol=1e-12)
        assert found.at is found.below is found.above is ends[0]


def test_no_bracket_is_refused():
    with pytest.raises(ValueError, match="sides of zero"):
        find_crossing(Counted(float), Sample(1.0, 1.0, None), Sample(2.0, 2.0, None), 0.0)
