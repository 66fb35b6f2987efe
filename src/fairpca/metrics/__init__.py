"""How a projection treats groups, on any data.

* How well it reconstructs each group: :func:`group_reconstruction_errors` and its kin.
* What its scores tell about the group: :func:`group_separation` from moments alone,
  :func:`probe_groups` from rows.
* What a classifier makes of the scores: :func:`classifier_outcomes`.
* In ``cross_validate`` and searches: ``disparity_scorer``.

The first two kinds take any fitted object with orthonormal ``components_`` and a ``mean_``: the
estimators of this library as well as scikit-learn's ``PCA``, ``IncrementalPCA`` and
``TruncatedSVD``, or a pipeline with one of them. The data may be other rows than those fitted to.
"""

from __future__ import annotations

from fairpca.metrics.outcomes import Estimate, Outcomes, classifier_outcomes
from fairpca.metrics.probes import Probe, probe_groups
from fairpca.metrics.reconstruction import (
    DisparityScorer,
    disparity_scorer,
    fairness_measure,
    group_reconstruction_errors,
    reconstruction_disparity,
    row_reconstruction_errors,
)
from fairpca.metrics.separation import Separation, group_separation

__all__ = [
    "DisparityScorer",
    "Estimate",
    "Outcomes",
    "Probe",
    "Separation",
    "classifier_outcomes",
    "disparity_scorer",
    "fairness_measure",
    "group_reconstruction_errors",
    "group_separation",
    "probe_groups",
    "reconstruction_disparity",
    "row_reconstruction_errors",
]
