"""The optimal projection at which a slack is used up, along a line of group weights.

Weights ``w(x)``, affine in x, have an optimal projection ``U(x)`` each. A slack of its errors that
is monotone in x is zero at a root, or changes sign where U jumps: the r-th and (r+1)-th eigenvalues
of ``M(w(x))`` meet there, and every subspace on the shortest path between both sides is optimal for
that x. One of them has zero slack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scipy.optimize import brentq

from fairpca._solvers.eigenspaces.operand import DenseFamily, Point, SubspacePath
from fairpca._solvers.two_groups.root import Crossing, Sample, find_crossing
from fairpca._typing import Array


def cross_slack(
    family: DenseFamily,
    at: Callable[[float], Point],
    slack: Callable[[Array], float],
    below: Sample[Point],
    above: Sample[Point],
) -> tuple[Point, Crossing[Point]]:
    """Find the projection of zero slack, and the root it was found at.

    Parameters
    ----------
    family : DenseFamily
    at : callable
        ``U(x)``, with its weights.
    slack : callable
        What is left of a limit, given the group errors; monotone in x.
    below, above : Sample
        Ends of negative and of positive slack.

    Returns
    -------
    point : Point
        Zero slack up to rounding; at a jump its errors and basis are those between both sides.
    crossing : Crossing
        Its ends are the eigenspaces that ``point`` rests on.
    """

    def sample(x: float) -> Sample[Point]:
        point = at(x)
        return Sample(x, slack(point.errors), point)

    def jump(lo: Sample[Point], hi: Sample[Point]) -> tuple[Sample[Point], bool] | None:
        # min_U w(x) @ R is the lower envelope of lines in x, one per projection: where the lines
        # of both ends meet on the envelope itself, both ends are optimal and U jumps there.
        x = _meeting_point(lo, hi)
        if x is None:
            return None
        middle = sample(x)
        excess = float(middle.payload.weights @ lo.payload.errors) - middle.payload.bound
        return middle, excess <= family.rounding

    crossing = find_crossing(sample, below, above, family.rounding, jump, family.guess)
    return _resolve(family, crossing, slack), crossing


def _meeting_point(lo: Sample[Point], hi: Sample[Point]) -> float | None:
    """The x at which the projections of both ends are equally good, if inside the bracket."""
    change = lo.payload.errors - hi.payload.errors
    at_lo, at_hi = float(lo.payload.weights @ change), float(hi.payload.weights @ change)
    if at_lo == at_hi:
        return None
    x = lo.x + at_lo / (at_lo - at_hi) * (hi.x - lo.x)
    return x if min(lo.x, hi.x) < x < max(lo.x, hi.x) else None


def _resolve(
    family: DenseFamily, crossing: Crossing[Point], slack: Callable[[Array], float]
) -> Point:
    """The sample at the root, or the point of zero slack between the two sides of a jump."""
    if crossing.below is crossing.above:
        return crossing.at.payload
    path = SubspacePath(family, crossing.below.payload.basis, crossing.above.payload.basis)
    if slack(path.errors(0.0)) < 0 < slack(path.errors(1.0)):
        s = brentq(lambda s: slack(path.errors(s)), 0.0, 1.0, xtol=1e-16, rtol=1e-15)
        basis = path.basis(s)
        return replace(crossing.at.payload, basis=basis, errors=family.errors(basis))
    return crossing.above.payload
