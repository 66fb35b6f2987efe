"""Which estimator is fitted to which rows: to all of them, without a fold, and to a part of them.

Two choices are compared. The *usual* one ignores groups: PCA, or the columns of least overall
error. The *fair* one is that of the estimator that is audited.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.pipeline import Pipeline

from fairpca._audit.people import Folds, People
from fairpca._blas import single_threaded_blas
from fairpca._cv.held_out import RELIABLE
from fairpca._cv.leave_out import fold_of
from fairpca._cv.path import path_of
from fairpca._estimators.base import FairProjection, problem_of, settled_groups
from fairpca._estimators.fair_columns import FairColumns
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV, stop_of
from fairpca._input.rows import dense
from fairpca._linear_map import LinearMap, columns_map, map_of, with_signs
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.sums import scale_of
from fairpca._problems.problems import PLAIN_PCA
from fairpca._solvers import solve
from fairpca._solvers.eigenspaces.lapack import top_eigenvectors
from fairpca._typing import Array
from fairpca.exceptions import quietly, warn
from fairpca.metrics.reconstruction import refuse_data

_FEW_SUBSETS = 5000  # without each fold, all subsets of columns are tried up to this number
FEWEST_FOLDS = 3  # for FairPCACV when it is fitted to a part of the rows

#: Estimators that an audit compares with the usual choice, which ignores groups.
Judged = FairProjection | FairColumns


def taken_apart(estimator: Any) -> tuple[Pipeline | None, Any]:
    """The steps before the projection, and the projection itself; None for the default."""
    if estimator is None:
        return None, None
    refuse_data(estimator, "audit(estimator, X, sensitive_features)")
    if isinstance(estimator, type):
        name = estimator.__name__
        raise TypeError(f"{name} is a class; pass an object, for example {name}(3).")
    steps = [("", estimator)]
    if isinstance(estimator, Pipeline):
        steps = estimator.steps
    kinds = Judged | PCA | IncrementalPCA
    places = [i for i, (_, step) in enumerate(steps) if isinstance(step, kinds)]
    if not places:
        names = ", ".join(type(step).__name__ for _, step in steps)
        raise TypeError(
            "audit takes an unfitted projection of fairpca, scikit-learn's PCA, or a pipeline with "
            f"one of them, got {names}; pass FairPCACV(3), for example. To judge a fitted model as "
            "it is, call fairpca.audit_model(model, X, groups)."
        )
    at = places[-1]
    step = steps[at][1]
    if hasattr(step, "components_"):
        warn(
            f"audit fits {type(step).__name__} again, without each part of the rows in "
            "turn; to judge the fitted one as it is, call fairpca.audit_model(model, X, groups).",
            UserWarning,
        )
    before = None
    if at:
        before = Pipeline(steps[:at])
    return before, step


def alternative_to(step: Any, folds: Folds) -> Judged:
    """The fair version: the estimator that was passed, or the recommended one."""
    n_folds = folds.moments.n_folds
    how: dict[str, Any] = {"cv": n_folds, "crossing": not folds.moments.attributes}
    if isinstance(step, Judged):
        chosen: Judged = _with_known(step, **how)
        return chosen
    rank: Any = getattr(step, "n_components", 0.7)
    if step is not None and not isinstance(rank, Integral):
        if not isinstance(folds, People):
            raise ValueError("moments need PCA with a number of components, for example PCA(3).")
        rank = int(clone(step).fit(dense(folds.values)).n_components_)
    return for_sizes(FairPCACV(rank, standardize=step is None, **how), folds.moments.n_units)


def for_sizes(fair: FairPCACV, sizes: NDArray[np.int64]) -> FairPCA:
    """Adapt the estimator to group sizes: groups of fewer rows than folds cannot be compared."""
    how = fair.get_params()
    n_folds = how.pop("cv")
    seed = how.pop("random_state")
    if how["small_groups"] != "error" or (sizes >= n_folds).all():
        return fair
    if (sizes >= n_folds).sum() < 2:  # too few rows to choose by cross-validation
        return FairPCA(**how)
    small = {"min_group_size": n_folds, "small_groups": "ignore"}
    return FairPCACV(cv=n_folds, random_state=seed, **how | small)


def for_part_of_rows(estimator: Judged, fair: Any, n_judged: int) -> Any:
    """The estimator at the same rank, for a part of the rows of judged groups."""
    rank = n_kept(fair)
    if not isinstance(fair, FairPCACV):
        return _with_known(estimator, n_components=rank, min_group_size=1)
    how = {name: getattr(fair, name) for name in ("standardize", "relative_errors", "missing")}
    # Keep the weight that folds chose for two groups: fewer rows might choose PCA.
    if n_judged == 2 and np.isfinite(fair.alpha_):
        return FairPCA(rank, alpha=fair.alpha_, **how)
    return FairPCACV(rank, cv=FEWEST_FOLDS, constraint=fair.constraint, **how)


def helped_in_other_folds(estimator: Judged, fair: Any, folds: Folds) -> list[bool]:
    """Whether FairPCACV finds a reliable gain when the rows are dealt into folds anew."""
    if not isinstance(fair, FairPCACV) or not isinstance(folds, People):
        return []
    rank = n_kept(fair)
    again = [
        fit_quietly(estimator, other.moments, n_components=rank) for other in folds.dealt_again
    ]
    return [own.stop_ > 0 and own.held_out_t_ > RELIABLE for own in again]


def n_kept(fair: Any) -> int:
    """How many components or columns a fitted estimator keeps."""
    if isinstance(fair, FairColumns):
        return len(fair.columns_)
    return len(fair.components_)


def both_of(fair: Any, moments: GroupMoments) -> tuple[LinearMap, LinearMap]:
    """The usual choice for the rows that an estimator was fitted to, and its own."""
    if isinstance(fair, FairColumns):
        return columns_map(fair, fair.baseline_columns_, fair.baseline_rebuild_map_), map_of(fair)
    own = LinearMap.projection(fair.components_, fair.mean_, fair.scale_)
    return fit_pca(moments, fair.n_components_, fair.standardize).turned(own), own


class Refits:
    """The choices without a fold: the usual, the fair one, and PCA at the ranks of a curve.

    ``stays`` says that all rows lead to the usual choice; then every fold stays with it.
    """

    def __init__(
        self, estimator: Judged, fair: Any, moments: GroupMoments, ranks: list[int], stays: bool
    ) -> None:
        self._estimator = estimator
        self._fair = fair
        self._ranks = ranks
        self._stays = stays
        self._at_stops: _AtStops | None = None
        if isinstance(fair, FairPCACV) and not stays:
            self._at_stops = _AtStops(fair, moments)

    def without(self, fold: int, fit_to: GroupMoments) -> list[LinearMap]:
        """The usual choice; the fair one as other folds choose it, and as all do; the curve."""
        if isinstance(self._fair, FairColumns):
            return self._columns(fit_to)
        fair = self._fair
        rank = n_kept(fair)
        pca = fit_pca(fit_to, max([rank, *self._ranks]), fair.standardize)
        usual = pca.first(rank)
        curve = [pca.first(r) for r in self._ranks]
        if self._at_stops:
            bases = self._at_stops.bases(fold, fit_to)
            return [usual, *(pca.with_components(basis.T) for basis in bases), *curve]
        own = usual
        if not self._stays and self._n_compared(fit_to) > 1:
            own = pca.with_components(self._refit(fit_to).components_)
        return [usual, own, own, *curve]

    def usual(self, fit_to: GroupMoments) -> LinearMap:
        """Plain PCA without a fold, also of rows with missing values or other columns."""
        return fit_pca(fit_to, n_kept(self._fair), self._fair.standardize)

    def _columns(self, fit_to: GroupMoments) -> list[LinearMap]:
        if self._n_compared(fit_to) < 2:
            raise ValueError(
                "without a fold only one group is left to choose columns for; pass fewer "
                "folds, or min_group_size with small_groups='ignore'."
            )
        usual, own = both_of(self._refit(fit_to), fit_to)
        if self._stays:
            own = usual
        return [usual, own, own, *(usual for _ in self._ranks)]

    def _refit(self, fit_to: GroupMoments) -> Any:
        sizes = self._compared(fit_to)
        return fit_quietly(
            self._estimator,
            fit_to,
            n_components=n_kept(self._fair),
            min_group_size=max(min(sizes), 1),  # a group may be too small without the fold
            max_subsets=min(getattr(self._fair, "max_subsets", 0), _FEW_SUBSETS),
        )

    def _compared(self, moments: GroupMoments) -> list[int]:
        """The sizes of the groups that the fit compares."""
        sizes = zip(moments.groups.tolist(), moments.counts.tolist(), strict=True)
        return [size for label, size in sizes if label not in self._fair.small_groups_]

    def _n_compared(self, moments: GroupMoments) -> int:
        return int(np.count_nonzero(self._compared(moments)))


class _AtStops:
    """FairPCACV without a fold: at the stop that the other folds choose, and at that of all."""

    def __init__(self, fair: FairPCACV, moments: GroupMoments) -> None:
        self._fair = fair
        self._settled = settled_groups(fair, moments)
        operand = self._settled.measured(fair.relative_errors)
        pca = solve(PLAIN_PCA, operand, fair.n_components_, fair.tol)
        problem = replace(problem_of(fair), max_group_increase=inf)
        self._path = path_of(problem, pca, operand, fair.tol)
        stop = stop_of(fair)
        self._together = stop.stop
        self._chosen = stop.curve.stops[stop.of_folds].tolist()
        self._path.prepare(sorted({*self._chosen, self._together}))

    def bases(self, fold: int, fit_to: GroupMoments) -> list[Array]:
        """The components at both stops, as columns, for the rows outside a fold."""
        fair = self._fair
        (settled,) = self._settled.with_repeats([fit_to]).repeats
        sums = settled.group_sums()
        operand = fold_of(sums, sums, self._settled.compared, fair.standardize).operand
        if fair.relative_errors:
            operand = operand.relative()
        both = [self._chosen[fold], self._together]
        stops = sorted({*both})
        found = dict(zip(stops, self._path.of_fold(operand).bases(stops), strict=True))
        return [found[stop] for stop in both]


def fit_pca(moments: GroupMoments, rank: int, standardize: bool = False) -> LinearMap:
    """Plain PCA of all rows, with fewer components if there are too few rows."""
    sums = moments.group_sums()
    if not sums.rows.all():
        sums = sums.take(np.flatnonzero(sums.rows).tolist())
    mean = sums.mean
    scale = np.ones(len(mean))
    if standardize:
        scale = scale_of(np.add(*sums.variances()), mean)
        sums = sums.divided(scale)
    operand = sums.operand("overall", None)
    rank = int(min(rank, operand.n_features, sums.rows.sum()))
    C = np.tensordot(operand.shares, operand.compact.dense_matrices, axes=1)
    with single_threaded_blas():
        _, basis = top_eigenvectors(C, rank)
    if operand.frame is not None:
        basis = operand.frame.lift(basis)
    return LinearMap.projection(with_signs(basis.T), mean, scale)


def fit_quietly(estimator: Judged, moments: GroupMoments, **options: Any) -> Any:
    """Fit a clone without warnings: the audit says how the fit ended, and who loses by it.

    Groups without rows are merged into the largest group.
    """
    labels = moments.groups.tolist()
    largest = labels[int(moments.counts.argmax())]
    empty = np.flatnonzero(moments.counts == 0)
    moments = moments.renamed({labels[g]: largest for g in empty})
    with quietly():
        return _with_known(estimator, **options).fit(moments)


def _with_known(estimator: Judged, **options: Any) -> Any:
    """A clone with those of the parameters that the estimator has."""
    known = {name: options[name] for name in options if name in estimator.get_params(deep=False)}
    return clone(estimator).set_params(**known)
