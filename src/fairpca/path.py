"""The whole frontier between PCA and parity."""

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._cv.held_out import PCA
from fairpca._cv.leave_out import LeaveOut
from fairpca._cv.path import path_of
from fairpca._cv.stopping import CrossFit, disparity_interval
from fairpca._estimators.advice import largest_gap
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV
from fairpca._input.checks import check_integer
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups, SmallGroups
from fairpca._moments.tolerances import NEGLIGIBLE
from fairpca._problems.problems import FairProblem
from fairpca._problems.solution import Solution, disparity
from fairpca._problems.status import Status
from fairpca._solvers import solve
from fairpca._typing import Array, Mask
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
        from pandas import DataFrame

        columns = {name: getattr(self, name) for name in ("alpha", "efficient", "duality_gap")}
        for source, prefix in ((self, ""), (self.held_out, "held_out_")):
            if source is None:
                continue
            columns[f"{prefix}disparity"] = source.disparity
            columns[f"{prefix}reconstruction_error"] = source.reconstruction_error
            for g, label in enumerate(self.groups.tolist()):
                columns[f"{prefix}group_errors_{label}"] = source.group_errors[:, g]
        return DataFrame(columns)

    def __repr__(self) -> str:
        from fairpca.report import path_as_text

        return path_as_text(self)


def tradeoff_path(
    X_or_moments: Any,
    sensitive_features: Any = None,
    *,
    n_components: int,
    n_points: int = 30,
    max_group_increase: float | None = None,
    sample_weight: Any = None,
    standardize: bool = False,
    relative_errors: bool = False,
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
    max_group_increase : float, optional
        End where a group's error would exceed its error under PCA by more than this share. Each
        point, and each mark, is then the best one within this limit.
    sample_weight : array-like of shape (n_samples,), optional
    standardize, relative_errors, min_group_size, small_groups, tol
        As in :class:`FairPCA`.
    cv, random_state
        As in :class:`FairPCACV`, to judge the points by held-out rows as well.

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
        "tol": tol,
    }
    options |= {"min_group_size": min_group_size, "small_groups": small_groups}
    options["max_group_increase"] = max_group_increase
    fair = FairPCA(**options)
    if cv is not None:
        fair = FairPCACV(cv=cv, random_state=random_state, **options)
    fair._validate_params()
    if isinstance(X_or_moments, GroupMoments):
        settled = fair._settle(X_or_moments)
    elif sensitive_features is None:
        raise TypeError(
            "sensitive_features is missing: pass tradeoff_path(X, sensitive_features=groups, ...) "
            "with one group label per row, or GroupMoments instead of X."
        )
    else:
        rows, groups = fair._rows_of("fit", X_or_moments, None, sensitive_features, sample_weight)
        _, settled = fair._learn(rows, None, groups, sample_weight)
    moments = settled.moments
    if n_components > moments.n_features:
        raise ValueError(
            f"n_components={n_components}: pass an integer from 1 to {moments.n_features}."
        )
    operand = settled.measured(relative_errors)
    way = FairProblem(max_group_increase=fair._problem().max_group_increase)
    solutions = _walk(way, operand, int(n_components), int(n_points), tol)
    fairest, labels = solutions[-1], moments.groups.tolist()
    errors = np.array([fairest.pca.errors, *(s.errors for s in solutions)])
    gaps = np.maximum([0.0, *(s.gap for s in solutions)], 0.0)
    if any(s.gap > largest_gap(s, operand, tol)[0] for s in solutions):
        warn(
            f"points of the frontier may lie up to {gaps.max():.3g} above the best possible, see "
            f"duality_gap; this is more than tol = {tol:g} allows, and a larger tol accepts it.",
            DualityGapWarning,
        )
    marks, held_out = _marks(way, operand, solutions, tol), None
    if cv is not None:
        held_out = _held_out_path(way, fair, settled, solutions, marks)
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
        duality_gap=gaps,
        held_out=held_out,
    )


