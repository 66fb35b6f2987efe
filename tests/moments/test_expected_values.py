"""Missing values are replaced by what the others predict."""

import numpy as np
from sklearn.linear_model import LinearRegression

from fairpca._moments.expected_values import completed_rows


def test_expected_values_are_those_of_a_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) @ rng.normal(size=(4, 4)) + 3
    mean, C = X.mean(axis=0), np.cov(X.T, bias=True)
    rows = X[:6].copy()
    rows[:3, 1] = np.nan
    rows[3:5, [0, 3]] = np.nan
    filled = completed_rows(rows, mean, C)
    for lacking, here in (([1], slice(0, 3)), ([0, 3], slice(3, 5))):
        seen = [j for j in range(4) if j not in lacking]
        model = LinearRegression().fit(X[:, seen], X[:, lacking])
        np.testing.assert_allclose(filled[here][:, lacking], model.predict(X[here][:, seen]))
    np.testing.assert_array_equal(filled[5], X[5])
    assert np.isnan(rows).any()


def test_a_row_without_values_is_the_mean():
    filled = completed_rows(np.full((2, 3), np.nan), np.array([1.0, 2.0, 3.0]), np.eye(3))
    np.testing.assert_array_equal(filled, [[1, 2, 3], [1, 2, 3]])


def test_columns_that_repeat_others_are_restored():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(200, 2))
    X = np.hstack([A, A])
    rows = X[:5].copy()
    rows[:, 3] = np.nan
    filled = completed_rows(rows, X.mean(axis=0), np.cov(X.T, bias=True))
    np.testing.assert_allclose(filled, X[:5], atol=1e-9)


def test_columns_that_never_vary_stay_at_the_mean():
    filled = completed_rows(np.array([[np.nan, 1.0]]), np.array([5.0, 1.0]), np.zeros((2, 2)))
    np.testing.assert_array_equal(filled, [[5.0, 1.0]])
