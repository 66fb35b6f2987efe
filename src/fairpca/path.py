"""The whole frontier between PCA and parity."""

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._cv.cross_fit import CrossFit, Curve, disparity_interval
from fairpca._cv.held_out import BASELINE
from fairpca._cv.leave_out import LeaveOut
from fairpca._cv.path import path_of
from fairpca._estimators.advice import largest_gap
from fairpca._estimators.base import problem_of, settled_groups
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV
from fairpca._input.checks import check_integer
from fairpca._moments.group_moments import GroupMoments, Missing
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups, SmallGroups
from fairpca._moments.tolerances import NEGLIGIBLE
from fairpca._problems.problems import FairProblem
from fairpca._problems.solution import Solution, disparity
from fairpca._problems.status import Status
from fairpca._progress import Progress, silent
from fairpca._solvers import solve
from fairpca._typing import Array, Labels, Mask
from fairpca.exceptions import DualityGapWarning, warn

__all__ = ["HeldOutPath", "MarkedPoint", "TradeoffPath", "tradeoff_path"]


@dataclass(frozen=True)
class MarkedPoint:
    """The end of a named method, with the fields of :class:`TradeoffPath`."""

    alpha: float
    reconstruction_error: float
    group_errors: Array
    disparity: float


@dataclass(frozen=True, repr=False)
class HeldOutPath:
    """The fields of :class:`TradeoffPath` for held-out rows.

    Each interval, with its ends along the last axis, has a level of 95 % for its point alone.
    """

    reconstruction_error: Array
    reconstruction_error_interval: Array
    group_errors: Array
    group_errors_interval: Array
    disparity: Array
    disparity_interval: Array
    changes: Array  #: How much larger each group's error is than under PCA.
    changes_interval: Array
    marks: dict[str, MarkedPoint]


@dataclass(frozen=True, repr=False)
class TradeoffPath:
    """Points of the frontier, from PCA to the least disparity, with arrays of one row per point.

    No projection of this rank has both a smaller overall error and a smaller disparity than any of
    these points; with more than two groups this holds up to ``duality_gap``.
    """

    #: The weighting at which each point is optimal, falling from 1; with more than two groups NaN
    #: after PCA.
    alpha: Array
    reconstruction_error: Array
    group_errors: Array  #: In the order of ``groups``.
    disparity: Array  #: As in :class:`FairPCA`; evenly spaced.
    components: Array  #: Orthonormal bases of shape (n_points, n_components, n_features).
    groups: NDArray[Any]
    privileged_group: Any
    harmed_group: Any
    n_components: int
    parity_reached: bool  #: Whether the last point has zero disparity.
    #: Whether a point is proven to be efficient: no projection has a smaller error for one group
    #: without a larger one for another. Other points are, or with more than 2 groups may be,
    #: levelled down.
    efficient: Mask
    #: The ends of "PCA", "efficient" (``constraint="efficient"``), "c-FPCA" (``"no_worse"``) and
    #: "u-FPCA" (None).
    marks: dict[str, MarkedPoint]
    #: How much smaller the overall error of a point could be; for the last point, the disparity if
    #: it is not zero. For two groups it is rounding.
    duality_gap: Array
    #: With ``cv``: the same for held-out rows, each fold with its own frontier.
    held_out: HeldOutPath | None = None

    def to_frame(self) -> Any:
        """The points as rows of a pandas data frame, with ``cv`` including held-out figures."""
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise ImportError(
                "to_frame() makes a pandas data frame; pip install pandas, or use the arrays, for "
                "example path.disparity."
            ) from error
        columns = {name: getattr(self, name) for name in ("alpha", "efficient", "duality_gap")}
        columns |= _columns_of(self, self.groups, "")
        if self.held_out is not None:
            columns |= _columns_of(self.held_out, self.groups, "held_out_")
        return DataFrame(columns)

    def __repr__(self) -> str:
        from fairpca.report import path_as_text

        return path_as_text(self)


def _columns_of(points: Any, groups: Labels, prefix: str) -> dict[str, Array]:
    """The figures that a path has for the training rows and for held-out rows."""
    columns = {
        f"{prefix}disparity": points.disparity,
        f"{prefix}reconstruction_error": points.reconstruction_error,
    }
    for label, errors in zip(groups.tolist(), points.group_errors.T, strict=True):
        columns[f"{prefix}group_errors_{label}"] = errors
    return columns


