"""What MinMaxPCA minimises, by definition."""

from __future__ import annotations

import numpy as np

from fairpca.datasets import make_two_groups

CRITERIA = ("loss", "error", "variance")


def made(seed=0, d=5, n=(80, 50)):
    """Groups of different size, mean and shape."""
    rng = np.random.default_rng(seed)
    bunch = make_two_groups(n, n_features=d, shift=2.0, random_state=seed)
    X = bunch.data @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    X[: n[0]] *= 0.5 + rng.random(d)
    return X, bunch.sensitive_features


def matrices(X, groups, center):
    labels = np.unique(groups)
    overall = X.mean(axis=0)
    rows = [X[groups == g] - (X[groups == g].mean(axis=0) if center == "group" else overall)
            for g in labels]  # fmt: skip
    return [Z.T @ Z / len(Z) for Z in rows]


def offsets(C, r, criterion):
    if criterion == "variance":
        return [np.trace(M) for M in C]
    return [np.linalg.eigvalsh(M)[:-r].sum() if criterion == "loss" else 0.0 for M in C]


def criterion_of(C, fair, r, criterion):
    errors = [np.trace(M) - np.trace(fair.components_ @ M @ fair.components_.T) for M in C]
    return max(np.subtract(errors, offsets(C, r, criterion)))
