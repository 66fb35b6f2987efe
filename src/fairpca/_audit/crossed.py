"""Errors of the rows of each fold under choices that were made without it, summed up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from fairpca._audit.people import Folds, Pair, People
from fairpca._cv.held_out import HeldOut
from fairpca._input.folds import FoldRule
from fairpca._input.rows import dense
from fairpca._input.units import keyed
from fairpca._linear_map import LinearMap
from fairpca._moments.group_moments import GroupMoments
from fairpca._progress import Progress
from fairpca._typing import Array, Codes, Mask

_ROUNDING = 1e-12  # The error of a group below this share of its variation counts as zero.
_NOTHING_LOST = 1e-9  # Nothing is lost if all errors are below this share of the variation.
_PARTS = 5  # Each fold is divided into this number of parts.
_SALT_OF_PARTS = 2**63 + 5  # unlike any seed, so that parts have nothing to do with folds

#: The choices without a fold, given its number and the moments of the other rows.
Refit = Callable[[int, GroupMoments], list[LinearMap]]


class Crossed(NamedTuple):
    """Errors under the judged choice, the alternative, and the ranks of a curve."""

    folds: HeldOut  # for changes, which are paired and depend on the fits
    parts: HeldOut  # for gaps; see crossed
    loses: Mask  # whether the errors under each choice are more than rounding
    rows: Codes  # positions of the held-out rows; empty without rows in memory
    errors: Array  # squared errors of these rows, of shape (2, n)
    distances: Array  # squared distances of these rows from the mean


def crossed(folds: Folds, refit: Refit, refit_share: float, progress: Progress) -> Crossed:
    """Measure the errors of each fold under choices that were made without it.

    ``refit`` returns the judged choice; the alternative, as the other folds choose it and as all
    folds choose it together; and any others. Rows in memory are also summed up in parts of the
    folds: a gap depends on the people sampled and hardly on the fit, and ten folds alone would make
    intervals half again as wide. ``refit_share`` is the share that refitting adds to the variance.
    """
    found = []
    odds = []
    n_rows = len(folds.codes) if isinstance(folds, People) else 0
    squares = np.full((3, n_rows), np.nan)
    for number, pair in enumerate(folds):
        progress("judging by rows left out", number / folds.moments.n_folds)
        maps = refit(number, pair.fit_to)
        odds.append(pair.judge.counts.sum() / pair.fit_to.counts.sum())
        if isinstance(folds, People):
            errors = row_errors(maps, pair.values, folds.observed, folds.codes[pair.rows])
            squares[:, pair.rows] = errors[[0, 1, -1]]
            if folds.observed is not None:
                squares[:, pair.rows] = np.nan
                at = np.flatnonzero(folds.looked_at[pair.rows])
                if len(at):
                    complete = _safe_indexing(pair.values, at)
                    squares[:, pair.rows[at]] = row_errors(maps[:2], complete)
            found.append(_by_part(folds, pair, errors))
        else:
            found.append(_by_moments(folds.moments, pair, maps)[None])
    sums = np.array(found)  # (n_folds, n_parts, n_choices + 2, k), variation and weights last
    by_fold = _held_out(sums.sum(axis=1), float(np.mean(odds)))
    by_part = by_fold
    if n_rows:
        # The variance s^2 (1 / F + odds) of F parts is then s^2 / F, and the share for refitting.
        parts = np.concatenate(sums)
        by_part = _held_out(parts, refit_share / len(parts))
    largest = by_fold.errors.sum(axis=0).max(axis=1)
    loses = largest > _NOTHING_LOST * by_fold.variation.sum(axis=0).max()
    rows = np.flatnonzero(np.isfinite(squares[0]))
    return Crossed(by_fold, by_part, loses, rows, squares[:2, rows], squares[2, rows])


def row_errors(
    maps: list[LinearMap], X: Any, observed: Array | None = None, codes: Codes | None = None
) -> Array:
    """Squared errors of rows under each map, then squared distances from the mean of the first.

    With missing values, ``observed`` says how often the groups have each pair of columns.
    """
    if observed is None or codes is None:
        each = [own.errors(X) for own in maps]
    else:
        each = [own.errors_observed(dense(X), codes, observed) for own in maps]
    return np.array([*(errors for errors, _ in each), each[0][1]])


def _by_part(people: People, pair: Pair, errors: Array) -> Array:
    """Sums of errors, of variation and of weights by part of a fold and group."""
    k = len(people.labels)
    codes = people.codes[pair.rows]
    weights = people.weights[pair.rows]
    if people.units is None:
        parts = FoldRule(_PARTS).folds_of(codes, np.zeros(k, np.intp))
    else:
        parts = keyed(people.units[pair.rows], _SALT_OF_PARTS, _PARTS)
    cells = k * parts + codes
    each = [np.bincount(cells, weights * own, _PARTS * k) for own in errors]
    each.append(np.bincount(cells, weights, _PARTS * k))
    return np.array(each, np.float64).reshape(-1, _PARTS, k).swapaxes(0, 1)


def _by_moments(moments: GroupMoments, pair: Pair, maps: list[LinearMap]) -> Array:
    """The same sums, of shape (n_choices + 2, k), where moments are all that is known."""
    sums = pair.judge._group_sums()
    each = [own.group_errors(moments.completed(sums, own.mean)) for own in maps]
    return np.array([*(errors for errors, _ in each), each[0][1], sums.weights])


def _held_out(sums: Array, odds: float) -> HeldOut:
    """Split sums along the second axis into errors, variation and weights."""
    variation = sums[:, -2]
    errors = sums[:, :-2]
    errors = np.where(errors < _ROUNDING * variation[:, None], 0.0, errors)
    measured = HeldOut(errors, sums[:, -1], variation, odds)
    others = range(3, errors.shape[1])
    own = measured.projections([0, 1, *others])
    return replace(own, chosen_together=measured.projections([0, 2, *others]))
