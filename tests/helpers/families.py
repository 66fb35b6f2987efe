"""Families of groups' second moments, and every problem on them as a call of ours."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from fairpca._solvers.many_groups.dual import minimise_maximum, minimise_spread

CASES = int(os.environ.get("FAIRPCA_CASES", "1"))


@dataclass(frozen=True)
class Point:
    weights: np.ndarray
    basis: np.ndarray
    errors: np.ndarray
    bound: float


class Dense:
    """A family held as matrices."""

    def __init__(self, matrices, shares, rank):
        self.matrices = np.asarray(matrices, dtype=float)
        self.matrices.setflags(write=False)
        self.shares = np.asarray(shares, dtype=float)
        self.shares.setflags(write=False)
        self.traces = np.trace(self.matrices, axis1=1, axis2=2)
        self.traces.setflags(write=False)
        self.rank = rank
        self.n_features = self.matrices.shape[1]

    def top(self, weights):
        values, vectors = np.linalg.eigh(np.tensordot(weights, self.matrices, 1))
        basis = vectors[:, -self.rank :]
        bound = float(weights @ self.traces - values[-self.rank :].sum())
        return Point(weights, basis, self.errors(basis), bound)

    def errors(self, basis):
        return self.traces - np.einsum("gij,ir,jr->g", self.matrices, basis, basis, optimize=True)

    def products(self, V):
        return self.matrices @ V


def family(matrices, rank, shares=None):
    k = len(matrices)
    return Dense(
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
    return Dense([(X - mean).T @ (X - mean) / len(X) for X in groups], sizes / sizes.sum(), rank)


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
    return Dense(matrices, sizes / sizes.sum(), int(rng.integers(1, 4)))


def diagonal(seed, k, d, rank):
    """Crossings of eigenvalues everywhere; some variances zero."""
    rng = np.random.default_rng(seed)
    variances = rng.uniform(0.1, 5.0, (k, d)) * (rng.random((k, d)) < 0.8)
    sizes = rng.integers(30, 200, k)
    return Dense([np.diag(v) for v in variances], sizes / sizes.sum(), rank)


def random_family(seed, kind):
    if kind == "alike":
        return alike(seed)
    rng = np.random.default_rng(10_000 + seed)
    k, d = int(rng.integers(3, 9)), int(rng.integers(4, 21))
    rank = int(rng.integers(1, d))
    return diagonal(seed, k, d, rank) if kind == "diagonal" else sampled(seed, k, d, rank)


def least_errors(fam):
    return np.array([fam.top(w).errors[g] for g, w in enumerate(np.eye(len(fam.traces)))])


# Every problem, as a call of ours; `reference` states the same to cvxpy.
CALLS = {
    "spread": lambda fam, pca: minimise_spread(fam),
    "no_worse": lambda fam, pca: minimise_spread(fam, cap=float(pca.errors.max())),
    "max_spread": lambda fam, pca: minimise_spread(fam, max_spread=0.5 * float(np.ptp(pca.errors))),
    "max_error": lambda fam, pca: minimise_spread(
        fam, max_error=1.05 * float(fam.shares @ pca.errors)
    ),
    "error": lambda fam, pca: minimise_maximum(fam),
    "loss": lambda fam, pca: minimise_maximum(fam, offsets=least_errors(fam)),
    "variance": lambda fam, pca: minimise_maximum(fam, scales=1.0 / fam.traces),
}


def relative_gap(fam, solution):
    """Gap relative to the value, or to the variance where the value is next to nothing."""
    least = 1e-3 if solution.objective == "maximum" and solution.value < 1.0 else None
    return solution.gap / max(abs(solution.value), least or 1e-3 * float(fam.traces.max()))
