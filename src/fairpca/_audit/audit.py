"""``fairpca.audit``: what PCA does to the groups, and what fair PCA changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from fairpca._audit.figures import RowInfluence
from fairpca._audit.in_memory import RowsInMemory
from fairpca._audit.model import ModelAudit, audit_model, is_fitted_projection
from fairpca._audit.representation import outcome_classes, with_scores
from fairpca._audit.result import Audit
from fairpca._audit.run import AuditSettings, run_audit
from fairpca._estimators.base import FairProjection
from fairpca._input.identifiers import identifiers_among
from fairpca._input.rows import as_rows
from fairpca.exceptions import FewRowsWarning, warn

_ROUNDING = 1e-9  # of the largest variance: a smaller disparity is that of nothing lost


@overload
def audit(
    X: Any,
    sensitive_features: Any = ...,
    estimator: FairProjection | None = ...,
    *,
    y: Any = ...,
    pos_label: Any = ...,
    probes: bool = ...,
    impute: Literal["median"] | None = ...,
    sample_weight: Any = ...,
    standardize: bool = ...,
    ranks: Sequence[int] | None = ...,
    n_points: int = ...,
    n_folds: int = ...,
    n_resamples: int = ...,
    level: float = ...,
    n_scores: int = ...,
    random_state: int = ...,
) -> Audit: ...
@overload
def audit(
    X: Any,
    sensitive_features: Any,
    estimator: Any,
    *,
    y: Any = ...,
    pos_label: Any = ...,
    probes: bool = ...,
    sample_weight: Any = ...,
    level: float = ...,
    random_state: int = ...,
) -> ModelAudit: ...
def audit(
    X: Any,
    sensitive_features: Any = None,
    estimator: Any = None,
    *,
    y: Any = None,
    pos_label: Any = None,
    probes: bool = False,
    impute: Literal["median"] | None = None,
    sample_weight: Any = None,
    standardize: bool = True,
    ranks: Sequence[int] | None = None,
    n_points: int = 41,
    n_folds: int = 10,
    n_resamples: int = 2000,
    level: float = 0.95,
    n_scores: int = 600,
    random_state: int = 0,
) -> Audit | ModelAudit:
    """Compare plain PCA with a fair projection, group by group, or judge a fitted model as it is.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Data that are not sparse are copied once, as float64. Columns of a data frame that look like
        row numbers or ids are used, with a warning.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; several columns are crossed.
    estimator : FairPCA or other estimator of this library, optional
        It is not modified; clones of it are fitted. Its ``normalize``, ``min_group_size`` and
        ``small_groups`` hold for the whole audit: all errors are then relative, and small groups
        are merged or left out of all comparisons. By default ``FairPCA(n_components=0.7, cv=10)``:
        as many components as keep 70 % of each group's variance, and as much fairness as helps rows
        that were not fitted to. The folds by which it chooses, its ``cv`` and ``random_state``, are
        those of all figures about new rows.
        A *fitted* model is judged as it is, on the rows given, which need not be those it was
        fitted to: one of these estimators, what :func:`~fairpca.load_model` returns, scikit-learn's
        ``PCA``, ``IncrementalPCA`` or ``TruncatedSVD``, or a pipeline with one of them. Only ``y``,
        ``pos_label``, ``probes``, ``sample_weight``, ``level`` and ``random_state`` matter then.
    y : array-like of shape (n_samples,), optional
        Classes; of more than two, ``pos_label`` says which one counts. Then the audit also says
        what a classifier makes of the scores, and what guesses the group from them.
        :class:`FairPLS`, and :class:`BlindPCA` within classes, are fitted with it.
    pos_label : label, optional
        The class of y that counts as positive, that is as being selected; by default the larger
        one.
    probes : bool, default=False
        Let classifiers guess the group from the scores, with or without y.
    impute : {"median"}, optional
        Fill in missing numbers (NaN) with the median of their column; for the errors of held-out
        rows, with the median of the rows fitted to. By default they are an error. A value that was
        filled in is easy to reconstruct, so a group with many of them looks better off than it is.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights. All averages of errors are weighted; folds, resamples, probes and
        classifiers are of rows, whatever their weight. Rows of weight zero are left out.
    standardize : bool, default=True
        Divide columns by their standard deviation over all rows, as the paper does; within
        cross-validation, over the rows fitted to. Estimators by themselves do not do that: put a
        ``StandardScaler`` before them to fit what was audited.
    ranks : sequence of int, optional
        Numbers of components for the curve of errors; by default all, or some thirty of them up to
        ``max(30, 2 * n_components)`` (eight when there are hundreds of features), as far as the
        estimator can go.
    n_points : int, default=41
        Points of the trade-off path.
    n_folds : int, default=10
        Folds of the cross-validation, of an estimator that has no ``cv`` of its own; fewer when a
        group has fewer rows.
    n_resamples : int, default=2000
        Resamples of the bootstrap, at least ``1 / (1 - level)``.
    level : float, default=0.95
        Confidence level of the intervals.
    n_scores : int, default=600
        Most rows in the sample of scores.
    random_state : int, default=0
        Seed; the same seed gives the same audit. It also deals the folds, unless the estimator has
        a ``random_state``.

    Returns
    -------
    Audit or ModelAudit
        The latter for a fitted model.

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

    A model that is in use already:

    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> model = make_pipeline(StandardScaler(), PCA(3)).fit(diabetes.data)
    >>> audit(diabetes.data, diabetes.sensitive_features, model).harmed_group
    'male'
    """
    if sensitive_features is None:
        raise TypeError(
            "sensitive_features is missing: pass fairpca.audit(X, sensitive_features=groups) with "
            "one group label per row."
        )
    settings = AuditSettings(
        standardize, ranks, n_points, n_folds, n_resamples, level, n_scores, random_state
    )
    if impute not in (None, "median"):
        raise ValueError(f"impute={impute!r} is not known; pass 'median', or None.")
    if is_fitted_projection(estimator):
        if impute is not None:
            raise ValueError(
                "impute is for estimators that the audit fits; a fitted model is judged as it is. "
                "Pass X without missing values, or a pipeline that starts with a SimpleImputer."
            )
        judged = audit_model(estimator, X, sensitive_features, sample_weight, settings.level)
        given = sample_weight, y, pos_label, probes, random_state
        return with_scores(judged, estimator, X, sensitive_features, *given)
    _warn_of_identifiers(X)
    y = None if y is None else outcome_classes(y, as_rows(X).n_rows, pos_label)
    needs_y = isinstance(estimator, FairProjection) and estimator._needs_outcomes()
    if needs_y and y is None:
        raise ValueError(
            f"{estimator!r} needs y; pass fairpca.audit(X, groups, estimator, y=y) with classes."
        )
    target = y if needs_y else None
    rows = RowsInMemory(X, sensitive_features, sample_weight, target, impute is not None)
    result = run_audit(
        rows, estimator, settings, y=y, pos_label=pos_label, probes=probes or y is not None
    )
    if result.influence is not None:
        _warn_of_few_rows(result, result.influence.pca)
    return result


def _warn_of_identifiers(X: Any) -> None:
    ids = identifiers_among(as_rows(X))
    if ids:
        warn(
            f"columns {ids} of X are features, but look like row numbers or ids; pass X without "
            f"them, for example X.drop(columns={ids}), or leave it so if they are measurements.",
            UserWarning,
        )


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
