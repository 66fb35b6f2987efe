"""RobustFairPCA."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.many_groups import several
from helpers.worst_off import made

from fairpca import GroupMoments, load_model
from fairpca.baselines import RobustFairPCA


def test_attributes_are_what_they_say():
    X, groups = made(n=(80, 50))
    fair = RobustFairPCA(2, radius=0.4, penalty=0.8).fit(X, sensitive_features=groups)
    rebuilt = fair.inverse_transform(fair.transform(X))
    errors = [((X - rebuilt)[groups == g] ** 2).sum(axis=1).mean() for g in fair.groups_]
    S = (np.sqrt(errors) + np.sqrt(0.4 / np.sqrt([80, 50]))) ** 2
    assert fair.group_robust_errors_ == pytest.approx(S)
    expected = (80 * S[0] + 50 * S[1]) / 130 + 0.8 * 50 / 130 * abs(S[0] - S[1])
    assert fair.robust_error_ == pytest.approx(expected)
    assert fair.duality_gap_ < 1e-10
    assert fair.status_ == "robust error at its least"


def test_alpha_is_the_weighting_it_is_optimal_for():
    X, groups = made()
    moments = GroupMoments.from_data(X, groups)
    robust = RobustFairPCA(2, radius=2.0).fit(moments)
    shares = robust.group_sizes_ / robust.group_sizes_.sum()
    A, B = (robust.groups_.tolist().index(g) for g in (robust.privileged_group_,
                                                       robust.harmed_group_))  # fmt: skip
    C = moments.second_moments()
    M = robust.alpha_ * np.tensordot(shares, C, 1) + (1 - robust.alpha_) * (C[B] - C[A])
    top = np.linalg.eigh(M).eigenvectors[:, -2:]
    np.testing.assert_allclose(top @ top.T, robust.components_.T @ robust.components_, atol=1e-6)


def test_more_than_two_groups_are_refused():
    X, groups = several()
    with pytest.raises(ValueError, match="two groups"):
        RobustFairPCA(2).fit(X, sensitive_features=groups)


@pytest.mark.parametrize("wrong", [{"radius": -1}, {"penalty": 1.1}, {"penalty": -0.1}])
def test_parameters_out_of_range_are_refused(wrong):
    X, groups = made()
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RobustFairPCA(2, **wrong).fit(X, sensitive_features=groups)


def test_partial_fit_and_model_files(tmp_path):
    pytest.importorskip("safetensors")
    X, groups = made()
    whole = RobustFairPCA(2).fit(X, sensitive_features=groups)
    parts = RobustFairPCA(2)
    for rows in np.array_split(np.arange(len(X)), 4):
        parts.partial_fit(X[rows], sensitive_features=groups[rows])
    assert parts.robust_error_ == pytest.approx(whole.robust_error_)
    whole.save(tmp_path / "model.safetensors")
    assert load_model(tmp_path / "model.safetensors").robust_error_ == whole.robust_error_
