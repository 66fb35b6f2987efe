"""``fairpca.audit`` and ``fairpca.audit_model``: what PCA, or a model, does to the groups."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, get_tags

from fairpca._audit import cross_fit, figures
from fairpca._audit.cross_fit import Folds, Judged, People, Subspace, fit_quietly
from fairpca._audit.record import Audit, KeptColumns, ModelAudit
from fairpca._audit.verdict import Thresholds
from fairpca._cv.split import fold_rule
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_columns import FairColumns
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV
from fairpca._input.checks import check_same_order
from fairpca._input.folds import FoldRule
from fairpca._input.rows import as_rows
from fairpca._moments.group_moments import GroupMoments
from fairpca._progress import Progress, silent
from fairpca._typing import Array
from fairpca.exceptions import warn
from fairpca.metrics.reconstruction import flattened, projection_of, refuse_data, seen_by_projection

# Refitting adds this share to the sampling variance of a gap. With it, 95 % intervals cover the
# truth in .94 to .99 of simulated data sets (benchmarks.audits).
_REFIT = 0.25
_FOLDS = 10  # for plain PCA, with which a fitted model is compared
_SAME = 1e-8  # If the scores' variance differs by less, these are the rows fitted to.
_SHARED = ("standardize", "relative_errors", "min_group_size", "small_groups")
_FEW_SUBSETS = 5000  # without each fold, all subsets of columns are tried up to this number
_FAR = 10.0  # Rows further out, in standard deviations, are unlike those fitted to.


def audit(
    estimator: Any,
    X: Any,
    sensitive_features: Any = None,
    *,
    sample_weight: Any = None,
    y: Any = None,
    pos_label: Any = None,
    probes: bool = False,
    reference: Any = None,
    judge_from: int = 30,
    small_gap: float = 0.05,
    level: float = 0.95,
    cv: Any = 10,
    ranks: Sequence[int] | None = None,
    n_points: int | None = None,
    random_state: int = 0,
    progress: Progress = silent,
) -> Audit:
    """Find out whether PCA short-changes a group, how sure that is, and what can be done.

    PCA and a fair version are fitted without each fold of the rows in turn and judged by that fold.
    To judge a fitted model as it is, call :func:`audit_model`.

    Parameters
    ----------
    estimator : estimator, pipeline or None
        It is cloned; a fitted one is fitted again, with a warning. None stands for
        ``FairPCACV(0.7, standardize=True)``, which keeps 70 % of the variance of each group.

        * An estimator of this library is the fair version, and PCA has as many components and the
          same ``standardize``. With ``relative_errors=True`` the verdict is about shares of each
          group's own variation.
        * ``FairColumns`` is judged beside the usual choice, the columns of least overall error.
          Without each fold, all subsets are tried only if there are at most 5,000.
        * For scikit-learn's ``PCA`` the fair version is ``FairPCACV`` with as many components.
        * In a pipeline, the last step of these kinds is used. The steps before it are fitted
          without each fold, with the groups if they need them; X may be a raw data frame.
    X : array, sparse matrix or data frame of shape (n_samples, n_features), or GroupMoments
        Moments must be made with ``folds=``; they give no medians, probes or outcomes.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; several columns are crossed. Moments already hold it.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in all averages. Rows of weight zero are left out.
    y : array-like of shape (n_samples,), optional
        Classes, for classifiers on the scores and for estimators that need them.
    pos_label : label, optional
        The class of y that counts as positive; by default the larger one.
    probes : bool, default=False
        Let classifiers guess the group from the scores; with y they always do.
    reference : label, optional
        Compare every other group with this one; by default each with all people outside it.
    judge_from : int, default=30
        Groups of fewer rows are listed but not judged.
    small_gap : float, default=0.05
        A reliable gap below this is called small.
    level : float, default=0.95
        Joint confidence level of the intervals of all judged groups.
    cv : int or splitter, default=10
        Folds, unless the estimator has a ``cv`` itself. Only the first repeat of a splitter is
        used.
    ranks : sequence of int, optional
        Numbers of components for the curve of errors; by default all, or at most about 30.
    n_points : int, optional
        Points of the frontier; by default 41 for two groups and 9 for more, which take longer.
    random_state : int, default=0
        Another number gives other folds and samples; the same one gives the same audit.
    progress : callable, optional
        Called with what is being done and the fraction of it that is done.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from fairpca import FairPCACV, audit
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> result = audit(FairPCACV(5, standardize=True), people.data, people.sensitive_features)
    >>> result.verdict.case.value, result.verdict.group
    ('a gap, and a remedy that reliably helps', '75 and older')
    >>> f"{result.group('75 and older').baseline.gap.value:+.0%}"
    '+33%'
    """
    thresholds = Thresholds(judge_from=judge_from, small_gap=small_gap, level=level)
    before, step = _taken_apart(estimator)
    progress("reading the rows")
    given = sensitive_features, sample_weight, y, pos_label
    folds = _folds(X, given, before, step, cv, random_state)
    progress("fitting")
    moments = folds.moments
    model = _alternative(step, folds)
    fair: Any = fit_quietly(model, moments)
    usual, own = Subspace.usual(fair, moments), Subspace.of(fair)
    opposite = (usual.components * own.components).sum(axis=1, keepdims=True) < 0
    both = usual._replace(components=np.where(opposite, -1, 1) * usual.components), own
    rank, columns, kept = len(own.components), isinstance(fair, FairColumns), None
    judged = f"PCA(n_components={rank})"
    if columns:
        judged = f"the {rank} columns of least overall error"
        names = np.array(folds.feature_names, object)
        usual_names, fair_names = names[fair.baseline_columns_], names[fair.columns_]
        kept = KeptColumns(usual_names.tolist(), fair_names.tolist(), fair.lower_bound_)
    elif step is not None and not isinstance(step, FairProjection):
        judged = " ".join(repr(estimator).split())
    setup = figures.Setup(
        folds,
        fair.relative_errors,
        fair.small_groups_,
        judged=judged,
        alternative=" ".join(repr(model).split()),
        n_components=rank,
        standardized=fair.standardize,
        weighted=sample_weight is not None or bool((moments.weights != moments.counts).any()),
        n_folds=len(moments._folds()),
        reference=reference,
        thresholds=thresholds,
        random_state=random_state,
        shared={k: v for k in _SHARED if (v := getattr(fair, k)) != getattr(FairPCA, k)},
    )
    errors = fair.baseline_group_errors_ if columns else fair.pca_group_errors_
    is_pca = np.allclose(fair.group_errors_, errors, rtol=1e-9, atol=0)
    curve = figures.ranks_of_curve([rank] if columns else ranks, rank, moments)
    crossed = cross_fit.measure(folds, _refits(model, fair, folds, curve, is_pca), _REFIT, progress)
    progress("looking at the scores")
    smaller = _for_fewer_rows(model, fair, int(setup.judged.sum()))
    whole = smaller if before is None else Pipeline([*before.steps, ("projection", smaller)])
    results = figures.results(setup, crossed, is_pca=is_pca)
    progress("following the trade-off")
    has_gap = bool(results["verdict"].worse)
    return Audit(
        **results,
        leakage=figures.leakage(setup, both, probes, smaller),
        outcomes=None if columns else figures.outcomes(setup, whole, getattr(folds, "X", None)),
        fit=figures.fit_figures(both, fair, moments),
        ranks=figures.rank_curve(curve, crossed, setup),
        path=None if columns else figures.frontier(fair, setup, n_points, has_gap),
        rows=figures.sampled_scores(setup, both),
        kept=kept,
    )


def audit_model(
    model: Any,
    X: Any,
    sensitive_features: Any = None,
    *,
    sample_weight: Any = None,
    y: Any = None,
    pos_label: Any = None,
    probes: bool = False,
    reference: Any = None,
    judge_from: int = 30,
    small_gap: float = 0.05,
    level: float = 0.95,
    random_state: int = 0,
) -> ModelAudit:
    """Judge a fitted model as it is, next to cross-validated plain PCA of the same rank.

    Parameters
    ----------
    model : fitted projection or pipeline
        An estimator of this library, what :func:`~fairpca.load_model` returns, scikit-learn's
        ``PCA``, ``IncrementalPCA`` or ``TruncatedSVD``, or a pipeline with one of them.
        ``FairColumns`` is taken as it is, without a pipeline.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Rows as the model takes them, preferably not those it was fitted to.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
    sample_weight, y, pos_label, probes, reference, judge_from, small_gap, level, random_state
        As for :func:`audit`.

    Returns
    -------
    ModelAudit

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from fairpca import audit_model
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> result = audit_model(PCA(5).fit(people.data), people.data, people.sensitive_features)
    >>> result.verdict.case.value, result.verdict.group, result.on_rows_fitted_to
    ('a gap', '75 and older', True)
    """
    refuse_data(model, "audit_model(model, X, sensitive_features)")
    thresholds = Thresholds(judge_from=judge_from, small_gap=small_gap, level=level)
    check_same_order(X, sensitive_features=sensitive_features, sample_weight=sample_weight, y=y)
    if isinstance(model, FairColumns):
        model.transform(X)  # refuses other columns, and a model that is not fitted
        projection, seen = model, cross_fit.dense(X) / model.scale_
        own = Subspace.of(model)._replace(mean=model.mean_ / model.scale_, scale=1.0)
    else:
        projection, seen = seen_by_projection(model, X)
        own = Subspace(*projection_of(projection, as_rows(seen).n_features))
    given = sensitive_features, sample_weight, y, pos_label
    people = People(seen, given, FoldRule(_FOLDS, random_state), None)
    rank, d = own.components.shape
    for names in (getattr(one, "feature_names_in_", None) for one in (model, projection)):
        if names is not None and len(names) == d:  # those of the projection win
            people.feature_names = [str(name) for name in names]
    steps = flattened(model)
    setup = figures.Setup(
        people,
        any(getattr(step, "relative_errors", False) is True for step in steps),
        (),
        judged=" ".join(repr(model).split()),
        alternative=f"PCA(n_components={rank})",
        n_components=rank,
        standardized=any(getattr(s, "standardize", isinstance(s, StandardScaler)) for s in steps),
        weighted=sample_weight is not None,
        n_folds=0,
        reference=reference,
        thresholds=thresholds,
        random_state=random_state,
    )

    # The model is fixed, and nothing is chosen: the alternative stands there twice.
    crossed = cross_fit.measure(
        people, lambda m: [own, *[cross_fit.fit_pca(m, rank)] * 2], 0.0, silent
    )
    both = own, cross_fit.fit_pca(people.moments, rank)
    in_use = model if hasattr(model, "transform") else model[:-1]  # without its classifier
    kept = crossed.distances - crossed.errors[0]
    same, outside = _beside_fit(projection, own, kept, cross_fit.dense(people.values))
    return ModelAudit(
        **figures.results(setup, crossed, remedy_tried=False, outside=outside),
        leakage=figures.leakage(setup, both, probes),
        outcomes=figures.outcomes(setup, in_use, _safe_indexing(X, people.positions)),
        on_rows_fitted_to=sample_weight is None and same,
        outside=outside,
        column_errors=figures.column_errors(own, people.moments),
        loadings=own.components,
    )


def _taken_apart(estimator: Any) -> tuple[Pipeline | None, Any]:
    """The steps before the projection, and the projection itself; None for the default."""
    if estimator is None:
        return None, None
    refuse_data(estimator, "audit(estimator, X, sensitive_features)")
    if isinstance(estimator, type):
        name = estimator.__name__
        raise TypeError(f"{name} is a class; pass an object, for example {name}(3).")
    steps = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
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
    if hasattr(steps[at][1], "components_"):
        warn(
            f"audit fits {type(steps[at][1]).__name__} again, without each part of the rows in "
            "turn; to judge the fitted one as it is, call fairpca.audit_model(model, X, groups).",
            UserWarning,
        )
    return Pipeline(steps[:at]) if at else None, steps[at][1]


def _folds(
    X: Any, given: Sequence[Any], before: Pipeline | None, step: Any, cv: Any, random_state: int
) -> Folds:
    """Folds of moments, or of rows; the estimator's ``cv`` splits rows if it has one."""
    if not isinstance(X, GroupMoments):
        needs_y = isinstance(step, Judged) and get_tags(step).target_tags.required
        if needs_y and given[2] is None:
            raise ValueError(f"{step!r} needs y; pass fairpca.audit(estimator, X, groups, y=y).")
        seed: Any = random_state
        if isinstance(step, FairPCACV):
            cv = step.cv
            seed = random_state if step.random_state is None else step.random_state
        if isinstance(cv, Integral):
            cv = fold_rule(cv, seed)
        return People(X, given, cv, before, with_y=bool(needs_y))
    if any(own is not None for own in given[:3]):
        raise ValueError(
            "moments hold their groups and weights and no rows; pass audit(estimator, moments) "
            "without sensitive_features, sample_weight and y."
        )
    if before is not None:
        raise TypeError("a pipeline changes rows; pass its projection alone with moments.")
    if X.n_folds < 2:
        raise ValueError(
            "an audit judges by rows that were left out, but these moments have no folds; make "
            "them with folds=10, for example GroupMoments.from_data(X, groups, folds=10)."
        )
    return Folds(X, X.feature_names)


