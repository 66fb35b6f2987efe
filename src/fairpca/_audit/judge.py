"""``fairpca.audit`` and ``fairpca.audit_model``: what PCA, or a model, does to the groups."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from fairpca._audit import figures
from fairpca._audit.any_model import (
    Rebuilt,
    is_projection,
    opened,
    projection_of,
    rows_to_judge,
    sums_of_stream,
)
from fairpca._audit.crossed import crossed
from fairpca._audit.people import Folds, People, folds_of, folds_of_stream, people
from fairpca._audit.record import Audit, KeptColumns, ModelAudit
from fairpca._audit.refits import (
    Judged,
    Refits,
    alternative_to,
    both_of,
    fit_pca,
    fit_quietly,
    for_part_of_rows,
    helped_in_other_folds,
    n_kept,
    taken_apart,
)
from fairpca._audit.scores import leakage, outcomes, sampled_scores, selected
from fairpca._audit.setup import Setup
from fairpca._audit.subgroups import columns_to_search
from fairpca._audit.verdict import Thresholds
from fairpca._cv.held_out import BASELINE, HeldOut
from fairpca._cv.split import fold_rule, needs_all_rows
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_columns import FairColumns
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV
from fairpca._input.folds import FoldRule
from fairpca._input.rows import dense
from fairpca._input.stream import Input, as_chosen, in_memory, open_input
from fairpca._linear_map import LinearMap, fitted_map, flattened
from fairpca._moments.group_moments import GroupMoments, Missing
from fairpca._progress import Progress, silent
from fairpca._typing import Array
from fairpca.metrics import Outcomes
from fairpca.metrics.reconstruction import refuse_data

# Refitting adds this share to the sampling variance of a gap. With it, 95 % intervals cover the
# truth in .94 to .99 of simulated data sets (benchmarks.audits).
_REFIT = 0.25
_FOLDS = 10  # for plain PCA, with which a fitted model is compared
_SAME = 1e-8  # If the scores' variance differs by less, these are the rows fitted to.
_SHARED = (
    "standardize",
    "relative_errors",
    "min_group_size",
    "small_groups",
    "crossing",
    "missing",
)
_FAR = 10.0  # Rows further out, in standard deviations, are unlike those fitted to.


def audit(
    estimator: Any,
    X: Any,
    sensitive_features: Any = None,
    *,
    sample_weight: Any = None,
    units: Any = None,
    y: Any = None,
    pos_label: Any = None,
    crossing: bool = True,
    probes: bool = False,
    reference: Any = None,
    judge_from: int = 30,
    missing: Missing = "error",
    subgroups: Any = None,
    small_gap: float = 0.05,
    level: float = 0.95,
    cv: Any = 10,
    ranks: Sequence[int] | None = None,
    n_points: int | None = None,
    random_state: int = 0,
    progress: Progress = silent,
) -> Audit:
    """Find out whether PCA describes a group worse, how sure that is, and what can be done.

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
    X : array, sparse matrix, data frame, stream or GroupMoments
        Streams, as in :meth:`FairPCA.fit`, are read once, and audited as their moments by fold:
        medians, probes and what else needs rows is not computed. Moments must be made with
        ``folds=``. Where columns have names, the arguments below may be such names.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; several columns are crossed. Moments already hold it.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in all averages. Rows of weight zero are left out.
    units : array-like of shape (n_samples,), optional
        Whose row each is, for people with several rows: they stay in one fold, intervals and shares
        count people, and so does ``judge_from``. By default every row is a unit by itself.
    y : array-like of shape (n_samples,), optional
        Classes, for classifiers on the scores and for estimators that need them.
    pos_label : label, optional
        The class of y that counts as positive; by default the larger one.
    crossing : bool, default=True
        Cross several columns of ``sensitive_features``. With False, or with an estimator that says
        so, each column has groups of its own, and each of these is compared with all people outside
        it. Such groups overlap, and intervals hold for all of them at once. Rows in memory are then
        held once for each column, and no classifiers are fitted.
    probes : bool, default=False
        Let classifiers guess the group from the scores; with y they always do.
    reference : label, optional
        Compare every other group with this one; by default each with all people outside it.
    judge_from : int, default=30
        Groups of fewer units are listed but not judged; those of fewer than ten never are.
    missing : {"error", "available"}, default="error"
        What NaN means, as in :class:`FairPCA`, which is told so. With ``"available"`` each row's
        error is the sum over the pairs of values that it has, weighted by how seldom its group has
        the pair: right on average over the group. Medians, shares of people who are better off and
        deciding columns are those of complete rows.
    subgroups : data frame with one row per row of X, or names of columns of X, optional
        Columns that may describe a subgroup that nobody named: the worst of all that one or two
        conditions on them give is in ``subgroup``, with how often chance finds one as bad. Columns
        that are features say less: extreme values are hard to describe.
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
    before, step = taken_apart(estimator)
    progress("reading the rows")
    described_by = columns_to_search(subgroups, X)
    opened = open_input(X, sensitive_features, sample_weight, y, units)
    opened = as_chosen(opened, missing, crossing and getattr(step, "crossing", True))
    folds = _folds(opened, pos_label, before, step, cv, random_state)
    progress("fitting")
    moments = folds.moments
    model = alternative_to(step, folds)
    if moments.has_missing:
        model.set_params(missing="available")
    fair: Any = fit_quietly(model, moments)
    both = both_of(fair, moments)
    rank = n_kept(fair)
    if isinstance(fair, FairColumns):
        usual_errors = fair.baseline_group_errors_
        ranks = [rank]
    else:
        usual_errors = fair.pca_group_errors_
    weighted = bool((moments.weights != moments.counts).any())
    shared = {k: v for k in _SHARED if (v := getattr(fair, k)) != getattr(FairPCA, k)}
    setup = Setup(
        folds,
        fair.relative_errors,
        fair.small_groups_,
        judged=_judged_as_text(estimator, step, fair),
        alternative=" ".join(repr(model).split()),
        n_components=rank,
        standardized=fair.standardize,
        weighted=sample_weight is not None or weighted,
        n_folds=len(moments.fold_sizes()),
        reference=reference,
        thresholds=thresholds,
        random_state=random_state,
        described_by=described_by,
        shared=shared,
    )
    is_pca = np.allclose(fair.group_errors_, usual_errors, rtol=1e-9, atol=0)
    curve = figures.ranks_of_curve(ranks, rank, moments)
    refits = Refits(model, fair, moments, curve, is_pca)
    errors = crossed(folds, refits.without, _REFIT, progress)
    progress("looking at the scores")
    smaller = for_part_of_rows(model, fair, int(setup.judged.sum()))
    progress("reading the figures otherwise")
    usual = None
    if not isinstance(fair, FairColumns):
        usual = refits.usual
    gain = figures.gain(errors, setup)
    again = helped_in_other_folds(model, fair, folds)
    results = figures.results(
        setup, errors, usual, both[0], is_pca=is_pca, gain=gain, helped_again=again
    )
    progress("following the trade-off")
    kept = None
    path = None
    by_class = None
    if isinstance(fair, FairColumns):
        kept = _kept_columns(fair, folds.feature_names)
    else:
        has_gap = bool(results["verdict"].worse)
        path = figures.frontier(fair, setup, n_points, has_gap, progress)
        by_class = _outcomes(setup, smaller, before)
    return Audit(
        **results,
        leakage=leakage(setup, both, probes, smaller),
        gain=gain,
        selected=selected(setup),
        outcomes=by_class,
        fit=figures.fit_figures(both, fair, moments),
        ranks=figures.rank_curve(curve, errors, setup),
        path=path,
        rows=sampled_scores(setup, both),
        kept=kept,
    )


