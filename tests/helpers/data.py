"""Rows with groups of unequal sizes, means and covariances; moments that must agree."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.utils import Bunch


def make_groups(n=(90, 60), d=6, seed=0, alike=0.0):
    """Groups that differ in size, mean and covariance; ``alike`` ones share most of the latter."""
    rng = np.random.default_rng(seed)
    parts, shared = [], rng.normal(size=(d, d)) * np.linspace(2.0, 0.3, d)
    for g, size in enumerate(n):
        own = rng.normal(size=(d, d)) * np.linspace(2.0, 0.3, d)
        mixing = alike * (1 + 0.2 * g) * shared + (1 - alike) * own
        parts.append(rng.normal(size=(size, d)) @ mixing.T + g * rng.normal(size=d))
    X = np.vstack(parts)
    groups = np.repeat([f"g{i}" for i in range(len(n))], n)
    order = rng.permutation(len(X))
    return X[order], groups[order]


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


def assert_same(left, right, rtol=1e-12):
    assert left.groups.tolist() == right.groups.tolist()
    np.testing.assert_array_equal(left.counts, right.counts)
    np.testing.assert_allclose(left.weights, right.weights, rtol=rtol)
    scale = np.abs(right.second_moments()).max()
    np.testing.assert_allclose(left.means, right.means, rtol=rtol, atol=rtol * scale**0.5)
    np.testing.assert_allclose(
        left.second_moments(), right.second_moments(), rtol=rtol, atol=rtol * scale
    )


def diabetes_by_sex(prepare=True):
    """scikit-learn's diabetes data: 442 patients, nine columns, women and men, the progression."""
    source = load_diabetes(scaled=False)
    names = list(source.feature_names)
    sex = names.index("sex")
    data = np.delete(source.data, sex, axis=1)
    if prepare:
        data = (data - data.mean(axis=0)) / data.std(axis=0, ddof=1)
    groups = np.where(source.data[:, sex] == 1, "female", "male")
    return Bunch(
        data=data,
        sensitive_features=groups,
        feature_names=names[:sex] + names[sex + 1 :],
        groups=np.unique(groups),
        target=source.target,
    )
