"""How often the intervals of held-out figures hold what they promise, in simulated data.

Run ``python -m benchmarks.coverage``; shares of 500 data sets are stored in
docs/benchmarks_coverage.csv. In each data set PCA and fair PCA are fitted to all rows, and without
each of ten folds. The truth is what the projections *fitted to all rows* do to new rows, which the
known population gives exactly. :mod:`benchmarks.choices` does the same for ``FairPCACV``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks._harness import DOCS, run_cases
from fairpca import FairPCA, FairPCACV, GroupMoments
from fairpca._cv.cross_fit import Sides, disparity_interval
from fairpca._cv.held_out import HeldOut
from fairpca._cv.leave_out import fold_of
from fairpca.exceptions import quietly

TABLE = DOCS / "benchmarks_coverage.csv"
D, R, FOLDS = 8, 3, 10
METHODS = {"efficient": "efficient", "parity": "parity"}


@dataclass(frozen=True)
class Population:
    """Two groups, by how rows are drawn and by what they are on average."""

    draws: list[Callable]
    means: list[np.ndarray]
    covariances: list[np.ndarray]

    def draw(self, rng, sizes):
        """Rows of both groups."""
        return np.vstack([draw(rng, n) for draw, n in zip(self.draws, sizes, strict=True)])

    def errors(self, fitted):
        """What a fitted projection does to new rows of each group, in expectation."""
        across = np.eye(len(fitted.mean_)) - fitted.components_.T @ fitted.components_
        return np.array(
            [
                np.sum(across * S) + np.sum((across @ (mean - fitted.mean_)) ** 2)
                for S, mean in zip(self.covariances, self.means, strict=True)
            ]
        )


def mixed(loadings, means, degrees):
    """Rows ``loadings @ z + mean`` with z independent and of variance one."""

    def draw(rng, n, L, mean):
        z = rng.standard_normal((n, D))
        if degrees is not None:  # Student's t, scaled to variance one
            z = rng.standard_t(degrees, (n, D)) / np.sqrt(degrees / (degrees - 2))
        return z @ L.T + mean

    draws = [partial(draw, L=L, mean=mean) for L, mean in zip(loadings, means, strict=True)]
    return Population(draws, means, [L @ L.T for L in loadings])


def related(rng, degrees=None):
    """Group B shares a part of A's directions."""
    turn = (np.linalg.qr(rng.standard_normal((D, D)))[0] for _ in range(2))
    A, own = (Q * 2 * 0.75 ** np.arange(D) for Q in turn)
    return mixed([A, 0.6 * A + 0.72 * own], [np.zeros(D), 0.3 * rng.standard_normal(D)], degrees)


def unrelated(rng, degrees=None):
    """The groups have directions of their own, and no direction stands out."""
    turn = (np.linalg.qr(rng.standard_normal((D, D)))[0] for _ in range(2))
    A, B = (Q * np.sqrt(np.linspace(2, 0.5, D)) for Q in turn)
    return mixed([A, 1.1 * B], [np.zeros(D), 0.2 * rng.standard_normal(D)], degrees)


def lognormal(rng):
    """Twelve skewed features: exponentials of Gaussian ones."""
    d = 12
    first, own = (
        np.linalg.qr(rng.standard_normal((d, d)))[0] * np.sqrt(np.linspace(1.2, 0.2, d))
        for _ in range(2)
    )
    loadings = [0.7 * first, 0.7 * (0.6 * first + 0.8 * own)]

    def draw(rng, n, L):
        return np.exp(rng.standard_normal((n, d)) @ L.T)

    means = [np.exp(np.diag(L @ L.T) / 2) for L in loadings]
    spreads = [np.outer(m, m) * np.expm1(L @ L.T) for m, L in zip(means, loadings, strict=True)]
    return Population([partial(draw, L=L) for L in loadings], means, spreads)


def clusters(rng):
    """Four clusters in twelve features, of which the groups have different shares."""
    d = 12
    centers, noise = 2 * rng.standard_normal((4, d)), np.linspace(1.5, 0.5, d)
    shares = [np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])]

    def draw(rng, n, p):
        return centers[rng.choice(4, n, p=p)] + noise * rng.standard_normal((n, d))

    means = [p @ centers for p in shares]
    spreads = [
        (centers - m).T @ (p[:, None] * (centers - m)) + np.diag(noise**2)
        for p, m in zip(shares, means, strict=True)
    ]
    return Population([partial(draw, p=p) for p in shares], means, spreads)


