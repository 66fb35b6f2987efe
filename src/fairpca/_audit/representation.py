"""What scores give away about the group, and what a classifier makes of them, for the audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from fairpca._audit.fits import Fits
from fairpca._audit.rows import AuditedRows, RowsInMemory, SampledRows
from fairpca._estimators.base import FairProjection
from fairpca._moments.group_moments import GroupMoments
from fairpca._typing import Array, Labels
from fairpca.exceptions import quietly
from fairpca.metrics import Outcomes, Probe, classifier_outcomes, group_separation, probe_groups

_MOST_ROWS = 10_000  # to fit and to probe with


@dataclass(frozen=True)
class GivenAway:
    """What the scores of one projection tell about the group.

    Attributes
    ----------
    separation : dict of str to float
        From the moments of the rows fitted to: the share of the scores' variance between the
        groups, and for the worst pair of groups the Mahalanobis distance, the AUC of the linear
        discriminant, the Wasserstein distance and the second-order MMD.
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
    fits: Fits, rows: AuditedRows, scale: Array | None, probes: bool, level: float, seed: int
) -> Representation | None:
    """What both projections reveal; None where there are no matrices to tell."""
    moments = fits.settled.moments
    if not isinstance(moments, GroupMoments):
        return None
    found = [
        GivenAway(group_separation(model, moments).largest(), []) for model in (fits.pca, fits.fair)
    ]
    if not probes:
        return Representation(found[0], found[1], 0)
    sample = _compared(fits, _sample(rows, fits, seed))
    X, labels = _scaled(sample, scale), moments.groups[sample.codes]
    order = check_random_state(seed).permutation(len(X))
    fitted_to, guessed = order[::2], order[1::2]
    for i, model in enumerate((fits.pca, fits.fair)):
        with quietly():
            half = _unfitted(model).fit(X[fitted_to], sensitive_features=labels[fitted_to])
        guesses = probe_groups(
            half.transform(X[guessed]), labels[guessed], confidence=level, random_state=seed
        )
        found[i] = replace(found[i], probes=guesses)
    return Representation(found[0], found[1], len(guessed))


def outcomes(
    fits: Fits, rows: AuditedRows, scale: Array | None, y: Labels, level: float, seed: int
) -> list[Outcomes]:
    """Rates of a classifier by group, with projections fitted to the training rows of each fold."""
    sample = _compared(fits, _sample(rows, fits, seed))
    labels = fits.settled.moments.groups[sample.codes]
    with quietly():
        results = classifier_outcomes(
            _unfitted(fits.fair),
            _scaled(sample, scale),
            y[sample.rows],
            labels,
            confidence=level,
            random_state=seed,
        )
    return [replace(result, data=None) for result in results]  # people stay out of the audit


def _sample(rows: AuditedRows, fits: Fits, seed: int) -> SampledRows:
    rng = np.random.default_rng(seed)
    if isinstance(rows, RowsInMemory):
        return rows.random_sample(fits.settled, _MOST_ROWS, rng)
    return rows.sample(fits.settled, _MOST_ROWS, rng, lambda *_: None)


def _compared(fits: Fits, sample: SampledRows) -> SampledRows:
    """Without the rows of groups that are not compared."""
    kept = fits.settled.compared[sample.codes]
    return SampledRows(sample.rows[kept], sample.codes[kept], sample.values[kept])


def _scaled(sample: SampledRows, scale: Array | None) -> Array:
    return sample.values if scale is None else np.asarray(sample.values / scale)


def _unfitted(model: FairProjection) -> FairProjection:
    """The same estimator with as many components, for fewer rows."""
    twin: Any = clone(model).set_params(n_components=model.n_components_)
    if "min_group_size" in twin.get_params():
        twin.set_params(min_group_size=1)
    assert isinstance(twin, FairProjection)
    return twin
