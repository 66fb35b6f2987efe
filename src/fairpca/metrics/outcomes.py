"""What a classifier makes of scores: its rates by group, against PCA's scores and all features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from fairpca._input.checks import check_classifier, check_integer
from fairpca._input.labels import encode_groups, encode_outcomes
from fairpca._moments.strata import positive_class
from fairpca._typing import Array, Codes, Mask
from fairpca.metrics.rates import Draws, Outcomes, check_confidence, rates_by_group

_NAMES = ("scores", "pca", "features")


def classifier_outcomes(
    estimator: Any,
    X: Any,
    y: Any,
    sensitive_features: Any,
    *,
    classifier: Any = None,
    pos_label: Any = None,
    cv: Any = 5,
    n_boot: int = 200,
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
    cv : int or splitter, default=5
    n_boot : int, default=200
        Samples of each group's rows, drawn with replacement, for the intervals of gaps, AUC and
        calibration. The classifiers are not fitted again for them.
    confidence : float, default=0.95
    random_state : int, RandomState or None, default=None
        Of the folds and the bootstrap.

    Returns
    -------
    list of Outcomes
        Of ``"scores"``, ``"pca"`` (with as many components) and ``"features"``. Of a pipeline, PCA
        and all features are those that arrive at its projection: standardised, for example.

    Examples
    --------
    >>> from fairpca import FairPLS
    >>> from fairpca.datasets import load_diabetes_by_sex
    >>> from fairpca.metrics import classifier_outcomes
    >>> data = load_diabetes_by_sex()
    >>> pls = FairPLS(2, notion="demographic_parity")
    >>> outcomes = classifier_outcomes(
    ...     pls, data.data, data.target > 150, data.sensitive_features, random_state=0
    ... )
    >>> for result in outcomes:
    ...     print(result.name, f"{result.difference['selection_rate'].value:.2f}")
    scores 0.01
    pca 0.29
    features 0.21
    """
    check_integer("n_boot", n_boot, 2)
    check_confidence(confidence)
    if classifier is None:
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    _check_kinds(estimator, X, classifier)
    rng = check_random_state(random_state)
    codes, labels = encode_groups(sensitive_features, len(X))
    positive, label = _positive(y, len(X), pos_label)
    folds = _folds(cv, positive, codes, labels.tolist(), rng)
    draws = Draws(n_boot, confidence, int(rng.randint(2**31 - 1)))
    fit = _fitting(estimator, X, y, sensitive_features)
    results = []
    for name, chance in zip(_NAMES, _predicted(classifier, fit, X, positive, folds), strict=True):
        seen = ~np.isnan(chance)
        rows = positive[seen], chance[seen], codes[seen]
        results.append(replace(rates_by_group(name, *rows, labels, draws), positive=label))
    return results


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


Seen = Callable[[NDArray[Any]], Any]  # what a classifier sees of rows


def _representations(model: Any, X: Any, train: NDArray[Any]) -> list[Seen]:
    """The scores of a fitted model, those of PCA, and all features, as they arrive at the model."""
    before = _before_projection(model)

    def scores(rows: NDArray[Any]) -> Any:
        return np.asarray(model.transform(_safe_indexing(X, rows)))

    def features(rows: NDArray[Any]) -> Any:
        values: Any = _safe_indexing(X, rows)
        for step in before:
            values = step.transform(values)
        if hasattr(values, "toarray"):
            values = values.toarray()  # sparse
        return np.asarray(values, dtype=np.float64)

    r, known = scores(train[:1]).shape[1], features(train)
    plain = PCA(min(r, *known.shape)).fit(known)
    return [scores, lambda rows: plain.transform(features(rows)), features]


def _before_projection(model: Any) -> list[Any]:
    """The fitted steps of a pipeline before its projection, or before the last if it has none."""
    steps = _flat_steps(model)
    places = [i for i, step in enumerate(steps) if hasattr(step, "components_")]
    return steps[: places[-1] if places else -1]


def _flat_steps(model: Any) -> list[Any]:
    """The steps of a pipeline and of those in it, without those that pass on what they get."""
    if not isinstance(model, Pipeline):
        return [model]
    steps = [step for _, step in model.steps if step not in (None, "passthrough")]
    return [inner for step in steps for inner in _flat_steps(step)]


def _fitting(estimator: Any, X: Any, y: Any, groups: Any) -> Callable[[NDArray[Any]], Any]:
    """From training rows to a fitted model: the one given, or a clone fitted to these rows."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        names = _names_of_groups(estimator)
    else:
        return lambda train: estimator

    def fit(train: NDArray[Any]) -> Any:
        here, there, known = (_safe_indexing(values, train) for values in (X, y, groups))
        return clone(estimator).fit(here, there, **dict.fromkeys(names, known))

    return fit


def _names_of_groups(estimator: Any) -> list[str]:
    """The arguments of ``fit`` by which an estimator, or steps of a pipeline, take the groups."""
    if not isinstance(estimator, Pipeline):
        takes = "sensitive_features" in signature(estimator.fit).parameters
        return ["sensitive_features"] if takes else []
    steps = [(name, step) for name, step in estimator.steps if hasattr(step, "fit")]
    names = [f"{name}__{inner}" for name, step in steps for inner in _names_of_groups(step)]
    routed = names and get_config()["enable_metadata_routing"]
    return ["sensitive_features"] if routed else names


def _predicted(
    classifier: Any,
    fit: Callable[[NDArray[Any]], Any],
    X: Any,
    positive: Mask,
    folds: list[tuple[NDArray[Any], NDArray[Any]]],
) -> Array:
    """The probability of the positive class by each representation; NaN for rows never tested."""
    chances = np.full((len(_NAMES), len(positive)), np.nan)
    for train, test in folds:
        for chance, seen in zip(chances, _representations(fit(train), X, train), strict=True):
            fitted = clone(classifier).fit(seen(train), positive[train])
            chance[test] = fitted.predict_proba(seen(test))[:, 1]
    return chances


def _positive(y: Any, n_rows: int, pos_label: Any) -> tuple[Mask, Any]:
    """Which rows are positive, and the label of their class."""
    codes, labels = encode_outcomes(y, n_rows)
    if len(labels) < 2:
        raise ValueError(
            f"y holds one class only ({labels.tolist()[0]!r}), so there is nothing to predict; "
            "pass y with two classes or more."
        )
    classes = labels.tolist()
    label = positive_class(classes, pos_label)
    return np.asarray(codes == classes.index(label)), label


def _folds(
    cv: Any, positive: Mask, codes: Codes, labels: list[Any], rng: np.random.RandomState
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Folds with the same share of each group and class, where an integer is given."""
    if len(labels) < 2:
        raise ValueError(
            f"sensitive_features holds one group only ({labels[0]!r}), so there is nothing to "
            "compare; pass labels of two groups or more."
        )
    cells = 2 * codes + positive
    sizes = np.bincount(cells, minlength=2 * len(labels))
    if not sizes.all():
        raise ValueError(
            f"group {labels[int(np.argmin(sizes)) // 2]!r} has rows of one class only, so it has "
            "no rates to compare; leave it out, or merge it with others."
        )
    if isinstance(cv, (int, np.integer)):
        check_integer("cv", cv, 2)
        if cv > sizes.min():
            raise ValueError(
                f"cv={cv} folds need {cv} rows of each group and class, but one has "
                f"{sizes.min()}; pass fewer folds or merge small groups."
            )
        cv = StratifiedKFold(cv, shuffle=True, random_state=rng.randint(2**31 - 1))
    return list(check_cv(cv, cells, classifier=True).split(np.zeros(len(cells)), cells))
