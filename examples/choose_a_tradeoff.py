"""
Choosing a trade-off
====================

There is a whole frontier between PCA and equal errors. Look at it, then decide how far to go.
"""

import matplotlib.pyplot as plt

from fairpca import FairPCA, tradeoff_path
from fairpca.datasets import load_checkup
from fairpca.plotting import TradeoffDisplay

people = load_checkup()
X, age = people.data, people.sensitive_features

# %%
# No point of the path can be beaten: no projection with as many components has both a smaller
# overall error and a smaller disparity. The first part is cheap, the last part expensive.

path = tradeoff_path(X, age, n_components=5, n_points=6, standardize=True)
for disparity, error in zip(path.disparity, path.reconstruction_error, strict=True):
    print(f"disparity {abs(disparity):5.3f}   overall error {error:.3f}")

# %%
# A budget picks a point: set the largest disparity, or the highest price, overall or for each
# group. "The younger may lose at most 3 %" is a limit for each group.

half = FairPCA(5, standardize=True, max_disparity=path.disparity[0] / 2)
cheap = FairPCA(5, standardize=True, max_error_increase=0.01)
mild = FairPCA(5, standardize=True, max_group_increase=0.03)
for model in (half, cheap, mild):
    model.fit(X, sensitive_features=age)
    cost = model.reconstruction_error_ / model.pca_reconstruction_error_ - 1
    changes = (model.group_errors_ / model.pca_group_errors_ - 1).tolist()
    by_group = ", ".join(f"{g} {c:+.1%}" for g, c in zip(people.groups, changes, strict=True))
    print(f"{model.status_}: disparity {model.disparity_:.3f} at {cost:.2%} ({by_group})")

# %%
# ``tradeoff_path`` draws the line at such a limit too. Each group's change along the frontier, and
# where the frontier ends if nobody may lose more than 3 %:

_, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
limited = tradeoff_path(
    X, age, n_components=5, n_points=20, max_group_increase=0.03, standardize=True
)
for found, style in ((path, ":"), (limited, "-")):
    for g, group in enumerate(found.groups):
        change = 100 * (found.group_errors[:, g] / found.group_errors[0, g] - 1)
        label = group if found is limited else None
        ax.plot(found.disparity, change, style, color=f"C{g}", label=label)
ax.axhline(3, color="0.7", linewidth=1)
ax.text(0.62, 3.4, "limit: 3 %", color="0.4")
ax.invert_xaxis()
ax.set(xlabel="disparity, from PCA to parity", ylabel="change of the error, in %")
ax.legend(frameon=False, loc="lower left")
plt.show()

# %%
# The frontier, with the cheap choice on it. Here ``FairPCA``, c-FPCA and u-FPCA all end at parity.
# It need not be so: between women and men, with one component, the frontier has a second part.
# Beyond the point where ``FairPCA(1)`` ends ("efficient"), *both* groups get worse, only so that
# they differ less. That part is levelling down.

_, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
TradeoffDisplay.from_estimator(cheap, ax=axes[0])
axes[0].set_title("by age, 5 components")
short = tradeoff_path(X, people.sex, n_components=1, n_points=30, standardize=True)
TradeoffDisplay(short).plot(ax=axes[1])
axes[1].set_title("by sex, 1 component")
plt.show()

# %%
# The frontier above is about the training rows. With ``cv``, every point is also judged by
# cross-validation. The lines are the changes of the groups' held-out errors against PCA, the bands
# their 95 % intervals. ``FairPCACV`` makes its choice by such errors.

judged = tradeoff_path(X, age, n_components=5, n_points=12, cv=10, standardize=True)
new = judged.held_out
_, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for g, group in enumerate(judged.groups):
    before = new.group_errors[0, g] / 100
    low, high = new.changes_interval[:, g].T / before
    ax.fill_between(judged.disparity, low, high, alpha=0.3)
    ax.plot(judged.disparity, new.changes[:, g] / before, label=group)
ax.axhline(0, color="black", linewidth=1)
ax.invert_xaxis()
ax.set(xlabel="disparity on the training rows, from PCA to parity")
ax.set(ylabel="change of the held-out error, in %")
ax.legend()
plt.show()
