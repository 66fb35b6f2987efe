"""The main job with the core dependencies alone; CI runs this file in a bare environment too."""

from __future__ import annotations

import numpy as np
from helpers.data import make_groups
from sklearn.decomposition import PCA

from fairpca import FairPCA, GroupMoments, tradeoff_path
from fairpca.datasets import load_diabetes_by_sex, make_two_groups
from fairpca.metrics import fairness_measure


def test_fit_transform_and_measure():
    X, groups = make_groups()
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    assert fair.transform(X).shape == (150, 2)
    assert fairness_measure(fair, X, groups) < 1e-20 < fairness_measure(PCA(2).fit(X), X, groups)


def test_moments_and_path():
    X, groups = make_groups()
    path = tradeoff_path(GroupMoments.from_data(X, groups), n_components=2, n_points=4)
    assert path.parity_reached
    np.testing.assert_allclose(path.disparity[-1], 0, atol=1e-12)


def test_bundled_data():
    people = load_diabetes_by_sex()
    fair = FairPCA(3).fit(people.data, sensitive_features=people.sensitive_features)
    assert fair.status_ == "parity reached"
    made = make_two_groups(random_state=0)
    assert len(made.data) == len(made.sensitive_features)
