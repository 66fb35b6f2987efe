"""What a fitted linear model does to a row: encode it as scores, and rebuild it from them.

========  ==================================================================
symbol    meaning
========  ==================================================================
m         mean: the point at which scores are zero
E         encode, (d, r): the scores of a row x are ``(x - m) E``
D         decode, (r, d): the row rebuilt from scores s is ``m + s D``
u         units, (d,): errors are measured in them, column by column
e(x)      ``|| ((x - m) - (x - m) E D) / u ||^2``, the squared error of a row
========  ==================================================================

For PCA ``E`` is ``U`` and ``D`` is ``U'`` with orthonormal columns U; standardising and whitening
put factors between them. For a choice of columns ``E`` picks them and ``D`` rebuilds all columns.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fairpca._input.checks import check_feature_names
from fairpca._input.folds import FoldRule
from fairpca._input.rows import as_rows, dense, dense_blocks, refuse_unusable_numbers
from fairpca._input.stream import Input, Stream, in_memory, without_named
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.tolerances import EPS, MEAN_NOISE
from fairpca._typing import Array, Codes

_ORTHONORMAL = 1e-4  # Components may be off by this much.


class _Sums(Protocol):
    """Sums of rows by group, as ``Sums`` and ``FewRows`` hold them."""

    def divided(self, scale: Array) -> _Sums: ...
    def lost(self, encode: Array, decode: Array, origin: Array) -> tuple[Array, Array]: ...


@dataclass(frozen=True)
class LinearMap:
    """A mean, and the matrices from rows to scores and from scores to rows."""

    mean: Array
    encode: Array
    decode: Array
    units: Array

    @classmethod
    def projection(
        cls, components: Array, mean: Array, units: Array | None = None, spread: Array | None = None
    ) -> LinearMap:
        """The map of orthonormal ``components`` of columns divided by their ``units``.

        ``spread`` divides the scores, as whitening does.
        """
        units = np.ones(len(mean)) if units is None else np.asarray(units, np.float64)
        if spread is None:
            spread = np.ones(len(components))
        encode = (components / units).T / spread
        decode = components * units * spread[:, None]
        return cls(np.asarray(mean, np.float64), encode, decode, units)

    @property
    def directions(self) -> Array:
        """Rows of unit length: the weight of each column, in its units, in each score."""
        weights = self.encode.T * self.units
        return np.asarray(weights / np.linalg.norm(weights, axis=1, keepdims=True))

    def in_units(self) -> LinearMap:
        """The same map for rows whose columns are divided by their units."""
        u = self.units
        encode = self.encode * u[:, None]
        return LinearMap(self.mean / u, encode, self.decode / u, np.ones(len(u)))

    def turned(self, like: LinearMap) -> LinearMap:
        """The same map with each score's sign turned to agree with another map."""
        agree = (self.directions * like.directions).sum(axis=1)
        signs = np.where(agree < 0, -1.0, 1.0)
        return replace(self, encode=self.encode * signs, decode=self.decode * signs[:, None])

    def first(self, r: int) -> LinearMap:
        """The map to the first r scores alone."""
        return replace(self, encode=self.encode[:, :r], decode=self.decode[:r])

    def with_components(self, components: Array) -> LinearMap:
        """A projection about the same mean, in the same units."""
        return LinearMap.projection(components, self.mean, self.units)

    def scores(self, X: Any) -> Array:
        """The scores of rows."""
        found = [(block - self.mean) @ self.encode for _, block in dense_blocks(as_rows(X))]
        return np.concatenate(found)

    def rebuilt(self, scores: Array) -> Array:
        """The rows that these scores stand for."""
        return np.asarray(self.mean + scores @ self.decode)

    def errors(self, X: Any) -> tuple[Array, Array]:
        """The squared error of each row, and its squared distance from the mean."""
        rows = as_rows(X)
        inner = self.in_units()
        rounding = MEAN_NOISE * np.abs(inner.mean)
        errors = np.empty(rows.n_rows)
        distances = np.empty(rows.n_rows)
        for place, block in dense_blocks(rows):
            with np.errstate(over="ignore", invalid="ignore"):
                Z = (block - self.mean) / self.units
                np.einsum("ij,ij->i", Z, Z, out=distances[place])
            if not np.isfinite(distances[place]).all():
                refuse_unusable_numbers(rows)
            near = np.flatnonzero(distances[place] <= rounding @ rounding)
            at_mean = near[(np.abs(Z[near]) <= rounding).all(axis=1)]
            distances[place][at_mean] = 0.0
            Z[at_mean] = 0.0
            Z -= (Z @ inner.encode) @ inner.decode
            np.einsum("ij,ij->i", Z, Z, out=errors[place])
        return errors, distances

    def errors_observed(self, X: Array, codes: Codes, observed: Array) -> tuple[Array, Array]:
        """The same figures of rows with missing values: each is right on average over its group.

        They are sums over the pairs of values that a row has, and each pair counts the more, the
        more seldom the rows of the group have it: ``observed`` holds the shares, (k, d, d).
        """
        inner = self.in_units()
        left = np.eye(len(self.mean)) - inner.encode @ inner.decode
        Q = left @ left.T
        errors = np.zeros(len(X))
        distances = np.zeros(len(X))
        for g, shares in enumerate(observed):
            members = codes == g
            Z = np.nan_to_num((X[members] - self.mean) / self.units)
            errors[members] = ((Z @ (Q / shares)) * Z).sum(axis=1)
            distances[members] = Z**2 @ (1.0 / np.diagonal(shares))
        return errors, distances

    def group_errors(self, sums: _Sums) -> tuple[Array, Array]:
        """Squared errors, and squared distances from the mean, summed over the rows of groups."""
        inner = self.in_units()
        lost, distances = sums.divided(self.units).lost(inner.encode, inner.decode, inner.mean)
        return lost.sum(axis=1), distances.sum(axis=1)


