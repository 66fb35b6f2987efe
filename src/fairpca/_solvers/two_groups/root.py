"""The optimal projection at which a slack is used up, along a line of group weights.

Weights ``w(x)``, affine in x, have an optimal projection ``U(x)`` each. A slack of its errors that
is monotone in x is zero at a root, or changes sign where U jumps: the r-th and (r+1)-th eigenvalues
of ``M(w(x))`` meet there, and every subspace on the shortest path between both sides is optimal for
that x. One of them has zero slack.

The slope of the slack comes from the same decomposition as U, so Newton's method needs a handful of
them. With more features, where a decomposition takes longer than a few products, it also tells
about where the root lies, and two are enough: corrections to the second one lead to the root
(:mod:`fairpca._solvers.eigenspaces.root_prediction`). The bracket is shrunk by hand, not by scipy,
because the function may jump over zero.
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
from fairpca._solvers.eigenspaces.root_prediction import RootPrediction, Slack
from fairpca._typing import Array

_NEWTON_STEPS = 8  # steps on one side of the root before the end of the line is tried
_BESIDE = 1e-9  # share of the line's length below which its end point is used
_MANY_FEATURES = 80  # with fewer, a decomposition is faster than predictions and corrections


@dataclass(frozen=True)
class Sample:
    """A function value, its slope if known, and whatever was computed on the way to it."""

    x: float
    value: float
    point: Point
    slope: float = nan
    prediction: RootPrediction | None = None

    @property
    def predicted(self) -> float:
        """About where the root lies, as seen from here; NaN if that is not known."""
        return nan if self.prediction is None else self.x + self.prediction.predicted


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
    for x in (new.predicted, *(_hermite(new, other) for other in others)):
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
        return self._sampled(x, self.at(x))

    def _sampled(self, x: float, point: Point) -> Sample:
        spaces, value = self.spaces, self.slack(x, point.errors)
        decomposition = spaces.decomposition_of(point)
        if decomposition is None or spaces.rank == spaces.n_features:
            return Sample(x, value, point)
        reach = self.ends[0] - x, self.ends[1] - x
        slack = Slack(lambda t, errors: self.slack(x + t, errors), spaces.rounding, reach)
        prediction = RootPrediction(spaces.matrices, decomposition, self.direction, slack)
        if spaces.n_features >= _MANY_FEATURES:
            return Sample(x, value, point, prediction=prediction)
        slopes = prediction.slopes
        known = bool(np.isfinite(slopes).all())  # not where eigenvalues are equal
        return Sample(x, value, point, slack.slope(0.0, point.errors, slopes) if known else nan)

    def _root_or_sample(self, x: float, ends: tuple[float, float]) -> Sample:
        """The root between the ends if corrections to x lead to it, else the sample at x."""
        return self._corrected(self.sample(x), ends)

    def _from_before(self, above: Sample) -> Sample | None:
        """What the latest decomposition of an earlier search tells, if it lies on this line."""
        latest = self.spaces.latest
        if latest is None or latest.point is above.point or self.spaces.n_features < _MANY_FEATURES:
            return None
        change, d = latest.point.weights - above.point.weights, self.direction
        t = float(change @ d / (d @ d))
        if not np.allclose(change, t * d, rtol=0.0, atol=1e-14 * float(np.abs(d).max())):
            return None
        return self._corrected(self._sampled(above.x + t, latest.point), (self.ends[0], above.x))

    def _corrected(self, sample: Sample, ends: tuple[float, float]) -> Sample:
        """The root between the ends if corrections to a sample lead to it, else the sample."""
        spaces = self.spaces
        root = None if sample.prediction is None else sample.prediction.root(spaces.errors)
        if root is None:
            return sample
        x, weights = sample.x + root.t, sample.point.weights + root.t * self.direction
        beside = _BESIDE * abs(ends[1] - ends[0])
        inside = min(ends) + beside < x < max(ends) - beside
        if not (inside and spaces.is_first(weights, root.basis, root.values)):
            return sample
        bound = float(weights @ spaces.traces - root.values.sum())
        point = Point(weights, root.basis, root.errors, bound)
        return Sample(x, self.slack(x, root.errors), point)

    def approach(self, above: Sample) -> tuple[Sample, Sample]:
        """From a positive slack down to the first that is not, or to the end: the last two samples.

        Steps by slopes are Newton's in ``1 / x``, in which the slack of a frontier is nearly
        straight.
        """
        x, before, end = self.spaces.guess, None, self.ends[0]
        known = self._from_before(above)
        if known is not None:
            if end < known.x < above.x and abs(known.value) <= self.spaces.rounding:
                return above, known
            x = x if isnan(known.predicted) else known.predicted
        for _ in range(_NEWTON_STEPS):
            if x is None:
                x = nan if before is None else _hermite(above, before)
            if not end < x < above.x:
                x = above.predicted
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


class SubspacePath:
    """The shortest path between two subspaces, turning all principal angles in proportion.

    Where the r-th and (r+1)-th eigenvalues of ``M(w)`` cross, the eigenspaces on the two sides and
    every subspace between them are equally good for those weights, so a point of this path can
    have what neither end has: zero disparity, say.

    With ``U0' U1 = P cos(T) Q'``, ``X = U0 P`` and ``Y`` the unit directions of
    ``U1 Q - X cos(T)``, the path is ``X cos(sT) + Y sin(sT)`` for s in [0, 1], and errors along it
    are sums of ``cos^2, sin cos, sin^2`` with coefficients found once.
    """

    def __init__(self, spaces: Eigenspaces, start: Array, end: Array) -> None:
        P, cosines, Qt = np.linalg.svd(start.T @ end)
        self._X = start @ P
        towards = end @ Qt.T - self._X * cosines
        towards -= self._X @ (self._X.T @ towards)
        sines = np.linalg.norm(towards, axis=0)
        moving = sines > 1e-14
        self._Y = np.where(moving, towards / np.where(moving, sines, 1.0), 0.0)
        self._angles = np.where(moving, np.arctan2(sines, cosines), 0.0)
        r = start.shape[1]
        V = np.hstack([self._X, self._Y])
        H = V.T @ spaces.products(V)
        diagonals = np.diagonal(H, axis1=1, axis2=2)
        self._xx, self._yy = diagonals[:, :r], diagonals[:, r:]
        self._xy = np.diagonal(H[:, :r, r:], axis1=1, axis2=2)
        self._traces = spaces.traces

    def errors(self, s: float) -> Array:
        """Group errors at the fraction s of the way."""
        c, q = np.cos(s * self._angles), np.sin(s * self._angles)
        captured = self._xx @ c**2 + 2 * self._xy @ (c * q) + self._yy @ q**2
        return np.asarray(self._traces - captured)

    def basis(self, s: float) -> Array:
        """An orthonormal basis of the subspace at the fraction s of the way."""
        mixed = self._X * np.cos(s * self._angles) + self._Y * np.sin(s * self._angles)
        return np.asarray(np.linalg.qr(mixed)[0])
