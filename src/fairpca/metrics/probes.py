"""What scores tell about the group, from rows: classifiers that try to tell, and a kernel distance.

A probe is a classifier that is to guess the group from the scores of rows it has not seen. Its AUC
is a lower bound: the groups can be told apart at least this well, and another probe may do better.
The demographic parity gap of ANY classifier on the scores is at most the total variation distance
between the groups' scores, which is ``2 b - 1`` for the balanced accuracy b of the best probe there
can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array
from threadpoolctl import threadpool_limits

from fairpca._input.checks import check_classifier, check_integer
from fairpca._input.labels import encode_groups
from fairpca._typing import Array, Codes
from fairpca.metrics.auc import auc_interval, cross_fitted_auc
from fairpca.metrics.rates import check_confidence


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
    balanced_accuracy : float
        Mean over the groups of the share of their rows that is guessed right; chance is 1 over
        the number of groups.
    """

    name: str
    auc: float
    low: float
    high: float
    balanced_accuracy: float


def probe_groups(
    scores: Any,
    sensitive_features: Any,
    *,
    probes: Mapping[str, Any] | None = None,
    cv: Any = 5,
    confidence: float = 0.95,
    max_rows: int | None = 50_000,
    random_state: Any = None,
) -> list[Probe]:
    """Guess the group of each row from its scores, by cross-fitted classifiers.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_components)
        What a projection gives, best for rows that it was not fitted to: where means were made
        equal on these very rows, a linear probe comes out below 0.5. X itself tells what could be
        guessed from all features.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row; several columns are crossed.
    probes : mapping of str to classifier, optional
        By default ``"logistic"``, a logistic regression on standardised scores, and ``"boosted"``,
        gradient-boosted trees, which also see what is not linear.
    cv : int or splitter, default=5
        Every row is guessed by a classifier that was fitted without its fold.
    confidence : float, default=0.95
    max_rows : int or None, default=50,000
        Of more rows a random sample of this size is used, with all rows of small groups.
    random_state : int, RandomState or None, default=None
        Of the folds, the sample and the trees.

    Returns
    -------
    list of Probe

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from fairpca.datasets import load_diabetes_by_sex
    >>> from fairpca.metrics import probe_groups
    >>> data = load_diabetes_by_sex()
    >>> scores = PCA(3).fit_transform(data.data)
    >>> for probe in probe_groups(scores, data.sensitive_features, random_state=0):
    ...     print(f"{probe.name}: AUC {probe.auc:.2f} ({probe.low:.2f} to {probe.high:.2f})")
    logistic: AUC 0.69 (0.62 to 0.76)
    boosted: AUC 0.64 (0.56 to 0.71)
    """
    check_confidence(confidence)
    rng = check_random_state(random_state)
    Z = _rows_of_scores(scores)
    codes, labels = encode_groups(sensitive_features, len(Z))
    _refuse_one_group(labels.tolist(), "probe_groups")
    rows = sample_of_groups(codes, max_rows, rng)
    Z, codes = Z[rows], codes[rows]
    if isinstance(cv, (int, np.integer)):
        check_integer("cv", cv, 2)
        fewest = int(np.bincount(codes).min())
        if fewest < cv:
            fewer = f"pass cv={fewest} or " if fewest > 1 else ""
            raise ValueError(
                f"cv={cv} folds need {cv} rows of each group, but one has {fewest}; {fewer}merge "
                "small groups."
            )
        cv = StratifiedKFold(cv, shuffle=True, random_state=rng.randint(2**31 - 1))
    folds = list(check_cv(cv, codes, classifier=True).split(Z, codes))
    probes = _usual_probes(rng) if probes is None else probes
    _check_probes(probes)
    settings = Z, codes, folds, confidence
    with threadpool_limits(1):  # threads would wait for each other longer than they work
        return [_cross_fit(name, probe, *settings) for name, probe in probes.items()]


