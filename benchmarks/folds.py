"""What cross-validation costs: ``FairPCACV(r)`` in units of ``FairPCA(r)``.

Run ``python -m benchmarks.folds``; it stores its rows in docs/benchmarks_folds.csv. Groups with
directions of their own, 50 features and 10 components. Processor time counts: threads, which a
cross-validated fit uses and a plain one of this size does not, gain nothing here.
"""

from __future__ import annotations

import time
import warnings
from functools import partial

import numpy as np

from benchmarks._harness import DOCS, Timing, row, run_cases
from fairpca import FairPCA, FairPCACV

FEATURES, RANK, TARGET = 50, 10, "4 times"


def made_groups(n, n_groups):
    """Rows of groups whose variances fall along directions of their own."""
    rng = np.random.default_rng(0)
    groups = rng.integers(n_groups, size=n)
    scales = 0.9 ** np.arange(FEATURES)
    turns = [np.linalg.qr(rng.standard_normal((FEATURES, FEATURES)))[0] for _ in range(n_groups)]
    X = rng.standard_normal((n, FEATURES)) * scales
    for g, turn in enumerate(turns):
        X[groups == g] = X[groups == g] @ turn.T
    return X, groups


def processor_time(competitors, rounds):
    """The least processor time of each, in turns."""
    best = dict.fromkeys(competitors, float("inf"))
    for _ in range(rounds):
        for name, run in competitors.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return Timing(best)


def cost(options, n, n_groups, rounds, target=""):
    """The race of both fits at one number of rows."""
    n = options.pick(n, 500)
    X, groups = made_groups(n, n_groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        competitors = {
            name: partial(model.fit, X, sensitive_features=groups)
            for name, model in {"plain": FairPCA(RANK), "cv=10": FairPCACV(RANK)}.items()
        }
        timing = processor_time(competitors, options.pick(rounds, 1))
    yield row(f"{n} x {FEATURES}, {n_groups} groups", timing, "cv=10", "plain", target)


CASES = {
    f"{n} rows": partial(cost, n=n, n_groups=2, rounds=100, target=TARGET)
    for n in (1_000, 2_000, 5_000, 20_000, 100_000)
} | {"three groups": partial(cost, n=5_000, n_groups=3, rounds=5)}


def main(arguments=None):
    run_cases(__doc__, CASES, DOCS / "benchmarks_folds.csv", arguments)


if __name__ == "__main__":
    main()
