"""The optimal projection at which a slack is used up, along a line of group weights.

Weights ``w(x)``, affine in x, have an optimal projection ``U(x)`` each. A slack of its errors that
is monotone in x is zero at a root, or changes sign where U jumps: the r-th and (r+1)-th eigenvalues
of ``M(w(x))`` meet there, and every subspace on the shortest path between both sides is optimal for
that x. One of them has zero slack.

The search keeps a bracket: one sample on each side of zero. It takes three kinds of step.

*Newton.* A decomposition gives the slope of the slack. The step goes a little too far, so that the
next sample lies on the other side and both sides close in on the root.

*Tangents.* ``phi(x) = min_U w(x) @ R(U)`` is the lower envelope of lines, one for each projection.
The lines of both sides meet at some x. Where U jumps, they meet on the envelope itself.

*Bisection*, after a step of each of the other kinds that gained little.

The search ends on the shortest path between the eigenspaces of the two sides. The subspace of zero
slack on it is accepted if its errors attain the bound of one side, up to rounding. At a jump they
do so exactly; elsewhere they exceed it by the square of a distance that Newton's method shrinks.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite, nan

import numpy as np
from scipy.optimize import brentq

from fairpca._moments.tolerances import EPS, KEPT, NEGLIGIBLE
from fairpca._problems.solution import Point
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._typing import Array

_OVERSHOOT = 1e-3  # share of a Newton step by which it goes too far
_HEADWAY = 0.25  # a step has gained if the slack fell below this share of what it was
_ONE_SIDED_STEPS = 8  # Newton steps on one side of the root before the end of the line is tried
_DIFFERENCE = 1e-6  # step along the line over which a smooth slack is linear


@dataclass(frozen=True)
class Sample:
    """The slack at one place of the line, its slope there, and the optimal projection."""

    x: float
    value: float
    point: Point
    slope: float = nan  # NaN where the decomposition does not tell

    @property
    def newton(self) -> float:
        """Just beyond the root of the tangent to the slack; NaN without a slope."""
        if not isfinite(self.slope) or self.slope == 0.0:
            return nan
        return self.x - (1.0 + _OVERSHOOT) * self.value / self.slope


@dataclass(frozen=True)
class Crossing:
    """The projection of zero slack, and where it was found.

    ``below.value <= 0 <= above.value``, and the bound of ``at``, one of the two, proves how good
    ``found`` is. All three samples are the same if the slack of one is zero to rounding.
    """

    below: Sample
    above: Sample
    at: Sample
    found: Point


@dataclass
class Bracket:
    """The state of a search: a sample on each side of zero, and what the last steps gained."""

    below: Sample
    above: Sample
    latest: Sample
    failures: int = 0  # steps in a row that gained little

    @classmethod
    def between(cls, below: Sample, above: Sample) -> "Bracket":
        """The bracket of two samples; an error if they do not lie on the two sides of zero."""
        if not below.value < 0 < above.value:
            raise ValueError(
                f"the values {below.value} and {above.value} at the ends of the bracket do not lie "
                "on the two sides of zero."
            )
        nearer = min(below, above, key=lambda sample: abs(sample.value))
        return cls(below, above, nearer)

    def holds(self, x: float) -> bool:
        """Whether x lies strictly inside."""
        low, high = sorted((self.below.x, self.above.x))
        return low < x < high

    def add(self, sample: Sample) -> None:
        """Replace the sample on the same side of zero."""
        before = min(-self.below.value, self.above.value)
        if sample.value < 0:
            self.below = sample
        else:
            self.above = sample
        self.latest = sample
        self.failures += 1
        if abs(sample.value) < _HEADWAY * before:
            self.failures = 0

    def next_place(self) -> float:
        """Where the next sample is taken; not inside if the bracket cannot shrink any more."""
        kind = self.failures % 3
        if kind == 0:
            for sample in (self.latest, self.below, self.above):
                if self.holds(sample.newton):
                    return sample.newton
        if kind <= 1:
            x = where_tangents_meet(self.below, self.above)
            if self.holds(x):
                self.failures += 1 - kind  # if this gains little, bisection follows
                return x
        self.failures += 2 - kind
        return 0.5 * (self.below.x + self.above.x)


def where_tangents_meet(below: Sample, above: Sample) -> float:
    """Where the projections of both sides have the same weighted error; NaN if nowhere."""
    change = below.point.errors - above.point.errors
    at_below = float(below.point.weights @ change)
    at_above = float(above.point.weights @ change)
    if at_below == at_above:
        return nan
    return below.x + at_below / (at_below - at_above) * (above.x - below.x)


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
        """The slack of ``U(x)``, or of a given point, and its slope."""
        if point is None:
            point = self.at(x)
        value = self.slack(x, point.errors)
        slopes = self.spaces.slopes(point, self.direction)
        if slopes is None:
            return Sample(x, value, point)
        step = _DIFFERENCE
        if x + step >= self.ends[1]:
            step = -step
        ahead = self.slack(x + step, point.errors + step * slopes)
        return Sample(x, value, point, (ahead - value) / step)

    def approach(self, above: Sample) -> tuple[Sample, Sample]:
        """Walk from a positive slack to one that is not, or to the end; the last two samples."""
        end = self.ends[0]
        x = self.spaces.place
        for _ in range(_ONE_SIDED_STEPS):
            if not end < x < above.x:
                x = above.newton
            if not end + NEGLIGIBLE * (above.x - end) < x < above.x:
                break  # nearer to the end, rounding would decide between tied subspaces
            sample = self.sample(x)
            if sample.value <= self.spaces.rounding:
                return above, sample
            gained = sample.value < 0.5 * above.value
            above = sample
            x = nan
            if not gained:
                break
        return above, self.sample(end)

    def cross(self, below: Sample, above: Sample) -> Crossing:
        """Find the projection of zero slack between two samples."""
        crossing = self._search(below, above)
        self.spaces.place = crossing.at.x
        return crossing

    def _search(self, below: Sample, above: Sample) -> Crossing:
        ftol = self.spaces.rounding
        for end in (below, above):
            if abs(end.value) <= ftol:
                return Crossing(end, end, end, end.point)
        bracket = Bracket.between(below, above)
        width = abs(above.x - below.x)
        x = self.spaces.place
        while True:
            if not bracket.holds(x):
                x = bracket.next_place()
            below = bracket.below
            above = bracket.above
            size = max(width, 2 * abs(below.x), 2 * abs(above.x))
            if not bracket.holds(x) or abs(above.x - below.x) <= EPS * size:
                return Crossing(below, above, above, self.between(below, above, above))
            sample = self.sample(x)
            if abs(sample.value) <= ftol:
                return Crossing(sample, sample, sample, sample.point)
            bracket.add(sample)
            crossing = self.meet(bracket.below, bracket.above)
            if crossing is not None:
                return crossing
            x = nan

    def meet(self, below: Sample, above: Sample) -> Crossing | None:
        """The subspace of zero slack on the path between both sides, if it is good enough."""
        whole = above.value - below.value
        allowed = KEPT * self.spaces.rounding
        estimates = []
        for near, far in ((below, above), (above, below)):
            excess = float(near.point.weights @ far.point.errors) - near.point.bound
            estimates.append((near.value / whole) ** 2 * excess)
        if min(estimates) > allowed:
            return None
        at = above
        if estimates[0] <= estimates[1]:
            at = below
        found = self._crossed(below, above, at)
        if found is None or float(at.point.weights @ found.errors) - at.point.bound > allowed:
            return None
        return Crossing(below, above, at, found)

    def between(self, below: Sample, above: Sample, at: Sample) -> Point:
        """The subspace of zero slack on the path between two samples, with the bound of a third.

        Where the slack does not change its sign, it is zero to rounding at one end.
        """
        found = self._crossed(below, above, at)
        if found is not None:
            return found
        if abs(self.slack(at.x, below.point.errors)) <= self.spaces.rounding:
            return below.point
        return above.point

    def _crossed(self, below: Sample, above: Sample, at: Sample) -> Point | None:
        """The subspace of zero slack on the path; None if the slack does not change its sign."""
        path = SubspacePath(self.spaces, below.point.basis, above.point.basis)

        def slack(s: float) -> float:
            return self.slack(at.x, path.errors(s))

        if not slack(0.0) < 0 < slack(1.0):
            return None
        s = brentq(slack, 0.0, 1.0, xtol=1e-16, rtol=1e-15)
        basis = path.basis(s)
        return replace(at.point, basis=basis, errors=self.spaces.errors(basis))


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
        self._xx = diagonals[:, :r]
        self._yy = diagonals[:, r:]
        self._xy = np.diagonal(H[:, :r, r:], axis1=1, axis2=2)
        self._traces = spaces.traces

    def errors(self, s: float) -> Array:
        """Group errors at the fraction s of the way."""
        c = np.cos(s * self._angles)
        q = np.sin(s * self._angles)
        captured = self._xx @ c**2 + 2 * self._xy @ (c * q) + self._yy @ q**2
        return np.asarray(self._traces - captured)

    def basis(self, s: float) -> Array:
        """An orthonormal basis of the subspace at the fraction s of the way."""
        mixed = self._X * np.cos(s * self._angles) + self._Y * np.sin(s * self._angles)
        return np.asarray(np.linalg.qr(mixed)[0])
