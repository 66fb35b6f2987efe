"""Every estimator, in every setting that leads to code of its own.

Those that hide something have other limits on the data, and are in ``test_hidden.py``.
"""

from __future__ import annotations

from fairpca import FairPCA, MinMaxPCA, WelfarePCA
from fairpca.baselines import MultiplicativeWeightsPCA, RobustFairPCA, SubsetFairPCA

_TOL = 1e-9

FOR_ANY_GROUPS = {
    "efficient": FairPCA(2, tol=_TOL),
    "no worse": FairPCA(2, constraint="no_worse", tol=_TOL),
    "parity": FairPCA(2, constraint="parity", tol=_TOL),
    "error budget": FairPCA(2, max_error_increase=0.05, tol=_TOL),
    "relative": FairPCA(2, relative_errors=True, tol=_TOL),
    "loss": MinMaxPCA(2, center="overall", tol=_TOL),
    "largest error": MinMaxPCA(2, criterion="error", center="overall", tol=_TOL),
    "least variance": MinMaxPCA(
        2, criterion="variance", center="overall", relative_errors=True, tol=_TOL
    ),
    "weights": MultiplicativeWeightsPCA(2, center="overall"),
    "welfare": WelfarePCA(2, tol=_TOL),
}
FOR_TWO_GROUPS = {
    "golden": FairPCA(2, solver="golden"),
    "robust": RobustFairPCA(2),
    "subset": SubsetFairPCA(2),
    "fairest subset": SubsetFairPCA(2, selection="fairest"),
}
EVERY = {**FOR_ANY_GROUPS, **FOR_TWO_GROUPS}
