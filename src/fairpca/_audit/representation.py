"""What scores give away about the group, and what a classifier makes of them, for the audit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from fairpca._audit.fits import Fits, chooses_by_folds
from fairpca._audit.in_memory import RowsInMemory
from fairpca._audit.model import ModelAudit
from fairpca._audit.rows import AuditedRows
from fairpca._audit.same_sides import SameSides
from fairpca._audit.sampling import SampledRows, cells_of, fewest_in_cells, fewest_rows
from fairpca._estimators.base import FairProjection
from fairpca._input.checks import check_sample_weight
from fairpca._input.labels import encode_groups, encode_outcomes, refuse_counts
from fairpca._moments.dealing import deal_folds
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.strata import positive_class
from fairpca._typing import Array, Codes, Labels
from fairpca.exceptions import quietly
from fairpca.metrics import (
    Outcomes,
    Probe,
    classifier_outcomes,
    group_separation,
    probe_groups,
    rbf_mmd,
)

MOST_ROWS = 10_000  # to fit and to probe with
_FOLDS = 5  # of probes and classifiers, where there are enough rows


@dataclass(frozen=True)
class GivenAway:
    """What the scores of one projection tell about the group.

    Attributes
    ----------
    separation : dict of str to float
        From the moments of the rows fitted to: the share of the scores' variance between the
        groups, and for the worst pair of groups the Mahalanobis distance, the AUC of the linear
        discriminant, the Wasserstein distance and the second-order MMD. With probes also their
        squared MMD for a Gaussian kernel, from the rows that the probes guess.
    probes : list of Probe
        Classifiers that guess the group; empty if none were asked for.
    """

    separation: Mapping[str, float]
    probes: list[Probe]


@dataclass(frozen=True)
class Representation:
    """What scores give away, under PCA and under the fair projection.

    Attributes
    ----------
    pca, fair : GivenAway
    n_rows : int
        Rows that the probes guessed: one half of the sample, to which the projections were not
        fitted. 0 without probes.
    """

    pca: GivenAway
    fair: GivenAway
    n_rows: int


def representation(
    fits: Fits,
    rows: AuditedRows,
    scale: Array | None,
    probes: bool,
    y: Labels | None,
    level: float,
    seed: int,
) -> Representation | None:
    """What both projections reveal; None where there are no matrices to tell."""
    moments = fits.settled.moments
    if not isinstance(moments, GroupMoments):
        return None
    found = [GivenAway(_separation(model, moments), []) for model in (fits.pca, fits.fair)]
    if not probes:
        return Representation(found[0], found[1], 0)
    sample = _compared(fits, _sample(rows, fits, seed))
    X, labels = _scaled(sample, scale), moments.groups[sample.codes]
    outcome = None if y is None else y[sample.rows]
    fitted_to, guessed = _halves(sample.codes, outcome, seed)
    need = "probes need two rows of each group in each half of the rows"
    fewest_fitted, fewest = (
        fewest_rows(sample.codes[half], labels[half].tolist(), need)
        for half in (fitted_to, guessed)
    )
    for i, model in enumerate((fits.pca, fits.fair)):
        with quietly():
            half = _unfitted(model, fewest_fitted).fit(
                X[fitted_to],
                None if outcome is None else outcome[fitted_to],
                sensitive_features=labels[fitted_to],
            )
        scores, folds = half.transform(X[guessed]), min(_FOLDS, fewest)
        found[i] = _probed(found[i].separation, scores, labels[guessed], folds, level, seed)
    return Representation(found[0], found[1], len(guessed))


def outcomes(
    fits: Fits,
    rows: AuditedRows,
    scale: Array | None,
    y: Labels,
    pos_label: Any,
    level: float,
    seed: int,
) -> list[Outcomes]:
    """Rates of a classifier by group, with projections fitted to the training rows of each fold."""
    sample = _compared(fits, _sample(rows, fits, seed))
    labels, outcome = fits.settled.moments.groups[sample.codes], y[sample.rows]
    folds = _possible_folds(sample.codes, labels, outcome)
    with quietly():
        results = classifier_outcomes(
            _unfitted(fits.fair, _fewest_to_fit_to(sample.codes, outcome, folds)),
            _scaled(sample, scale),
            outcome,
            labels,
            pos_label=pos_label,
            cv=folds,
            confidence=level,
            random_state=seed,
        )
    return [replace(result, data=None) for result in results]  # people stay out of the audit


def with_scores(
    judged: ModelAudit,
    model: Any,
    X: Any,
    groups: Any,
    sample_weight: Any,
    y: Any,
    pos_label: Any,
    probes: bool,
    seed: int,
) -> ModelAudit:
    """The audit of a fitted model, with what its scores give away and what they are good for."""
    if y is None and not probes:
        return judged
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    codes, labels = encode_groups(groups, n_rows)
    y = None if y is None else outcome_classes(y, n_rows, pos_label)
    weights = check_sample_weight(sample_weight, n_rows)
    if weights is not None:
        counted = np.flatnonzero(weights)
        X, codes, weights = _safe_indexing(X, counted), codes[counted], weights[counted]
        y = None if y is None else y[counted]
    named, level = labels[codes], judged.level
    folds = min(_FOLDS, fewest_rows(codes, named.tolist(), "probes need two rows of each group"))
    model = model if hasattr(model, "transform") else model[:-1]  # without its own classifier
    scores = np.asarray(model.transform(X))
    as_they_are = SimpleNamespace(components_=np.eye(scores.shape[1]), mean_=0.0)
    separation = _separation(as_they_are, GroupMoments.from_data(scores, named, weights))
    found = _probed(separation, scores, named, folds, level, seed)
    judged = replace(judged, separation=found.separation, probes=found.probes)
    if y is None:
        return judged
    folds = _possible_folds(codes, named, y)
    how = {"pos_label": pos_label, "cv": folds, "confidence": level, "random_state": seed}
    results = classifier_outcomes(model, X, y, named, **how)
    without_rows = [replace(result, data=None) for result in results]
    return replace(judged, outcomes=without_rows)


def _separation(model: Any, moments: GroupMoments) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of an infinite distance: it is shown
        return group_separation(model, moments).largest()


def _probed(
    separation: Mapping[str, float],
    scores: Array,
    groups: Labels,
    folds: int,
    level: float,
    seed: int,
) -> GivenAway:
    """What rows tell, besides the separation that is known from moments."""
    kernel = rbf_mmd(scores, groups, random_state=seed)
    probes = probe_groups(scores, groups, cv=folds, confidence=level, random_state=seed)
    return GivenAway({**separation, "rbf_mmd2": kernel}, probes)


def outcome_classes(y: Any, n_rows: int, pos_label: Any) -> Labels:
    """The class of each row: one of two, or of several if one of them is the positive one."""
    codes, labels = encode_outcomes(y, n_rows)
    classes = labels.tolist()
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only ({classes[0]!r}), so there is nothing to predict; pass y with "
            "two classes or more."
        )
    refuse_counts(classes, "pass classes, for example y > threshold")
    positive_class(classes, pos_label)
    return labels[codes]


def _possible_folds(codes: Codes, labels: Labels, y: Labels) -> int:
    """Folds of the classifier: as usual, or as many as there are rows of each group and class."""
    return min(_FOLDS, fewest_in_cells(codes, labels, y))


def _fewest_to_fit_to(codes: Codes, y: Labels, folds: int) -> int:
    """Rows of the smallest group without a fold, to which each class gives its share."""
    _, first, sizes = np.unique(cells_of(codes, y), return_index=True, return_counts=True)
    kept = np.bincount(codes[first], sizes - np.ceil(sizes / folds))
    return int(kept[np.unique(codes)].min())


def _halves(codes: Codes, y: Labels | None, seed: int) -> tuple[Codes, Codes]:
    """Two halves of the rows at random, with half of each group and class."""
    cells = codes if y is None else cells_of(codes, y)
    half = deal_folds(cells, 2, np.random.default_rng(seed))
    return np.flatnonzero(half == 0), np.flatnonzero(half == 1)


def _sample(rows: AuditedRows, fits: Fits, seed: int) -> SampledRows:
    if isinstance(rows, RowsInMemory):
        return rows.random_sample(fits.settled, MOST_ROWS, seed)
    rng = np.random.default_rng(seed)
    return rows.sample(fits.settled, MOST_ROWS, rng, lambda *_: None)


def _compared(fits: Fits, sample: SampledRows) -> SampledRows:
    """Without the rows of groups that are not compared."""
    kept = fits.settled.compared[sample.codes]
    return SampledRows(sample.rows[kept], sample.codes[kept], sample.values[kept])


def _scaled(sample: SampledRows, scale: Array | None) -> Array:
    return sample.values if scale is None else np.asarray(sample.values / scale)


def _unfitted(model: FairProjection, fewest: int) -> FairProjection:
    """The same estimator with as many components, for fewer rows: ``fewest`` of a group.

    Where folds chose the weight of two groups, the twin has that weight, for the same group: it is
    the projection that the audit is about, and fewer rows might choose PCA.
    """
    r = model.n_components_
    if chooses_by_folds(model) and len(model.groups_) == 2:
        how = {"normalize": model.normalize, "whiten": model.whiten}
        return SameSides(r, model.alpha_, model.harmed_group_, **how)
    twin: Any = clone(model).set_params(n_components=r)
    if "min_group_size" in twin.get_params():
        twin.set_params(min_group_size=1)
    if chooses_by_folds(twin):
        wanted = twin.cv if isinstance(twin.cv, Integral) else _FOLDS  # splits are of other rows
        twin.set_params(cv=min(int(wanted), fewest) if fewest > 1 else None)
    assert isinstance(twin, FairProjection)
    return twin
