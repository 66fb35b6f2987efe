"""What scores tell about the group, from moments alone.

With ``U`` the components, ``m_g`` and ``S_g`` mean and covariance of group g, ``S_w`` the pooled
covariance, ``B`` the covariance of the group means, ``C = B + S_w``, and ``d = U'(m_g - m_h)``:

===========================  ======================================================================
centroid share               ``tr U'BU / tr U'CU``: how much of the scores' variance is between the
                             groups
Mahalanobis distance         ``Delta^2 = d' (U'S_wU)^-1 d``
AUC of the discriminant      ``Phi(Delta / sqrt 2)``, exact for Gaussians of equal covariance
Wasserstein distance         of Gaussians, ``|d|^2 + tr(V_g + V_h - 2 (V_g^1/2 V_h V_g^1/2)^1/2)``
                             under a root, with ``V_g = U'S_gU``
second-order MMD             squared, for the kernel ``(x'y + c)^2``: ``2c |d|^2 +
                             |M_g - M_h|^2``, with ``M_g`` the second moments about the overall mean
===========================  ======================================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.pipeline import Pipeline

from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.strata import without_outcomes
from fairpca._typing import Array, Labels
from fairpca.metrics.projection import projection_of, score_units, seen_by_projection

_SINGULAR = 1e-12  # of the largest variance within groups: none


@dataclass(frozen=True)
class Separation:
    """How far apart the scores of groups are, by their moments.

    Attributes
    ----------
    groups : ndarray of shape (k,)
    centroid_share : float
        Share of the scores' variance that is between the groups' means: 0 when these are equal.
    mahalanobis : ndarray of shape (k, k)
        Distance of each pair of means in units of the standard deviation within groups; infinite
        where a direction without variance within groups tells the pair apart.
    discriminant_auc : ndarray of shape (k, k)
        AUC with which the linear discriminant would tell each pair apart; 0.5 when it cannot.
    wasserstein : ndarray of shape (k, k)
        Distance of each pair as Gaussians, in the units of X: 0 when means and covariances agree.
    second_order_mmd2 : ndarray of shape (k, k)
        Squared maximum mean discrepancy of each pair for the kernel ``(x'y + c)^2``.
    """

    groups: Labels
    centroid_share: float
    mahalanobis: Array
    discriminant_auc: Array
    wasserstein: Array
    second_order_mmd2: Array

    def largest(self) -> dict[str, float]:
        """The centroid share, and each other figure for the pair of groups that is worst."""
        return {
            "centroid_share": self.centroid_share,
            "mahalanobis": float(self.mahalanobis.max()),
            "discriminant_auc": float(self.discriminant_auc.max()),
            "wasserstein": float(self.wasserstein.max()),
            "second_order_mmd2": float(self.second_order_mmd2.max()),
        }


def group_separation(
    estimator: Any,
    X: Any,
    sensitive_features: Any = None,
    *,
    sample_weight: Any = None,
    constant: float = 1.0,
) -> Separation:
    """How far apart the groups' scores are, by their means and covariances.

    Scores are those of the projection, whitened if it whitens them; what a pipeline does after it
    does not count.

    Parameters
    ----------
    estimator : object
        Fitted, with orthonormal ``components_`` and a ``mean_``; with rows also a pipeline.
    X : GroupMoments, or array, sparse matrix or data frame of shape (n_samples, n_features)
        Moments are enough, of any rows; outcomes and folds that they keep apart do not count.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; not with moments, which know it.
    sample_weight : array-like of shape (n_samples,), optional
    constant : float, default=1.0
        ``c`` in the kernel ``(x'y + c)^2``: how much means count beside second moments.

    Returns
    -------
    Separation

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from fairpca import BlindPCA
    >>> from fairpca.datasets import load_diabetes_by_sex
    >>> from fairpca.metrics import group_separation
    >>> data = load_diabetes_by_sex()
    >>> X, groups = data.data, data.sensitive_features
    >>> pca, blind = PCA(2).fit(X), BlindPCA(2).fit(X, sensitive_features=groups)
    >>> round(group_separation(pca, X, groups).largest()["discriminant_auc"], 3)
    0.701
    >>> round(group_separation(blind, X, groups).largest()["discriminant_auc"], 3)
    0.5
    """
    if not 0 <= constant < inf:
        raise ValueError(f"constant={constant}: pass 0, or a positive number.")
    if not isinstance(X, GroupMoments):
        estimator, X = seen_by_projection(estimator, X)
    elif isinstance(estimator, Pipeline):
        raise TypeError(
            "moments are those of rows as they arrive at the projection, and a pipeline changes "
            "rows before it; pass the projection itself, for example pipeline[-1], with moments "
            "of such rows."
        )
    moments = _moments_of_rows(X, sensitive_features, sample_weight)
    components, _ = projection_of(estimator)
    if components.shape[1] != moments.n_features:
        raise ValueError(
            f"the data have {moments.n_features} features, but {type(estimator).__name__} was "
            f"fitted to {components.shape[1]}; pass the same columns as for fit."
        )
    scoring = components / score_units(estimator)
    means = moments.from_mean @ scoring.T
    about_mean = scoring @ moments.operand().products(scoring.T)
    shares = moments.weights / moments.weights.sum()
    own = about_mean - np.einsum("gi,gj->gij", means, means)
    within = np.tensordot(shares, own, axes=1)
    between, total = (
        float(shares @ np.sum(means**2, axis=1)),
        shares @ np.trace(about_mean, axis1=1, axis2=2),
    )
    distances = _mahalanobis(means, within)

    def second_order(g: int, h: int) -> float:
        apart = about_mean[g] - about_mean[h]
        return float(2 * constant * np.sum((means[g] - means[h]) ** 2) + np.sum(apart**2))

    return Separation(
        groups=moments.groups,
        centroid_share=between / float(total) if total > 0 else 0.0,
        mahalanobis=distances,
        discriminant_auc=np.asarray(ndtr(distances / np.sqrt(2))),
        wasserstein=_of_pairs(len(means), lambda g, h: _gaussian_distance(means, own, g, h)),
        second_order_mmd2=_of_pairs(len(means), second_order),
    )


def _moments_of_rows(X: Any, groups: Any, sample_weight: Any) -> GroupMoments:
    if isinstance(X, GroupMoments):
        if groups is not None or sample_weight is not None:
            raise ValueError(
                "moments know their groups and weights; pass group_separation(estimator, moments) "
                "without sensitive_features and sample_weight."
            )
        moments = without_outcomes(X.without_folds())
    elif groups is None:
        raise TypeError(
            "sensitive_features is missing; pass group_separation(estimator, X, groups) with one "
            "label per row of X."
        )
    else:
        moments = GroupMoments.from_data(X, groups, sample_weight)
    if len(moments.groups) < 2:
        raise ValueError(
            f"there is one group only ({moments.groups.tolist()[0]!r}), and a separation needs at "
            "least two."
        )
    return moments


def _mahalanobis(means: Array, within: Array) -> Array:
    """Distances of all pairs; infinite where a pair differs though nothing varies within groups."""
    values, vectors = np.linalg.eigh(within)
    varying = values > _SINGULAR * max(float(values.max(initial=0.0)), float(np.sum(means**2)))
    along = means @ vectors
    scaled = along[:, varying] / np.sqrt(values[varying])
    distances = _of_pairs(len(means), lambda g, h: float(np.linalg.norm(scaled[g] - scaled[h])))
    if not varying.all():
        warnings.warn(
            f"the scores do not vary within groups in {int(np.sum(~varying))} of their "
            f"{len(values)} dimension{'s' if len(values) > 1 else ''}; the Mahalanobis distance is "
            "taken in the others, and is infinite for groups that differ there.",
            RuntimeWarning,
            stacklevel=3,
        )
        still = along[:, ~varying]
        size = 1e-6 * max(float(np.abs(along).max()), float(np.sqrt(values.max(initial=0.0))))
        apart = np.abs(still[:, None] - still[None]).max(axis=2) > size
        distances[apart] = np.inf
    return distances


def _gaussian_distance(means: Array, own: Array, g: int, h: int) -> float:
    variances, vectors = np.linalg.eigh(own[g])
    root = vectors * np.sqrt(np.maximum(variances, 0.0))
    values = np.linalg.eigvalsh(root.T @ own[h] @ root)
    shared = float(np.sqrt(np.maximum(values, 0.0)).sum())
    apart = float(np.sum((means[g] - means[h]) ** 2))
    return float(np.sqrt(max(apart + np.trace(own[g]) + np.trace(own[h]) - 2 * shared, 0.0)))


def _of_pairs(k: int, measure: Callable[[int, int], float]) -> Array:
    """A symmetric matrix with zeros on its diagonal."""
    matrix = np.zeros((k, k))
    for g in range(k):
        for h in range(g):
            matrix[g, h] = matrix[h, g] = measure(g, h)
    return matrix
