"""What cross-validation costs, and what wide tables cost.

Run ``python -m benchmarks.folds``; it stores its rows in docs/benchmarks_folds.csv. Groups have
directions of their own. Processor time counts, with BLAS on one thread: threads, which some fits
use and others do not, gain nothing here, and other work on the machine costs little.
"""

from __future__ import annotations

import time
import warnings
from functools import partial

import numpy as np
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from benchmarks._harness import DOCS, Timing, row, run_cases
from fairpca import FairPCA, FairPCACV, audit

#: Cross-validated and plain fits: rows, columns, components, groups, options, wanted.
FITS = [
    (1_000, 50, 10, 2, {}, ""),
    (100_000, 50, 10, 2, {}, ""),
    (20_000, 50, 5, 2, {}, "3"),
    (5_000, 300, 20, 2, {}, "6"),
    (5_000, 768, 64, 2, {}, "7"),
    (20_000, 50, 5, 3, {}, "8"),
    (60, 5, 2, 3, {"constraint": "no_worse"}, "0.3 s"),
    (60, 5, 2, 3, {"max_error_increase": 0.05}, "0.3 s"),
]
#: Fewer rows than columns: rows, columns, components; wanted for FairPCA / PCA and
#: FairPCACV / FairPCA.
WIDE = [(300, 20_000, 10, "2", "4"), (2_000, 5_000, 20, "3", "5"), (1_000, 50_000, 10, "", "4")]
#: Audits of what, rows, columns, wanted.
AUDITS = [
    (FairPCACV(64), 5_000, 768, "10 s"),
    (FairPCA(10), 300, 20_000, "2 s"),
    (FairPCACV(10), 300, 20_000, "2 s"),
]


def made_groups(n, d, n_groups):
    """Rows of groups whose variances fall along directions of their own."""
    rng = np.random.default_rng(0)
    groups = rng.integers(n_groups, size=n)
    m = min(d, 100)
    scales = 0.9 ** np.arange(m)
    X = 0.1 * rng.standard_normal((n, d))
    for g in range(n_groups):
        turn = np.linalg.qr(rng.standard_normal((d, m)))[0]
        members = groups == g
        X[members] += rng.standard_normal((members.sum(), m)) * scales @ turn.T
    return X, groups


def processor_time(competitors, rounds):
    """The least processor time of each, in turns."""
    best = dict.fromkeys(competitors, float("inf"))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rounds):
            for name, run in competitors.items():
                start = time.process_time()
                run()
                best[name] = min(best[name], time.process_time() - start)
    return Timing(best)


def fits(options):
    """``FairPCACV(r)`` in units of ``FairPCA(r)``."""
    for n, d, r, n_groups, how, wanted in options.pick(FITS, [(200, 5, 2, 2, {}, "")]):
        X, groups = made_groups(n, d, n_groups)
        competitors = {
            name: partial(model.fit, X, sensitive_features=groups)
            for name, model in {"FairPCA": FairPCA(r, **how), "cv=10": FairPCACV(r, **how)}.items()
        }
        timing = processor_time(competitors, options.pick(5, 1))
        settings = "".join(f", {name}={value!r}" for name, value in how.items())
        case = f"{n} x {d}, {n_groups} groups, r = {r}{settings}"
        yield row(case, timing, "cv=10", "FairPCA", wanted)


def wide(options):
    """Fewer rows than columns, where scikit-learn's PCA takes random products."""
    for n, d, r, of_pca, of_fair in options.pick(WIDE, [(60, 400, 2, "", "")]):
        X, groups = made_groups(n, d, 2)
        competitors = {
            "PCA": partial(PCA(r).fit, X),
            "FairPCA": partial(FairPCA(r).fit, X, sensitive_features=groups),
            "cv=10": partial(FairPCACV(r).fit, X, sensitive_features=groups),
        }
        timing = processor_time(competitors, options.pick(3, 1))
        yield row(f"{n} x {d}, r = {r}: FairPCA", timing, "FairPCA", "PCA", of_pca)
        yield row(f"{n} x {d}, r = {r}: cv=10", timing, "cv=10", "FairPCA", of_fair)


def audits(options):
    """Audits in units of one fit."""
    for model, n, d, wanted in options.pick(AUDITS, [(FairPCA(2), 200, 6, "")]):
        X, groups = made_groups(n, d, 2)
        name = repr(model)
        competitors = {
            name: partial(model.fit, X, sensitive_features=groups),
            "audit": partial(audit, model, X, groups),
        }
        timing = processor_time(competitors, 1)
        yield row(f"audit({name}) of {n} x {d}", timing, "audit", name, wanted)


CASES = {"fits": fits, "wide": wide, "audits": audits}


def main(arguments=None):
    run_cases(__doc__, CASES, DOCS / "benchmarks_folds.csv", arguments)


if __name__ == "__main__":
    main()
