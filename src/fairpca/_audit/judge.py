"""``fairpca.audit``: what PCA does to the groups, and what a fair version changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags

from fairpca._audit.annex import (
    fit_figures,
    frontier,
    look_at_columns,
    rank_curve,
    ranks_of_curve,
    sampled_rows,
)
from fairpca._audit.cross_fit import (
    MomentsByFold,
    People,
    RowsByFold,
    cross_fit,
    dense,
    fit_pca,
    fit_quietly,
)
from fairpca._audit.group_results import (
    Comparison,
    group_results,
    loses_nothing,
    overall_figures,
)
from fairpca._audit.record import Audit, Provenance
from fairpca._audit.scores import leakage, outcomes
from fairpca._audit.verdict import Thresholds, decide
from fairpca._cv.split import fold_numbers, fold_rule
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV
from fairpca._input.checks import check_integer
from fairpca._input.folds import FoldRule
from fairpca._input.rows import as_rows
from fairpca._moments.group_moments import GroupMoments
from fairpca._progress import Progress, silent
from fairpca._typing import Codes


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
    n_scores: int = 600,
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
        Non-negative weights. All averages are weighted; numbers of rows are not. Rows of weight
        zero are left out.
    y : array-like of shape (n_samples,), optional
        Classes. Then the audit also says what a classifier makes of the scores, and what guesses
        the group from them. :class:`FairPLS`, and :class:`BlindPCA` within classes, are fitted
        with it.
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
    n_scores : int, default=600
        Most people in the sample of scores.
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
    check_integer("n_scores", n_scores, 1)
    plan = _Plan.of(estimator)
    progress("reading the rows")
    folds: MomentsByFold
    if isinstance(X, GroupMoments):
        folds, people = _moments_by_fold(X, sensitive_features, plan), None
    else:
        people = _people(X, sensitive_features, plan, sample_weight, y, pos_label)
        folds = RowsByFold(people, plan.folds(people, n_folds, random_state))
    progress("fitting")
    model = plan.alternative(folds)
    fair = fit_quietly(model, folds.moments)
    pca, rank = fit_pca(folds.moments, fair.n_components_, fair.standardize), fair.n_components_
    comparison = Comparison.of(
        folds.moments.groups.tolist(),
        folds.moments.counts,
        [] if people is None else people.group_columns,
        reference,
        thresholds,
        fair.normalize,
        fair.small_groups_,
    )
    is_pca = np.allclose(fair.group_errors_, fair.pca_group_errors_, rtol=1e-9, atol=0)
    chosen = ranks_of_curve(ranks, rank, folds.moments)
    crossed = cross_fit(folds, model, fair, chosen, is_pca, progress)
    pair = crossed.pair(crossed.folds)
    groups = group_results(crossed.pair(crossed.parts), comparison, crossed.rows, pair)
    columns, scored, sampled, rated = [], None, None, None
    if isinstance(folds, RowsByFold) and crossed.rows is not None:
        progress("looking at the scores")
        how, both = (comparison, random_state), (pca, fair)
        values = _safe_indexing(folds.values, crossed.judged)
        columns = look_at_columns(values, folds.feature_names, crossed.rows, comparison)
        scored = leakage(folds, both, model, probes or y is not None, *how)
        rated = outcomes(folds, model, fair, pos_label, *how)
        sampled = sampled_rows(folds, crossed, both, n_scores, *how)
    verdict = decide(
        groups,
        columns,
        thresholds,
        nothing_compressed=loses_nothing(pair),
        by_share=fair.normalize,
        is_pca=is_pca,
    )
    progress("following the trade-off")
    return Audit(
        verdict=verdict,
        groups=groups,
        overall=overall_figures(pair, level),
        columns=columns,
        left_out=[] if people is None else people.left_out,
        provenance=Provenance(
            judged=plan.judged or f"PCA(n_components={rank})",
            fitted_here=True,
            alternative=" ".join(repr(model).split()),
            parameters=model.get_params(),
            n_rows=int(folds.moments.counts.sum()),
            n_components=rank,
            feature_names=folds.feature_names,
            group_columns=comparison.columns,
            standardized=fair.standardize,
            normalized=fair.normalize,
            weighted=sample_weight is not None,
            n_folds=pair.n_folds,
            reference=reference,
            thresholds=thresholds,
            random_state=random_state,
        ),
        leakage=scored,
        outcomes=rated,
        fit=fit_figures(pca, fair, folds.moments),
        ranks=rank_curve(crossed, comparison, verdict.group),
        path=frontier(fair, folds, n_points),
        rows=sampled,
    )


@dataclass(frozen=True)
class _Plan:
    """What is to be fitted: steps before the projection, and a fair version or a PCA."""

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

    def folds(self, people: People, n_folds: int, random_state: int) -> Codes:
        """The fold of each row: by the ``cv`` of the estimator if it has one."""
        rule = FoldRule(n_folds, random_state)
        if isinstance(self.estimator, FairPCACV):
            cv, given = self.estimator.cv, self.estimator.random_state
            if not isinstance(cv, Integral):
                return next(fold_numbers(cv, people.codes))
            rule = fold_rule(cv, random_state if given is None else given)
        return rule.folds_of(people.codes, np.zeros(len(people.labels), np.intp))

    def alternative(self, folds: MomentsByFold) -> FairProjection:
        """The fair version: the one that was passed, or the one that is recommended."""
        n_folds, sizes = folds.n_folds, folds.moments.counts
        if self.estimator is not None:
            chosen: FairProjection = clone(self.estimator)
            return chosen.set_params(cv=n_folds) if isinstance(chosen, FairPCACV) else chosen
        rank, standardize = (0.7, True) if self.pca is None else (self._rank(folds), False)
        if (sizes >= n_folds).sum() < 2:  # too few rows to choose by cross-validation
            return FairPCA(rank, standardize=standardize)
        small: dict[str, Any] = {}
        if (sizes < n_folds).any():
            small = {"min_group_size": n_folds, "small_groups": "ignore"}
        return FairPCACV(rank, cv=n_folds, standardize=standardize, **small)

    def _rank(self, folds: MomentsByFold) -> int:
        """How many components the PCA has that was passed."""
        if isinstance(folds, RowsByFold):
            return int(clone(self.pca).fit(dense(folds.values)).n_components_)
        if not isinstance(self.pca.n_components, Integral):
            raise ValueError("moments need PCA with a number of components, for example PCA(3).")
        return int(self.pca.n_components)


def _people(X: Any, groups: Any, plan: _Plan, *given: Any) -> People:
    """Rows in memory; those that enter the projection as they are become one array."""
    if groups is None:
        raise TypeError(
            "sensitive_features is missing: pass fairpca.audit(X, sensitive_features=groups) with "
            "one group label per row."
        )
    needs_y = plan.estimator is not None and get_tags(plan.estimator).target_tags.required
    if needs_y and given[1] is None:
        raise ValueError(
            f"{plan.estimator!r} needs y; pass fairpca.audit(X, groups, estimator, y=y)."
        )
    how: dict[str, Any] = {"before": plan.before, "with_target": bool(needs_y)}
    if plan.before is None:
        how["names"] = as_rows(X).feature_names
        X = X.tocsr() if hasattr(X, "tocsr") else dense(X)
    return People.read(X, groups, *given, **how)


def _moments_by_fold(moments: GroupMoments, groups: Any, plan: _Plan) -> MomentsByFold:
    if groups is not None:
        raise ValueError("moments know their groups; pass audit(moments, estimator=...) without.")
    if plan.before is not None:
        raise TypeError("a pipeline changes rows; pass its projection alone with moments.")
    if moments.n_folds < 2:
        raise ValueError(
            "an audit judges by rows that were left out, but these moments have no folds; make "
            "them with folds=10, for example GroupMoments.from_data(X, groups, folds=10)."
        )
    return MomentsByFold(moments, moments.feature_names)
