"""Every estimator on one table, from the same moments: what it does to each group.

Run ``python -m benchmarks.methods``; it stores its rows in docs/benchmarks_methods.csv.
"""

from __future__ import annotations

import argparse
import csv
import math
import warnings

import numpy as np
from sklearn.decomposition import PCA

from benchmarks._harness import DOCS, write_pages
from fairpca import BlindPCA, FairPCA, GroupMoments, MinMaxPCA, WelfarePCA
from fairpca.baselines import MultiplicativeWeightsPCA, RobustFairPCA, SubsetFairPCA
from fairpca.datasets import load_rand_health
from fairpca.metrics import group_reconstruction_errors, row_reconstruction_errors

TABLE = DOCS / "benchmarks_methods.csv"
RANK = 5
METHODS = {
    "FairPCA(5)": FairPCA(RANK),
    'FairPCA(5, constraint="no_worse")': FairPCA(RANK, constraint="no_worse"),
    'FairPCA(5, constraint="parity")': FairPCA(RANK, constraint="parity"),
    'FairPCA(5, constraint="parity", solver="golden")': FairPCA(
        RANK, constraint="parity", solver="golden"
    ),
    'MinMaxPCA(5, criterion="error", center="overall")': MinMaxPCA(
        RANK, criterion="error", center="overall"
    ),
    "MinMaxPCA(5)": MinMaxPCA(RANK),
    "MultiplicativeWeightsPCA(5)": MultiplicativeWeightsPCA(RANK),
    "WelfarePCA(5, inequality_aversion=0)": WelfarePCA(RANK, inequality_aversion=0),
    "WelfarePCA(5, inequality_aversion=1)": WelfarePCA(RANK),
    "WelfarePCA(5, inequality_aversion=inf)": WelfarePCA(RANK, inequality_aversion=math.inf),
    "WelfarePCA(5, inequality_aversion=inf, relative_errors=True)": WelfarePCA(
        RANK, inequality_aversion=math.inf, relative_errors=True
    ),
    "RobustFairPCA(5)": RobustFairPCA(RANK),
    "SubsetFairPCA(5)": SubsetFairPCA(RANK, random_state=0),
    "BlindPCA(5)": BlindPCA(RANK),
    "BlindPCA(5, keep_covariances=0.5)": BlindPCA(RANK, keep_covariances=0.5),
}


def measured(name, fitted, rows):
    errors = group_reconstruction_errors(fitted, rows.data, rows.sensitive_features)
    scores = fitted.transform(rows.data)
    means = [scores[rows.sensitive_features == group].mean(axis=0) for group in rows.groups]
    gap = getattr(fitted, "duality_gap_", math.nan)
    return {
        "method": name,
        **{f"error, {group}": f"{errors[group]:.3f}" for group in rows.groups.tolist()},
        "overall error": f"{row_reconstruction_errors(fitted, rows.data).mean():.3f}",
        "mean scores apart": f"{np.linalg.norm(means[0] - means[1]):.3f}",
        "eigen-solves": str(getattr(fitted, "n_eigensolves_", "")),
        "gap": "" if math.isnan(gap) else f"{gap:.0e}",
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="nothing is stored")
    quick = parser.parse_args(arguments).quick
    rows = load_rand_health()
    moments = GroupMoments.from_data(rows.data, rows.sensitive_features)
    warnings.simplefilter("ignore")
    pca = PCA(RANK, svd_solver="covariance_eigh").fit(rows.data)
    table = [measured("PCA(5)", pca, rows)]
    table += [measured(name, fair.fit(moments), rows) for name, fair in METHODS.items()]
    for line in table:
        print("; ".join(line.values()), flush=True)
    if not quick:
        with TABLE.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
        write_pages()


if __name__ == "__main__":
    main()
