"""``fairpca.audit_model``: a fitted model as it is, on rows that it need not have seen."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from fairpca._audit.annex import column_errors, look_at_columns
from fairpca._audit.cross_fit import (
    People,
    RowsByFold,
    dense,
    fit_pca,
    row_errors,
    scores_of,
    sums_of_parts,
)
from fairpca._audit.group_results import (
    Comparison,
    RowErrors,
    group_results,
    loses_nothing,
    overall_figures,
)
from fairpca._audit.record import Leakage, ModelAudit, Provenance
from fairpca._audit.scores import probed, rates, separation
from fairpca._audit.verdict import Thresholds, decide
from fairpca._cv.held_out import HeldOut
from fairpca._estimators.base import FairProjection
from fairpca._input.folds import FoldRule
from fairpca._typing import Array
from fairpca.metrics.reconstruction import projection_of, seen_by_projection

_FOLDS = 10  # of plain PCA, beside the model
_UNITS = 5 * _FOLDS  # parts of the rows, for the intervals of the model
_SAME = 1e-8  # of the variance of the scores: other rows differ by more
_FAR = 10.0  # standard deviations: no row like those fitted to lies further out


def audit_model(
    model: Any,
    X: Any,
    sensitive_features: Any = None,
    *,
    sample_weight: Any = None,
    y: Any = None,
    pos_label: Any = None,
    probes: bool = False,
    reference: Any = None,
    judge_from: int = 30,
    small_gap: float = 0.05,
    level: float = 0.95,
    random_state: int = 0,
) -> ModelAudit:
    """Judge a fitted model as it is.

    Parameters
    ----------
    model : fitted projection or pipeline
        An estimator of this library, what :func:`~fairpca.load_model` returns, scikit-learn's
        ``PCA``, ``IncrementalPCA`` or ``TruncatedSVD``, or a pipeline with one of them.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Rows that the model has best not been fitted to, as the model takes them.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
    sample_weight, y, pos_label, probes, reference, judge_from, small_gap, level, random_state
        As for :func:`audit`.

    Returns
    -------
    ModelAudit
        Plain PCA of the same rank stands beside the model, fitted to these rows in folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from fairpca import audit_model
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 4)) * [4, 2, 1, 1]
    >>> sex = np.repeat(["f", "m"], [200, 400])
    >>> X[sex == "f"] = 0.8 * X[sex == "f"][:, ::-1]
    >>> result = audit_model(PCA(2).fit(X), X, sex)
    >>> result.verdict.case.value, result.verdict.group, result.on_rows_fitted_to
    ('a gap', 'm', True)
    """
    if sensitive_features is None:
        raise TypeError(
            "sensitive_features is missing: pass fairpca.audit_model(model, X, groups) with one "
            "group label per row."
        )
    thresholds = Thresholds(judge_from=judge_from, small_gap=small_gap, level=level)
    projection, seen = seen_by_projection(model, X)
    components, mean = projection_of(projection)
    names, values = _names(model, projection, seen, len(mean)), dense(seen)
    if values.shape[1] != len(mean):
        raise ValueError(
            f"X has {values.shape[1]} features where the projection has {len(mean)}; pass the same "
            "columns as for fit."
        )
    people = People.read(values, sensitive_features, sample_weight, y, pos_label)
    comparison = Comparison.of(
        people.labels.tolist(),
        np.bincount(people.codes, minlength=len(people.labels)),
        people.group_columns,
        reference,
        thresholds,
        any(getattr(step, "normalize", False) is True for step in _steps(model)),
    )
    units, paired, rows, pca = _beside_pca(components, mean, people, random_state)
    groups = group_results(units, comparison, rows, paired)
    columns = look_at_columns(people.X, names, rows, comparison)
    own = SimpleNamespace(components_=components, mean_=mean)
    in_use = model if hasattr(model, "transform") else model[:-1]  # without its classifier
    X = _safe_indexing(X, people.positions)
    how = comparison, random_state
    return ModelAudit(
        verdict=decide(
            groups,
            columns,
            thresholds,
            nothing_compressed=loses_nothing(units),
            by_share=comparison.by_share,
            remedy_tried=False,
        ),
        groups=groups,
        overall=overall_figures(paired, level),
        columns=columns,
        left_out=people.left_out,
        provenance=Provenance(
            judged=" ".join(repr(model).split()),
            fitted_here=False,
            alternative=f"PCA(n_components={len(components)})",
            parameters=model.get_params(deep=False) if hasattr(model, "get_params") else {},
            n_rows=len(people.codes),
            n_components=len(components),
            feature_names=names,
            group_columns=comparison.columns,
            standardized=any(isinstance(step, StandardScaler) for step in _steps(model)),
            normalized=comparison.by_share,
            weighted=sample_weight is not None,
            n_folds=0,
            reference=reference,
            thresholds=thresholds,
            random_state=random_state,
        ),
        leakage=_leakage((own, pca), people, probes or y is not None, *how),
        outcomes=rates(in_use, X, people, pos_label, *how),
        on_rows_fitted_to=sample_weight is None and _fitted_to(projection, rows),
        outside=_outside(projection, mean, people.X),
        column_errors=column_errors(own, people.moments(people.X, None)),
        loadings=components,
    )


def model_from_loadings(names: Sequence[str], mean: Any, scale: Any, weights: Any) -> Pipeline:
    """A fitted pipeline from a table of loadings, for :func:`audit_model`.

    Parameters
    ----------
    names : sequence of str
        The columns.
    mean, scale : array-like of shape (d,)
        What is subtracted from each column, and what it is divided by then.
    weights : array-like of shape (d, r)
        One column per component. They need not be orthonormal: loadings that were multiplied by
        deviations or rotated span the same space, and the space is what is judged.

    Examples
    --------
    >>> model = model_from_loadings(["a", "b"], [0, 1], [1, 2], [[3.0], [4.0]])
    >>> model[-1].components_
    array([[0.6, 0.8]])
    """
    mean, scale, weights = (np.asarray(values, np.float64) for values in (mean, scale, weights))
    d = len(names)
    if mean.shape != (d,) or scale.shape != (d,) or weights.ndim != 2 or len(weights) != d:
        raise ValueError(
            f"a table of loadings has one mean, one scale and the weights of each of its {d} "
            f"columns, got shapes {mean.shape}, {scale.shape} and {weights.shape}."
        )
    if not (np.isfinite(mean).all() and np.isfinite(weights).all() and (scale > 0).all()):
        raise ValueError("means and weights must be finite numbers, and scales must be positive.")
    basis, triangle = np.linalg.qr(weights)
    sizes = np.abs(np.diag(triangle))
    if weights.shape[1] > d or sizes.min(initial=np.inf) <= 1e-10 * sizes.max(initial=0.0):
        raise ValueError(
            f"the {weights.shape[1]} columns of weights depend on each other; pass one column for "
            "each component, no two alike."
        )
    scaler, pca = StandardScaler(), PCA(n_components=weights.shape[1])
    scaler.mean_, scaler.scale_, scaler.var_ = mean, scale, scale**2
    scaler.n_features_in_ = pca.n_features_in_ = d
    scaler.feature_names_in_ = np.asarray(list(map(str, names)), object)
    pca.components_ = (basis * np.sign(np.diag(triangle))).T
    pca.mean_, pca.n_components_ = np.zeros(d), weights.shape[1]
    return Pipeline([("scale", scaler), ("pca", pca)])


def _beside_pca(
    components: Array, mean: Array, people: People, seed: int
) -> tuple[HeldOut, HeldOut, RowErrors, FairProjection]:
    """Errors of the model and of plain PCA.

    The model is fixed, so any parts of the rows are independent: many small ones give its
    intervals. PCA is fitted in folds, each of which is made of some of these parts. Returns sums by
    part and by fold, the errors of rows, and PCA fitted to all rows.
    """
    k, w, rank = len(people.labels), people.weights, len(components)
    unit = FoldRule(_UNITS, seed).folds_of(people.codes, np.zeros(k, np.intp))
    folds, own = RowsByFold(people, unit % _FOLDS), SimpleNamespace(mean_=mean)
    errors = np.empty((3, len(unit)))
    errors[[0, 2]] = row_errors(own, [components], people.X)
    for fold in folds:
        pca = fit_pca(fold.fit_to, rank)
        errors[1, fold.rows] = row_errors(pca, [pca.components_], fold.values)[0]
    rows = RowErrors(errors[:2], errors[2], people.codes, w)

    sums = sums_of_parts(errors, people, np.arange(len(unit)), _UNITS, seed)

    def held_out(sums: Array, odds: float) -> HeldOut:
        return HeldOut(sums[:, :2], sums[:, 3], sums[:, 2], odds)

    units = held_out(sums, 0.0)
    paired = held_out(sums.reshape(-1, _FOLDS, 4, k).sum(axis=0), 1 / (_FOLDS - 1))
    return units, paired, rows, fit_pca(folds.moments, rank)


def _leakage(
    models: tuple[Any, Any], people: People, probes: bool, comparison: Comparison, seed: int
) -> Leakage | None:
    """How far apart the groups' scores are under the model and PCA; who guesses the model's."""
    rows = np.flatnonzero(comparison.judged[people.codes])
    if comparison.judged.sum() < 2:
        return None
    groups, weights = people.labels[people.codes[rows]], people.weights[rows]
    scores = [scores_of(model, people.X[rows]) for model in models]
    apart = [separation(values, groups, weights) for values in scores]
    if not probes:
        return Leakage(apart[0], apart[1])
    found = probed(scores[0], groups, comparison.thresholds.level, seed)
    return Leakage(apart[0], apart[1], found, (), len(rows))


def _fitted_to(projection: Any, rows: RowErrors) -> bool:
    """Whether the scores have exactly the variance that they had in the fit."""
    expected = getattr(projection, "explained_variance_", None)
    r, d = projection.components_.shape
    if expected is None or r == d:  # all standardised rows vary alike if nothing is lost
        return False
    kept, total = rows.distances - rows.errors[0], float(np.sum(expected))
    return bool(abs(kept.sum() / max(len(kept) - 1, 1) - total) <= _SAME * total)


def _outside(projection: Any, mean: Array, X: Any) -> float | None:
    """Share of rows far from what the model was fitted to; None where that is not known."""
    along, across = (
        getattr(projection, name, None) for name in ("explained_variance_", "noise_variance_")
    )
    if along is None or across is None:
        return None
    variances = (np.asarray(projection.components_).T ** 2) @ (np.asarray(along) - across) + across
    limit = _FAR * np.sqrt(np.maximum(variances, 0.0)) + 1e-9 * np.abs(mean)
    return float((np.abs(X - mean) > limit).any(axis=1).mean())


def _steps(model: Any) -> list[Any]:
    return [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]


def _names(model: Any, projection: Any, X: Any, d: int) -> list[str]:
    found = [getattr(one, "feature_names_in_", None) for one in (projection, model)]
    found.append(getattr(X, "columns", None))
    names = next((one for one in found if one is not None and len(one) == d), None)
    return [f"x{j}" for j in range(d)] if names is None else [str(name) for name in names]
