"""How often the intervals that ``FairPCA(cv=10)`` publishes hold what they promise.

Run ``python -m benchmarks.choices``; shares of 500 simulated data sets are stored in
docs/benchmarks_choices.csv. The populations are the related groups of ``benchmarks.coverage``:
three quarters of the rows are of one group, with 8 features and 3 components. The truth is how the
fitted projection changes each group's error in the population against PCA fitted to the same rows.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from benchmarks._harness import DOCS, run_cases
from benchmarks.coverage import FOLDS, METHODS, D, R, related
from fairpca import FairPCA

SIZES = ((300, 100), (75, 25))


def hits(population, sizes, seed, constraint):
    """The shares of the two intervals that lie above and below the truth; whether not at PCA."""
    X = population.draw(np.random.default_rng([seed, 2]), sizes)
    given = {"sensitive_features": np.repeat([0, 1], sizes)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of levelling down
        fair = FairPCA(R, constraint=constraint, cv=FOLDS, random_state=seed).fit(X, **given)
    pca = FairPCA(R, alpha=1.0).fit(X, **given)
    after, before = (population.errors(fitted, np.ones(D)) for fitted in (fair, pca))
    low, high = fair.held_out_changes_interval_.T
    change = after - before
    return (change < low).mean(), (change > high).mean(), float(fair.stop_ > 0)


def coverage(options, tails, degrees):
    """A line for each size and rule; a new population for every 20 data sets."""
    n = options.pick(500, 4)
    for sizes in SIZES:
        for name, constraint in METHODS.items():
            made = (related(np.random.default_rng(seed // 20), degrees) for seed in range(n))
            found = [hits(each, sizes, seed, constraint) for seed, each in enumerate(made)]
            lower, higher, moved = np.array(found).T
            lower, higher = lower[moved > 0].mean(), higher[moved > 0].mean()
            yield {
                "rows": f"{sum(sizes)}, {tails}",
                "fair PCA": f"{name}, cv=10",
                "data sets": str(n),
                "not PCA": f"{moved.sum():.0f}",
                "of these, changes held": f"{1 - lower - higher:.3f}",
                "truth lower": f"{lower:.3f}",
                "truth higher": f"{higher:.3f}",
            }


CASES = {
    "gaussian": partial(coverage, tails="Gaussian", degrees=None),
    "t5": partial(coverage, tails="Student's t with 5 degrees of freedom", degrees=5.0),
}


def main(arguments=None):
    run_cases(__doc__, CASES, DOCS / "benchmarks_choices.csv", arguments)


if __name__ == "__main__":
    main()
