"""
What scores reveal
==================

Describing all groups well is one aim. That scores do not tell the groups apart is another one, and
the two can be at odds. This example measures both, on people not fitted to.
"""

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from fairpca import BlindPCA, FairPCA
from fairpca.datasets import load_rand_health
from fairpca.metrics import group_reconstruction_errors, probe_groups

people = load_rand_health()
X, X_new, race, race_new = train_test_split(
    people.data, people.sensitive_features, test_size=0.5, random_state=0
)
models = {
    "PCA": PCA(8).fit(X),
    "FairPCA": FairPCA(8).fit(X, sensitive_features=race),
    "BlindPCA": BlindPCA(8).fit(X, sensitive_features=race),
    "BlindPCA, covariances": BlindPCA(8, covariances=0.6).fit(X, sensitive_features=race),
    "BlindPCA, fair": BlindPCA(8, fair=FairPCA()).fit(X, sensitive_features=race),
}

# %%
# Two classifiers try to guess the group from the scores: a logistic regression and boosted trees.
# An AUC of 0.5 is chance. What a classifier cannot find may still be there, so these are lower
# bounds.

results = {}
print(f"{'':24}{'black':>7}{'others':>8}{'linear':>8}{'boosted':>9}")
for name, model in models.items():
    errors = group_reconstruction_errors(model, X_new, race_new)
    probes = probe_groups(model.transform(X_new), race_new, random_state=0)
    results[name] = errors, probes
    row = [*errors.values(), *(probe.auc for probe in probes)]
    print("{:24}{:7.2f}{:8.2f}{:8.2f}{:9.2f}".format(name, *row))

# %%
# ``FairPCA`` describes black participants better and hides nothing. ``BlindPCA`` makes mean scores
# equal, and the group is harder to guess. But it leaves out the direction in which the groups
# differ most, and black participants are described much worse for that. Other differences remain:
# income is skewed, so groups of equal means can have unequal medians. Hiding covariances as well
# stops the linear rule, at a high price.

_, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for i, kind in enumerate(["logistic", "boosted"]):
    found = [probes[i] for _, probes in results.values()]
    lengths = [[p.auc - p.low for p in found], [p.high - p.auc for p in found]]
    ax.errorbar([p.auc for p in found], list(results), xerr=lengths, fmt="os"[i], label=kind)
ax.axvline(0.5, color="black", linewidth=1)
ax.invert_yaxis()
ax.set(xlabel="AUC of guessing the group of new people from their scores")
ax.legend(loc="upper left")
plt.show()
