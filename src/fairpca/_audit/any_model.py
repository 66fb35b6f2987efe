"""What anybody's model makes of rows: the scores, and the rows rebuilt from them.

An orthogonal projection is a :class:`~fairpca._linear_map.LinearMap`. Of every other model only
the outputs are known; :class:`Rebuilt` holds them for the rows of an audit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.linear_model import LinearRegression

from fairpca._audit.people import People
from fairpca._input.rows import dense
from fairpca._linear_map import (
    FittedMap,
    LinearMap,
    fitted_map,
    flattened,
    has_map,
    refuse_unfitted,
)
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
        d = self.values.shape[1]
        r = int(self.scores.shape[1])
        if r < d:
            return r
        shares = self.people.weights / self.people.weights.sum()
        centred = (self.values - self.mean) * np.sqrt(shares)[:, None]
        variances = np.linalg.svd(centred, compute_uv=False) ** 2
        lost = variances.sum() - np.cumsum(variances)  # by the number of components, from 1
        off = np.abs(lost[: max(d - 1, 1)] - shares @ self.squares.sum(axis=1))
        return 1 + int(np.argmin(off))


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
    if not hasattr(model, "transform") and not hasattr(model, "steps"):
        return projection_of(model, fitted_map(model), X)  # refuses what is no model
    refuse_unfitted(model)
    before, step = _judged_step(model)
    if step is None or has_map(step):
        return projection_of(model, fitted_map(model), X)
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
