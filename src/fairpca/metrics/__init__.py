"""How a projection treats groups, on any data.

* How well it reconstructs each group: :func:`group_reconstruction_errors` and its kin, and
  ``disparity_scorer`` for ``cross_validate`` and searches.
* What its scores tell about the group: :func:`group_separation` from moments alone,
  :func:`probe_groups` from rows.
* What a classifier makes of the scores: :func:`classifier_outcomes`.

The estimator may be one of this library, scikit-learn's ``PCA``, ``IncrementalPCA`` or
``TruncatedSVD``, or a pipeline with one of them. The rows need not be those it was fitted to.
"""

from fairpca.metrics.outcomes import Estimate, Outcomes, classifier_outcomes
from fairpca.metrics.reconstruction import (
    DisparityScorer,
    disparity_scorer,
    fairness_measure,
    group_reconstruction_errors,
    reconstruction_disparity,
    row_reconstruction_errors,
)
from fairpca.metrics.separation import Probe, Separation, group_separation, probe_groups

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