class FittedMap(NamedTuple):
    """A linear map, the estimator that has it, and the steps of a pipeline before it."""

    before: list[Any]
    estimator: Any
    map: LinearMap

    def arriving(self, X: Any, method: str = "this model") -> Any:
        """Rows as they arrive at the map; refuses other columns than those of the fit."""
        for step in self.before:
            X = step.transform(X)
        X = without_named(X, getattr(self.estimator, "_named", ()))
        rows = as_rows(X)
        self.check(rows.n_features, rows.feature_names, method)
        return X

    def moments(self, given: Input, method: str, folds: FoldRule | None = None) -> GroupMoments:
        """Moments of rows as they arrive at the map; those of a stream arrive batch by batch."""
        moments = GroupMoments()
        if in_memory(given.X):
            return moments.add(given._replace(X=self.arriving(given.X, method)), folds)
        if not self.before:
            moments.add(given, folds)
        elif isinstance(given.X, Stream):
            with closing(given.X.batches()) as batches:
                for batch in batches:
                    arriving = self.arriving(batch.X.as_table(), method)
                    moments.add(batch._replace(X=arriving), folds)
        else:
            raise TypeError(
                f"{method} takes a Dask collection with a projection, not with a pipeline; pass "
                "the projection alone, or X.compute()."
            )
        self.check(moments.n_features, moments.feature_names, method)
        return moments

    def check(self, n_features: int, feature_names: list[str] | None, method: str) -> None:
        """Refuse other columns than those of the fit."""
        names = getattr(self.estimator, "feature_names_in_", None)
        check_feature_names(names, feature_names, method)
        known = len(self.map.mean)
        if n_features != known:
            raise ValueError(
                f"X has {n_features} features, but {type(self.estimator).__name__} was fitted "
                f"to {known}; pass the same columns as for fit."
            )


def fitted_map(model: Any) -> FittedMap:
    """The linear map of a fitted model, ours or anybody's, which may stand in a pipeline.

    In a pipeline it is the map of the last step that has one.
    """
    *before, estimator = steps_to_map(model)
    return FittedMap(before, estimator, map_of(estimator))


def map_of(estimator: Any) -> LinearMap:
    """The linear map of one fitted estimator, without steps before it."""
    if hasattr(estimator, "rebuild_map_"):
        return columns_map(estimator, estimator.columns_, estimator.rebuild_map_)
    components = getattr(estimator, "components_", None)
    mean = _mean_of(estimator)
    if components is None or mean is None:
        refuse_unfitted(estimator)
        raise TypeError(
            f"{type(estimator).__name__} has no components_ and mean_; pass a fitted linear "
            "projection such as FairPCA or sklearn.decomposition.PCA, or a pipeline with one."
        )
    departure = _departure(components)
    if departure > _ORTHONORMAL:
        raise ValueError(
            f"the components_ of {type(estimator).__name__} are not orthonormal (off by "
            f"{departure:.2g}), so they define no orthogonal projection; pass FairPCA or PCA."
        )
    return projection_map(estimator, mean)


