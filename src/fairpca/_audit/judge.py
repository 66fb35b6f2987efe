"""``fairpca.audit`` and ``fairpca.audit_model``: what PCA, or a model, does to the groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, get_tags

from fairpca._audit import annex
from fairpca._audit.cross_fit import (
    CrossFitted,
    Folds,
    People,
    Projection,
    cross_fit,
    dense,
    fit_pca,
    fit_quietly,
)
from fairpca._audit.group_results import Setup, group_results, loses_something, overall_figures
from fairpca._audit.record import Audit, ModelAudit, Provenance
from fairpca._audit.verdict import Thresholds, decide
from fairpca._cv.split import fold_rule
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV
from fairpca._input.checks import check_integer
from fairpca._input.folds import FoldRule
from fairpca._moments.group_moments import GroupMoments
from fairpca._progress import Progress, silent
from fairpca._typing import Array
from fairpca.metrics.projection import flattened, projection_of, seen_by_projection

# What the fits add to the variance of a gap, as a share of what the people make up. With it 95 %
# intervals held .93 to .98 in simulations (normal, lognormal, clusters; 160 + 40 to 1000 + 200
# rows), and .91 for 39 rows of lognormal features.
_REFIT = 0.25
_FOLDS = 10  # of plain PCA, beside a fitted model
_SAME = 1e-8  # of the variance of the scores: other rows differ by more
_FAR = 10.0  # standard deviations: no row like those fitted to lies further out


def audit(
    X: Any,
    sensitive_features: Any = None,
    estimator: Any = None,
    *,
    sample_weight: Any = None,
    y: Any = None,
    pos_label: Any = None,
    probes: bool = False,
    reference: Any = None,
    judge_from: int = 30,
    small_gap: float = 0.05,
    level: float = 0.95,
    n_folds: int = 10,
    ranks: Sequence[int] | None = None,
    n_points: int | None = None,
    random_state: int = 0,
    progress: Progress = silent,
) -> Audit:
    """Find out whether PCA short-changes a group, how sure that is, and what can be done.

    PCA and a fair version are fitted without a part of the rows and judged by that part, in turns.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features), or GroupMoments
        Moments must have been accumulated with ``folds=``. They have no figures about single
        people: no medians, no probes, no outcomes.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; several columns are crossed. Not with moments, which know it.
    estimator : estimator or pipeline, default=FairPCACV(0.7, standardize=True)
        Clones of it are fitted. The default keeps 70 % of the variance of each group.

        * An estimator of this library is the fair version that plain PCA with as many components
          is compared with. Its options hold for PCA too: with ``standardize=True`` both see
          standardised columns. With ``normalize=True`` the verdict is about shares of each group's
          own variation.
        * For scikit-learn's ``PCA`` the fair version is ``FairPCACV`` with as many components.
        * Of a pipeline, the last step of these kinds is meant. The steps before it are fitted
          without each fold; X may be a raw data frame.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in all averages. Rows of weight zero are left out.
    y : array-like of shape (n_samples,), optional
        Classes. Then the audit also says what classifiers make of the scores. :class:`FairPLS`, and
        :class:`BlindPCA` within classes, are fitted with it.
    pos_label : label, optional
        The class of y that counts as positive; by default the larger one.
    probes : bool, default=False
        Let classifiers guess the group from the scores, with or without y.
    reference : label, optional
        Compare every group with this one; by default with all people outside the group.
    judge_from : int, default=30
        Groups of fewer rows are listed but not judged.
    small_gap : float, default=0.05
        A reliable gap below is called small.
    level : float, default=0.95
        Confidence level of the intervals, of all judged groups together.
    n_folds : int, default=10
        Unless the estimator has a ``cv``; of a splitter that repeats itself, the first repeat.
    ranks : sequence of int, optional
        Numbers of components for the curve of errors; by default all, or some thirty of them.
    n_points : int, optional
        Points of the frontier; by default 41 for two groups and 9 for more, which take longer.
    random_state : int, default=0
        Another number gives other folds and samples; the same one gives the same audit.
    progress : callable, optional
        Called with what is being done and the fraction of it that is done.

    Returns
    -------
    Audit

    See Also
    --------
    audit_model : Judge a fitted model as it is.

    Examples
    --------
    >>> from fairpca import FairPCACV, audit
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> result = audit(people.data, people.sensitive_features, FairPCACV(5, standardize=True))
    >>> result.verdict.case.value, result.verdict.group
    ('a gap, and a remedy that reliably helps', '75 and older')
    >>> f"{result.group('75 and older').baseline.gap.value:+.0%}"
    '+33%'
    """
    thresholds = Thresholds(judge_from=judge_from, small_gap=small_gap, level=level)
    check_integer("n_folds", n_folds, 2)
    before, step = _taken_apart(estimator)
    progress("reading the rows")
    if isinstance(X, GroupMoments):
        folds = _folds_of_moments(X, sensitive_features, before)
    else:
        given = sensitive_features, sample_weight, y, pos_label
        folds = _folds_of_rows(X, *given, before, step, FoldRule(n_folds, random_state))
    progress("fitting")
    moments = folds.moments
    model = _alternative(step, folds)
    fair = fit_quietly(model, moments)
    rank, standardize = fair.n_components_, fair.standardize
    is_own = step is None or isinstance(step, FairProjection)
    origin = Provenance(
        judged=f"PCA(n_components={rank})" if is_own else _as_code(estimator),
        fitted_here=True,
        alternative=_as_code(model),
        n_rows=int(moments.counts.sum()),
        n_components=rank,
        feature_names=folds.feature_names,
        group_columns=folds.group_columns,
        standardized=standardize,
        weighted=sample_weight is not None,
        n_folds=moments.n_folds,
        reference=reference,
        thresholds=thresholds,
        random_state=random_state,
    )
    setup = Setup(folds, origin, fair.normalize, fair.small_groups_)
    is_pca = np.allclose(fair.group_errors_, fair.pca_group_errors_, rtol=1e-9, atol=0)
    chosen = annex.ranks_of_curve(ranks, rank, moments)
    crossed = cross_fit(folds, _refits(model, fair, folds, chosen, is_pca), _REFIT, progress)
    pca, own = Projection.of(fit_pca(moments, rank, standardize)), Projection.of(fair)
    opposite = (pca.components * own.components).sum(axis=1, keepdims=True) < 0
    both = pca._replace(components=np.where(opposite, -pca.components, pca.components)), own
    progress("looking at the scores")
    smaller = annex.for_fewer_rows(model, fair, setup)
    whole = smaller if before is None else Pipeline([*before.steps, ("projection", smaller)])
    how = {"probes": probes, "smaller": smaller, "is_pca": is_pca}
    results = _results(setup, crossed, both, whole, getattr(folds, "X", None), **how)
    progress("following the trade-off")
    return Audit(
        **results,
        fit=annex.fit_figures(both, fair, moments),
        ranks=annex.rank_curve(chosen, crossed, setup, results["verdict"].group),
        path=annex.frontier(fair, moments, n_points),
        rows=annex.sampled_scores(folds, both, setup) if isinstance(folds, People) else None,
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
    """Judge a fitted model as it is, beside plain PCA of the same rank, fitted to X in folds.

    Parameters
    ----------
    model : fitted projection or pipeline
        An estimator of this library, what :func:`~fairpca.load_model` returns, scikit-learn's
        ``PCA``, ``IncrementalPCA`` or ``TruncatedSVD``, or a pipeline with one of them.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Rows that the model has best not been fitted to, as the model takes them.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
    sample_weight, y, pos_label, probes, reference, judge_from, small_gap, level, random_state
        As for :func:`audit`.

    Returns
    -------
    ModelAudit

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from fairpca import audit_model
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 4)) * [4, 2, 1, 1]
    >>> sex = np.repeat(["f", "m"], [200, 400])
    >>> X[sex == "f"] = 0.8 * X[sex == "f"][:, ::-1]
    >>> result = audit_model(PCA(2).fit(X), X, sex)
    >>> result.verdict.case.value, result.verdict.group, result.on_rows_fitted_to
    ('a gap', 'm', True)
    """
    thresholds = Thresholds(judge_from=judge_from, small_gap=small_gap, level=level)
    projection, seen = seen_by_projection(model, X)
    own, rule = Projection(*projection_of(projection)), FoldRule(_FOLDS, random_state)
    people = People(seen, sensitive_features, sample_weight, y, pos_label, rule)
    (rank, d), given = own.components.shape, people.moments.n_features
    if given != d:
        raise ValueError(
            f"X has {given} features where the projection has {d}; pass the columns of its fit."
        )
    for names in (getattr(one, "feature_names_in_", None) for one in (model, projection)):
        if names is not None and len(names) == d:  # as the projection, or else the model knows them
            people.feature_names = [str(name) for name in names]
    steps = flattened(model)
    origin = Provenance(
        judged=_as_code(model),
        fitted_here=False,
        alternative=f"PCA(n_components={rank})",
        n_rows=len(people.codes),
        n_components=rank,
        feature_names=people.feature_names,
        group_columns=people.group_columns,
        standardized=any(isinstance(step, StandardScaler) for step in steps),
        weighted=sample_weight is not None,
        n_folds=0,
        reference=reference,
        thresholds=thresholds,
        random_state=random_state,
    )
    by_share = any(getattr(step, "normalize", False) is True for step in steps)
    setup = Setup(people, origin, by_share)

    def beside_pca(moments: GroupMoments) -> list[Projection]:
        pca = Projection.of(fit_pca(moments, rank))
        return [own, pca, pca]

    crossed = cross_fit(people, beside_pca, refit=0.0)  # the model is fixed
    both = own, Projection.of(fit_pca(people.moments, rank))
    in_use = model if hasattr(model, "transform") else model[:-1]  # without its classifier
    kept = crossed.distances - crossed.errors[0]
    X = _safe_indexing(X, people.positions)
    return ModelAudit(
        **_results(setup, crossed, both, in_use, X, probes=probes, remedy_tried=False),
        on_rows_fitted_to=sample_weight is None and _fitted_to(projection, kept),
        outside=_outside(projection, own.mean, dense(people.X)),
        column_errors=annex.column_errors(own, people.moments),
        loadings=own.components,
    )


def _results(
    setup: Setup,
    crossed: CrossFitted,
    both: Sequence[Projection],
    model: Any,
    X: Any,
    *,
    probes: bool,
    smaller: FairProjection | None = None,
    **how: bool,
) -> dict[str, Any]:
    """The fields that both kinds of audit have; ``model`` and X are for classifiers."""
    folds, thresholds = setup.folds, setup.origin.thresholds
    groups, columns, leakage, outcomes = group_results(crossed, setup), [], None, None
    if isinstance(folds, People):
        columns = annex.deciding_columns(folds, crossed.rows, crossed.errors[0], setup)
        probes = probes or folds.classes is not None
        leakage = annex.leakage(folds, both, setup, probes, smaller)
        outcomes = annex.outcomes(model, X, folds, setup)
    how |= {"nothing_compressed": not loses_something(crossed.folds)[0]}
    return {
        "verdict": decide(groups, columns, thresholds, by_share=setup.by_share, **how),
        "groups": groups,
        "overall": overall_figures(crossed.folds, thresholds.level),
        "columns": columns,
        "left_out": folds.left_out,
        "provenance": setup.origin,
        "leakage": leakage,
        "outcomes": outcomes,
    }


# -- what is audited -------------------------------------------------------------------------------


def _as_code(estimator: Any) -> str:
    return " ".join(repr(estimator).split())


def _taken_apart(estimator: Any) -> tuple[Pipeline | None, Any]:
    """The steps before the projection, and the projection: of fairpca, a PCA, or None."""
    step, before, kinds = estimator, None, FairProjection | PCA | IncrementalPCA
    if isinstance(estimator, type):
        name = estimator.__name__
        raise TypeError(f"{name} is a class; pass an object, for example {name}(3).")
    if isinstance(estimator, Pipeline):
        places = [i for i, (_, one) in enumerate(estimator.steps) if isinstance(one, kinds)]
        if not places:
            steps = ", ".join(type(one).__name__ for _, one in estimator.steps)
            raise TypeError(
                f"no step of the pipeline ({steps}) is an estimator of fairpca or scikit-learn's "
                "PCA; let one step be FairPCACV(3), for example."
            )
        step = estimator.steps[places[-1]][1]
        before = Pipeline(estimator.steps[: places[-1]]) if places[-1] else None
    if step is not None and not isinstance(step, kinds):
        raise TypeError(
            "audit takes an unfitted estimator of fairpca, scikit-learn's PCA, or a pipeline with "
            f"one of them, got {type(step).__name__}; pass FairPCACV(3), for example. To judge a "
            "fitted model as it is, call fairpca.audit_model(model, X, groups)."
        )
    return before, step


def _folds_of_rows(
    X: Any,
    groups: Any,
    weights: Any,
    y: Any,
    pos_label: Any,
    before: Any,
    step: Any,
    rule: FoldRule,
) -> People:
    """The folds of rows in memory: by the ``cv`` of the estimator if it has one."""
    needs_y = isinstance(step, FairProjection) and get_tags(step).target_tags.required
    if needs_y and y is None:
        raise ValueError(f"{step!r} needs y; pass fairpca.audit(X, groups, estimator, y=y).")
    cv = step.cv if isinstance(step, FairPCACV) else rule
    if isinstance(cv, Integral):
        cv = fold_rule(cv, rule.salt if step.random_state is None else step.random_state)
    return People(X, groups, weights, y, pos_label, cv, before, with_target=bool(needs_y))


def _folds_of_moments(moments: GroupMoments, groups: Any, before: Pipeline | None) -> Folds:
    """The folds by which moments are kept."""
    if groups is not None:
        raise ValueError("moments know their groups; pass audit(moments, estimator=...) without.")
    if before is not None:
        raise TypeError("a pipeline changes rows; pass its projection alone with moments.")
    if moments.n_folds < 2:
        raise ValueError(
            "an audit judges by rows that were left out, but these moments have no folds; make "
            "them with folds=10, for example GroupMoments.from_data(X, groups, folds=10)."
        )
    return Folds(moments, moments.feature_names)


def _alternative(step: Any, folds: Folds) -> FairProjection:
    """The fair version: the one that was passed, or the one that is recommended."""
    n_folds, sizes = folds.moments.n_folds, folds.moments.counts
    if isinstance(step, FairProjection):
        chosen: FairProjection = clone(step)
        return chosen.set_params(cv=n_folds) if isinstance(chosen, FairPCACV) else chosen
    rank: Any = 0.7 if step is None else step.n_components
    if step is not None and isinstance(folds, People):
        rank = int(clone(step).fit(dense(folds.values)).n_components_)
    elif step is not None and not isinstance(rank, Integral):
        raise ValueError("moments need PCA with a number of components, for example PCA(3).")
    how: dict[str, Any] = {"standardize": step is None}
    if (sizes >= n_folds).sum() < 2:  # too few rows to choose by cross-validation
        return FairPCA(rank, **how)
    if (sizes < n_folds).any():
        how |= {"min_group_size": n_folds, "small_groups": "ignore"}
    return FairPCACV(rank, cv=n_folds, **how)


def _refits(
    estimator: FairProjection,
    fair: FairProjection,
    folds: Folds,
    ranks: Sequence[int],
    is_pca: bool,
) -> Callable[[GroupMoments], list[Projection]]:
    """A function that fits PCA and the fair version without a fold, for each fold in order."""
    rank, chosen = fair.n_components_, None
    if isinstance(fair, FairPCACV) and not is_pca:
        chosen = fair.fold_components(folds.moments, [pair for pair, *_ in folds.own_spaces])

    def fit(moments: GroupMoments) -> list[Projection]:
        pca = fit_pca(moments, max([rank, *ranks]), fair.standardize)
        own = together = pca.components_[:rank]
        if chosen is not None:
            own, together = next(chosen)
        elif not is_pca:
            own = together = _components_without(moments, estimator, fair, own)
        kept = pca.components_[:rank], own, together, *(pca.components_[:r] for r in ranks)
        return [Projection(components, pca.mean_, pca.scale_) for components in kept]

    return fit


def _components_without(
    moments: GroupMoments, estimator: FairProjection, fair: FairProjection, pca: Array
) -> Array:
    """The components of the estimator without a fold, for the same rank and groups.

    A group that is large enough may be too small without the fold, so the limit is lowered.
    """
    sizes = zip(moments.groups.tolist(), moments.counts.tolist(), strict=True)
    compared = [size for label, size in sizes if label not in fair.small_groups_]
    if np.count_nonzero(compared) < 2:  # nobody is left to be fair to
        return pca
    options: dict[str, Any] = {"n_components": fair.n_components_}
    if hasattr(fair, "min_group_size"):
        options["min_group_size"] = max(min(compared), 1)
    return np.asarray(fit_quietly(estimator, moments, **options).components_)


# -- fitted models ---------------------------------------------------------------------------------


def _fitted_to(projection: Any, kept: Array) -> bool:
    """Whether the squared scores have exactly the mean that the variance in the fit gives them."""
    expected = getattr(projection, "explained_variance_", None)
    r, d = projection.components_.shape
    if expected is None or r == d:  # all standardised rows vary alike if nothing is lost
        return False
    total = float(np.sum(expected))
    return bool(abs(kept.sum() / max(len(kept) - 1, 1) - total) <= _SAME * total)


def _outside(projection: Any, mean: Array, X: Any) -> float | None:
    """Share of rows far from what the model was fitted to; None where that is not known."""
    along = getattr(projection, "explained_variance_", None)
    across = getattr(projection, "noise_variance_", None)
    if along is None or across is None:
        return None
    variances = (np.asarray(projection.components_).T ** 2) @ (np.asarray(along) - across) + across
    limit = _FAR * np.sqrt(np.maximum(variances, 0.0)) + 1e-9 * np.abs(mean)
    return float((np.abs(X - mean) > limit).any(axis=1).mean())


def model_from_loadings(names: Sequence[str], mean: Any, scale: Any, weights: Any) -> Pipeline:
    """A fitted pipeline from a table of loadings, for :func:`audit_model`.

    From each column its mean is subtracted, and it is divided by its scale. The weights have one
    column per component. They need not be orthonormal: loadings that were multiplied by deviations
    or rotated span the same space, and the space is what is judged.

    Examples
    --------
    >>> model = model_from_loadings(["a", "b"], [0, 1], [1, 2], [[3.0], [4.0]])
    >>> model[-1].components_
    array([[0.6, 0.8]])
    """
    mean, scale, weights = (np.asarray(values, np.float64) for values in (mean, scale, weights))
    d, r = len(names), weights.shape[-1]
    if mean.shape != (d,) or scale.shape != (d,) or weights.shape != (d, r):
        raise ValueError(
            f"a table of loadings has one mean, one scale and the weights of each of its {d} "
            f"columns, got shapes {mean.shape}, {scale.shape} and {weights.shape}."
        )
    if not (np.isfinite(mean).all() and np.isfinite(weights).all() and (scale > 0).all()):
        raise ValueError("means and weights must be finite numbers, and scales must be positive.")
    basis, triangle = np.linalg.qr(weights)
    sizes = np.diag(triangle)
    if r > d or np.abs(sizes).min() <= 1e-10 * np.abs(sizes).max():
        raise ValueError(
            f"the {r} columns of weights depend on each other; pass one column for each component, "
            "no two alike."
        )
    scaler, pca = StandardScaler(), PCA(n_components=r)
    scaler.mean_, scaler.scale_, scaler.var_ = mean, scale, scale**2
    scaler.n_features_in_ = pca.n_features_in_ = d
    scaler.feature_names_in_ = np.asarray(list(map(str, names)), object)
    pca.components_, pca.mean_, pca.n_components_ = (basis * np.sign(sizes)).T, np.zeros(d), r
    return Pipeline([("scale", scaler), ("pca", pca)])
