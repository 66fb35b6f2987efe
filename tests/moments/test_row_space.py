"""The space of a few rows: a table of n rows is a problem of n columns."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.data import make_groups
from helpers.inside import RowSpace, few_rows, products_only

from fairpca import FairPCA, FairPCACV, audit
from fairpca.exceptions import quietly

ROWS = {
    "full rank": lambda rng: rng.normal(size=(12, 50)),
    "centred": lambda rng: (Z := rng.normal(size=(12, 50))) - Z.mean(axis=0),
    "repeated": lambda rng: rng.normal(size=(5, 50))[[0, 1, 2, 3, 4, 0, 0, 2, 4, 1]],
    "far apart in size": lambda rng: rng.normal(size=(12, 50)) * np.geomspace(1e4, 1e-4, 50),
    "zero": lambda rng: np.zeros((6, 50)),
}


@pytest.mark.parametrize("kind", ROWS)
def test_coordinates_keep_lengths_and_angles(kind):
    rng = np.random.default_rng(0)
    Z = ROWS[kind](rng)
    space = RowSpace(Z)
    n, rank = len(Z), np.linalg.matrix_rank(Z, tol=1e-6 * np.abs(Z).max())
    B, Q = space.coordinates, space.axes
    size = float((Z**2).sum(axis=1).max())
    np.testing.assert_allclose(B @ B.T, Z @ Z.T, atol=4e-12 * size)
    np.testing.assert_allclose(Q.T @ Q, np.eye(n), atol=1e-12)
    np.testing.assert_allclose(B @ Q.T, Z, atol=4e-6 * np.sqrt(size))
    assert not B[:, rank:].any()
    turned = np.linalg.qr(rng.normal(size=(n, n)))[0][:, :4]
    lifted = space.lift(turned)
    np.testing.assert_allclose(lifted.T @ lifted, np.eye(4), atol=1e-13)
    np.testing.assert_allclose(space.reduce(lifted)[:rank], turned[:rank], atol=1e-6)
    np.testing.assert_allclose(Q @ turned @ turned.T @ Q.T, lifted @ lifted.T, atol=1e-6)


def turned_to_rows(X):
    """The same rows in coordinates of their own: as many columns as rows."""
    Z = X - X.mean(axis=0)
    left, sizes, _ = np.linalg.svd(Z, full_matrices=False)
    return left * sizes


@pytest.mark.parametrize("n", [(40, 25), (30, 20, 15)])
def test_a_wide_table_is_a_problem_of_as_many_columns_as_rows(n, monkeypatch):
    """Cross-validation takes more columns than matrices can have, if rows are few."""
    products_only(monkeypatch, 150)
    X, groups = make_groups(n, d=200, alike=0.5)
    small = turned_to_rows(X)
    with quietly():
        ours = FairPCACV(3, cv=4).fit(X, sensitive_features=groups)
        theirs = FairPCACV(3, cv=4).fit(small, sensitive_features=groups)
    assert ours.components_.shape == (3, 200)
    assert ours.stop_ == pytest.approx(theirs.stop_, abs=1e-6)
    for name in ("held_out_group_errors_", "held_out_pca_group_errors_", "group_errors_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-5)


def test_an_audit_of_a_wide_table_is_that_of_its_coordinates(monkeypatch):
    products_only(monkeypatch, 150)
    X, groups = make_groups((40, 25), d=200, alike=0.5)
    figures = []
    for table in (X, turned_to_rows(X)):
        found = audit(FairPCA(3), table, groups, cv=3, n_points=3, ranks=[2])
        figures.append([(g.baseline.error, g.alternative.error) for g in found.groups])
    np.testing.assert_allclose(*figures, rtol=1e-6)


def test_standardised_folds_of_few_rows_are_those_with_matrices(monkeypatch):
    """Scales differ by fold, and so do the coordinates."""
    X, groups = make_groups((40, 25), d=150, alike=0.5)
    X *= np.geomspace(0.1, 10, 150)
    with quietly():
        ours = FairPCACV(3, cv=4, standardize=True).fit(X, sensitive_features=groups)
        monkeypatch.setattr(few_rows, "FEW_FEATURES", np.inf)
        theirs = FairPCACV(3, cv=4, standardize=True).fit(X, sensitive_features=groups)
    assert ours.stop_ == pytest.approx(theirs.stop_, abs=1e-9)
    np.testing.assert_allclose(
        ours.held_out_group_errors_, theirs.held_out_group_errors_, rtol=1e-7
    )


def test_repeated_rows_leave_as_many_components_as_there_are_rows():
    X, groups = make_groups((8, 6), d=120)
    X = np.repeat(X, 3, axis=0)
    groups = np.repeat(groups, 3)
    fair = FairPCA(20).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(fair.components_ @ fair.components_.T, np.eye(20), atol=1e-10)
    np.testing.assert_allclose(fair.group_errors_, 0.0, atol=1e-9 * (X**2).sum(axis=1).mean())


def test_other_tables_of_very_many_columns_are_refused_with_folds(monkeypatch):
    products_only(monkeypatch, 150)
    X, groups = make_groups((60, 50), d=200)
    with pytest.raises(ValueError, match="half as many rows as features, not 110 x 200"):
        FairPCACV(2).fit(X, sensitive_features=groups)
