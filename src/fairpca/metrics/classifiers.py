"""Classifiers on scores: how well they guess the group, and how often they select each group.

All figures are for rows that the classifier has not seen. A probe guesses the group; its AUC is a
lower bound, because another probe may do better. Other classifiers predict a target. Unlike those
of fairlearn's ``MetricFrame``, their intervals are not resampled: resampled gaps are never 0, so
intervals would exclude 0 even for equal groups.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb, hypot, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, has_fit_parameter
from threadpoolctl import threadpool_limits

from fairpca._input import checks
from fairpca._input.labels import encode_groups, encode_outcomes
from fairpca._input.stream import open_input, refuse_stream
from fairpca._linear_map import flattened, seen_by_map
from fairpca._moments.group_differences import positive_class
from fairpca._typing import Array, Codes, Labels, Mask
from fairpca.metrics.reconstruction import refuse_data

# The default classifier; it is cloned before it is fitted.
_LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


class Estimate(NamedTuple):
    """A figure with its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True)
class Probe:
    """How well one kind of classifier guesses the group, on rows it has not seen."""

    name: str
    auc: float  #: 0.5 when it cannot tell; for more groups, the mean of each against the rest.
    #: Confidence interval of the mean AUC of the probes of these folds, on new rows. It is too wide
    #: where the groups are easily told apart.
    low: float
    high: float


def probe_groups(
    estimator: Any,
    X: Any,
    sensitive_features: Any,
    *,
    probes: Mapping[str, Any] | None = None,
    cv: int = 5,
    level: float = 0.95,
    random_state: Any = None,
) -> list[Probe]:
    """Guess the group of each row from its scores: a :class:`Probe` for each kind of classifier.

    Parameters
    ----------
    estimator : fitted transformer or None
        The scores are ``estimator.transform(X)``; without an estimator, X itself is probed.
    X : array-like of shape (n_samples, n_features)
        Preferably rows that the estimator was not fitted to: if it made the group means of these
        rows equal, a linear probe falls below 0.5.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row, or the name of a column of X; several columns are crossed.
    probes : mapping of str to classifier, optional
        By default ``"logistic"``, a logistic regression on standardised scores, and ``"boosted"``,
        gradient-boosted trees, which also see nonlinear differences.
    cv : int, default=5
        Number of folds; every row is guessed by a classifier that was fitted without its fold.
    level : float, default=0.95
    random_state : int, RandomState or None, default=None
        Seed of the folds and the trees.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_checkup
    >>> from fairpca.metrics import probe_groups
    >>> people = load_checkup()
    >>> fair = FairPCA(5, standardize=True)
    >>> X, groups = people.data, people.sensitive_features
    >>> fair = fair.fit(X, sensitive_features=groups)
    >>> for probe in probe_groups(fair, X, groups, random_state=0):
    ...     print(f"{probe.name}: AUC {probe.auc:.1f}, above {probe.low:.1f}")
    logistic: AUC 0.8, above 0.8
    boosted: AUC 0.8, above 0.8
    """
    _check_level(level)
    rng = check_random_state(random_state)
    refuse_data(estimator, "probe_groups(estimator, X, sensitive_features), or None and scores")
    refuse_stream(X, "classifiers need all rows", "pass rows in memory")
    X, sensitive_features, *_ = open_input(X, sensitive_features)
    scores = X if estimator is None else estimator.transform(X)
    if np.ndim(scores) == 1:
        raise ValueError(
            f"scores have one dimension, {len(scores)} numbers; pass a row of scores for each "
            "person, for example scores.reshape(-1, 1) for one component."
        )
    Z = np.asarray(check_array(scores, dtype=np.float64))
    codes, labels, _ = encode_groups(sensitive_features, len(Z))
    checks.check_several_groups(labels.tolist(), len(Z), otherwise="")
    fold = _stratified_folds(cv, codes, "group", rng)
    if probes is None:
        trees = HistGradientBoostingClassifier(max_iter=50, random_state=rng.randint(2**31 - 1))
        probes = {"logistic": _LOGISTIC, "boosted": trees}
    if not isinstance(probes, Mapping) or not probes:
        raise TypeError(
            f"probes={probes!r}: pass classifiers by name, for example {{'forest': "
            "RandomForestClassifier()}, or None for the usual ones."
        )
    for name, probe in probes.items():
        _check_classifier(f"probe {name!r}", probe)
    guessed = {"cv": PredefinedSplit(fold), "method": "predict_proba"}
    with threadpool_limits(1):  # threads would wait for each other longer than they work
        chances = {n: cross_val_predict(p, Z, codes, **guessed) for n, p in probes.items()}
    return [Probe(n, *_auc(values, codes, fold, level)) for n, values in chances.items()]


