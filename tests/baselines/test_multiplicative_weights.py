"""The published iteration, step by step, and against the exact solver."""

from __future__ import annotations

import numpy as np
from helpers.worst_off import made, matrices

from fairpca import MinMaxPCA
from fairpca.baselines import MultiplicativeWeightsPCA


def test_multiplicative_weights_follow_the_published_iteration():
    X, groups = made(3)
    C = matrices(X, groups, "group")
    r, eta, T = 2, 0.7, 6
    best = [np.linalg.eigvalsh(M)[-r:].sum() for M in C]
    w, average = np.array([0.5, 0.5]), 0.0
    for _ in range(T):
        U = np.linalg.eigh(w[0] * C[0] + w[1] * C[1])[1][:, -r:]
        losses = np.array([best[g] - np.trace(U.T @ C[g] @ U) for g in (0, 1)])
        average = average + U @ U.T / T
        w = w * np.exp(eta * losses)
        w /= w.sum()
    V = np.linalg.eigh(average)[1][:, -r:]
    averaged = np.array([best[g] - np.trace(V.T @ C[g] @ V) for g in (0, 1)])
    wanted = min(averaged, losses, key=max)
    fair = MultiplicativeWeightsPCA(r, eta=eta, n_iter=T)
    fair.fit(X, sensitive_features=groups)
    np.testing.assert_allclose(fair.group_losses_, wanted, atol=1e-12)
    assert fair.status_ == "multiplicative weights ended"


def test_multiplicative_weights_approach_the_exact_value_and_never_pass_it():
    X, groups = made(1)
    exact = MinMaxPCA(2, center="overall").fit(X, sensitive_features=groups).group_losses_.max()
    gaps = []
    for T in (1, 10, 200):
        fair = MultiplicativeWeightsPCA(2, center="overall", eta=0.1, n_iter=T)
        fair.fit(X, sensitive_features=groups)
        gaps.append(fair.group_losses_.max() - exact)
        assert fair.duality_gap_ >= gaps[-1] - 1e-12 >= -2e-12
    assert gaps[0] > gaps[1] > gaps[2]
    large = MultiplicativeWeightsPCA(2, center="overall", eta=1e6)  # exp would overflow
    assert np.isfinite(large.fit(X, sensitive_features=groups).components_).all()
