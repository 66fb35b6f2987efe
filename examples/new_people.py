"""
People it has not seen
======================

Equal errors on the rows fitted are a matter of construction. This example asks what becomes of
people whom the projection has not seen: fit to a random half, measure the other half, thirty times.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from fairpca import FairPCA, FairPCACV
from fairpca.datasets import load_checkup
from fairpca.metrics import group_reconstruction_errors

people = load_checkup()
X, age = people.data, people.sensitive_features
methods = {
    "PCA": FairPCA(5, standardize=True, alpha=1),
    "FairPCA": FairPCA(5, standardize=True),
    "FairPCACV": FairPCACV(5, standardize=True),
}

measured = {name: [] for name in methods}
for half, rest in StratifiedShuffleSplit(30, test_size=0.5, random_state=0).split(X, age):
    for name, method in methods.items():
        method.fit(X[half], sensitive_features=age[half])
        errors = group_reconstruction_errors(method, X[rest], age[rest])
        measured[name].append(list(errors.values()))
measured = {name: np.array(errors) for name, errors in measured.items()}

# %%
# Mean errors, and the changes against PCA with their range over the splits.

for name, errors in measured.items():
    changes = 100 * (errors / measured["PCA"] - 1)
    row = [
        f"{group} {errors[:, g].mean():.2f} "
        f"({changes[:, g].min():+.0f} to {changes[:, g].max():+.0f} %)"
        for g, group in enumerate(people.groups)
    ]
    print(f"{name:10}" + ", ".join(row))

# %%
# Each bar counts splits.

_, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for ax, name in zip(axes, ("FairPCA", "FairPCACV"), strict=True):
    changes = 100 * (measured[name] / measured["PCA"] - 1)
    for g, group in enumerate(people.groups):
        ax.hist(changes[:, g], bins=np.arange(-30, 22, 2), alpha=0.7, label=group)
    ax.axvline(0, color="black", linewidth=1)
    ax.set(title=name, xlabel="change of the error against PCA, in %")
axes[0].set(ylabel="splits")
axes[0].legend()
plt.show()
