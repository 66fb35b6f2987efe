"""``fairpca.audit_model``: a fitted model as it is, on rows that it need not have seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from fairpca._audit import annex
from fairpca._audit.cross_fit import (
    AuditFold,
    Folds,
    People,
    Projection,
    RowErrors,
    cross_fit,
    dense,
    fit_pca,
)
from fairpca._audit.group_results import Setup, group_results, loses_something, overall_figures
from fairpca._audit.record import ModelAudit, Provenance
from fairpca._audit.verdict import Thresholds, decide
from fairpca._input.folds import FoldRule
from fairpca._typing import Array
from fairpca.metrics.reconstruction import flattened, projection_of, seen_by_projection

_FOLDS = 10  # of plain PCA, beside the model
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
    own, rank = Projection(components, mean), len(components)
    people = People(seen, sensitive_features, sample_weight, y, pos_label)
    if people.X.shape[1] != len(mean):
        raise ValueError(
            f"X has {people.X.shape[1]} features where the projection has {len(mean)}; pass the "
            "same columns as for fit."
        )
    folds = Folds(people, FoldRule(_FOLDS, random_state))
    names = _names(model, projection, folds)
    origin = Provenance(
        judged=" ".join(repr(model).split()),
        fitted_here=False,
        alternative=f"PCA(n_components={rank})",
        n_rows=len(people.codes),
        n_components=rank,
        feature_names=names,
        group_columns=people.group_columns,
        standardized=any(isinstance(step, StandardScaler) for step in flattened(model)),
        weighted=sample_weight is not None,
        n_folds=0,
        reference=reference,
        thresholds=thresholds,
        random_state=random_state,
    )
    by_share = any(getattr(step, "normalize", False) is True for step in flattened(model))
    setup = Setup(people.labels.tolist(), folds.moments.counts, origin, by_share)

    def beside_pca(fold: AuditFold) -> list[Projection]:
        pca = Projection.of(fit_pca(fold.fit_to, rank))
        return [own, pca, pca]

    crossed = cross_fit(folds, beside_pca, refit=0.0)  # the model is fixed
    groups, rows = group_results(crossed, setup), crossed.rows
    columns = annex.deciding_columns(people.X, names, rows, setup)
    both = own, Projection.of(fit_pca(folds.moments, rank))
    in_use = model if hasattr(model, "transform") else model[:-1]  # without its classifier
    return ModelAudit(
        verdict=decide(
            groups,
            columns,
            thresholds,
            nothing_compressed=not loses_something(crossed.folds)[0],
            by_share=by_share,
            remedy_tried=False,
        ),
        groups=groups,
        overall=overall_figures(crossed.folds, level),
        columns=columns,
        left_out=people.left_out,
        provenance=origin,
        leakage=annex.leakage(people, people.X, both, setup, probes or y is not None),
        outcomes=annex.outcomes(in_use, _safe_indexing(X, people.positions), people, setup),
        on_rows_fitted_to=sample_weight is None and _fitted_to(projection, rows),
        outside=_outside(projection, mean, dense(people.X)),
        column_errors=annex.column_errors(own, folds.moments),
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
    d, r = len(names), weights.shape[-1]
    if mean.shape != (d,) or scale.shape != (d,) or weights.shape != (d, r):
        raise ValueError(
            f"a table of loadings has one mean, one scale and the weights of each of its {d} "
            f"columns, got shapes {mean.shape}, {scale.shape} and {weights.shape}."
        )
    if not (np.isfinite(mean).all() and np.isfinite(weights).all() and (scale > 0).all()):
        raise ValueError("means and weights must be finite numbers, and scales must be positive.")
    basis, triangle = np.linalg.qr(weights)
    sizes = np.diag(triangle)
    if r > d or np.abs(sizes).min() <= 1e-10 * np.abs(sizes).max():
        raise ValueError(
            f"the {r} columns of weights depend on each other; pass one column for each component, "
            "no two alike."
        )
    scaler, pca = StandardScaler(), PCA(n_components=r)
    scaler.mean_, scaler.scale_, scaler.var_ = mean, scale, scale**2
    scaler.n_features_in_ = pca.n_features_in_ = d
    scaler.feature_names_in_ = np.asarray(list(map(str, names)), object)
    pca.components_, pca.mean_, pca.n_components_ = (basis * np.sign(sizes)).T, np.zeros(d), r
    return Pipeline([("scale", scaler), ("pca", pca)])


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


def _names(model: Any, projection: Any, folds: Folds) -> list[str]:
    """The columns as the projection or the model knows them, or as they are called in X."""
    for names in (getattr(one, "feature_names_in_", None) for one in (projection, model)):
        if names is not None and len(names) == len(folds.feature_names):
            return [str(name) for name in names]
    return folds.feature_names
