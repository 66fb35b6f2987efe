"""Projections fitted without each fold in turn, and the errors of the rows left out.

A fold is a pair: moments to fit to, and rows (or moments) to judge by. Rows in memory and files
give the moments by subtraction. A pipeline gives them by fitting its first steps without the fold
and transforming, so every fold has a space of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from fairpca._audit.record import LeftOut
from fairpca._cv.held_out import HeldOut
from fairpca._cv.leave_out import left_out_errors, split_by_fold, without_empty_groups
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._input.checks import check_sample_weight, check_several_groups
from fairpca._input.folds import FoldRule
from fairpca._input.labels import encode_groups, encode_outcomes, refuse_counts
from fairpca._input.rows import as_rows, dense_blocks
from fairpca._moments.group_differences import positive_class
from fairpca._moments.group_moments import NEVER, GroupMoments, moments_of_rows
from fairpca._progress import Progress, silent
from fairpca._typing import Array, Codes, Labels
from fairpca.exceptions import quietly

_ROUNDING = 1e-12  # of the variation: such errors are those of losing nothing
_PARTS = 5  # of each fold


class People:
    """The rows in memory that count, without those of weight zero.

    ``before`` are steps before the projection, not fitted; then X is what the first of them takes.
    With ``with_target``, projections are fitted to y as well.
    """

    def __init__(
        self,
        X: Any,
        groups: Any,
        sample_weight: Any,
        y: Any,
        pos_label: Any,
        before: Pipeline | None = None,
        with_target: bool = False,
    ) -> None:
        self.names: list[str] | None = None
        if before is None:
            self.names = as_rows(X).feature_names
            X = X.tocsr() if hasattr(X, "tocsr") else dense(X)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        codes, labels = encode_groups(groups, n)
        classes = None if y is None else _outcome_classes(y, n, pos_label)
        given = check_sample_weight(sample_weight, n)
        weights = np.ones(n) if given is None else given
        kept = np.flatnonzero(weights)
        self.left_out: list[LeftOut] = []
        if len(kept) < n:
            self.left_out.append(LeftOut("rows", "", n - len(kept), "weight zero"))
            X, classes = _safe_indexing(X, kept), None if classes is None else classes[kept]
        self.X, self.before, self.pos_label = X, before, pos_label
        self.classes, self.target = classes, classes if with_target else None
        present, self.codes = np.unique(codes[kept], return_inverse=True)
        self.labels, self.weights = labels[present], weights[kept]
        check_several_groups(self.labels.tolist(), len(kept))
        self.positions = kept  # among all rows
        columns = getattr(groups, "columns", None)
        if columns is None:
            columns = [] if getattr(groups, "name", None) is None else [groups.name]
        self.group_columns = [str(column) for column in columns]

    def moments(self, values: Any, folds: Any, rows: Codes | None = None) -> GroupMoments:
        """Moments by fold of all or some rows; ``values`` are all, as they enter the projection."""
        groups, weights, target = self.labels[self.codes], self.weights, self.target
        if rows is not None:
            values, groups, weights = _safe_indexing(values, rows), groups[rows], weights[rows]
            target = None if target is None else target[rows]
        return moments_of_rows(as_rows(values), groups, weights, target, folds)

    def entering(self, fitted_to: Codes) -> tuple[Any, list[str] | None]:
        """All rows as they enter the projection, if the first steps are fitted to some of them."""
        if self.before is None:
            return self.X, self.names
        target = None if self.target is None else self.target[fitted_to]
        before = clone(self.before).fit(_safe_indexing(self.X, fitted_to), target)
        try:
            values = before.transform(self.X)
        except ValueError as error:
            raise ValueError(
                f"the steps before the projection fail for rows they were not fitted to: {error} "
                "An encoder, for example, needs OneHotEncoder(handle_unknown='ignore')."
            ) from error
        try:
            return values, [str(name) for name in before.get_feature_names_out()]
        except (AttributeError, ValueError, TypeError):  # a step cannot name its columns
            return values, None


def _outcome_classes(y: Any, n_rows: int, pos_label: Any) -> Labels:
    """The class of each row: one of two, or of several if one of them is the positive one."""
    codes, labels = encode_outcomes(y, n_rows)
    classes = labels.tolist()
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only ({classes[0]!r}), so there is nothing to predict; pass y with "
            "two classes or more."
        )
    refuse_counts(classes, "pass classes, for example y > threshold")
    positive_class(classes, pos_label)
    return labels[codes]


class AuditFold(NamedTuple):
    """Moments to fit to and to judge by; the rows left out as they enter the projection."""

    fit_to: GroupMoments
    judge: GroupMoments
    values: Any = None
    rows: Codes | None = None  # their positions


class Folds:
    """The folds of what is audited: moments by fold, or rows in memory.

    ``moments`` are those of all rows, ``values`` all rows, and ``feature_names`` the columns, as
    they enter the projection. ``people`` is None for files that do not fit into memory.
    """

    def __init__(
        self, source: GroupMoments | People, folds: FoldRule | Codes | None = None
    ) -> None:
        self.people: People | None = None
        self.values: Any = None
        if isinstance(source, GroupMoments):
            self.moments, names = source, source.feature_names
        else:
            if isinstance(folds, FoldRule):
                folds = folds.folds_of(source.codes, np.zeros(len(source.labels), np.intp))
            self.people, self._fold_of_row = source, np.asarray(folds)
            self.values, names = source.entering(np.arange(len(source.codes)))
            self.moments = source.moments(self.values, folds)
        self.feature_names = list(names or (f"x{j}" for j in range(self.moments.n_features)))

    def __iter__(self) -> Iterator[AuditFold]:
        if self.people is None:
            yield from (AuditFold(*pair) for pair in split_by_fold(self.moments))
        elif self.people.before is not None:
            yield from self.own_spaces
        else:
            pairs = split_by_fold(self.moments)
            for pair, rows in zip(pairs, self._rows(), strict=True):
                yield AuditFold(*pair, _safe_indexing(self.values, rows), rows)

    @cached_property
    def own_spaces(self) -> list[AuditFold]:
        """The folds of a pipeline, each in a space of its own; otherwise nothing."""
        people, found = self.people, []
        if people is None or people.before is None:
            return []
        for rows in self._rows():
            inside = np.full(len(people.codes), NEVER)
            inside[rows] = 0
            values, _ = people.entering(np.flatnonzero(inside == NEVER))
            (pair,) = split_by_fold(people.moments(values, inside))
            found.append(AuditFold(*pair, _safe_indexing(values, rows), rows))
        return found

    def _rows(self) -> list[Codes]:
        """The rows of each fold; some rows may never be left out."""
        folds = self._fold_of_row
        return [np.flatnonzero(folds == f) for f in np.unique(folds).tolist() if f != NEVER]


class Projection(NamedTuple):
    """The orthogonal projection through a mean, of columns divided by a scale."""

    components: Array
    mean: Array
    scale: Array | float = 1.0

    @classmethod
    def of(cls, model: FairProjection) -> Projection:
        """The projection of a fitted estimator."""
        return cls(model.components_, model.mean_, model.scale_)


class RowErrors(NamedTuple):
    """Squared errors of n rows under what is judged and under the alternative."""

    errors: Array  # of shape (2, n)
    distances: Array  # squared, from the mean
    codes: Codes
    weights: Array
    rows: Codes  # positions among the people


class CrossFitted(NamedTuple):
    """Errors under what is judged, under the alternative, and under any other projections."""

    folds: HeldOut  # for changes, which are paired and hang on the fits
    parts: HeldOut  # for gaps; see below
    rows: RowErrors  # none without rows in memory


def cross_fit(
    folds: Folds,
    fit: Callable[[AuditFold], Sequence[Projection]],
    refit: float,
    progress: Progress = silent,
) -> CrossFitted:
    """Measure the errors of each fold under projections that were fitted without it.

    ``fit`` returns what is judged; the alternative, as the other folds choose it and as all folds
    choose it together; and any others. Rows in memory are also summed up in parts of the folds: a
    gap between groups hangs on who the people are, hardly on the fit, and ten folds alone would
    give intervals that are half as wide again as needed. ``refit`` is what the fits add to the
    variance of a gap, as a share of what the people make up.
    """
    people, sums, odds = folds.people, [], []
    squares = np.full((3, 0 if people is None else len(people.codes)), np.nan)
    for number, fold in enumerate(folds):
        progress("judging by rows left out", number / folds.moments.n_folds)
        projections = fit(fold)
        odds.append(fold.judge.weights.sum() / fold.fit_to.weights.sum())
        if people is None or fold.rows is None:
            bases = [projection.components.T for projection in projections]
            scale = np.broadcast_to(projections[0].scale, projections[0].mean.shape)
            errors, *rest = left_out_errors(fold.judge, bases, projections[0].mean, scale)
            sums.append(np.array([[*errors, *rest[::-1]]]))
        else:
            found = row_errors(projections, fold.values)
            squares[:, fold.rows] = found[[0, 1, -1]]
            sums.append(_sums_of_parts(found, people, fold.rows))
    total = np.array(sums)  # (n_folds, n_parts, n_projections + 2, k), variation and weights last
    by_fold = _held_out(total.sum(axis=1), float(np.mean(odds)))
    rows = np.flatnonzero(np.isfinite(squares[0]))
    if people is None:
        none = RowErrors(squares[:2], squares[2], rows, squares[2], rows)
        return CrossFitted(by_fold, by_fold, none)
    n_parts = total.shape[0] * total.shape[1]
    parts = _held_out(total.reshape(n_parts, *total.shape[2:]), refit / n_parts)
    own = people.codes[rows], people.weights[rows], rows
    return CrossFitted(by_fold, parts, RowErrors(squares[:2, rows], squares[2, rows], *own))


def row_errors(projections: Sequence[Projection], X: Any) -> Array:
    """Squared errors of rows under each projection, and squared distances to the first's mean."""
    rows = as_rows(X)
    squares = np.empty((len(projections) + 1, rows.n_rows))
    for place, block in dense_blocks(rows):
        before: Array | None = None
        for i, (components, mean, scale) in enumerate(projections):
            if mean is not before:
                Z, before = (block - mean) / scale, mean
            rest = Z - (Z @ components.T) @ components
            squares[i, place] = np.einsum("ij,ij->i", rest, rest)
            if i == 0:
                squares[-1, place] = np.einsum("ij,ij->i", Z, Z)
    return squares


