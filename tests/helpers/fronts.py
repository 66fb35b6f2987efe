"""Fronts of subsets by definition, and what holds of each."""

from __future__ import annotations

import math

import numpy as np


def objectives(lambdas, deltas, subset):
    left = [j for j in range(len(lambdas)) if j not in set(subset)]
    return math.fsum(lambdas[j] for j in left), math.fsum(deltas[j] for j in left) ** 2


def made(d, seed):
    rng = np.random.default_rng(seed)
    return np.sort(rng.gamma(1.0, size=d))[::-1], rng.normal(size=d)


def shares(bunch):
    """Eigenvalues of C, and v_j' (C_B - C_A) v_j."""
    X = bunch.data - bunch.data.mean(axis=0)
    mask = bunch.sensitive_features == bunch.groups[0]
    C_A, C_B = (X[rows].T @ X[rows] / rows.sum() for rows in (mask, ~mask))
    values, V = np.linalg.eigh(mask.mean() * C_A + (~mask).mean() * C_B)
    return values[::-1], np.einsum("ij,ij->j", V, (C_B - C_A) @ V)[::-1]


def check(front, lambdas, deltas, r):
    """What holds for every front."""
    assert front.subsets.shape == (len(front), r)
    assert (np.diff(front.subsets, axis=1) > 0).all()
    assert (np.diff(front.errors) > 0).all()
    assert (np.diff(front.fairness) < 0).all()
    for subset, R, F in zip(front.subsets, front.errors, front.fairness, strict=True):
        expected = objectives(lambdas, deltas, subset.tolist())
        np.testing.assert_allclose((R, F), expected, rtol=1e-9, atol=1e-13)
