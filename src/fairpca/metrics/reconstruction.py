"""How well a linear projection reconstructs each group, on any data.

All functions take any fitted object with orthonormal ``components_`` and a ``mean_``: the
estimators of this library as well as scikit-learn's ``PCA``, ``IncrementalPCA`` and
``TruncatedSVD``, or a pipeline with one of them. Errors are in the units of the rows as they arrive
at the projection. The data may be other rows than those fitted to.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from fairpca._input.checks import (
    check_feature_names,
    check_group_weights,
    check_sample_weight,
)
from fairpca._input.labels import encode_groups
from fairpca._input.rows import as_rows, dense_blocks, refuse_non_finite
from fairpca._moments.operand import NEGLIGIBLE
from fairpca._typing import Array
from fairpca.metrics.projection import projection_of, seen_by_projection

__all__ = [
    "fairness_measure",
    "group_reconstruction_errors",
    "reconstruction_disparity",
    "row_reconstruction_errors",
]


def row_reconstruction_errors(estimator: Any, X: Any) -> Array:
    """Squared reconstruction error of each row.

    Parameters
    ----------
    estimator : object
        Fitted, with ``components_`` and ``mean_``; or a fitted pipeline with such a step.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from fairpca.metrics import row_reconstruction_errors
    >>> X = np.array([[0.0, 1.0], [0.0, -1.0], [2.0, 0.0], [-2.0, 0.0]])
    >>> row_reconstruction_errors(PCA(1).fit(X), X)
    array([1., 1., 0., 0.])
    """
    estimator, X = seen_by_projection(estimator, X)
    components, mean = projection_of(estimator)
    rows = as_rows(X)
    if rows.n_features != len(mean):
        raise ValueError(
            f"X has {rows.n_features} features, but {type(estimator).__name__} was fitted to "
            f"{len(mean)}; pass the same columns as for fit."
        )
    names = getattr(estimator, "feature_names_in_", None)
    check_feature_names(names, rows.feature_names, "row_reconstruction_errors")
    squares = np.empty(rows.n_rows)
    for place, block in dense_blocks(rows):
        Z = block - mean
        if not np.isfinite(Z).all():
            refuse_non_finite(rows)
        Z -= (Z @ components.T) @ components
        np.einsum("ij,ij->i", Z, Z, out=squares[place])
    return squares


def group_reconstruction_errors(
    estimator: Any,
    X: Any,
    sensitive_features: Any,
    *,
    sample_weight: Any = None,
    normalize: bool = False,
) -> dict[Any, float]:
    """Average squared reconstruction error ``R_g`` of each group.

    Parameters
    ----------
    estimator : object
        Fitted, with ``components_`` and ``mean_``; or a fitted pipeline with such a step.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row, any number of groups; several columns are crossed.
    sample_weight : array-like of shape (n_samples,), optional
    normalize : bool, default=False
        Divide each group's error by the group's average squared distance from ``mean_``, which is
        its error when no component is kept. A group at ``mean_`` has the error 0.

    Returns
    -------
    dict
        Error of each group, in sorted order of the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from fairpca.metrics import group_reconstruction_errors
    >>> X = np.array([[0.0, 1.0], [0.0, -1.0], [2.0, 0.0], [-2.0, 0.0]])
    >>> pca = PCA(1).fit(X)
    >>> group_reconstruction_errors(pca, X, ["a", "a", "b", "b"])
    {'a': 1.0, 'b': 0.0}
    >>> group_reconstruction_errors(pca, X + [0.0, 1.0], ["a", "a", "b", "b"], normalize=True)
    {'a': 1.0, 'b': 0.2}
    """
    estimator, X = seen_by_projection(estimator, X)
    squares = row_reconstruction_errors(estimator, X)
    codes, labels = encode_groups(sensitive_features, len(squares))
    weights = check_sample_weight(sample_weight, len(squares))
    weights = np.ones(len(squares)) if weights is None else weights
    errors = np.bincount(codes, weights * squares, minlength=len(labels))
    totals = np.bincount(codes, weights, minlength=len(labels))
    check_group_weights(labels, totals)
    averages: dict[Any, float] = dict(zip(labels.tolist(), (errors / totals).tolist(), strict=True))
    if normalize:
        components, mean = projection_of(estimator)
        empty = SimpleNamespace(components_=components[:0], mean_=mean)
        distances = group_reconstruction_errors(
            empty, X, sensitive_features, sample_weight=sample_weight
        )
        least = NEGLIGIBLE * max(distances.values())
        averages = {
            g: e / distances[g] if distances[g] > least else 0.0 for g, e in averages.items()
        }
    return averages


def reconstruction_disparity(
    estimator: Any,
    X: Any,
    sensitive_features: Any,
    *,
    sample_weight: Any = None,
    normalize: bool = False,
) -> float:
    """Largest minus smallest group error; the paper's ``|D|`` when there are two groups.

    Parameters are those of :func:`group_reconstruction_errors`.

    Returns
    -------
    float
        Zero when all groups are reconstructed equally well.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from fairpca.metrics import reconstruction_disparity
    >>> X = np.array([[0.0, 1.0], [0.0, -1.0], [2.0, 0.0], [-2.0, 0.0]])
    >>> reconstruction_disparity(PCA(1).fit(X), X, ["a", "a", "b", "b"])
    1.0
    """
    errors = group_reconstruction_errors(
        estimator, X, sensitive_features, sample_weight=sample_weight, normalize=normalize
    ).values()
    if len(errors) == 1:
        raise ValueError("sensitive_features holds one group only; a disparity needs at least two.")
    return max(errors) - min(errors)


def fairness_measure(
    estimator: Any,
    X: Any,
    sensitive_features: Any,
    *,
    sample_weight: Any = None,
    normalize: bool = False,
) -> float:
    """The paper's fairness measure ``F``: the squared disparity.

    Parameters are those of :func:`group_reconstruction_errors`.

    Returns
    -------
    float
        Zero when all groups are reconstructed equally well.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from fairpca.metrics import fairness_measure
    >>> X = np.array([[0.0, 2.0], [0.0, -2.0], [5.0, 0.0], [-5.0, 0.0]])
    >>> fairness_measure(PCA(1).fit(X), X, ["a", "a", "b", "b"])
    16.0
    """
    disparity = reconstruction_disparity(
        estimator, X, sensitive_features, sample_weight=sample_weight, normalize=normalize
    )
    return disparity**2
