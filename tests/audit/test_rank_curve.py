"""Errors against the number of components."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import BlindPCA, FairPCA, GroupMoments, audit
from fairpca._audit.rank_curve import pca_errors_by_rank, rank_curve
from fairpca.datasets import load_diabetes_by_sex


def diabetes():
    return load_diabetes_by_sex(prepare=False)


def test_nothing_is_left_when_all_components_are_kept():
    moments = GroupMoments.from_data(diabetes().data * 1e6, diabetes().sensitive_features)
    errors = pca_errors_by_rank(moments)
    assert (errors[-1] == 0).all()
    assert (errors[:-1] > 0).all()


@pytest.mark.parametrize("normalize", [False, True])
def test_errors_of_pca_are_those_of_a_fit_at_each_rank(normalize):
    moments = GroupMoments.from_data(diabetes().data, diabetes().sensitive_features)
    curve = rank_curve(moments, FairPCA(1, normalize=normalize), [1, 4, 8])
    errors = pca_errors_by_rank(moments, normalize)
    assert curve.n_components.tolist() == [1, 4, 8]
    np.testing.assert_allclose(curve.pca, errors[[0, 3, 7]], rtol=1e-8)


def test_default_ranks_hold_the_one_chosen_and_few_others():
    rng = np.random.default_rng(0)
    moments = GroupMoments.from_data(rng.normal(size=(400, 50)), np.arange(400) % 2)
    ranks = rank_curve(moments, FairPCA(37, alpha=1.0), None).n_components.tolist()
    assert 37 in ranks
    assert len(ranks) <= 31
    assert ranks[0] == 1
    assert ranks[-1] == 50


@pytest.mark.parametrize("options", [{}, {"covariances": 1}, {"max_mean_gap": 0.01}])
def test_curve_ends_at_the_last_rank_that_the_estimator_can_do(options):
    bunch, blind = diabetes(), BlindPCA(3, **options)
    quick = {"n_points": 3, "n_folds": 2, "n_resamples": 20}
    ranks = audit(bunch.data, bunch.sensitive_features, blind, **quick).ranks.n_components
    last = int(ranks[-1])
    assert ranks.tolist() == [*range(1, last + 1)]
    moments = GroupMoments.from_data(bunch.data, bunch.sensitive_features).standardize()[0]
    BlindPCA(last, **options).fit_moments(moments)
    with pytest.raises(ValueError, match="components"):
        BlindPCA(last + 1, **options).fit_moments(moments)


def test_ranks_that_the_estimator_cannot_do_are_refused():
    moments = GroupMoments.from_data(diabetes().data, diabetes().sensitive_features)
    d = moments.n_features
    with pytest.raises(ValueError, match="too many"):
        rank_curve(moments, BlindPCA(3), [3, d])
    with pytest.raises(ValueError, match="too many"):
        rank_curve(moments, BlindPCA(d), None)
