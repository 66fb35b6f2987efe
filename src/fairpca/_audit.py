"""The numbers behind the report: what PCA does to the groups, and what fair PCA changes."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from math import ceil, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fairpca._base import FairProjection
from fairpca._fair_pca import FairPCA
from fairpca._moments import GroupMoments
from fairpca._resampling import (
    assign_folds,
    cross_fit,
    disparity_interval,
    fit_quietly,
    quietly,
    spread_interval,
)
from fairpca._steps import finish
from fairpca._validation import FORGOTTEN_GROUPS, check_integer, encode_groups
from fairpca.path import TradeoffPath, tradeoff_path
from fairpca.sources.in_memory import as_rows

Array = NDArray[np.float64]

_MOST_RANKS = 30
_MANY_FEATURES = 300  # from here on every further rank is worth waiting for


@dataclass(frozen=True)
class Errors:
    """Average squared reconstruction errors under one projection.

    Attributes
    ----------
    group_errors : ndarray of shape (k,)
        ``R_g``, in the order of ``Audit.groups``.
    overall : float
        ``R``, over all rows.
    disparity : float
        Error of the harmed group minus that of the privileged one; of more than two groups the
        largest error minus the smallest.
    """

    group_errors: Array
    overall: float
    disparity: float


@dataclass(frozen=True)
class RankCurve:
    """Group errors against the number of components.

    Attributes
    ----------
    n_components : ndarray of shape (m,)
    pca, fair : ndarray of shape (m, k)
        Group errors of plain PCA and of the fair projection.
    status : list of str
        How the fair fit ended at each rank.
    """

    n_components: NDArray[np.int64]
    pca: Array
    fair: Array
    status: list[str]


@dataclass(frozen=True)
class Loadings:
    """Weights of the features in each component, of shape (n_components, n_features).

    The sign of a component is arbitrary; PCA's are turned to agree with the fair ones.
    """

    pca: Array
    fair: Array


@dataclass(frozen=True)
class Scores:
    """Scores of a random sample of rows on the first two components (or the only one).

    Attributes
    ----------
    rows : ndarray of shape (m,)
        Which rows; each group is sampled up to the same number, so groups of unequal size can be
        compared by eye.
    group : ndarray of shape (m,)
        Index into ``Audit.groups``.
    pca, fair : ndarray of shape (m, 2) or (m, 1)
    """

    rows: NDArray[np.intp]
    group: NDArray[np.intp]
    pca: Array
    fair: Array


@dataclass(frozen=True)
class FeatureErrors:
    """What each group loses on each feature: average squared errors of shape (k, n_features).

    They sum over the features to the group errors.
    """

    pca: Array
    fair: Array


@dataclass(frozen=True)
class CrossValidation:
    """Errors on held-out rows: every row under projections fitted without it."""

    n_folds: int
    pca: Errors
    fair: Errors


@dataclass(frozen=True)
class Bootstrap:
    """Confidence intervals of the disparity on new rows of the same population.

    Bootstrap-t intervals from the held-out errors; see the user guide, "The report's statistics".
    For more than two groups the level is the least that they have.

    Attributes
    ----------
    level : float
    n_resamples : int
    pca, fair : (float, float)
        Low and high end for each projection.
    """

    level: float
    n_resamples: int
    pca: tuple[float, float]
    fair: tuple[float, float]


@dataclass(frozen=True)
class Audit:
    """What plain PCA does to the groups, and what a fair projection changes.

    Attributes
    ----------
    estimator : str
        The fair estimator, as code.
    n_components : int
    standardized : bool
        Whether columns were divided by their standard deviation over all rows (with n - 1).
    feature_names : list of str
    groups : list
        Group labels, sorted.
    group_sizes : list of int
    group_variances : ndarray of shape (k,)
        Average squared distance from the overall mean: the error of a projection onto nothing.
    privileged_group, harmed_group : label
        As plain PCA treats them.
    pca, fair : Errors
        On the rows fitted to.
    cost : float
        Relative increase of the overall error: 0.01 is one percent.
    status : str
        How the fair fit ended.
    alpha : float
        The weighting at which the fair projection is optimal; NaN where there is none.
    duality_gap : float
        The certificate, as the estimator defines it: for ``FairPCA``, no projection can be better
        by more than this.
    ranks : RankCurve
    path : TradeoffPath
    loadings : Loadings
    scores : Scores
    feature_errors : FeatureErrors
    cross_validation : CrossValidation or None
        None when a group has too few rows to leave some out.
    bootstrap : Bootstrap or None
        None with ``cross_validation``.
    random_state : int
        Seed of folds, resamples and the sample of scores.
    """

    estimator: str
    n_components: int
    standardized: bool
    feature_names: list[str]
    groups: list[Any]
    group_sizes: list[int]
    group_variances: Array
    privileged_group: Any
    harmed_group: Any
    pca: Errors
    fair: Errors
    cost: float
    status: str
    alpha: float
    duality_gap: float
    ranks: RankCurve
    path: TradeoffPath
    loadings: Loadings
    scores: Scores
    feature_errors: FeatureErrors
    cross_validation: CrossValidation | None
    bootstrap: Bootstrap | None
    random_state: int

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists, numbers, strings and None, ready for ``json.dump``."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the page that ``fairpca report`` makes; needs ``pip install "fairpca[cli]"``."""
        from fairpca._files import replacing
        from fairpca.report import render

        with replacing(path) as page:
            page.write_text(render(self), encoding="utf-8")


