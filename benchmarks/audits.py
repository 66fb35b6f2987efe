"""How often the intervals of ``fairpca.audit`` hold what they promise.

Run ``python -m benchmarks.audits``; shares of 300 simulated data sets are stored in
docs/benchmarks_audits.csv. The populations are those of ``benchmarks.coverage``. The truth is what
PCA and ``FairPCACV``, fitted to all rows, do to new rows of each group: the gap of the smaller
group (by errors, and by shares of its own variation), and how the fair version changes each group's
error. Changes count only in data sets in which PCA is left.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np

from benchmarks._harness import DOCS, run_cases
from benchmarks.coverage import SETTINGS
from fairpca import FairPCACV, audit


def hits(setting, seed):
    """Which intervals of one data set hold the truth."""
    population, groups = setting.population(seed), np.repeat([0, 1], setting.sizes)
    X = population.draw(np.random.default_rng([seed, 3]), setting.sizes)
    found = audit(FairPCACV(setting.rank), X, groups, ranks=[setting.rank], n_points=2)

    def errors(components):
        return population.errors(SimpleNamespace(components_=components, mean_=X.mean(axis=0)))

    before, after = errors(found.fit.pca_loadings), errors(found.fit.fair_loadings)
    variation = errors(np.zeros((0, X.shape[1])))
    big, small = found.groups
    truths = {
        "gap": (before[1] / before[0] - 1, small.baseline.gap),
        "gap by shares": (
            before[1] / before[0] * variation[0] / variation[1] - 1,
            small.baseline.share_gap,
        ),
        "gap that is left": (after[1] / after[0] - 1, small.alternative.gap),
    }
    if not np.allclose(before, after, rtol=1e-9):
        changes = after / before - 1
        truths |= {"change, larger group": (changes[0], big.change)}
        truths |= {"change, smaller group": (changes[1], small.change)}
    return {
        what: interval.low <= truth <= interval.high for what, (truth, interval) in truths.items()
    }


def coverage(options, name):
    """Shares of data sets whose interval holds the truth."""
    setting, n = SETTINGS[name], options.pick(300, 4)
    found = [hits(setting, seed) for seed in range(n)]
    quantities = list(dict.fromkeys(what for one in found for what in one))
    yield {
        "rows": f"{sum(setting.sizes)}, {name.split()[0]}, {setting.rows}",
        "data sets": str(n),
        "not PCA": str(sum("change, larger group" in one for one in found)),
        **{
            what: f"{np.mean([one[what] for one in found if what in one]):.3f}"
            for what in quantities
        },
    }


CASES = {name: partial(coverage, name=name) for name in SETTINGS}


def main(arguments=None):
    run_cases(__doc__, CASES, DOCS / "benchmarks_audits.csv", arguments)


if __name__ == "__main__":
    main()
