"""How well the scores tell the groups apart: from moments, and by classifiers that guess.

With ``U`` the components, ``S_w`` the covariance within groups, ``B`` the covariance of the group
means and ``d`` the difference of two groups' means, the centroid share is
``tr U'BU / tr U'(B + S_w)U``. The AUC of the linear discriminant is ``Phi(Delta / sqrt 2)``, exact
for Gaussians of equal covariance, with the Mahalanobis distance ``Delta^2 = d'U (U'S_wU)^-1 U'd``.

A probe is a classifier that guesses the group of rows it has not seen. Its AUC is a lower bound:
the groups can be told apart at least this well, and another probe may do better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array
from threadpoolctl import threadpool_limits

from fairpca._input.checks import (
    check_classifier,
    check_confidence,
    check_integer,
    check_several_groups,
)
from fairpca._input.labels import encode_groups
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.small_groups import features_by_group
from fairpca._typing import Array, Codes, Labels, Mask
from fairpca.metrics.projection import projection_of, seen_by_projection


@dataclass(frozen=True)
class Separation:
    """How far apart the means of the groups' scores are.

    Attributes
    ----------
    groups : ndarray of shape (k,)
    centroid_share : float
        Share of the scores' variance that is between the groups' means: 0 when these are equal.
    discriminant_auc : ndarray of shape (k, k)
        AUC with which the linear discriminant would tell each pair apart; 0.5 when it cannot, 1
        where the groups differ in a direction that does not vary within groups.
    """

    groups: Labels
    centroid_share: float
    discriminant_auc: Array

    def largest(self) -> dict[str, float]:
        """The centroid share, and the AUC for the pair of groups that is furthest apart."""
        auc = float(self.discriminant_auc.max())
        return {"centroid_share": self.centroid_share, "discriminant_auc": auc}


def group_separation(
    estimator: Any, X: Any, sensitive_features: Any = None, *, sample_weight: Any = None
) -> Separation:
    """How far apart the groups' scores are, by their means and the covariance within groups.

    Scores are those of the projection; what a pipeline does after it does not count.

    Parameters
    ----------
    estimator : object
        Fitted, with orthonormal ``components_`` and a ``mean_``; with rows also a pipeline.
    X : GroupMoments, or array, sparse matrix or data frame of shape (n_samples, n_features)
        Moments of any rows are enough; outcomes and folds in them are summed over.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; not with moments, which hold the groups.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    Separation

    Examples
    --------
    >>> from fairpca import BlindPCA, FairPCA
    >>> from fairpca.datasets import load_checkup
    >>> from fairpca.metrics import group_separation
    >>> people = load_checkup()
    >>> X, groups = people.data, people.sensitive_features
    >>> for model in (FairPCA(5, alpha=1, standardize=True), BlindPCA(5, standardize=True)):
    ...     model = model.fit(X, sensitive_features=groups)
    ...     print(f"{group_separation(model, X, groups).largest()['discriminant_auc']:.2f}")
    0.76
    0.50
    """
    if not isinstance(X, GroupMoments):
        estimator, X = seen_by_projection(estimator, X)
        if sensitive_features is None:
            raise TypeError(
                "sensitive_features is missing; pass group_separation(estimator, X, groups) with "
                "one label per row of X."
            )
        moments = GroupMoments().update(X, sensitive_features, sample_weight)
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
        moments = features_by_group(X)
    check_several_groups(moments.groups.tolist(), int(moments.counts.sum()), otherwise="")
    components, _ = projection_of(estimator, moments.n_features)
    components = components / getattr(estimator, "scale_", 1.0)
    if getattr(estimator, "whiten", False):
        deviations = np.sqrt(np.asarray(estimator.explained_variance_, dtype=np.float64))
        components = components / np.where(deviations > 0, deviations, 1.0)[:, np.newaxis]
    means = moments.from_mean @ components.T
    shares = moments.weights / moments.weights.sum()
    total = np.tensordot(shares, components @ moments.operand().products(components.T), axes=1)
    between = (means.T * shares) @ means
    variance = float(np.trace(total))
    return Separation(
        groups=moments.groups,
        centroid_share=float(np.trace(between)) / variance if variance > 0 else 0.0,
        discriminant_auc=np.asarray(ndtr(_mahalanobis(means, total - between) / np.sqrt(2))),
    )


def _mahalanobis(means: Array, within: Array) -> Array:
    """Distances of all pairs of means; very large where they differ and nothing varies within."""
    values, vectors = np.linalg.eigh(within)
    # Smaller variances are rounding, and would make the distance infinite or undefined.
    least = 1e-12 * max(float(values.max(initial=0.0)), float(np.sum(means**2)))
    scaled = means @ vectors / np.sqrt(np.maximum(values, least or 1.0))
    return np.asarray(cdist(scaled, scaled))


@dataclass(frozen=True)
class Probe:
    """How well one kind of classifier guesses the group, on rows it has not seen.

    Attributes
    ----------
    name : str
    auc : float
        0.5 when it cannot tell. For more than two groups, the mean over the groups of the AUC of
        each against the rest.
    low, high : float
        Confidence interval of the mean AUC of the probes of these folds, on new rows. It is too
        wide where the groups are easily told apart.
    """

    name: str
    auc: float
    low: float
    high: float


def probe_groups(
    scores: Any,
    sensitive_features: Any,
    *,
    probes: Mapping[str, Any] | None = None,
    cv: int = 5,
    confidence: float = 0.95,
    random_state: Any = None,
) -> list[Probe]:
    """Guess the group of each row from its scores, by cross-fitted classifiers.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_components)
        Preferably of rows that the projection was not fitted to: where it made the means of these
        very rows equal, a linear probe comes out below 0.5. Pass X to probe all features.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; several columns are crossed.
    probes : mapping of str to classifier, optional
        By default ``"logistic"``, a logistic regression on standardised scores, and ``"boosted"``,
        gradient-boosted trees, which also see what is not linear.
    cv : int, default=5
        Number of folds; every row is guessed by a classifier that was fitted without its fold.
    confidence : float, default=0.95
    random_state : int, RandomState or None, default=None
        Seed of the folds and the trees.

    Returns
    -------
    list of Probe

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_checkup
    >>> from fairpca.metrics import probe_groups
    >>> people = load_checkup()
    >>> fair = FairPCA(5, standardize=True)
    >>> scores = fair.fit_transform(people.data, sensitive_features=people.sensitive_features)
    >>> for probe in probe_groups(scores, people.sensitive_features, random_state=0):
    ...     print(f"{probe.name}: AUC {probe.auc:.1f}, above {probe.low:.1f}")
    logistic: AUC 0.8, above 0.8
    boosted: AUC 0.8, above 0.8
    """
    check_confidence(confidence)
    rng = check_random_state(random_state)
    if np.ndim(scores) == 1:
        raise ValueError(
            f"scores have one dimension, {len(scores)} numbers; pass a row of scores for each "
            "person, for example scores.reshape(-1, 1) for one component."
        )
    Z = np.asarray(check_array(scores, dtype=np.float64))
    codes, labels = encode_groups(sensitive_features, len(Z))
    check_several_groups(labels.tolist(), len(Z), otherwise="")
    folds = stratified_folds(cv, codes, "group", rng)
    if probes is None:
        trees = HistGradientBoostingClassifier(max_iter=50, random_state=rng.randint(2**31 - 1))
        probes = {"logistic": usual_classifier(), "boosted": trees}
    if not isinstance(probes, Mapping) or not probes:
        raise TypeError(
            f"probes={probes!r}: pass classifiers by name, for example {{'forest': "
            "RandomForestClassifier()}, or None for the usual ones."
        )
    for name, probe in probes.items():
        check_classifier(f"probe {name!r}", probe)
    fold, fewest, found = np.empty(len(Z)), int(np.bincount(codes).min()), []
    for i, (_, test) in enumerate(folds):
        fold[test] = i
    for name, probe in probes.items():
        with threadpool_limits(1):  # threads would wait for each other longer than they work
            chances = cross_val_predict(probe, Z, codes, cv=folds, method="predict_proba")
        auc, error = cross_fitted_auc(chances, codes, fold)
        found.append(Probe(name, auc, *share_interval(auc, error, fewest, confidence)))
    return found


def usual_classifier() -> Pipeline:
    """A logistic regression on standardised columns."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def stratified_folds(
    cv: int, cells: Codes, what: str, rng: np.random.RandomState
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Folds with the same share of each cell."""
    check_integer("cv", cv, 2)
    fewest = int(np.unique(cells, return_counts=True)[1].min())
    if fewest < cv:
        fewer = f"pass cv={fewest} or " if fewest > 1 else ""
        raise ValueError(
            f"cv={cv} folds need {cv} rows of each {what}, but one has {fewest}; {fewer}merge "
            "small groups."
        )
    split = StratifiedKFold(cv, shuffle=True, random_state=rng.randint(2**31 - 1))
    return list(split.split(np.zeros(len(cells)), cells))


def cross_fitted_auc(chances: Array, codes: Codes, fold: NDArray[Any]) -> tuple[float, float]:
    """AUC over pairs within folds, and its standard error.

    For more than two groups, the mean of the AUC of each against the rest. The error is that of
    DeLong et al. (1988), from the *placements* of rows, which are summed over these AUCs row by row
    because the AUCs depend on each other. The folds depend on each other too, because their probes
    were fitted to each other's rows: where there is nothing to tell, each pair of rows counts
    twice, with either one in training. With several folds the variance is therefore doubled, which
    is too much where the groups are easily told apart.
    """
    k = chances.shape[1]
    each = [1] if k == 2 else range(k)
    areas, shares = [], np.zeros(len(codes))
    for g in each:
        own = codes == g
        placements = _placements(chances[:, g], own, fold)
        areas.append(float(placements[own].mean()))
        size = np.where(own, own.sum(), (~own).sum()) * len(each)
        shares += (placements - areas[-1]) / size
    parts = [shares[codes == g] for g in range(k)]
    variance = sum(len(part) * np.var(part, ddof=1) if len(part) > 1 else 0.25 for part in parts)
    if len(np.unique(fold)) > 1:
        variance *= 2
    return float(np.mean(areas)), float(np.sqrt(variance))


def _placements(values: Array, positive: Mask, fold: NDArray[Any]) -> Array:
    """The share of the other class's rows of its fold that each row is on the right side of."""
    placements = np.empty(len(values))
    for i in np.unique(fold):
        up, down = np.flatnonzero(positive & (fold == i)), np.flatnonzero(~positive & (fold == i))
        overall = rankdata(values[np.r_[up, down]])
        placements[up] = (overall[: len(up)] - rankdata(values[up])) / len(down)
        placements[down] = 1 - (overall[len(up) :] - rankdata(values[down])) / len(up)
    return placements


def share_interval(
    share: float, error: float, n_rows: int, confidence: float
) -> tuple[float, float]:
    """Wilson's interval of a share or an AUC with a standard error; it stays within 0 and 1.

    The number of rows in the formula is the one at which a share has this error. It is ``n_rows``
    for a share of 0 or 1, whose error is 0: such a share is not known for sure.
    """
    n = share * (1 - share) / error**2 if error > 0 and 0 < share < 1 else n_rows
    z = float(ndtri(0.5 + confidence / 2))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
    return min(max(middle - half, 0.0), share), max(min(middle + half, 1.0), share)
