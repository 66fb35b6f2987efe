"""Families of groups' second moments, and every problem on them as a call of ours."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
from helpers.inside import (
    Eigenspaces,
    FairProblem,
    Operand,
    solve_pareto,
    solve_spread,
    solve_worst,
)

CASES = int(os.environ.get("FAIRPCA_CASES", "1"))


def spaces_of(matrices, shares, rank):
    return Eigenspaces(Operand(np.asarray(matrices, dtype=float), np.asarray(shares)), rank)


def family(matrices, rank, shares=None):
    k = len(matrices)
    return spaces_of(
        matrices, np.arange(1, k + 1) / (k * (k + 1) / 2) if shares is None else shares, rank
    )


def scatter(rng, d, n):
    A = rng.normal(size=(d, n))
    return A @ A.T / n


def sampled(seed, k, d, rank, difference=1.0):
    """Second moments of groups with unequal sizes, means and covariances."""
    rng = np.random.default_rng(seed)
    decay = np.exp(-np.arange(d) / 5.0)
    common = rng.normal(size=(d, d)) * decay
    sizes = rng.integers(30, 200, k)
    groups = []
    for n in sizes:
        mix = common + difference * rng.normal(size=(d, d)) * decay
        shift = 0.7 * rng.normal(size=d)
        groups.append(rng.uniform(0.8, 1.25) * rng.normal(size=(n, d)) @ mix.T + shift)
    mean = np.vstack(groups).mean(axis=0)
    return spaces_of(
        [(X - mean).T @ (X - mean) / len(X) for X in groups], sizes / sizes.sum(), rank
    )


def alike(seed):
    """Up to three components of groups with one decaying spectrum in common, as tables have them.

    Each group deviates by a tenth in its loadings and its scale, and in its mean.
    """
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(3, 9)), int(rng.integers(8, 21))
    decay = np.arange(1, d + 1) ** -0.5
    common = np.linalg.qr(rng.normal(size=(d, d)))[0] * 3 * decay
    groups = []
    for n in rng.integers(200, 2000, k):
        loadings = common + 0.1 * rng.normal(size=(d, d)) * decay
        X = rng.uniform(0.9, 1.1) * rng.normal(size=(n, d)) @ loadings.T
        groups.append(X + 0.3 * rng.normal(size=d))
    sizes = np.array([len(X) for X in groups])
    mean = np.vstack(groups).mean(axis=0)
    matrices = [(X - mean).T @ (X - mean) / len(X) for X in groups]
    return spaces_of(matrices, sizes / sizes.sum(), int(rng.integers(1, 4)))


def diagonal(seed, k, d, rank):
    """Crossings of eigenvalues everywhere; some variances zero."""
    rng = np.random.default_rng(seed)
    variances = rng.uniform(0.1, 5.0, (k, d)) * (rng.random((k, d)) < 0.8)
    sizes = rng.integers(30, 200, k)
    return spaces_of([np.diag(v) for v in variances], sizes / sizes.sum(), rank)


def random_family(seed, kind):
    if kind == "alike":
        return alike(seed)
    rng = np.random.default_rng(10_000 + seed)
    k, d = int(rng.integers(3, 9)), int(rng.integers(4, 21))
    rank = int(rng.integers(1, d))
    return diagonal(seed, k, d, rank) if kind == "diagonal" else sampled(seed, k, d, rank)


def least_errors(fam):
    return np.array([fam.top(w).errors[g] for g, w in enumerate(np.eye(len(fam.traces)))])


def least_share(fam):
    """The least largest share of variance lost; errors as they are."""
    operand = Operand(fam.matrices, fam.shares).relative()
    solution = solve_worst(Eigenspaces(operand, fam.rank), "error")
    return replace(solution, errors=fam.errors(solution.basis))


# Every problem, as a call of ours; `reference` states the same to cvxpy.
CALLS = {
    "spread": lambda fam, pca: solve_spread(fam, FairProblem()),
    "no_worse": lambda fam, pca: solve_spread(fam, FairProblem(constraint="no_worse")),
    "max_spread": lambda fam, pca: solve_spread(
        fam, FairProblem(max_disparity=0.5 * float(np.ptp(pca.errors)))
    ),
    "max_error": lambda fam, pca: solve_spread(fam, FairProblem(max_error_increase=0.05)),
    "efficient": lambda fam, pca: solve_pareto(fam, FairProblem(constraint="efficient")),
    "error": lambda fam, pca: solve_worst(fam, "error"),
    "loss": lambda fam, pca: solve_worst(fam, "loss"),
    "variance": lambda fam, pca: least_share(fam),
}


def relative_gap(fam, solution):
    """Gap relative to the value, or to the variance where the value is next to nothing."""
    least = 1e-3 if solution.objective == "worst" and solution.value < 1.0 else None
    return solution.gap / max(abs(solution.value), least or 1e-3 * float(fam.traces.max()))