def _alternative(step: Any, folds: Folds) -> Judged:
    """The fair version: the estimator that was passed, or the recommended one."""
    n_folds = folds.moments.n_folds
    if isinstance(step, Judged):
        chosen: Judged = clone(step)
        return chosen.set_params(cv=n_folds) if isinstance(chosen, FairPCACV) else chosen
    rank: Any = 0.7 if step is None else step.n_components
    if step is not None and isinstance(folds, People):
        rank = int(clone(step).fit(cross_fit.dense(folds.values)).n_components_)
    elif step is not None and not isinstance(rank, Integral):
        raise ValueError("moments need PCA with a number of components, for example PCA(3).")
    return for_sizes(FairPCACV(rank, cv=n_folds, standardize=step is None), folds.moments.counts)


def for_sizes(fair: FairPCACV, sizes: NDArray[np.int64]) -> FairPCA:
    """Adapt the estimator to group sizes: groups of fewer rows than folds cannot be compared."""
    how = fair.get_params()
    n_folds, seed = how.pop("cv"), how.pop("random_state")
    if how["small_groups"] != "error" or (sizes >= n_folds).all():
        return fair
    if (sizes >= n_folds).sum() < 2:  # too few rows to choose by cross-validation
        return FairPCA(**how)
    small = {"min_group_size": n_folds, "small_groups": "ignore"}
    return FairPCACV(cv=n_folds, random_state=seed, **how | small)


