"""The parts of an audit besides the verdict: the fit, other ranks, columns, scores, people.

Figures about scores are those of judged groups; there are none without rows in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from fairpca._audit import record
from fairpca._audit.cross_fit import People, Projection, Projections, dense, fit_pca, fit_quietly
from fairpca._audit.group_results import Setup, above_one, loses_something
from fairpca._cv.held_out import HeldOut
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV
from fairpca._input.folds import FoldRule
from fairpca._moments.group_moments import GroupMoments
from fairpca._typing import Array, Codes
from fairpca.exceptions import quietly
from fairpca.metrics import Outcomes, classifier_outcomes, group_separation, probe_groups
from fairpca.path import TradeoffPath, tradeoff_path

_MOST_RANKS = 30
_MANY_FEATURES = 300  # from here on a rank more is worth waiting for
_MOST_COLUMNS = 2000  # that are looked at one by one
_FEW_OF_GROUP = 0.05  # more rows of a group than this share are not few
_MANY_ALIKE = 0.02  # one extreme value in more rows than this share is a property of the column
_MOST_ROWS = 10_000  # for classifiers
_FOLDS = 5  # of classifiers
_FEWEST_FOLDS = 3  # of FairPCACV, where it is fitted to a part of the rows
_MOST_SCORES = 600  # people in the sample of scores


def ranks_of_curve(ranks: Sequence[int] | None, r: int, moments: GroupMoments) -> list[int]:
    """The ranks of the curve; see ``ranks`` of :func:`fairpca.audit`."""
    limit = int(min(moments.n_features, moments.counts.sum()))
    if ranks is None and limit <= _MOST_RANKS:
        return [*range(1, limit + 1)]
    if ranks is None:
        many = moments.n_features >= _MANY_FEATURES
        highest = min(limit, max(2 * r, 2 if many else _MOST_RANKS))
        grid = np.geomspace(1, highest, 8 if many else _MOST_RANKS).round().astype(int)
        return sorted({r, *grid.tolist()})
    wrong = [rank for rank in ranks if not 1 <= rank <= limit or int(rank) != rank]
    if wrong or not len(ranks):
        raise ValueError(f"ranks={list(ranks)}: pass integers from 1 to {limit}.")
    return sorted({int(rank) for rank in ranks})


def rank_curve(ranks: list[int], held_out: HeldOut, setup: Setup, group: Any) -> record.RankCurve:
    """Errors of PCA, the projections from the third on, and the gap of the verdict's group."""
    read = held_out.relative() if setup.by_share else held_out
    g = int(setup.ratios(read.totals)[0].argmax())
    if group is not None:
        g = setup.folds.labels.index(group)
    gaps: list[record.Interval | None] = [None] * len(ranks)
    if setup.has_gap[g]:
        level = setup.origin.thresholds.level
        ends = above_one(read, lambda totals: setup.ratios(totals)[2:, g], level)
        known = zip(ends, loses_something(held_out)[2:], strict=True)
        gaps = [record.Interval(*end) if loses else None for end, loses in known]
    return record.RankCurve(np.array(ranks), held_out.totals.group_errors[2:], gaps)


def frontier(fair: FairProjection, moments: GroupMoments, n_points: int | None) -> TradeoffPath:
    """The frontier at the rank of the audit, on held-out rows too where groups are large enough."""
    n_folds = moments.n_folds
    large = fair.min_group_size >= n_folds or moments.counts.min() >= n_folds
    same = ("standardize", "normalize", "min_group_size", "small_groups", "max_groups")
    with quietly():
        return tradeoff_path(
            moments,
            n_components=fair.n_components_,
            n_points=n_points or (41 if len(moments.groups) == 2 else 9),
            cv=n_folds if large else None,
            **{name: getattr(fair, name) for name in same},
        )


