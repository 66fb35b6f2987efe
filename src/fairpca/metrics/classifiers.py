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
from sklearn.model_selection import (
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, has_fit_parameter
from threadpoolctl import threadpool_limits

from fairpca._input import checks
from fairpca._input.labels import encode_groups, encode_outcomes
from fairpca._input.stream import open_input, refuse_stream
from fairpca._input.units import Units, encode_units
from fairpca._linear_map import flattened, seen_by_map
from fairpca._moments.group_differences import positive_class
from fairpca._sklearn import safe_indexing
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
    units: Any = None,
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
    units : array-like of shape (n_samples,) or str, optional
        Whose row each is, or the name of a column of X, for people with several rows: they stay in
        one fold, and intervals count people.
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
    X, sensitive_features, _, _, units, *_ = open_input(X, sensitive_features, units=units)
    scores = X
    if estimator is not None:
        scores = estimator.transform(X)
    if np.ndim(scores) == 1:
        raise ValueError(
            f"scores have one dimension, {len(scores)} numbers; pass a row of scores for each "
            "person, for example scores.reshape(-1, 1) for one component."
        )
    Z = np.asarray(check_array(scores, dtype=np.float64))
    codes, labels, _ = encode_groups(sensitive_features, len(Z))
    checks.check_several_groups(labels.tolist(), len(Z), otherwise="")
    own_units = None
    if units is not None:
        own_units = encode_units(units, len(Z))
    fold = _stratified_folds(cv, codes, "group", rng, own_units)
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
    found = {name: _auc(values, codes, fold, own_units) for name, values in chances.items()}
    return [Probe(name, *_wilson(auc, level)) for name, auc in found.items()]


@dataclass(frozen=True)
class Selection:
    """How often each group is selected, and how often beside the group selected most."""

    positive: Any  #: Who has this outcome is selected.
    rates: Mapping[Any, Estimate]
    #: The rate of each group over that of the group selected most; the four-fifths rule of US
    #: employment law compares it with .8. The intervals hold for all pairs of groups at once. Empty
    #: if nobody is selected.
    impact_ratios: Mapping[Any, Estimate]

    @property
    def less(self) -> list[Any]:
        """The groups that are reliably selected less than another, the least selected first."""
        less = [label for label, ratio in self.impact_ratios.items() if ratio.high < 1]
        return sorted(less, key=lambda label: self.impact_ratios[label].value)


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
    #: The selection rate of each group over that of the group selected most, as in
    #: :class:`Selection`.
    impact_ratios: Mapping[Any, Estimate]
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
    units: Any = None,
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
    units, cv, level, random_state
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
        name = type(estimator).__name__
        cure = "pass a transformer such as FairPCA(2)"
        if isinstance(estimator, Pipeline):
            name += f" that ends in {type(estimator.steps[-1][1]).__name__}"
            cure = "pass estimator=pipeline[:-1], classifier=pipeline[-1]"
        raise TypeError(f"estimator is a {name}, which has no transform; {cure}.")
    if classifier is None:
        classifier = _LOGISTIC
    _check_classifier("classifier", classifier)
    if issparse(X):
        raise TypeError("X is sparse; pass X.toarray(), or fewer rows if that is too large.")
    refuse_stream(X, "classifiers need all rows", "pass rows in memory")
    X, sensitive_features, _, y, units, *_ = open_input(X, sensitive_features, y=y, units=units)
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
    own_units = None
    if units is not None:
        own_units = encode_units(units, len(codes))
    rng = check_random_state(random_state)
    fold = _stratified_folds(cv, cells, "group and class", rng, own_units)
    chances = np.empty((3, len(codes)))
    for i in range(cv):
        train = fold != i
        test = fold == i
        inputs = _representations(estimator, X, y, sensitive_features, train)
        for chance, seen in zip(chances, inputs, strict=True):
            fitted = clone(classifier).fit(seen[train], positive[train])
            chance[test] = fitted.predict_proba(seen[test])[:, 1]
    return [
        rates_by_group(name, positive, chance, codes, labels, level, label, own_units)
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
        given = {}
        if takes:
            given = {"sensitive_features": safe_indexing(groups, train)}
        with config_context(enable_metadata_routing=True):  # so steps of pipelines get the groups
            model = clone(model).fit(safe_indexing(X, train), safe_indexing(y, train), **given)
    scores = np.asarray(model.transform(X))
    seen = seen_by_map(model, X)
    pca = PCA(min(scores.shape[1], *seen[train].shape)).fit(seen[train])
    return [scores, pca.transform(seen), seen]


def _stratified_folds(
    cv: int, cells: Codes, what: str, rng: np.random.RandomState, units: Units | None
) -> Codes:
    """The fold of each row; all folds have the same share of each cell, and units are whole."""
    checks.check_integer("cv", cv, 2)
    fewest = fewest_units(cells, units)
    if fewest < cv:
        fewer = ""
        if fewest > 1:
            fewer = f"pass cv={fewest} or "
        raise ValueError(
            f"cv={cv} folds need {cv} rows of each {what}, but one has {fewest}; {fewer}merge "
            "small groups."
        )
    kind = StratifiedGroupKFold
    if units is None:
        kind = StratifiedKFold
    split = kind(cv, shuffle=True, random_state=rng.randint(2**31 - 1))
    fold = np.empty(len(cells), dtype=np.intp)
    for i, (_, test) in enumerate(split.split(cells, cells, units)):
        fold[test] = i
    return fold


def fewest_units(cells: Codes, units: Units | None) -> int:
    """How many units, or rows without units, the smallest cell has."""
    if units is not None:
        pairs = np.stack([cells.astype(np.uint64), units])
        cells = np.unique(pairs, axis=1)[0]
    return int(np.unique(cells, return_counts=True)[1].min())


def rates_by_group(
    name: str,
    positive: Mask,
    chance: Array,
    codes: Codes,
    labels: Labels,
    level: float,
    label: Any,
    units: Units | None = None,
) -> Outcomes:
    """All figures and their intervals, from the predicted probability of each row."""
    groups = labels.tolist()
    found = [_figures(positive, chance, units, codes == g) for g in range(len(groups))]
    overall = _figures(positive, chance, units, np.ones(len(codes), bool))
    at_once = 1 - (1 - level) / comb(len(groups), 2)  # for all pairs
    by_group = {}
    difference = {}
    for metric in overall:
        by_group[metric] = {
            group: _wilson(own[metric], level) for group, own in zip(groups, found, strict=True)
        }
        difference[metric] = _gap([_wilson(own[metric], at_once) for own in found])
    return Outcomes(
        name=name,
        overall={metric: share.value for metric, share in overall.items()},
        base_rate=float(positive.mean()),
        by_group=by_group,
        difference=difference,
        impact_ratios=_impact_ratios(groups, [own["selection_rate"] for own in found], at_once),
        data=(positive.astype(int), chance, labels[codes]),
        positive=label,
    )


def selection(
    selected: Mask, codes: Codes, labels: Labels, level: float, positive: Any, units: Any = None
) -> Selection:
    """How often each group is selected, from who is."""
    groups = labels.tolist()
    found = [_share(selected, units, codes == g) for g in range(len(groups))]
    rates = {g: _wilson(own, level) for g, own in zip(groups, found, strict=True)}
    at_once = 1 - (1 - level) / comb(len(groups), 2)
    return Selection(positive, rates, _impact_ratios(groups, found, at_once))


class _Share(NamedTuple):
    """A share, and of how many independent rows it has the standard error."""

    value: float
    n: float


def _share(chosen: Mask, units: Units | None, rows: Mask) -> _Share:
    """How many of some rows are chosen; of units, the mean over units of their share."""
    means = chosen[rows].astype(np.float64)
    if units is not None:
        _, places = np.unique(units[rows], return_inverse=True)
        means = np.bincount(places, means) / np.bincount(places)
    value = float(means.mean())
    variance = float(means.var())
    alone = 1.0
    if variance > 0:
        alone = value * (1 - value) / variance
    return _Share(value, alone * len(means))


def _figures(positive: Mask, chance: Array, units: Units | None, rows: Mask) -> dict[str, _Share]:
    """Every metric of some rows of both classes."""
    chosen = chance >= 0.5
    own_units = None
    if units is not None:
        own_units = units[rows]
    both = np.column_stack([1 - chance, chance])[rows]
    one_fold = np.zeros(len(both), np.intp)
    return {
        "accuracy": _share(chosen == positive, units, rows),
        "selection_rate": _share(chosen, units, rows),
        "true_positive_rate": _share(chosen, units, rows & positive),
        "false_positive_rate": _share(chosen, units, rows & ~positive),
        "auc": _auc(both, positive[rows].astype(np.intp), one_fold, own_units),
    }


def _impact_ratios(groups: list[Any], shares: list[_Share], level: float) -> dict[Any, Estimate]:
    """The share of each group over the largest, with intervals of logarithms.

    Half a row is added to each count (Walter, 1975), so that shares of 0 have an interval too.
    """
    values, n = np.transpose(shares)
    most = int(values.argmax())
    if not values[most]:
        return {}
    selected = values * n + 0.5
    logs = np.log(selected / (n + 0.5))
    variances = 1 / selected - 1 / (n + 0.5)
    half = float(ndtri(0.5 + level / 2)) * np.sqrt(variances + variances[most])
    ratios = values / values[most]
    low = np.minimum(np.exp(logs - logs[most] - half), ratios)
    high = np.maximum(np.exp(logs - logs[most] + half), ratios)
    low[most] = 1.0
    high[most] = 1.0
    ends = np.transpose([ratios, low, high]).tolist()
    return {group: Estimate(*own) for group, own in zip(groups, ends, strict=True)}


def _gap(groups: list[Estimate]) -> Estimate:
    """Largest minus smallest value, with its interval.

    It reaches from the largest lower to the largest upper end of Newcombe's hybrid score intervals
    of all pairs.
    """
    gap = 0.0
    low = 0.0
    high = 0.0
    for pair in combinations(groups, 2):
        small, large = sorted(pair)
        apart = large.value - small.value
        gap = max(gap, apart)
        low = max(low, apart - hypot(large.value - large.low, small.high - small.value))
        high = max(high, apart + hypot(large.high - large.value, small.value - small.low))
    return Estimate(gap, low, high)


def _auc(chances: Array, codes: Codes, fold: Codes, units: Units | None = None) -> _Share:
    """AUC, and of how many rows a share has the same standard error."""
    auc, error = cross_fitted_auc(chances, codes, fold, units)
    if error > 0 and 0 < auc < 1:
        return _Share(auc, auc * (1 - auc) / error**2)
    return _Share(auc, float(np.bincount(codes).min()))  # without an error it is still uncertain


def _wilson(share: _Share, level: float) -> Estimate:
    """Wilson's interval of a share of n rows; it stays within 0 and 1."""
    value, n = share
    z = float(ndtri(0.5 + level / 2))
    middle = (value + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * sqrt(value * (1 - value) / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
    return Estimate(value, min(max(middle - half, 0.0), value), max(min(middle + half, 1.0), value))


def cross_fitted_auc(
    chances: Array, codes: Codes, fold: Codes, units: Units | None = None
) -> tuple[float, float]:
    """AUC over pairs within folds, and its standard error.

    For more than two groups, it is the mean AUC of each against the rest. The error is that of
    DeLong et al. (1988), from the *placements* of rows, summed over these AUCs row by row because
    they are correlated. So are the folds, because their probes were fitted to each other's rows: if
    groups cannot be told apart, each pair of rows counts twice, with either row in training. The
    variance is therefore doubled, which is too much if groups are easily told apart. The rows of a
    unit count together.
    """
    k = chances.shape[1]
    each = [1] if k == 2 else range(k)
    areas = []
    shares = np.zeros(len(codes))
    for g in each:
        own = codes == g
        placements = _placements(chances[:, g], own, fold)
        areas.append(float(placements[own].mean()))
        size = np.where(own, own.sum(), (~own).sum()) * len(each)
        shares += (placements - areas[-1]) / size
    parts = [shares[codes == g] for g in range(k)]
    if units is not None:
        places = [np.unique(units[codes == g], return_inverse=True)[1] for g in range(k)]
        parts = [np.bincount(at, own) for at, own in zip(places, parts, strict=True)]
    variance = sum(len(part) * np.var(part, ddof=1) if len(part) > 1 else 0.25 for part in parts)
    if fold.any():
        variance *= 2
    return float(np.mean(areas)), float(np.sqrt(variance))


def _placements(values: Array, positive: Mask, fold: Codes) -> Array:
    """For each row, the share of the other class in its fold that it ranks correctly against."""
    placements = np.empty(len(values))
    for i in np.unique(fold):
        up = np.flatnonzero(positive & (fold == i))
        down = np.flatnonzero(~positive & (fold == i))
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
