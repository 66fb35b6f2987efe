"""Rows that every source must treat as the rows in memory are treated."""

import numpy as np
from conftest import make_groups


def unequal_groups():
    """Four columns and 700 rows of two groups, one column with a large offset."""
    X, groups = make_groups((490, 210), d=4)
    return X + np.array([0, 5, -1, 1e3]), groups


def assert_same_moments(moments, expected):
    assert moments.groups.tolist() == expected.groups.tolist()
    np.testing.assert_array_equal(moments.counts, expected.counts)
    np.testing.assert_allclose(moments.weights, expected.weights, rtol=1e-12)
    np.testing.assert_allclose(moments.means, expected.means, rtol=1e-10)
    C = expected.second_moments()
    np.testing.assert_allclose(
        moments.second_moments(), C, rtol=1e-10, atol=1e-10 * np.abs(C).max()
    )
