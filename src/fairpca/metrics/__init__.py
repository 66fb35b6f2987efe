"""How a projection treats groups, on any data.

* How well it reconstructs each group: :func:`group_reconstruction_errors` and its kin.
* What its scores tell about the group: :func:`group_separation`, :func:`probe_groups`.
* What a classifier makes of the scores: :func:`classifier_outcomes`.

The estimator may be one of this library, scikit-learn's ``PCA``, ``IncrementalPCA`` or
``TruncatedSVD``, or a pipeline with one of them. The rows need not be those it was fitted to.
"""

from fairpca.metrics.classifiers import (
    Estimate,
    Outcomes,
    Probe,
    Selection,
    classifier_outcomes,
    probe_groups,
)
from fairpca.metrics.reconstruction import (
    disparity_scorer,
    group_reconstruction_errors,
    reconstruction_disparity,
    row_reconstruction_errors,
)
from fairpca.metrics.separation import Separation, group_separation

__all__ = [
    "Estimate",
    "Outcomes",
    "Probe",
    "Selection",
    "Separation",
    "classifier_outcomes",
    "disparity_scorer",
    "group_reconstruction_errors",
    "group_separation",
    "probe_groups",
    "reconstruction_disparity",
    "row_reconstruction_errors",
]