@dataclass(frozen=True)
class Setting:
    """A kind of population, the sizes of its groups, and the number of components."""

    make: Callable
    rows: str
    sizes: tuple[int, int] = (300, 100)
    rank: int = R

    def population(self, seed):
        """A new population for every 20 data sets."""
        return self.make(np.random.default_rng(seed // 20))


TAILS = {"Gaussian": None, "Student's t with 5 degrees of freedom": 5.0}
SKEWED = {
    "lognormal": Setting(lognormal, "lognormal", (160, 40), 2),
    "clusters": Setting(clusters, "in clusters", (160, 40), 2),
}
SETTINGS = {
    f"{make.__name__} {name.split()[0].lower()}": Setting(partial(make, degrees=degrees), name)
    for make in (related, unrelated)
    for name, degrees in TAILS.items()
} | SKEWED


def hits(setting, seed):
    """Which intervals of one data set hold the truth, by method and quantity."""
    rng, population = np.random.default_rng([seed, 1]), setting.population(seed)
    X, codes = population.draw(rng, setting.sizes), np.repeat([0, 1], setting.sizes)
    moments = GroupMoments.from_data(X, codes, folds=FOLDS)
    found = {}
    for name, constraint in METHODS.items():
        both = FairPCA(setting.rank, alpha=1.0), FairPCA(setting.rank, constraint=constraint)

        def fit(moments, both=both):
            with quietly():
                return [model.fit(moments) for model in both]

        sums = []
        for fold in range(FOLDS):
            fit_to, judge = moments.split(fold)
            bases = [model.components_.T for model in fit(fit_to)]
            sums_of_both = fit_to.group_sums(), judge.group_sums()
            pair = fold_of(*sums_of_both, np.ones(2, bool), standardize=False)
            errors, variation = pair.left_out.errors(bases, pair.mean)
            sums.append((errors, pair.left_out.weights, variation))
        held_out = HeldOut(*map(np.array, zip(*sums, strict=True)), odds=1 / (FOLDS - 1))
        pca, fair = fit(moments)
        A, B = (pca.groups_.tolist().index(g) for g in (pca.privileged_group_, pca.harmed_group_))
        before, after = population.errors(pca), population.errors(fair)
        change, sides = after - before, Sides(np.ones(2, bool), B, A)
        changes = held_out.interval(lambda totals: totals.changes[1])
        of_D = held_out.interval(lambda t, A=A, B=B: t.changes[1, B] - t.changes[1, A])
        truths = {
            "D of PCA": (before[B] - before[A], disparity_interval(held_out, 0, sides)),
            "D of fair PCA": (after[B] - after[A], disparity_interval(held_out, 1, sides)),
            "change of A": (change[A], [end[A] for end in changes]),
            "change of B": (change[B], [end[B] for end in changes]),
            "change of D": (change[B] - change[A], of_D),
        }
        found[name] = {
            what: low <= truth <= high for what, (truth, (_, low, high)) in truths.items()
        }
    return found


def holds_worst_case(setting, seed):
    """Whether no mixture of the groups has a larger error than ``FairPCACV`` allows for."""
    rng, population = np.random.default_rng([seed, 1]), setting.population(seed)
    X, codes = population.draw(rng, setting.sizes), np.repeat([0, 1], setting.sizes)
    with quietly():
        fair = FairPCACV(setting.rank, cv=FOLDS).fit(X, sensitive_features=codes)
    return population.errors(fair).max() <= fair.worst_case_error_upper_


def coverage(options, name):
    """Share of data sets whose interval holds the truth."""
    setting, n = SETTINGS[name], options.pick(500, 4)
    found = [hits(setting, seed) for seed in range(n)]
    worst_case = np.mean([holds_worst_case(setting, seed) for seed in range(n)])
    for method in METHODS:
        yield {
            "rows": f"{sum(setting.sizes)}, {name.split()[0]}, {setting.rows}",
            "fair PCA": method,
            "data sets": str(n),
            **{
                what: f"{np.mean([one[method][what] for one in found]):.3f}"
                for what in found[0][method]
            },
            "worst case of FairPCACV": f"{worst_case:.3f}",
        }


CASES = {name: partial(coverage, name=name) for name in SETTINGS}


def main(arguments=None):
    run_cases(__doc__, CASES, TABLE, arguments)


if __name__ == "__main__":
    main()
