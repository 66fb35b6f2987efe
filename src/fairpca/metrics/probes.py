"""How well classifiers guess the group of a row from its scores.

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
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
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
from fairpca._typing import Array, Codes, Mask


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
        Confidence interval of the mean AUC of the probes of these folds, on new rows. It allows
        for folds whose probes were fitted to each other's rows, and holds more often than the
        level says where the groups are easily told apart.
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
        The scores of a projection, preferably for rows that it was not fitted to: where the
        projection made the means of these very rows equal, a linear probe comes out below 0.5.
        Pass X itself to see what can be guessed from all features.
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
    found, fold, fewest = [], np.zeros(len(Z)), int(np.bincount(codes).min())
    for name, probe in probes.items():
        chances = np.zeros((len(Z), len(labels)))
        with threadpool_limits(1):  # threads would wait for each other longer than they work
            for i, (train, test) in enumerate(folds):
                chances[test] = clone(probe).fit(Z[train], codes[train]).predict_proba(Z[test])
                fold[test] = i
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
    several = len(np.unique(fold)) > 1
    return float(np.mean(areas)), float(np.sqrt(variance * (2 if several else 1)))


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