@dataclass(frozen=True, repr=False)
class Outcomes:
    """Rates of one classifier by group, on rows it has not seen.

    The metrics are ``"accuracy"``, ``"auc"``, ``"selection_rate"`` (how often the positive class is
    predicted), ``"true_positive_rate"`` and ``"false_positive_rate"``.
    """

    name: str  #: What the classifier saw: "scores", "pca" or "features".
    overall: Mapping[str, float]  #: Each metric over all rows.
    base_rate: float  #: Share of positive rows, to compare with the overall selection rate.
    by_group: Mapping[str, Mapping[Any, Estimate]]  #: Each metric of each group.
    #: Largest minus smallest value of a group: 0 is parity. The interval holds for all pairs of
    #: groups at once; it starts at 0 unless the rows show that two groups differ.
    difference: Mapping[str, Estimate]
    #: For each row whether it is positive, its predicted probability, and its group, for use with
    #: ``fairlearn.metrics.MetricFrame``, for example. None in an audit, which keeps no rows.
    data: tuple[Codes, Array, Labels] | None
    positive: Any = True  #: The positive class: a person predicted to be of it is selected.

    def __repr__(self) -> str:
        rates = ("selection_rate", "true_positive_rate", "false_positive_rate")
        gaps = ", ".join(f"{name} {self.difference[name]}" for name in rates)
        return f"Outcomes({self.name!r}: AUC {self.overall['auc']:.3f}, gaps: {gaps})"


def classifier_outcomes(
    estimator: Any,
    X: Any,
    sensitive_features: Any,
    y: Any,
    *,
    classifier: Any = None,
    pos_label: Any = None,
    cv: int = 5,
    level: float = 0.95,
    random_state: Any = None,
) -> list[Outcomes]:
    """Rates by group of a classifier on the scores, on PCA's scores, and on all features.

    Parameters
    ----------
    estimator : transformer
        If it is fitted, it is used as it is, and X should be rows that it was not fitted to;
        otherwise it is fitted to the training rows of each fold.
    X : array or data frame of shape (n_samples, n_features)
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row, or the name of a column of X; several columns are crossed.
    y : array-like of shape (n_samples,)
        Classes.
    classifier : classifier, optional
        By default a logistic regression on standardised columns.
    pos_label : label, optional
        The positive class; by default the larger of two. All others are negative.
    cv, level, random_state
        As for :func:`probe_groups`. The intervals hold for the classifiers as fitted.

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
    >>> for found in classifier_outcomes(pls, X, people.sensitive_features, often, random_state=0):
    ...     print(found.name, f"{found.difference['selection_rate'].value:.1f}")
    scores 0.0
    pca 0.1
    features 0.3
    """
    _check_level(level)
    refuse_data(estimator, "classifier_outcomes(estimator, X, sensitive_features, y)")
    if not hasattr(estimator, "transform"):
        name, cure = type(estimator).__name__, "pass a transformer such as FairPCA(2)"
        if isinstance(estimator, Pipeline):
            name += f" that ends in {type(estimator.steps[-1][1]).__name__}"
            cure = "pass estimator=pipeline[:-1], classifier=pipeline[-1]"
        raise TypeError(f"estimator is a {name}, which has no transform; {cure}.")
    classifier = _LOGISTIC if classifier is None else classifier
    _check_classifier("classifier", classifier)
    if issparse(X):
        raise TypeError("X is sparse; pass X.toarray(), or fewer rows if that is too large.")
    refuse_stream(X, "classifiers need all rows", "pass rows in memory")
    X, sensitive_features, _, y, *_ = open_input(X, sensitive_features, y=y)
    codes, labels, _ = encode_groups(sensitive_features, len(X))
    checks.check_several_groups(labels.tolist(), len(codes), otherwise="")
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
    fold = _stratified_folds(cv, cells, "group and class", check_random_state(random_state))
    chances = np.empty((3, len(codes)))
    for i in range(cv):
        train, test = fold != i, fold == i
        inputs = _representations(estimator, X, y, sensitive_features, train)
        for chance, seen in zip(chances, inputs, strict=True):
            fitted = clone(classifier).fit(seen[train], positive[train])
            chance[test] = fitted.predict_proba(seen[test])[:, 1]
    return [
        rates_by_group(name, positive, chance, codes, labels, level, label)
        for name, chance in zip(("scores", "pca", "features"), chances, strict=True)
    ]


def _representations(model: Any, X: Any, y: Any, groups: Any, train: Mask) -> list[Array]:
    """The scores of a model, those of PCA, and all features as they arrive at the model.

    A model that is not fitted is fitted to the training rows.
    """
    try:
        check_is_fitted(model)
    except NotFittedError:
        takes = any(has_fit_parameter(step, "sensitive_features") for step in flattened(model))
        given = {"sensitive_features": _safe_indexing(groups, train)} if takes else {}
        with config_context(enable_metadata_routing=True):  # so steps of pipelines get the groups
            model = clone(model).fit(_safe_indexing(X, train), _safe_indexing(y, train), **given)
    scores = np.asarray(model.transform(X))
    seen = seen_by_map(model, X)
    pca = PCA(min(scores.shape[1], *seen[train].shape)).fit(seen[train])
    return [scores, pca.transform(seen), seen]


