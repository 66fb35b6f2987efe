"""Coordinates in a complement: an orthonormal basis of it, and second moments without the rest."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.inside import Complement, Operand


@pytest.mark.parametrize("kind", ["random", "first axes", "last axes", "none", "all"])
def test_an_orthonormal_basis_of_the_complement(kind):
    rng = np.random.default_rng(0)
    d, m = 7, {"none": 0, "all": 7}.get(kind, 3)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0][:, :m]
    if kind.endswith("axes"):
        Q = -np.eye(d)[:, :m] if kind == "first axes" else np.eye(d)[:, -m:]
    without = Complement(Q)
    N = without.lift(np.eye(d - m))
    assert N.shape == (d, d - m)
    np.testing.assert_allclose(N.T @ N, np.eye(d - m), atol=1e-14)
    np.testing.assert_allclose(Q.T @ N, 0, atol=1e-14)
    W = rng.normal(size=(d, 4))
    np.testing.assert_allclose(without.reduce(W), N.T @ W, atol=1e-13)


def test_the_variance_outside_is_lost_by_every_group():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(2, 6, 6))
    operand = Operand(A @ A.transpose(0, 2, 1), np.array([0.3, 0.7]))
    without = Complement(np.linalg.qr(rng.normal(size=(6, 2)))[0])
    inside = without.inside(operand)
    V = np.linalg.qr(rng.normal(size=(4, 2)))[0]
    np.testing.assert_allclose(inside.errors(V), operand.errors(without.lift(V)), rtol=1e-12)
