"""
First steps
===========

How plain PCA and fair PCA describe black participants of the RAND Health Insurance Experiment, and
all others, in 8 numbers instead of 14.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from fairpca import FairPCA
from fairpca.datasets import load_rand_health
from fairpca.metrics import group_reconstruction_errors

people = load_rand_health()
X, X_new, race, race_new = train_test_split(
    people.data, people.sensitive_features, test_size=0.5, random_state=0
)

# %%
# On the people fitted to, the errors become equal. The certificate says that no other projection
# does that at a smaller overall error.

fair = FairPCA(n_components=8).fit(X, sensitive_features=race)
pca = FairPCA(n_components=8, alpha=1).fit(X, sensitive_features=race)
print(
    f"{fair.status_}: errors {fair.group_errors_.round(3)}, under PCA {pca.group_errors_.round(3)}"
)
print(f"overall error {pca.reconstruction_error_:.3f} -> {fair.reconstruction_error_:.3f}")
print(f"no projection this fair is better by more than {fair.duality_gap_:.0e}")

# %%
# What counts are people whom the projection has not seen: who gains, and who pays?

before, after = (group_reconstruction_errors(model, X_new, race_new) for model in (pca, fair))
for group in fair.groups_:
    change = after[group] / before[group] - 1
    print(f"{group:8}{before[group]:6.2f} -> {after[group]:.2f} ({change:+.0%})")

_, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
for shift, (name, errors) in enumerate({"PCA": before, "fair PCA": after}.items()):
    places = [g + 0.38 * shift for g in range(len(errors))]
    ax.bar(places, list(errors.values()), width=0.36, label=name)
ax.set_xticks([0.19, 1.19], list(before))
ax.set(ylabel="error on people not fitted to")
ax.legend()
plt.show()