def audit_model(
    model: Any,
    X: Any = None,
    sensitive_features: Any = None,
    *,
    sample_weight: Any = None,
    units: Any = None,
    y: Any = None,
    pos_label: Any = None,
    crossing: bool = True,
    probes: bool = False,
    reference: Any = None,
    judge_from: int = 30,
    missing: Missing = "error",
    subgroups: Any = None,
    small_gap: float = 0.05,
    level: float = 0.95,
    random_state: int = 0,
) -> ModelAudit:
    """Judge a fitted model as it is, next to cross-validated plain PCA.

    PCA has as many components as the model has scores. If these are not fewer than the columns, it
    has as many as lose about as much as the model.

    Parameters
    ----------
    model : fitted model, pipeline, or pair
        * An estimator of this library, what :func:`~fairpca.load_model` returns, or scikit-learn's
          ``PCA``, ``IncrementalPCA`` or ``TruncatedSVD``. ``FairColumns`` stands in no pipeline.
        * Any other model with ``transform`` and ``inverse_transform``, such as ``NMF``, ``FastICA``
          or ``KernelPCA(fit_inverse_transform=True)``.
        * ``FactorAnalysis`` or a ``FeatureUnion``, which have no ``inverse_transform``: rows are
          rebuilt from the scores by least squares, fitted without the fold of each row.
        * A pipeline whose last step, apart from scalers and a classifier, is one of these. Errors
          are measured in the units of the rows that arrive at that step.
        * A pair of functions, from rows to scores and from scores to rows.
        * The pair ``(X, rebuilt)`` of rows and what a model made of them, without another X.
    X : array, sparse matrix, data frame or stream of shape (n_samples, n_features)
        Rows as the model takes them, preferably not those it was fitted to. Of a stream, what needs
        rows is not computed, as for :func:`audit`.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
    sample_weight, units, y, pos_label, crossing, probes, reference, judge_from, missing
    subgroups, small_gap, level, random_state
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
    if not isinstance(model, tuple):
        refuse_data(model, "audit_model(model, X, sensitive_features)")
    thresholds = Thresholds(judge_from=judge_from, small_gap=small_gap, level=level)
    rows = rows_to_judge(model, X)
    described_by = columns_to_search(subgroups, rows)
    given = open_input(rows, sensitive_features, sample_weight, y, units)
    given = as_chosen(given, missing, crossing)
    folds = FoldRule(_FOLDS, random_state)
    known: Any = None
    if in_memory(given.X):
        if isinstance(model, FairColumns):
            model.transform(given.X)  # refuses other columns, and a model that is not fitted
        found = opened(model, given.X)
        judged: Folds = people(given._replace(X=found.seen), pos_label, folds)
    elif is_projection(model):
        fitted = fitted_map(model)
        found = projection_of(model, fitted, None)
        judged = folds_of_stream(given._replace(y=None), folds, fitted)
    else:
        found, known = sums_of_stream(model, given, folds)
        judged = folds_of(known.values, given)
    if found.own is None and isinstance(judged, People):
        if judged.observed is not None:
            raise ValueError(
                "missing='available' judges linear projections only, and this model is none; pass "
                "rows without missing values."
            )
        known = Rebuilt(found, judged)
    rank = known.rank_beside() if found.own is None else len(found.own.decode)
    for names in (getattr(one, "feature_names_in_", None) for one in (model, found.step)):
        if names is not None and len(names) == judged.moments.n_features:  # the step's win
            judged.feature_names = [str(name) for name in names]
    steps = flattened(model)
    by_share = any(getattr(step, "relative_errors", False) is True for step in steps)
    standardized = any(getattr(s, "standardize", isinstance(s, StandardScaler)) for s in steps)
    setup = Setup(
        judged,
        by_share,
        (),
        judged=found.text,
        alternative=f"PCA(n_components={rank})",
        n_components=rank,
        standardized=standardized,
        weighted=sample_weight is not None,
        n_folds=0,
        reference=reference,
        thresholds=thresholds,
        random_state=random_state,
        described_by=described_by,
    )

    def refit(fold: int, fit_to: GroupMoments) -> list[Any]:
        """The model, which is fixed, and PCA, with nothing to choose for a fold."""
        own: Any = found.own
        if known is not None:
            own = known.of_fold(fold)
        pca = fit_pca(fit_to, rank)
        return [own, pca, pca]

    errors = crossed(judged, refit, 0.0, silent)
    pca = fit_pca(judged.moments, rank)
    if known is not None:
        return ModelAudit(
            **figures.results(setup, errors, None, known),
            leakage=leakage(setup, (known, pca), probes),
            selected=selected(setup),
            outcomes=outcomes(setup, known.scores, known.values),
            on_rows_fitted_to=False,
            outside=None,
            column_errors=known.column_errors(),
            loadings=None,
        )
    own: Any = found.own
    same = _varies_as_in_fit(found.step, own, errors.folds)
    outside = None
    scores = None
    rows = None
    if isinstance(judged, People):
        rows = dense(judged.filled(np.arange(len(judged.codes))))
        scores = own.scores(rows)
        outside = _share_outside(found.step, own, rows)
    return ModelAudit(
        **figures.results(setup, errors, None, own, outside=outside),
        leakage=leakage(setup, (own, pca), probes),
        selected=selected(setup),
        outcomes=outcomes(setup, scores, rows),
        on_rows_fitted_to=sample_weight is None and same,
        outside=outside,
        column_errors=figures.column_errors(own, judged.moments),
        loadings=own.directions,
    )


def _outcomes(setup: Setup, model: Any, before: Pipeline | None) -> list[Outcomes] | None:
    """Rates of classifiers on the scores of a model that follows the steps before it."""
    people = setup.people
    if people is None:
        return None
    if before is None:
        return outcomes(setup, model, people.filled(np.arange(len(people.codes))))
    return outcomes(setup, Pipeline([*before.steps, ("projection", model)]), people.X)


def _judged_as_text(estimator: Any, step: Any, fair: Any) -> str:
    """What is judged, as code or in words."""
    if isinstance(fair, FairColumns):
        return f"the {n_kept(fair)} columns of least overall error"
    if step is None or isinstance(step, FairProjection):
        return f"PCA(n_components={n_kept(fair)})"
    return " ".join(repr(estimator).split())


def _kept_columns(fair: FairColumns, feature_names: Sequence[str]) -> KeptColumns:
    names = np.array(feature_names, object)
    usual = names[fair.baseline_columns_].tolist()
    return KeptColumns(usual, names[fair.columns_].tolist(), fair.lower_bound_)


def _folds(
    opened: Input, pos_label: Any, before: Pipeline | None, step: Any, cv: Any, random_state: int
) -> Folds:
    """Folds of moments, or of rows; the estimator's ``cv`` splits rows if it has one."""
    X = opened.X
    if not isinstance(X, GroupMoments):
        needs_y = isinstance(step, Judged) and get_tags(step).target_tags.required
        if needs_y and opened.y is None:
            raise ValueError(f"{step!r} needs y; pass fairpca.audit(estimator, X, groups, y=y).")
        seed: Any = random_state
        if isinstance(step, FairPCACV):
            cv = step.cv
            if step.random_state is not None:
                seed = step.random_state
        if isinstance(cv, Integral):
            cv = fold_rule(cv, seed)
        if in_memory(opened.X):
            return people(opened, pos_label, cv, before, with_y=bool(needs_y))
        if before is not None:
            raise TypeError(
                "the first steps of a pipeline are fitted to rows in memory, but X is read once; "
                "pass the projection alone, or the rows as a data frame."
            )
        if not isinstance(cv, FoldRule):
            raise needs_all_rows(cv)
        if not needs_y:
            opened = opened._replace(y=None)
        return folds_of_stream(opened, cv)
    if any(own is not None for own in opened[1:5]):
        raise ValueError(
            "moments hold their groups and weights and no rows; pass audit(estimator, moments) "
            "without sensitive_features, sample_weight, units and y."
        )
    if before is not None:
        raise TypeError("a pipeline changes rows; pass its projection alone with moments.")
    if X.n_folds < 2:
        raise ValueError(
            "an audit judges by rows that were left out, but these moments have no folds; make "
            "them with folds=10, for example GroupMoments.from_data(X, groups, folds=10)."
        )
    if not opened.crossing:
        X = X.by_attribute()
    return Folds(X, X.feature_names)


def _varies_as_in_fit(model: Any, own: LinearMap, held_out: HeldOut) -> bool:
    """Whether the scores vary exactly as in the fit."""
    along = getattr(model, "explained_variance_", None)
    r, d = own.decode.shape
    if along is None or r == d:  # any standardised rows would match
        return False
    total = float(np.sum(along))
    kept = float(held_out.variation.sum() - held_out.errors[:, BASELINE].sum())
    n = float(held_out.weights.sum())
    return abs(kept / max(n - 1, 1) - total) <= _SAME * total


def _share_outside(model: Any, own: LinearMap, X: Array) -> float | None:
    """The share of rows far from the mean of the fit, if the model knows its variances."""
    along = getattr(model, "explained_variance_", None)
    across = getattr(model, "noise_variance_", None)
    if along is None or across is None:
        return None
    variances = (own.directions.T**2) @ (np.asarray(along) - across) + across
    limit = _FAR * np.sqrt(np.maximum(variances, 0.0)) + 1e-9 * np.abs(own.mean)
    return float((np.abs(X - own.mean) > limit).any(axis=1).mean())
