"""What a fitted linear projection can do, however it was found."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from fairpca._input.checks import check_n_features
from fairpca._input.device import DeviceRows, is_dask, is_device_array, on_host
from fairpca._input.rows import as_rows, dense_blocks, refuse_non_finite, refuse_unusable_numbers
from fairpca._typing import Array


class Projection(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Orthonormal ``components_`` about a ``mean_``: scores, reconstructions, likelihood, files."""

    components_: Any  # arrays
    mean_: Any
    whiten: bool = False  # where it is no parameter
    _fitted_files: Sequence[Any] = ()  # which no model is saved to

    def transform(self, X: Any) -> Any:
        """Project X onto the components.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components_), or a data frame after ``set_output``
            float32 for float32 input, else float64. A dask array, not yet computed, for dask
            arrays and data frames; an array like X for arrays of torch, CuPy and the like.
        """
        self._ready()
        if is_dask(X):
            from fairpca._tables.dask import count_columns, map_rows

            check_n_features(self.n_features_in_, count_columns(X), "transform")
            n_columns = self._n_features_out  # solves now, after partial_fit, not in every block
            return map_rows(X, partial(_transform_block, self._without_moments()), n_columns)
        if is_device_array(X):
            return self._device_scores(DeviceRows(X))
        return self._scores(X)

    def _device_scores(self, rows: DeviceRows) -> Any:
        check_n_features(self.n_features_in_, rows.n_features, "transform")
        return _finite(rows.scores(encoder_of(self), self.mean_), rows)

    def _scores(self, X: Any) -> Array:
        X = self._validate(X)
        kind = X.dtype
        encoder: Any = encoder_of(self)
        if issparse(X):
            scores = np.asarray(X @ encoder.T - encoder @ self.mean_)
            return scores.astype(kind, copy=False)
        scores = np.empty((X.shape[0], len(encoder)), dtype=kind)
        for rows, Z in self._centred_blocks(X):
            scores[rows] = Z @ encoder.T
        return scores

    def inverse_transform(self, X: Any) -> Any:
        """Reconstruct rows from their scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components_)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            For dask collections a dask array, not yet computed; an array like X for arrays of
            torch, CuPy and the like.
        """
        self._ready()
        if is_dask(X):
            from fairpca._tables.dask import count_columns, map_rows

            self._check_n_scores(count_columns(X))
            work = partial(_reconstruct_block, self._without_moments())
            return map_rows(X, work, self.n_features_in_)
        if is_device_array(X):
            rows = DeviceRows(X)
            self._check_n_scores(rows.n_features)
            return _finite(rows.reconstruction(_decoder_of(self), self.mean_), rows)
        return self._reconstruct(X)

    def _reconstruct(self, X: Any) -> Array:
        scores = check_array(X, dtype=[np.float64, np.float32])
        self._check_n_scores(scores.shape[1])
        rows: Array = scores @ _decoder_of(self) + self.mean_
        return rows.astype(scores.dtype, copy=False)

    def _check_n_scores(self, given: int) -> None:
        r = self._n_features_out
        if given != r:
            raise ValueError(
                f"inverse_transform needs the {r} scores that transform gives for each row, "
                f"got X with {given} columns."
            )

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of each row under probabilistic PCA with these components.

        A Gaussian with variance ``explained_variance_`` along the components and
        ``noise_variance_`` in every direction across them, as in scikit-learn's ``PCA``.
        """
        self._ready()
        X = self._validate(X)
        r, d = self.components_.shape
        floor = _no_variance(self)
        along = np.maximum(self.explained_variance_, floor)
        across = max(self.noise_variance_, floor)
        constant = d * np.log(2 * np.pi) + np.log(along).sum() + (d - r) * np.log(across)
        likelihood = np.empty(X.shape[0])
        for rows, Z in self._centred_blocks(X):
            scores = Z @ self.components_.T
            rest = Z - scores @ self.components_
            likelihood[rows] = (scores**2 / along).sum(axis=1)
            if r < d:
                likelihood[rows] += (rest**2).sum(axis=1) / across
        return np.asarray(-0.5 * (constant + likelihood))

    def score(self, X: Any, y: Any = None) -> float:
        """Average log-likelihood of the rows of X; see :meth:`score_samples`.

        Higher is better. With ``alpha=1`` it is that of scikit-learn's ``PCA``, so model selection
        over ``n_components`` works the same way.
        """
        return float(self.score_samples(X).mean())

    def get_covariance(self) -> Array:
        """Covariance of the features under the Gaussian of :meth:`score_samples`.

        ``explained_variance_`` along the components and ``noise_variance_`` across them, whether
        scores are whitened or not. With ``alpha=1`` it is that of scikit-learn's ``PCA``, which
        counts variances twice if it whitens.

        Returns
        -------
        ndarray of shape (n_features_in_, n_features_in_)
        """
        self._ready()
        return self._between(self.explained_variance_, self.noise_variance_)

    def get_precision(self) -> Array:
        """Inverse of :meth:`get_covariance`.

        An error if there is none, because the data do not vary along a component or across all of
        them.

        Returns
        -------
        ndarray of shape (n_features_in_, n_features_in_)
        """
        self._ready()
        r, d = self.components_.shape
        least = min(self.explained_variance_.min(), self.noise_variance_ if r < d else np.inf)
        if least <= _no_variance(self):
            raise ValueError(
                f"the covariance has no inverse: with {r} of {d} components, some direction has no "
                "variance; fit without constant and redundant columns, or use "
                "numpy.linalg.pinv(estimator.get_covariance())."
            )
        return self._between(1 / self.explained_variance_, 1 / self.noise_variance_ if r < d else 0)

    def _between(self, along: Array, across: float) -> Array:
        """The matrix with these eigenvalues along and across the components."""
        U = self.components_
        matrix: Array = (U.T * (along - across)) @ U
        matrix.flat[:: len(matrix) + 1] += across
        return matrix

    @property
    def singular_values_(self) -> Array:
        """Norms of the scores of the rows fitted to, as scikit-learn's ``PCA`` has them."""
        n = int(self.group_sizes_.sum())
        return np.asarray(np.sqrt(self.explained_variance_ * (n - 1)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted projection to a safetensors file; see :func:`fairpca.load_model`.

        Components, mean and figures of fit are kept, the moments (and so ``partial_fit``) are not.
        Needs ``pip install "fairpca[model]"``.
        """
        from fairpca._models.safetensors import save_model

        save_model(self, path, self._fitted_files)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a projection written by :meth:`save`; nothing in the file is ever executed."""
        from fairpca._models.safetensors import load_model

        model = load_model(path)
        if not isinstance(model, cls):
            raise ValueError(
                f"{path} holds a {type(model).__name__}, not a {cls.__name__}; "
                "read it with fairpca.load_model(path)."
            )
        return model

    def to_sklearn(self) -> PCA:
        """An equivalent fitted :class:`sklearn.decomposition.PCA`, without groups."""
        self._ready()
        pca = PCA(n_components=self.n_components_, whiten=self.whiten)
        for name in ("n_components_", "noise_variance_", "n_features_in_"):
            setattr(pca, name, getattr(self, name))
        for name in ("components_", "mean_", "explained_variance_", "explained_variance_ratio_"):
            setattr(pca, name, getattr(self, name).copy())
        pca.n_samples_, pca.singular_values_ = int(self.group_sizes_.sum()), self.singular_values_
        pca._fit_svd_solver = "full"
        if hasattr(self, "feature_names_in_"):
            pca.feature_names_in_ = self.feature_names_in_.copy()
        return pca

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write ``transform`` as an ONNX graph: input ``X``, output ``scores``, both float64.

        Needs ``pip install "fairpca[onnx]"``.
        """
        from fairpca._models.onnx import write_projection

        self._ready()
        write_projection(encoder_of(self), self.mean_, path, reads=self._fitted_files)

    def _ready(self) -> None:
        """Refuse before a fit."""
        check_is_fitted(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _without_moments(self) -> Self:
        """A copy that can transform and is small enough to be sent to workers."""
        twin = copy(self)
        twin.__dict__.pop("moments_", None)
        return twin

    def _validate(self, X: Any) -> Any:
        checked: Any = validate_data(
            self,
            X,
            reset=False,
            accept_sparse=("csr", "csc"),
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )
        values = checked if isinstance(checked, np.ndarray) else checked.data
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(values.sum()) and not np.isfinite(values).all():
                refuse_non_finite(as_rows(X))
        return checked

    def _centred_blocks(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Pairs of a slice and its rows in float64, centred: no centred copy of all of X."""
        for place, block in dense_blocks(as_rows(X)):
            yield place, block - self.mean_


def encoder_of(projection: Projection) -> Array:
    """The matrix W of the scores ``(X - mean_) @ W.T``."""
    U: Array = projection.components_
    return U / _units(projection)[:, None] if projection.whiten else U


def _decoder_of(projection: Projection) -> Array:
    """The matrix V of the reconstructions ``mean_ + scores @ V``."""
    U: Array = projection.components_
    return U * _units(projection)[:, None] if projection.whiten else U


def _units(projection: Projection) -> Array:
    """What whitening divides scores by: standard deviations, and 1 where scores are all zero."""
    variances = projection.explained_variance_
    return np.sqrt(np.where(variances > _no_variance(projection), variances, 1.0))


def _no_variance(projection: Projection) -> float:
    """The largest variance that may be a rounding error of zero."""
    whole, d = float(projection.explained_variance_.sum()), projection.components_.shape[1]
    return float(d * np.finfo(np.float64).eps) * max(whole, 1e-300)


def _finite(values: Any, rows: DeviceRows) -> Any:
    """The values computed from these rows; if some are not finite, the rows are refused."""
    if not np.isfinite(on_host(values)).all():
        refuse_unusable_numbers(rows)
    return values


def _transform_block(estimator: Projection, block: Any) -> Array:
    """Scores of a block, which unlike whole data may have no rows."""
    if block.shape[0] == 0:
        return np.empty((0, estimator._n_features_out))
    return estimator._scores(block)


def _reconstruct_block(estimator: Projection, block: Any) -> Array:
    """Rows of a block of scores, which unlike whole data may have no rows."""
    if block.shape[0] == 0:
        return np.empty((0, estimator.n_features_in_))
    return estimator._reconstruct(block)
