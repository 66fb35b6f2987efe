"""Rows of more than two groups, and every estimator for them."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import FairPCA, MinMaxPCA, WelfarePCA

QUIET = pytest.mark.filterwarnings(
    "ignore::fairpca.ParityInfeasibleWarning",
    "ignore::fairpca.DualityGapWarning",
    "ignore::fairpca.LevellingDownWarning",
)


SIZES = (90, 60, 40, 25)


#: Every way to compare groups, with a tolerance that makes the solver work for its digits.
ESTIMATORS = {
    "no worse": FairPCA(2, tol=1e-9),
    "parity": FairPCA(2, constraint="parity", tol=1e-9),
    "disparity budget": FairPCA(2, max_disparity=0.3, tol=1e-9),
    "error budget": FairPCA(2, max_error_increase=0.05, tol=1e-9),
    "relative": FairPCA(2, relative_errors=True, tol=1e-9),
    "loss": MinMaxPCA(2, center="overall", tol=1e-9),
    "error": MinMaxPCA(2, criterion="error", center="overall", tol=1e-9),
    "variance": MinMaxPCA(2, criterion="variance", center="overall", tol=1e-9),
    "own means": MinMaxPCA(2, tol=1e-9),
    "relative loss": MinMaxPCA(2, center="overall", relative_errors=True, tol=1e-9),
    "welfare": WelfarePCA(2, inequality_aversion=2, tol=1e-9),
}


def several(n=SIZES, d=6, seed=2, apart=0.3):
    """Groups near enough to each other for parity, unless they are set ``apart``."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(d, d)) * np.linspace(2.0, 0.3, d)
    parts = []
    for size in n:
        mixing = shared + apart * rng.normal(size=(d, d))
        parts.append(rng.normal(size=(size, d)) @ mixing.T + apart * rng.normal(size=d))
    X, groups = np.vstack(parts), np.repeat([f"g{i}" for i in range(len(n))], n)
    order = rng.permutation(len(X))
    return X[order], groups[order]


def open_gap():
    """Six groups so unlike that no projection of rank one attains the relaxation's value."""
    return several((60, 50, 40, 30, 20, 20), d=5, seed=4, apart=2.0)


def same(first, second, scale):
    """Same errors of every group, same certificate, up to rounding."""
    errors = dict(zip(first.groups_.tolist(), first.group_errors_, strict=True))
    for label, error in zip(second.groups_.tolist(), second.group_errors_, strict=True):
        assert error == pytest.approx(errors[label], abs=1e-8 * scale)
    assert second.status_ == first.status_
    assert second.duality_gap_ == pytest.approx(first.duality_gap_, abs=1e-8 * scale)
