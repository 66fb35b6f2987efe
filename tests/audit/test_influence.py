"""Rows that the disparity hangs on, against leaving them out by hand."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from fairpca import FairPCA, audit
from fairpca._audit.influence import LargestErrors, Sides, row_influence
from fairpca.exceptions import FewRowsWarning

QUICK = {"n_points": 3, "n_folds": 3, "n_resamples": 100, "ranks": [1]}


def influence_of(errors, codes, totals=None):
    totals = np.ones(len(errors)) if totals is None else totals
    largest = LargestErrors(np.arange(len(errors)), codes, errors, totals, totals).keep(1000)
    sums = (np.bincount(codes, values)[:2] for values in (errors, totals))
    return row_influence(largest, largest.weights, Sides((0, 1), *sums, len(errors)))


def test_rows_left_out_are_left_out():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [700, 300])
    errors = rng.pareto(1.5, 1000) * np.where(codes == 1, 2.0, 1.0)
    found = influence_of(errors, codes)
    sizes = np.bincount(codes)
    order = np.argsort(-errors / sizes[codes])
    for count, disparity in zip(found.left_out, found.disparity, strict=True):
        rest = np.setdiff1d(np.arange(1000), order[:count])
        means = [errors[rest][codes[rest] == g].mean() for g in (0, 1)]
        assert disparity == pytest.approx(means[1] - means[0])
    assert found.left_out.tolist() == [0, 1, 2, 3, 5, 7, 10]
    assert found.without(0.001) == found.disparity[1]
    D = found.disparity[0]
    for n, halved in ((found.n_half, True), (found.n_half - 1, False)):
        kept = np.sort(errors[codes == 1])[: 300 - n]
        assert (kept.mean() - errors[codes == 0].mean() <= D / 2) == halved
    assert found.rows.tolist() == [i for i in order if codes[i] == 1][: found.n_half]


def test_the_group_with_the_larger_error_makes_up_a_negative_disparity():
    codes = np.repeat([0, 1], [4, 4])
    found = influence_of(np.array([1.0, 1, 1, 9, 1, 1, 1, 1]), codes)
    assert found.disparity[0] == -2
    assert found.n_half == 1
    assert found.rows.tolist() == [3]


def test_no_rows_make_up_half_of_nothing():
    codes = np.repeat([0, 1], [4, 4])
    found = influence_of(np.ones(8), codes)
    assert found.n_half is None
    assert not found.sign_hangs_on_few


def test_weights_are_left_out_with_their_rows():
    rng = np.random.default_rng(0)
    codes, weights = np.repeat([0, 1], [30, 20]), rng.uniform(1, 3, 50)
    errors = rng.exponential(size=50) * weights * (1 + codes)
    found = influence_of(errors, codes, weights)
    out = np.argmax(errors / np.bincount(codes, weights)[codes])
    rest = np.delete(np.arange(50), out)
    means = [
        errors[rest][codes[rest] == g].sum() / weights[rest][codes[rest] == g].sum() for g in (0, 1)
    ]
    assert found.disparity[1] == pytest.approx(means[1] - means[0])


@cache
def one_wild_row():
    """The minority is calmer, but for one row."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["many", "few"], [300, 60])
    X = rng.normal(size=(360, 5)) * np.where(groups == "few", 0.8, 1.0)[:, None]
    X[333] = [0, 0, 0, 9, -9]
    return X, groups


def test_an_audit_names_the_row_that_decides():
    X, groups = one_wild_row()
    with pytest.warns(FewRowsWarning, match=r"without 1 of the 360 rows 'many' is"):
        result = audit(X, groups, FairPCA(2), standardize=False, **QUICK)
    found = result.influence.pca
    assert found.rows.tolist() == [333]
    assert found.n_half == 1
    assert found.sign_hangs_on_few
    held_out = result.cross_validation.pca
    assert abs(found.disparity[0]) == pytest.approx(np.ptp(held_out.group_errors))
    assert result.to_dict()["influence"]["pca"]["rows"] == [333]
