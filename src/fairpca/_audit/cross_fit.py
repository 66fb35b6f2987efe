"""Fit projections or columns without each fold in turn, and measure the errors of that fold.

The moments outside a fold are those of all rows minus those of the fold. A pipeline fits its first
steps without the fold, so every fold has a space of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from fairpca._audit.record import LeftOut
from fairpca._cv.held_out import HeldOut
from fairpca._cv.split import fold_numbers
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_columns import FairColumns
from fairpca._estimators.fair_pca import FairPCA
from fairpca._input import checks, labels
from fairpca._input.folds import FoldRule
from fairpca._input.rows import as_rows, dense_blocks, numeric_columns
from fairpca._input.stream import Input
from fairpca._moments.group_differences import positive_class
from fairpca._moments.group_moments import NEVER, GroupMoments, moments_of_rows
from fairpca._progress import Progress
from fairpca._typing import Array, Codes, Labels, Mask
from fairpca.exceptions import quietly
from fairpca.metrics.reconstruction import flattened

_ROUNDING = 1e-12  # The error of a group below this share of its variation counts as zero.
_NOTHING_LOST = 1e-9  # Nothing is lost if all errors are below this share of the variation.
_PARTS = 5  # Each fold is divided into this number of parts.

#: Estimators that an audit compares with the usual choice, which ignores groups.
Judged = FairProjection | FairColumns

# Moments to fit to and to judge by, positions of the held-out rows, and the projection's input.
Fold = tuple[tuple[GroupMoments, GroupMoments], Codes, Any]


class Folds:
    """Folds of data that are known by moments alone; :class:`People` has the rows too."""

    def __init__(self, moments: GroupMoments, feature_names: Sequence[str] | None) -> None:
        self.moments, self.labels = moments, moments.groups.tolist()
        self.feature_names = list(feature_names or (f"x{j}" for j in range(moments.n_features)))
        self.group_columns: list[str] = []
        self.left_out: list[LeftOut] = []
        self.own_spaces: Sequence[Fold] = ()  # the folds of a pipeline

    def __iter__(self) -> Iterator[Fold]:
        return ((self.moments._split(f), np.arange(0), None) for f in self.moments._folds())


class People(Folds):
    """Rows in memory, without those of weight zero.

    ``given`` holds groups, sample_weight, y and pos_label. ``cv`` is a rule for folds, or a
    splitter whose first repeat is used. ``before`` holds the unfitted steps before the projection:
    the first one takes X, and ``values`` are the rows as they enter the projection. ``with_y`` fits
    it to y as well. ``many_groups`` says that the groups are meant to be many.
    """

    def __init__(
        self,
        X: Any,
        given: Sequence[Any],
        cv: Any,
        before: Pipeline | None,
        with_y: bool = False,
        many_groups: bool = False,
    ) -> None:
        groups, sample_weight, y, pos_label = given
        if groups is None:
            raise TypeError(
                "sensitive_features is missing: pass sensitive_features=groups, one label per row."
            )
        checks.check_same_order(X, sensitive_features=groups, sample_weight=sample_weight, y=y)
        rows, names = None if before is not None else as_rows(X), None
        if rows is not None:
            names = rows.feature_names
            X = X.tocsr() if hasattr(X, "tocsr") else dense(X)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        codes, known = labels.encode_groups(groups, n)
        if not many_groups:
            checks.check_not_continuous(known, np.bincount(codes), "pass groups as text")
        if (table := rows or numeric_columns(X)) is not None and table.feature_names is not None:
            labels.warn_of_group_columns(table, groups)
        weights = checks.check_sample_weight(sample_weight, n)
        weights = np.ones(n) if weights is None else weights
        self.positions = kept = np.flatnonzero(weights)  # among all rows
        self.X = X if len(kept) == n else _safe_indexing(X, kept)
        self.pos_label, self.weights = pos_label, weights[kept]
        self.classes: Labels | None = None
        if y is not None:
            outcomes, classes = labels.encode_outcomes(y, n)
            labels.refuse_counts(classes.tolist(), "pass classes, for example y > threshold")
            positive_class(classes.tolist(), pos_label)  # needed for more than two classes
            self.classes = classes[outcomes[kept]]
        self._target = self.classes if with_y else None
        self.groups = known[codes[kept]]  # the label of each row
        present, self.codes = np.unique(codes[kept], return_inverse=True)
        checks.check_several_groups(known[present].tolist(), len(kept))
        if isinstance(cv, FoldRule):
            folds = cv.folds_of(self.codes, np.zeros(len(present), np.intp))
        else:
            folds = next(fold_numbers(cv, self.codes))
        self._rows = [np.flatnonzero(folds == f) for f in np.unique(folds).tolist() if f != NEVER]
        if len(self._rows) < 2:
            raise ValueError(
                f"none of the {len(present)} groups has two rows, but an audit fits without a part "
                "of the rows and judges that part; pass groups of two rows or more."
            )
        self.values = self.X
        if before is not None:
            self.values, names = self._entering(before, np.arange(len(kept)))
        super().__init__(self.moments_of(self.values, folds), names)
        if before is not None:
            self.own_spaces = [self._own_space(before, rows) for rows in self._rows]
        if len(kept) < n:
            self.left_out = [LeftOut("rows", "", n - len(kept), "weight zero")]
        name = getattr(groups, "name", None)
        columns = getattr(groups, "columns", [] if name is None else [name])
        self.group_columns = [str(column) for column in columns]

    def __iter__(self) -> Iterator[Fold]:
        if self.own_spaces:
            yield from self.own_spaces
        else:
            for fold, rows in zip(self.moments._folds(), self._rows, strict=True):
                yield self.moments._split(fold), rows, _safe_indexing(self.values, rows)

    def moments_of(self, values: Any, folds: Any, rows: Any = slice(None)) -> GroupMoments:
        """Moments by fold of all or some rows; ``values`` holds all rows after the first steps."""
        target = None if self._target is None else self._target[rows]
        values = as_rows(_safe_indexing(values, rows))
        return moments_of_rows(Input(values, self.groups[rows], self.weights[rows], target), folds)

    def _own_space(self, before: Pipeline, rows: Codes) -> Fold:
        """One fold, in the space of the first steps fitted without it."""
        inside = np.full(len(self.codes), NEVER)
        inside[rows] = 0
        values, _ = self._entering(before, np.flatnonzero(inside == NEVER))
        return self.moments_of(values, inside)._split(0), rows, _safe_indexing(values, rows)

    def _entering(self, before: Pipeline, fitted_to: Codes) -> tuple[Any, list[str] | None]:
        """All rows after the first steps, which are fitted to some rows, and the column names."""
        target = None if self._target is None else self._target[fitted_to]
        takes = any(has_fit_parameter(step, "sensitive_features") for step in flattened(before))
        groups = {"sensitive_features": self.groups[fitted_to]} if takes else {}
        with config_context(enable_metadata_routing=takes):  # so that the step gets the groups
            fitted = clone(before).fit(_safe_indexing(self.X, fitted_to), target, **groups)
        try:
            values = fitted.transform(self.X)
        except ValueError as error:
            raise ValueError(
                f"the steps before the projection fail for rows they were not fitted to: {error} "
                "An encoder, for example, needs OneHotEncoder(handle_unknown='ignore')."
            ) from error
        try:
            return values, [str(name) for name in fitted.get_feature_names_out()]
        except (AttributeError, ValueError, TypeError):  # a step cannot name its columns
            return values, None


class Subspace(NamedTuple):
    """How centred and scaled rows are encoded and rebuilt.

    A projection rebuilds rows with its components. If columns are kept, the components are rows of
    the identity, and ``map``, of shape (r, d), rebuilds the rows.
    """

    components: Array
    mean: Array
    scale: Array | float = 1.0
    map: Array | None = None

    @classmethod
    def of(cls, model: Judged) -> Subspace:
        """The projection of a fitted estimator, or its choice of columns."""
        if isinstance(model, FairColumns):
            return cls._keeping(model, model.columns_, model.rebuild_map_)
        return cls(model.components_, model.mean_, model.scale_)

    @classmethod
    def usual(cls, model: Judged, moments: GroupMoments) -> Subspace:
        """The choice that ignores groups: PCA, or the columns of least overall error."""
        if isinstance(model, FairColumns):
            return cls._keeping(model, model.baseline_columns_, model.baseline_rebuild_map_)
        return fit_pca(moments, model.n_components_, model.standardize)

    @classmethod
    def _keeping(cls, model: FairColumns, columns: Codes, rebuild: Array) -> Subspace:
        kept, scale = np.sort(columns), model.scale_
        rebuild = rebuild * scale[kept, None] / scale
        return cls(np.eye(len(scale))[kept], model.mean_, scale, rebuild)

    @property
    def rebuild(self) -> Array:
        """The matrix from scores to columns, of shape (r, d)."""
        return self.components if self.map is None else self.map

    def scores(self, X: Any) -> Array:
        """Scores of rows as they enter the projection, not whitened."""
        blocks = (block for _, block in dense_blocks(as_rows(X)))
        scores = [((block - self.mean) / self.scale) @ self.components.T for block in blocks]
        return np.concatenate(scores)


class CrossFitted(NamedTuple):
    """Errors under the judged projection, the alternative, and any other projections."""

    folds: HeldOut  # for changes, which are paired and depend on the fits
    parts: HeldOut  # for gaps; see measure
    loses: Mask  # whether the errors under each projection are more than rounding
    rows: Codes  # positions of the held-out rows; empty without rows in memory
    errors: Array  # squared errors of these rows, of shape (2, n)
    distances: Array  # squared distances of these rows from the mean


def measure(
    folds: Folds, fit: Callable[[GroupMoments], list[Subspace]], refit: float, progress: Progress
) -> CrossFitted:
    """Measure the errors of each fold under projections that were fitted without it.

    ``fit`` returns the judged projection; the alternative, as the other folds choose it and as all
    folds choose it together; and any others. Rows in memory are also summed up in parts of the
    folds: a gap depends on the people sampled and hardly on the fit, and ten folds alone would make
    intervals half again as wide. ``refit`` is the share that refitting adds to the variance.
    """
    found, odds = [], []
    squares = np.full((3, len(folds.codes) if isinstance(folds, People) else 0), np.nan)
    for number, ((fit_to, judge), rows, values) in enumerate(folds):
        progress("judging by rows left out", number / folds.moments.n_folds)
        projections = fit(fit_to)
        odds.append(judge.weights.sum() / fit_to.weights.sum())
        if isinstance(folds, People):
            errors = row_errors(projections, values)
            squares[:, rows] = errors[[0, 1, -1]]
            k, codes, weights = len(folds.labels), folds.codes[rows], folds.weights[rows]
            cells = k * FoldRule(_PARTS).folds_of(codes, np.zeros(k, np.intp)) + codes
            each = [np.bincount(cells, weights * e, _PARTS * k) for e in (*errors, 1.0)]
            found.append(np.array(each, np.float64).reshape(-1, _PARTS, k).swapaxes(0, 1))
        else:
            first = projections[0]
            scale = np.broadcast_to(first.scale, first.mean.shape)
            own = judge._group_sums().divided(scale)
            if first.map is None:
                bases = [projection.components.T for projection in projections]
                errors, variation = own.errors(bases, first.mean / scale)
            else:  # the residual maps give what is lost, not what is kept
                bases = [np.eye(len(scale)) - p.components.T @ p.rebuild for p in projections]
                kept, variation = own.errors(bases, first.mean / scale)
                errors = variation - kept
            found.append(np.array([[*errors, variation, own.weights]]))
    sums = np.array(found)  # (n_folds, n_parts, n_projections + 2, k), variation and weights last
    by_fold = by_part = _held_out(sums.sum(axis=1), float(np.mean(odds)))
    if isinstance(folds, People):
        sums = np.concatenate(sums)
        # The variance s^2 (1 / F + odds) of F parts is then s^2 / F, and the share for refitting.
        by_part = _held_out(sums, refit / len(sums))
    largest = by_fold.errors.sum(axis=0).max(axis=1)
    loses = largest > _NOTHING_LOST * by_fold.variation.sum(axis=0).max()
    rows = np.flatnonzero(np.isfinite(squares[0]))
    return CrossFitted(by_fold, by_part, loses, rows, squares[:2, rows], squares[2, rows])


def row_errors(projections: list[Subspace], X: Any) -> Array:
    """Squared errors of rows under each projection, then squared distances from the mean."""
    rows, first = as_rows(X), projections[0]
    squares = np.empty((len(projections) + 1, rows.n_rows))
    nothing = first._replace(components=first.components[:0], map=None)
    for place, block in dense_blocks(rows):
        for i, own in enumerate([*projections, nothing]):
            Z = (block - own.mean) / own.scale
            rest = Z - (Z @ own.components.T) @ own.rebuild
            squares[i, place] = np.einsum("ij,ij->i", rest, rest)
    return squares


def _held_out(sums: Array, odds: float) -> HeldOut:
    """Split sums along the second axis into errors, variation and weights."""
    errors, variation, weights = sums[:, :-2], sums[:, -2], sums[:, -1]
    errors = np.where(errors < _ROUNDING * variation[:, None], 0.0, errors)
    measured, others = HeldOut(errors, weights, variation, odds), range(3, errors.shape[1])
    own, together = (measured.projections([0, place, *others]) for place in (1, 2))
    return replace(own, chosen_together=together)


def fit_pca(moments: GroupMoments, rank: int, standardize: bool = False) -> Subspace:
    """Plain PCA of all rows, with fewer components if there are too few rows."""
    rank = int(min(rank, moments.n_features, moments.counts.sum()))
    if np.count_nonzero(moments.counts) == 1:  # the fold holds all rows of the other groups
        all_rows = moments._renamed(dict.fromkeys(moments.groups.tolist(), moments.groups[0]))
        (C,), (mean,) = all_rows.second_moments(center="overall"), all_rows.means
        deviations = np.sqrt(np.diag(C))
        scale = np.where(standardize & (deviations > 0), deviations, 1.0)
        return Subspace(np.linalg.eigh(C / np.outer(scale, scale))[1].T[::-1][:rank], mean, scale)
    many = len(moments.groups)  # the audited estimator has already accepted this number
    pca = FairPCA(rank, alpha=1.0, standardize=standardize, max_groups=many)
    return Subspace.of(fit_quietly(pca, moments))


def fit_quietly(estimator: Judged, moments: GroupMoments, **options: Any) -> Any:
    """Fit a clone without warnings: the audit says how the fit ended, and who pays for it.

    Groups without rows are merged into the largest group.
    """
    labels, counts = moments.groups.tolist(), moments.counts
    largest = labels[int(counts.argmax())]
    moments = moments._renamed({labels[g]: largest for g in np.flatnonzero(counts == 0)})
    with quietly():
        return with_known(estimator, **options).fit(moments)


def with_known(estimator: Judged, **options: Any) -> Any:
    """A clone with those of the parameters that the estimator has."""
    known = {name: options[name] for name in options if name in estimator.get_params(deep=False)}
    return clone(estimator).set_params(**known)


def dense(X: Any) -> Array:
    """X as one array of floats."""
    return np.concatenate([np.array(block, np.float64) for _, block in dense_blocks(as_rows(X))])
