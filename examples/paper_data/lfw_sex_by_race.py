"""
Intersections: faces by sex and race
====================================

The paper compares women with men. This example compares eight groups at once. LFW's labels of race
overlap, and some faces have none. Here a face counts as asian, black or white if exactly one of the
three labels is set, and as "unclear" otherwise. Needs lfw.npz; see
:func:`fairpca.datasets.load_lfw`. Takes a few seconds.
"""

import numpy as np

from fairpca import FairPCA, GroupMoments
from fairpca.datasets import load_lfw

lfw = load_lfw()
moments = GroupMoments.from_data(lfw.data, np.column_stack([lfw.sensitive_features, lfw.race]))
fits = {
    "efficient": FairPCA(10).fit(moments),
    "u-FPCA": FairPCA(10, constraint="parity").fit(moments),
}

first = fits["efficient"]
print(f"{'':18}{'faces':>6}{'PCA':>9}{''.join(f'{name:>11}' for name in fits)}")
errors = zip(*(fit.group_errors_ for fit in fits.values()), strict=True)
for *row, fair in zip(
    first.groups_, first.group_sizes_, first.pca_group_errors_, errors, strict=True
):
    print("{:18}{:6d}{:9.3f}".format(*row) + "".join(f"{error:11.3f}" for error in fair))
overall = "".join(f"{fit.reconstruction_error_:11.3f}" for fit in fits.values())
print(f"{'overall':18}{len(lfw.data):6d}{first.pca_reconstruction_error_:9.3f}{overall}")
for name, fit in fits.items():
    print(f"{name}: {fit.status_}, gap {fit.duality_gap_:.0e}")
