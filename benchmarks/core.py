"""FairPCA against scikit-learn's PCA, in memory.

Run ``python -m benchmarks.core``; it stores its rows in docs/benchmarks_core.csv. LFW is included
if ``FAIRPCA_DATA`` names the folder with the paper's data.

Ratios are measured twice: with a pause after each competitor, so that BLAS threads that still wait
for work do not slow down the next one, and without. The moments are compared with one product
``X.T @ X``, and the search with one ``numpy.linalg.eigh`` of that size, both on one thread.
"""

from __future__ import annotations

import functools
import os
import warnings

import numpy as np
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from benchmarks._harness import DOCS, extra_memory, race, run_cases
from fairpca import DualityGapWarning, FairPCA, GroupMoments, ParityInfeasibleWarning
from fairpca._solvers import solve
from fairpca.datasets import load_lfw

TABLE = DOCS / "benchmarks_core.csv"
SIZES = [
    (1_000_000, 50, 10),
    (300_000, 173, 10),
    (60_000, 300, 20),
    (100_000, 500, 20),
    (8_000, 1500, 10),
    (20_000, 200, 5),
    (5_000, 30, 5),
    (1_000, 20, 5),
    (20_000, 500, 200),
]


def made_data(n, d):
    """Two groups of unequal size with decaying, differing spectra, as real tables have."""
    rng = np.random.default_rng(0)
    groups = (rng.random(n) < 0.3).astype(int)
    X = rng.standard_normal((n, d))
    decay = np.arange(1, d + 1) ** -0.5
    X *= 3 * decay
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    for start in range(0, n, 4096):  # the second group is rotated
        rows = start + np.flatnonzero(groups[start : start + 4096])
        X[rows] = 1.2 * X[rows] @ rotation
    return X, groups


def rescaled_data(n, d):
    """Two groups with the same principal axes in other proportions."""
    rng = np.random.default_rng(0)
    groups = (rng.random(n) < 0.2).astype(int)
    factors = np.where(groups[:, None], rng.uniform(0.5, 1.5, d), 1.0)
    return rng.standard_normal((n, d)) * np.arange(1, d + 1) ** -0.5 * factors, groups


def lfw():
    data = load_lfw()
    return data.data, data.sensitive_features


def fit_fair(made, r):
    X, groups = made
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParityInfeasibleWarning)
        warnings.simplefilter("ignore", DualityGapWarning)
        return FairPCA(r).fit(X, sensitive_features=groups)


def parts(X, groups, r, rounds):
    """Time of the moments in units of ``X.T @ X``, and of the search in units of ``eigh``."""
    moments = GroupMoments.from_data(X, groups)
    C = np.tensordot(moments.weights, moments.second_moments(), axes=1)
    of_moments = race(
        {"moments": lambda: GroupMoments.from_data(X, groups), "X.T @ X": lambda: X.T @ X}, rounds
    )
    with threadpool_limits(1):
        of_search = race(
            {
                "search": lambda: solve(FairPCA(r)._problem(), moments.operand(), r),
                "eigh": lambda: np.linalg.eigh(C),
            },
            rounds,
        )
    return of_moments.ratio("moments", "X.T @ X"), of_search.ratio("search", "eigh")


def compare(name, prepare, r, rounds):
    made = prepare()
    X, groups = made
    competitors = {"PCA": lambda: PCA(r).fit(X), "FairPCA": lambda: fit_fair(made, r)}
    timing = race(competitors, rounds)
    at_once = race(competitors, rounds, pause=False)
    of_moments, of_search = parts(X, groups, r, rounds)
    memory = extra_memory(prepare, functools.partial(fit_fair, r=r)) if len(X) > 2000 else 0.0
    fair = fit_fair(made, r)
    return {
        "data": name,
        "r": r,
        "PCA seconds": f"{timing.seconds['PCA']:.4f}",
        "FairPCA seconds": f"{timing.seconds['FairPCA']:.4f}",
        "FairPCA / PCA": f"{timing.ratio('FairPCA', 'PCA'):.2f}",
        "without pauses": f"{at_once.ratio('FairPCA', 'PCA'):.2f}",
        "moments / X.T @ X": f"{of_moments:.2f}",
        "search / eigh": f"{of_search:.1f}",
        "extra MB": f"{memory:.0f}",
        "status": fair.status_,
    }


def in_sizes(make, options):
    for n, d, r in options.pick(SIZES, [(3000, 20, 3)]):
        prepare = functools.partial(make, n, d)
        yield compare(f"{n:,} x {d}", prepare, r, rounds=7 if n * d > 200_000 else 40)


def rotated(options):
    yield from in_sizes(made_data, options)


def rescaled(options):
    yield from in_sizes(rescaled_data, options)


def faces(options):
    if os.environ.get("FAIRPCA_DATA") and not options.quick:
        yield compare("LFW 13232 x 1764", lfw, 10, rounds=5)


def main(arguments=None) -> None:
    cases = {"rotated": rotated, "rescaled": rescaled, "faces": faces}
    run_cases(__doc__, cases, TABLE, arguments)


if __name__ == "__main__":
    main()
