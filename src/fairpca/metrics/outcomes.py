"""Rates by group of a classifier on scores, against PCA's scores and all features.

The intervals are not resampled, as those of fairlearn's ``MetricFrame`` are: resampled gaps are
never 0, so that intervals of groups that do not differ exclude 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb, hypot
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fairpca._input.checks import check_classifier, check_confidence, check_several_groups
from fairpca._input.labels import encode_groups, encode_outcomes
from fairpca._moments.group_differences import positive_class
from fairpca._typing import Array, Codes, Labels, Mask
from fairpca.metrics.projection import flattened, seen_by_projection
from fairpca.metrics.separation import (
    cross_fitted_auc,
    share_interval,
    stratified_folds,
    usual_classifier,
)


class Estimate(NamedTuple):
    """A figure with its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True, repr=False)
class Outcomes:
    """Rates of one classifier by group, on rows it has not seen.

    The metrics are ``"accuracy"``, ``"auc"``, ``"selection_rate"`` (how often the positive class is
    predicted), ``"true_positive_rate"`` and ``"false_positive_rate"``.

    Attributes
    ----------
    name : str
        What the classifier saw: ``"scores"``, ``"pca"`` or ``"features"``.
    overall : dict of str to float
        Each metric over all rows.
    base_rate : float
        The share of rows that are positive, to compare with the overall selection rate.
    by_group : dict of str to dict of label to Estimate
        Each metric of each group.
    difference : dict of str to Estimate
        Largest less smallest value of a group: 0 is parity. The interval holds for all pairs of
        groups at once; it starts at 0 unless the rows show that two groups differ.
    data : tuple of ndarray or None
        For each row whether it is positive, its predicted probability, and its group, for use with
        ``fairlearn.metrics.MetricFrame``, for example. None in an audit, which keeps no rows.
    positive : label
        The class that counts as positive: a person predicted to be of it is selected.
    """

    name: str
    overall: Mapping[str, float]
    base_rate: float
    by_group: Mapping[str, Mapping[Any, Estimate]]
    difference: Mapping[str, Estimate]
    data: tuple[NDArray[Any], Array, NDArray[Any]] | None
    positive: Any = True

    def __repr__(self) -> str:
        rates = ("selection_rate", "true_positive_rate", "false_positive_rate")
        gaps = ", ".join(f"{name} {self.difference[name]}" for name in rates)
        return f"Outcomes({self.name!r}: AUC {self.overall['auc']:.3f}, gaps: {gaps})"


def classifier_outcomes(
    estimator: Any,
    X: Any,
    y: Any,
    sensitive_features: Any,
    *,
    classifier: Any = None,
    pos_label: Any = None,
    cv: int = 5,
    confidence: float = 0.95,
    random_state: Any = None,
) -> list[Outcomes]:
    """Rates by group of a classifier on the scores, on PCA's scores, and on all features.

    Every row is predicted by a classifier that was fitted without its fold.

    Parameters
    ----------
    estimator : transformer
        A fitted one is used as it is, so X should be rows that it was not fitted to. One that is
        not fitted is fitted to the training rows of each fold.
    X : array or data frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Classes.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; several columns are crossed.
    classifier : classifier, optional
        By default a logistic regression on standardised columns.
    pos_label : label, optional
        The positive class; by default the larger of two. All others are negative.
    cv : int, default=5
        Number of folds.
    confidence : float, default=0.95
        Level of the intervals. They hold for the classifiers as fitted.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Returns
    -------
    list of Outcomes
        For ``"scores"``, ``"pca"`` (with as many components) and ``"features"``. With a pipeline,
        PCA and all features are those that arrive at its projection: standardised, for example.

    Examples
    --------
    >>> from fairpca import FairPLS
    >>> from fairpca.datasets import load_rand_health
    >>> from fairpca.metrics import classifier_outcomes
    >>> people = load_rand_health(prepare=False)
    >>> X, often = people.data[:, 1:], people.data[:, 0] > 1  # visits to a doctor
    >>> pls = FairPLS(3, notion="demographic_parity", standardize=True)
    >>> outcomes = classifier_outcomes(pls, X, often, people.sensitive_features, random_state=0)
    >>> for found in outcomes:
    ...     print(found.name, f"{found.difference['selection_rate'].value:.1f}")
    scores 0.0
    pca 0.1
    features 0.3
    """
    check_confidence(confidence)
    classifier = usual_classifier() if classifier is None else classifier
    _check_kinds(estimator, X, classifier)
    codes, labels = encode_groups(sensitive_features, len(X))
    check_several_groups(labels.tolist(), len(codes), otherwise="")
    outcomes, classes = encode_outcomes(y, len(X))
    label = positive_class(classes.tolist(), pos_label)
    positive = np.asarray(outcomes == classes.tolist().index(label))
    cells = 2 * codes + positive
    sizes = np.bincount(cells, minlength=2 * len(labels))
    if not sizes.all():
        raise ValueError(
            f"group {labels.tolist()[int(np.argmin(sizes)) // 2]!r} has rows of one class only, so "
            "it has no rates to compare; leave it out, or merge it with others."
        )
    chances = np.empty((3, len(codes)))
    for train, test in stratified_folds(
        cv, cells, "group and class", check_random_state(random_state)
    ):
        model = _fitted(estimator, X, y, sensitive_features, train)
        for chance, seen in zip(chances, _representations(model, X, train), strict=True):
            fitted = clone(classifier).fit(seen[train], positive[train])
            chance[test] = fitted.predict_proba(seen[test])[:, 1]
    return [
        rates_by_group(name, positive, chance, codes, labels, confidence, label)
        for name, chance in zip(("scores", "pca", "features"), chances, strict=True)
    ]


