"""
Batches of cells, each counted once
===================================

Laboratories measure cells in batches of very different size, and plain PCA follows the largest
batch. Multi-batch PCA, as it is known in genomics, counts every batch once, whatever its size, and
centres on the mean of the batch means: ``WelfarePCA`` with ``inequality_aversion=0`` and
``center="balanced"``. The cells here are made up. They come in an ``AnnData`` object if the package
anndata is installed.
"""

from functools import partial
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

from fairpca import FairPCA, GroupMoments, WelfarePCA

try:
    from anndata import AnnData
except ImportError:  # the fields that count here
    AnnData = partial(SimpleNamespace, obsm={})

# %%
# Counts of 60 genes. In all laboratories five programs switch genes on and off together. The last
# batch is small, and its cells behave in another way.

rng = np.random.default_rng(0)
sizes = {"lab A": 3000, "lab B": 800, "lab C": 500, "lab D": 120}
shared, own = rng.normal(size=(5, 60)) * 0.3, rng.normal(size=(1, 60)) * 0.6
blocks = []
for lab, n_cells in sizes.items():
    activity = rng.normal(size=(n_cells, 5)) @ shared
    if lab == "lab D":
        activity = 0.6 * activity + rng.normal(size=(n_cells, 1)) @ own
    blocks.append(rng.poisson(np.exp(1.0 + activity)))
batch = np.repeat(list(sizes), list(sizes.values()))
cells = AnnData(X=np.log1p(np.vstack(blocks).astype(float)), obs={"batch": batch})

# %%
# Plain PCA weights the batches by their size. The others count each of them once: multi-batch PCA
# maximises the mean of the variances kept, Nash welfare their geometric mean, and the last one the
# smallest share kept.

moments = GroupMoments.from_data(cells.X, np.asarray(cells.obs["batch"]))
methods = {
    "plain PCA": FairPCA(5, alpha=1),
    "multi-batch PCA": WelfarePCA(5, inequality_aversion=0, center="balanced"),
    "Nash welfare": WelfarePCA(5, inequality_aversion=1, center="balanced"),
    "worst-off batch": WelfarePCA(
        5, inequality_aversion=np.inf, center="balanced", relative_errors=True
    ),
}
kept = {
    name: method.fit(moments).group_explained_variance_ratio_ for name, method in methods.items()
}
cells.obsm["X_multibatch_pca"] = methods["multi-batch PCA"].transform(cells.X)

print(f"{'share of variance kept':24}{''.join(f'{lab:>8}' for lab in moments.groups)}")
for name, shares in kept.items():
    print(f"{name:24}{''.join(f'{share:8.3f}' for share in shares)}")

_, ax = plt.subplots(layout="constrained")
place = np.arange(len(moments.groups))
for i, (name, shares) in enumerate(kept.items()):
    ax.bar(place + 0.2 * (i - 1.5), shares, width=0.18, label=name)
ax.set_xticks(place, [f"{lab}\n{n} cells" for lab, n in sizes.items()])
ax.set_ylabel("share of the batch's variance kept")
ax.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
plt.show()

# %%
# The scores are where scanpy looks for them:
# ``sc.pp.neighbors(cells, use_rep="X_multibatch_pca")``.

print(cells.obsm["X_multibatch_pca"].shape)
