"""What an audit shows besides the verdict: other ranks, the frontier, the fit, a few people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from fairpca._audit.cross_fit import CrossFitted, MomentsByFold, RowsByFold, dense, scores_of
from fairpca._audit.group_results import Comparison, RowErrors, gap_interval, loses_nothing
from fairpca._audit.record import Budget, DecidingColumn, Fit, RankCurve, SampledRows
from fairpca._audit.robust import deciding_columns
from fairpca._cv.leave_out import left_out_errors
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._moments.group_moments import GroupMoments
from fairpca._typing import Array
from fairpca.exceptions import quietly
from fairpca.path import TradeoffPath, tradeoff_path

_MOST_RANKS = 30
_MANY_FEATURES = 300  # from here on a rank more is worth waiting for
_MOST_COLUMNS = 2000  # that are looked at one by one
_LARGEST = 10  # people with the largest errors, of each group


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


def rank_curve(crossed: CrossFitted, comparison: Comparison, group: Any) -> RankCurve:
    """Errors of PCA by the number of components, and the gap of the group of the verdict."""
    held_out, labels = crossed.parts, list(comparison.labels)
    ratios = crossed.pair(held_out).totals.ratios[0]
    g = int(ratios.argmax()) if group is None else labels.index(group)
    each = [held_out.projections([i]) for i in range(len(crossed.ranks))]
    judged = bool(comparison.judged[g]) and g != comparison.reference
    gaps = [
        gap_interval(one, comparison, g) if judged and not loses_nothing(one) else None
        for one in each
    ]
    return RankCurve(
        n_components=np.array(crossed.ranks),
        pca=held_out.totals.group_errors[: len(each)],
        pca_overall=held_out.totals.overall[: len(each)],
        pca_gap=gaps,
        gap_group=labels[g],
    )


def frontier(fair: FairProjection, folds: MomentsByFold, n_points: int | None) -> TradeoffPath:
    """The frontier at the rank of the audit, on held-out rows too where groups are large enough."""
    large = folds.moments.counts >= max(folds.n_folds, fair.min_group_size)
    with quietly():
        return tradeoff_path(
            folds.moments._keep(folds=True),
            n_components=fair.n_components_,
            n_points=n_points or (41 if len(folds.moments.groups) == 2 else 9),
            standardize=fair.standardize,
            normalize=fair.normalize,
            min_group_size=fair.min_group_size,
            small_groups=fair.small_groups,
            max_groups=fair.max_groups,
            cv=folds.n_folds if large.all() or fair.min_group_size >= folds.n_folds else None,
        )


def fit_figures(pca: FairProjection, fair: FairProjection, moments: GroupMoments) -> Fit:
    """The projections fitted to all rows."""
    few = moments.n_features <= _MOST_COLUMNS
    bases = [model.components_.T for model in (pca, fair)]
    errors, weights, _ = left_out_errors(moments, bases, fair.mean_, fair.scale_)
    return Fit(
        status=str(fair.status_),
        alpha=float(fair.alpha_),
        duality_gap=float(fair.duality_gap_),
        certified=isinstance(fair, FairPCA) and fair.solver == "exact",
        budgets=_budgets(fair),
        pca_loadings=pca.components_ * _signs(pca, fair)[:, None],
        fair_loadings=fair.components_,
        pca_errors=errors[0] / weights,
        fair_errors=errors[1] / weights,
        pca_column_errors=column_errors(pca, moments) if few else None,
        fair_column_errors=column_errors(fair, moments) if few else None,
    )


def column_errors(model: Any, moments: GroupMoments) -> Array:
    """What each group loses on each column, ``diag((I - P) C_g (I - P))``, of shape (k, d)."""
    scale = np.broadcast_to(getattr(model, "scale_", 1.0), model.mean_.shape)
    U, operand = model.components_, moments._keep().operand("group")
    d = (moments.means - model.mean_) / scale
    C_U = operand.products((U / scale).T) / scale[:, None] + np.einsum("kj,kr->kjr", d, d @ U.T)
    once = np.einsum("kjr,rj->kj", C_U, U)
    twice = np.einsum("rj,krs,sj->kj", U, U @ C_U, U)
    errors: Array = np.maximum(operand.diagonals / scale**2 + d**2 - 2 * once + twice, 0.0)
    return errors


def _signs(pca: FairProjection, fair: FairProjection) -> Array:
    """What to multiply PCA's components by, so that they point the same way as the fair ones."""
    return np.where(np.einsum("ij,ij->i", pca.components_, fair.components_) < 0, -1.0, 1.0)


def _budgets(fair: FairProjection) -> list[Budget]:
    """The budgets that were asked for, and what was reached."""
    before, after = fair.pca_reconstruction_error_, fair.reconstruction_error_
    reached = {
        "max_disparity": abs(fair.disparity_),
        "max_error_increase": after / before - 1 if before > 0 else 0.0,
    }
    return [
        Budget(name, float(wanted), float(value), bool(value <= wanted + 1e-6 * (1 + wanted)))
        for name, value in reached.items()
        if (wanted := getattr(fair, name, None)) is not None
    ]


def sampled_rows(
    folds: RowsByFold,
    crossed: CrossFitted,
    models: tuple[FairProjection, FairProjection],
    n_scores: int,
    comparison: Comparison,
    seed: int,
) -> SampledRows | None:
    """Scores of a sample of people, about as many of each judged group."""
    judged, codes = np.flatnonzero(comparison.judged).tolist(), folds.people.codes
    if not judged or crossed.rows is None:
        return None
    rng, errors, at = np.random.default_rng(seed), np.full(len(codes), -1.0), folds.people.positions
    errors[crossed.judged] = crossed.rows.errors[0]
    members = {g: np.flatnonzero(codes == g) for g in judged}
    each = max(n_scores // len(judged), 1)
    rows = np.concatenate([np.sort(rng.permutation(own)[:each]) for own in members.values()])
    pca, fair = (scores_of(model, _safe_indexing(folds.values, rows)) for model in models)
    largest = {
        comparison.labels[g]: at[own][np.argsort(-errors[own], kind="stable")[:_LARGEST]]
        for g, own in members.items()
    }
    return SampledRows(at[rows], codes[rows], (pca * _signs(*models))[:, :2], fair[:, :2], largest)


def look_at_columns(
    X: Any, names: Sequence[str], rows: RowErrors, comparison: Comparison
) -> list[DecidingColumn]:
    """Columns that few rows decide, unless there are very many."""
    if len(names) > _MOST_COLUMNS:
        return []
    errors, c = rows.errors[0] * rows.weights, comparison
    return deciding_columns(dense(X), names, errors, rows.codes, c.labels, c.judged, c.thresholds)
