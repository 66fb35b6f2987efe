"""
A file of ten million rows
==========================

A fit needs only the count, the mean and the second moments of each group. They are summed up batch
by batch, so a file may be larger than memory.
"""

# %%
# The rows are made: people of the check-up data, drawn again and again, with some noise. They are
# written in pieces, as a file that is larger than memory would be.

import tempfile
import time
from pathlib import Path

import duckdb
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fairpca import FairPCA, GroupMoments, load_model
from fairpca.datasets import load_checkup
from fairpca.plotting import TradeoffDisplay

people = load_checkup()
standard = ((people.data - people.data.mean(axis=0)) / people.data.std(axis=0)).astype("float32")
rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
path = folder / "people.parquet"
schema = pa.schema([(name, pa.float32()) for name in people.feature_names] + [("age", pa.string())])
with pq.ParquetWriter(path, schema) as writer:
    for _ in range(100):
        drawn = rng.integers(len(standard), size=100_000)
        noise = 0.1 * rng.standard_normal((100_000, standard.shape[1]), dtype="float32")
        columns = [*(standard[drawn] + noise).T, people.sensitive_features[drawn]]
        writer.write_table(pa.table(columns, schema=schema))
print(f"{path.stat().st_size / 1e6:.0f} MB")

# %%
# Whatever hands out record batches is a table to fairpca: here a relation of DuckDB, which reads
# the file while its rows are summed up. Columns are named, and one of them says the group.

start = time.perf_counter()
moments = GroupMoments.from_data(duckdb.sql(f"FROM '{path}'"), sensitive_features="age")
print(moments)
print(f"{'less' if time.perf_counter() - start < 60 else 'more'} than a minute")

# %%
# The moments are a few thousand numbers. Fit as often as you like, without reading the file again.

for r in (3, 5, 7):
    fair = FairPCA(r).fit(moments)
    print(r, fair.groups_, fair.pca_group_errors_.round(2), fair.group_errors_.round(2))

# %%
# Parts may be read on different machines: ``merge`` combines their moments in any order.

first, last = (
    GroupMoments.from_data(duckdb.sql(query), sensitive_features="age")
    for query in (f"FROM '{path}' LIMIT 1000000", f"FROM '{path}' LIMIT 1000000 OFFSET 9000000")
)
print(first.merge(last).counts)

# %%
# The moments also hold the whole frontier between PCA and equal errors.

TradeoffDisplay.from_estimator(fair)
plt.show()

# %%
# Save the model. The command ``fairpca transform model.safetensors people.parquet --out
# scores.parquet`` applies it to a file of any length.

fair.save(folder / "model.safetensors")
load_model(folder / "model.safetensors")
