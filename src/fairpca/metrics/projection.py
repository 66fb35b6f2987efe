"""Which linear projection a fitted object is, alone or inside a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fairpca._estimators.base import FairProjection
from fairpca._typing import Array


def refuse_unfitted(estimator: Any) -> None:
    """Refuse a class, and an estimator or a pipeline that is not fitted."""
    kind = estimator if isinstance(estimator, type) else type(estimator)
    groups = ", sensitive_features=groups" if issubclass(kind, FairProjection) else ""
    if isinstance(estimator, type):
        call = f"{kind.__name__}(...).fit(X{groups})"
        raise TypeError(f"{kind.__name__} is a class; pass an object, {call}.")
    if not isinstance(estimator, BaseEstimator):
        return
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        code = " ".join(repr(estimator).split())
        if isinstance(estimator, Pipeline):
            code = "pipeline"
            for name, step in estimator.steps:
                if isinstance(step, FairProjection):
                    groups = f", {name}__sensitive_features=groups"
        raise NotFittedError(
            f"this {kind.__name__} is not fitted; pass {code}.fit(X{groups})."
        ) from None


def steps_to_projection(estimator: Any, strict: bool = True) -> list[Any]:
    """The steps of a fitted pipeline up to its last linear projection, which comes last.

    What follows the projection, such as a classifier, does not matter. A pipeline without one is
    refused, or unless ``strict`` taken as a whole.
    """
    steps = flattened(estimator)
    places = [place for place, step in enumerate(steps) if hasattr(step, "components_")]
    if strict and not places and isinstance(estimator, Pipeline):
        refuse_unfitted(estimator)
        names = ", ".join(type(step).__name__ for step in steps)
        raise TypeError(
            f"no step of the pipeline ({names}) is a fitted linear projection; fit it, and let one "
            "step be FairPCA or sklearn.decomposition.PCA."
        )
    return steps[: places[-1] + 1] if places else steps


def flattened(estimator: Any) -> list[Any]:
    """The steps of a pipeline and of those inside it; any other estimator is a step."""
    if not isinstance(estimator, Pipeline):
        return [estimator]
    steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
    return [part for step in steps for part in flattened(step)]


def seen_by_projection(estimator: Any, X: Any, strict: bool = True) -> tuple[Any, Any]:
    """The projection of a fitted pipeline, and the rows as they arrive at it.

    An estimator that standardises is taken as the pipeline that it is.
    """
    *before, projection = steps_to_projection(estimator, strict)
    if isinstance(projection, FairProjection) and projection.standardize:
        refuse_unfitted(projection)
        scaling, projection = projection.to_sklearn()
        before.append(scaling)
    for step in before:
        X = step.transform(X)
    return projection, X


def projection_of(estimator: Any, n_features: int | None = None) -> tuple[Array, Array]:
    """Components and mean of a fitted linear projection of ``n_features`` columns."""
    components = getattr(estimator, "components_", None)
    mean = getattr(estimator, "mean_", None)
    if components is not None and isinstance(estimator, TruncatedSVD):  # it does not centre
        mean = np.zeros(components.shape[1])
    if components is None or mean is None:
        refuse_unfitted(estimator)
        raise TypeError(
            f"{type(estimator).__name__} has no components_ and mean_; pass a fitted linear "
            "projection such as FairPCA or sklearn.decomposition.PCA, or a pipeline with one."
        )
    components = np.asarray(components, dtype=np.float64)
    departure = np.abs(components @ components.T - np.eye(len(components))).max(initial=0.0)
    if departure > 1e-4:
        raise ValueError(
            f"the components_ of {type(estimator).__name__} are not orthonormal (off by "
            f"{departure:.2g}), so they define no orthogonal projection; pass FairPCA or PCA."
        )
    if n_features not in (None, components.shape[1]):
        raise ValueError(
            f"X has {n_features} features, but {type(estimator).__name__} was fitted to "
            f"{components.shape[1]}; pass the same columns as for fit."
        )
    return components, np.asarray(mean, dtype=np.float64)
