"""
Big files
=========

A fit needs only the count, the mean and the second moments of each group. They are accumulated
batch by batch, so a file may be larger than memory.
"""

# %%
# The file is small here, so that this page builds quickly. The code is the same for a large one.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fairpca import FairPCA, GroupMoments, load_model
from fairpca.plotting import TradeoffDisplay

rng = np.random.default_rng(0)
n, d = 60_000, 20
site = np.where(rng.random(n) < 0.2, "small", "large")
X = rng.normal(size=(n, d)) * np.where(site[:, None] == "small", np.arange(d), np.arange(d)[::-1])
folder = Path(tempfile.mkdtemp())
table = pa.table({f"x{j}": X[:, j] for j in range(d)} | {"site": site})
pq.write_table(table, folder / "data.parquet", row_group_size=10_000)

# %%
# One pass is enough. Batches may be read on different machines; ``merge`` combines their moments in
# any order.

moments = GroupMoments()
for batch in pq.ParquetFile(folder / "data.parquet").iter_batches(batch_size=8192):
    rows = pa.Table.from_batches([batch])
    moments.update(rows.drop_columns("site"), rows["site"])
print(moments)

# %%
# Fit as often as you like, without reading the file again.

for r in (2, 5, 10):
    fair = FairPCA(r).fit(moments)
    print(r, fair.pca_group_errors_.round(1), fair.group_errors_.round(1), fair.status_)

# %%
# The moments also hold the whole frontier between PCA and equal errors.

TradeoffDisplay.from_estimator(fair)
plt.show()

# %%
# Save the model. The command ``fairpca transform model.safetensors data.parquet --out
# scores.parquet`` applies it to a file of any length.

fair.save(folder / "model.safetensors")
load_model(folder / "model.safetensors")
