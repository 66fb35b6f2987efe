"""The whole frontier between PCA and parity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from fairpca._estimators.advice import largest_gap
from fairpca._estimators.held_out import INTERVAL_LEVEL, CrossFit
from fairpca._input.checks import check_integer, check_several_groups
from fairpca._moments.dealing import learn_folds
from fairpca._moments.folds import Folds, check_folds_of
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.implicit import ImplicitMoments
from fairpca._moments.learn import learn
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups, SmallGroups, settle_small_groups
from fairpca._problems.fair import FairProblem
from fairpca._problems.solution import Solution, disparity
from fairpca._problems.status import Status
from fairpca._solvers import solve
from fairpca._solvers.walk import Walk
from fairpca._typing import Array, Mask
from fairpca.exceptions import DualityGapWarning, warn

__all__ = ["HeldOutPath", "MarkedPoint", "TradeoffPath", "tradeoff_path"]

_NEGATIVE = -1e-9  # of the largest weight of a group: less than rounding


@dataclass(frozen=True)
class MarkedPoint:
    """Where a method of its own name ends, with the fields of :class:`TradeoffPath`."""

    alpha: float
    reconstruction_error: float
    group_errors: Array
    disparity: float


@dataclass(frozen=True, repr=False)
class HeldOutPath:
    """The figures of the points for rows that were not fitted to.

    Each interval, with its ends last, has a level of 95 % for its point alone.

    Attributes
    ----------
    reconstruction_error, disparity : ndarray of shape (n_points,)
    reconstruction_error_interval, disparity_interval : ndarray of shape (n_points, 2)
    group_errors : ndarray of shape (n_points, k)
    group_errors_interval : ndarray of shape (n_points, k, 2)
    changes : ndarray of shape (n_points, k)
        How much larger each group's error is than under PCA, for the same rows.
    changes_interval : ndarray of shape (n_points, k, 2)
    marks : dict of str to MarkedPoint
        The ends of the methods in ``TradeoffPath.marks``, for these rows.
    """

    reconstruction_error: Array
    reconstruction_error_interval: Array
    group_errors: Array
    group_errors_interval: Array
    disparity: Array
    disparity_interval: Array
    changes: Array
    changes_interval: Array
    marks: dict[str, MarkedPoint]

    def __repr__(self) -> str:
        D, R, last = self.disparity, self.reconstruction_error, len(self.disparity) - 1
        return (
            f"HeldOutPath({last + 1} points, disparity {D[0]:.4g} to {D[last]:.4g}, "
            f"reconstruction_error {R[0]:.4g} to {R[last]:.4g})"
        )


@dataclass(frozen=True, repr=False)
class TradeoffPath:
    """Points of the frontier, from PCA to the least disparity.

    No projection of this rank has both a smaller overall error and a smaller disparity than a point
    of the frontier, for more than two groups up to ``duality_gap``.

    Attributes
    ----------
    alpha : ndarray of shape (n_points,)
        Weighting at which each point is optimal, falling from 1; NaN for more than two groups.
    reconstruction_error : ndarray of shape (n_points,)
    group_errors : ndarray of shape (n_points, k)
        In the order of ``groups``.
    disparity : ndarray of shape (n_points,)
        Error of the harmed group minus that of the privileged one, or for more than two groups
        largest minus smallest error; evenly spaced.
    components : ndarray of shape (n_points, n_components, n_features)
        Orthonormal bases of the projections.
    groups : ndarray of shape (k,)
    privileged_group, harmed_group : label
        The groups that PCA treats best and worst.
    n_components : int
    parity_reached : bool
        Whether the last point has zero disparity.
    efficient : ndarray of bool, shape (n_points,)
        Whether a point is proven to be efficient: no projection has a smaller error for one group
        without a larger one for another. The points after these are levelled down, for two groups;
        for more they may be.
    marks : dict of str to MarkedPoint
        The ends of "PCA", "efficient" (``constraint="pareto"``), "c-FPCA" (``"no_worse"``) and
        "u-FPCA" (None).
    duality_gap : ndarray of shape (n_points,)
        How much smaller the overall error of a point could be; of the last point, its disparity if
        that is not zero. Rounding for two groups.
    held_out : HeldOutPath or None
        With ``cv``: the same for rows that were not fitted to, with intervals. Each fold has its
        own frontier; two groups are fitted at the weighting of the point, more at the same part
        of the way.
    """

    alpha: Array
    reconstruction_error: Array
    group_errors: Array
    disparity: Array
    components: Array
    groups: NDArray[Any]
    privileged_group: Any
    harmed_group: Any
    n_components: int
    parity_reached: bool
    efficient: Mask
    marks: dict[str, MarkedPoint]
    duality_gap: Array
    held_out: HeldOutPath | None = None

    def __repr__(self) -> str:
        from fairpca.report._notebook import path_as_text

        return path_as_text(self)

    def _repr_html_(self) -> str:
        from fairpca.report._notebook import path_as_html

        return path_as_html(self)


def tradeoff_path(
    X_or_moments: Any,
    sensitive_features: Any = None,
    *,
    n_components: int,
    n_points: int = 30,
    sample_weight: Any = None,
    normalize: bool = False,
    min_group_size: int = 1,
    small_groups: SmallGroups = "error",
    tol: float = 1e-6,
    cv: Any = None,
    random_state: Any = None,
) -> TradeoffPath:
    """Compute the frontier of overall error and disparity between PCA and parity.

    Parameters
    ----------
    X_or_moments : data of shape (n_samples, n_features), or GroupMoments
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row, when data are given; several columns are crossed.
    n_components : int
        Rank of the projections.
    n_points : int, default=30
        Number of points, at evenly spaced disparities; at least 2.
    sample_weight : array-like of shape (n_samples,), optional
    normalize : bool, default=False
        Divide each group's error by its own total variance, as in :class:`FairPCA`.
    min_group_size : int, default=1
    small_groups : {"error", "merge", "ignore"}, default="error"
        What becomes of groups of fewer rows, as in :class:`FairPCA`.
    tol : float, default=1e-6
        Largest duality gap that passes without a :class:`~fairpca.exceptions.DualityGapWarning`,
        as in :class:`FairPCA`.
    cv : int or scikit-learn splitter, optional
        Judge the points by rows that were not fitted to as well, as in :class:`FairPCA`.
    random_state : int, RandomState or None, default=None
        Deals the rows to the folds.

    Returns
    -------
    TradeoffPath

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import tradeoff_path
    >>> X = np.array([[0.0, 1.0], [0.0, -1.0], [3.0, 0.0], [-3.0, 0.0], [2.0, 0.0], [-2.0, 0.0]])
    >>> path = tradeoff_path(X, ["a", "a", "b", "b", "b", "b"], n_components=1, n_points=3)
    >>> path.disparity.round(3)
    array([1. , 0.5, 0. ])
    >>> path.reconstruction_error.round(3)
    array([0.333, 0.6  , 0.867])
    """
    moments = _moments(X_or_moments, sensitive_features, sample_weight, cv, random_state)
    settled = settle_small_groups(moments, min_group_size, small_groups)
    if cv is not None:
        check_folds_of(settled, cv)
    moments, compared = settled.moments, settled.compared
    check_several_groups(moments.groups[compared].tolist(), int(moments.counts.sum()))
    check_integer("n_components", n_components, 1)
    if n_components > moments.n_features:
        raise ValueError(
            f"n_components={n_components} is more than the {moments.n_features} features; pass an "
            f"integer from 1 to {moments.n_features}."
        )
    if not tol >= 0:
        raise ValueError(f"tol={tol}: pass a number that is not negative.")
    check_integer("n_points", n_points, 2)
    operand = settled.measured(normalize)
    solutions = _walk(operand, int(n_components), int(n_points), tol)
    fairest = solutions[-1]
    errors = np.array([fairest.pca.errors, *(s.errors for s in solutions)])
    bases = [fairest.pca.basis, *(s.basis for s in solutions)]
    gaps = np.maximum([0.0, *(s.gap for s in solutions)], 0.0)
    labels = moments.groups.tolist()
    if any(s.gap > largest_gap(s, operand, tol) for s in solutions):
        warn(
            f"points of the frontier may lie up to {gaps.max():.3g} above the best possible, more "
            f"than tol = {tol:g} allows; see duality_gap of the result, and pass a larger tol to "
            "accept it.",
            DualityGapWarning,
        )
    marks, held_out = _marks(operand, solutions, tol), None
    if cv is not None:
        held_out = _held_out_path(settled, operand, solutions, marks, normalize, tol)
    return TradeoffPath(
        alpha=np.array([1.0, *(s.alpha for s in solutions)]),
        reconstruction_error=errors @ operand.shares,
        group_errors=errors,
        disparity=disparity(errors, compared, fairest.harmed, fairest.privileged),
        components=np.array([basis.T for basis in bases]),
        groups=moments.groups,
        privileged_group=labels[fairest.privileged],
        harmed_group=labels[fairest.harmed],
        n_components=int(n_components),
        parity_reached=fairest.status in (Status.PARITY, Status.ALREADY_FAIR),
        efficient=np.array([True, *(_is_efficient(s.weights) for s in solutions)]),
        marks=marks,
        duality_gap=gaps,
        held_out=held_out,
    )


def _held_out_path(
    settled: SettledGroups,
    operand: Operand,
    solutions: Sequence[Solution],
    marks: dict[str, MarkedPoint],
    normalize: bool,
    tol: float,
) -> HeldOutPath:
    """The points after PCA, and PCA, for rows that were not fitted to."""
    fairest, n, folds = solutions[-1], len(solutions), Folds(settled)
    two = len(operand.shares) == 2
    stops = [1 - s.alpha if two else (i + 1) / n for i, s in enumerate(solutions)]

    def along(way: FairProblem) -> CrossFit:
        walk = Walk(way, fairest, operand.shares, operand.compared, tol)
        return CrossFit(folds, walk, fairest.basis.shape[1], normalize)

    cross_fit = along(FairProblem())
    held_out = cross_fit.at(stops)
    at = np.searchsorted(held_out.stops, [0.0, *stops])

    def interval(values: Array, margin: Callable[[float], Array], least: Any = -np.inf) -> Array:
        wide = margin(INTERVAL_LEVEL)
        return np.stack([np.maximum(values - wide, least), values + wide], axis=-1)[at]

    errors, changes = held_out.group_errors, held_out.changes
    return HeldOutPath(
        reconstruction_error=held_out.overall[at],
        reconstruction_error_interval=interval(held_out.overall, held_out.overall_margin, 0.0),
        group_errors=errors[at],
        group_errors_interval=interval(errors, held_out.errors_margin, 0.0),
        disparity=held_out.disparity[at],
        disparity_interval=interval(held_out.disparity, held_out.disparity_margin),
        changes=changes[at],
        changes_interval=interval(changes, held_out.changes_margin, -errors[0]),
        marks=_held_out_marks(marks, cross_fit, along),
    )


def _held_out_marks(
    marks: dict[str, MarkedPoint], cross_fit: CrossFit, along: Callable[[FairProblem], CrossFit]
) -> dict[str, MarkedPoint]:
    """The marked points for rows that were not fitted to.

    Two groups are fitted at the weighting of the mark, more at the same part of the way. The
    efficient end of more groups is on a way of its own.
    """
    first, last = marks["PCA"].disparity, marks["u-FPCA"].disparity
    found = {}
    for name, mark in marks.items():
        fitted, stop = cross_fit, 1 - mark.alpha
        if name == "efficient" and len(mark.group_errors) > 2:
            fitted, stop = along(FairProblem(constraint="pareto")), 1.0
        elif len(mark.group_errors) > 2:
            stop = (first - mark.disparity) / (first - last) if first > last else 0.0
        held_out = fitted.at([stop])
        i = int(np.searchsorted(held_out.stops, stop))
        R, D = float(held_out.overall[i]), float(held_out.disparity[i])
        found[name] = MarkedPoint(mark.alpha, R, held_out.group_errors[i], D)
    return found


def _moments(
    X: Any, sensitive_features: Any, sample_weight: Any, cv: Any, random_state: Any
) -> GroupMoments | ImplicitMoments:
    if isinstance(X, GroupMoments):
        return X
    if sensitive_features is None:
        raise TypeError(
            "sensitive_features is missing: pass tradeoff_path(X, sensitive_features=groups, ...) "
            "with one group label per row, or GroupMoments instead of X."
        )
    if cv is not None:
        rng = check_random_state(random_state)
        return learn_folds(X, sensitive_features, sample_weight, cv, rng)
    return learn(X, sensitive_features, sample_weight)


def _is_efficient(weights: Array) -> bool:
    """Whether no group's error is rewarded."""
    return bool(weights.min() >= _NEGATIVE * np.abs(weights).max())


