"""How well a linear projection reconstructs each group, on any data.

Errors are in the units of the rows as they arrive at the projection. The last functions find the
projection in a fitted object, which may be a pipeline.
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_is_fitted

from fairpca._estimators.base import FairProjection
from fairpca._input.checks import (
    check_feature_names,
    check_group_weights,
    check_same_order,
    check_sample_weight,
)
from fairpca._input.labels import encode_groups
from fairpca._input.rows import as_rows, dense_blocks, refuse_non_finite
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.tolerances import MEAN_NOISE, varying_groups
from fairpca._typing import Array
from fairpca.exceptions import warn


def row_reconstruction_errors(estimator: Any, X: Any) -> Array:
    """Array with the squared reconstruction error of each row.

    Parameters
    ----------
    estimator : object
        Fitted, with ``components_`` and ``mean_``; or a fitted pipeline with such a step.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
    """
    refuse_data(estimator, "row_reconstruction_errors(estimator, X)")
    return _squares(estimator, X)[0]


def _squares(estimator: Any, X: Any) -> tuple[Array, Array]:
    """Squared error of each row, and its squared distance from the mean."""
    projection, X = seen_by_projection(estimator, X)
    rows = as_rows(X)
    components, mean = projection_of(projection, rows.n_features)
    names = getattr(projection, "feature_names_in_", None)
    check_feature_names(names, rows.feature_names, "row_reconstruction_errors")
    errors, distances = np.empty(rows.n_rows), np.empty(rows.n_rows)
    rounding = MEAN_NOISE * np.abs(mean)
    for place, block in dense_blocks(rows):
        Z = block - mean
        if not np.isfinite(Z).all():
            refuse_non_finite(rows)
        np.einsum("ij,ij->i", Z, Z, out=distances[place])
        near = np.flatnonzero(distances[place] <= rounding @ rounding)
        at_mean = near[(np.abs(Z[near]) <= rounding).all(axis=1)]
        distances[place][at_mean], Z[at_mean] = 0.0, 0.0
        Z -= (Z @ components.T) @ components
        np.einsum("ij,ij->i", Z, Z, out=errors[place])
    return errors, distances


def group_reconstruction_errors(
    estimator: Any,
    X: Any,
    sensitive_features: Any,
    *,
    sample_weight: Any = None,
    relative_errors: bool = False,
) -> dict[Any, float]:
    """Dictionary with the average squared reconstruction error ``R_g`` of each group, by label.

    Parameters
    ----------
    estimator, X
        As for :func:`row_reconstruction_errors`.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; several columns are crossed. The labels are the keys, sorted.
    sample_weight : array-like of shape (n_samples,), optional
    relative_errors : bool, default=False
        Divide each group's error by the group's average squared distance from ``mean_``, which is
        its error when no component is kept. A group at ``mean_`` has the error 0.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from fairpca.metrics import group_reconstruction_errors, row_reconstruction_errors
    >>> X, groups = np.array([[0.0, 1.0], [0.0, -1.0], [2.0, 0.0], [-2.0, 0.0]]), list("aabb")
    >>> pca = PCA(1).fit(X)
    >>> row_reconstruction_errors(pca, X), group_reconstruction_errors(pca, X, groups)
    (array([1., 1., 0., 0.]), {'a': 1.0, 'b': 0.0})
    """
    refuse_data(estimator, "group_reconstruction_errors(estimator, X, sensitive_features)")
    check_same_order(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
    squares = _squares(estimator, X)
    n_rows = len(squares[0])
    codes, labels = encode_groups(sensitive_features, n_rows)
    weights = check_sample_weight(sample_weight, n_rows)
    weights = np.ones(n_rows) if weights is None else weights
    totals = np.bincount(codes, weights)
    check_group_weights(labels, totals)
    errors, distances = (np.bincount(codes, weights * values) / totals for values in squares)
    if relative_errors:
        varies = varying_groups(distances)
        errors = np.divide(errors, distances, out=np.zeros(len(errors)), where=varies)
    return dict(zip(labels.tolist(), errors.tolist(), strict=True))


def reconstruction_disparity(
    estimator: Any, X: Any, sensitive_features: Any, **options: Any
) -> float:
    """Largest minus smallest group error; the paper's ``|D|`` when there are two groups.

    Parameters and options are those of :func:`group_reconstruction_errors`. Zero means that all
    groups are reconstructed equally well.
    """
    errors = group_reconstruction_errors(estimator, X, sensitive_features, **options)
    if len(errors) == 1:
        raise ValueError("sensitive_features holds one group only; a disparity needs at least two.")
    return max(errors.values()) - min(errors.values())


class _DisparityScorer:
    """Minus the disparity of reconstruction errors, so that greater is better.

    ``disparity_scorer`` is ready for ``scoring=`` of ``cross_validate`` and searches, with metadata
    routing enabled; it asks for ``sensitive_features`` and ``sample_weight`` by itself. It warns
    where a projection loses next to nothing: a search over ``n_components`` would end there.

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
    ...     found = cross_validate(FairPCA(8), people.data, scoring=disparity_scorer, params=groups)
    >>> found["test_score"].shape
    (5,)
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
            raise TypeError(
                "sensitive_features is missing: after "
                "sklearn.set_config(enable_metadata_routing=True), pass cross_validate(..., params="
                "{'sensitive_features': groups}) or search.fit(X, sensitive_features=groups)."
            )
        given = estimator, X, sensitive_features
        shares = group_reconstruction_errors(
            *given, sample_weight=sample_weight, relative_errors=True
        )
        if max(shares.values()) <= 1e-3:
            warn(
                "this projection loses next to nothing of any group, so a search over n_components "
                "ends here, fair or not; search with a fixed n_components, or let another score "
                "choose it: scoring={'R2': 'r2', 'disparity': disparity_scorer}, refit='R2'.",
                UserWarning,
            )
        return -reconstruction_disparity(*given, sample_weight=sample_weight)

    def get_metadata_routing(self) -> MetadataRequest:
        """Ask scikit-learn for the groups and the weights."""
        request = MetadataRequest(owner="disparity_scorer")
        for name in ("sensitive_features", "sample_weight"):
            request.score.add_request(param=name, alias=True)
        return request

    def __repr__(self) -> str:
        return "disparity_scorer"


