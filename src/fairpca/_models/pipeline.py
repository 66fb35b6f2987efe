"""Models of columns whose missing values were filled in."""

from __future__ import annotations

import os
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline

from fairpca._estimators.base import FairProjection
from fairpca._typing import Array


class ModelPipeline(Pipeline):  # type: ignore[misc]
    """A ``SimpleImputer`` and an estimator, ``model[-1]``, which has the fitted attributes."""

    @classmethod
    def of(cls, projection: FairProjection, fill: Array | None = None) -> Self | FairProjection:
        """The model for a projection of columns that were filled in; itself if they were not."""
        if fill is None:
            return projection
        imputer = SimpleImputer(strategy="median").fit(fill[None])  # the median of one row
        if hasattr(projection, "feature_names_in_"):
            # The imputer sees the columns, the estimator an array.
            imputer.feature_names_in_ = projection.feature_names_in_
            projection = copy(projection)
            del projection.feature_names_in_
        return cls([("impute", imputer), ("fairpca", projection)])

    @staticmethod
    def parts(model: object) -> tuple[FairProjection, Array | None]:
        """The projection of a model, and what stands in for missing values before it."""
        steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
        last, fill = steps[-1], fill_of(steps[0]) if len(steps) == 2 else None
        if isinstance(last, FairProjection) and len(steps) == (1 if fill is None else 2):
            return last, fill
        raise TypeError(
            f"cannot save a {type(model).__name__} of {[type(step).__name__ for step in steps]}; "
            "pass an estimator of this library (with standardize=True in place of a "
            "StandardScaler), or a Pipeline of SimpleImputer() and an estimator."
        )

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The estimator, and what happens to the columns before it."""
        return f"{self[-1]!r}, missing numbers filled in"

    @property
    def fill(self) -> Array:
        """What stands in for missing values."""
        return np.asarray(self[0].statistics_)

    def inverse_transform(self, X: Any) -> Any:
        """Rows from scores, in the units of the columns; what was missing is reconstructed too."""
        return self[-1].inverse_transform(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that :func:`fairpca.load_model` reads."""
        from fairpca._models.safetensors import save_model

        save_model(self, path)

    def to_sklearn(self) -> Pipeline:
        """An equivalent pipeline of scikit-learn's transformers and ``PCA``."""
        return make_pipeline(self[0], self[-1].to_sklearn())


def fill_of(step: object) -> Array | None:
    """What a step puts in place of missing values, if it does no more than that."""
    if (
        not isinstance(step, SimpleImputer)
        or step.add_indicator
        or step.missing_values is not np.nan
    ):
        return None
    fill = np.asarray(getattr(step, "statistics_", np.nan))
    return fill if fill.dtype.kind == "f" and np.isfinite(fill).all() else None