def _check_kinds(estimator: Any, X: Any, classifier: Any) -> None:
    if not hasattr(estimator, "transform"):
        name = type(estimator).__name__
        cure = "pass a transformer such as FairPCA(2)"
        if isinstance(estimator, Pipeline):
            name = f"{name} that ends in {type(estimator.steps[-1][1]).__name__}"
            cure = "pass estimator=pipeline[:-1], classifier=pipeline[-1]"
        raise TypeError(f"estimator is a {name}, which has no transform; {cure}.")
    check_classifier("classifier", classifier)
    if issparse(X):
        raise TypeError("X is sparse; pass X.toarray(), or fewer rows if that is too large.")


def _fitted(estimator: Any, X: Any, y: Any, groups: Any, train: NDArray[Any]) -> Any:
    """The estimator itself if it is fitted, else a clone of it fitted to the training rows."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        X, y, groups = (_safe_indexing(values, train) for values in (X, y, groups))
        takes = any(has_fit_parameter(s, "sensitive_features") for s in flattened(estimator))
        with config_context(enable_metadata_routing=True):  # so steps of pipelines get the groups
            return clone(estimator).fit(X, y, **({"sensitive_features": groups} if takes else {}))
    return estimator


def _representations(model: Any, X: Any, train: NDArray[Any]) -> list[Array]:
    """The scores of a fitted model, those of PCA, and all features, as they arrive at the model."""
    scores, seen = np.asarray(model.transform(X)), seen_by_projection(model, X, strict=False)[1]
    seen = np.asarray(seen.toarray() if hasattr(seen, "toarray") else seen, dtype=np.float64)
    pca = PCA(min(scores.shape[1], *seen[train].shape)).fit(seen[train])
    return [scores, pca.transform(seen), seen]


def rates_by_group(
    name: str,
    positive: Mask,
    chance: Array,
    codes: Codes,
    labels: Labels,
    confidence: float = 0.95,
    label: Any = True,
) -> Outcomes:
    """All figures and their intervals, from the predicted probability of each row."""
    k, overall = len(labels), _estimates(positive, chance, confidence)
    groups, wider = (
        [_estimates(positive[codes == g], chance[codes == g], level) for g in range(k)]
        for level in (confidence, 1 - (1 - confidence) / comb(k, 2))  # wider for all pairs at once
    )
    return Outcomes(
        name=name,
        overall={metric: estimate.value for metric, estimate in overall.items()},
        base_rate=float(positive.mean()),
        by_group={
            metric: dict(zip(labels.tolist(), (group[metric] for group in groups), strict=True))
            for metric in overall
        },
        difference={metric: _gap([group[metric] for group in wider]) for metric in overall},
        data=(positive.astype(int), chance, labels[codes]),
        positive=label,
    )


def _estimates(positive: Mask, chance: Array, confidence: float) -> dict[str, Estimate]:
    """Every metric of some rows of both classes, with Wilson's interval."""
    chosen = chance >= 0.5
    shares = {
        "accuracy": chosen == positive,
        "selection_rate": chosen,
        "true_positive_rate": chosen[positive],
        "false_positive_rate": chosen[~positive],
    }
    figures = {
        metric: (float(rows.mean()), float(rows.std()) / np.sqrt(len(rows)), len(rows))
        for metric, rows in shares.items()
    }
    both, one_fold = np.column_stack([1 - chance, chance]), np.zeros(len(chance))
    fewest = int(min(positive.sum(), (~positive).sum()))
    figures["auc"] = *cross_fitted_auc(both, positive.astype(np.intp), one_fold), fewest
    return {
        metric: Estimate(value, *share_interval(value, error, n, confidence))
        for metric, (value, error, n) in figures.items()
    }


def _gap(groups: list[Estimate]) -> Estimate:
    """Largest less smallest value, with its interval.

    The interval of the difference of a pair comes from those of the two (Newcombe's hybrid score
    interval). The gap lies between the largest lower and the largest upper end of all pairs.
    """
    gap, low, high = 0.0, 0.0, 0.0
    for pair in combinations(groups, 2):
        small, large = sorted(pair)
        apart = large.value - small.value
        gap = max(gap, apart)
        low = max(low, apart - hypot(large.value - large.low, small.high - small.value))
        high = max(high, apart + hypot(large.high - large.value, small.value - small.low))
    return Estimate(gap, low, high)
