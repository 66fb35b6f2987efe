"""Where a monotone function of one variable crosses zero, jumps included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

P = TypeVar("P")


@dataclass(frozen=True)
class Sample(Generic[P]):
    """A function value, with whatever was computed on the way to it."""

    x: float
    value: float
    payload: P


@dataclass(frozen=True)
class Crossing(Generic[P]):
    """The root: ``below.value <= 0 <= above.value``, and ``at`` the best known place of it.

    All three are the same sample when its value is zero to rounding. Otherwise the function jumps
    there: ``below`` and ``above`` are the two sides of the jump.
    """

    below: Sample[P]
    above: Sample[P]
    at: Sample[P]


def find_crossing(
    evaluate: Callable[[float], Sample[P]],
    below: Sample[P],
    above: Sample[P],
    ftol: float,
    find_jump: Callable[[Sample[P], Sample[P]], tuple[Sample[P], bool] | None] | None = None,
    guess: float | None = None,
) -> Crossing[P]:
    """Shrink a bracket by inverse quadratic interpolation guarded by bisection (Chandrupatla 1997).

    Parameters
    ----------
    evaluate : callable
        The function, monotone on the bracket.
    below, above : Sample
        Ends with a negative and with a positive value; either may be the left one.
    ftol : float
        Values within ``ftol`` of zero count as zero.
    find_jump : callable, optional
        Asked when interpolation makes no headway: given the bracket, returns a sample strictly
        inside and whether a jump at it is proven, or None. It saves bisecting down to rounding.
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
    new, opposite = above, below
    previous: Sample[P] | None = None
    if guess is not None and min(below.x, above.x) < guess < max(below.x, above.x):
        new = evaluate(guess)
        if abs(new.value) <= ftol:
            return Crossing(new, new, new)
        opposite, previous = (above, below) if new.value < 0 else (below, above)
    bisections = 0
    while True:
        lo, hi = (new, opposite) if new.value < 0 else (opposite, new)
        t = _interpolate(new, opposite, previous)
        bisections = bisections + 1 if t == 0.5 else 0
        sample = None
        if bisections >= 3 and find_jump is not None:
            bisections = 0
            jump = find_jump(lo, hi)
            if jump is not None:
                sample, proven = jump
                if proven:
                    return Crossing(lo, hi, sample)
        if sample is None:
            x = new.x + t * (opposite.x - new.x)
            if x in (new.x, opposite.x):
                return Crossing(lo, hi, hi)
            sample = evaluate(x)
        if abs(sample.value) <= ftol:
            return Crossing(sample, sample, sample)
        if (sample.value < 0) == (new.value < 0):
            previous = new
        else:
            previous, opposite = opposite, new
        new = sample
        if abs(new.x - opposite.x) <= 4e-16 * max(abs(new.x), abs(opposite.x)):
            lo, hi = (new, opposite) if new.value < 0 else (opposite, new)
            return Crossing(lo, hi, hi)


def _interpolate(new: Sample[P], opposite: Sample[P], previous: Sample[P] | None) -> float:
    """The fraction of the way from ``new`` to ``opposite`` at which to look next."""
    if previous is None:
        return 0.5
    x1, x2, x3 = new.x, opposite.x, previous.x
    f1, f2, f3 = new.value, opposite.value, previous.value
    if f3 in (f1, f2):
        return 0.5
    xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
    if not (phi**2 < xi and (1 - phi) ** 2 < 1 - xi):
        return 0.5
    t = f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
    width = abs(x2 - x1)
    least = 2e-16 * max(abs(x1), abs(x2)) / width
    return min(max(t, least), 1 - least)
