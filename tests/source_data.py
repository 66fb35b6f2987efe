"""Rows that every source must treat as the rows in memory are treated."""

import numpy as np


def unequal_groups(n=700):
    """Four columns, two groups that differ in size, mean and directions, and a large offset."""
    rng = np.random.default_rng(0)
    sex = np.where(rng.random(n) < 0.3, "f", "m")
    X = rng.standard_normal((n, 4)) * [3, 2, 1, 1]
    X[sex == "f"] = X[sex == "f"][:, [1, 0, 3, 2]] * 0.7 + 2
    return X + np.array([0, 5, -1, 1e3]), sex


def assert_same_moments(moments, expected):
    assert moments.groups.tolist() == expected.groups.tolist()
    np.testing.assert_array_equal(moments.counts, expected.counts)
    np.testing.assert_allclose(moments.weights, expected.weights, rtol=1e-12)
    np.testing.assert_allclose(moments.means, expected.means, rtol=1e-10)
    C = expected.second_moments()
    np.testing.assert_allclose(
        moments.second_moments(), C, rtol=1e-10, atol=1e-10 * np.abs(C).max()
    )