def _sums_of_parts(squares: Array, people: People, rows: Codes) -> Array:
    """Weighted sums by part of a fold and group, of shape (n_parts, len(squares) + 1, k).

    The last of them are the weights.
    """
    k, codes, weights = len(people.labels), people.codes[rows], people.weights[rows]
    part = FoldRule(_PARTS).folds_of(codes, np.zeros(k, np.intp))
    values = (*squares, np.ones(len(rows)))
    sums = [np.bincount(part * k + codes, weights * v, minlength=_PARTS * k) for v in values]
    return np.array(sums, np.float64).reshape(-1, _PARTS, k).transpose(1, 0, 2)


def _held_out(sums: Array, odds: float) -> HeldOut:
    """From errors, variation and weights, along the second axis."""
    errors, variation, weights = sums[:, :-2], sums[:, -2], sums[:, -1]
    errors = np.where(errors < _ROUNDING * variation[:, None], 0.0, errors)
    measured, others = HeldOut(errors, weights, variation, odds), range(3, errors.shape[1])
    together = None
    if (errors[:, 1] != errors[:, 2]).any():
        together = measured.projections([0, 2, *others])
    return replace(measured.projections([0, 1, *others]), chosen_together=together)


def fit_pca(moments: GroupMoments, rank: int, standardize: bool = False) -> FairProjection:
    """Plain PCA of all rows; with fewer components where there are not enough rows."""
    rank = int(min(rank, moments.n_features, moments.counts.sum()))
    many = max(len(moments.groups), 2)  # the audited estimator has decided how many it compares
    return fit_quietly(FairPCA(rank, alpha=1.0, standardize=standardize, max_groups=many), moments)


def fit_quietly(estimator: FairProjection, moments: GroupMoments, **options: Any) -> FairProjection:
    """Fit a clone without warnings: the audit says how the fit ended, and who pays for it."""
    model: FairProjection = clone(estimator).set_params(**options)
    with quietly():
        return model.fit_moments(without_empty_groups(moments))


def scores_of(projection: Projection, X: Any) -> Array:
    """Scores of rows as they enter the projection, not whitened."""
    components, mean, scale = projection
    blocks = (block for _, block in dense_blocks(as_rows(X)))
    return np.concatenate([((block - mean) / scale) @ components.T for block in blocks])


def dense(X: Any) -> Array:
    """X as one array of floats."""
    return np.concatenate([np.array(block, np.float64) for _, block in dense_blocks(as_rows(X))])