def _refits(
    estimator: Judged, fair: Any, folds: Folds, ranks: list[int], is_usual: bool
) -> Callable[[GroupMoments], list[Subspace]]:
    """A function that makes the usual and the fair choice without a fold, for each fold in order.

    If all rows lead to the usual choice (``is_usual``), every fold stays with it.
    """
    rank, chosen = len(Subspace.of(fair).components), None
    if isinstance(fair, FairPCACV) and not is_usual:
        chosen = fair.fold_components(folds.moments, [pair for pair, *_ in folds.own_spaces])

    def fit(moments: GroupMoments) -> list[Subspace]:
        sizes = zip(moments.groups.tolist(), moments.counts.tolist(), strict=True)
        compared = [size for label, size in sizes if label not in fair.small_groups_]
        alone = np.count_nonzero(compared) < 2
        # A group may be too small without the fold.
        options = {"n_components": rank, "min_group_size": max(min(compared), 1)}
        options["max_subsets"] = min(getattr(fair, "max_subsets", 0), _FEW_SUBSETS)
        if isinstance(fair, FairColumns):
            if alone:
                raise ValueError(
                    "without a fold only one group is left to choose columns for; pass fewer "
                    "folds, or min_group_size with small_groups='ignore'."
                )
            model = fit_quietly(estimator, moments, **options)
            usual = Subspace.usual(model, moments)
            own = usual if is_usual else Subspace.of(model)
            return [usual, own, own, *(usual for _ in ranks)]
        pca = cross_fit.fit_pca(moments, max([rank, *ranks]), fair.standardize)
        basis = together = pca.components[:rank]
        if chosen is not None:
            basis, together = next(chosen)
        elif not (is_usual or alone):
            basis = together = fit_quietly(estimator, moments, **options).components_
        kept = pca.components[:rank], basis, together, *(pca.components[:r] for r in ranks)
        return [pca._replace(components=components) for components in kept]

    return fit


