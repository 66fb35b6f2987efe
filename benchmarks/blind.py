"""What fits of BlindPCA and FairPLS cost, against scikit-learn's PCA.

Run ``python -m benchmarks.blind``; it stores its rows in docs/benchmarks_blind.csv.
"""

from __future__ import annotations

from sklearn.decomposition import PCA

from benchmarks._harness import DOCS, race, row, run_cases
from benchmarks.core import made_data
from fairpca import BlindPCA, FairPLS

TABLE = DOCS / "benchmarks_blind.csv"


def speed(options):
    n, d, r = options.pick((1_000_000, 50, 10), (3000, 20, 3))
    X, groups = made_data(n, d)
    X[groups == 1] += 0.3
    classes = X[:, 0] + X[:, 1] > 0
    numbers = X[:, 0] + X[:, 1]
    odds = {"notion": "equalized_odds"}
    fits = {
        "BlindPCA": lambda: BlindPCA(r).fit(X, sensitive_features=groups),
        "BlindPCA, budget": lambda: BlindPCA(r, max_mean_gap=0.1).fit(X, sensitive_features=groups),
        "BlindPCA, equalised odds": lambda: BlindPCA(r, **odds).fit(
            X, classes, sensitive_features=groups
        ),
        "FairPLS, equalised odds": lambda: FairPLS(r, **odds).fit(
            X, classes, sensitive_features=groups
        ),
        "FairPLS, budget": lambda: FairPLS(r, notion="demographic_parity", max_mean_gap=0.001).fit(
            X, classes, sensitive_features=groups
        ),
        "FairPLS, numbers": lambda: FairPLS(r, notion=None).fit(
            X, numbers, sensitive_features=groups
        ),
    }
    timing = race({"PCA": lambda: PCA(r).fit(X), **fits}, rounds=5)
    for name in fits:
        yield row(f"{name}, {n:,} x {d}, r = {r}", timing, name, "PCA", "1.5")


def main(arguments=None) -> None:
    run_cases(__doc__, {"speed": speed}, TABLE, arguments)


if __name__ == "__main__":
    main()
