"""More than two groups: the price of a fit, the solver's speed, and how often its gap closes.

Run ``python -m benchmarks.many_groups``; it prints three tables and writes them to
docs/benchmarks_many_groups.csv.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import softmax
from sklearn.decomposition import PCA

from benchmarks._harness import race, write_table
from fairpca import DualityGapWarning, FairPCA, GroupMoments, MinMaxPCA, ParityInfeasibleWarning
from fairpca._dual import minimise_maximum
from fairpca._eigensolver import EigenSolver
from fairpca._spectral import DenseOperand

TABLE = Path(__file__).parent.parent / "docs" / "benchmarks_many_groups.csv"
CRITERIA = {
    "parity": FairPCA(constraint=None),
    "no worse": FairPCA(),
    "error budget": FairPCA(max_error_increase=0.05),
    "loss": MinMaxPCA(),
    "error": MinMaxPCA(criterion="error"),
    "variance": MinMaxPCA(criterion="variance"),
}


def made_data(n, d, k):
    """Groups of unequal size that share most of a decaying spectrum."""
    rng = np.random.default_rng(0)
    groups = rng.choice(k, n, p=np.arange(1, k + 1) / (k * (k + 1) / 2))
    X = rng.standard_normal((n, d)) * (3 * np.arange(1, d + 1) ** -0.5)
    turns = [np.linalg.qr(np.eye(d) + 0.1 * rng.standard_normal((d, d)))[0] for _ in range(k)]
    for start in range(0, n, 4096):
        for g in range(k):
            rows = start + np.flatnonzero(groups[start : start + 4096] == g)
            X[rows] = X[rows] @ turns[g]
    return X, groups


def compare_with_pca(n, d, k, r, rounds):
    X, groups = made_data(n, d, k)
    timing = race(
        {
            "PCA": lambda: PCA(r).fit(X),
            "FairPCA": lambda: FairPCA(r).fit(X, sensitive_features=groups),
            "MinMaxPCA": lambda: MinMaxPCA(r).fit(X, sensitive_features=groups),
        },
        rounds,
    )
    for name in ("FairPCA", "MinMaxPCA"):
        yield {
            "what": f"{name} / PCA, {n:,} x {d}, {k} groups, r = {r}",
            "figure": f"{timing.ratio(name, 'PCA'):.2f}",
            "detail": f"{timing.seconds[name]:.3f} s / {timing.seconds['PCA']:.3f} s",
        }


def made_operand(d, k):
    """Second moments with forty directions in common and twenty of each group's own."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal((d, 40)) * np.arange(1, 41) ** -0.5
    C = np.empty((k, d, d))
    for g in range(k):
        own = rng.standard_normal((d, 20)) * np.arange(1, 21) ** -0.5
        C[g] = common @ common.T + own @ own.T + 0.1 * np.eye(d)
    sizes = rng.integers(100, 1000, k)
    return DenseOperand(C, sizes / sizes.sum())


def multiplicative_weights(family, least, eta, gap, most):
    """Rounds until the average projection is within a relative gap of the bound, or None.

    The average has no rank r, so this is kinder to the method than asking for a projection.
    """
    k = len(family.shares)
    logarithms, total, bound = np.zeros(k), np.zeros(k), -np.inf
    for rounds in range(1, most + 1):
        weights = softmax(logarithms)
        point = family.top(weights)
        losses = point.errors - least
        total += losses
        bound = max(bound, point.bound - float(weights @ least))
        value = (total / rounds).max()
        if value - bound <= gap * value:
            return rounds
        logarithms += eta / value * losses
    return None


def compare_solvers(d, k, r, gap, etas=(0.3, 1.0, 3.0), most=600):
    """Least largest loss: the dual solver against multiplicative weights, best of some steps.

    What a projection of its own would give each group is found beforehand, for both.
    """
    operand = made_operand(d, k)
    solver = EigenSolver(operand, r)
    least = solver.solve_whole(
        lambda family: np.array([family.top(e).errors[g] for g, e in enumerate(np.eye(k))])
    )
    before = solver.n_eigensolves
    start = time.perf_counter()
    found = solver.solve_whole(lambda family: minimise_maximum(family, offsets=least, tol=1e-6))
    ours, n_eigensolves = time.perf_counter() - start, solver.n_eigensolves - before
    rounds, seconds = {}, {}
    for eta in etas:
        start = time.perf_counter()
        rounds[eta] = solver.solve_whole(
            lambda family, eta=eta: multiplicative_weights(family, least, eta, gap, most)
        )
        seconds[eta] = time.perf_counter() - start
    reached = [eta for eta in etas if rounds[eta]]
    best = min(reached or etas, key=lambda eta: seconds[eta])
    return {
        "what": f"multiplicative weights / ours, d = {d}, {k} groups, r = {r}, gap {gap:g}",
        "figure": f"{'' if reached else 'over '}{seconds[best] / ours:.1f}",
        "detail": f"{seconds[best]:.2f} s, {rounds[best] or most} rounds with step {best:g} / "
        f"{ours:.2f} s, {n_eigensolves} eigensolves, relative gap {found.gap / found.value:.1e}",
    }


def gap_shares(name, cases, apart, diagonal=False):
    """How often the gap is below 1e-6 of the largest variance, k = 3 to 8, d up to 20."""
    closed = dict.fromkeys(CRITERIA, 0)
    for seed in range(cases):
        rng = np.random.default_rng(seed)
        k, d = int(rng.integers(3, 9)), int(rng.integers(4, 21))
        r = int(rng.integers(1, d))
        shared = rng.standard_normal((d, d)) * np.exp(-np.arange(d) / 5)
        moments = GroupMoments()
        for g in range(k):
            mixing = shared + apart * rng.standard_normal((d, d)) * np.exp(-np.arange(d) / 5)
            X = rng.standard_normal((int(rng.integers(30, 200)), d)) @ mixing.T
            if diagonal:  # every row once with each sign in each column, as far as moments go
                X = np.vstack([np.diag(row) * np.sqrt(d) for row in X])
                X = np.vstack([X, -X])
            moments.update(X, np.full(len(X), g))
        for criterion, estimator in CRITERIA.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ParityInfeasibleWarning)
                warnings.simplefilter("error", DualityGapWarning)
                try:
                    estimator.set_params(n_components=r).fit_moments(moments)
                except DualityGapWarning:
                    continue
            closed[criterion] += 1
    for criterion, count in closed.items():
        yield {
            "what": f"gap closed, {name}, {criterion}",
            "figure": f"{count / cases:.3f}",
            "detail": f"{cases} random problems",
        }


def main() -> None:
    rows = []

    def add(new):
        for row in new:
            print(*row.values(), sep="; ", flush=True)
            rows.append(row)

    add(gap_shares("groups alike", 200, apart=0.3))
    add(gap_shares("groups unlike", 200, apart=1.0))
    add(gap_shares("uncorrelated columns", 100, apart=1.0, diagonal=True))
    add([compare_solvers(1000, 16, 3, 1e-3)])
    add(compare_with_pca(1_000_000, 50, 10, 10, rounds=5))
    write_table(rows, TABLE)


if __name__ == "__main__":
    main()
