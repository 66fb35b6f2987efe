"""
Does it hold on a test set?
===========================

Equal errors on the training rows are a matter of construction. This example asks what becomes of
people whom the projection has not seen: fit to a random half of the check-up data, measure the
other half, twenty times, with three to six components.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from fairpca import FairPCA, FairPCACV
from fairpca.datasets import load_checkup
from fairpca.metrics import group_reconstruction_errors

people = load_checkup()
X, age = people.data, people.sensitive_features
ranks = [3, 4, 5, 6]
splits = list(StratifiedShuffleSplit(20, test_size=0.5, random_state=0).split(X, age))


def errors_on_test_halves(make):
    """Errors by rank, split and group."""
    errors = []
    for r in ranks:
        for train, test in splits:
            model = make(r).fit(X[train], sensitive_features=age[train])
            errors.append(list(group_reconstruction_errors(model, X[test], age[test]).values()))
    return np.reshape(errors, (len(ranks), len(splits), len(people.groups)))


pca = errors_on_test_halves(lambda r: FairPCA(r, standardize=True, alpha=1))
fair = {
    "FairPCA": errors_on_test_halves(lambda r: FairPCA(r, standardize=True)),
    "FairPCACV": errors_on_test_halves(lambda r: FairPCACV(r, standardize=True)),
}

# %%
# Mean errors on the test halves. In brackets, the range of the change against PCA over the splits.

older, younger = people.groups
for i, r in enumerate(ranks):
    print(f"{r} components    {older:>24}{younger:>24}")
    print(f"  {'PCA':10}" + "".join(f"{error:24.2f}" for error in pca[i].mean(axis=0)))
    for name, errors in fair.items():
        changes = 100 * (errors[i] / pca[i] - 1)
        row = [
            f"{errors[i, :, g].mean():.2f} "
            f"({changes[:, g].min():+.0f} to {changes[:, g].max():+.0f} %)"
            for g in range(2)
        ]
        print(f"  {name:10}" + "".join(f"{text:>24}" for text in row))

# %%
# Each dot is a split. People of 75 and older gain at every rank, and the younger lose less.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for ax, (name, errors) in zip(axes, fair.items(), strict=True):
    changes = 100 * (errors / pca - 1)
    for g, group in enumerate(people.groups):
        places = np.repeat(ranks, len(splits)) + 0.3 * (g - 0.5)
        ax.plot(places, changes[:, :, g].ravel(), "o", alpha=0.4, label=group)
    ax.axhline(0, color="black", linewidth=1)
    ax.set(title=name, xlabel="components", xticks=ranks)
axes[0].set(ylabel="change of the test error, in %")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
plt.show()

# %%
# :doc:`/getting_started` says what to keep in mind about these data.
