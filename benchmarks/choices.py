"""How often the intervals that ``FairPCACV`` publishes hold what they promise.

Run ``python -m benchmarks.choices``; shares of 500 simulated data sets are stored in
docs/benchmarks_choices.csv. The populations are those of ``benchmarks.coverage``. The truth is how
the fitted projection changes each group's error in the population against PCA fitted to the same
rows. Only data sets in which PCA is left count: elsewhere nothing changes, and it says so.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks._harness import DOCS, run_cases
from benchmarks.coverage import METHODS, SETTINGS
from fairpca import FairPCA, FairPCACV

CASES_OF = {
    name: [setting] if "related" not in name else [setting, replace(setting, sizes=(75, 25))]
    for name, setting in SETTINGS.items()
}


def hits(setting, seed, constraint):
    """Which of the two intervals lie above and below the truth; and whether PCA is left."""
    population, given = setting.population(seed), np.repeat([0, 1], setting.sizes)
    X = population.draw(np.random.default_rng([seed, 2]), setting.sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of levelling down
        fair = FairPCACV(setting.rank, constraint=constraint).fit(X, sensitive_features=given)
    pca = FairPCA(setting.rank, alpha=1.0).fit(X, sensitive_features=given)
    change = population.errors(fair) - population.errors(pca)
    low, high = fair.held_out_changes_interval_.T
    order = np.argsort(pca.group_errors_)  # A, then B
    return (change < low)[order], (change > high)[order], fair.stop_ > 0


def coverage(options, name):
    """A line for each size and rule."""
    n = options.pick(500, 4)
    for setting in CASES_OF[name]:
        for method, constraint in METHODS.items():
            found = [hits(setting, seed, constraint) for seed in range(n)]
            lower, higher = (
                np.mean([one[i] for one in found if one[2]] or [[np.nan] * 2], axis=0)
                for i in (0, 1)
            )
            yield {
                "rows": f"{sum(setting.sizes)}, {name.split()[0]}, {setting.rows}",
                "fair PCA": method,
                "data sets": str(n),
                "not PCA": str(sum(bool(one[2]) for one in found)),
                "of these, changes held": f"{1 - (lower + higher).mean():.3f}",
                "of A": f"{1 - (lower + higher)[0]:.3f}",
                "of B": f"{1 - (lower + higher)[1]:.3f}",
                "truth lower": f"{lower.mean():.3f}",
                "truth higher": f"{higher.mean():.3f}",
            }


CASES = {name: partial(coverage, name=name) for name in SETTINGS}


def main(arguments=None):
    run_cases(__doc__, CASES, DOCS / "benchmarks_choices.csv", arguments)


if __name__ == "__main__":
    main()
