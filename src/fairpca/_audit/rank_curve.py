"""Group errors against the number of components."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.base import clone

from fairpca._audit.figures import RankCurve
from fairpca._estimators.base import FairProjection
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.small_groups import SettledGroups
from fairpca._progress import Progress, silent
from fairpca._typing import Array
from fairpca.exceptions import quietly

_MOST_RANKS = 30
_MANY_FEATURES = 300  # from here on every further rank is worth waiting for


def rank_curve(
    moments: GroupMoments,
    estimator: FairProjection,
    ranks: Sequence[int] | None,
    progress: Progress = silent,
    settled: SettledGroups | None = None,
) -> RankCurve:
    """Fit the estimator at many ranks; see ``ranks`` of :func:`fairpca.audit` for the default.

    ``settled``: what the estimator made of the groups, with folds if it chooses by them.
    """
    settled = estimator._settle(moments) if settled is None else settled
    own = int(estimator.n_components or 1)
    chosen, fits = _chosen_ranks(moments, own, ranks), []
    for i, rank in enumerate(chosen):
        progress("errors against components", i / len(chosen))
        try:
            with quietly():
                model = clone(estimator).set_params(n_components=rank)
                fits.append(model._fit_settled(moments, settled))
        except ValueError:
            if ranks is not None or rank <= own:
                raise
            break  # what the estimator hides leaves no room for more components
    return RankCurve(
        np.array(chosen[: len(fits)]),
        np.array([fit.pca_group_errors_ for fit in fits]),
        np.array([fit.group_errors_ for fit in fits]),
        np.array([fit.pca_reconstruction_error_ for fit in fits]),
        [fit.status_ for fit in fits],
    )


def pca_errors_by_rank(moments: GroupMoments, normalize: bool = False) -> Array:
    """Group errors of plain PCA with 1, 2, ... components, of shape (n_ranks, k)."""
    operand = moments.operand().compact
    operand = operand.relative() if normalize else operand
    assert operand.matrices is not None  # they come from moments
    C = np.tensordot(operand.shares, operand.matrices, axes=1)
    V = np.linalg.eigh(C).eigenvectors[:, ::-1]
    captured = np.einsum("ji,kji->ik", V, operand.products(V)).cumsum(axis=0)
    n_ranks = int(min(moments.n_features, moments.counts.sum()))
    errors = operand.traces - captured
    # Errors this small are rounding errors of zero.
    return np.where(errors > 1e-12 * operand.traces, errors, 0.0)[:n_ranks]


def _chosen_ranks(moments: GroupMoments, r: int, ranks: Sequence[int] | None) -> list[int]:
    d, limit = moments.n_features, int(min(moments.n_features, moments.counts.sum()))
    if ranks is None:
        many = d >= _MANY_FEATURES
        highest = min(limit, max(2 * r, 2 if many else _MOST_RANKS))
        grid = np.geomspace(1, highest, 8 if many else _MOST_RANKS).round().astype(int)
        return sorted({r, *(range(1, limit + 1) if limit <= _MOST_RANKS else grid.tolist())})
    ranks = list(ranks)
    wrong = [rank for rank in ranks if not 1 <= rank <= limit or int(rank) != rank]
    if wrong or not ranks:
        raise ValueError(f"ranks={ranks}: pass integers from 1 to {limit}.")
    return sorted({int(rank) for rank in ranks})