def _marks(operand: Operand, solutions: Sequence[Solution], tol: float) -> dict[str, MarkedPoint]:
    """The methods between PCA and the fairest projection, which is u-FPCA."""
    fairest, rank = solutions[-1], solutions[-1].basis.shape[1]
    start = replace(solutions[max(len(solutions) - 2, 0)], alpha=fairest.alpha)
    ends = {
        "efficient": solve(FairProblem(constraint="pareto"), operand, rank, tol, start),
        "c-FPCA": solve(FairProblem(constraint="no_worse"), operand, rank, tol, start),
        "u-FPCA": fairest,
    }
    points = {"PCA": (1.0, fairest.pca.errors)}
    points |= {name: (solution.alpha, solution.errors) for name, solution in ends.items()}
    sides = operand.compared, fairest.harmed, fairest.privileged
    return {
        name: MarkedPoint(
            alpha, float(operand.shares @ errors), errors, float(disparity(errors, *sides))
        )
        for name, (alpha, errors) in points.items()
    }


def _walk(operand: Operand, rank: int, n_points: int, tol: float) -> list[Solution]:
    """The solutions after PCA at evenly spaced disparities, the fairest one last."""
    fairest = solve(FairProblem(), operand, rank, tol, several=True)
    ends = np.array([fairest.pca.errors, fairest.errors])
    first, last = disparity(ends, operand.compared, fairest.harmed, fairest.privileged)
    solutions, start, guess = [], fairest, nan
    before = 1.0
    for target in np.linspace(first, last, n_points)[1:-1].tolist():
        problem = FairProblem(max_disparity=max(target, 0.0))
        start = solve(problem, operand, rank, tol, replace(start, alpha=guess))
        solutions.append(start)
        guess, before = _next_alpha(before, start.alpha), start.alpha
    return [*solutions, fairest]


def _next_alpha(before: float, here: float) -> float:
    """Alpha one point further on: evenly spaced disparities are nearly so in ``1 / alpha``."""
    return 1 / (2 / here - 1 / before) if here > 0 else nan
