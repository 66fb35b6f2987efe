"""How far apart the groups' scores are, from moments alone.

With ``U`` the components, ``S_w`` the covariance within groups, ``B`` the covariance of the group
means and ``d`` the difference of two groups' means, the centroid share is
``tr U'BU / tr U'(B + S_w)U``. The AUC of the linear discriminant is ``Phi(Delta / sqrt 2)``, exact
for Gaussians of equal covariance, with the Mahalanobis distance ``Delta^2 = d'U (U'S_wU)^-1 U'd``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtr
from sklearn.pipeline import Pipeline

from fairpca._input.checks import check_n_features, check_several_groups
from fairpca._input.stream import open_input
from fairpca._linear_map import fitted_map
from fairpca._moments.group_moments import GroupMoments
from fairpca._typing import Array, Labels
from fairpca.metrics.reconstruction import refuse_data


@dataclass(frozen=True)
class Separation:
    """How far apart the means of the groups' scores are."""

    groups: Labels
    #: Share of the scores' variance that is between the groups' means: 0 when these are equal.
    centroid_share: float
    #: (k, k): AUC with which the linear discriminant would tell each pair apart; 0.5 when it
    #: cannot, 1 where the groups differ in a direction that does not vary within groups.
    discriminant_auc: Array


def group_separation(
    estimator: Any, X: Any, sensitive_features: Any = None, *, sample_weight: Any = None
) -> Separation:
    """How far apart the groups' scores are, by their means and the covariance within groups.

    Returns a :class:`Separation` of the projection's scores; later steps of pipelines do not count.

    Parameters
    ----------
    estimator : object
        Fitted, with orthonormal ``components_`` and ``mean_``; or a pipeline if X holds rows.
    X : GroupMoments, or array, sparse matrix, data frame or stream
        Moments of any rows are enough; outcomes and folds in them are summed over. Where columns
        have names, the arguments below may be such names.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; moments already hold it.
    sample_weight : array-like of shape (n_samples,), optional

    Examples
    --------
    >>> from fairpca import BlindPCA, FairPCA
    >>> from fairpca.datasets import load_checkup
    >>> from fairpca.metrics import group_separation
    >>> people = load_checkup()
    >>> X, groups = people.data, people.sensitive_features
    >>> for model in (FairPCA(5, alpha=1, standardize=True), BlindPCA(5, standardize=True)):
    ...     model = model.fit(X, sensitive_features=groups)
    ...     print(f"{group_separation(model, X, groups).discriminant_auc.max():.2f}")
    0.76
    0.50
    """
    refuse_data(estimator, "group_separation(estimator, X, sensitive_features)")
    if not isinstance(X, GroupMoments):
        if sensitive_features is None:
            call = "group_separation(estimator, X, groups) with one label per row of X"
            raise TypeError(f"sensitive_features is missing; pass {call}.")
        fitted = fitted_map(estimator)
        given = open_input(X, sensitive_features, sample_weight)
        moments = fitted.moments(given, "group_separation")
    elif isinstance(estimator, Pipeline):
        raise TypeError(
            "a pipeline changes rows before they arrive at the projection; pass the projection "
            "itself, for example pipeline[-1], with moments of the rows that arrive there."
        )
    elif sensitive_features is not None or sample_weight is not None:
        raise ValueError(
            "moments know their groups and weights; pass group_separation(estimator, moments)."
        )
    else:
        fitted = fitted_map(estimator)
        moments = X.keep()
        check_n_features(len(fitted.map.mean), moments.n_features, "group_separation")
    check_several_groups(moments.groups.tolist(), int(moments.counts.sum()), otherwise="")
    return separation(moments, fitted.map.encode)


def separation(moments: GroupMoments, encode: Array) -> Separation:
    """How far apart the groups' scores are, given the matrix from columns to scores."""
    means = moments.from_mean @ encode
    shares = moments.weights / moments.weights.sum()
    total = np.tensordot(shares, encode.T @ moments.operand().products(encode), axes=1)
    between = (means.T * shares) @ means
    within, axes = np.linalg.eigh(total - between)
    # Smaller variances are rounding, and would make a distance infinite or undefined.
    least = 1e-12 * max(float(within.max(initial=0.0)), float(np.sum(means**2)))
    scaled = means @ axes / np.sqrt(np.maximum(within, least or 1.0))
    variance = float(np.trace(total))
    return Separation(
        groups=moments.groups,
        centroid_share=float(np.trace(between)) / variance if variance > 0 else 0.0,
        discriminant_auc=np.asarray(ndtr(cdist(scaled, scaled) / np.sqrt(2))),
    )
