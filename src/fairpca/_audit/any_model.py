"""What anybody's model makes of rows: the scores, and the rows rebuilt from them.

An orthogonal projection is a :class:`~fairpca._linear_map.LinearMap`. Of every other model only
the outputs are known; :class:`Rebuilt` holds them for the rows of an audit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.linear_model import LinearRegression

from fairpca._audit.people import People
from fairpca._input.rows import dense
from fairpca._linear_map import LinearMap, fitted_map, flattened, has_map, refuse_unfitted
from fairpca._typing import Array, Codes

_PAIR = "audit_model((X, rebuilt), sensitive_features=groups)"


class Opened(NamedTuple):
    """A model, and rows as they arrive at the step of it that is judged."""

    text: str  # the model as code
    step: Any
    seen: Any  # in the units in which errors are measured
    own: LinearMap | None = None  # of an orthogonal projection
    scores: Array | None = None
    rebuilt: Array | None = None  # None: rebuilt from the scores by least squares


@dataclass(frozen=True)
class Rebuilt:
    """Rows, what a model makes of them, and the point from which their distances are measured."""

    values: Array
    rebuilt: Array
    stored_scores: Array
    mean: Array

    def at(self, rows: Codes) -> Rebuilt:
        """Some of the rows."""
        parts = {name: getattr(self, name)[rows] for name in ("values", "rebuilt", "stored_scores")}
        return replace(self, **parts)

    def errors(self, X: Any) -> tuple[Array, Array]:
        """The squared error of each row, and its squared distance from the mean; X is known."""
        errors = ((self.values - self.rebuilt) ** 2).sum(axis=1)
        return errors, ((self.values - self.mean) ** 2).sum(axis=1)

    def scores(self, X: Any) -> Array:
        """The scores of the rows; X is known."""
        return self.stored_scores

    def column_errors(self, people: People) -> Array:
        """The mean squared error of each group on each column, (k, d)."""
        squares = people.weights[:, None] * (self.values - self.rebuilt) ** 2
        sums = np.array([squares[people.codes == g].sum(axis=0) for g in range(len(people.labels))])
        return sums / np.bincount(people.codes, people.weights)[:, None]


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
    text = " ".join(repr(model).split())
    if not hasattr(model, "transform") and not hasattr(model, "steps"):
        return _projection(text, model, X)  # refuses what is no model
    refuse_unfitted(model)
    before, step = _judged_step(model)
    if step is None or has_map(step):
        return _projection(text, model, X)
    for one in before:
        X = one.transform(X)
    decode = getattr(step, "inverse_transform", None)
    if decode is None and not (hasattr(step, "components_") or hasattr(step, "transformer_list")):
        name = type(step).__name__
        raise TypeError(
            f"{name} has no inverse_transform, so nothing says what its scores stand for; pass a "
            f"pair of functions, audit_model((encode, decode), X, groups), or {_PAIR}."
        )
    return _made(text, step, X, step.transform, decode)


def _is_pair(model: Any) -> bool:
    return isinstance(model, tuple) and len(model) == 2


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", repr(function)))


def _projection(text: str, model: Any, X: Any) -> Opened:
    fitted = fitted_map(model)
    seen = fitted.arriving(X, "audit_model")
    if (fitted.map.units != 1).any():
        seen = dense(seen) / fitted.map.units
    return Opened(text, fitted.estimator, seen, own=fitted.map.in_units())


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


def rebuilt_rows(found: Opened, people: People) -> Rebuilt:
    """What a model makes of the rows of positive weight.

    Scores alone are turned into rows by least squares, fitted without the fold of each row.
    """
    values = dense(people.values)
    made: Any = found.scores
    scores = made[people.positions]
    if found.rebuilt is not None:
        rebuilt = found.rebuilt[people.positions]
    else:
        rebuilt = np.empty(values.shape)
        for rows in people.rows_of_folds:
            others = np.setdiff1d(np.arange(len(values)), rows)
            line = LinearRegression()
            line.fit(scores[others], values[others], people.weights[others])
            rebuilt[rows] = line.predict(scores[rows])
    mean = np.average(values, axis=0, weights=people.weights)
    return Rebuilt(values, rebuilt, scores, mean)


def rank_beside(known: Rebuilt, people: People) -> int:
    """How many components PCA gets beside a model: as many as the model has scores.

    Where these are not fewer than the columns, as many as lose about as much as the model.
    """
    d = known.values.shape[1]
    r = int(known.stored_scores.shape[1])
    if r < d:
        return r
    shares = people.weights / people.weights.sum()
    centred = (known.values - known.mean) * np.sqrt(shares)[:, None]
    variances = np.linalg.svd(centred, compute_uv=False) ** 2
    lost = variances.sum() - np.cumsum(variances)  # by the number of components, from 1
    errors, _ = known.errors(None)
    off = np.abs(lost[: max(d - 1, 1)] - shares @ errors)
    return 1 + int(np.argmin(off))
