"""Data beyond memory, beyond one machine and beyond a few thousand features.

Run ``python -m benchmarks.scale``; it stores its rows in docs/benchmarks_scale.csv. Its files, the
largest a Parquet file of ten million rows (4 GB), are written to ``--folder`` and kept for the next
run.
"""

from __future__ import annotations

import functools
import resource

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from sklearn.decomposition import IncrementalPCA, TruncatedSVD
from threadpoolctl import threadpool_limits

from benchmarks._harness import DOCS, extra_memory, peak_memory, race, row, run_cases
from benchmarks.core import fit_fair, made_data
from fairpca import FairPCA, GroupMoments
from fairpca._input import arrow
from fairpca.cli import run_command

TABLE = DOCS / "benchmarks_scale.csv"
PARQUET_COLUMNS = 50
CHUNK = 100_000


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
    """Prepare nothing."""


def make_csv(path, n, d):
    if not path.exists():
        columns = ", ".join(f"round(random() * {3 + j} - 5, 4) AS x{j}" for j in range(d))
        group = "CASE WHEN random() < 0.3 THEN 'f' ELSE 'm' END AS \"group\""
        duckdb.execute(f"COPY (SELECT {columns}, {group} FROM range({n})) TO '{path}'")


def fairpca_fit(_, path):
    out = path.with_suffix(".safetensors")
    words = ["fit", path, "-g", "group", "-r", "10", "--no-standardize", "--cv", "0", "-o", out]
    assert run_command([*map(str, words), "--quiet"]) == 0


def read_and_multiply(_, path, d):
    """The lower limit: the same engine with the same settings, and one product per batch."""
    connection = duckdb.connect(config={"memory_limit": "300MB", "threads": 2})
    connection.execute(
        "SET enable_progress_bar=false; SET enable_external_file_cache=false; "
        "SET disable_parquet_prefetching=true"
    )
    total, kinds = np.zeros((d, d)), ", ".join(f"'x{j}': 'DOUBLE'" for j in range(d))
    source = f"'{path}'"
    if path.suffix == ".csv":
        source = f"read_csv('{path}', header=true, columns={{{kinds}, 'group': 'VARCHAR'}})"
    for batch in connection.sql(f"SELECT * FROM {source}").to_arrow_reader(1 << 14):
        X = np.array([batch.column(j).to_numpy() for j in range(d)])
        total += X @ X.T
    return total


