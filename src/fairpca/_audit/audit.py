"""The numbers behind the report: what PCA does to the groups, and what fair PCA changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from fairpca._audit.fits import (
    Fits,
    chooses_by_folds,
    fit_both,
    recommended,
    settle,
    small_group_parameters,
)
from fairpca._audit.held_out import FoldFit
from fairpca._audit.intervals import Resampling
from fairpca._audit.new_rows import FAIR, PCA, NewRows
from fairpca._audit.rank_curve import rank_curve
from fairpca._audit.readings import other_reading
from fairpca._audit.representation import outcomes, representation
from fairpca._audit.result import (
    Audit,
    Bootstrap,
    CrossValidation,
    FeatureErrors,
    Loadings,
    RowInfluence,
    Scores,
)
from fairpca._audit.rows import AuditedRows, RowsInMemory, SampledRows
from fairpca._estimators.advice import warn
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.targeted import TargetedProjection
from fairpca._input.checks import check_integer
from fairpca._input.labels import encode_outcomes
from fairpca._input.rows import as_rows
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.small_groups import SettledGroups
from fairpca._progress import Progress, silent
from fairpca._typing import Array, Labels
from fairpca.exceptions import FewRowsWarning, quietly
from fairpca.path import TradeoffPath, tradeoff_path

_ROUNDING = 1e-9  # of the largest variance: a smaller disparity is that of nothing lost


def audit(
    X: Any,
    sensitive_features: Any = None,
    estimator: FairProjection | None = None,
    *,
    y: Any = None,
    probes: bool = False,
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
        Data that are not sparse are copied once, as float64.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; several columns are crossed.
    estimator : FairPCA or other estimator of this library, optional
        It is not modified; clones of it are fitted. Its ``normalize``, ``min_group_size`` and
        ``small_groups`` hold for the whole audit: all errors are then relative, and small groups
        are merged or left out of all comparisons. By default ``FairPCA(n_components=0.7, cv=10)``:
        as many components as keep 70 % of each group's variance, and as much fairness as helps rows
        that were not fitted to. ``cv`` is a number of folds; the audit deals them itself.
    y : array-like of shape (n_samples,), optional
        Classes, two of them. Then the audit also says what a classifier makes of the scores, and
        what guesses the group from them.
    probes : bool, default=False
        Let classifiers guess the group from the scores, with or without y.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights. All averages are weighted; folds and resamples are of rows, whatever
        their weight. Rows of weight zero are left out.
    standardize : bool, default=True
        Divide columns by their standard deviation over all rows, as the paper does; within
        cross-validation, over the rows fitted to.
    ranks : sequence of int, optional
        Numbers of components for the curve of errors; by default all, or some thirty of them up to
        ``max(30, 2 * n_components)`` (eight when there are hundreds of features), as far as the
        estimator can go.
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
    ('male', 'worst-off group at its best')
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
    if isinstance(estimator, TargetedProjection) and estimator._needs_outcomes():
        raise ValueError(
            f"an audit compares projections that are fitted without a target, and {estimator!r} "
            "needs one; pass it to fairpca.metrics.classifier_outcomes(estimator, X, y, groups)."
        )
    settings = AuditSettings(
        standardize, ranks, n_points, n_folds, n_resamples, level, n_scores, random_state
    )
    rows = RowsInMemory(X, sensitive_features, sample_weight)
    if y is not None:
        codes, labels = encode_outcomes(y, as_rows(X).n_rows)
        if len(labels) != 2:
            raise ValueError(
                f"y must hold two classes, but holds {len(labels)}: {labels.tolist()[:5]}; pass "
                f"y == {labels.tolist()[-1]!r}, for example."
            )
        y = labels[codes]
    result = run_audit(rows, estimator, settings, y=y, probes=probes or y is not None)
    if result.influence is not None:
        _warn_of_few_rows(result, result.influence.pca)
    return result


def _warn_of_few_rows(result: Audit, found: RowInfluence) -> None:
    rounding = _ROUNDING * float(result.group_variances.max())
    if not found.sign_hangs_on_few or abs(found.disparity[0]) <= rounding:
        return
    n, listed = found.n_left_out(0.001), found.rows[:5].tolist()
    sides = result.harmed_group, result.privileged_group
    worse, other = sides if found.disparity[0] > 0 else reversed(sides)
    warn(
        f"the disparity hangs on very few rows: {worse!r} is worse off under PCA, but without "
        f"{n} of the {found.n_rows} rows {other!r} is. Look at the rows with the largest errors, "
        f"at the positions {listed}.",
        FewRowsWarning,
    )


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
                f"level={self.level}: pass a confidence level between 0 and 1, such as 0.95."
            )
        check_integer("n_folds", self.n_folds, 2)
        check_integer("n_scores", self.n_scores, 1)
        # Fewer resamples do not have a quantile at this level.
        check_integer("n_resamples", self.n_resamples, ceil(1 / (1 - self.level)))


def run_audit(
    rows: AuditedRows,
    estimator: FairProjection | None,
    settings: AuditSettings,
    progress: Progress = silent,
    y: Labels | None = None,
    probes: bool = False,
) -> Audit:
    """:func:`audit` of rows in memory or in files; y only with rows in memory."""
    rng = np.random.default_rng(settings.random_state)
    moments, scale = rows.moments, None
    if settings.standardize:
        moments, scale = moments.standardize()
    if not isinstance(estimator, FairProjection):
        estimator = recommended(estimator, rows.moments, settings.n_folds)
    by_fold = _choice_folds(rows, estimator, settings, rng, progress)
    progress("fitting")
    fits = fit_both(estimator, moments, by_fold)
    progress("following the trade-off")
    path = _trace_path(fits, settings.n_points)
    curve = rank_curve(moments, fits.fair, settings.ranks, progress, fits.settled)
    n_folds = _possible_folds(fits.settled, settings.n_folds, fits.fair.n_components_)
    judged = dict.fromkeys(("cross_validation", "bootstrap", "changes", "influence"))
    new = _new_rows(rows, fits, scale, n_folds, rng, progress) if n_folds else None
    if new is not None:
        judged = _judged(new, n_folds, settings, rng, progress)
    sample = rows.sample(fits.settled, settings.n_scores, rng, progress)
    fair, settled, R = fits.fair, fits.settled, fits.fair.pca_reconstruction_error_
    progress("probing the scores")
    how = settings.level, settings.random_state
    return Audit(
        estimator=repr(fair),
        n_components=fair.n_components_,
        standardized=settings.standardize,
        feature_names=rows.feature_names,
        groups=settled.moments.groups.tolist(),
        group_sizes=fair.group_sizes_.tolist(),
        group_variances=settled.operand.traces / fits.divisors,
        normalized=fair.normalize,
        weighted=rows.weighted,
        compared=settled.compared.tolist(),
        small_groups=settled.small,
        privileged_group=fair.privileged_group_,
        harmed_group=fair.harmed_group_,
        pca=fits.errors(fair.pca_group_errors_, R),
        fair=fits.errors(fair.group_errors_, fair.reconstruction_error_),
        cost=fair.reconstruction_error_ / R - 1.0 if R > 0 else 0.0,
        status=fair.status_,
        alpha=float(fair.alpha_),
        duality_gap=float(fair.duality_gap_),
        certified=isinstance(fair, FairPCA) and fair.solver == "exact",
        ranks=curve,
        path=path,
        loadings=Loadings(fits.pca.components_ * fits.signs[:, None], fair.components_),
        scores=_score_sample(fits, sample, scale),
        feature_errors=FeatureErrors(fits.feature_errors(fits.pca), fits.feature_errors(fair)),
        other_reading=other_reading(fits, new),
        **judged,
        representation=representation(fits, rows, scale, probes, *how),
        outcomes=None if y is None else outcomes(fits, rows, scale, y, *how),
        random_state=settings.random_state,
    )


def _choice_folds(
    rows: AuditedRows,
    estimator: FairProjection,
    settings: AuditSettings,
    rng: np.random.Generator,
    progress: Progress,
) -> GroupMoments | None:
    """Moments of folds for an estimator that chooses by cross-validation; None for others."""
    if not chooses_by_folds(estimator):
        return None
    cv: Any = getattr(estimator, "cv", None)
    if not isinstance(cv, Integral):
        raise ValueError(
            f"audit deals the folds itself and takes no splitter, got cv={cv}; pass how many there "
            "are, for example FairPCA(3, cv=10)."
        )
    by_fold = rows.by_fold(settle(estimator, rows.moments), int(cv), rng, progress)
    return by_fold.standardize()[0] if settings.standardize else by_fold


def _trace_path(fits: Fits, n_points: int) -> TradeoffPath:
    """The frontier at the rank of the audit; on held-out rows too where there are folds."""
    fair, by_fold = fits.fair, fits.settled.by_fold
    with quietly():
        return tradeoff_path(
            fair.moments_ if by_fold is None else by_fold,
            n_components=fair.n_components_,
            n_points=n_points,
            normalize=fair.normalize,
            cv=None if by_fold is None else getattr(fair, "cv", None),
            **small_group_parameters(fair),
        )


def _new_rows(
    rows: AuditedRows,
    fits: Fits,
    scale: Array | None,
    n_folds: int,
    rng: np.random.Generator,
    progress: Progress,
) -> NewRows:
    """Errors under projections fitted without the row."""
    whole = FoldFit.of([fits.pca, fits.fair], fits.pca.mean_, scale)
    estimators = clone(fits.pca), clone(fits.fair)
    held_out = rows.cross_fit(fits.settled, n_folds, estimators, whole, rng, progress)
    return NewRows(fits, held_out, fits.fair.normalize)


def _judged(
    new: NewRows,
    n_folds: int,
    settings: AuditSettings,
    rng: np.random.Generator,
    progress: Progress,
) -> dict[str, Any]:
    """The figures about new rows, by their names in :class:`Audit`."""
    how, intervals = Resampling(settings.level, settings.n_resamples, rng), []
    for method in (PCA, FAIR):
        progress("resampling", method / 3)
        intervals.append(new.disparity_interval(method, how))
    progress("resampling", 2 / 3)
    return {
        "cross_validation": CrossValidation(n_folds, new.errors(PCA), new.errors(FAIR)),
        "bootstrap": Bootstrap(settings.level, settings.n_resamples, *intervals),
        "changes": new.changes(how),
        "influence": new.influence(),
    }


def _possible_folds(settled: SettledGroups, n_folds: int, r: int) -> int:
    """As many folds as asked for and as the smallest group allows; 0 when that is not enough."""
    counts = settled.moments.counts
    folds = int(min(n_folds, *counts[settled.compared]))
    enough = folds >= 2 and sum(n - -(-n // folds) for n in counts) >= r
    return folds if enough else 0


def _score_sample(fits: Fits, sample: SampledRows, scale: Array | None) -> Scores:
    """Scores of sampled rows on the first two components."""
    X, pca, fair = sample.values / (1.0 if scale is None else scale), fits.pca, fits.fair
    return Scores(
        sample.rows,
        sample.codes,
        ((X - pca.mean_) @ pca.components_[:2].T) * fits.signs[:2],
        (X - fair.mean_) @ fair.components_[:2].T,
    )
