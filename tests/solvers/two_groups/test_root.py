"""The bracketing root finder on smooth functions, jumps and intervals far from zero."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from helpers.inside import Crossing, Eigenspaces, Line, Operand, Sample
from hypothesis import example, given, settings
from hypothesis import strategies as st

ONE_GROUP = np.ones(1)
#: A projection whose tangents meet nowhere, and which no path leads to.
NOWHERE = SimpleNamespace(errors=np.zeros(1), weights=np.zeros(1), bound=np.nan)


class Function(Line):
    """A function of a number in place of the slack of an eigenspace."""

    def __init__(self, f, slope=None, ftol=0.0):
        spaces = SimpleNamespace(rounding=ftol, place=np.nan)
        super().__init__(spaces, None, None, None)
        self.__dict__.update(f=f, derivative=slope, calls=[])

    def sample(self, x, point=None):
        self.calls.append(x)
        slope = np.nan if self.derivative is None else self.derivative(x)
        return Sample(x, float(self.f(x)), NOWHERE, slope)

    def meet(self, below, above):
        return None

    def between(self, below, above, at):
        return at.point

    def search(self, left, right):
        ends = sorted((self.sample(x) for x in (left, right)), key=lambda end: end.value)
        self.calls.clear()
        return self.cross(*ends)


finite = st.floats(-1e3, 1e3, allow_nan=False)


@settings(deadline=None)
@given(
    left=finite,
    width=st.floats(1e-3, 1e3),
    at=st.floats(0.01, 0.99),
    power=st.sampled_from([1, 3, 5, 1 / 3]),
    sign=st.sampled_from([-1, 1]),
    sloped=st.booleans(),
)
@example(left=-1e-5, width=1e-3, at=0.01, power=1 / 3, sign=-1, sloped=True)  # the root is zero
def test_smooth_roots_on_any_interval(left, width, at, power, sign, sloped):
    root, right = left + at * width, left + width

    def f(x):
        return sign * np.sign(x - root) * abs(x - root) ** power

    def slope(x):
        return sign * power * max(abs(x - root), 1e-300) ** (power - 1)

    line = Function(f, slope if sloped else None)
    found = line.search(left, right)
    assert abs(found.at.x - root) <= 1e-14 * max(1.0, abs(left), abs(right))
    assert found.below.value <= 0 <= found.above.value
    assert len(line.calls) <= 160


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
    found = Function(lambda x: low if x < place else high).search(left, right)
    assert found.below.x < place <= found.above.x
    assert found.above.x - found.below.x <= 1e-15 * max(1e-3, abs(left), abs(right))
    assert (found.below.value, found.above.value) == (low, high)


def test_smooth_roots_are_found_superlinearly():
    line = Function(lambda x: np.exp(x) - 20.0, np.exp, ftol=1e-14)
    found = line.search(2.0, 5.0)
    assert found.at.x == pytest.approx(np.log(20.0), rel=1e-15)
    assert len(line.calls) <= 9


def test_newton_closes_in_from_both_sides():
    line = Function(lambda x: np.exp(x) - 20.0, np.exp, ftol=1e-9)
    line.search(2.0, 5.0)
    signs = [x > np.log(20.0) for x in line.calls[-3:]]
    assert len(set(signs)) == 2


@pytest.mark.parametrize("kink", [0.3, 0.7])
def test_the_projection_of_zero_slack_at_a_jump_is_proven_without_bisection(kink):
    """Both groups' matrices are diagonal: the eigenspace jumps where two entries are equal."""
    C = np.array([np.diag([1.0, 0.0, 0.1]), np.diag([0.0, kink / (1 - kink), 0.1])])
    spaces = Eigenspaces(Operand(C, np.array([0.5, 0.5])), 1)
    line = Line(spaces, spaces.top_of_two, lambda _, errors: errors @ [1, -1], np.array([1.0, -1]))
    crossing = line.cross(line.sample(0.9), line.sample(0.1))
    assert isinstance(crossing, Crossing)
    assert abs(crossing.found.errors @ [1, -1]) < 1e-14
    assert crossing.at.x == pytest.approx(kink)
    assert spaces.n_eigensolves <= 6


def test_an_end_that_is_a_root():
    line = Function(lambda x: x - 1.0, ftol=1e-12)
    found = line.search(1.0, 6.0)
    assert found.at is found.below is found.above
    assert found.at.x == 1.0
    assert line.calls == []


def test_no_bracket_is_refused():
    with pytest.raises(ValueError, match="sides of zero"):
        Function(lambda x: x).search(1.0, 2.0)
