"""What an audit shows besides the verdict: the fit, other ranks, columns, scores, a few people.

Only groups that are judged take part in figures about scores: the others have too few rows for a
classifier, and single people of theirs are not shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from fairpca._audit.cross_fit import (
    CrossFitted,
    Folds,
    People,
    Projection,
    RowErrors,
    dense,
    fit_pca,
    fit_quietly,
    scores_of,
)
from fairpca._audit.group_results import Comparison, above_one, loses_something
from fairpca._audit.record import (
    Budget,
    DecidingColumn,
    Fit,
    Interval,
    Leakage,
    RankCurve,
    SampledRows,
)
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV
from fairpca._moments.group_moments import GroupMoments
from fairpca._typing import Array, Codes
from fairpca.exceptions import quietly
from fairpca.metrics import Outcomes, Probe, classifier_outcomes, group_separation, probe_groups
from fairpca.path import TradeoffPath, tradeoff_path

_MOST_RANKS = 30
_MANY_FEATURES = 300  # from here on a rank more is worth waiting for
_MOST_COLUMNS = 2000  # that are looked at one by one
_FEW_OF_GROUP = 0.05  # more rows of a group than this share are not few
_MANY_ALIKE = 0.02  # one extreme value in more rows than this share is a property of the column
_MOST_ROWS = 10_000  # for classifiers
_FOLDS = 5  # of classifiers
_FEWEST_FOLDS = 3  # of FairPCACV, where it is fitted to a part of the rows


# -- ranks and the fit -----------------------------------------------------------------------------


def ranks_of_curve(ranks: Sequence[int] | None, r: int, moments: GroupMoments) -> list[int]:
    """The ranks of the curve; see ``ranks`` of :func:`fairpca.audit`."""
    d, limit = moments.n_features, int(min(moments.n_features, moments.counts.sum()))
    if ranks is None:
        many = d >= _MANY_FEATURES
        highest = min(limit, max(2 * r, 2 if many else _MOST_RANKS))
        grid = np.geomspace(1, highest, 8 if many else _MOST_RANKS).round().astype(int)
        return sorted({r, *(range(1, limit + 1) if limit <= _MOST_RANKS else grid.tolist())})
    wrong = [rank for rank in ranks if not 1 <= rank <= limit or int(rank) != rank]
    if wrong or not len(ranks):
        raise ValueError(f"ranks={list(ranks)}: pass integers from 1 to {limit}.")
    return sorted({int(rank) for rank in ranks})


def rank_curve(
    ranks: Sequence[int], crossed: CrossFitted, comparison: Comparison, group: Any
) -> RankCurve:
    """Errors of PCA by the number of components, and the gap of the group of the verdict.

    The projections after what is judged and the alternative are PCA at these ranks.
    """
    held_out, at = crossed.parts, range(2, 2 + len(ranks))
    read = held_out.relative() if comparison.by_share else held_out
    g = int(comparison.ratios(read.totals)[0].argmax())
    if group is not None:
        g = list(comparison.labels).index(group)
    gaps: list[Interval | None] = [None] * len(ranks)
    if comparison.has_gap[g]:
        level = comparison.thresholds.level
        ends = above_one(read, lambda totals: comparison.ratios(totals)[2:, g], level)
        known = loses_something(held_out)[2:]
        gaps = [Interval(*end) if yes else None for end, yes in zip(ends, known, strict=True)]
    return RankCurve(np.array(ranks), held_out.totals.group_errors[at], gaps)


def frontier(fair: FairProjection, folds: Folds, n_points: int | None) -> TradeoffPath:
    """The frontier at the rank of the audit, on held-out rows too where groups are large enough."""
    moments, n_folds = folds.moments, folds.moments.n_folds
    large = moments.counts >= max(n_folds, fair.min_group_size)
    with quietly():
        return tradeoff_path(
            moments,
            n_components=fair.n_components_,
            n_points=n_points or (41 if len(moments.groups) == 2 else 9),
            standardize=fair.standardize,
            normalize=fair.normalize,
            min_group_size=fair.min_group_size,
            small_groups=fair.small_groups,
            max_groups=fair.max_groups,
            cv=n_folds if large.all() or fair.min_group_size >= n_folds else None,
        )


def fit_figures(pca: FairProjection, fair: FairProjection, moments: GroupMoments) -> Fit:
    """The projections fitted to all rows."""
    before, after = fair.pca_reconstruction_error_, fair.reconstruction_error_
    reached = {
        "max_disparity": abs(fair.disparity_),
        "max_error_increase": after / before - 1 if before > 0 else 0.0,
    }
    budgets = [
        Budget(name, float(wanted), float(value), bool(value <= wanted + 1e-6 * (1 + wanted)))
        for name, value in reached.items()
        if (wanted := getattr(fair, name, None)) is not None
    ]
    columns = [column_errors(model_projection(model), moments) for model in (pca, fair)]
    return Fit(
        status=str(fair.status_),
        alpha=float(fair.alpha_),
        duality_gap=float(fair.duality_gap_),
        certified=isinstance(fair, FairPCA) and fair.solver == "exact",
        budgets=budgets,
        pca_loadings=pca.components_ * _signs(pca, fair)[:, None],
        fair_loadings=fair.components_,
        pca_errors=columns[0].sum(axis=1),
        fair_errors=columns[1].sum(axis=1),
        pca_column_errors=columns[0],
        fair_column_errors=columns[1],
    )


def model_projection(model: FairProjection) -> Projection:
    """A fitted estimator as a projection of raw rows."""
    return Projection(model.components_, model.mean_, model.scale_)


def column_errors(projection: Projection, moments: GroupMoments) -> Array:
    """What each group loses on each column, ``diag((I - P) C_g (I - P))``, of shape (k, d)."""
    U, mean, scale = projection
    scale, operand = np.broadcast_to(scale, mean.shape), moments.operand("group")
    d = (moments.means - mean) / scale
    C_U = operand.products((U / scale).T) / scale[:, None] + np.einsum("kj,kr->kjr", d, d @ U.T)
    once = np.einsum("kjr,rj->kj", C_U, U)
    twice = np.einsum("rj,krs,sj->kj", U, U @ C_U, U)
    errors: Array = np.maximum(operand.diagonals / scale**2 + d**2 - 2 * once + twice, 0.0)
    return errors


def _signs(pca: FairProjection, fair: FairProjection) -> Array:
    """What to multiply PCA's components by, so that they point the same way as the fair ones."""
    return np.where(np.einsum("ij,ij->i", pca.components_, fair.components_) < 0, -1.0, 1.0)


