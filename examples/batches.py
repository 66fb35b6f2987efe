"""
Batches of cells, each counted once
===================================

Laboratories measure cells in batches of very different size, and plain PCA follows the largest
batch. Group-balanced PCA, in genomics known as multi-batch PCA, counts every batch once, whatever
its size: ``WelfarePCA`` without inequality aversion. The cells here are made up. They come in an
``AnnData`` object if the package anndata is installed.
"""

from functools import partial
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

from fairpca import GroupMoments, WelfarePCA

try:
    from anndata import AnnData
except ImportError:  # the fields that count here
    AnnData = partial(SimpleNamespace, obsm={})

# %%
# Counts of 60 genes. In all laboratories five programs switch genes on and off together. The last
# batch is small, and its cells have a program of their own.

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
# Each batch is centred on its own mean, so that a shift between laboratories is not taken for
# biology. Plain PCA weights the batches by their size. The others count each of them once.

moments = GroupMoments.from_data(cells.X, np.asarray(cells.obs["batch"]))
C = moments.second_moments("group")
plain = np.linalg.eigh(np.tensordot(moments.counts, C, axes=1))[1][:, -5:]
kept = {"plain PCA": np.einsum("gij,ia,ja->g", C, plain, plain) / np.trace(C, axis1=1, axis2=2)}
for name, aversion in (("every batch once", 0), ("Nash welfare", 1), ("worst-off batch", np.inf)):
    fair = WelfarePCA(5, inequality_aversion=aversion, center="group", normalize=True)
    kept[name] = fair.fit_moments(moments).group_explained_variance_
    if aversion == 0:
        cells.obsm["X_multibatch_pca"] = fair.transform(cells.X)

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