def rbf_mmd(
    scores: Any,
    sensitive_features: Any,
    *,
    sigma: float | None = None,
    max_rows: int | None = 2000,
    random_state: Any = None,
) -> float:
    """Squared maximum mean discrepancy between the groups' scores, with a Gaussian kernel.

    Zero if and only if the scores have the same distribution in both groups; with a finite number
    of rows, a little above zero. Of more than two groups, the largest over all pairs.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_components)
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
    sigma : float, optional
        Width of the kernel ``exp(-|x - y|^2 / (2 sigma^2))``; by default the median heuristic,
        ``sigma^2`` half the median squared distance between rows. Pass one value to compare
        projections.
    max_rows : int or None, default=2000
        Of more rows a random sample of this size is used, with all rows of small groups: the cost
        is quadratic.
    random_state : int, RandomState or None, default=None
        Of the sample.

    Returns
    -------
    float
        The average of the kernel within the groups less that between them, pairs of a row with
        itself included (the biased estimate, which is never negative).

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import rbf_mmd
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(400, 2))
    >>> groups = np.repeat(["a", "b"], 200)
    >>> round(rbf_mmd(Z, groups), 3), round(rbf_mmd(Z + (groups == "b")[:, None], groups), 3)
    (0.003, 0.238)
    """
    Z = _rows_of_scores(scores)
    codes, labels = encode_groups(sensitive_features, len(Z))
    _refuse_one_group(labels.tolist(), "rbf_mmd")
    rows = sample_of_groups(codes, max_rows, check_random_state(random_state))
    Z, codes = Z[rows] - Z[rows].mean(axis=0), codes[rows]
    squares = np.sum(Z**2, axis=1)
    distances = np.maximum(squares[:, None] + squares[None] - 2 * Z @ Z.T, 0.0)
    if sigma is None:
        upper = distances[np.triu_indices(len(Z), 1)]
        sigma = float(np.sqrt(np.median(upper) / 2)) or 1.0
    elif not 0 < sigma < inf:
        raise ValueError(f"sigma={sigma}: pass a positive width, or None for the median heuristic.")
    kernel = np.exp(-distances / (2 * sigma**2))
    members = (codes[:, None] == np.arange(len(labels))).astype(float)
    members /= members.sum(axis=0)
    means = members.T @ kernel @ members
    own = np.diagonal(means)
    return float(np.max(own[:, None] + own[None] - 2 * means))


def _rows_of_scores(scores: Any) -> Array:
    if np.ndim(scores) == 1:
        raise ValueError(
            f"scores have one dimension, {len(scores)} numbers; pass a row of scores for each "
            "person, for example scores.reshape(-1, 1) for one component."
        )
    return np.asarray(check_array(scores, dtype=np.float64))


def _usual_probes(rng: np.random.RandomState) -> dict[str, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    seed = int(rng.randint(2**31 - 1))
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "boosted": HistGradientBoostingClassifier(max_iter=50, random_state=seed),
    }


def _check_probes(probes: Any) -> None:
    if not isinstance(probes, Mapping) or not probes:
        raise TypeError(
            f"probes={probes!r}: pass classifiers by name, for example {{'forest': "
            "RandomForestClassifier()}, or None for the usual ones."
        )
    for name, probe in probes.items():
        check_classifier(f"probe {name!r}", probe)


def _refuse_one_group(labels: list[Any], function: str) -> None:
    if len(labels) < 2:
        raise ValueError(
            f"{function} got one group only ({labels[0]!r}), so there is nothing to tell apart; "
            "pass labels of two groups or more."
        )


def sample_of_groups(codes: Codes, max_rows: int | None, rng: np.random.RandomState) -> Codes:
    """All rows, or a random sample of each group's rows, in their order.

    Groups whose share of the sample would be small give all their rows, or half of what they would
    give if all groups gave as many. The others share the rest by their size.
    """
    if max_rows is None or len(codes) <= max_rows:
        return np.arange(len(codes))
    sizes = np.bincount(codes)
    check_integer("max_rows", max_rows, 2 * len(sizes))  # otherwise a group might give no row
    least = max_rows // (2 * len(sizes))
    small = sizes * max_rows <= least * len(codes)
    taken = np.minimum(sizes, least)
    left, of = max_rows - taken[small].sum(), sizes[~small].sum()
    taken[~small] = np.maximum(sizes[~small] * left // of, 1)
    chosen = [rng.choice(np.flatnonzero(codes == g), n, False) for g, n in enumerate(taken)]
    return np.sort(np.concatenate(chosen))


def _cross_fit(
    name: str,
    probe: Any,
    Z: Array,
    codes: Codes,
    folds: list[tuple[NDArray[Any], NDArray[Any]]],
    confidence: float,
) -> Probe:
    sizes = np.bincount(codes)
    chances, fold = np.zeros((len(Z), len(sizes))), np.full(len(Z), -1)
    for i, (train, test) in enumerate(folds):
        fitted = clone(probe).fit(Z[train], codes[train])
        chances[np.ix_(test, fitted.classes_)] = fitted.predict_proba(Z[test])
        fold[test] = i
    seen = fold >= 0
    chances, fold, guessed = chances[seen], fold[seen], codes[seen]
    tested = np.bincount(guessed, minlength=len(sizes))
    # Guesses by chance over share, so that a small group is guessed at all.
    right = (chances / np.maximum(tested, 1)).argmax(axis=1) == guessed
    auc, error = cross_fitted_auc(chances, guessed, fold)
    low, high = auc_interval(auc, error, int(tested.min()), confidence)
    balanced = float(np.mean([right[guessed == g].mean() for g in range(len(sizes))]))
    return Probe(name, auc, low, high, balanced)
