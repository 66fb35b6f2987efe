"""The path between two subspaces."""

from __future__ import annotations

import numpy as np
from helpers.inside import SubspacePath
from helpers.two_groups import random_family


def test_path_between_subspaces():
    family = random_family(2, d=8, rank=3)
    rng = np.random.default_rng(1)
    U, V = (np.linalg.qr(rng.normal(size=(8, 3)))[0] for _ in range(2))
    path = SubspacePath(family, U, V)
    for s, end in ((0.0, U), (1.0, V)):
        np.testing.assert_allclose(path.basis(s) @ path.basis(s).T, end @ end.T, atol=1e-12)
    for s in np.linspace(0, 1, 7):
        basis = path.basis(s)
        np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
        np.testing.assert_allclose(path.errors(s), family.errors(basis), atol=1e-12)
    still = SubspacePath(family, U, U @ np.linalg.qr(rng.normal(size=(3, 3)))[0])
    np.testing.assert_allclose(still.basis(0.5) @ still.basis(0.5).T, U @ U.T, atol=1e-12)
