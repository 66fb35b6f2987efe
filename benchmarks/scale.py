"""Data beyond memory, beyond one machine and beyond a few thousand features.

Run ``python -m benchmarks.scale``; it prints a table and writes it to docs/benchmarks_scale.csv.
``--rows 1000000`` makes the Parquet file smaller than the ten million rows (4 GB) of the issue,
``--only parquet`` and the like run some of the cases. Files are made below ``--folder``.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import warnings
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from dask.distributed import Client, LocalCluster
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD

from benchmarks._harness import extra_memory, peak_memory, race, write_table
from benchmarks.core import made_data
from fairpca import FairPCA, GroupMoments, ParityInfeasibleWarning

TABLE = Path(__file__).parent.parent / "docs" / "benchmarks_scale.csv"
PARQUET_COLUMNS = 50
CHUNK = 100_000


def row(case, timing, ours, other="", target="", memory=None):
    """One line of the table: our time, the other's, and their ratio."""
    return {
        "case": case,
        "seconds": f"{timing.seconds[ours]:.3f}",
        "compared with": other,
        "its seconds": f"{timing.seconds[other]:.3f}" if other else "",
        "ratio": f"{timing.ratio(ours, other):.2f}" if other else "",
        "MB": "" if memory is None else f"{memory:.0f}",
        "target": target,
    }


def make_parquet(path, n):
    if path.exists() and pq.ParquetFile(path).metadata.num_rows == n:
        return
    names = [f"x{j}" for j in range(PARQUET_COLUMNS)]
    rng = np.random.default_rng(0)
    writer = None
    for _ in range(0, n, CHUNK):
        X = rng.standard_normal((CHUNK, PARQUET_COLUMNS)) * np.linspace(3, 0.5, PARQUET_COLUMNS)
        groups = np.where(rng.random(CHUNK) < 0.3, "f", "m")
        X[groups == "f"] = 1.1 * X[groups == "f"][:, ::-1]
        table = pa.table({**dict(zip(names, X.T.copy(), strict=True)), "group": groups})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def nothing():
    """Prepare nothing but the imports."""


def fit_parquet(_, path):
    return FairPCA(10).fit_files(path, group="group")


