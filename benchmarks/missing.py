"""What missing values hide, and what reading them as missing shows.

Run ``python -m benchmarks.missing``; the figures are stored in docs/benchmarks_missing.csv. From
the complete check-up table values are deleted at random, more of older people. Each row of the
table is a mean over ten deletions:

* the gap that is shown by PCA of the table with holes, and by rows that were left out;
* the gap and the largest error that the projections really have, on the complete table.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.impute import KNNImputer, SimpleImputer

from benchmarks._harness import DOCS, run_cases
from fairpca import FairPCA, FairPCACV
from fairpca.datasets import load_checkup

TABLE = DOCS / "benchmarks_missing.csv"
RANK = 5
OLD = "75 and older"
RATES = {"30 / 5 %": (0.3, 0.05), "50 / 5 %": (0.5, 0.05)}
WAYS = {"available": None, "means filled in": SimpleImputer(), "KNN filled in": KNNImputer()}


def complete_table():
    people = load_checkup()
    X = np.asarray(people.data, float)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.asarray(people.sensitive_features)


def with_holes(X, groups, rates, seed):
    rng = np.random.default_rng(seed)
    shares = np.where(groups == OLD, *rates)[:, None]
    return np.where(rng.random(X.shape) < shares, np.nan, X)


def errors_of(model, X, groups):
    """What a projection does to older people and to others, on complete rows."""
    Z = X - model.mean_
    left = np.sum((Z - Z @ model.components_.T @ model.components_) ** 2, axis=1)
    return np.array([left[groups == OLD].mean(), left[groups != OLD].mean()])


def gap_of(errors):
    return errors[0] / errors[1] - 1


def hidden(options, rates):
    """The figures of each way, over ten deletions."""
    X, groups = complete_table()
    truth = gap_of(errors_of(FairPCA(RANK, alpha=1).fit(X, sensitive_features=groups), X, groups))
    for way, imputer in WAYS.items():
        found = []
        for seed in range(options.pick(10, 1)):
            holes = with_holes(X, groups, RATES[rates], seed)
            if imputer is not None:
                holes = imputer.fit_transform(holes)
            given = {"sensitive_features": groups}
            how = {"missing": "available" if imputer is None else "error"}
            pca = FairPCA(RANK, alpha=1, **how).fit(holes, **given)
            fair = FairPCA(RANK, **how).fit(holes, **given)
            held_out = FairPCACV(RANK, **how).fit(holes, **given)
            shown = gap_of(pca.group_errors_)
            of_left_out = gap_of(held_out.held_out_pca_group_errors_)
            real = gap_of(errors_of(pca, X, groups))
            found.append([shown, of_left_out, real, errors_of(fair, X, groups).max()])
        shown, of_left_out, real, largest = np.mean(found, axis=0)
        yield {
            "missing": f"{rates} ({OLD} / others)",
            "way": way,
            "gap of complete rows": f"{truth:.0%}",
            "gap shown": f"{shown:.0%}",
            "gap held out": f"{of_left_out:.0%}",
            "real gap of this PCA": f"{real:.0%}",
            "largest error of the fair fit": f"{largest:.2f}",
            "at most": f"{np.max(found, axis=0)[3]:.2f}",
        }


CASES = {rates: partial(hidden, rates=rates) for rates in RATES}


def main(arguments=None):
    run_cases(__doc__, CASES, TABLE, arguments)


if __name__ == "__main__":
    main()