def audit(
    X: Any,
    sensitive_features: Any = None,
    estimator: FairProjection | None = None,
    *,
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
    X : array or data frame of shape (n_samples, n_features)
        Copied once, as float64.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; several columns are crossed.
    estimator : FairPCA or other estimator of this library, optional
        Not modified; fitted figures come from clones. Without ``normalize`` and ``min_group_size``:
        all groups are compared, in the units of the columns. By default
        ``FairPCA(n_components=0.7)``: as many components as keep 70 % of each group's variance.
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
    return finish(
        audit_steps(
            X,
            sensitive_features,
            estimator,
            standardize=standardize,
            ranks=ranks,
            n_points=n_points,
            n_folds=n_folds,
            n_resamples=n_resamples,
            level=level,
            n_scores=n_scores,
            random_state=random_state,
        )
    )


def audit_steps(
    X: Any,
    sensitive_features: Any,
    estimator: FairProjection | None = None,
    *,
    standardize: bool = True,
    ranks: Sequence[int] | None = None,
    n_points: int = 41,
    n_folds: int = 10,
    n_resamples: int = 2000,
    level: float = 0.95,
    n_scores: int = 600,
    random_state: int = 0,
) -> Generator[str, None, Audit]:
    """:func:`audit` in steps: yields what is being done, returns the audit."""
    if sensitive_features is None:
        raise TypeError(FORGOTTEN_GROUPS.format(name="fairpca", method="audit", step="fairpca"))
    if not 0 < level < 1:
        raise ValueError(f"level={level} is no confidence level: pass one between 0 and 1.")
    # Fewer resamples hold no such quantile.
    for name, value, least in (
        ("n_folds", n_folds, 2),
        ("n_resamples", n_resamples, ceil(1 / (1 - level))),
        ("n_scores", n_scores, 1),
    ):
        check_integer(name, value, least)
    rng = np.random.default_rng(random_state)
    yield "reading the data"
    values, feature_names = _dense(X)
    codes, labels = encode_groups(sensitive_features, len(values))
    moments, scale = GroupMoments.from_data(X, sensitive_features), np.ones(values.shape[1])
    if standardize:
        moments, scale = moments.standardize()

    yield "fitting"
    model = clone(FairPCA(n_components=0.7) if estimator is None else estimator)
    if model.normalize or model.min_group_size > 1:
        raise ValueError(
            f"audit compares all groups in the units of the columns, so {model!r} cannot be "
            "audited; leave out normalize and min_group_size, and give small groups one label, or "
            "leave out their rows, before."
        )
    fit_quietly(model, moments)
    r = model.n_components_
    model.set_params(n_components=r)
    pca = FairPCA(r, alpha=1.0).fit_moments(moments)
    if model.group_errors_.sum() == 0 and not moments.second_moments().any():
        raise ValueError(
            "no column of X varies, so there is nothing to reconstruct; pass columns that do."
        )
    sides = (
        labels.tolist().index(model.privileged_group_),
        labels.tolist().index(model.harmed_group_),
    )
    signs = agreeing_signs(pca.components_, model.components_)
    with quietly():
        path = tradeoff_path(moments, n_components=r, n_points=n_points)

    curve = yield from curve_steps(moments, model, ranks)

    cross_validation = bootstrap = None
    n_folds = _possible_folds(moments.counts, n_folds, r)
    if n_folds:
        fold = assign_folds(codes, n_folds, rng)
        refitted = (clone(pca), clone(model))
        held_out = yield from cross_fit(values, codes, fold, refitted, standardize)
        cross_validation = CrossValidation(
            n_folds, *(_averages(errors, codes, sides) for errors in held_out)
        )
        yield "resampling"
        before, after = (
            _interval(errors, codes, sides, level, n_resamples, rng) for errors in held_out
        )
        bootstrap = Bootstrap(level, n_resamples, before, after)

    rows = _sample(codes, n_scores, rng)
    some = values[rows] / scale
    R = model.pca_reconstruction_error_
    return Audit(
        estimator=repr(model),
        n_components=r,
        standardized=standardize,
        feature_names=feature_names,
        groups=labels.tolist(),
        group_sizes=model.group_sizes_.tolist(),
        group_variances=np.trace(moments.second_moments(), axis1=1, axis2=2),
        privileged_group=model.privileged_group_,
        harmed_group=model.harmed_group_,
        pca=_errors(model.pca_group_errors_, R, sides),
        fair=_errors(model.group_errors_, model.reconstruction_error_, sides),
        cost=model.reconstruction_error_ / R - 1.0 if R > 0 else 0.0,
        status=model.status_,
        alpha=float(model.alpha_),
        duality_gap=float(model.duality_gap_),
        ranks=curve,
        path=path,
        loadings=Loadings(pca.components_ * signs[:, None], model.components_),
        scores=Scores(
            rows,
            codes[rows],
            ((some - pca.mean_) @ pca.components_[:2].T) * signs[:2],
            (some - model.mean_) @ model.components_[:2].T,
        ),
        feature_errors=FeatureErrors(
            _feature_errors(moments, pca.components_), _feature_errors(moments, model.components_)
        ),
        cross_validation=cross_validation,
        bootstrap=bootstrap,
        random_state=random_state,
    )


def curve_steps(
    moments: GroupMoments, estimator: FairProjection, ranks: Sequence[int] | None
) -> Generator[str, None, RankCurve]:
    """Fit the estimator at many ranks; by default as said under ``ranks`` of :func:`audit`."""
    chosen = _ranks(moments, int(estimator.n_components or 1), ranks)
    fits = []
    for rank in chosen:
        yield f"errors against components, {rank} of {chosen[-1]}"
        fits.append(fit_quietly(clone(estimator).set_params(n_components=rank), moments))
    return RankCurve(
        np.array(chosen),
        np.array([fit.pca_group_errors_ for fit in fits]),
        np.array([fit.group_errors_ for fit in fits]),
        [fit.status_ for fit in fits],
    )


def pca_errors_by_rank(moments: GroupMoments) -> Array:
    """Group errors of plain PCA with 1, 2, ... components, of shape (n_ranks, k)."""
    C, p = moments.second_moments(), moments.weights / moments.weights.sum()
    V = np.linalg.eigh(np.tensordot(p, C, axes=1)).eigenvectors[:, ::-1]
    captured = np.einsum("ji,kji->ik", V, C @ V).cumsum(axis=0)
    n_ranks = int(min(moments.n_features, moments.counts.sum()))
    errors = np.trace(C, axis1=1, axis2=2) - captured
    return np.asarray(np.maximum(errors[:n_ranks], 0.0))


def agreeing_signs(components: Array, like: Array) -> Array:
    """The sign to multiply each component by, so that it points the way of its counterpart."""
    return np.where(np.einsum("ij,ij->i", components, like) < 0, -1.0, 1.0)


def _dense(X: Any) -> tuple[Array, list[str]]:
    rows = as_rows(X)
    if rows.is_sparse:
        raise TypeError("audit needs dense data; pass X.toarray(), or fewer columns of it.")
    names = rows.feature_names or [f"x{j}" for j in range(rows.n_features)]
    return np.array(rows.block(0, rows.n_rows), dtype=np.float64), names


def _ranks(moments: GroupMoments, r: int, ranks: Sequence[int] | None) -> list[int]:
    d, limit = moments.n_features, int(min(moments.n_features, moments.counts.sum()))
    if ranks is None:
        many = d >= _MANY_FEATURES
        highest = min(limit, max(2 * r, 2 if many else _MOST_RANKS))
        grid = np.geomspace(1, highest, 8 if many else _MOST_RANKS).round().astype(int)
        return sorted({r, *(range(1, limit + 1) if limit <= _MOST_RANKS else grid.tolist())})
    wrong = [rank for rank in ranks if not 1 <= rank <= limit or int(rank) != rank]
    if wrong or not ranks:
        raise ValueError(f"ranks={list(ranks)}: pass integers from 1 to {limit}.")
    return sorted({int(rank) for rank in ranks})


def _possible_folds(counts: Iterable[int], n_folds: int, r: int) -> int:
    """As many folds as asked for and as the smallest group allows; 0 when that is not enough."""
    folds = min(n_folds, *counts)
    enough = folds >= 2 and sum(n - -(-n // folds) for n in counts) >= r
    return int(folds) if enough else 0


def _averages(errors: Array, codes: NDArray[np.intp], sides: tuple[int, int]) -> Errors:
    by_group = np.bincount(codes, errors) / np.bincount(codes)
    return _errors(by_group, float(errors.mean()), sides)


def _errors(group_errors: Array, overall: float, sides: tuple[int, int]) -> Errors:
    privileged, harmed = sides
    two = len(group_errors) == 2
    disparity = group_errors[harmed] - group_errors[privileged] if two else np.ptp(group_errors)
    return Errors(group_errors, float(overall), float(disparity))


def _interval(
    errors: Array,
    codes: NDArray[np.intp],
    sides: tuple[int, int],
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    by_group = [errors[codes == g] for g in range(int(codes.max()) + 1)]
    if len(by_group) > 2:
        return spread_interval(by_group, level, n_resamples, rng)
    privileged, harmed = sides
    return disparity_interval(by_group[privileged], by_group[harmed], level, n_resamples, rng)


def _feature_errors(moments: GroupMoments, components: Array) -> Array:
    """``diag((I - P) C_g (I - P))`` for the projection P."""
    C = moments.second_moments()
    C_U = C @ components.T
    once = np.einsum("kjr,rj->kj", C_U, components)
    twice = np.einsum("rj,krs,sj->kj", components, components @ C_U, components)
    return np.asarray(np.maximum(np.diagonal(C, axis1=1, axis2=2) - 2 * once + twice, 0.0))


def _sample(codes: NDArray[np.intp], n_scores: int, rng: np.random.Generator) -> NDArray[np.intp]:
    k = int(codes.max()) + 1
    members = [np.flatnonzero(codes == g) for g in range(k)]
    drawn = [
        rng.choice(rows, min(len(rows), max(n_scores // k, 1)), replace=False) for rows in members
    ]
    return np.sort(np.concatenate(drawn))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None  # JSON has no word for it
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
