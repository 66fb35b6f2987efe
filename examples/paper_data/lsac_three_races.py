"""
Three groups: law students by race
==================================

What efficient fairness, parity, "no worse", a budget and the worst case mean for three groups.
Needs the file of LSAC; see :func:`fairpca.datasets.load_lsac`.
"""

import warnings

from fairpca import FairPCA, GroupMoments, LevellingDownWarning, MinMaxPCA, ParityInfeasibleWarning
from fairpca.datasets import load_lsac

lsac = load_lsac()
moments = GroupMoments.from_data(lsac.data, lsac.race)

asked = {
    "efficient fairness": FairPCA(5),
    "equal at any price (u-FPCA)": FairPCA(5, constraint=None),
    "nobody above PCA's worst (c-FPCA)": FairPCA(5, constraint="no_worse"),
    "efficient, for 1% more error": FairPCA(5, max_error_increase=0.01),
    "least largest error": MinMaxPCA(5, criterion="error"),
    "least largest loss": MinMaxPCA(5),
    "same share of variance kept": FairPCA(5, normalize=True),
}

print(f"{'':35}{''.join(f'{race:>8}' for race in moments.groups)}{'overall':>9}  status")
for i, (name, estimator) in enumerate(asked.items()):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParityInfeasibleWarning)
        warnings.simplefilter("ignore", LevellingDownWarning)
        estimator.fit_moments(moments)
    if i in (0, len(asked) - 1):
        before = "".join(f"{error:8.3f}" for error in estimator.pca_group_errors_)
        print(f"{'plain PCA':35}{before}{estimator.pca_reconstruction_error_:9.3f}")
    errors = "".join(f"{error:8.3f}" for error in estimator.group_errors_)
    print(f"{name:35}{errors}{estimator.reconstruction_error_:9.3f}  {estimator.status_}")
