"""Agreement with the results of the authors' own code on the paper's datasets."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from fairpca import FairPCA, GroupMoments
from fairpca.datasets import load_lfw, load_lsac, load_tcred
from fairpca.exceptions import quietly

pytestmark = pytest.mark.slow

LOADERS = {
    "tcred": lambda balanced: load_tcred(balanced=balanced),
    "lsac": lambda balanced: load_lsac(balanced=balanced),
    "lsac_without_other": lambda balanced: load_lsac(other="drop", balanced=balanced),
    "lfw": lambda balanced: load_lfw(balanced=balanced),
}
FIRST = {"tcred": "lower", "lsac": "black", "lsac_without_other": "black", "lfw": "female"}


@pytest.fixture(scope="module", params=[(n, b) for n in LOADERS for b in (False, True)], ids=str)
def case(request, reference_folder):
    """Moments of a dataset, the rows of the authors' results, and their group A."""
    name, balanced = request.param
    data = LOADERS[name](balanced)
    moments = GroupMoments.from_data(data.data, data.sensitive_features)
    file = reference_folder / f"{name}{'_balanced' if balanced else ''}.csv"
    with file.open() as lines:
        rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(lines)]
    rows = [row for row in rows if row["pca_rec"] > 1e-9]  # beyond the rank alpha is noise
    if name == "lfw":
        rows = [row for row in rows if row["r"] in (1, 3, 5, 12)]
    return moments, rows, FIRST[name]


def fit(moments, row, **options):
    with quietly():
        return FairPCA(int(row["r"]), **options).fit(moments)


def errors_as_published(fair, first):
    a = fair.groups_.tolist().index(first)
    return np.array([fair.reconstruction_error_, fair.group_errors_[a], fair.group_errors_[1 - a]])


def published(row, method):
    return np.array([row[f"{method}_rec"], row[f"{method}_recA"], row[f"{method}_recB"]])


@pytest.mark.parametrize(("method", "constraint"), [("u", "parity"), ("c", "no_worse")])
def test_golden_agrees(case, method, constraint):
    moments, rows, first = case
    for row in rows:
        fair = fit(moments, row, constraint=constraint, solver="golden")
        np.testing.assert_allclose(
            errors_as_published(fair, first), published(row, method), rtol=1e-6, err_msg=str(row)
        )
        np.testing.assert_allclose(
            errors_as_published(fit(moments, row, alpha=1.0), first), published(row, "pca")
        )


@pytest.mark.parametrize(("method", "constraint"), [("u", "parity"), ("c", "no_worse")])
def test_exact_is_at_least_as_good(case, method, constraint):
    moments, rows, _ = case
    scale = moments.second_moments().trace(axis1=1, axis2=2).max()
    noise = 1e-8  # PCA's errors in the files for LFW are off by 1.4e-9
    for row in rows:
        fair = fit(moments, row, constraint=constraint)
        R, D, alpha = fair.reconstruction_error_, fair.disparity_, fair.alpha_
        sure = max(min(alpha, 1 - alpha), 1e-3)
        assert abs(fair.duality_gap_) <= 1e-11 * scale / sure
        authors, authors_D = published(row, method), np.sqrt(row[f"{method}_F"])
        cap = fair.pca_group_errors_.max()
        if constraint == "no_worse":
            assert fair.group_errors_.max() <= cap + 1e-12 * scale
        # Where the authors' code exceeds the cap (by up to 1.3e-6) it gains at this rate.
        p_A = fair.group_sizes_[fair.groups_ == fair.privileged_group_] / fair.group_sizes_.sum()
        rate = alpha / (1 - alpha * (1 + p_A.item())) if fair.status_ == "capped" else 0.0
        gain = rate * max(authors[1:].max() - cap, 0.0)
        assert authors_D + gain + noise >= D
        if fair.status_ == "parity reached":
            assert abs(D) <= 1e-13 * scale
        if fair.status_ != "parity infeasible at this rank":
            worth = (1 - alpha) / alpha  # of a unit of disparity left, in units of R
            assert R + worth * D <= authors[0] + worth * authors_D + noise


def test_eigensolves_a_fit(case):
    moments, rows, _ = case
    if moments.n_features > 100:
        pytest.skip("the growing basis counts its small eigenproblems too")
    counts = [fit(moments, row, constraint="parity").n_eigensolves_ for row in rows]
    # The printed search takes 61. Near crossings single counts hang on the last digit of the data.
    assert np.mean(counts) <= 61 / 4
    assert max(counts) <= 61 / 2