# -- columns whose scale hangs on few rows ---------------------------------------------------------


def deciding_columns(
    X: Any, names: Sequence[str], rows: RowErrors, comparison: Comparison
) -> list[DecidingColumn]:
    """Columns whose scale hangs on few rows, those that decide first.

    They decide if these rows make up most of the error of a judged group. Nothing is said where
    there are very many columns.
    """
    if len(names) > _MOST_COLUMNS:
        return []
    X, labels, thresholds = dense(X), comparison.labels, comparison.thresholds
    few, k, errors = max(int(thresholds.few_rows * len(X)), 1), len(labels), rows.errors[0]
    sums = np.bincount(rows.codes, errors * rows.weights, minlength=k)
    sizes = np.bincount(rows.codes, minlength=k)
    found = []
    for name, x in zip(names, X.T, strict=True):
        at = _few_rows(x, few)
        if not len(at):
            continue
        part = np.bincount(rows.codes[at], (errors * rows.weights)[at], minlength=k)
        few_of_group = np.bincount(rows.codes[at], minlength=k) <= np.maximum(
            _FEW_OF_GROUP * sizes, 1
        )
        deciding = comparison.judged & few_of_group & (part > thresholds.decides * sums)
        values, others, middle = np.unique(x[at]), np.delete(x, at), np.median(x)
        side = np.sign(values[[0, -1]] - middle).sum() / 2  # 0 if they lie on both sides
        next_value = others[(side * others if side else np.abs(others - middle)).argmax()]
        squares = (x - x.mean()) ** 2
        found.append(
            DecidingColumn(
                name=name,
                n_rows=len(at),
                value=float(values[0]) if len(values) == 1 else None,
                next_value=float(next_value),
                share_of_variance=float(squares[at].sum() / squares.sum()),
                near_constant=bool(np.ptp(others) == 0),
                decides=bool(deciding.any()),
                group=labels[int(deciding.argmax())] if deciding.any() else None,
            )
        )
    return sorted(found, key=lambda column: (not column.decides, column.n_rows))


def _few_rows(x: Array, few: int) -> Codes:
    """The few rows that the scale of a column hangs on, if there are such rows.

    They are all that differ from the others, or make up half of the variance, or share an extreme
    value that makes up a quarter of it, such as a 0 that stands for something missing.
    """
    different = np.flatnonzero(x != np.median(x))
    if len(different) <= few:
        return different
    squares = (x - x.mean()) ** 2
    largest = np.argpartition(-squares, few)[:few]
    largest = largest[np.argsort(-squares[largest], kind="stable")]
    reached = np.cumsum(squares[largest]) > squares.sum() / 2
    if reached.any():
        return np.asarray(largest[: int(reached.argmax()) + 1])
    extreme = x == x[squares.argmax()]
    shared = extreme.sum() <= _MANY_ALIKE * len(x) and np.ptp(x[~extreme]) > 0
    enough = shared and squares[extreme].sum() > squares.sum() / 4
    return np.flatnonzero(extreme & enough)


# -- scores ----------------------------------------------------------------------------------------


