"""Models of columns that were filled in or standardised, which take the columns as they are."""

from __future__ import annotations

import os
from copy import copy
from typing import Any, Self

from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca._estimators.base import FairProjection
from fairpca._estimators.projection import encoder_of
from fairpca._typing import Array


class ModelPipeline(Pipeline):  # type: ignore[misc]
    """A projection of filled or standardised columns, as a pipeline that takes the raw columns.

    Its steps are a ``SimpleImputer(strategy="median")`` if missing values were filled in, a
    ``StandardScaler(with_mean=False)`` if columns were standardised, and the estimator,
    ``model[-1]``, which has the fitted attributes.
    """

    @classmethod
    def of(
        cls, projection: FairProjection, scale: Array | None = None, fill: Array | None = None
    ) -> Self | FairProjection:
        """The pipeline for a projection of columns that were filled and then divided by ``scale``.

        The projection itself if they were neither.
        """
        steps: list[tuple[str, Any]] = []
        if fill is not None:
            imputer = SimpleImputer(strategy="median").fit(fill[None])  # the median of one row
            steps.append(("impute", imputer))
        if scale is not None:
            steps.append(("standardize", _scaler(scale, int(projection.group_sizes_.sum()))))
        if not steps:
            return projection
        if hasattr(projection, "feature_names_in_"):
            # The first step sees the columns, the others an array.
            steps[0][1].feature_names_in_ = projection.feature_names_in_
            projection = copy(projection)
            del projection.feature_names_in_
        return cls([*steps, ("fairpca", projection)])

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The estimator, and what becomes of the columns before it."""
        fill = "" if self.fill is None else ", missing numbers filled in"
        scale = "" if self.scale is None else ", columns standardised"
        return f"{self[-1]!r}{fill}{scale}"

    @property
    def scale(self) -> Array | None:
        """What columns are divided by."""
        scaler = self.named_steps.get("standardize")
        return None if scaler is None else scaler.scale_

    @property
    def fill(self) -> Array | None:
        """What stands in for missing values."""
        imputer = self.named_steps.get("impute")
        return None if imputer is None else imputer.statistics_

    def inverse_transform(self, X: Any) -> Any:
        """Rows from scores, in the units of the columns; what was missing is reconstructed too."""
        steps = [step for step in self.steps if step[0] != "impute"]
        return Pipeline(steps).inverse_transform(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that :func:`fairpca.load_model` reads."""
        from fairpca._models.safetensors import save_model

        save_model(self, path)

    def to_sklearn(self) -> Pipeline:
        """An equivalent pipeline of scikit-learn's transformers and ``PCA``."""
        return make_pipeline(*(step for _, step in self.steps[:-1]), self[-1].to_sklearn())

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write ``transform``, with all its steps, as an ONNX graph from ``X`` to ``scores``."""
        from fairpca._models.onnx import write_projection

        write_projection(encoder_of(self[-1]), self[-1].mean_, path, self.scale, self.fill)


def _scaler(scale: Array, n_rows: int) -> StandardScaler:
    scaler = StandardScaler(with_mean=False)
    scaler.scale_, scaler.var_ = scale, scale**2
    scaler.n_samples_seen_, scaler.n_features_in_ = n_rows, len(scale)
    return scaler