def _for_fewer_rows(estimator: Judged, fair: Any, n_judged: int) -> Any:
    """The estimator at the same rank, for a part of the rows of judged groups."""
    rank = len(Subspace.of(fair).components)
    if isinstance(fair, FairPCACV):
        how: dict[str, Any] = {
            "standardize": fair.standardize,
            "relative_errors": fair.relative_errors,
        }
        # Keep the weight that folds chose for two groups: fewer rows might choose PCA.
        if n_judged == 2 and np.isfinite(fair.alpha_):
            return FairPCA(rank, alpha=fair.alpha_, **how)
        return FairPCACV(rank, cv=figures.FEWEST_FOLDS, constraint=fair.constraint, **how)
    return cross_fit.with_known(estimator, n_components=rank, min_group_size=1)


def _beside_fit(model: Any, own: Subspace, kept: Array, X: Array) -> tuple[bool, float | None]:
    """Whether the scores vary as in the fit, and the share of rows far from it, if known."""
    along = getattr(model, "explained_variance_", None)
    across = getattr(model, "noise_variance_", None)
    (r, d), same = own.components.shape, False
    if along is not None and r < d:  # otherwise any standardised rows would match
        total = float(np.sum(along))
        same = bool(abs(kept.sum() / max(len(kept) - 1, 1) - total) <= _SAME * total)
    if along is None or across is None:
        return same, None
    variances = (own.components.T**2) @ (np.asarray(along) - across) + across
    limit = _FAR * np.sqrt(np.maximum(variances, 0.0)) + 1e-9 * np.abs(own.mean)
    return same, float((np.abs(X - own.mean) > limit).any(axis=1).mean())