disparity_scorer = _DisparityScorer()


def refuse_data(judged: Any, call: str) -> None:
    """Refuse rows or moments in the place of what is judged, which comes first in every call."""
    is_model = hasattr(judged, "fit") or hasattr(judged, "components_")
    has_rows = hasattr(judged, "shape") or isinstance(judged, list | tuple | GroupMoments)
    if has_rows and not is_model:
        kind = type(judged).__name__
        shape = getattr(judged, "shape", None)
        of_shape = f" of shape {shape}" if shape is not None else ""
        raise TypeError(f"what is judged comes first, but this is a {kind}{of_shape}; pass {call}.")


def refuse_unfitted(estimator: Any) -> None:
    """Refuse a class, and an estimator or a pipeline that is not fitted."""
    if isinstance(estimator, (type, BaseEstimator)):
        check_is_fitted(estimator)


def steps_to_projection(estimator: Any, strict: bool = True) -> list[Any]:
    """The steps up to the last linear projection. A pipeline without one is refused if strict."""
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
    """The projection of a fitted pipeline, and the rows as they arrive at it."""
    *before, projection = steps_to_projection(estimator, strict)
    if isinstance(projection, FairProjection) and projection.standardize:
        refuse_unfitted(projection)
        *scaling, projection = projection.to_sklearn()
        before += scaling
    for step in before:
        X = step.transform(X)
    return projection, X


def projection_of(estimator: Any, n_features: int | None = None) -> tuple[Array, Array]:
    """Components and mean of a fitted linear projection; ``n_features`` must match if given."""
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
