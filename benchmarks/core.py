"""FairPCA against scikit-learn's PCA and the authors' search, in memory.

Run ``python -m benchmarks.core``; it prints a table and writes it to docs/benchmarks_core.csv.
LFW is included where ``FAIRPCA_DATA`` names the folder with the paper's data.
"""

from __future__ import annotations

import functools
import os
import warnings
from math import sqrt
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

from benchmarks._harness import extra_memory, race, write_table
from fairpca import FairPCA, GroupMoments, ParityInfeasibleWarning
from fairpca.datasets import load_lfw

TABLE = Path(__file__).parent.parent / "docs" / "benchmarks_core.csv"
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
        return FairPCA(r).fit(X, sensitive_features=groups)


def authors_search(C, p, r, tolerance=1e-6):
    """The published search: golden section on [0, 1] with full eigendecompositions."""

    def errors(M):
        U = np.linalg.eigh(M)[1][:, -r:]
        return np.array([np.trace(C_g) - np.trace(U.T @ C_g @ U) for C_g in C])

    overall = p[0] * C[0] + p[1] * C[1]
    first = errors(overall)
    a, b = (0, 1) if first[0] <= first[1] else (1, 0)
    low, high, ratio = 0.0, 1.0, (sqrt(5) + 1) / 2
    while high - low > tolerance:
        right, left = low + (high - low) / ratio, high - (high - low) / ratio
        F = [
            np.diff(errors(alpha * overall + (1 - alpha) * (C[b] - C[a])))[0] ** 2
            for alpha in (left, right)
        ]
        if F[0] < F[1]:
            high = right
        else:
            low = left
    alpha = (low + high) / 2
    return errors(alpha * overall + (1 - alpha) * (C[b] - C[a]))


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


def compare_search(X, groups, r):
    """The authors' search against our solver on the same moments."""
    moments = GroupMoments.from_data(X, groups)
    C, p = moments.second_moments(), moments.weights / moments.weights.sum()
    timing = race(
        {
            "search": lambda: authors_search(C, p, r),
            "exact": lambda: FairPCA(r, constraint=None).fit_moments(moments),
        },
        rounds=1 if X.shape[1] > 500 else 5,
    )
    return timing.ratio("search", "exact")


def main() -> None:
    rows = []
    for n, d, r in SIZES:
        prepare = functools.partial(made_data, n, d)
        rows.append(compare(f"{n:,} x {d}", prepare, r, rounds=7 if n > 2000 else 200))
        print(rows[-1], flush=True)
    if os.environ.get("FAIRPCA_DATA"):
        rows.append(compare("LFW 13232 x 1764", lfw, 10, rounds=5))
        print(rows[-1], flush=True)
    write_table(rows, TABLE)
    if os.environ.get("FAIRPCA_DATA"):
        print(f"the authors' search / exact, LFW, r = 5: {compare_search(*lfw(), 5):.0f}")


if __name__ == "__main__":
    main()