def leakage(
    folds: Folds,
    models: tuple[FairProjection, FairProjection],
    estimator: FairProjection,
    probes: bool,
    comparison: Comparison,
    seed: int,
) -> Leakage | None:
    """What the scores of PCA and the fair version tell; None unless two groups are judged.

    Probes guess the groups of one half of the rows, to which the projections were not fitted.
    """
    people, fair = folds.people, models[1]
    if people is None or comparison.judged.sum() < 2:
        return None
    pair = [model_projection(model) for model in models]
    found = separations(pair, people, folds.values, comparison)
    if not probes:
        return found
    rows = sampled(people, comparison, seed)
    halves = train_test_split(rows, test_size=0.5, stratify=people.codes[rows], random_state=seed)
    fitted_to, guessed = (np.sort(half) for half in halves)
    moments = GroupMoments().update(
        _safe_indexing(folds.values, fitted_to),
        people.labels[people.codes[fitted_to]],
        people.weights[fitted_to],
        None if people.target is None else people.target[fitted_to],
        folds=_FEWEST_FOLDS,
    )
    pca = fit_pca(moments, fair.n_components_, fair.standardize)
    own = fit_quietly(_for_fewer_rows(estimator, fair, comparison), moments)
    values = _safe_indexing(folds.values, guessed)
    before, after = (
        probed(scores_of(model_projection(model), values), people, guessed, comparison, seed)
        for model in (pca, own)
    )
    return replace(found, baseline_probes=before, alternative_probes=after, n_rows=len(guessed))


def separations(
    pair: Sequence[Projection], people: People, values: Any, comparison: Comparison
) -> Leakage:
    """How far apart the scores of judged groups are: the worst pair of groups."""
    rows = np.flatnonzero(comparison.judged[people.codes])
    own, groups = _safe_indexing(values, rows), people.labels[people.codes[rows]]
    apart = []
    for projection in pair:
        moments = GroupMoments().update(scores_of(projection, own), groups, people.weights[rows])
        as_they_are = SimpleNamespace(components_=np.eye(moments.n_features), mean_=0.0)
        apart.append(group_separation(as_they_are, moments).largest())
    return Leakage(apart[0], apart[1])


def probed(
    scores: Array, people: People, rows: Codes, comparison: Comparison, seed: int
) -> list[Probe]:
    """Classifiers that guess the group of these rows."""
    groups, level = people.labels[people.codes[rows]], comparison.thresholds.level
    return probe_groups(scores, groups, cv=_FOLDS, confidence=level, random_state=seed)


def outcomes(
    folds: Folds,
    estimator: FairProjection,
    fair: FairProjection,
    pos_label: Any,
    comparison: Comparison,
    seed: int,
) -> list[Outcomes] | None:
    """Rates by group of classifiers on the scores, on PCA's scores and on all features."""
    people = folds.people
    if people is None or people.classes is None:
        return None
    model = _for_fewer_rows(estimator, fair, comparison)
    if people.before is not None:
        model = Pipeline([*people.before.steps, ("projection", model)])
    X = people.X.toarray() if hasattr(people.X, "toarray") else people.X
    return rates(model, X, people, pos_label, comparison, seed)


def rates(
    model: Any, X: Any, people: People, pos_label: Any, comparison: Comparison, seed: int
) -> list[Outcomes] | None:
    """Outcomes for the judged groups; None without y, or with one row of a group and class."""
    y, rows = people.classes, sampled(people, comparison, seed)
    if y is None or comparison.judged.sum() < 2:
        return None
    groups, classes = people.labels[people.codes[rows]], y[rows]
    numbers = np.unique(classes, return_inverse=True)[1]
    cells = np.unique([people.codes[rows], numbers], axis=1, return_counts=True)[1]
    n_folds = min(_FOLDS, int(cells.min()))
    if n_folds < 2:
        return None
    with quietly():
        found = classifier_outcomes(
            model,
            _safe_indexing(X, rows),
            classes,
            groups,
            pos_label=pos_label,
            cv=n_folds,
            confidence=comparison.thresholds.level,
            random_state=seed,
        )
    return [replace(result, data=None) for result in found]  # without predictions for people


def sampled(people: People, comparison: Comparison, seed: int) -> Codes:
    """The rows of judged groups; of very many a random sample, the same share of every group."""
    rows = np.flatnonzero(comparison.judged[people.codes])
    if len(rows) <= _MOST_ROWS:
        return rows
    how = {"train_size": _MOST_ROWS, "stratify": people.codes[rows], "random_state": seed}
    return np.sort(train_test_split(rows, **how)[0])


def sampled_rows(
    folds: Folds,
    models: tuple[FairProjection, FairProjection],
    n_scores: int,
    comparison: Comparison,
    seed: int,
) -> SampledRows | None:
    """Scores of a sample of people, about as many of each judged group."""
    judged, people = np.flatnonzero(comparison.judged).tolist(), folds.people
    if not judged or people is None:
        return None
    rng, each = np.random.default_rng(seed), max(n_scores // len(judged), 1)
    members = [rng.permutation(np.flatnonzero(people.codes == g))[:each] for g in judged]
    rows = np.concatenate([np.sort(own) for own in members])
    values = _safe_indexing(folds.values, rows)
    pca, fair = (scores_of(model_projection(model), values) for model in models)
    pca = (pca * _signs(*models))[:, :2]
    return SampledRows(people.positions[rows], people.codes[rows], pca, fair[:, :2])


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
        return FairPCACV(rank, cv=_FEWEST_FOLDS, constraint=fair.constraint, **how)
    model: FairProjection = clone(estimator).set_params(n_components=rank)
    return model.set_params(min_group_size=1) if hasattr(model, "min_group_size") else model
