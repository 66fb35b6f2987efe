"""What the first components of a fair projection cost, by variance and in the fair order.

The price of a prefix is how much larger the largest error of a group is than under ``FairPCA`` with
as many components. Prices are over all numbers of components and all their prefixes. The prefixes
of ``FairPCACV`` have the same standard; left out are fits that stay at PCA.
Run ``python -m benchmarks.prefixes``; it stores its rows in docs/benchmarks_prefixes.csv.
"""

from __future__ import annotations

import functools

import numpy as np
from sklearn.base import clone

from benchmarks._harness import DOCS, race, run_cases
from fairpca import FairPCA, FairPCACV, GroupMoments
from fairpca.datasets import load_checkup, load_lsac, load_rand_health, load_tcred
from fairpca.exceptions import quietly

TABLE = DOCS / "benchmarks_prefixes.csv"


def largest_errors(fair, C):
    """The largest error of a group under the first 1, 2, ... components."""
    kept = np.cumsum(np.einsum("ri,gij,rj->gr", fair.components_, C, fair.components_), axis=1)
    return (np.trace(C, axis1=1, axis2=2)[:, np.newaxis] - kept).max(axis=0)


def spread_of(found):
    """The worst and the mean price, in words if all fits stayed at PCA."""
    if not found:
        return "stays at PCA"
    together = np.concatenate(found)
    return f"{together.max():.1f} ({together.mean():.1f})"


def prices(options, name, load, attribute, kind):
    people = load()
    X = people.data
    groups = people[attribute]
    moments = GroupMoments.from_data(X, groups, folds=10)
    deviations = X.std(axis=0)
    C = moments.second_moments() / np.outer(deviations, deviations)
    d = X.shape[1]
    ranks = range(1, options.pick(d, 4))
    best = [FairPCA(r, standardize=True).fit(moments) for r in ranks]
    least = np.array([fit.group_errors_.max() for fit in best])
    paid = {"variance": [], "fair": []}
    for r in ranks[1:]:
        for order, found in paid.items():
            fair = kind(r, standardize=True, order=order).fit(moments)
            if fair.alpha_ == 1:
                continue
            found.append(100 * (largest_errors(fair, C)[:-1] / least[: r - 1] - 1))
    usual = kind(ranks[-1] // 2, standardize=True)
    fits = {
        order: functools.partial(
            clone(usual).set_params(order=order).fit, X, sensitive_features=groups
        )
        for order in paid
    }
    timing = race(fits, options.pick(20, 1), pause=False)
    figures = {f"by {order}, worst (mean)": spread_of(found) for order, found in paid.items()}
    yield {
        "data": f"{name}, {len(X):,} x {d}",
        "estimator": kind.__name__,
        **figures,
        "worst with up to d - 2 components": spread_of(paid["fair"][:-1]).partition(" (")[0],
        "time with d / 2 components": f"{timing.ratio('fair', 'variance'):.2f}",
    }


DATA = {
    "check-up": (load_checkup, "sensitive_features"),
    "RAND": (load_rand_health, "sensitive_features"),
    "LSAC": (load_lsac, "sensitive_features"),
    "LSAC, three races": (load_lsac, "race"),
    "TCRED": (load_tcred, "sensitive_features"),
}
CASES = {
    f"{name}, {kind.__name__}": functools.partial(
        prices, name=name, load=load, attribute=attribute, kind=kind
    )
    for name, (load, attribute) in DATA.items()
    for kind in (FairPCA, FairPCACV)
}


def main(arguments=None):
    with quietly():
        run_cases(__doc__, CASES, TABLE, arguments)


if __name__ == "__main__":
    main()
