"""What anybody's model makes of rows: the scores, and the rows rebuilt from them.

An orthogonal projection is a :class:`~fairpca._linear_map.LinearMap`. Of every other model only
the outputs are known; :class:`Rebuilt` holds them for the rows of an audit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.linear_model import LinearRegression

from fairpca._audit.people import People
from fairpca._input.folds import FoldRule
from fairpca._input.rows import NumericTarget, dense
from fairpca._input.stream import Input, Stream
from fairpca._linear_map import (
    FittedMap,
    LinearMap,
    fitted_map,
    flattened,
    has_map,
    refuse_unfitted,
)
from fairpca._moments.any_sums import AnySums
from fairpca._moments.group_moments import GroupMoments
from fairpca._typing import Array

_PAIR = "audit_model((X, rebuilt), sensitive_features=groups)"


class Opened(NamedTuple):
    """A model, and rows as they arrive at the step of it that is judged."""

    text: str  # the model as code
    step: Any
    seen: Any  # in the units in which errors are measured
    own: LinearMap | None = None  # of an orthogonal projection
    scores: Array | None = None
    rebuilt: Array | None = None  # None: rebuilt from the scores by least squares


class Rebuilt:
    """The rows of an audit, and what a model that is no projection makes of them.

    Scores alone are turned into rows by least squares, fitted without the fold of each row.
    """

    def __init__(self, found: Opened, people: People) -> None:
        self.people = people
        self.values = dense(people.values)
        made: Any = found.scores
        self.scores = made[people.positions]
        if found.rebuilt is None:
            self.rebuilt = _by_least_squares(self.scores, self.values, people)
        else:
            self.rebuilt = found.rebuilt[people.positions]
        self.mean = np.average(self.values, axis=0, weights=people.weights)
        self.squares = (self.values - self.rebuilt) ** 2

    def of_fold(self, fold: int) -> OfRows:
        """The errors of the rows of a fold, and their distances from the mean."""
        rows = self.people.rows_of_folds[fold]
        distances = ((self.values[rows] - self.mean) ** 2).sum(axis=1)
        return OfRows(self.squares[rows].sum(axis=1), distances)

    def column_errors(self) -> Array:
        """The mean squared error of each group on each column, (k, d)."""
        return self._by_group(self.squares)

    def column_variances(self) -> Array:
        """The mean squared distance of each group from the mean in each column, (k, d)."""
        return self._by_group((self.values - self.mean) ** 2)

    def _by_group(self, squares: Array) -> Array:
        people = self.people
        own = [people.codes == g for g in range(len(people.labels))]
        return np.array([np.average(squares[g], axis=0, weights=people.weights[g]) for g in own])

    def moments_of_scores(self) -> GroupMoments:
        """The moments of the scores."""
        return self.people.moments_of(self.scores, None)

    def rank_beside(self) -> int:
        """How many components PCA gets beside the model: as many as the model has scores.

        Where these are not fewer than the columns, as many as lose about as much as the model.
        """
        shares = self.people.weights / self.people.weights.sum()
        centred = (self.values - self.mean) * np.sqrt(shares)[:, None]
        variances = np.linalg.svd(centred, compute_uv=False) ** 2
        error = float(shares @ self.squares.sum(axis=1))
        return _rank_beside(int(self.scores.shape[1]), variances, error)


class RebuiltSums:
    """What a model that is no projection makes of a stream: sums of residuals and of scores.

    They are the last columns of joint moments: first the d values of each row, then its d residuals
    and its r scores.
    """

    def __init__(self, joint: GroupMoments) -> None:
        d = joint.n_features - joint.n_targets
        self.values = joint.select(range(d))
        self.scores = joint.select(range(2 * d, joint.n_features))
        self._residuals = joint.select(range(d, 2 * d))

    def of_fold(self, number: int) -> OfSums:
        """The errors of the groups in a fold, and their distances from the mean."""
        fold = list(self.values.fold_sizes())[number]
        _, left_out = self._residuals.split(fold)
        return OfSums(_squares_about(left_out.group_sums(), 0.0).sum(axis=1), self.values.mean)

    def column_errors(self) -> Array:
        """The mean squared error of each group on each column, (k, d)."""
        return _mean_squares(self._residuals.group_sums(), 0.0)

    def column_variances(self) -> Array:
        """The mean squared distance of each group from the mean on each column, (k, d)."""
        return _mean_squares(self.values.group_sums(), self.values.mean)

    def moments_of_scores(self) -> GroupMoments:
        """The moments of the scores."""
        return self.scores

    def rank_beside(self) -> int:
        """How many components PCA gets beside the model, as for :class:`Rebuilt`."""
        weights = self.values.weights
        operand = self.values.operand()
        C = np.tensordot(operand.shares, operand.dense_matrices, axes=1)
        variances = np.asarray(np.linalg.eigvalsh(C), np.float64)
        error = weights @ self.column_errors().sum(axis=1) / weights.sum()
        return _rank_beside(self.scores.n_features, variances[::-1], float(error))


class OfSums(NamedTuple):
    """Errors of groups that are known already, in the place of a map that computes them."""

    squares: Array
    mean: Array

    def group_errors(self, sums: AnySums) -> tuple[Array, Array]:
        """The squared errors of the groups, and their distances from the mean."""
        return self.squares, _squares_about(sums, self.mean).sum(axis=1)


def _mean_squares(sums: AnySums, point: Array | float) -> Array:
    """Mean squared distances from a point, by group and column."""
    return np.asarray(_squares_about(sums, point) / sums.weights[:, None])


def _squares_about(sums: AnySums, point: Array | float) -> Array:
    """Squared distances from a point, summed by group; by column."""
    d = sums.sums.shape[1]
    nothing = np.zeros((d, 1))
    return sums.lost(nothing, nothing.T, np.broadcast_to(point, d))[1]


def _rank_beside(r: int, variances: Array, error: float) -> int:
    """As many as the model has scores; if there are as many as columns, what loses as much."""
    d = len(variances)
    if r < d:
        return r
    lost = variances.sum() - np.cumsum(variances)  # by the number of components, from 1
    return 1 + int(np.argmin(np.abs(lost[: max(d - 1, 1)] - error)))


def sums_of_stream(model: Any, given: Input, rule: FoldRule) -> tuple[Opened, RebuiltSums]:
    """What a model makes of a stream, batch by batch."""
    if _is_pair(model) and not callable(model[0]):
        raise TypeError(
            "X is read once, so rows rebuilt from it cannot be set beside them; pass X in memory, "
            "or a pair of functions, audit_model((encode, decode), X, groups)."
        )
    if not isinstance(given.X, Stream):
        raise TypeError(
            "a model that is no projection is judged by rows in memory or by a stream, not by a "
            "Dask collection; pass X.compute()."
        )
    joint = GroupMoments()
    with closing(given.X.batches()) as batches:
        for batch in batches:
            found = opened(model, batch.X.as_table())
            values = dense(found.seen)
            if found.rebuilt is None or found.scores is None:
                raise TypeError(
                    "scores are turned into rows by least squares on all rows, but X is read once; "
                    f"pass a pair of functions, from rows to scores and back, or {_PAIR}."
                )
            made = NumericTarget(np.hstack([values - found.rebuilt, found.scores]))
            joint.add(batch._replace(X=values, y=made), rule)
    return found._replace(seen=None, scores=None, rebuilt=None), RebuiltSums(joint)


class OfRows(NamedTuple):
    """Errors and distances that are known already, in the place of a map that computes them."""

    squares: Array
    distances: Array

    def errors(self, X: Any) -> tuple[Array, Array]:
        """The squared errors of the rows that these are, and their distances from the mean."""
        return self.squares, self.distances


def _by_least_squares(scores: Array, values: Array, people: People) -> Array:
    rebuilt = np.empty(values.shape)
    for rows in people.rows_of_folds:
        others = np.setdiff1d(np.arange(len(values)), rows)
        line = LinearRegression()
        line.fit(scores[others], values[others], people.weights[others])
        rebuilt[rows] = line.predict(scores[rows])
    return rebuilt


def rows_to_judge(model: Any, X: Any) -> Any:
    """The rows: X, which the pair of X and X rebuilt holds itself."""
    if not _is_pair(model) or callable(model[0]):
        return X
    if X is not None:
        raise TypeError(f"the pair holds X already; pass {_PAIR}, without X.")
    return model[0]


def opened(model: Any, X: Any) -> Opened:
    """What is judged: a fitted model, a pair of functions, or the pair of X and X rebuilt."""
    if _is_pair(model):
        first, second = model
        if callable(first):
            return _made(f"{_name(first)}, {_name(second)}", None, X, first, second)
        rebuilt = dense(second)
        _refuse_other_shape(dense(X), rebuilt)
        return Opened("rebuilt rows", None, X, scores=rebuilt, rebuilt=rebuilt)
    if is_projection(model):
        return projection_of(model, fitted_map(model), X)
    before, step = _judged_step(model)
    for one in before:
        X = one.transform(X)
    decode = getattr(step, "inverse_transform", None)
    if decode is None and not (hasattr(step, "components_") or hasattr(step, "transformer_list")):
        name = type(step).__name__
        raise TypeError(
            f"{name} has no inverse_transform, so nothing says what its scores stand for; pass a "
            f"pair of functions, audit_model((encode, decode), X, groups), or {_PAIR}."
        )
    return _made(_text(model), step, X, step.transform, decode)


def is_projection(model: Any) -> bool:
    """Whether a fitted model is judged by its linear map, or is no model at all."""
    if _is_pair(model):
        return False
    if not hasattr(model, "transform") and not hasattr(model, "steps"):
        return True
    refuse_unfitted(model)
    _, step = _judged_step(model)
    return step is None or has_map(step)


def _text(model: Any) -> str:
    return " ".join(repr(model).split())


def _is_pair(model: Any) -> bool:
    return isinstance(model, tuple) and len(model) == 2


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", repr(function)))


def projection_of(model: Any, fitted: FittedMap, X: Any) -> Opened:
    """A fitted projection, and rows as they arrive at it; X may be None."""
    seen = X
    if X is not None:
        seen = fitted.arriving(X, "audit_model")
        if (fitted.map.units != 1).any():
            seen = dense(seen) / fitted.map.units
    return Opened(_text(model), fitted.estimator, seen, own=fitted.map.in_units())


def _made(text: str, step: Any, X: Any, encode: Callable[[Any], Any], decode: Any) -> Opened:
    """What two functions make of rows."""
    codes = encode(X)
    if decode is None:
        return Opened(text, step, X, scores=dense(codes))
    rebuilt = dense(decode(codes))
    _refuse_other_shape(dense(X), rebuilt)
    return Opened(text, step, X, scores=dense(codes), rebuilt=rebuilt)


def _refuse_other_shape(values: Array, rebuilt: Array) -> None:
    if rebuilt.shape != values.shape:
        raise ValueError(
            f"X has the shape {values.shape}, but rebuilt it has {rebuilt.shape}; every row and "
            "column of X must be rebuilt, in the same order."
        )
    if not np.isfinite(rebuilt).all():
        raise ValueError("the rebuilt rows hold NaN or infinity; let the model rebuild numbers.")


def _judged_step(model: Any) -> tuple[list[Any], Any]:
    """The last step that does more than change columns one by one, and the steps before it."""
    steps = [step for step in flattened(model) if hasattr(step, "transform")]
    places = [i for i, one in enumerate(steps) if not isinstance(one, OneToOneFeatureMixin)]
    if not places:
        return steps, None
    return steps[: places[-1]], steps[places[-1]]