def fit_figures(both: Projections, fair: FairProjection, moments: GroupMoments) -> record.Fit:
    """PCA and the fair version, fitted to all rows."""
    before, after = fair.pca_reconstruction_error_, fair.reconstruction_error_
    reached = {
        "max_disparity": abs(fair.disparity_),
        "max_error_increase": after / before - 1 if before > 0 else 0.0,
    }
    columns = [column_errors(projection, moments) for projection in both]
    return record.Fit(
        status=str(fair.status_),
        alpha=float(fair.alpha_),
        duality_gap=float(fair.duality_gap_),
        certified=isinstance(fair, FairPCA) and fair.solver == "exact",
        budgets=[
            record.Budget(name, float(most), float(value), bool(value <= most + 1e-6 * (1 + most)))
            for name, value in reached.items()
            if (most := getattr(fair, name, None)) is not None
        ],
        pca_loadings=both[0].components,
        fair_loadings=both[1].components,
        pca_errors=columns[0].sum(axis=1),
        fair_errors=columns[1].sum(axis=1),
        pca_column_errors=columns[0],
        fair_column_errors=columns[1],
    )


def column_errors(projection: Projection, moments: GroupMoments) -> Array:
    """The error of each group on each column, ``diag((I - P) C_g (I - P))``, of shape (k, d)."""
    U, mean, scale = projection
    scale, operand = np.broadcast_to(scale, mean.shape), moments.operand("group")
    d = (moments.means - mean) / scale
    C_U = operand.products((U / scale).T) / scale[:, None] + np.einsum("kj,kr->kjr", d, d @ U.T)
    once = np.einsum("kjr,rj->kj", C_U, U)
    twice = np.einsum("rj,krs,sj->kj", U, U @ C_U, U)
    errors: Array = np.maximum(operand.diagonals / scale**2 + d**2 - 2 * once + twice, 0.0)
    return errors


