"""How well a linear projection reconstructs each group, on any data.

Errors are in the units of the rows as they arrive at the projection.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from fairpca._input.checks import check_feature_names, check_group_weights, check_sample_weight
from fairpca._input.labels import encode_groups
from fairpca._input.rows import as_rows, dense_blocks, refuse_non_finite
from fairpca._moments.tolerances import varying_groups
from fairpca._typing import Array
from fairpca.exceptions import warn
from fairpca.metrics.projection import projection_of, seen_by_projection


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
    return _squares(estimator, X)[0]


def _squares(estimator: Any, X: Any) -> tuple[Array, Array]:
    """Squared error of each row, and its squared distance from the mean."""
    projection, X = seen_by_projection(estimator, X)
    rows = as_rows(X)
    components, mean = projection_of(projection, rows.n_features)
    names = getattr(projection, "feature_names_in_", None)
    check_feature_names(names, rows.feature_names, "row_reconstruction_errors")
    errors, distances = np.empty(rows.n_rows), np.empty(rows.n_rows)
    for place, block in dense_blocks(rows):
        Z = block - mean
        if not np.isfinite(Z).all():
            refuse_non_finite(rows)
        np.einsum("ij,ij->i", Z, Z, out=distances[place])
        Z -= (Z @ components.T) @ components
        np.einsum("ij,ij->i", Z, Z, out=errors[place])
    return errors, distances


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
    estimator, X
        As for :func:`row_reconstruction_errors`.
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
    >>> from fairpca.metrics import group_reconstruction_errors, reconstruction_disparity
    >>> X, groups = np.array([[0.0, 1.0], [0.0, -1.0], [2.0, 0.0], [-2.0, 0.0]]), list("aabb")
    >>> pca = PCA(1).fit(X)
    >>> group_reconstruction_errors(pca, X, groups), reconstruction_disparity(pca, X, groups)
    ({'a': 1.0, 'b': 0.0}, 1.0)
    >>> group_reconstruction_errors(pca, X + [0.0, 1.0], groups, normalize=True)
    {'a': 1.0, 'b': 0.2}
    """
    squares = _squares(estimator, X)
    n_rows = len(squares[0])
    codes, labels = encode_groups(sensitive_features, n_rows)
    weights = check_sample_weight(sample_weight, n_rows)
    weights = np.ones(n_rows) if weights is None else weights
    totals = np.bincount(codes, weights)
    check_group_weights(labels, totals)
    errors, distances = (np.bincount(codes, weights * values) / totals for values in squares)
    if normalize:
        varies = varying_groups(distances)
        errors = np.divide(errors, distances, out=np.zeros(len(errors)), where=varies)
    return dict(zip(labels.tolist(), errors.tolist(), strict=True))


def reconstruction_disparity(
    estimator: Any,
    X: Any,
    sensitive_features: Any,
    *,
    sample_weight: Any = None,
    normalize: bool = False,
) -> float:
    """Largest minus smallest group error; the paper's ``|D|`` when there are two groups.

    Parameters are those of :func:`group_reconstruction_errors`. Zero means that all groups are
    reconstructed equally well.
    """
    errors = group_reconstruction_errors(
        estimator, X, sensitive_features, sample_weight=sample_weight, normalize=normalize
    )
    if len(errors) == 1:
        raise ValueError("sensitive_features holds one group only; a disparity needs at least two.")
    return max(errors.values()) - min(errors.values())


def fairness_measure(
    estimator: Any,
    X: Any,
    sensitive_features: Any,
    *,
    sample_weight: Any = None,
    normalize: bool = False,
) -> float:
    """The paper's fairness measure ``F``: the square of :func:`reconstruction_disparity`."""
    disparity = reconstruction_disparity(
        estimator, X, sensitive_features, sample_weight=sample_weight, normalize=normalize
    )
    return disparity**2


class DisparityScorer:
    """Minus the disparity of reconstruction errors, so that greater is better.

    ``fairpca.metrics.disparity_scorer`` is ready for ``scoring=`` of ``cross_validate``,
    ``GridSearchCV`` and others, with metadata routing enabled. It asks for ``sensitive_features``
    and ``sample_weight`` by itself. A pipeline is judged by its projection, on the rows as they
    arrive there. The scorer warns where the projection loses next to nothing, because a search over
    ``n_components`` would end there.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.model_selection import cross_validate
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_rand_health
    >>> from fairpca.metrics import disparity_scorer
    >>> people = load_rand_health()
    >>> groups = {"sensitive_features": people.sensitive_features}
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     plain, fair = (
    ...         cross_validate(model, people.data, scoring=disparity_scorer, params=groups)
    ...         for model in (FairPCA(8, alpha=1), FairPCA(8))
    ...     )
    >>> bool(fair["test_score"].mean() > plain["test_score"].mean())
    True
    """

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Score a fitted estimator on these rows."""
        if sensitive_features is None:
            raise ValueError(
                "sensitive_features is missing: disparity_scorer needs one group label per row. "
                "Enable metadata routing with sklearn.set_config(enable_metadata_routing=True) and "
                "pass cross_validate(..., params={'sensitive_features': groups}), or "
                "search.fit(X, y, sensitive_features=groups)."
            )
        given = estimator, X, sensitive_features
        shares = group_reconstruction_errors(*given, sample_weight=sample_weight, normalize=True)
        if max(shares.values()) <= 1e-3:
            warn(
                "this projection loses next to nothing of any group, so its disparity is next to "
                "nothing too, fair or not, and a search over n_components ends there. Search with "
                "a fixed n_components, or let another score choose it: scoring={'R2': 'r2', "
                "'disparity': disparity_scorer}, refit='R2'.",
                UserWarning,
            )
        return -reconstruction_disparity(*given, sample_weight=sample_weight)

    def get_metadata_routing(self) -> MetadataRequest:
        """The arguments that scikit-learn is to pass on."""
        request = MetadataRequest(owner="disparity_scorer")
        for name in ("sensitive_features", "sample_weight"):
            request.score.add_request(param=name, alias=True)
        return request

    def __repr__(self) -> str:
        return "disparity_scorer"


disparity_scorer = DisparityScorer()
