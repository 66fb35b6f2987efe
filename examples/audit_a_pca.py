"""
Auditing a PCA
==============

Somebody has fitted a PCA. Does it treat the groups alike? Will it do so on new rows?
"""

# %%
# Two groups of unequal size vary in different directions. The larger one determines the first
# component.

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA

from fairpca import FairPCA, audit
from fairpca.datasets import make_two_groups
from fairpca.metrics import group_reconstruction_errors
from fairpca.plotting import GroupErrorDisplay, TradeoffDisplay

made = make_two_groups((500, 150), n_features=4, random_state=0)
X, groups = made.data, made.sensitive_features
pca = PCA(n_components=1).fit(X)
group_reconstruction_errors(pca, X, groups)

# %%
# The metrics take any fitted projection and any rows. :func:`fairpca.audit` does the whole job: it
# compares PCA with fair PCA, on the rows fitted to and on held-out rows.

result = audit(X, groups, FairPCA(n_components=1), standardize=False)
print(f"harmed: {result.harmed_group}; {result.status}, at a cost of {result.cost:.1%}")
for name in ("pca", "fair"):
    fitted = abs(getattr(result, name).disparity)
    held_out = getattr(result.cross_validation, name).disparity
    low, high = getattr(result.bootstrap, name)
    print(f"{name:5} disparity {fitted:6.3f}, held out {held_out:6.3f} ({low:.3f} to {high:.3f})")

# %%
# The interval for PCA lies well above zero, so PCA will treat new rows unequally too. The interval
# for fair PCA includes zero.

_, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
GroupErrorDisplay.from_data(X, groups).plot(ax=axes[0])
TradeoffDisplay.from_data(X, groups, n_components=1).plot(ax=axes[1])
plt.show()

# %%
# ``result.to_html("report.html")`` writes the page that ``fairpca report`` makes, and
# ``result.to_dict()`` gives everything as plain numbers.

sorted(result.to_dict())
