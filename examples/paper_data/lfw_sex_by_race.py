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
fair = FairPCA(10).fit_moments(moments)

print(f"{'':18}{'faces':>6}{'PCA':>9}{'fair PCA':>10}")
for row in zip(
    fair.groups_, fair.group_sizes_, fair.pca_group_errors_, fair.group_errors_, strict=True
):
    print("{:18}{:6d}{:9.3f}{:10.3f}".format(*row))
before, after = fair.pca_reconstruction_error_, fair.reconstruction_error_
print(f"{'overall':18}{len(lfw.data):6d}{before:9.3f}{after:10.3f}")
print(f"{fair.status_}; no projection this fair is better by more than {fair.duality_gap_:.0e}")