def _stratified_folds(cv: int, cells: Codes, what: str, rng: np.random.RandomState) -> Codes:
    """The fold of each row; all folds have the same share of each cell."""
    checks.check_integer("cv", cv, 2)
    fewest = int(np.unique(cells, return_counts=True)[1].min())
    if fewest < cv:
        fewer = f"pass cv={fewest} or " if fewest > 1 else ""
        raise ValueError(
            f"cv={cv} folds need {cv} rows of each {what}, but one has {fewest}; {fewer}merge "
            "small groups."
        )
    split = StratifiedKFold(cv, shuffle=True, random_state=rng.randint(2**31 - 1))
    fold = np.empty(len(cells), dtype=np.intp)
    for i, (_, test) in enumerate(split.split(cells, cells)):
        fold[test] = i
    return fold


def rates_by_group(
    name: str, positive: Mask, chance: Array, codes: Codes, labels: Labels, level: float, label: Any
) -> Outcomes:
    """All figures and their intervals, from the predicted probability of each row."""
    k, overall = len(labels), _estimates(positive, chance, level)
    groups, wider = (
        [_estimates(positive[codes == g], chance[codes == g], each) for g in range(k)]
        for each in (level, 1 - (1 - level) / comb(k, 2))  # wider for all pairs at once
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


def _estimates(positive: Mask, chance: Array, level: float) -> dict[str, Estimate]:
    """Every metric of some rows of both classes, with its interval."""
    chosen = chance >= 0.5
    shares = {
        "accuracy": chosen == positive,
        "selection_rate": chosen,
        "true_positive_rate": chosen[positive],
        "false_positive_rate": chosen[~positive],
    }
    found = {name: _wilson(float(rows.mean()), len(rows), level) for name, rows in shares.items()}
    both, one_fold = np.column_stack([1 - chance, chance]), np.zeros(len(chance), dtype=np.intp)
    return found | {"auc": _auc(both, positive.astype(np.intp), one_fold, level)}


def _gap(groups: list[Estimate]) -> Estimate:
    """Largest minus smallest value, with its interval.

    It reaches from the largest lower to the largest upper end of Newcombe's hybrid score intervals
    of all pairs.
    """
    gap, low, high = 0.0, 0.0, 0.0
    for pair in combinations(groups, 2):
        small, large = sorted(pair)
        apart = large.value - small.value
        gap = max(gap, apart)
        low = max(low, apart - hypot(large.value - large.low, small.high - small.value))
        high = max(high, apart + hypot(large.high - large.value, small.value - small.low))
    return Estimate(gap, low, high)


def _auc(chances: Array, codes: Codes, fold: Codes, level: float) -> Estimate:
    """AUC with Wilson's interval, as for a share with the same standard error."""
    auc, error = cross_fitted_auc(chances, codes, fold)
    n = float(np.bincount(codes).min())  # an AUC without an error is still uncertain
    return _wilson(auc, auc * (1 - auc) / error**2 if error > 0 and 0 < auc < 1 else n, level)


def _wilson(share: float, n: float, level: float) -> Estimate:
    """Wilson's interval of a share of n rows; it stays within 0 and 1."""
    z = float(ndtri(0.5 + level / 2))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
    return Estimate(share, min(max(middle - half, 0.0), share), max(min(middle + half, 1.0), share))


def cross_fitted_auc(chances: Array, codes: Codes, fold: Codes) -> tuple[float, float]:
    """AUC over pairs within folds, and its standard error.

    For more than two groups, it is the mean AUC of each against the rest. The error is that of
    DeLong et al. (1988), from the *placements* of rows, summed over these AUCs row by row because
    they are correlated. So are the folds, because their probes were fitted to each other's rows: if
    groups cannot be told apart, each pair of rows counts twice, with either row in training. The
    variance is therefore doubled, which is too much if groups are easily told apart.
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
    if fold.any():
        variance *= 2
    return float(np.mean(areas)), float(np.sqrt(variance))


def _placements(values: Array, positive: Mask, fold: Codes) -> Array:
    """For each row, the share of the other class in its fold that it ranks correctly against."""
    placements = np.empty(len(values))
    for i in np.unique(fold):
        up, down = np.flatnonzero(positive & (fold == i)), np.flatnonzero(~positive & (fold == i))
        overall = rankdata(values[np.r_[up, down]])
        placements[up] = (overall[: len(up)] - rankdata(values[up])) / len(down)
        placements[down] = 1 - (overall[len(up) :] - rankdata(values[down])) / len(up)
    return placements


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level={level}: pass a number between 0 and 1, such as 0.95.")


def _check_classifier(role: str, classifier: Any) -> None:
    if not hasattr(classifier, "predict_proba"):
        name = type(classifier).__name__
        example = f"sklearn.calibration.CalibratedClassifierCV({name}())"
        raise TypeError(f"{role}={name} has no predict_proba; pass for example {example}.")