def deciding_columns(setup: Setup, rows: Codes, errors: Array) -> list[record.DecidingColumn]:
    """Columns whose scale hangs on few rows, those that decide first.

    They decide if these rows make up most of the error of a judged group.
    """
    people, thresholds = setup.people, setup.origin.thresholds
    if people is None or len(people.feature_names) > _MOST_COLUMNS:
        return []
    X, codes, k = dense(_safe_indexing(people.values, rows)), people.codes[rows], len(people.labels)
    few, errors = max(int(thresholds.few_rows * len(X)), 1), errors * people.weights[rows]
    sums, sizes = np.bincount(codes, errors, minlength=k), np.bincount(codes, minlength=k)
    found = []
    for name, x in zip(people.feature_names, X.T, strict=True):
        at = _few_rows(x, few)
        if not len(at):
            continue
        part = np.bincount(codes[at], errors[at], minlength=k)
        few_of_group = np.bincount(codes[at], minlength=k) <= np.maximum(_FEW_OF_GROUP * sizes, 1)
        deciding = setup.judged & few_of_group & (part > thresholds.decides * sums)
        values, others, middle = np.unique(x[at]), np.delete(x, at), np.median(x)
        side = np.sign(values[[0, -1]] - middle).sum() / 2  # 0 if they lie on both sides
        next_value = others[(side * others if side else np.abs(others - middle)).argmax()]
        squares = (x - x.mean()) ** 2
        found.append(
            record.DecidingColumn(
                name=name,
                n_rows=len(at),
                value=float(values[0]) if len(values) == 1 else None,
                next_value=float(next_value),
                share_of_variance=float(squares[at].sum() / squares.sum()),
                near_constant=bool(np.ptp(others) == 0),
                decides=bool(deciding.any()),
                group=people.labels[int(deciding.argmax())] if deciding.any() else None,
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


def leakage(
    setup: Setup, both: Projections, probes: bool, smaller: FairProjection | None = None
) -> record.Leakage | None:
    """How far apart the scores of judged groups are, and how well the group can be guessed.

    With an estimator for fewer rows, probes guess the groups of one half of the rows from scores
    of projections fitted to the other half.
    """
    people = setup.people
    if people is None or setup.judged.sum() < 2:
        return None
    rows, groups = np.flatnonzero(setup.judged[people.codes]), people.groups
    apart = []
    for projection in both:
        own = projection.scores(_safe_indexing(people.values, rows))
        moments = GroupMoments().update(own, groups[rows], people.weights[rows])
        as_they_are = SimpleNamespace(components_=np.eye(moments.n_features), mean_=0.0)
        apart.append(group_separation(as_they_are, moments).largest())
    if not probes and people.classes is None:
        return record.Leakage(apart[0], apart[1])
    rows, seed = _sampled(setup, people), setup.origin.random_state
    if smaller is not None:
        halves = train_test_split(rows, test_size=0.5, stratify=groups[rows], random_state=seed)
        fitted_to, rows = map(np.sort, halves)
        half = people.moments_of(people.values, FoldRule(_FEWEST_FOLDS), fitted_to)
        pca = fit_pca(half, len(both[0].components), smaller.standardize)
        both = [pca, Projection.of(fit_quietly(smaller, half))]
    scores = [projection.scores(_safe_indexing(people.values, rows)) for projection in both]
    found = [probe_groups(own, groups[rows], cv=_FOLDS, **setup.chance) for own in scores]
    return record.Leakage(apart[0], apart[1], found[0], found[1], len(rows))


def outcomes(setup: Setup, model: Any, X: Any) -> list[Outcomes] | None:
    """Rates by judged group of classifiers on the scores, on PCA's scores and on all features."""
    people = setup.people
    if people is None or people.classes is None or setup.judged.sum() < 2:
        return None
    y, rows = people.classes, _sampled(setup, people)
    cells = people.codes[rows], np.unique(y[rows], return_inverse=True)[1]
    n_folds = min(_FOLDS, int(np.unique(cells, axis=1, return_counts=True)[1].min()))
    if n_folds < 2:  # one row of a group and class
        return None
    X = _safe_indexing(X, rows)
    with quietly():
        X, y = X.toarray() if hasattr(X, "toarray") else X, y[rows]
        how = {"pos_label": people.pos_label, "cv": n_folds} | setup.chance
        found = classifier_outcomes(model, X, y, people.groups[rows], **how)
    return [replace(result, data=None) for result in found]  # without predictions for people


def _sampled(setup: Setup, people: People) -> Codes:
    """The rows of judged groups; of very many a random sample, the same share of every group."""
    rows, seed = np.flatnonzero(setup.judged[people.codes]), setup.origin.random_state
    if len(rows) <= _MOST_ROWS:
        return rows
    how = {"train_size": _MOST_ROWS, "stratify": people.codes[rows], "random_state": seed}
    return np.sort(train_test_split(rows, **how)[0])


def sampled_scores(setup: Setup, both: Projections) -> record.SampledRows | None:
    """Scores of a sample of people, about as many of each judged group."""
    people, judged = setup.people, np.flatnonzero(setup.judged)
    if people is None or not len(judged):
        return None
    rng = np.random.default_rng(setup.origin.random_state)
    each = max(_MOST_SCORES // len(judged), 1)
    members = [rng.permutation(np.flatnonzero(people.codes == g))[:each] for g in judged]
    rows = np.concatenate([np.sort(own) for own in members])
    pca, fair = (one.scores(_safe_indexing(people.values, rows))[:, :2] for one in both)
    return record.SampledRows(people.positions[rows], people.codes[rows], pca, fair)


def for_fewer_rows(estimator: FairProjection, fair: FairProjection, setup: Setup) -> FairProjection:
    """The same estimator and rank for a part of the rows, with judged groups only."""
    rank = fair.n_components_
    if isinstance(fair, FairPCACV):
        how: dict[str, Any] = {"standardize": fair.standardize, "normalize": fair.normalize}
        # Keep the weight that folds chose for two groups: fewer rows might choose PCA.
        if setup.judged.sum() == 2 and np.isfinite(fair.alpha_):
            return FairPCA(rank, alpha=fair.alpha_, **how)
        return FairPCACV(rank, cv=_FEWEST_FOLDS, constraint=fair.constraint, **how)
    model: FairProjection = clone(estimator).set_params(n_components=rank)
    return model.set_params(min_group_size=1) if hasattr(model, "min_group_size") else model
