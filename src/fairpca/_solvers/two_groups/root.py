"""The optimal projection at which a slack is used up, along a line of group weights.

Weights ``w(x)``, affine in x, have an optimal projection ``U(x)`` each. A slack of its errors that
is monotone in x is zero at a root, or changes sign where U jumps: the r-th and (r+1)-th eigenvalues
of ``M(w(x))`` meet there, and every subspace on the shortest path between both sides is optimal for
that x. One of them has zero slack.

The bracket around the root is shrunk by inverse quadratic interpolation where that is safe, and by
bisection (Chandrupatla 1997). scipy's version will not do, because the function may jump over zero.
With many features, where a decomposition takes longer than a few products, each decomposition also
predicts where the root lies, and two are enough: corrections to the second one lead to the root
(:mod:`fairpca._solvers.eigenspaces.root_prediction`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import isnan, nan

import numpy as np
from scipy.optimize import brentq

from fairpca._moments.tolerances import EPS, NEGLIGIBLE, ROUNDED
from fairpca._problems.solution import Point
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.eigenspaces.root_prediction import RootPrediction, Slack
from fairpca._typing import Array


@dataclass(frozen=True)
class Sample:
    """A function value, and whatever was computed on the way to it."""

    x: float
    value: float
    point: Point
    prediction: RootPrediction | None = None

    @property
    def predicted(self) -> float:
        """Where the root is predicted to lie; NaN if there is no prediction."""
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
    """Shrink a bracket by predictions of the root, by interpolation, and by bisection.

    The function is monotone between its ends ``below`` and ``above`` zero, either of which may be
    the left one. The search begins at the ``guess``, if that is inside. It ends at a value within
    ``ftol`` of zero, at a proven jump, or where the bracket cannot shrink any more.

    ``find_jump`` is asked instead of every other bisection: given the bracket, it returns a sample
    strictly inside and whether a jump at it is proven, or None. It saves bisecting down to
    rounding.
    """
    for end in (below, above):
        if abs(end.value) <= ftol:
            return Crossing(end, end, end)
    if not below.value < 0 < above.value:
        raise ValueError(
            f"the values {below.value} and {above.value} at the ends of the bracket do not lie "
            "on the two sides of zero."
        )
    latest, opposite = (above, below) if above.value < -below.value else (below, above)
    before: Sample | None = None  # the sample that the latest one replaced
    slow = asked = False  # the last step made no headway; the last step asked for a jump
    width = abs(above.x - below.x)  # roots at zero are found to rounding of this
    while True:
        low, high = (latest, opposite) if latest.value < 0 else (opposite, latest)
        left, right = min(low.x, high.x), max(low.x, high.x)
        x, guess = nan if guess is None else guess, None
        if not left < x < right and not slow:
            x = latest.predicted
            x = x if left < x < right else _interpolated(latest, opposite, before)
        bisect = not left < x < right
        jump = find_jump(low, high) if bisect and not asked and find_jump is not None else None
        asked = jump is not None
        if jump is not None:
            sample, proven = jump
            if proven:
                return Crossing(low, high, sample)
        else:
            x = 0.5 * (low.x + high.x) if bisect else x
            size = max(width, 2 * abs(left), 2 * abs(right))
            if x in (left, right) or right - left <= EPS * size:
                return Crossing(low, high, high)
            sample = evaluate(x)
        if abs(sample.value) <= ftol:
            return Crossing(sample, sample, sample)
        no_headway = not abs(sample.value) < 0.5 * min(-low.value, high.value)
        slow = no_headway and (asked or not bisect)
        if (sample.value < 0) == (latest.value < 0):
            before = latest
        else:
            before, opposite = opposite, latest
        latest = sample


def _interpolated(latest: Sample, opposite: Sample, before: Sample | None) -> float:
    """The root by inverse quadratic interpolation; NaN where that is not safe."""
    if before is None or before.value in (latest.value, opposite.value):
        return nan
    x1, x2, x3 = latest.x, opposite.x, before.x
    f1, f2, f3 = latest.value, opposite.value, before.value
    xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
    if not (phi**2 < xi and (1 - phi) ** 2 < 1 - xi):
        return nan
    t = f1 * f3 / ((f2 - f1) * (f2 - f3))
    t += (x3 - x1) / (x2 - x1) * f1 * f2 / ((f3 - f1) * (f3 - f2))
    least = EPS * max(abs(x1), abs(x2)) / abs(x2 - x1)
    return x1 + min(max(t, least), 1 - least) * (x2 - x1)


@dataclass(frozen=True)
class Line:
    """The optimal projections ``U(x)`` along a line of group weights, and a slack of each."""

    spaces: Eigenspaces
    at: Callable[[float], Point]  # U(x), with its weights
    #: What is left of a limit, given x and the group errors; monotone in x between the ends.
    slack: Callable[[float, Array], float]
    direction: Array  # by which the weights change with x
    ends: tuple[float, float] = (0.0, 1.0)

    def sample(self, x: float, point: Point | None = None) -> Sample:
        """The slack of ``U(x)``, or of a given point, and what its decomposition predicts."""
        point = self.at(x) if point is None else point
        value = self.slack(x, point.errors)
        kept = self.spaces.kept if self.spaces.predict else []
        decomposition = next((one for one in kept if one.point is point), None)
        if decomposition is None:
            return Sample(x, value, point)
        reach = self.ends[0] - x, self.ends[1] - x
        slack = Slack(lambda t, errors: self.slack(x + t, errors), self.spaces.rounding, reach)
        prediction = RootPrediction(self.spaces, decomposition, self.direction, slack)
        return Sample(x, value, point, prediction)

    def _from_before(self, above: Sample) -> Sample | None:
        """A sample from the latest decomposition of an earlier search, if it lies on this line."""
        latest = self.spaces.kept[-1].point if self.spaces.kept else above.point
        if latest is above.point:
            return None
        change, d = latest.weights - above.point.weights, self.direction
        t = float(change @ d / (d @ d))
        if not np.allclose(change, t * d, rtol=0.0, atol=ROUNDED * float(np.abs(d).max())):
            return None
        return self._corrected(self.sample(above.x + t, latest), (self.ends[0], above.x))

    def _corrected(self, sample: Sample, ends: tuple[float, float]) -> Sample:
        """The root between the ends if corrections to a sample lead to it, else the sample."""
        root = None if sample.prediction is None else sample.prediction.root()
        if root is None:
            return sample
        x, point = sample.x + root[0], root[1]
        beside = NEGLIGIBLE * abs(ends[1] - ends[0])
        inside = min(ends) + beside < x < max(ends) - beside
        return Sample(x, self.slack(x, point.errors), point) if inside else sample

    def approach(self, above: Sample) -> tuple[Sample, Sample]:
        """Walk from a positive slack to one that is not, or to the end; the last two samples.

        Where neither a guess nor a prediction tells where to look, the end is next.
        """
        end, rounding = self.ends[0], self.spaces.rounding
        x = nan if self.spaces.guess is None else self.spaces.guess
        known = self._from_before(above) if self.spaces.predict else None
        if known is not None:
            if end < known.x < above.x and abs(known.value) <= rounding:
                return above, known
            x = x if isnan(known.predicted) else known.predicted
        for _ in range(8):  # after eight steps on one side of the root, try the end
            if not end < x < above.x:
                x = above.predicted
            if not end + NEGLIGIBLE * (above.x - end) < x < above.x:
                break  # nearer to the end, rounding would decide between tied subspaces
            before, sample = above, self._corrected(self.sample(x), (end, above.x))
            if sample.value <= rounding:
                return above, sample
            above, x = sample, nan
            if sample.value > 0.5 * before.value:
                break
        return above, self.sample(end)

    def cross(self, below: Sample, above: Sample) -> tuple[Point, Crossing]:
        """Find the projection of zero slack between two ends, and the root it was found at.

        At a jump, the projection lies on the path between both sides, and rests on the ends of the
        crossing.
        """
        spaces, ends = self.spaces, (below.x, above.x)
        crossing = find_crossing(
            lambda x: self._corrected(self.sample(x), ends),
            below,
            above,
            spaces.rounding,
            self._jump,
            spaces.guess,
        )
        if crossing.below is crossing.above:
            return crossing.at.point, crossing
        return between(spaces, crossing, partial(self.slack, crossing.at.x)), crossing

    def _jump(self, low: Sample, high: Sample) -> tuple[Sample, bool] | None:
        """A sample inside, and whether U jumps there.

        ``min_U w(x) @ R`` is the lower envelope of lines in x, one per projection. Where the lines
        of both ends meet on the envelope itself, both ends are optimal and U jumps there.
        """
        change = low.point.errors - high.point.errors
        at_low, at_high = (float(end.point.weights @ change) for end in (low, high))
        x = low.x + at_low / (at_low - at_high) * (high.x - low.x) if at_low != at_high else nan
        if not min(low.x, high.x) < x < max(low.x, high.x):
            return None
        middle = self.sample(x)
        worse = max(float(middle.point.weights @ end.point.errors) for end in (low, high))
        crosses = self.slack(x, low.point.errors) < 0 < self.slack(x, high.point.errors)
        if crosses and worse - middle.point.bound <= self.spaces.rounding:
            return middle, True
        return self._corrected(middle, (low.x, high.x)), False


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
