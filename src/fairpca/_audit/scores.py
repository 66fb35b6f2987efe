"""What scores tell about the group, and what a classifier makes of them.

Only groups that are judged take part: the others have too few rows for a classifier.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from fairpca._audit.cross_fit import People, RowsByFold, fit_pca, fit_quietly, scores_of
from fairpca._audit.group_results import Comparison
from fairpca._audit.record import Leakage
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV
from fairpca._input.folds import FoldRule
from fairpca._moments.group_moments import GroupMoments
from fairpca._typing import Array, Codes, Labels
from fairpca.exceptions import quietly
from fairpca.metrics import Outcomes, Probe, classifier_outcomes, group_separation, probe_groups

_MOST_ROWS = 10_000  # to fit and to probe with
_FOLDS = 5  # of probes and classifiers
FEWEST_FOLDS = 3  # of FairPCACV, where it is fitted to a part of the rows


def leakage(
    folds: RowsByFold,
    models: tuple[FairProjection, FairProjection],
    estimator: FairProjection,
    probes: bool,
    comparison: Comparison,
    seed: int,
) -> Leakage | None:
    """What the scores of both projections tell; None unless two groups are judged.

    Probes guess the groups of one half of the rows, to which the projections were not fitted.
    """
    people, judged = folds.people, comparison.judged
    if judged.sum() < 2:
        return None
    rows, groups = np.flatnonzero(judged[people.codes]), people.labels[people.codes]
    given = groups[rows], people.weights[rows]
    apart = [separation(scores_of(m, _safe_indexing(folds.values, rows)), *given) for m in models]
    if not probes:
        return Leakage(apart[0], apart[1])
    rows = _sample(people.codes, rows, seed)
    half = FoldRule(2, seed).folds_of(people.codes[rows], np.zeros(len(judged), np.intp))
    fitted_to, guessed = rows[half == 0], rows[half == 1]
    target = None if people.target is None else people.target[fitted_to]
    values, fair = _safe_indexing(folds.values, fitted_to), models[1]
    moments = GroupMoments().update(
        values, groups[fitted_to], people.weights[fitted_to], target, folds=FEWEST_FOLDS
    )
    pca = fit_pca(moments, fair.n_components_, fair.standardize)
    own = fit_quietly(_for_fewer_rows(estimator, fair, comparison), moments)
    values, level = _safe_indexing(folds.values, guessed), comparison.thresholds.level
    found = [probed(scores_of(m, values), groups[guessed], level, seed) for m in (pca, own)]
    return Leakage(apart[0], apart[1], found[0], found[1], len(guessed))


def outcomes(
    folds: RowsByFold,
    estimator: FairProjection,
    fair: FairProjection,
    pos_label: Any,
    comparison: Comparison,
    seed: int,
) -> list[Outcomes] | None:
    """Rates by group of classifiers on the scores, on PCA's scores and on all features."""
    people, model = folds.people, _for_fewer_rows(estimator, fair, comparison)
    steps = [] if people.before is None else people.before.steps
    model = Pipeline([*steps, ("projection", model)]) if steps else model
    X = people.X.toarray() if hasattr(people.X, "toarray") else people.X
    return rates(model, X, people, pos_label, comparison, seed)


def rates(
    model: Any,
    X: Any,
    people: People,
    pos_label: Any,
    comparison: Comparison,
    seed: int,
) -> list[Outcomes] | None:
    """Outcomes for the judged groups; None without y, or with one row of a group and class."""
    codes, y = people.codes, people.classes
    if y is None:
        return None
    rows = _sample(codes, np.flatnonzero(comparison.judged[codes]), seed)
    classes = np.unique(y[rows], return_inverse=True)[1]
    cells = codes[rows] * (classes.max(initial=0) + 1) + classes
    n_folds = min(_FOLDS, *np.unique(cells, return_counts=True)[1].tolist(), len(rows))
    if comparison.judged.sum() < 2 or n_folds < 2:
        return None
    with quietly():
        found = classifier_outcomes(
            model,
            _safe_indexing(X, rows),
            y[rows],
            np.asarray(comparison.labels)[codes[rows]],
            pos_label=pos_label,
            cv=n_folds,
            confidence=comparison.thresholds.level,
            random_state=seed,
        )
    return [replace(result, data=None) for result in found]  # without predictions for people


def separation(scores: Array, groups: Labels, weights: Array) -> dict[str, float]:
    """How far apart the groups' scores are: :func:`group_separation` of the worst pair."""
    as_they_are = SimpleNamespace(components_=np.eye(scores.shape[1]), mean_=0.0)
    moments = GroupMoments().update(scores, groups, weights)
    return group_separation(as_they_are, moments).largest()


def probed(scores: Array, groups: Labels, level: float, seed: int) -> list[Probe]:
    """Classifiers that guess the group."""
    return probe_groups(scores, groups, cv=_FOLDS, confidence=level, random_state=seed)


def _for_fewer_rows(
    estimator: FairProjection, fair: FairProjection, comparison: Comparison
) -> FairProjection:
    """The same estimator and rank for a part of the rows, with judged groups only.

    A weight that folds chose for two groups is kept: a choice from fewer rows might be PCA, and
    would be about another projection.
    """
    rank = fair.n_components_
    if isinstance(fair, FairPCACV):
        how: dict[str, Any] = {"standardize": fair.standardize, "normalize": fair.normalize}
        if comparison.judged.sum() == 2 and np.isfinite(fair.alpha_):
            return FairPCA(rank, alpha=fair.alpha_, **how)
        return FairPCACV(rank, cv=FEWEST_FOLDS, constraint=fair.constraint, **how)
    model: FairProjection = clone(estimator).set_params(n_components=rank)
    return model.set_params(min_group_size=1) if hasattr(model, "min_group_size") else model


def _sample(codes: Codes, rows: Codes, seed: int) -> Codes:
    """At most 10,000 of these rows, the same share of every group."""
    if len(rows) <= _MOST_ROWS:
        return rows
    n_parts = -(-len(rows) // _MOST_ROWS)
    parts = FoldRule(n_parts, seed).folds_of(codes[rows], np.zeros(int(codes.max()) + 1, np.intp))
    return np.asarray(rows[parts == 0])
