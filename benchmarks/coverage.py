"""How often the intervals of an audit hold what they promise, in simulated data.

Run ``python -m benchmarks.coverage``; shares of 500 data sets are stored in
docs/benchmarks_coverage.csv. In each data set PCA and fair PCA are fitted to 300 rows of one group
and 100 of another, with 8 features and 3 components. The truth is what *these fitted projections*
do to new rows, which the known population gives exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.base import clone

from benchmarks._harness import DOCS, run_cases
from fairpca import FairPCA, GroupMoments
from fairpca._audit.dealt import Dealt
from fairpca._audit.fits import fit_both
from fairpca._audit.held_out import FoldFit, cross_fit
from fairpca._audit.intervals import Resampling
from fairpca._audit.new_rows import FAIR, PCA, NewRows
from fairpca._moments.dealing import deal_folds

TABLE = DOCS / "benchmarks_coverage.csv"
SIZES, D, R, FOLDS = (300, 100), 8, 3, 10
CODES = np.repeat([0, 1], SIZES)
METHODS = {"efficient": "pareto", "parity": None}


@dataclass(frozen=True)
class Population:
    """Two groups of rows ``loadings @ z + mean`` with z independent and of variance one."""

    loadings: list
    means: list
    degrees: float | None

    def draw(self, rng, sizes=SIZES):
        """Rows of both groups."""
        parts, t = [], self.degrees
        for L, mean, n in zip(self.loadings, self.means, sizes, strict=True):
            z = rng.standard_normal((n, D))
            if t is not None:  # Student's t, scaled to variance one
                z = rng.standard_t(t, (n, D)) / np.sqrt(t / (t - 2))
            parts.append(z @ L.T + mean)
        return np.vstack(parts)

    def errors(self, fitted, scale):
        """What a fitted projection does to new rows of each group, in expectation."""
        across = np.eye(D) - fitted.components_.T @ fitted.components_
        found = []
        for L, mean in zip(self.loadings, self.means, strict=True):
            L, mean = L / scale[:, None], mean / scale
            found.append(np.sum((across @ L) ** 2) + np.sum((across @ (mean - fitted.mean_)) ** 2))
        return np.array(found)


def related(rng, degrees):
    """Group B shares a part of A's directions."""
    turn = (np.linalg.qr(rng.standard_normal((D, D)))[0] for _ in range(2))
    A, own = (Q * 2 * 0.75 ** np.arange(D) for Q in turn)
    return Population(
        [A, 0.6 * A + 0.72 * own], [np.zeros(D), 0.3 * rng.standard_normal(D)], degrees
    )


def unrelated(rng, degrees):
    """The groups have directions of their own, and no direction stands out."""
    turn = (np.linalg.qr(rng.standard_normal((D, D)))[0] for _ in range(2))
    A, B = (Q * np.sqrt(np.linspace(2, 0.5, D)) for Q in turn)
    return Population([A, 1.1 * B], [np.zeros(D), 0.2 * rng.standard_normal(D)], degrees)


def alike(rng, degrees):
    """Both groups have the same distribution: there is nothing to repair."""
    A = np.linalg.qr(rng.standard_normal((D, D)))[0] * 2 * 0.75 ** np.arange(D)
    return Population([A, A], [np.zeros(D), np.zeros(D)], degrees)


def hits(population, seed, standardize):
    """Which intervals of one data set hold the truth, by method and quantity."""
    rng = np.random.default_rng([seed, 1])
    X = population.draw(rng)
    moments, scale = GroupMoments.from_data(X, CODES), None
    if standardize:
        moments, scale = moments.standardize()
    dealt = Dealt.of(X, CODES, [deal_folds(CODES, FOLDS, rng)])
    found = {}
    for name, constraint in METHODS.items():
        fits = fit_both(FairPCA(R, constraint=constraint), moments)
        whole = FoldFit.of([fits.pca, fits.fair], fits.pca.mean_, scale)
        clones = [clone(fits.pca), clone(fits.fair)]
        new = NewRows(fits, cross_fit(X, CODES, dealt, clones, standardize, whole=whole), False)
        how = Resampling(0.95, 1000, rng)
        before, after = (
            population.errors(fitted, np.ones(D) if scale is None else scale)
            for fitted in (fits.pca, fits.fair)
        )
        B, A = fits.harmed, fits.privileged
        changes = new.changes(how)
        truths = {
            "D of PCA": (before[B] - before[A], new.disparity_interval(PCA, how)),
            "D of fair PCA": (after[B] - after[A], new.disparity_interval(FAIR, how)),
            "change of A": (after[A] - before[A], ends(changes.groups[A])),
            "change of B": (after[B] - before[B], ends(changes.groups[B])),
            "change of D": ((after - before)[B] - (after - before)[A], ends(changes.disparity)),
        }
        found[name] = {what: low <= truth <= high for what, (truth, (low, high)) in truths.items()}
    return found


def ends(change):
    return change.low, change.high


def coverage(options, make, degrees=None, standardize=False):
    """Share of data sets whose interval holds the truth; a new population for every 20 of them."""
    n = options.pick(500, 4)
    found = [
        hits(make(np.random.default_rng(seed // 20), degrees), seed, standardize)
        for seed in range(n)
    ]
    tails = "Gaussian" if degrees is None else f"Student's t with {degrees:g} degrees of freedom"
    for name in METHODS:
        shares = {
            what: f"{np.mean([one[name][what] for one in found]):.3f}" for what in found[0][name]
        }
        yield {
            "groups": make.__name__,
            "rows": tails + (", standardised" if standardize else ""),
            "fair PCA": name,
            "data sets": str(n),
            **shares,
        }


CASES = {
    f"{make.__name__} {tails}": partial(coverage, make=make, degrees=degrees)
    for make in (related, unrelated, alike)
    for tails, degrees in (("gaussian", None), ("t5", 5.0))
} | {"related standardised": partial(coverage, make=related, standardize=True)}


def main(arguments=None):
    run_cases(__doc__, CASES, TABLE, arguments)


if __name__ == "__main__":
    main()
