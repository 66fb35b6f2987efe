"""
Choosing a trade-off
====================

There is a whole frontier between PCA and equal errors. Look at it, then decide how far to go.
"""

import matplotlib.pyplot as plt

from fairpca import FairPCA, tradeoff_path
from fairpca.datasets import load_rand_health
from fairpca.plotting import LoadingsDisplay, TradeoffDisplay

people = load_rand_health()
X, race = people.data, people.sensitive_features

# %%
# No point of the path can be beaten: no projection with as many components has both a smaller
# overall error and a smaller disparity. Most of the disparity is cheap to remove. The last part is
# expensive.

path = tradeoff_path(X, race, n_components=8, n_points=5)
for disparity, error in zip(path.disparity, path.reconstruction_error, strict=True):
    print(f"disparity {abs(disparity):5.3f}   overall error {error:.3f}")

# %%
# A budget picks a point: set the largest disparity, or the highest price.

half = FairPCA(8, max_disparity=path.disparity[0] / 2).fit(X, sensitive_features=race)
cheap = FairPCA(8, max_error_increase=0.002).fit(X, sensitive_features=race)
for model in (half, cheap):
    cost = model.reconstruction_error_ / model.pca_reconstruction_error_ - 1
    print(f"{model.status_}: disparity {model.disparity_:.3f} at {cost:.2%}")

# %%
# With two components the way is longer. Up to "efficient", where ``FairPCA(2)`` ends, black
# participants gain and the others pay. From there to "u-FPCA", where ``constraint=None`` ends,
# *both* groups get worse, only so that they differ less.

short = tradeoff_path(X, race, n_components=2, n_points=30)
print(f"{'':10}" + "".join(f"{group:>8}" for group in short.groups))
for name, end in short.marks.items():
    print(f"{name:10}" + "".join(f"{error:8.2f}" for error in end.group_errors))

# %%
# The plots show the frontier for eight components, with the cheap choice on it, and the one for two
# components, with the part that is levelling down.

_, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
TradeoffDisplay.from_estimator(cheap).plot(ax=axes[0])
TradeoffDisplay(short).plot(ax=axes[1])
axes[0].set_title("8 components")
axes[1].set_title("2 components")
plt.show()

# %%
# The frontier above is that of the rows fitted to. With ``cv``, every point is also judged by
# people who were held out. The lines are the changes of the groups' errors against PCA, the bands
# their 95 % intervals. ``FairPCA(8, cv=10)`` makes its choice by such errors.

judged = tradeoff_path(X, race, n_components=8, n_points=12, cv=10, random_state=0)
new = judged.held_out
_, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for g, group in enumerate(judged.groups):
    before = new.group_errors[0, g] / 100
    low, high = new.changes_interval[:, g].T / before
    ax.fill_between(judged.disparity, low, high, alpha=0.3)
    ax.plot(judged.disparity, new.changes[:, g] / before, label=group)
ax.axhline(0, color="black", linewidth=1)
ax.invert_xaxis()
ax.set(xlabel="disparity on the rows fitted to, from PCA to parity")
ax.set(ylabel="change on people held out, in %")
ax.legend()
plt.show()

# %%
# What the choice does to the last component.

LoadingsDisplay.from_estimator(cheap, feature_names=people.feature_names).plot(component=7)
plt.show()
