"""How well a linear projection reconstructs each group, on any data.

Errors are in the units of the rows as they arrive at the projection.
"""

from collections.abc import Sized
from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from fairpca._input.checks import check_group_weights, check_sample_weight
from fairpca._input.labels import encode_groups
from fairpca._input.stream import Input, as_chosen, in_memory, open_input
from fairpca._linear_map import fitted_map
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.tolerances import varying_groups
from fairpca._typing import Array, Labels
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
    fitted = fitted_map(estimator)
    return fitted.map.errors(fitted.arriving(X, "row_reconstruction_errors"))


def group_reconstruction_errors(
    estimator: Any,
    X: Any,
    sensitive_features: Any,
    *,
    sample_weight: Any = None,
    relative_errors: bool = False,
    crossing: bool = True,
) -> dict[Any, float]:
    """Dictionary with the average squared reconstruction error ``R_g`` of each group, by label.

    Parameters
    ----------
    estimator : object
        As for :func:`row_reconstruction_errors`.
    X : array, sparse matrix, data frame or stream of shape (n_samples, n_features)
        Where its columns have names, the arguments below may be such names.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; several columns are crossed. The labels are the keys, sorted.
    sample_weight : array-like of shape (n_samples,), optional
    relative_errors : bool, default=False
        Divide each group's error by the group's average squared distance from ``mean_``, which is
        its error when no component is kept. A group at ``mean_`` has the error 0.
    crossing : bool, default=True
        Cross several columns. With False each column has groups of its own, such as "sex = f".

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
    labels, errors, shares = _by_group(
        estimator, X, sensitive_features, sample_weight, crossing=crossing
    )
    if relative_errors:
        errors = shares
    return dict(zip(labels, errors, strict=True))


def _by_group(
    estimator: Any, X: Any, sensitive_features: Any, sample_weight: Any, crossing: bool = True
) -> tuple[list[Any], list[float], list[float]]:
    """The labels of the groups, their errors, and these as shares of what there is to lose."""
    refuse_data(estimator, "group_reconstruction_errors(estimator, X, sensitive_features)")
    given = as_chosen(open_input(X, sensitive_features, sample_weight), crossing=crossing)
    if in_memory(given.X):
        labels, totals, sums = _sums_of_rows(estimator, given)
    else:
        fitted = fitted_map(estimator)
        moments = fitted.moments(given, "group_reconstruction_errors")
        labels = moments.groups
        totals = moments.weights
        sums = fitted.map.group_errors(moments.group_sums())
    check_group_weights(labels, totals)
    errors, distances = (of_groups / totals for of_groups in sums)
    shares = np.divide(
        errors, distances, out=np.zeros(len(errors)), where=varying_groups(distances)
    )
    return labels.tolist(), errors.tolist(), shares.tolist()


def _sums_of_rows(estimator: Any, given: Input) -> tuple[Labels, Array, tuple[Array, Array]]:
    """Labels and weights of the groups, and the sums of errors and of distances from the mean."""
    squares = _squares(estimator, given.X)
    n_rows = len(squares[0])
    coded = encode_groups(given.sensitive_features, n_rows)
    weights = check_sample_weight(given.sample_weight, n_rows)
    if weights is None:
        weights = np.ones(n_rows)
    of_rows = np.array([weights, *(weights * own for own in squares)])
    if coded.margins and not given.crossing:
        coded, m = coded.side_by_side()
        of_rows = np.tile(of_rows, m)
    sums = [np.asarray(np.bincount(coded.codes, own), np.float64) for own in of_rows]
    return coded.labels, sums[0], (sums[1], sums[2])


def reconstruction_disparity(
    estimator: Any, X: Any, sensitive_features: Any, **options: Any
) -> float:
    """Largest minus smallest group error; the paper's ``|D|`` when there are two groups.

    Parameters and options are those of :func:`group_reconstruction_errors`. Zero means that all
    groups are reconstructed equally well.
    """
    errors = group_reconstruction_errors(estimator, X, sensitive_features, **options)
    _refuse_one_group(errors)
    return max(errors.values()) - min(errors.values())


def _refuse_one_group(errors: Sized) -> None:
    if len(errors) == 1:
        raise ValueError("sensitive_features holds one group only; a disparity needs at least two.")


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
        _, errors, shares = _by_group(estimator, X, sensitive_features, sample_weight)
        _refuse_one_group(errors)
        if max(shares) <= 1e-3:
            warn(
                "this projection loses next to nothing of any group, so a search over n_components "
                "ends here, fair or not; search with a fixed n_components, or let another score "
                "choose it: scoring={'R2': 'r2', 'disparity': disparity_scorer}, refit='R2'.",
                UserWarning,
            )
        return min(errors) - max(errors)

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
        of_shape = ""
        if shape is not None:
            of_shape = f" of shape {shape}"
        raise TypeError(f"what is judged comes first, but this is a {kind}{of_shape}; pass {call}.")
