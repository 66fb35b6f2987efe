"""FairPCA against scikit-learn's PCA, in memory.

Run ``python -m benchmarks.core``; it stores its rows in docs/benchmarks_core.csv. LFW is included
if ``FAIRPCA_DATA`` names the folder with the paper's data.
"""

from __future__ import annotations

import functools
import os
import warnings

import numpy as np
from sklearn.decomposition import PCA

from benchmarks._harness import DOCS, extra_memory, race, run_cases
from fairpca import DualityGapWarning, FairPCA, ParityInfeasibleWarning
from fairpca.datasets import load_lfw

TABLE = DOCS / "benchmarks_core.csv"
SIZES = [(1_000_000, 50, 10), (300_000, 173, 10), (100_000, 500, 20), (1000, 20, 3)]


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


def lfw():
    data = load_lfw()
    return data.data, data.sensitive_features


def fit_fair(made, r):
    X, groups = made
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParityInfeasibleWarning)
        warnings.simplefilter("ignore", DualityGapWarning)
        return FairPCA(r).fit(X, sensitive_features=groups)


def compare(name, prepare, r, rounds):
    made = prepare()
    X = made[0]
    timing = race(
        {
            "PCA": lambda: PCA(r).fit(X),
            "FairPCA": lambda: fit_fair(made, r),
            "X.T @ X": lambda: X.T @ X,
        },
        rounds,
    )
    memory = extra_memory(prepare, functools.partial(fit_fair, r=r)) if len(X) > 2000 else 0.0
    fair = fit_fair(made, r)
    return {
        "data": name,
        "r": r,
        "PCA seconds": f"{timing.seconds['PCA']:.4f}",
        "FairPCA seconds": f"{timing.seconds['FairPCA']:.4f}",
        "FairPCA / PCA": f"{timing.ratio('FairPCA', 'PCA'):.2f}",
        "FairPCA / X.T @ X": f"{timing.ratio('FairPCA', 'X.T @ X'):.2f}",
        "extra MB": f"{memory:.0f}",
        "status": fair.status_,
    }


def made(options):
    for n, d, r in options.pick(SIZES, [(3000, 20, 3)]):
        prepare = functools.partial(made_data, n, d)
        yield compare(f"{n:,} x {d}", prepare, r, rounds=7 if n > 2000 else 200)


def faces(options):
    if os.environ.get("FAIRPCA_DATA") and not options.quick:
        yield compare("LFW 13232 x 1764", lfw, 10, rounds=5)


def main(arguments=None) -> None:
    run_cases(__doc__, {"made": made, "faces": faces}, TABLE, arguments)


if __name__ == "__main__":
    main()
