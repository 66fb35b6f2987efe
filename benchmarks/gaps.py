"""How often the certificate of more than two groups is tight.

Run ``python -m benchmarks.gaps``; shares of random problems are stored in docs/benchmarks_gaps.csv.
"""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks._harness import DOCS, run_cases
from fairpca import DualityGapWarning, FairPCA, GroupMoments, MinMaxPCA, ParityInfeasibleWarning

TABLE = DOCS / "benchmarks_gaps.csv"
CRITERIA = {
    "parity": FairPCA(constraint="parity"),
    "no worse": FairPCA(constraint="no_worse"),
    "error budget": FairPCA(max_error_increase=0.05),
    "loss": MinMaxPCA(center="overall"),
    "error": MinMaxPCA(criterion="error", center="overall"),
    "variance": MinMaxPCA(criterion="variance", center="overall"),
}


def few_deviations(rng, d):
    """Three to eight groups of hundreds of rows, a tenth apart in loadings and scale."""
    decay = np.arange(1, d + 1) ** -0.5
    common = np.linalg.qr(rng.standard_normal((d, d)))[0] * 3 * decay
    for g in range(int(rng.integers(3, 9))):
        loadings = common + 0.1 * rng.standard_normal((d, d)) * decay
        X = rng.standard_normal((int(rng.integers(200, 2000)), d)) @ loadings.T
        yield g, rng.uniform(0.9, 1.1) * X + 0.3 * rng.standard_normal(d)


def random_groups(rng, d, apart):
    """Three to eight groups of few rows that share a part of their structure."""
    shared = rng.standard_normal((d, d)) * np.exp(-np.arange(d) / 5)
    for g in range(int(rng.integers(3, 9))):
        mixing = shared + apart * rng.standard_normal((d, d)) * np.exp(-np.arange(d) / 5)
        yield g, rng.standard_normal((int(rng.integers(30, 200)), d)) @ mixing.T


def shares(options, name, apart=0.0, uncorrelated=False):
    """How often the gap is below 1e-6 of the largest variance."""
    closed, cases = dict.fromkeys(CRITERIA, 0), options.pick(100, 2)
    for seed in range(cases):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(4 if apart else 8, 21))
        r = int(rng.integers(1, d if apart else 4))
        moments = GroupMoments()
        for g, X in random_groups(rng, d, apart) if apart else few_deviations(rng, d):
            if uncorrelated:  # same variances, and all covariances zero
                X = np.vstack([np.diag(row) * np.sqrt(d) for row in X])
                X = np.vstack([X, -X])
            moments.update(X, np.full(len(X), g))
        for criterion, estimator in CRITERIA.items():
            closed[criterion] += is_closed(estimator.set_params(n_components=r), moments)
    figures = {criterion: f"{count / cases:.2f}" for criterion, count in closed.items()}
    yield {"problems": f"{name}, {cases} problems", **figures}


def is_closed(estimator, moments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParityInfeasibleWarning)
        warnings.simplefilter("error", DualityGapWarning)
        try:
            estimator.fit(moments)
        except DualityGapWarning:
            return False
    return True


CASES = {
    "few": lambda o: shares(o, "groups much alike, up to 3 components"),
    "alike": lambda o: shares(o, "groups alike, any rank", 0.3),
    "unlike": lambda o: shares(o, "groups quite unlike, any rank", 1.0),
    "uncorrelated": lambda o: shares(o, "uncorrelated columns, any rank", 1.0, uncorrelated=True),
}


def main(arguments=None) -> None:
    run_cases(__doc__, CASES, TABLE, arguments)


if __name__ == "__main__":
    main()
