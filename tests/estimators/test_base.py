"""An estimator that is no projection gets learning, streams, small groups and files for nothing."""

from typing import Annotated

import numpy as np
import pytest
from helpers.data import make_groups
from helpers.inside import GroupEstimator, numbers
from sklearn.exceptions import NotFittedError

import fairpca
from fairpca import GroupMoments, load_model

pl = pytest.importorskip("polars")


class MeanDifferences(GroupEstimator):
    """How far each group's mean is from that of all rows."""

    differences_: Annotated[np.ndarray, numbers("kd")]

    def __init__(self, *, standardize=False, min_group_size=1, small_groups="error"):
        self.standardize = standardize
        self.min_group_size = min_group_size
        self.small_groups = small_groups

    def _solve(self, settled):
        return settled.moments.means - settled.moments.mean

    def _set_result(self, settled, result):
        self.differences_ = result


X, GROUPS = make_groups((90, 60, 5), d=4)


@pytest.fixture
def fitted():
    ignoring = MeanDifferences(standardize=True, min_group_size=6, small_groups="ignore")
    return ignoring.fit(X, sensitive_features=GROUPS)


def test_every_way_to_fit_gives_the_same(fitted):
    expected = [X[g == GROUPS].mean(axis=0) - X.mean(axis=0) for g in fitted.groups_]
    np.testing.assert_allclose(fitted.differences_ * X.std(axis=0), expected, atol=1e-12)
    assert (fitted.group_sizes_.tolist(), fitted.small_groups_) == ([90, 60, 5], ["g2"])
    np.testing.assert_allclose(fitted.mean_, X.mean(axis=0))
    np.testing.assert_allclose(fitted.scale_, X.std(axis=0))
    new = MeanDifferences(**fitted.get_params())
    with pytest.raises(NotFittedError):
        new._ready()
    for rows in np.array_split(np.argsort(GROUPS, kind="stable"), 3):  # the first: one group only
        new.partial_fit(X[rows], sensitive_features=GROUPS[rows])
    for fit in (lambda: new, lambda: new.fit(GroupMoments.from_data(X, GROUPS))):
        np.testing.assert_allclose(fit().differences_, fitted.differences_, atol=1e-12)


def test_it_is_saved_with_its_own_shapes(fitted, tmp_path, monkeypatch):
    pytest.importorskip("safetensors", reason="model files need safetensors")
    monkeypatch.setattr(fairpca, "MeanDifferences", MeanDifferences, raising=False)
    monkeypatch.setattr(fairpca, "__all__", [*fairpca.__all__, "MeanDifferences"])
    fitted.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.get_params() == fitted.get_params()
    np.testing.assert_array_equal(again.differences_, fitted.differences_)
    fitted.differences_ = fitted.differences_[:, 1:]
    with pytest.raises(ValueError, match=r"differences_ must be an array of shape \(3, 4\)"):
        fitted.save(tmp_path / "m")
