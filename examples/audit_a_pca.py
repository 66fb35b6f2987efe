"""
Auditing a PCA
==============

Somebody has fitted a PCA. Does it treat the groups alike, and will it do so on new people? Who
would gain from a fair projection, and who would pay?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from fairpca import FairPCA, audit
from fairpca.datasets import load_rand_health
from fairpca.metrics import group_reconstruction_errors

people = load_rand_health()
X, race = people.data, people.sensitive_features
pca = PCA(n_components=8).fit(X)

# %%
# The metrics take any fitted projection and any rows.

group_reconstruction_errors(pca, X, race)

# %%
# :func:`fairpca.audit` does the whole job. It compares PCA with fair PCA, on the rows fitted to and
# on rows held out: every person is measured under projections that were fitted without that person.

result = audit(X, race, FairPCA(n_components=8))
print(f"harmed: {result.harmed_group}; {result.status}, at a cost of {result.cost:.1%}")
for name in ("pca", "fair"):
    fitted = abs(getattr(result, name).disparity)
    held_out = getattr(result.cross_validation, name).disparity
    low, high = getattr(result.bootstrap, name)
    print(f"{name:5} disparity {fitted:6.3f}, held out {held_out:6.3f} ({low:.3f} to {high:.3f})")

# %%
# The interval for PCA lies well above zero, so PCA will treat new people unequally too. The
# interval for fair PCA includes zero.
#
# The question that counts is who gains and who pays. Both projections are measured on the same
# people, so these intervals are narrow.

before = result.cross_validation.pca.group_errors
changes = 100 * np.array([[c.estimate, c.low, c.high] for c in result.changes.groups])
changes /= before[:, None]
for group, change in zip(result.groups, changes, strict=True):
    print("{:8}{:+6.1f} % ({:+.1f} to {:+.1f})".format(group, *change))

estimates, lengths = changes[:, 0], np.abs(changes[:, 1:] - changes[:, :1]).T
_, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
ax.errorbar(estimates, result.groups, xerr=lengths, fmt="o", capsize=4)
ax.axvline(0, color="black", linewidth=1)
ax.set(xlabel="change of the error of new people against PCA, in %", ylim=(-0.5, 1.5))
plt.show()

# %%
# ``result.to_html("report.html")`` writes the page that ``fairpca report`` makes, and
# ``result.to_dict()`` gives everything as plain numbers.

sorted(result.to_dict())
