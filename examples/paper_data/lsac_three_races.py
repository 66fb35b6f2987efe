"""
Three groups: law students by race
==================================

What the worst case, parity, "no worse", a budget and the loss mean for three groups.
Needs the file of LSAC; see :func:`fairpca.datasets.load_lsac`.
"""

import warnings

from fairpca import FairPCA, GroupMoments, LevellingDownWarning, MinMaxPCA, ParityInfeasibleWarning
from fairpca.datasets import load_lsac

lsac = load_lsac()
moments = GroupMoments.from_data(lsac.data, lsac.race)

asked = {
    "FairPCA": FairPCA(5),
    "equal at any price (u-FPCA)": FairPCA(5, constraint="parity"),
    "nobody above PCA's worst (c-FPCA)": FairPCA(5, constraint="no_worse"),
    "FairPCA, for 1% more error": FairPCA(5, max_error_increase=0.01),
    "least largest loss": MinMaxPCA(5),
    "FairPCA, relative_errors=True": FairPCA(5, relative_errors=True),
}

print(f"{'':35}{''.join(f'{race:>8}' for race in moments.groups)}{'overall':>9}  status")
for i, (name, estimator) in enumerate(asked.items()):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParityInfeasibleWarning)
        warnings.simplefilter("ignore", LevellingDownWarning)
        estimator.fit(moments)
    if i in (0, len(asked) - 1):
        before = "".join(f"{error:8.3f}" for error in estimator.pca_group_errors_)
        name_of_pca = "share of variance lost: PCA" if i else "plain PCA"
        print(f"{name_of_pca:35}{before}{estimator.pca_reconstruction_error_:9.3f}")
    errors = "".join(f"{error:8.3f}" for error in estimator.group_errors_)
    print(f"{name:35}{errors}{estimator.reconstruction_error_:9.3f}  {estimator.status_}")
