"""What fits cost in one unit: the time of a fit of scikit-learn's ``PCA`` to the same rows.

Run ``python -m benchmarks.in_pca_fits``; it stores its rows in docs/benchmarks_in_pca_fits.csv.
Each group varies along directions of its own. Processor time counts, on one thread: what other work
on the machine takes does not change it.
"""

from __future__ import annotations

from functools import partial

from sklearn.decomposition import PCA

from benchmarks._harness import DOCS, run_cases
from benchmarks.folds import made_groups, processor_time
from fairpca import FairPCA, FairPCACV

TABLE = DOCS / "benchmarks_in_pca_fits.csv"
SIZES = [
    (1_000, 20, 5, 2, 60),
    (5_000, 50, 10, 2, 40),
    (100_000, 50, 10, 2, 12),
    (20_000, 200, 10, 2, 12),
    (100_000, 300, 10, 2, 5),
    (5_000, 50, 10, 3, 20),
    (100_000, 50, 10, 3, 8),
    (100_000, 50, 10, 10, 5),
]


def cost(options, n, d, rank, n_groups, rounds):
    """The race at one size."""
    n = options.pick(n, 500)
    X, groups = made_groups(n, d, n_groups)
    fits = {
        "PCA": partial(PCA(rank).fit, X),
        "FairPCA": partial(FairPCA(rank).fit, X, sensitive_features=groups),
        "FairPCACV": partial(FairPCACV(rank).fit, X, sensitive_features=groups),
    }
    timing = processor_time(fits, options.pick(rounds, 1))
    yield {
        "rows": f"{n:,}",
        "columns": str(d),
        "components": str(rank),
        "groups": str(n_groups),
        "PCA, s": f"{timing.seconds['PCA']:.2g}",
        "FairPCA, in fits of PCA": f"{timing.ratio('FairPCA', 'PCA'):.1f}",
        "FairPCACV, in fits of PCA": f"{timing.ratio('FairPCACV', 'PCA'):.0f}",
    }


CASES = {
    f"{n} x {d}, {k} groups": partial(cost, n=n, d=d, rank=rank, n_groups=k, rounds=rounds)
    for n, d, rank, k, rounds in SIZES
}


def main(arguments=None):
    run_cases(__doc__, CASES, TABLE, arguments)


if __name__ == "__main__":
    main()
