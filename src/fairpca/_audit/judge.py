"""``fairpca.audit``: what PCA does to the groups, and what a fair version changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from fairpca._audit import annex
from fairpca._audit.cross_fit import (
    AuditFold,
    Folds,
    People,
    Projection,
    cross_fit,
    dense,
    fit_pca,
    fit_quietly,
)
from fairpca._audit.group_results import Setup, group_results, loses_something, overall_figures
from fairpca._audit.record import Audit, Provenance
from fairpca._audit.verdict import Thresholds, decide
from fairpca._cv.split import fold_numbers, fold_rule
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV
from fairpca._input.checks import check_integer
from fairpca._input.folds import FoldRule
from fairpca._moments.group_moments import GroupMoments
from fairpca._progress import Progress, silent
from fairpca._typing import Array

# What the fits add to the variance of a gap, as a share of what the people make up. With it 95 %
# intervals held .93 to .98 in simulations (normal, lognormal, clusters; 160 + 40 to 1000 + 200
# rows), and .91 for 39 rows of lognormal features.
_REFIT = 0.25


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
    estimator : estimator or pipeline, optional
        It is not modified; clones of it are fitted.

        * An estimator of this library is the fair version that plain PCA with as many components
          is compared with. Its options hold for PCA too: with ``standardize=True`` both see
          standardised columns. With ``normalize=True`` the verdict is about shares of each group's
          own variation.
        * For scikit-learn's ``PCA`` the fair version is ``FairPCACV`` with as many components.
        * Of a pipeline, the last step of these kinds is meant. The steps before it are fitted
          without each fold; X may be a raw data frame.

        By default ``FairPCACV(0.7, standardize=True)``: as many components as keep 70 % of each
        group's variance.
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
        Number of folds, unless the estimator has a ``cv`` of its own. Of a splitter that repeats
        itself, the first repeat is used.
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
    plan = _Plan.of(estimator)
    progress("reading the rows")
    if isinstance(X, GroupMoments):
        folds = plan.folds_of_moments(X, sensitive_features)
    else:
        given = sensitive_features, sample_weight, y, pos_label
        folds = plan.folds_of_rows(X, *given, FoldRule(n_folds, random_state))
    progress("fitting")
    moments, people, values = folds.moments, folds.people, folds.values
    model = plan.alternative(folds)
    fair = fit_quietly(model, moments)
    pca, rank = fit_pca(moments, fair.n_components_, fair.standardize), fair.n_components_
    origin = Provenance(
        judged=plan.judged or f"PCA(n_components={rank})",
        fitted_here=True,
        alternative=" ".join(repr(model).split()),
        n_rows=int(moments.counts.sum()),
        n_components=rank,
        feature_names=folds.feature_names,
        group_columns=[] if people is None else people.group_columns,
        standardized=fair.standardize,
        weighted=sample_weight is not None,
        n_folds=moments.n_folds,
        reference=reference,
        thresholds=thresholds,
        random_state=random_state,
    )
    setup = Setup(
        moments.groups.tolist(), moments.counts, origin, fair.normalize, fair.small_groups_
    )
    is_pca = np.allclose(fair.group_errors_, fair.pca_group_errors_, rtol=1e-9, atol=0)
    chosen = annex.ranks_of_curve(ranks, rank, moments)
    crossed = cross_fit(folds, _refits(model, fair, folds, chosen, is_pca), _REFIT, progress)
    groups = group_results(crossed, setup)
    opposite = (pca.components_ * fair.components_).sum(axis=1, keepdims=True) < 0
    aligned = np.where(opposite, -pca.components_, pca.components_)
    both = Projection(aligned, pca.mean_, pca.scale_), Projection.of(fair)
    columns, leakage, outcomes, rows = [], None, None, None
    if people is not None:
        progress("looking at the scores")
        columns = annex.deciding_columns(values, folds.feature_names, crossed.rows, setup)
        smaller = annex.for_fewer_rows(model, fair, setup)
        leakage = annex.leakage(
            people,
            values,
            both,
            setup,
            probes or y is not None,
            lambda rows: annex.refitted(people, values, rows, smaller, fair),
        )
        whole = smaller
        if people.before is not None:
            whole = Pipeline([*people.before.steps, ("projection", smaller)])
        outcomes = annex.outcomes(whole, people.X, people, setup)
        rows = annex.sampled_scores(people, values, both, setup)
    verdict = decide(
        groups,
        columns,
        thresholds,
        nothing_compressed=not loses_something(crossed.folds)[0],
        by_share=fair.normalize,
        is_pca=is_pca,
    )
    progress("following the trade-off")
    return Audit(
        verdict=verdict,
        groups=groups,
        overall=overall_figures(crossed.folds, level),
        columns=columns,
        left_out=[] if people is None else people.left_out,
        provenance=origin,
        leakage=leakage,
        outcomes=outcomes,
        fit=annex.fit_figures(both, fair, moments),
        ranks=annex.rank_curve(chosen, crossed, setup, verdict.group),
        path=annex.frontier(fair, moments, n_points),
        rows=rows,
    )


@dataclass(frozen=True)
class _Plan:
    """The parts of the estimator: steps before the projection, and a fair version or a PCA."""

    before: Pipeline | None = None
    estimator: FairProjection | None = None
    pca: Any = None
    judged: str = ""  # the PCA or its pipeline, as code

    @classmethod
    def of(cls, estimator: Any) -> _Plan:
        """Take a pipeline apart, and refuse what cannot be audited."""
        step, before, kinds = estimator, None, FairProjection | PCA | IncrementalPCA
        if isinstance(estimator, type):
            name = estimator.__name__
            raise TypeError(f"{name} is a class; pass an object, for example {name}(3).")
        if isinstance(estimator, Pipeline):
            places = [i for i, (_, one) in enumerate(estimator.steps) if isinstance(one, kinds)]
            if not places:
                steps = ", ".join(type(one).__name__ for _, one in estimator.steps)
                raise TypeError(
                    f"no step of the pipeline ({steps}) is an estimator of fairpca or "
                    "scikit-learn's PCA; let one step be FairPCACV(3), for example."
                )
            step = estimator.steps[places[-1]][1]
            before = Pipeline(estimator.steps[: places[-1]]) if places[-1] else None
        if isinstance(step, FairProjection) or step is None:
            return cls(before, step)
        if not isinstance(step, kinds):
            raise TypeError(
                "audit takes an unfitted estimator of fairpca, scikit-learn's PCA, or a pipeline "
                f"with one of them, got {type(step).__name__}; pass FairPCACV(3), for example. To "
                "judge a fitted model as it is, call fairpca.audit_model(model, X, groups)."
            )
        return cls(before, None, step, " ".join(repr(estimator).split()))

    def folds_of_rows(
        self, X: Any, groups: Any, sample_weight: Any, y: Any, pos_label: Any, rule: FoldRule
    ) -> Folds:
        """The folds of rows in memory: by the ``cv`` of the estimator if it has one."""
        if groups is None:
            raise TypeError(
                "sensitive_features is missing: pass fairpca.audit(X, sensitive_features=groups) "
                "with one group label per row."
            )
        needs_y = self.estimator is not None and get_tags(self.estimator).target_tags.required
        if needs_y and y is None:
            raise ValueError(
                f"{self.estimator!r} needs y; pass fairpca.audit(X, groups, estimator, y=y)."
            )
        given = groups, sample_weight, y, pos_label
        people = People(X, *given, self.before, with_target=bool(needs_y))
        if isinstance(self.estimator, FairPCACV):
            cv, salt = self.estimator.cv, self.estimator.random_state
            if not isinstance(cv, Integral):
                return Folds(people, next(fold_numbers(cv, people.codes)))
            rule = fold_rule(cv, rule.salt if salt is None else salt)
        return Folds(people, rule)

    def folds_of_moments(self, moments: GroupMoments, groups: Any) -> Folds:
        """The folds by which moments are kept."""
        if groups is not None:
            raise ValueError(
                "moments know their groups; pass audit(moments, estimator=...) without."
            )
        if self.before is not None:
            raise TypeError("a pipeline changes rows; pass its projection alone with moments.")
        if moments.n_folds < 2:
            raise ValueError(
                "an audit judges by rows that were left out, but these moments have no folds; make "
                "them with folds=10, for example GroupMoments.from_data(X, groups, folds=10)."
            )
        return Folds(moments)

    def alternative(self, folds: Folds) -> FairProjection:
        """The fair version: the one that was passed, or the one that is recommended."""
        n_folds, sizes = folds.moments.n_folds, folds.moments.counts
        if self.estimator is not None:
            chosen: FairProjection = clone(self.estimator)
            return chosen.set_params(cv=n_folds) if isinstance(chosen, FairPCACV) else chosen
        rank: Any = 0.7
        if self.pca is not None and folds.people is not None:
            rank = int(clone(self.pca).fit(dense(folds.values)).n_components_)
        elif self.pca is not None:
            rank = self.pca.n_components
            if not isinstance(rank, Integral):
                raise ValueError(
                    "moments need PCA with a number of components, for example PCA(3)."
                )
        standardize = self.pca is None
        if (sizes >= n_folds).sum() < 2:  # too few rows to choose by cross-validation
            return FairPCA(rank, standardize=standardize)
        small: dict[str, Any] = {}
        if (sizes < n_folds).any():
            small = {"min_group_size": n_folds, "small_groups": "ignore"}
        return FairPCACV(rank, cv=n_folds, standardize=standardize, **small)


def _refits(
    estimator: FairProjection,
    fair: FairProjection,
    folds: Folds,
    ranks: Sequence[int],
    is_pca: bool,
) -> Callable[[AuditFold], list[Projection]]:
    """A function that fits PCA and the fair version without a fold, for each fold in order."""
    rank, chosen = fair.n_components_, None
    if isinstance(fair, FairPCACV) and not is_pca:
        pairs = [(fold.fit_to, fold.judge) for fold in folds.own_spaces]
        chosen = fair.fold_components(folds.moments, pairs)

    def fit(fold: AuditFold) -> list[Projection]:
        pca = fit_pca(fold.fit_to, max([rank, *ranks]), fair.standardize)
        own = together = pca.components_[:rank]
        if chosen is not None:
            own, together = next(chosen)
        elif not is_pca:
            own = together = _components_without(fold.fit_to, estimator, fair, own)
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
