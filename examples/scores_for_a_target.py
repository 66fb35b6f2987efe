"""
Scores for a target
===================

``FairPLS`` looks for components that serve a target, without those that reveal the group. It
goes before any classifier, in a pipeline. This example compares what a classifier makes of them
with what it makes of PCA's scores and of all features, on held-out rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPLS
from fairpca.datasets import load_rand_health
from fairpca.metrics import classifier_outcomes

people = load_rand_health(prepare=False)
race, often = people.sensitive_features, people.data[:, 0] > 1  # visits to a doctor
X = StandardScaler().fit_transform(people.data[:, 1:])

# %%
# In a pipeline the target arrives by itself. Only the groups have to be named, and only for the
# fit.

pipeline = make_pipeline(FairPLS(3), LogisticRegression())
pipeline.fit(X, often, fairpls__sensitive_features=race)
pls = pipeline["fairpls"]
print(f"mean gap {pls.pls_mean_gap_:.3f} -> {pls.mean_gap_:.1e}")
print(f"share of the target explained {pls.pls_target_r2_:.3f} -> {pls.target_r2_:.3f}")

# %%
# An estimator that is not fitted yet is cross-validated, so all rates below are about held-out
# rows.

notions = [None, "demographic_parity", "equalized_odds"]
results = {
    notion: classifier_outcomes(FairPLS(3, notion=notion), X, race, often, random_state=0)
    for notion in notions
}
named = {
    "plain PLS" if notion is None else f"FairPLS, {notion}": results[notion][0]
    for notion in notions
}
named |= {"PCA": results[None][1], "all features": results[None][2]}
shown = ["selection_rate", "true_positive_rate", "false_positive_rate"]
print(f"{'AUC, and gaps of the rates':28}{'AUC':>6}" + "".join(f"{metric:>21}" for metric in shown))
for name, outcome in named.items():
    gaps = "".join(f"{outcome.difference[metric].value:21.3f}" for metric in shown)
    print(f"{name:28}{outcome.overall['auc']:6.3f}{gaps}")

# %%
# The gaps with their intervals. Hiding the means narrows the gap of the selection rates; hiding
# them among people of the same outcome narrows the gaps of the error rates. ``data`` of an outcome
# holds the predictions, for example for ``fairlearn.metrics.MetricFrame``.

_, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained", sharey=True)
places = np.arange(len(named))
for axis, metric in zip(axes, shown, strict=True):
    gaps = [outcome.difference[metric] for outcome in named.values()]
    values = np.array([gap.value for gap in gaps])
    ends = np.abs([[gap.low for gap in gaps] - values, [gap.high for gap in gaps] - values])
    axis.errorbar(values, places, xerr=ends, fmt="o")
    axis.set(xlabel=f"gap of the {metric.replace('_', ' ')}", yticks=places, yticklabels=named)
axes[0].invert_yaxis()
plt.show()
