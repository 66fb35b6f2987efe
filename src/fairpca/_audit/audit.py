"""The numbers behind the report: what PCA does to the groups, and what fair PCA changes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fairpca._audit.held_out import (
    disparity_interval,
    fit_quietly,
    group_ratios,
    quietly,
    spread_interval,
)
from fairpca._audit.result import (
    Audit,
    Bootstrap,
    CrossValidation,
    Errors,
    FeatureErrors,
    Loadings,
    RankCurve,
    Scores,
)
from fairpca._audit.rows import AuditedRows, RowsInMemory
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._input.checks import (
    check_integer,
)
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.small_groups import SettledGroups
from fairpca._progress import Step, finish
from fairpca._solvers.eigenspaces.operand import DenseOperand
from fairpca._typing import Array
from fairpca.path import tradeoff_path

_MOST_RANKS = 30
_MANY_FEATURES = 300  # from here on every further rank is worth waiting for


def audit(
    X: Any,
    sensitive_features: Any = None,
    estimator: FairProjection | None = None,
    *,
    sample_weight: Any = None,
    standardize: bool = True,
    ranks: Sequence[int] | None = None,
    n_points: int = 41,
    n_folds: int = 10,
    n_resamples: int = 2000,
    level: float = 0.95,
    n_scores: int = 600,
    random_state: int = 0,
) -> Audit:
    """Compare plain PCA with a fair projection, group by group.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        What is not sparse is copied once, as float64.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; several columns are crossed.
    estimator : FairPCA or other estimator of this library, optional
        Not modified; fitted figures come from clones. Its ``normalize``, ``min_group_size`` and
        ``small_groups`` hold for the whole audit: all errors are then relative, and small groups
        are merged or left out of all comparisons. By default ``FairPCA(n_components=0.7)``: as many
        components as keep 70 % of each group's variance.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights. All averages are weighted; folds and resamples are of rows, whatever
        their weight. Rows of weight zero are left out.
    standardize : bool, default=True
        Divide columns by their standard deviation over all rows, as the paper does. Within
        cross-validation that of the rows fitted to.
    ranks : sequence of int, optional
        Numbers of components for the curve of errors; by default all, or some thirty of them up to
        ``max(30, 2 * n_components)`` (eight when there are hundreds of features).
    n_points : int, default=41
        Points of the trade-off path.
    n_folds : int, default=10
        Folds of the cross-validation; fewer when a group has fewer rows.
    n_resamples : int, default=2000
        Resamples of the bootstrap, at least ``1 / (1 - level)``.
    level : float, default=0.95
        Confidence level of the intervals.
    n_scores : int, default=600
        Most rows in the sample of scores.
    random_state : int, default=0
        Seed; the same seed gives the same audit.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from fairpca import FairPCA, audit
    >>> from fairpca.datasets import load_diabetes_by_sex
    >>> diabetes = load_diabetes_by_sex(prepare=False)
    >>> result = audit(diabetes.data, diabetes.sensitive_features, FairPCA(n_components=3))
    >>> result.harmed_group, result.status
    ('male', 'parity reached')
    >>> round(result.pca.disparity, 3), round(result.cost, 3)
    (0.113, 0.013)
    >>> low, high = result.bootstrap.pca
    >>> low < result.cross_validation.pca.disparity < high
    True
    """
    if sensitive_features is None:
        raise TypeError(
            "sensitive_features is missing: pass fairpca.audit(X, sensitive_features=groups) with "
            "one group label per row."
        )
    settings = AuditSettings(
        standardize, ranks, n_points, n_folds, n_resamples, level, n_scores, random_state
    )
    rows = RowsInMemory(X, sensitive_features, sample_weight)
    return finish(audit_steps(rows, estimator, settings))


@dataclass(frozen=True)
class AuditSettings:
    """Parameters of :func:`audit` that are not data."""

    standardize: bool = True
    ranks: Sequence[int] | None = None
    n_points: int = 41
    n_folds: int = 10
    n_resamples: int = 2000
    level: float = 0.95
    n_scores: int = 600
    random_state: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(
                f"level={self.level} is none: pass a confidence level between 0 and 1."
            )
        check_integer("n_folds", self.n_folds, 2)
        check_integer("n_scores", self.n_scores, 1)
        # Fewer resamples hold no such quantile.
        check_integer("n_resamples", self.n_resamples, ceil(1 / (1 - self.level)))


def audit_steps(
    rows: AuditedRows, estimator: FairProjection | None, settings: AuditSettings
) -> Generator[Step, None, Audit]:
    """:func:`audit` in steps, of rows wherever they are: yields what is being done."""
    rng = np.random.default_rng(settings.random_state)
    moments, scale = rows.moments, np.ones(rows.moments.n_features)
    if settings.standardize:
        moments, scale = moments.standardize()

    yield Step("fitting")
    if not isinstance(estimator, FairProjection | None):
        raise TypeError(
            f"audit compares PCA with an estimator of fairpca, got {type(estimator).__name__}; "
            "pass FairPCA(r), for example, and measure other projections with "
            "fairpca.metrics.group_reconstruction_errors."
        )
    model = clone(FairPCA(n_components=0.7) if estimator is None else estimator)
    settled = model._settle_groups(moments)
    fit_quietly(model, moments)
    r = model.n_components_
    model.set_params(n_components=r)
    small = {"min_group_size": model.min_group_size, "small_groups": model.small_groups}
    pca = FairPCA(r, alpha=1.0, **small).fit_moments(moments)
    if model.group_errors_.sum() == 0 and not moments.second_moments().any():
        raise ValueError(
            "no column of X varies, so there is nothing to reconstruct; pass columns that do."
        )
    signs = agreeing_signs(pca.components_, model.components_)
    yield Step("following the trade-off")
    with quietly():
        path = tradeoff_path(
            moments, n_components=r, n_points=settings.n_points, normalize=model.normalize, **small
        )

    curve = yield from curve_steps(moments, model, settings.ranks)

    comparison = _Comparison.of(model, settled)
    cross_validation = bootstrap = None
    n_folds = _possible_folds(settled, settings.n_folds, r)
    if n_folds:
        held_out = yield from rows.cross_fit(
            settled, n_folds, (clone(pca), clone(model)), settings.standardize, rng
        )
        totals = held_out.distances if model.normalize else held_out.weights
        shares = [group_ratios(errors, totals, held_out.codes) for errors in held_out.errors]
        cross_validation = CrossValidation(
            n_folds,
            *(
                comparison.errors(ratios, float(errors.sum() / totals.sum()))
                for errors, (ratios, _) in zip(held_out.errors, shares, strict=True)
            ),
        )
        intervals: list[tuple[float, float]] = []
        for _, share in shares:
            yield Step("resampling", len(intervals), len(shares))
            intervals.append(comparison.interval(share, held_out.codes, settings, rng))
        bootstrap = Bootstrap(settings.level, settings.n_resamples, *intervals)

    sample = yield from rows.sample(settled, settings.n_scores, rng)
    some = sample.values / scale
    R = model.pca_reconstruction_error_
    units = np.trace(settled.moments.second_moments(), axis1=1, axis2=2)
    relative = np.where(units > 0, units, 1.0) if model.normalize else np.ones(len(units))
    return Audit(
        estimator=repr(model),
        n_components=r,
        standardized=settings.standardize,
        feature_names=rows.feature_names,
        groups=settled.moments.groups.tolist(),
        group_sizes=model.group_sizes_.tolist(),
        group_variances=units / relative,
        normalized=model.normalize,
        weighted=rows.weighted,
        compared=settled.compared.tolist(),
        small_groups=settled.small,
        privileged_group=model.privileged_group_,
        harmed_group=model.harmed_group_,
        pca=comparison.errors(model.pca_group_errors_, R),
        fair=comparison.errors(model.group_errors_, model.reconstruction_error_),
        cost=model.reconstruction_error_ / R - 1.0 if R > 0 else 0.0,
        status=model.status_,
        alpha=float(model.alpha_),
        duality_gap=float(model.duality_gap_),
        ranks=curve,
        path=path,
        loadings=Loadings(pca.components_ * signs[:, None], model.components_),
        scores=Scores(
            sample.rows,
            sample.codes,
            ((some - pca.mean_) @ pca.components_[:2].T) * signs[:2],
            (some - model.mean_) @ model.components_[:2].T,
        ),
        feature_errors=FeatureErrors(
            *(
                _feature_errors(settled.moments, fitted.components_) / relative[:, None]
                for fitted in (pca, model)
            )
        ),
        cross_validation=cross_validation,
        bootstrap=bootstrap,
        random_state=settings.random_state,
    )


def curve_steps(
    moments: GroupMoments, estimator: FairProjection, ranks: Sequence[int] | None
) -> Generator[Step, None, RankCurve]:
    """Fit the estimator at many ranks; by default as said under ``ranks`` of :func:`audit`."""
    chosen = _ranks(moments, int(estimator.n_components or 1), ranks)
    fits = []
    for i, rank in enumerate(chosen):
        yield Step("errors against components", i, len(chosen))
        fits.append(fit_quietly(clone(estimator).set_params(n_components=rank), moments))
    return RankCurve(
        np.array(chosen),
        np.array([fit.pca_group_errors_ for fit in fits]),
        np.array([fit.group_errors_ for fit in fits]),
        np.array([fit.pca_reconstruction_error_ for fit in fits]),
        [fit.status_ for fit in fits],
    )


def pca_errors_by_rank(moments: GroupMoments, normalize: bool = False) -> Array:
    """Group errors of plain PCA with 1, 2, ... components, of shape (n_ranks, k)."""
    operand = DenseOperand(moments.second_moments(), moments.weights / moments.weights.sum())
    operand = operand.relative() if normalize else operand
    C, p = operand.C, operand.shares
    V = np.linalg.eigh(np.tensordot(p, C, axes=1)).eigenvectors[:, ::-1]
    captured = np.einsum("ji,kji->ik", V, C @ V).cumsum(axis=0)
    n_ranks = int(min(moments.n_features, moments.counts.sum()))
    errors = operand.traces - captured
    # What is left of a group's variance when nothing is left is rounding.
    return np.where(errors > 1e-12 * operand.traces, errors, 0.0)[:n_ranks]


def agreeing_signs(components: Array, like: Array) -> Array:
    """The sign to multiply each component by, so that it points the way of its counterpart."""
    return np.where(np.einsum("ij,ij->i", components, like) < 0, -1.0, 1.0)


@dataclass(frozen=True)
class _Comparison:
    """Which groups are compared, and which of them PCA treats best and worst."""

    compared: NDArray[np.bool_]
    privileged: int
    harmed: int

    @classmethod
    def of(cls, model: FairProjection, settled: SettledGroups) -> _Comparison:
        labels = settled.moments.groups.tolist()
        sides = labels.index(model.privileged_group_), labels.index(model.harmed_group_)
        return cls(settled.compared, *sides)

    @property
    def two(self) -> bool:
        return int(np.count_nonzero(self.compared)) == 2

    def errors(self, group_errors: Array, overall: float) -> Errors:
        if self.two:
            disparity = group_errors[self.harmed] - group_errors[self.privileged]
        else:
            disparity = np.ptp(group_errors[self.compared])
        return Errors(group_errors, float(overall), float(disparity))

    def interval(
        self,
        errors: Array,
        codes: NDArray[np.intp],
        settings: AuditSettings,
        rng: np.random.Generator,
    ) -> tuple[float, float]:
        level, n_resamples = settings.level, settings.n_resamples
        if self.two:
            favoured, harmed = errors[codes == self.privileged], errors[codes == self.harmed]
            return disparity_interval(favoured, harmed, level, n_resamples, rng)
        groups = [errors[codes == g] for g in np.flatnonzero(self.compared)]
        return spread_interval(groups, level, n_resamples, rng)


def _ranks(moments: GroupMoments, r: int, ranks: Sequence[int] | None) -> list[int]:
    d, limit = moments.n_features, int(min(moments.n_features, moments.counts.sum()))
    if ranks is None:
        many = d >= _MANY_FEATURES
        highest = min(limit, max(2 * r, 2 if many else _MOST_RANKS))
        grid = np.geomspace(1, highest, 8 if many else _MOST_RANKS).round().astype(int)
        return sorted({r, *(range(1, limit + 1) if limit <= _MOST_RANKS else grid.tolist())})
    ranks = list(ranks)
    wrong = [rank for rank in ranks if not 1 <= rank <= limit or int(rank) != rank]
    if wrong or not ranks:
        raise ValueError(f"ranks={ranks}: pass integers from 1 to {limit}.")
    return sorted({int(rank) for rank in ranks})


def _possible_folds(settled: SettledGroups, n_folds: int, r: int) -> int:
    """As many folds as asked for and as the smallest group allows; 0 when that is not enough."""
    counts = settled.moments.counts
    folds = int(min(n_folds, *counts[settled.compared]))
    enough = folds >= 2 and sum(n - -(-n // folds) for n in counts) >= r
    return folds if enough else 0


def _feature_errors(moments: GroupMoments, components: Array) -> Array:
    """``diag((I - P) C_g (I - P))`` for the projection P."""
    C = moments.second_moments()
    C_U = C @ components.T
    once = np.einsum("kjr,rj->kj", C_U, components)
    twice = np.einsum("rj,krs,sj->kj", components, components @ C_U, components)
    return np.asarray(np.maximum(np.diagonal(C, axis1=1, axis2=2) - 2 * once + twice, 0.0))
