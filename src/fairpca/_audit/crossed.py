"""Errors of the rows of each fold under choices that were made without it, summed up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fairpca._audit.people import Folds, Pair, People
from fairpca._cv.held_out import HeldOut
from fairpca._input.folds import FoldRule
from fairpca._input.rows import dense
from fairpca._input.units import keyed
from fairpca._linear_map import LinearMap
from fairpca._moments.group_moments import GroupMoments
from fairpca._progress import Progress
from fairpca._sklearn import safe_indexing
from fairpca._typing import Array, Codes, Mask

_ROUNDING = 1e-12  # The error of a group below this share of its variation counts as zero.
_NOTHING_LOST = 1e-9  # Nothing is lost if all errors are below this share of the variation.
_PARTS = 5  # Each fold is divided into this number of parts.
_SALT_OF_PARTS = 2**63 + 5  # unlike any seed, so that parts have nothing to do with folds

#: The choices without a fold, given its number and the moments of the other rows.
Refit = Callable[[int, GroupMoments], list[LinearMap]]


class RowErrors(NamedTuple):
    """Errors of single rows: all held-out rows, or the complete ones if values are missing."""

    rows: Codes  # positions; empty without rows in memory
    errors: Array  # squared errors, of shape (2, n)
    distances: Array  # squared distances from the mean


class Crossed(NamedTuple):
    """Errors under the judged choice, the alternative, and the ranks of a curve."""

    folds: HeldOut  # for changes, which are paired and depend on the fits
    parts: HeldOut  # for gaps; see crossed
    loses: Mask  # whether the errors under each choice are more than rounding
    rows: Codes  # positions of the held-out rows; empty without rows in memory
    errors: Array  # squared errors of these rows, of shape (2, n)
    distances: Array  # squared distances of these rows from the mean
    part_of_rows: Codes  # the part of a fold that each of these rows belongs to
    alone: RowErrors

    def by_part(self, people: People, errors: Array, distances: Array) -> HeldOut:
        """The sums by part of other errors of the same rows."""
        figures = [errors, distances, np.ones(len(errors))]
        n_parts = len(self.parts.errors)
        sums = _summed(people, self.rows, self.part_of_rows, n_parts, figures)
        return HeldOut(sums[:, :1], sums[:, 2], sums[:, 1], self.parts.odds)


def crossed(folds: Folds, refit: Refit, refit_share: float, progress: Progress) -> Crossed:
    """Measure the errors of each fold under choices that were made without it.

    ``refit`` returns the judged choice; the alternative, as the other folds choose it and as all
    folds choose it together; and any others. Rows in memory are also summed up in parts of the
    folds: a gap depends on the people sampled and hardly on the fit, and ten folds alone would make
    intervals half again as wide. ``refit_share`` is the share that refitting adds to the variance.
    """
    found: list[Array] = []
    odds = []
    n_rows = 0
    if isinstance(folds, People):
        n_rows = len(folds.codes)
    squares = np.full((3, n_rows), np.nan)
    of_complete = np.full((3, n_rows), np.nan)
    part_of_rows = np.zeros(n_rows, np.intp)
    for number, pair in enumerate(folds):
        progress("judging by rows left out", number / folds.moments.n_folds)
        maps = refit(number, pair.fit_to)
        odds.append(pair.judge.counts.sum() / pair.fit_to.counts.sum())
        if isinstance(folds, People):
            errors = row_errors(maps, pair.values, folds.observed, folds.codes[pair.rows])
            squares[:, pair.rows] = errors[[0, 1, -1]]
            at = np.flatnonzero(folds.looked_at[pair.rows])
            if folds.observed is not None and len(at):
                complete = safe_indexing(pair.values, at)
                of_complete[:, pair.rows[at]] = row_errors(maps[:2], complete)
            parts = _parts(folds, pair.rows)
            part_of_rows[pair.rows] = number * _PARTS + parts
            figures = [*errors, np.ones(len(parts))]
            found.append(_summed(folds, pair.rows, parts, _PARTS, figures))
        else:
            found.append(by_moments(folds.moments, pair, maps)[None])
    # Of shape (n_folds, n_parts, n_choices + 2, k), variation and weights last.
    sums: Array = np.array(found)
    by_fold = _held_out(sums.sum(axis=1), float(np.mean(odds)))
    by_part = by_fold
    if n_rows:
        # The variance s^2 (1 / F + odds) of F parts is then s^2 / F, and the share for refitting.
        parts = np.concatenate(sums)
        by_part = _held_out(np.asarray(parts, np.float64), refit_share / len(parts))
    largest = by_fold.errors.sum(axis=0).max(axis=1)
    loses = largest > _NOTHING_LOST * by_fold.variation.sum(axis=0).max()
    rows = np.flatnonzero(np.isfinite(squares[0]))
    every = RowErrors(rows, squares[:2, rows], squares[2, rows])
    alone = every
    if isinstance(folds, People) and folds.observed is not None:
        complete = np.flatnonzero(np.isfinite(of_complete[0]))
        alone = RowErrors(complete, of_complete[:2, complete], of_complete[2, complete])
    return Crossed(by_fold, by_part, loses, *every, part_of_rows[rows], alone)


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


def _parts(people: People, rows: Codes) -> Codes:
    """The part of its fold that each row belongs to; rows of one unit belong to one part."""
    if people.units is not None:
        return keyed(people.units[rows], _SALT_OF_PARTS, _PARTS)
    seen = np.zeros(len(people.labels), np.intp)
    return FoldRule(_PARTS).folds_of(people.codes[rows], seen)


def _summed(
    people: People, rows: Codes, parts: Codes, n_parts: int, figures: Sequence[Array]
) -> Array:
    """Weighted sums of figures of rows by part and group, of shape (n_parts, n_figures, k)."""
    k = len(people.labels)
    cells = k * parts + people.codes[rows]
    weights = people.weights[rows]
    each = [np.bincount(cells, weights * own, n_parts * k) for own in figures]
    return np.array(each, np.float64).reshape(-1, n_parts, k).swapaxes(0, 1)


def by_moments(moments: GroupMoments, pair: Pair, maps: list[LinearMap]) -> Array:
    """The same sums, of shape (n_choices + 2, k), where moments are all that is known."""
    sums = pair.judge.group_sums()
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