def has_map(estimator: Any) -> bool:
    """Whether a fitted estimator is an orthogonal projection, or keeps columns."""
    if hasattr(estimator, "rebuild_map_"):
        return True
    components = getattr(estimator, "components_", None)
    if components is None or _mean_of(estimator) is None:
        return False
    return _departure(components) <= _ORTHONORMAL


def _mean_of(estimator: Any) -> Array | None:
    """The point at which the scores of an estimator with components are zero."""
    if isinstance(estimator, TruncatedSVD) and hasattr(estimator, "components_"):
        return np.zeros(estimator.components_.shape[1])
    return getattr(estimator, "mean_", None)


def _departure(components: Any) -> float:
    """How far rows are from being orthonormal."""
    rows = np.asarray(components, np.float64)
    return float(np.abs(rows @ rows.T - np.eye(len(rows))).max(initial=0.0))


def projection_map(estimator: Any, mean: Array | None = None) -> LinearMap:
    """The map of an estimator with orthonormal ``components_``, by default about its ``mean_``."""
    if mean is None:
        mean = estimator.mean_
    units = getattr(estimator, "scale_", None)
    components = np.asarray(estimator.components_, np.float64)
    return LinearMap.projection(components, mean, units, _spread(estimator))


def with_signs(components: Array) -> Array:
    """Components whose entry of largest magnitude is positive, the first one on a tie."""
    magnitudes = np.abs(components)
    near_largest = magnitudes >= magnitudes.max(axis=1, keepdims=True) * (1 - 1e-7)
    decisive = components[np.arange(len(components)), near_largest.argmax(axis=1)]
    return np.asarray(components * np.sign(decisive)[:, None])


def columns_map(estimator: Any, columns: Codes, rebuild: Array) -> LinearMap:
    """The map of an estimator that keeps columns and rebuilds all columns from them."""
    kept = np.sort(columns)
    units = estimator.scale_
    encode = np.eye(len(units))[:, kept] / units[kept]
    return LinearMap(estimator.mean_, encode, rebuild * units[kept, None], units)


def _spread(estimator: Any) -> Array | None:
    """What whitening divides the scores by: deviations, or 1 where a score does not vary."""
    if not getattr(estimator, "whiten", False):
        return None
    variances = np.asarray(estimator.explained_variance_, np.float64)
    return np.sqrt(np.where(variances > no_variance(estimator), variances, 1.0))


def no_variance(estimator: Any) -> float:
    """Variances of scores up to this size may be rounding errors."""
    whole = float(estimator.explained_variance_.sum())
    return float(estimator.components_.shape[1] * EPS) * max(whole, 1e-300)


def refuse_unfitted(estimator: Any) -> None:
    """Refuse a class, and an estimator or a pipeline that is not fitted."""
    if isinstance(estimator, (type, BaseEstimator)):
        check_is_fitted(estimator)


def flattened(estimator: Any) -> list[Any]:
    """The steps of a pipeline and of those inside it; any other estimator is a step."""
    if not isinstance(estimator, Pipeline):
        return [estimator]
    steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
    return [part for step in steps for part in flattened(step)]


def steps_to_map(estimator: Any, strict: bool = True) -> list[Any]:
    """The steps up to the last linear map; a pipeline without one is refused if strict."""
    steps = flattened(estimator)
    places = [place for place, step in enumerate(steps) if _has_map(step)]
    if places:
        return steps[: places[-1] + 1]
    if strict and isinstance(estimator, Pipeline):
        refuse_unfitted(estimator)
        names = ", ".join(type(step).__name__ for step in steps)
        raise TypeError(
            f"no step of the pipeline ({names}) is a fitted linear projection; fit it, and let one "
            "step be FairPCA or sklearn.decomposition.PCA."
        )
    return steps


def seen_by_map(model: Any, X: Any) -> Array:
    """Rows as one array, in the units in which the last linear map of a fitted model sees them."""
    *before, last = steps_to_map(model, strict=False)
    for step in before:
        X = step.transform(X)
    seen = dense(X)
    if _has_map(last):
        return seen / map_of(last).units
    return seen


def _has_map(step: Any) -> bool:
    return hasattr(step, "components_") or hasattr(step, "rebuild_map_")