def read_and_multiply(path):
    """The bare limit: the same reader, and one product per block."""
    names = [f"x{j}" for j in range(PARQUET_COLUMNS)]
    total = np.zeros((PARQUET_COLUMNS, PARQUET_COLUMNS))
    reader = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16)
    for batch in reader.iter_batches((1 << 20) // PARQUET_COLUMNS, columns=[*names, "group"]):
        X = np.empty((PARQUET_COLUMNS, batch.num_rows))
        for j, name in enumerate(names):
            X[j] = batch.column(name).to_numpy()
        total += X @ X.T
    return total


def parquet(folder, n):
    path, short = folder / f"{n}.parquet", folder / f"{n // 10}.parquet"
    make_parquet(path, n)
    make_parquet(short, n // 10)
    timing = race(
        {
            "fit_files": lambda: fit_parquet(None, path),
            "reading and X.T @ X": lambda: read_and_multiply(path),
        },
        rounds=3,
    )
    case = f"Parquet {n:,} x {PARQUET_COLUMNS}"
    memory = peak_memory(nothing, functools.partial(fit_parquet, path=path))
    yield row(case, timing, "fit_files", "reading and X.T @ X", "1.3, 500 MB", memory)
    timing = race({"fit_files": lambda: fit_parquet(None, short)}, rounds=3)
    case = f"Parquet {n // 10:,} x {PARQUET_COLUMNS}"
    memory = peak_memory(nothing, functools.partial(fit_parquet, path=short))
    yield row(case, timing, "fit_files", "", "the same MB", memory)


def random_chunks(n, d, chunk):
    generator = da.random.default_rng(0)
    X = generator.normal(size=(n, d), chunks=(chunk, d))
    groups = (generator.random(n, chunks=chunk) < 0.3).astype(int)
    return X * (1 + 0.3 * groups[:, None] * (np.arange(d) < d // 3)), groups


def dask_cluster(folder, n):
    n, d = min(n, 2_000_000), 50
    X, groups = random_chunks(n, d, CHUNK)
    local = FairPCA(10, alpha=0.5).fit(X, sensitive_features=groups)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        there = FairPCA(10, alpha=0.5).fit(X, sensitive_features=groups)
        np.testing.assert_allclose(there.components_, local.components_, atol=1e-10)

        def on_threads(fit):
            with dask.config.set(scheduler="threads", num_workers=2):
                return fit()

        def fit():
            return GroupMoments.from_data(X, groups)

        timing = race(
            {
                "two worker processes": fit,
                "two threads": lambda: on_threads(fit),
                "svd_compressed": lambda: svd_compressed(X, 10),
            },
            rounds=3,
        )
    case = f"dask {n:,} x {d}, two worker processes"
    yield row(case, timing, "two worker processes", "two threads", "1.3")
    yield row(case, timing, "two worker processes", "svd_compressed")


def svd_compressed(X, r):
    """PCA as dask documents it: centre, then a randomised SVD."""
    return dask.compute(*da.linalg.svd_compressed(X - X.mean(axis=0), r, n_power_iter=2, seed=0))


def partial_fit(folder, n):
    size, d = 4000, 50
    X, groups = made_data(1000 * size, d)

    def in_blocks():
        fair = FairPCA(10, alpha=0.5)
        for start in range(0, len(X), size):
            block = slice(start, start + size)
            fair.partial_fit(X[block], sensitive_features=groups[block])
        return fair.components_

    def incremental():
        return IncrementalPCA(10, batch_size=size).fit(X[: len(X) // 10])

    timing = race(
        {
            "1000 blocks": in_blocks,
            "one fit": lambda: FairPCA(10, alpha=0.5).fit(X, sensitive_features=groups),
        },
        rounds=5,
    )
    yield row(f"partial_fit, 1000 blocks of {size} x {d}", timing, "1000 blocks", "one fit", "1.2")
    timing = race({"IncrementalPCA on a tenth": incremental, "1000 blocks": in_blocks}, rounds=1)
    case = f"partial_fit, 1000 blocks of {size} x {d}"
    yield row(case, timing, "1000 blocks", "IncrementalPCA on a tenth")


def sparse_data(n=200_000, d=50_000):
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=0.001, rng=rng, format="csr")
    return X, (rng.random(n) < 0.3).astype(int)


def fit_sparse(made):
    X, groups = made
    return FairPCA(20).fit(X, sensitive_features=groups)


def sparse(folder, n):
    made = sparse_data()
    timing = race(
        {
            "FairPCA": lambda: fit_sparse(made),
            "TruncatedSVD": lambda: TruncatedSVD(20, random_state=0).fit(made[0]),
        },
        rounds=2,
    )
    memory = peak_memory(sparse_data, fit_sparse)
    case = "sparse 200,000 x 50,000, 0.1%, r = 20"
    yield row(case, timing, "FairPCA", "TruncatedSVD", "3, 1500 MB", memory)


def growth(folder, n):
    """How time and memory grow with rows, columns, rank and groups."""
    sizes = [(m, 20, 5) for m in (10_000, 100_000, 1_000_000, 10_000_000) if m <= n]
    sizes += [(20_000, d, 5) for d in (10, 100, 500, 2000)]
    sizes += [(20_000, 500, r) for r in (1, 10, 50, 200)]
    for m, d, r in sizes:
        X, groups = made_data(m, d)
        timing = race(
            {
                "FairPCA": functools.partial(fit_quietly, (X, groups), r),
                "PCA": lambda X=X, r=r: PCA(r, svd_solver="covariance_eigh").fit(X),
            },
            rounds=3,
        )
        memory = extra_memory(
            functools.partial(made_data, m, d), functools.partial(fit_quietly, r=r)
        )
        yield row(f"growth: {m:,} x {d}, r = {r}", timing, "FairPCA", "PCA", "", memory)
    X, _ = made_data(100_000, 100)
    for k in (2, 10, 50):
        labels = np.random.default_rng(k).integers(0, k, len(X))
        timing = race(
            {
                "moments": functools.partial(GroupMoments.from_data, X, labels),
                "X.T @ X": lambda: X.T @ X,
            },
            rounds=5,
        )
        yield row(f"growth: moments of 100,000 x 100, {k} groups", timing, "moments", "X.T @ X")


def fit_quietly(made, r):
    X, groups = made
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParityInfeasibleWarning)
        return FairPCA(r).fit(X, sensitive_features=groups)


CASES = {
    "parquet": parquet,
    "dask": dask_cluster,
    "partial_fit": partial_fit,
    "sparse": sparse,
    "growth": growth,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    rows = []
    for name in options.only:
        for line in CASES[name](options.folder, options.rows):
            print(line, flush=True)
            rows.append(line)
    if options.only == list(CASES):
        write_table(rows, TABLE)


if __name__ == "__main__":
    main()