def tradeoff_path(
    X_or_moments: Any,
    sensitive_features: Any = None,
    *,
    n_components: int,
    n_points: int = 30,
    max_group_increase: float | None = None,
    sample_weight: Any = None,
    units: Any = None,
    standardize: bool = False,
    relative_errors: bool = False,
    min_group_size: int = 1,
    small_groups: SmallGroups = "error",
    crossing: bool = True,
    missing: Missing = "error",
    tol: float = 1e-6,
    cv: Any = None,
    random_state: Any = None,
    progress: Progress = silent,
) -> TradeoffPath:
    """Compute the frontier of overall error and disparity between PCA and parity.

    Parameters
    ----------
    X_or_moments : data of shape (n_samples, n_features), stream or GroupMoments
        As for :meth:`FairPCA.fit`.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), or names
        The group of each row, when data are given; several columns are crossed.
    n_components : int
        Rank of the projections.
    n_points : int, default=30
        Number of points, at evenly spaced disparities; at least 2.
    max_group_increase : float, optional
        End where a group's error would exceed its error under PCA by more than this share. Each
        point, and each mark, is then the best one within this limit.
    sample_weight, units : array-like of shape (n_samples,), optional
        As for :meth:`FairPCACV.fit`.
    standardize, relative_errors, min_group_size, small_groups, crossing, missing, tol
        As in :class:`FairPCA`.
    cv, random_state
        As in :class:`FairPCACV`, to judge the points by held-out rows as well.
    progress : callable, optional
        Called with what is being done and the fraction of it that is done.

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
    check_integer("n_components", n_components, 1)
    check_integer("n_points", n_points, 2)
    options: dict[str, Any] = {
        "standardize": standardize,
        "relative_errors": relative_errors,
        "min_group_size": min_group_size,
        "small_groups": small_groups,
        "crossing": crossing,
        "missing": missing,
        "max_group_increase": max_group_increase,
        "tol": tol,
    }
    fair = FairPCA(**options)
    if cv is not None:
        fair = FairPCACV(cv=cv, random_state=random_state, **options)
    if sensitive_features is None and not isinstance(X_or_moments, GroupMoments):
        raise TypeError(
            "sensitive_features is missing: pass tradeoff_path(X, sensitive_features=groups, ...) "
            "with one group label per row, or GroupMoments instead of X."
        )
    settled = settled_groups(fair, X_or_moments, sensitive_features, sample_weight, units)
    moments = settled.moments
    if n_components > moments.n_features:
        raise ValueError(
            f"n_components={n_components}: pass an integer from 1 to {moments.n_features}."
        )
    operand = settled.measured(relative_errors)
    problem = FairProblem(max_group_increase=problem_of(fair).max_group_increase)
    solutions = _walk(problem, operand, int(n_components), int(n_points), tol, progress)
    marks = _marks(problem, operand, solutions, tol)
    held_out = None
    if cv is not None:
        held_out = _held_out_path(problem, fair, settled, solutions, marks, progress)
    fairest = solutions[-1]
    labels = moments.groups.tolist()
    errors = np.array([fairest.pca.errors, *(s.errors for s in solutions)])
    least_weights = [float(s.weights.min() / np.abs(s.weights).max()) for s in solutions]
    return TradeoffPath(
        alpha=np.array([1.0, *(s.alpha for s in solutions)]),
        reconstruction_error=errors @ operand.shares,
        group_errors=errors,
        disparity=disparity(errors, operand.compared, fairest.harmed, fairest.privileged),
        components=np.array([fairest.pca.basis.T, *(s.basis.T for s in solutions)]),
        groups=moments.groups,
        privileged_group=labels[fairest.privileged],
        harmed_group=labels[fairest.harmed],
        n_components=int(n_components),
        parity_reached=fairest.status in (Status.PARITY, Status.ALREADY_FAIR),
        # Efficient: no group's error is rewarded.
        efficient=np.array([1.0, *least_weights]) >= -NEGLIGIBLE,
        marks=marks,
        duality_gap=_gaps(solutions, operand, tol),
        held_out=held_out,
    )


def _gaps(solutions: list[Solution], operand: Operand, tol: float) -> Array:
    """How much smaller the overall error of each point could be; warns of large gaps."""
    gaps = np.maximum([0.0, *(s.gap for s in solutions)], 0.0)
    if any(s.gap > largest_gap(s, operand, tol)[0] for s in solutions):
        warn(
            f"points of the frontier may lie up to {gaps.max():.3g} above the best possible, see "
            f"duality_gap; this is more than tol = {tol:g} allows, and a larger tol accepts it.",
            DualityGapWarning,
        )
    return gaps


def _held_out_path(
    problem: FairProblem,
    fair: FairPCA,
    settled: SettledGroups,
    solutions: list[Solution],
    marks: dict[str, MarkedPoint],
    progress: Progress,
) -> HeldOutPath:
    """PCA, the points after it and the marks, for held-out rows."""
    folds = LeaveOut(settled)
    operand = settled.measured(fair.relative_errors)
    stops, ends = _stops(problem, solutions, marks)

    def along(problem: FairProblem) -> CrossFit:
        path = path_of(problem, solutions[-1], operand, fair.tol)
        return CrossFit(folds, path, fair.relative_errors)

    curve = _curve(along(problem), sorted({*stops, *ends.values()}), progress)
    curves = dict.fromkeys(ends, curve)
    if "efficient" not in ends:
        # With three or more groups and no limit, "efficient" is not on this path and is computed
        # separately.
        ends["efficient"] = 1.0
        curves["efficient"] = along(FairProblem(constraint="efficient")).at([1.0])
    at = np.searchsorted(curve.stops, stops).tolist()
    points = curve.held_out.projections(at)
    errors = points.interval(lambda totals: totals.group_errors).clipped(0.0)
    overall = points.interval(lambda totals: totals.overall).clipped(0.0)
    changes = points.interval(lambda totals: totals.changes).clipped(-errors.estimate[BASELINE])
    disparities = [disparity_interval(points, p, curve.sides) for p in range(len(at))]
    return HeldOutPath(
        reconstruction_error=overall.estimate,
        reconstruction_error_interval=overall.ends,
        group_errors=errors.estimate,
        group_errors_interval=errors.ends,
        disparity=np.array([float(interval.estimate) for interval in disparities]),
        disparity_interval=np.array([interval.ends for interval in disparities]),
        changes=changes.estimate,
        changes_interval=changes.ends,
        marks={
            name: _held_out_mark(mark.alpha, curves[name], ends[name])
            for name, mark in marks.items()
        },
    )


def _stops(
    problem: FairProblem, solutions: list[Solution], marks: dict[str, MarkedPoint]
) -> tuple[list[float], dict[str, float]]:
    """The stop of each point, and of each mark that lies on the path.

    Two groups are fitted at the weighting of each point, more groups at the same fraction of the
    way from PCA to the end.
    """
    if len(marks["PCA"].group_errors) == 2:
        stops = [0.0, *(1 - solution.alpha for solution in solutions)]
        return stops, {name: 1 - mark.alpha for name, mark in marks.items()}
    stops = np.linspace(0.0, 1.0, len(solutions) + 1).tolist()
    first = marks["PCA"].disparity
    whole = (first - marks["u-FPCA"].disparity) or 1.0
    ends = {name: (first - mark.disparity) / whole for name, mark in marks.items()}
    if problem.max_group_increase == inf:
        ends.pop("efficient")
    return stops, ends


def _curve(cross_fit: CrossFit, stops: list[float], progress: Progress) -> Curve:
    """Held-out errors at these stops, one after the other where folds keep what they found."""
    if cross_fit.folds.are_kept:
        for number, stop in enumerate(stops):
            progress("following the trade-off", number / len(stops))
            cross_fit.at([stop])
    return cross_fit.at(stops)


def _held_out_mark(alpha: float, curve: Curve, stop: float) -> MarkedPoint:
    """A mark for held-out rows, given the stop at which it lies."""
    at = int(np.searchsorted(curve.stops, stop))
    totals = curve.held_out.totals
    return MarkedPoint(
        alpha, float(totals.overall[at]), totals.group_errors[at], float(curve.disparity[at])
    )


def _marks(
    problem: FairProblem, operand: Operand, solutions: list[Solution], tol: float
) -> dict[str, MarkedPoint]:
    """The methods between PCA and the fairest projection, which is u-FPCA."""
    fairest = solutions[-1]
    rank = fairest.basis.shape[1]
    start = replace(solutions[max(len(solutions) - 2, 0)], alpha=fairest.alpha)
    ends = {
        "efficient": solve(replace(problem, constraint="efficient"), operand, rank, tol, start),
        "c-FPCA": solve(replace(problem, constraint="no_worse"), operand, rank, tol, start),
        "u-FPCA": fairest,
    }
    points = {"PCA": (1.0, fairest.pca.errors)} | {n: (s.alpha, s.errors) for n, s in ends.items()}
    sides = operand.compared, fairest.harmed, fairest.privileged
    return {
        name: MarkedPoint(alpha, float(operand.shares @ R), R, float(disparity(R, *sides)))
        for name, (alpha, R) in points.items()
    }


def _walk(
    problem: FairProblem, operand: Operand, rank: int, n_points: int, tol: float, progress: Progress
) -> list[Solution]:
    """The solutions after PCA at evenly spaced disparities, the fairest one last."""
    fairest = solve(problem, operand, rank, tol)
    ends = np.array([fairest.pca.errors, fairest.errors])
    first, last = disparity(ends, operand.compared, fairest.harmed, fairest.privileged)
    solutions = []
    start = fairest
    for number, target in enumerate(np.linspace(first, last, n_points)[1:-1].tolist()):
        progress("following the trade-off", number / n_points)
        within = replace(problem, max_disparity=max(target, 0.0))
        start = solve(within, operand, rank, tol, start)
        solutions.append(start)
    return [*solutions, fairest]
