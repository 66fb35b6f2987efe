"""Scores, reconstructions and likelihood of rows under a fitted linear projection."""

import math
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_array

from fairpca._estimators.fitted import ProjectionRecord
from fairpca._estimators.transformer import Transformer
from fairpca._input.device import DeviceRows, is_dask, is_device_array, on_host
from fairpca._input.rows import (
    as_rows,
    dense_blocks,
    refuse_no_table,
    refuse_unusable_numbers,
    refusing_overflow,
)
from fairpca._input.stream import is_stream, map_stream
from fairpca._linear_map import no_variance, projection_map
from fairpca._moments.tolerances import EPS
from fairpca._sklearn import ClassNamePrefixFeaturesOutMixin, with_solver
from fairpca._typing import Array


class Projection(ClassNamePrefixFeaturesOutMixin, Transformer, ProjectionRecord):
    """Methods that need orthonormal ``components_``, a ``mean_`` and a ``scale_``."""

    standardize: bool
    whiten: bool
    relative_errors: bool
    tol: float = math.inf  # for estimators without this parameter
    _ready: Callable[[], Self]

    def transform(self, X: Any) -> Any:
        """Project X onto the components.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (n_samples, n_features), or stream
            A data frame may hold the columns that were named at fit, such as the groups. Streams
            are what ``fit`` takes as streams.

        Returns
        -------
        ndarray of shape (n_samples, n_components_), or a data frame after ``set_output``
            float32 for float32 input, else float64. A dask array, not yet computed, for dask
            arrays and data frames; an array like X for arrays of torch, CuPy and the like. For a
            stream, a ``pyarrow.RecordBatchReader`` of its columns that are no features, then of the
            scores, computed as they are read.
        """
        fitted = self._ready()
        if is_stream(X):
            return map_stream(fitted, X)
        nothing = np.zeros(fitted.n_components_)
        own = projection_map(fitted)
        return fitted._map_rows(X, type(self)._scores, own.mean, own.encode, nothing)

    def _scores(self, X: Any) -> Array:
        X = self._validate(X, self.missing == "available")
        kind = X.dtype
        encode: Any = projection_map(self).encode
        with refusing_overflow("X"):
            if issparse(X):
                scores = np.asarray(X @ encode - self.mean_ @ encode).astype(kind)
            else:
                scores = np.empty((X.shape[0], encode.shape[1]), dtype=kind)
                for place, block in dense_blocks(as_rows(X)):  # without a centred copy of all of X
                    scores[place] = (block - self.mean_) @ encode
            return _finite(scores)

    def inverse_transform(self, X: Any) -> Any:
        """Reconstruct rows from their scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components_)
            As :meth:`transform` gives them; dask and device arrays too.

        Returns
        -------
        array of shape (n_samples, n_features), of the kind that :meth:`transform` returns
        """
        fitted = self._ready()
        nothing = np.zeros(fitted.n_components_)
        own = projection_map(fitted)
        return fitted._map_rows(X, type(self)._reconstruct, nothing, own.decode, own.mean)

    def _reconstruct(self, X: Any) -> Array:
        refuse_no_table(X)
        with refusing_overflow("X"):
            scores = check_array(X, dtype=[np.float64, np.float32])
            self._check_width(scores.shape[1], self.n_components_)
            rows: Array = projection_map(self).rebuilt(scores)
            return _finite(rows.astype(scores.dtype, copy=False))

    def _check_width(self, given: int, wanted: int) -> None:
        if given != wanted:
            raise ValueError(
                f"X has {given} features, but {type(self).__name__} is expecting {wanted} features "
                "as input; pass rows to transform, and their scores to inverse_transform."
            )

    def _map_rows(
        self,
        X: Any,
        in_memory: Callable[[Self, Any], Array],
        before: Array,
        matrix: Array,
        after: Array,
    ) -> Any:
        """``(X - before) @ matrix + after``, in memory, in dask or on a device."""
        n_columns, width = matrix.shape
        if is_dask(X):
            from fairpca._moments.dask import count_columns, map_rows

            self._check_width(count_columns(X), n_columns)
            twin = copy(self)  # without moments, small enough to send to workers
            twin.__dict__.pop("moments_", None)
            return map_rows(X, partial(_on_block, partial(in_memory, twin), width), width)
        if is_device_array(X):
            rows = DeviceRows(X)
            self._check_width(rows.n_features, n_columns)
            values = rows.mapped(before, matrix, after)
            if not np.isfinite(on_host(values)).all():
                refuse_unusable_numbers(rows)
            return values
        return in_memory(self, X)

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of each row under probabilistic PCA with these components.

        The density is that of a Gaussian with the variances of the scores along the components
        and ``noise_variance_`` in every direction across them, as in scikit-learn's ``PCA``. With
        ``standardize`` it is still the density of the raw rows, so that fits can be compared.
        """
        fitted = self._ready()
        X = fitted._validate(X)
        U, variances = fitted._axes()
        r, d = U.shape
        floor = no_variance(fitted)
        along = np.maximum(variances, floor)
        across = max(fitted.noise_variance_, floor)
        constant = d * np.log(2 * np.pi) + np.log(along).sum() + (d - r) * np.log(across)
        constant += 2 * np.log(fitted.scale_).sum()
        likelihood = np.empty(X.shape[0])
        with refusing_overflow("X"):
            for place, block in dense_blocks(as_rows(X)):
                Z = (block - fitted.mean_) / fitted.scale_
                scores = Z @ U.T
                likelihood[place] = (scores**2 / along).sum(axis=1)
                if r < d:
                    rest = Z - scores @ U
                    likelihood[place] += (rest**2).sum(axis=1) / across
        return np.asarray(-0.5 * (constant + likelihood))

    def score(self, X: Any, y: Any = None) -> float:
        """Average log-likelihood of the rows of X; see :meth:`score_samples`. Higher is better."""
        return float(self.score_samples(X).mean())

    def get_covariance(self) -> Array:
        """Covariance of the raw features under the Gaussian of :meth:`score_samples`.

        It does not depend on ``whiten``, which makes scikit-learn's ``PCA`` count variances twice.
        """
        fitted = self._ready()
        U, variances = fitted._axes()
        covariance = _between(U, variances, fitted.noise_variance_)
        return covariance * np.outer(fitted.scale_, fitted.scale_)

    def get_precision(self) -> Array:
        """Inverse of :meth:`get_covariance`; raises an error if a direction has no variance."""
        fitted = self._ready()
        U, variances = fitted._axes()
        r, d = U.shape
        least = variances.min()
        if r < d:
            least = min(least, fitted.noise_variance_)
        if least <= no_variance(fitted):
            raise ValueError(
                f"the covariance has no inverse: with {r} of {d} components, some direction has no "
                "variance; fit without constant and redundant columns, or use "
                "numpy.linalg.pinv(estimator.get_covariance())."
            )
        across = 0.0
        if r < d:
            across = 1 / fitted.noise_variance_
        precision = _between(U, 1 / variances, across)
        return precision / np.outer(fitted.scale_, fitted.scale_)

    def _axes(self) -> tuple[Array, Array]:
        """Orthonormal rows with the span of the components, and variances of rows along them.

        Along them the rows are uncorrelated.
        """
        return self.components_, self.explained_variance_

    @property
    def singular_values_(self) -> Array:
        """Norms of the training scores of each component, as in scikit-learn's ``PCA``."""
        return np.asarray(np.sqrt(self.explained_variance_ * (self.n_samples_ - 1)))

    def to_sklearn(self) -> PCA | Pipeline:
        """An equivalent fitted :class:`sklearn.decomposition.PCA`, without groups.

        With ``standardize`` it is a pipeline of a ``StandardScaler`` and a ``PCA``. For ONNX,
        convert it: ``skl2onnx.to_onnx(fair.to_sklearn(), X[:1])`` with X in float64. Whitened
        scores that do not vary are refused: ``PCA`` would divide them by nearly nothing.
        """
        fitted = self._ready()
        if fitted.whiten:
            fitted._refuse_scores_without_variance()
        pca = with_solver(PCA(n_components=fitted.n_components_, whiten=fitted.whiten))
        for name in ("n_components_", "n_samples_", "noise_variance_", "n_features_in_"):
            setattr(pca, name, getattr(fitted, name))
        for name in ("components_", "mean_", "explained_variance_", "explained_variance_ratio_"):
            setattr(pca, name, getattr(fitted, name).copy())
        pca.singular_values_ = fitted.singular_values_
        first: PCA | StandardScaler = pca
        if fitted.standardize:
            first = StandardScaler(with_mean=False)  # so that sparse rows stay sparse
            first.scale_ = fitted.scale_.copy()
            first.var_ = fitted.scale_**2
            first.n_samples_seen_ = pca.n_samples_
            first.n_features_in_ = pca.n_features_in_
            pca.mean_ = fitted.mean_ / fitted.scale_
        if hasattr(fitted, "feature_names_in_"):
            first.feature_names_in_ = fitted.feature_names_in_.copy()
        if fitted.standardize:
            return make_pipeline(first, pca)
        return pca

    def _refuse_scores_without_variance(self) -> None:
        """Refuse scores that scikit-learn's ``PCA`` divides by the rounding of 1 instead."""
        variances = self.explained_variance_
        lost = (variances <= no_variance(self)) | (variances <= EPS**2)
        if lost.any():
            raise ValueError(
                f"scikit-learn's PCA cannot whiten score {int(lost.argmax())} as this "
                f"{type(self).__name__} does: its variance is {variances[lost][0]:.3g}, and PCA "
                f"divides by a standard deviation of at least {EPS:.2g}; fit with whiten=False or "
                "fewer components, or multiply X by a constant if its units are tiny."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:  # for get_feature_names_out of scikit-learn
        return self.n_components_


def _finite(values: Array) -> Array:
    """The values; threads of BLAS do not report an overflow, so it is looked for."""
    if not np.isfinite(values).all():
        raise OverflowError
    return values


def _between(U: Array, along: Array, across: float) -> Array:
    """The matrix with these eigenvalues along and across orthonormal rows."""
    matrix: Array = (U.T * (along - across)) @ U
    matrix.flat[:: len(matrix) + 1] += across
    return matrix


def _on_block(work: Callable[[Any], Array], width: int, block: Any) -> Array:
    """Apply ``work`` to a block, which may be empty."""
    if block.shape[0]:
        return work(block)
    return np.empty((0, width))
