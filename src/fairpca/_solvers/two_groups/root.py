"""The optimal projection at which a slack is used up, along a line of group weights.

Weights ``w(x)``, affine in x, have an optimal projection ``U(x)`` each. A slack of its errors that
is monotone in x is zero at a root, or changes sign where U jumps: the r-th and (r+1)-th eigenvalues
of ``M(w(x))`` meet there, and every subspace on the shortest path between both sides is optimal for
that x. One of them has zero slack.

The slope of the slack comes from the same decomposition as U, so Newton's method needs a handful of
them. With more features, where a decomposition takes longer than a few products, it also tells
about where the root lies, and two are enough: corrections to the second one lead to the root
(:mod:`fairpca._solvers.eigenspaces.nearby`). The bracket is shrunk by hand, not by scipy, because
the function may jump over zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import isnan, nan

import numpy as np
from scipy.optimize import brentq

from fairpca._problems.solution import Point
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.eigenspaces.nearby import Limit, Neighbourhood
from fairpca._solvers.two_groups.subspace_path import SubspacePath
from fairpca._typing import Array

_NEWTON_STEPS = 8  # on one side of the root
_BESIDE = 1e-9  # of a line: so near to its end, the end itself is looked at
_MANY_FEATURES = 80  # below, a decomposition is faster than predictions and corrections


@dataclass(frozen=True)
class Sample:
    """A function value, its slope if known, and whatever was computed on the way to it."""

    x: float
    value: float
    point: Point
    slope: float = nan
    near: Neighbourhood | None = None

    @property
    def towards(self) -> float:
        """About where the root lies, as seen from here; NaN if that is not known."""
        return nan if self.near is None else self.x + self.near.towards


@dataclass(frozen=True)
class Crossing:
    """The root: ``below.value <= 0 <= above.value``, and ``at`` the best known place of it.

    All three are the same sample when its value is zero to rounding. Otherwise the function jumps
    there: ``below`` and ``above`` are the two sides of the jump.
    """

    below: Sample
    above: Sample
    at: Sample


def find_crossing(
    evaluate: Callable[[float], Sample],
    below: Sample,
    above: Sample,
    ftol: float,
    find_jump: Callable[[Sample, Sample], tuple[Sample, bool] | None] | None = None,
    guess: float | None = None,
) -> Crossing:
    """Shrink a bracket by what samples tell of the root, by interpolation, and by bisection.

    Interpolation is inverse quadratic where that is safe (Chandrupatla 1997).

    Parameters
    ----------
    evaluate : callable
        The function, monotone on the bracket.
    below, above : Sample
        Ends with a negative and with a positive value; either may be the left one.
    ftol : float
        Values within ``ftol`` of zero count as zero.
    find_jump : callable, optional
        Asked instead of every other bisection: given the bracket, returns a sample strictly inside
        and whether a jump at it is proven, or None. It saves bisecting down to rounding.
    guess : float, optional
        Where to look first, if inside of the bracket.

    Returns
    -------
    Crossing
    """
    for end in (below, above):
        if abs(end.value) <= ftol:
            return Crossing(end, end, end)
    if not below.value < 0 < above.value:
        raise ValueError(
            f"the values {below.value} and {above.value} at the ends of the bracket do not lie "
            "on the two sides of zero."
        )
    new, opposite = (above, below) if above.value < -below.value else (below, above)
    previous: Sample | None = None
    if guess is not None and min(below.x, above.x) < guess < max(below.x, above.x):
        new = evaluate(guess)
        if abs(new.value) <= ftol:
            return Crossing(new, new, new)
        opposite, previous = (above, below) if new.value < 0 else (below, above)
    slow = met = False  # the last step made no headway; it looked for a jump
    while True:
        lo, hi = (new, opposite) if new.value < 0 else (opposite, new)
        smallest = min(-lo.value, hi.value)
        x = nan if slow else _next(new, opposite, previous)
        bisect = isnan(x)
        jump = find_jump(lo, hi) if bisect and not met and find_jump is not None else None
        met = jump is not None
        if jump is not None:
            sample, proven = jump
            if proven:
                return Crossing(lo, hi, sample)
        else:
            x = 0.5 * (lo.x + hi.x) if bisect else x
            if x in (lo.x, hi.x):
                return Crossing(lo, hi, hi)
            sample = evaluate(x)
        if abs(sample.value) <= ftol:
            return Crossing(sample, sample, sample)
        slow = not abs(sample.value) < 0.5 * smallest and (met or not bisect)
        if (sample.value < 0) == (new.value < 0):
            previous = new
        else:
            previous, opposite = opposite, new
        new = sample
        if abs(new.x - opposite.x) <= 4e-16 * max(abs(new.x), abs(opposite.x)):
            lo, hi = (new, opposite) if new.value < 0 else (opposite, new)
            return Crossing(lo, hi, hi)


def _next(new: Sample, opposite: Sample, previous: Sample | None) -> float:
    """Where to look next, strictly inside the bracket unless it has shrunk to rounding.

    NaN where neither Newton's method nor interpolation is safe.
    """
    others = [other for other in (previous, opposite) if other is not None]
    for x in (new.towards, *(_hermite(new, other) for other in others)):
        if min(new.x, opposite.x) < x < max(new.x, opposite.x):
            return x
    return new.x + _interpolate(new, opposite, previous) * (opposite.x - new.x)


def _hermite(first: Sample, second: Sample) -> float:
    """The root of the cubic ``x(value)`` through two samples with their slopes; NaN without."""
    f, g = first.value, second.value
    if not (first.slope and second.slope and f != g):
        return nan
    chord = (second.x - first.x) / (g - f)
    bend = (chord - 1 / first.slope) / (g - f)
    twist = (1 / first.slope - 2 * chord + 1 / second.slope) / (g - f) ** 2
    return first.x - f / first.slope + bend * f**2 - twist * f**2 * g


def _interpolate(new: Sample, opposite: Sample, previous: Sample | None) -> float:
    """The fraction of the way from ``new`` to ``opposite`` at which to look next."""
    if previous is None:
        return nan
    x1, x2, x3 = new.x, opposite.x, previous.x
    f1, f2, f3 = new.value, opposite.value, previous.value
    if f3 in (f1, f2):
        return nan
    xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
    if not (phi**2 < xi and (1 - phi) ** 2 < 1 - xi):
        return nan
    t = f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
    width = abs(x2 - x1)
    least = 2e-16 * max(abs(x1), abs(x2)) / width
    return min(max(t, least), 1 - least)


class Line:
    """The optimal projections ``U(x)`` along a line of group weights, and a slack of each.

    Parameters
    ----------
    spaces : Eigenspaces
    at : callable
        ``U(x)``, with its weights.
    slack : callable
        What is left of a limit, given x and the group errors; monotone along the line.
    direction : ndarray of shape (k,)
        The change of the weights with x.
    ends : tuple of float
        Where x begins and ends.
    """

    def __init__(
        self,
        spaces: Eigenspaces,
        at: Callable[[float], Point],
        slack: Callable[[float, Array], float],
        direction: Array,
        ends: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.spaces, self.at, self.slack, self.direction = spaces, at, slack, direction
        self.ends = ends

    def sample(self, x: float) -> Sample:
        """The slack at x, and what its decomposition tells of the line."""
        point, spaces = self.at(x), self.spaces
        value = self.slack(x, point.errors)
        reach = self.ends[0] - x, self.ends[1] - x
        limit = Limit(lambda t, e: self.slack(x + t, e), spaces.rounding, reach)
        near = spaces.near(point, self.direction, limit)
        if near is None or spaces.n_features >= _MANY_FEATURES:
            return Sample(x, value, point, near=near)
        slopes = near.slopes
        known = bool(np.isfinite(slopes).all())  # not where eigenvalues are equal
        return Sample(x, value, point, limit.slope(0.0, point.errors, slopes) if known else nan)

    def _root_or_sample(self, x: float, ends: tuple[float, float]) -> Sample:
        """The root between the ends if corrections to x lead to it, else the sample at x."""
        return self._corrected(self.sample(x), ends)

    def _corrected(self, sample: Sample, ends: tuple[float, float]) -> Sample:
        """The root between the ends if corrections to a sample lead to it, else the sample."""
        spaces = self.spaces
        found = None if sample.near is None else sample.near.root(spaces.errors)
        if found is None:
            return sample
        t, basis, errors, values = found
        x, weights = sample.x + t, sample.point.weights + t * self.direction
        beside = _BESIDE * abs(ends[1] - ends[0])
        inside = min(ends) + beside < x < max(ends) - beside
        if not (inside and spaces.is_first(weights, basis, values)):
            return sample
        bound = float(weights @ spaces.traces - values.sum())
        return Sample(x, self.slack(x, errors), Point(weights, basis, errors, bound))

    def approach(self, above: Sample) -> tuple[Sample, Sample]:
        """From a positive slack down to the first that is not, or to the end: the last two samples.

        Steps by slopes are Newton's in ``1 / x``, in which the slack of a frontier is nearly
        straight.
        """
        x, before, end = self.spaces.guess, None, self.ends[0]
        for _ in range(_NEWTON_STEPS):
            if x is None:
                x = nan if before is None else _hermite(above, before)
            if not end < x < above.x:
                x = above.towards
            if isnan(x) and above.slope:
                x = above.x / (1 + above.value / (above.x * above.slope))
            if not end + _BESIDE * (above.x - end) < x < above.x:
                break  # beside the end rounding decides between subspaces that are tied there
            sample = self._root_or_sample(x, (end, above.x))
            if sample.value <= self.spaces.rounding:
                return above, sample
            if before is not None and sample.value > 0.5 * above.value:
                break
            above, before, x = sample, above, None
        return above, self.sample(end)

    def cross(self, below: Sample, above: Sample) -> tuple[Point, Crossing]:
        """Find the projection of zero slack, and the root it was found at.

        Parameters
        ----------
        below, above : Sample
            Ends of negative and of positive slack.

        Returns
        -------
        point : Point
            Zero slack up to rounding; at a jump its errors and basis are those between both sides.
        crossing : Crossing
            Its ends are the eigenspaces that ``point`` rests on.
        """
        spaces = self.spaces
        evaluate = partial(self._root_or_sample, ends=(below.x, above.x))
        crossing = find_crossing(evaluate, below, above, spaces.rounding, self._jump, spaces.guess)
        if crossing.below is crossing.above:
            return crossing.at.point, crossing
        return between(spaces, crossing, partial(self.slack, crossing.at.x)), crossing

    def _jump(self, lo: Sample, hi: Sample) -> tuple[Sample, bool] | None:
        # min_U w(x) @ R is the lower envelope of lines in x, one per projection: where the lines
        # of both ends meet on the envelope itself, both ends are optimal and U jumps there.
        x = _meeting_point(lo, hi)
        if x is None:
            return None
        middle = self.sample(x)
        worse = max(float(middle.point.weights @ end.point.errors) for end in (lo, hi))
        crosses = self.slack(x, lo.point.errors) < 0 < self.slack(x, hi.point.errors)
        if crosses and worse - middle.point.bound <= self.spaces.rounding:
            return middle, True
        return self._corrected(middle, (lo.x, hi.x)), False


def _meeting_point(lo: Sample, hi: Sample) -> float | None:
    """The x at which the projections of both ends are equally good, if inside the bracket."""
    change = lo.point.errors - hi.point.errors
    at_lo, at_hi = float(lo.point.weights @ change), float(hi.point.weights @ change)
    if at_lo == at_hi:
        return None
    x = lo.x + at_lo / (at_lo - at_hi) * (hi.x - lo.x)
    return x if min(lo.x, hi.x) < x < max(lo.x, hi.x) else None


def between(spaces: Eigenspaces, crossing: Crossing, slack: Callable[[Array], float]) -> Point:
    """The point of zero slack between the two sides of a jump."""
    path = SubspacePath(spaces, crossing.below.point.basis, crossing.above.point.basis)
    if slack(path.errors(0.0)) < 0 < slack(path.errors(1.0)):
        s = brentq(lambda s: slack(path.errors(s)), 0.0, 1.0, xtol=1e-16, rtol=1e-15)
        basis = path.basis(s)
        return replace(crossing.at.point, basis=basis, errors=spaces.errors(basis))
    # No change of sign: one end has no slack, to rounding, and it may be the one below.
    below, above = crossing.below.point, crossing.above.point
    return below if abs(slack(below.errors)) <= spaces.rounding else above
