"""PCA and its alternative, fitted without each fold in turn, and the errors of the rows left out.

A fold is a pair: moments to fit to, and rows (or moments) to judge by. Rows in memory and files
give the moments by subtraction. A pipeline gives them by fitting its first steps without the fold
and transforming, so every fold has a space of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from fairpca._audit.group_results import RowErrors
from fairpca._audit.record import LeftOut
from fairpca._cv.held_out import HeldOut
from fairpca._cv.leave_out import left_out_errors
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV
from fairpca._input.checks import check_sample_weight, check_several_groups
from fairpca._input.folds import FoldRule
from fairpca._input.labels import encode_groups, encode_outcomes, refuse_counts
from fairpca._input.rows import as_rows, dense_blocks
from fairpca._moments.group_differences import positive_class
from fairpca._moments.group_moments import GroupMoments
from fairpca._progress import Progress, silent
from fairpca._typing import Array, Codes, Labels
from fairpca.exceptions import quietly

_ROUNDING = 1e-12  # of the variation: such errors are those of losing nothing
_PARTS = 5  # of each fold
# What the fits add to the variance of a gap, as a share of what the people make up. With it 95 %
# intervals held .93 to .98 in simulations (normal, lognormal, clusters; 160 + 40 to 1000 + 200
# rows), and .91 for 39 rows of lognormal features.
_REFIT = 0.25


class FoldRows(NamedTuple):
    """One fold: moments to fit to and to judge by; its rows as they enter the projection."""

    fit_to: GroupMoments
    judge: GroupMoments
    values: Any = None
    rows: Codes | None = None  # their positions


class MomentsByFold:
    """The folds of moments, for files that do not fit into memory."""

    def __init__(self, moments: GroupMoments, feature_names: Sequence[str] | None) -> None:
        n = moments.n_features
        self.moments, self.n_folds = moments, moments.n_folds
        self.feature_names = list(feature_names or (f"x{j}" for j in range(n)))

    def __iter__(self) -> Iterator[FoldRows]:
        return map(self._fold, range(self.n_folds))

    @property
    def pairs(self) -> list[tuple[GroupMoments, GroupMoments]]:
        """Moments of the folds, where each has a space of its own; otherwise nothing."""
        return []

    def _fold(self, number: int) -> FoldRows:
        return FoldRows(*self.moments._split(number))


@dataclass(frozen=True)
class People:
    """The rows in memory that count, of shape (n, ...); ``before`` is not fitted."""

    X: Any  # array, CSR matrix or data frame
    codes: Codes  # the group of each row
    labels: Labels
    weights: Array
    positions: Codes  # among all rows, those of weight zero included
    classes: Labels | None  # of y
    group_columns: Sequence[str]
    left_out: Sequence[LeftOut]
    names: Sequence[str] | None = None  # the columns of X
    before: Pipeline | None = None  # steps before the projection
    with_target: bool = False  # whether the classes are fitted to as well

    @classmethod
    def read(
        cls, X: Any, groups: Any, sample_weight: Any, y: Any, pos_label: Any, **how: Any
    ) -> People:
        """Check what belongs to the rows, and leave out rows of weight zero."""
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        codes, labels = encode_groups(groups, n)
        check_several_groups(labels.tolist(), n)
        classes = None if y is None else outcome_classes(y, n, pos_label)
        given = check_sample_weight(sample_weight, n)
        weights = np.ones(n) if given is None else given
        kept, left_out = np.flatnonzero(weights), []
        if len(kept) < n:
            left_out = [LeftOut("rows", "", n - len(kept), "weight zero")]
            X, classes = _safe_indexing(X, kept), None if classes is None else classes[kept]
        columns = _column_names(groups)
        return cls(X, codes[kept], labels, weights[kept], kept, classes, columns, left_out, **how)

    @property
    def target(self) -> Labels | None:
        """What is fitted to besides X."""
        return self.classes if self.with_target else None

    def moments(self, values: Any, folds: Codes | None) -> GroupMoments:
        """Moments of all rows as they enter the projection, by fold."""
        labels = self.labels[self.codes]
        return GroupMoments().update(values, labels, self.weights, self.target, folds=folds)

    def entering(self, fitted_to: Codes) -> tuple[Any, Any]:
        """All rows as they enter the projection, if the first steps are fitted to some of them."""
        if self.before is None:
            return self.X, self.names
        target = None if self.target is None else _safe_indexing(self.target, fitted_to)
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


def outcome_classes(y: Any, n_rows: int, pos_label: Any) -> Labels:
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


def _column_names(groups: Any) -> list[str]:
    """The names of the columns of groups, where they have names."""
    if hasattr(groups, "columns"):
        return [str(name) for name in groups.columns]
    name = getattr(groups, "name", None)
    return [] if name is None else [str(name)]


class RowsByFold(MomentsByFold):
    """The folds of rows in memory; rows of fold -1 are never left out."""

    def __init__(self, people: People, folds: Codes) -> None:
        self.people, self._folds = people, folds
        self.values, names = people.entering(np.arange(len(folds)))
        super().__init__(people.moments(self.values, folds), names)

    @property
    def pairs(self) -> list[tuple[GroupMoments, GroupMoments]]:
        """Moments of the folds, where each has a space of its own; otherwise nothing."""
        return [] if self.people.before is None else [(f.fit_to, f.judge) for f in self._prepared]

    def __iter__(self) -> Iterator[FoldRows]:
        return super().__iter__() if self.people.before is None else iter(self._prepared)

    @cached_property
    def _prepared(self) -> list[FoldRows]:
        return list(super().__iter__())

    def _fold(self, number: int) -> FoldRows:
        inside = self._folds == number
        rows, values, moments = np.flatnonzero(inside), self.values, self.moments
        if self.people.before is not None:
            values, _ = self.people.entering(np.flatnonzero(~inside))
            moments, number = self.people.moments(values, inside.astype(np.intp)), 1
        return FoldRows(*moments._split(number), _safe_indexing(values, rows), rows)


class CrossFitted(NamedTuple):
    """Errors of rows under projections fitted without them.

    The projections are PCA at ``ranks``, then PCA and the alternative at the rank of the audit.
    """

    ranks: Sequence[int]
    folds: HeldOut  # for changes, which are paired and hang on the fits
    parts: HeldOut  # for gaps; see below
    rows: RowErrors | None
    judged: Codes | None  # positions of these rows

    def pair(self, of: HeldOut) -> HeldOut:
        """PCA and the alternative."""
        return of.projections([len(self.ranks), len(self.ranks) + 1])


def cross_fit(
    folds: MomentsByFold,
    estimator: FairProjection,
    fair: FairProjection,
    ranks: Sequence[int],
    is_pca: bool = False,
    progress: Progress = silent,
) -> CrossFitted:
    """Fit PCA and the estimator without each fold, and measure the errors of the fold.

    ``fair`` is the estimator fitted to all rows, and may be PCA itself. Rows in memory are also
    summed up in parts of the folds: a gap between groups hangs on who the people are, hardly on the
    fit, and ten folds alone would give intervals that are half as wide again as needed.
    """
    rank, k, again = fair.n_components_, len(folds.moments.groups), None
    if isinstance(fair, FairPCACV) and not is_pca:
        again = fair.fold_components(folds.moments, folds.pairs)
    sums, odds, by_row, places = [], [], [], []
    for number, fold in enumerate(folds):
        progress("judging by rows left out", number / folds.n_folds)
        pca = fit_pca(fold.fit_to, max([rank, *ranks]), fair.standardize)
        kept = [pca.components_[:r] for r in (*ranks, rank, rank)]
        if not is_pca:
            kept[-1] = _refit(estimator, fair, fold.fit_to) if again is None else next(again)
        odds.append(fold.judge.weights.sum() / fold.fit_to.weights.sum())
        if isinstance(folds, RowsByFold) and fold.rows is not None:
            squares = row_errors(pca, kept, fold.values)
            by_row.append(squares[-3:])
            places.append(fold.rows)
            sums.append(sums_of_parts(squares, folds.people, fold.rows, _PARTS))
        else:
            errors, *rest = left_out_errors(fold.judge, [u.T for u in kept], pca.mean_, pca.scale_)
            sums.append(np.array([[*errors, *rest[::-1]]]))
    total = np.array(sums)  # (n_folds, n_parts, n_projections + 2, k), variation and weights last
    n_parts, by_fold = total.shape[0] * total.shape[1], total.sum(axis=1)
    whole = _held_out(by_fold, float(np.mean(odds)))
    if not isinstance(folds, RowsByFold):
        return CrossFitted(ranks, whole, whole, None, None)
    parts = _held_out(total.reshape(n_parts, -1, k), _REFIT / n_parts)
    squares, judged, people = np.concatenate(by_row, axis=1), np.concatenate(places), folds.people
    rows = RowErrors(squares[:2], squares[2], people.codes[judged], people.weights[judged])
    return CrossFitted(ranks, whole, parts, rows, judged)


def sums_of_parts(
    squares: Array, people: People, rows: Codes, n_parts: int, salt: int = 0
) -> Array:
    """Weighted sums by part of the rows and group, of shape (n_parts, len(squares) + 1, k).

    The last of them are the weights.
    """
    k, codes, weights = len(people.labels), people.codes[rows], people.weights[rows]
    part = FoldRule(n_parts, salt).folds_of(codes, np.zeros(k, np.intp))
    cells, size = part * k + codes, n_parts * k
    values = (*squares, np.ones(len(rows)))
    sums = [np.bincount(cells, weights * value, minlength=size) for value in values]
    return np.array(sums, np.float64).reshape(-1, n_parts, k).transpose(1, 0, 2)


def _held_out(sums: Array, odds: float) -> HeldOut:
    """From errors, variation and weights, along the second axis."""
    errors, variation, weights = sums[:, :-2], sums[:, -2], sums[:, -1]
    errors = np.where(errors < _ROUNDING * variation[:, None], 0.0, errors)
    return HeldOut(errors, weights, variation, odds)


def fit_pca(moments: GroupMoments, rank: int, standardize: bool = False) -> FairPCA:
    """Plain PCA of all rows; with fewer components where there are not enough rows."""
    moments = _without_empty_groups(moments)
    rank = int(min(rank, moments.n_features, moments.counts.sum()))
    many = max(len(moments.groups), 2)  # the audited estimator has decided how many it compares
    with quietly():
        pca = FairPCA(rank, alpha=1.0, standardize=standardize, max_groups=many)
        return pca.fit_moments(moments)


def fit_quietly(estimator: FairProjection, moments: GroupMoments, **options: Any) -> FairProjection:
    """Fit a clone without warnings: the audit says how the fit ended, and who pays for it."""
    model: FairProjection = clone(estimator).set_params(**options)
    with quietly():
        return model.fit_moments(_without_empty_groups(moments))


def _refit(estimator: FairProjection, fair: FairProjection, moments: GroupMoments) -> Array:
    """The components of the estimator without a fold, for the same rank and groups.

    A group that is large enough may be too small without the fold, so the limit is lowered.
    """
    options: dict[str, Any] = {"n_components": fair.n_components_}
    sizes = dict(zip(moments.groups.tolist(), moments.counts.tolist(), strict=True))
    compared = [size for label, size in sizes.items() if label not in fair.small_groups_]
    if len([size for size in compared if size]) < 2:  # nobody is left to be fair to
        return np.asarray(fit_pca(moments, fair.n_components_, fair.standardize).components_)
    if "min_group_size" in estimator.get_params():
        options["min_group_size"] = max(min(compared), 1)
    return np.asarray(fit_quietly(estimator, moments, **options).components_)


def _without_empty_groups(moments: GroupMoments) -> GroupMoments:
    """The same moments; a group of which no row is left becomes a part of another."""
    empty = moments.counts == 0
    labels = moments.groups.tolist()
    other = labels[int(moments.counts.argmax())]
    return moments._renamed({labels[g]: other for g in np.flatnonzero(empty)})


def row_errors(model: Any, kept: Sequence[Array], X: Any) -> Array:
    """Squared errors of rows under several projections, and their squared distances to the mean.

    The projections have these components, and mean and scale of the model.
    """
    rows = as_rows(X)
    squares = np.empty((len(kept) + 1, rows.n_rows))
    for place, block in dense_blocks(rows):
        Z = (block - model.mean_) / getattr(model, "scale_", 1.0)
        for i, components in enumerate(kept):
            rest = Z - (Z @ components.T) @ components
            squares[i, place] = np.einsum("ij,ij->i", rest, rest)
        squares[-1, place] = np.einsum("ij,ij->i", Z, Z)
    return squares


def scores_of(model: Any, X: Any) -> Array:
    """Scores of rows as they enter the projection, not whitened."""
    scale = getattr(model, "scale_", 1.0)
    blocks = (block for _, block in dense_blocks(as_rows(X)))
    return np.concatenate([((b - model.mean_) / scale) @ model.components_.T for b in blocks])


def dense(X: Any) -> Array:
    """X as one array of floats."""
    X = X.toarray() if hasattr(X, "toarray") else X
    return np.concatenate([np.array(block, np.float64) for _, block in dense_blocks(as_rows(X))])
