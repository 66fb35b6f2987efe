"""Models of standardised columns, which take the columns as they are."""

from __future__ import annotations

import os
from copy import copy
from typing import Self

from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca._estimators.base import FairProjection
from fairpca._typing import Array


class StandardizedModel(Pipeline):  # type: ignore[misc]
    """A projection fitted to standardised columns, as a pipeline that takes the raw columns.

    Its steps are a ``StandardScaler(with_mean=False)`` and the estimator, ``model[-1]``, which has
    the fitted attributes.
    """

    @classmethod
    def of(cls, projection: FairProjection, scale: Array) -> Self:
        """The pipeline for a projection fitted to columns that were divided by ``scale``."""
        scaler = StandardScaler(with_mean=False)
        scaler.scale_, scaler.var_ = scale, scale**2
        scaler.n_samples_seen_ = int(projection.group_sizes_.sum())
        scaler.n_features_in_ = len(scale)
        if hasattr(projection, "feature_names_in_"):
            # The first step sees the columns, the second one an array.
            scaler.feature_names_in_ = projection.feature_names_in_
            projection = copy(projection)
            del projection.feature_names_in_
        return cls([("standardize", scaler), ("fairpca", projection)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that :func:`fairpca.load_model` reads."""
        from fairpca._models.safetensors import save_model

        save_model(self, path)

    def to_sklearn(self) -> Pipeline:
        """An equivalent pipeline of scikit-learn's ``StandardScaler`` and ``PCA``."""
        return make_pipeline(self[0], self[-1].to_sklearn())

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write ``transform``, the scaling included, as an ONNX graph from ``X`` to ``scores``."""
        from fairpca._models.onnx import write_projection

        write_projection(self[-1].components_, self[-1].mean_, path, self[0].scale_)
