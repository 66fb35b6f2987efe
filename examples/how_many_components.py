"""
How many components?
====================

PCA's usual rules look at all rows together. A number that is enough on average may be too small for
one group.
"""

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA

from fairpca import FairPCA, audit
from fairpca.datasets import load_rand_health
from fairpca.plotting import GroupErrorDisplay

people = load_rand_health()
X, race = people.data, people.sensitive_features

# %%
# PCA takes the fewest components that keep 70 % of *all* variance. ``FairPCA`` takes the fewest
# with which *every* group keeps 70 % of its own.

pca = PCA(n_components=0.7).fit(X)
fair = FairPCA(n_components=0.7).fit(X, sensitive_features=race)
print(f"PCA {pca.n_components_} components, fair PCA {fair.n_components_}")
for group, share in zip(fair.groups_, fair.group_explained_variance_ratio_, strict=True):
    print(f"{group:8} keeps {share:.1%}")

# %%
# The errors of each group at every number. Where the lines of a group leave each other, fairness
# changes much for it.

GroupErrorDisplay.from_data(X, race).plot()
plt.show()

# %%
# On people not fitted to: what fairness would change for each group, in percent of its error under
# PCA. With six or eight components, black participants gain at least twice as much as the others
# pay. With four or ten the price is higher.

print("components" + "".join(f"{group:>10}" for group in fair.groups_))
for r in (4, 6, 8, 10):
    held_out = audit(X, race, FairPCA(r), n_folds=5, n_resamples=100, n_points=2).cross_validation
    changes = 100 * (held_out.fair.group_errors / held_out.pca.group_errors - 1)
    print(f"{r:10}" + "".join(f"{change:+9.1f} %" for change in changes))
