"""
Scores that do not reveal the group
===================================

``BlindPCA`` keeps as much variance as it can while the mean scores are the same in all groups. This
example asks what that costs, what a budget saves, and what the scores still give away.
"""

import matplotlib.pyplot as plt
import numpy as np

from fairpca import BlindPCA
from fairpca.datasets import load_rand_health
from fairpca.metrics import probe_groups

people = load_rand_health()
X, race = people.data[::2], people.sensitive_features[::2]
X_new, race_new = people.data[1::2], people.sensitive_features[1::2]
r = 4

# %%
# Hiding the means costs some variance. The certificate says that no other projection with equal
# means keeps more.

blind = BlindPCA(r).fit(X, sensitive_features=race)
print(f"mean gap {blind.pca_mean_gap_:.3f} -> {blind.mean_gap_:.1e} ({blind.status_})")
print(f"error    {blind.pca_reconstruction_error_:.3f} -> {blind.reconstruction_error_:.3f}")
print(f"certified to {blind.duality_gap_:.1e}")

# %%
# With a budget, part of the gap stays. Each point is the projection with the least error for its
# gap.

budgets = blind.pca_mean_gap_ * np.linspace(1, 0, 21)
path = [BlindPCA(r, max_mean_gap=gap).fit(blind.moments_) for gap in budgets]

# %%
# Equal means are not equal distributions. On the test set, a logistic regression can no longer tell
# the groups apart, but boosted trees can, because the spread of the scores differs. Leaving out the
# directions in which the covariances differ most takes some of that away, at a price. A probe is a
# lower bound: another one may see more.

variants = {
    "PCA": path[0],
    "BlindPCA": blind,
    "hide_covariances=4": BlindPCA(r, hide_covariances=4).fit(blind.moments_),
}
probes = {
    name: probe_groups(model, X_new, race_new, random_state=0) for name, model in variants.items()
}
for name, model in variants.items():
    print(
        f"{name:18} error {model.reconstruction_error_:.2f},",
        ", ".join(f"{p.name} {p.auc:.2f} ({p.low:.2f} to {p.high:.2f})" for p in probes[name]),
    )

# %%
_, axes = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
axes[0].plot([model.mean_gap_ for model in path], [m.reconstruction_error_ for m in path], ".-")
axes[0].set(xlabel="mean gap", ylabel="reconstruction error", title="what hiding costs")
for shift, which in ((-0.1, 0), (0.1, 1)):
    found = [probes[name][which] for name in variants]
    auc = np.array([probe.auc for probe in found])
    ends = np.abs([[probe.low for probe in found] - auc, [probe.high for probe in found] - auc])
    axes[1].errorbar(np.arange(3) + shift, auc, ends, fmt="o", label=found[0].name)
axes[1].axhline(0.5, color="black", linewidth=1)
axes[1].set(xticks=np.arange(3), xticklabels=variants, xlim=(-0.5, 2.5))
axes[1].set_ylabel("AUC for the group")
axes[1].set_title("what the scores give away")
axes[1].legend(title="probe")
plt.show()
