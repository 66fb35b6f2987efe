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
    if isinstance(estimator, type):
        name, how = estimator.__name__, _fit_call(issubclass(estimator, FairProjection))
        raise TypeError(f"{name} is a class; pass an object, {name}(...){how}.")
    if not isinstance(estimator, BaseEstimator):
        return
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        code = " ".join(repr(estimator).split()) + _fit_call(isinstance(estimator, FairProjection))
        if isinstance(estimator, Pipeline):
            names = [name for name, step in estimator.steps if isinstance(step, FairProjection)]
            code = "pipeline" + _fit_call(bool(names), "".join(f"{name}__" for name in names[-1:]))
        raise TypeError(f"this {type(estimator).__name__} is not fitted; pass {code}.") from None


def _fit_call(fair: bool, prefix: str = "") -> str:
    """The call that fits, as code; ``prefix`` names the step of a pipeline."""
    return f".fit(X, {prefix}sensitive_features=groups)" if fair else ".fit(X)"


def seen_by_projection(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The projection of a fitted pipeline, and the rows as they arrive at it.

    It is the last step that has ``components_``. What follows it, such as a classifier, does not
    matter here.
    """
    if not isinstance(estimator, Pipeline):
        return estimator, X
    places = [i for i, (_, step) in enumerate(estimator.steps) if hasattr(step, "components_")]
    if not places:
        refuse_unfitted(estimator)
        steps = ", ".join(type(step).__name__ for _, step in estimator.steps)
        raise TypeError(
            f"no step of the pipeline ({steps}) is a fitted linear projection; fit it, and let one "
            "step be FairPCA or sklearn.decomposition.PCA."
        )
    last = places[-1]
    return estimator[last], estimator[:last].transform(X) if last else X


def score_units(estimator: Any) -> Array | float:
    """What whitening divides the score of each component by, as a column; 1 without whitening."""
    if not getattr(estimator, "whiten", False):
        return 1.0
    deviations = np.sqrt(np.asarray(estimator.explained_variance_, dtype=np.float64))
    return np.where(deviations > 0, deviations, 1.0)[:, np.newaxis]


def projection_of(estimator: Any) -> tuple[Array, Array]:
    """Components and mean of a fitted linear projection."""
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
    return components, np.asarray(mean, dtype=np.float64)
