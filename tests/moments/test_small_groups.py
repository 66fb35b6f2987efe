"""Small groups: refused, merged or ignored."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.inside import products_only
from helpers.many_groups import QUIET, same, several
from sklearn.base import clone

from fairpca import FairPCA, GroupMoments, MinMaxPCA
from fairpca.metrics import group_reconstruction_errors


def test_small_groups_are_refused_by_name_and_size():
    X, groups = several()
    message = r"fewer than min_group_size=50 rows: 'g2' \(40 rows\), 'g3' \(25 rows\)"
    with pytest.raises(ValueError, match=message):
        FairPCA(2, min_group_size=50).fit(X, sensitive_features=groups)


def test_small_groups_merged_are_one_group():
    X, groups = several()
    merged = FairPCA(2, min_group_size=50, small_groups="merge").fit(X, sensitive_features=groups)
    by_hand = np.where(np.isin(groups, ["g2", "g3"]), "rest", groups)
    same(FairPCA(2).fit(X, sensitive_features=by_hand), merged, 1.0)
    assert merged.groups_.tolist() == ["g0", "g1", "rest"]
    assert merged.small_groups_ == ["g2", "g3"]
    assert merged.group_sizes_.tolist() == [90, 60, 65]


def test_merging_has_limits():
    X, groups = several()
    with pytest.raises(ValueError, match="small_groups='ignore'"):
        FairPCA(2, min_group_size=30, small_groups="merge").fit(X, sensitive_features=groups)
    taken = np.where(groups == "g0", "rest", groups)
    with pytest.raises(ValueError, match="already"):
        FairPCA(2, min_group_size=50, small_groups="merge").fit(X, sensitive_features=taken)


@QUIET
@pytest.mark.parametrize("min_group_size", [30, 50])
def test_small_groups_ignored_count_in_the_overall_error_only(min_group_size):
    X, groups = several()
    fair = FairPCA(2, min_group_size=min_group_size, small_groups="ignore", constraint="parity")
    fair.fit(X, sensitive_features=groups)
    compared = fair.group_sizes_ >= min_group_size
    assert fair.groups_.tolist() == ["g0", "g1", "g2", "g3"]
    assert fair.small_groups_ == fair.groups_[~compared].tolist()
    errors = list(group_reconstruction_errors(fair, X, groups).values())
    np.testing.assert_allclose(fair.group_errors_, errors, rtol=1e-9)
    assert fair.reconstruction_error_ == pytest.approx(
        group_reconstruction_errors(fair, X, np.zeros(len(X)))[0.0]
    )
    assert fair.status_ == "parity reached"
    assert np.ptp(fair.group_errors_[compared]) < 1e-9
    assert abs(fair.disparity_) < 1e-9
    # No better overall error among projections that are as fair: the bound is a proof.
    assert fair.duality_gap_ < 1e-6


def test_worst_case_over_the_groups_compared():
    X, groups = several()
    kept = groups != "g3"
    by_error = MinMaxPCA(2, criterion="error", center="overall")
    ignoring = clone(by_error).set_params(min_group_size=30, small_groups="ignore")
    ignoring.fit(X, sensitive_features=groups)
    centred = X - X.mean(axis=0)
    alone = GroupMoments.from_data(np.vstack([centred[kept], -centred[kept]]), [*groups[kept]] * 2)
    without = by_error.fit(alone)
    np.testing.assert_allclose(ignoring.group_errors_[:3], without.group_errors_, rtol=1e-6)


def test_groups_of_which_one_is_left_cannot_be_compared():
    X, groups = several()
    with pytest.raises(ValueError, match="one group only"):
        FairPCA(2, min_group_size=80, small_groups="ignore").fit(X, sensitive_features=groups)


@QUIET
@pytest.mark.parametrize("small_groups", ["merge", "ignore"])
def test_small_groups_without_matrices(small_groups, monkeypatch):
    X, groups = several(d=40)
    fair = FairPCA(2, min_group_size=50, small_groups=small_groups)
    errors = fair.fit(X, sensitive_features=groups).group_errors_
    products_only(monkeypatch, above=30)
    fair.fit(X, sensitive_features=groups)
    assert fair.small_groups_ == ["g2", "g3"]
    np.testing.assert_allclose(fair.group_errors_, errors, rtol=1e-6)


def test_all_groups_too_small():
    X, groups = several()
    ignoring = FairPCA(2, min_group_size=1000, small_groups="ignore")
    with pytest.raises(ValueError, match="no group large enough"):
        ignoring.fit(X, sensitive_features=groups)


@QUIET
@pytest.mark.parametrize("kind", [FairPCA, MinMaxPCA])
def test_a_share_of_the_variance_is_that_of_the_groups_compared(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8)) * np.geomspace(4, 0.1, 8)
    groups = ["alone", *("aab"[i % 3] for i in range(299))]
    X[0] = X.mean(axis=0)
    X[0, -1] += 1.0  # one person who differs from others where nobody else varies
    fair = kind(0.7, min_group_size=5, small_groups="ignore").fit(X, sensitive_features=groups)
    without = kind(0.7).fit(X[1:], sensitive_features=groups[1:])
    assert fair.n_components_ == without.n_components_ < 8
    compared = fair.groups_ != "alone"
    assert fair.group_explained_variance_ratio_[compared].min() >= 0.7