def _held_out_path(
    way: FairProblem,
    fair: FairPCA,
    settled: SettledGroups,
    solutions: list[Solution],
    marks: dict[str, MarkedPoint],
) -> HeldOutPath:
    """PCA, the points after it and the marks, for held-out rows.

    Two groups are fitted at the weighting of each point, more groups at the same fraction of the
    way from PCA to the end.
    With more groups and no limit, the efficient end lies on a way of its own.
    """
    fairest, n, folds = solutions[-1], len(solutions), LeaveOut(settled)
    operand = settled.measured(fair.relative_errors)
    two = len(operand.shares) == 2

    def along(problem: FairProblem) -> CrossFit:
        path = path_of(problem, fairest, operand, fair.tol)
        return CrossFit(folds, path, fair.relative_errors)

    first, last = marks["PCA"].disparity, marks["u-FPCA"].disparity
    ends = {
        name: 1 - mark.alpha if two else (first - mark.disparity) / ((first - last) or 1.0)
        for name, mark in marks.items()
        if two or way.max_group_increase < inf or name != "efficient"
    }
    stops = [0.0, *(1 - s.alpha if two else (i + 1) / n for i, s in enumerate(solutions))]
    curve = along(way).at([*stops, *ends.values()])
    at = np.searchsorted(curve.stops, stops).tolist()
    points = curve.held_out.projections(at)
    errors = points.interval(lambda totals: totals.group_errors).clipped(0.0)
    overall = points.interval(lambda totals: totals.overall).clipped(0.0)
    changes = points.interval(lambda totals: totals.changes).clipped(-errors.estimate[PCA])
    disparities = [disparity_interval(points, p, curve.sides) for p in range(len(at))]
    held_out_marks = {}
    for name, mark in marks.items():
        way_of_mark = (
            curve if name in ends else along(FairProblem(constraint="efficient")).at([1.0])
        )
        totals = way_of_mark.held_out.totals
        i = int(np.searchsorted(way_of_mark.stops, ends.get(name, 1.0)))
        R, D = float(totals.overall[i]), float(way_of_mark.disparity[i])
        held_out_marks[name] = MarkedPoint(mark.alpha, R, totals.group_errors[i], D)
    return HeldOutPath(
        reconstruction_error=overall.estimate,
        reconstruction_error_interval=overall.ends,
        group_errors=errors.estimate,
        group_errors_interval=errors.ends,
        disparity=np.array([float(interval.estimate) for interval in disparities]),
        disparity_interval=np.array([interval.ends for interval in disparities]),
        changes=changes.estimate,
        changes_interval=changes.ends,
        marks=held_out_marks,
    )


def _marks(
    way: FairProblem, operand: Operand, solutions: list[Solution], tol: float
) -> dict[str, MarkedPoint]:
    """The methods between PCA and the fairest projection, which is u-FPCA."""
    fairest, rank = solutions[-1], solutions[-1].basis.shape[1]
    start = replace(solutions[max(len(solutions) - 2, 0)], alpha=fairest.alpha)
    ends = {
        "efficient": solve(replace(way, constraint="efficient"), operand, rank, tol, start),
        "c-FPCA": solve(replace(way, constraint="no_worse"), operand, rank, tol, start),
        "u-FPCA": fairest,
    }
    points = {"PCA": (1.0, fairest.pca.errors)} | {n: (s.alpha, s.errors) for n, s in ends.items()}
    sides = operand.compared, fairest.harmed, fairest.privileged
    return {
        name: MarkedPoint(alpha, float(operand.shares @ R), R, float(disparity(R, *sides)))
        for name, (alpha, R) in points.items()
    }


def _walk(
    way: FairProblem, operand: Operand, rank: int, n_points: int, tol: float
) -> list[Solution]:
    """The solutions after PCA at evenly spaced disparities, the fairest one last."""
    fairest = solve(way, operand, rank, tol)
    ends = np.array([fairest.pca.errors, fairest.errors])
    first, last = disparity(ends, operand.compared, fairest.harmed, fairest.privileged)
    solutions, start = [], fairest
    for target in np.linspace(first, last, n_points)[1:-1].tolist():
        start = solve(replace(way, max_disparity=max(target, 0.0)), operand, rank, tol, start)
        solutions.append(start)
    return [*solutions, fairest]