def files(options):
    n, lines = options.pick((10_000_000, 2_000_000), (1_000_000, 10_000))
    made = [
        (options.folder / f"{n}.parquet", n, PARQUET_COLUMNS, "1.1, 600 MB"),
        (options.folder / f"{n // 10}.parquet", n // 10, PARQUET_COLUMNS, "1.1"),
        (options.folder / f"{lines}.csv", lines, 30, ""),
    ]
    other = "reading and X.T @ X"
    for path, rows, d, target in made:
        make_csv(path, rows, d) if path.suffix == ".csv" else make_parquet(path, rows)
        runs = {
            "fairpca fit": functools.partial(fairpca_fit, path=path),
            other: functools.partial(read_and_multiply, path=path, d=d),
        }
        timing = race({name: functools.partial(run, None) for name, run in runs.items()}, rounds=3)
        memory = [peak_memory(nothing, run) for run in runs.values()]
        case = f"{'CSV' if path.suffix == '.csv' else 'Parquet'} {rows:,} x {d}"
        yield row(case, timing, "fairpca fit", other, target, *memory)


def opened(path, library):
    """A stream over a Parquet file."""
    if library == "DuckDB":
        return duckdb.sql(f"SELECT * FROM '{path}'")
    return polars.scan_parquet(path)


def fit_stream(_, path, library):
    return FairPCA(10).fit(opened(path, library), sensitive_features="group")


@threadpool_limits.wrap(limits=1)  # so that threads of BLAS do not wait for those of the reader
def multiply_stream(_, path, library):
    """The lower limit of time: the same batches, and one product for each."""
    total = np.zeros((PARQUET_COLUMNS, PARQUET_COLUMNS))
    for batch in arrow.record_batches(opened(path, library)):
        X = np.array([batch.column(j).to_numpy() for j in range(PARQUET_COLUMNS)])
        total += X @ X.T
    return total


def drop_stream(_, path, library):
    """The lower limit of memory: the same batches, looked at by nobody."""
    for _ in arrow.record_batches(opened(path, library)):
        pass


def arrow_streams(options):
    n = options.pick(10_000_000, 100_000)
    path = options.folder / f"{n}.parquet"
    make_parquet(path, n)
    for library in ("DuckDB", "polars"):
        how = {"path": path, "library": library}
        runs = {
            f"fit of {library}": functools.partial(fit_stream, **how),
            "reading and X.T @ X": functools.partial(multiply_stream, **how),
        }
        timing = race({name: functools.partial(run, None) for name, run in runs.items()}, rounds=3)
        compared = (runs[f"fit of {library}"], functools.partial(drop_stream, **how))
        memory = [peak_memory(nothing, run) for run in compared]
        case = f"{library} over Parquet {n:,} x {PARQUET_COLUMNS}"
        yield row(case, timing, *runs, "1.2, 60 MB more", *memory)


# Dask is imported where it is needed: its memory is not that of reading files.


def random_chunks(n, d, chunk):
    import dask.array as da

    generator = da.random.default_rng(0)
    X = generator.normal(size=(n, d), chunks=(chunk, d))
    groups = (generator.random(n, chunks=chunk) < 0.3).astype(int)
    return X * (1 + 0.3 * groups[:, None] * (np.arange(d) < d // 3)), groups


def dask_cluster(options):
    import dask
    from dask.distributed import Client, LocalCluster

    n, d = options.pick(2_000_000, 200_000), 50
    X, groups = random_chunks(n, d, CHUNK)
    local = FairPCA(10, alpha=0.5).fit(X, sensitive_features=groups)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
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
            rounds=2,
        )
        memory = worker_memory(client)
    case = f"dask {n:,} x {d}, two worker processes"
    yield row(case, timing, "two worker processes", "two threads", "1.3", memory)
    yield row(case, timing, "two worker processes", "svd_compressed", "", memory)


def worker_memory(client):
    """Largest peak MB of a worker, with its libraries, over all competitors."""
    return (
        max(client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss).values()) / 1024
    )


def svd_compressed(X, r):
    """PCA as dask documents it: centre, then a randomised SVD."""
    import dask
    import dask.array as da

    return dask.compute(*da.linalg.svd_compressed(X - X.mean(axis=0), r, n_power_iter=2, seed=0))


def fit_blocks(made, size):
    X, groups = made
    fair = FairPCA(10, alpha=0.5)
    for start in range(0, len(X), size):
        block = slice(start, start + size)
        fair.partial_fit(X[block], sensitive_features=groups[block])
    return fair.components_


def add_blocks(made, size):
    """Bulk streams: moments grow block by block, and the fit comes at the end."""
    X, groups = made
    moments = GroupMoments()
    for start in range(0, len(X), size):
        block = slice(start, start + size)
        moments.update(X[block], groups[block])
    return FairPCA(10, alpha=0.5).fit(moments)


def fit_once(made, size):
    X, groups = made
    return FairPCA(10, alpha=0.5).fit(X, sensitive_features=groups)


def fit_incremental(made, size):
    return IncrementalPCA(10, batch_size=size).fit(made[0])


#: The stream, what it is compared with, number of blocks, rows in each, columns.
STREAMS = [
    (add_blocks, fit_once, 1000, 4000, 50),
    (add_blocks, fit_once, 1000, 400, 50),
    (add_blocks, fit_once, 1000, 1000, 200),
    (fit_blocks, fit_incremental, 100, 4000, 50),
]
NAMES = {
    add_blocks: "GroupMoments.update",
    fit_blocks: "partial_fit",
    fit_once: "one fit",
    fit_incremental: "IncrementalPCA",
}


def streams(options):
    for ours, other, n_blocks, size, d in STREAMS:
        n_blocks, size = options.pick((n_blocks, size), (n_blocks // 50, 100))
        prepare = functools.partial(made_data, n_blocks * size, d)
        made = prepare()
        runs = {NAMES[run]: functools.partial(run, size=size) for run in (ours, other)}
        rounds = 5 if other is fit_once else 2
        timing = race({k: functools.partial(run, made) for k, run in runs.items()}, rounds=rounds)
        memory = [extra_memory(prepare, run) for run in runs.values()]
        case = f"{NAMES[ours]}, {n_blocks} blocks of {size:,} x {d}"
        yield row(case, timing, *runs, "", *memory)


def sparse_data(n, d):
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=0.001, rng=rng, format="csr")
    return X, (rng.random(n) < 0.3).astype(int)


def fit_sparse(made):
    X, groups = made
    return FairPCA(20).fit(X, sensitive_features=groups)


def fit_truncated(made):
    return TruncatedSVD(20, random_state=0).fit(made[0])


def sparse(options):
    n, d = options.pick((200_000, 50_000), (5000, 6000))
    prepare = functools.partial(sparse_data, n, d)
    made = prepare()
    runs = {"FairPCA": fit_sparse, "TruncatedSVD": fit_truncated}
    timing = race({name: functools.partial(run, made) for name, run in runs.items()}, rounds=2)
    memory = [peak_memory(prepare, run) for run in runs.values()]
    yield row(f"sparse {n:,} x {d:,}, 0.1%, r = 20", timing, *runs, "3, 1500 MB", *memory)


def few_rows(options):
    """Fewer rows than columns: more columns must not be faster."""
    n, few, many = options.pick((600, 4000, 6000), (60, 400, 600))
    tables = {f"{n} x {d}": made_data(n, d) for d in (few, many)}
    runs = {name: functools.partial(fit_fair, made, 10) for name, made in tables.items()}
    yield row(f"{n} x {few}, r = 10", race(runs, rounds=7), *runs, "1")


CASES = {
    "files": files,
    "arrow": arrow_streams,
    "dask": dask_cluster,
    "streams": streams,
    "sparse": sparse,
    "few_rows": few_rows,
}


def main(arguments=None) -> None:
    run_cases(__doc__, CASES, TABLE, arguments)


if __name__ == "__main__":
    main()
