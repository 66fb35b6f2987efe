"""
Which fairness do you mean?
===========================

Six projections of the same people, each fair in its own sense, and measured in every sense: who is
described how well, what the scores tell about the group, and what a classifier makes of them. All
figures are about test sets.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import BlindPCA, FairPCA, FairPLS, MinMaxPCA
from fairpca.datasets import load_rand_health
from fairpca.metrics import group_reconstruction_errors, probe_groups

people = load_rand_health(prepare=False)
black = people.sensitive_features == "black"

# %%
# The target is whether somebody saw a doctor more than three times in the year. A clinic that plans
# follow-ups might predict it from the other columns.

often = people.data[:, 0] > 3
X = people.data[:, 1:]

r = 4
methods = {
    "PCA": PCA(r),
    "FairPCA": FairPCA(r),
    "MinMaxPCA": MinMaxPCA(r),
    "BlindPCA": BlindPCA(r),
    "FairPLS, parity": FairPLS(r, notion="demographic_parity"),
    "FairPLS, odds": FairPLS(r, notion="equalized_odds"),
}
columns = [
    "error, black",
    "error, others",
    "group, linear",
    "group, boosted",
    "target",
    "selection gap",
    "TPR gap",
]


# %%
# Every method is fitted to a random half of the people, and so is the classifier on its scores.
# Everything is measured on the other half, the test set. Probes are cross-validated there: on the
# training half, means that were made equal would give them nothing to learn.


def measure(method, half, rest):
    """Fit to one half, and measure the other in every sense."""
    scaler = StandardScaler().fit(X[half])
    Z, new = scaler.transform(X[half]), scaler.transform(X[rest])
    groups = {} if isinstance(method, PCA) else {"sensitive_features": black[half]}
    fitted = clone(method).fit(Z, often[half], **groups)
    seen, unseen = fitted.transform(Z), fitted.transform(new)
    errors = group_reconstruction_errors(fitted, new, black[rest])
    told = [probe.auc for probe in probe_groups(fitted, new, black[rest], cv=3, random_state=0)]
    logistic = make_pipeline(StandardScaler(), LogisticRegression())
    # A third of the people can be followed up: those of the highest predicted chance.
    chance = logistic.fit(seen, often[half]).predict_proba(unseen)[:, 1]
    chosen, truth = chance >= np.quantile(chance, 2 / 3), often[rest]
    selected = [chosen[black[rest] == g].mean() for g in (True, False)]
    found = [chosen[truth & (black[rest] == g)].mean() for g in (True, False)]
    return [
        errors[True],
        errors[False],
        *told,
        roc_auc_score(truth, chance),
        selected[0] - selected[1],
        found[0] - found[1],
    ]


splits = list(StratifiedShuffleSplit(5, test_size=0.5, random_state=0).split(X, black))
figures = [[measure(method, *split) for split in splits] for method in methods.values()]
table = np.mean(figures, axis=1)
widths = [max(len(name), 6) + 2 for name in methods]
print(f"{'':15}" + "".join(f"{name:>{w}}" for name, w in zip(methods, widths, strict=True)))
for column, row in zip(columns, table.T, strict=True):
    print(f"{column:15}" + "".join(f"{x:{w}.3f}" for x, w in zip(row, widths, strict=True)))

# %%
# No method is best in all rows. Equal errors do not hide the group, and hidden means cost error,
# most of all the group that was described worst. What looks the same to a linear probe can still be
# told apart by boosted trees. The gaps are signed: below zero, black people are followed up less
# often (selection gap), or those of them who need it are found less often (TPR gap).

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained", sharey=True)
places = np.arange(len(methods))
for axis, (title, shown) in zip(
    axes,
    {
        "reconstruction error": [0, 1],
        "AUC of a probe for the group": [2, 3],
        "gaps of the classifier": [5, 6],
    }.items(),
    strict=True,
):
    for shift, column in zip((-0.2, 0.2), shown, strict=True):
        axis.barh(places + shift, table[:, column], height=0.4, label=columns[column])
    axis.set(xlabel=title, yticks=places, yticklabels=methods)
    axis.locator_params(axis="x", nbins=5)
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
axes[0].invert_yaxis()
axes[1].set_xlim(0.45, None)
plt.show()
