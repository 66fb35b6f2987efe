"""Arrays of other libraries give what numpy arrays give."""

import numpy as np
import pytest
from helpers.data import assert_same_moments, unequal_groups
from helpers.inside import device as array_api

from fairpca import FairPCA, GroupMoments

X, SEX = unequal_groups()
CODES = (SEX == "g1").astype(np.int64)
LIBRARIES = ["torch", "array_api_strict"]


@pytest.fixture(params=LIBRARIES)
def xp(request):
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed")


@pytest.mark.parametrize("block", [64 * 4, 1 << 24])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments(xp, weighted, block, monkeypatch):
    monkeypatch.setattr(array_api, "ENTRIES_AT_A_TIME", block // 8)
    weights = np.arange(len(X)) % 4 * 0.5 if weighted else None
    given = None if weights is None else xp.asarray(weights)
    expected = GroupMoments.from_data(X, CODES, weights)
    for labels in (CODES, xp.asarray(CODES)):
        moments = GroupMoments.from_data(xp.asarray(X), labels, given)
        assert_same_moments(moments, expected)


@pytest.mark.parametrize("kind", ["float32", "int32", "bool"])
def test_sums_are_kept_in_double_precision(xp, kind):
    values = (X * 100).astype(kind)
    moments = GroupMoments.from_data(xp.asarray(values), SEX)
    assert_same_moments(moments, GroupMoments.from_data(values, SEX))


def test_fit_and_transform(xp):
    fair = FairPCA(2).fit(xp.asarray(X), sensitive_features=xp.asarray(CODES))
    expected = FairPCA(2).fit(X, sensitive_features=CODES)
    np.testing.assert_allclose(fair.components_, expected.components_, atol=1e-10)
    np.testing.assert_allclose(fair.group_errors_, expected.group_errors_, rtol=1e-10)
    assert fair.n_features_in_ == 4
    scores = fair.transform(xp.asarray(X))
    assert type(scores) is type(xp.asarray(X))
    np.testing.assert_allclose(np.asarray(scores), expected.transform(X), atol=1e-9)
    single = fair.transform(xp.asarray(X.astype(np.float32)))
    assert single.dtype == xp.float32
    for start in (0, 300):
        part = xp.asarray(X[start : start + 300])
        labels = xp.asarray(CODES[start : start + 300])
        fair.partial_fit(part, sensitive_features=labels)
    assert fair.group_sizes_.sum() == 1300


def test_inverse_transform(xp):
    fair = FairPCA(2).fit(X, sensitive_features=SEX)
    scores = fair.transform(X)
    rows = fair.inverse_transform(xp.asarray(scores))
    assert type(rows) is type(xp.asarray(X))
    np.testing.assert_allclose(np.asarray(rows), fair.inverse_transform(scores), atol=1e-12)
    assert fair.inverse_transform(xp.asarray(scores.astype(np.float32))).dtype == xp.float32
    with pytest.raises(ValueError, match=r"X has 4 features.* expecting 2"):
        fair.inverse_transform(xp.asarray(X))
    scores[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN in column 1, first in row 3"):
        fair.inverse_transform(xp.asarray(scores))


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")  # torch's, of CSR being in beta
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_sparse_tensors_are_refused(layout):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    sparse = getattr(torch.asarray(X), layout)()
    fair = FairPCA(2).fit(X, sensitive_features=SEX)
    for method in (fair.transform, lambda rows: GroupMoments.from_data(rows, SEX)):
        with pytest.raises(TypeError, match=r"sparse torch tensor .* pass X\.to_dense\(\)"):
            method(sparse)
    assert_same_moments(
        GroupMoments.from_data(sparse.to_dense(), SEX), GroupMoments.from_data(X, SEX)
    )


def test_what_is_refused(xp):
    broken = X.copy()
    broken[5, 2] = np.nan
    fair = FairPCA(2).fit(X, sensitive_features=SEX)
    with pytest.raises(ValueError, match="NaN in column 2, first in row 5"):
        GroupMoments.from_data(xp.asarray(broken), SEX)
    with pytest.raises(ValueError, match="NaN in column 2, first in row 5"):
        fair.transform(xp.asarray(broken))
    with pytest.raises(ValueError, match="3 features"):
        fair.transform(xp.asarray(X[:, :3]))
    with pytest.raises(ValueError, match="2D array"):
        GroupMoments.from_data(xp.asarray(X[:, 0]), SEX)
    with pytest.raises(ValueError, match="Complex"):
        GroupMoments.from_data(xp.asarray(X * 1j), SEX)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        GroupMoments.from_data(xp.asarray(X[:0]), SEX[:0])


def test_gradients_are_left_alone():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.asarray(X).requires_grad_()
    assert_same_moments(GroupMoments.from_data(tensor, SEX), GroupMoments.from_data(X, SEX))
    assert tensor.grad is None


def test_precision_that_is_not_there_is_missed():
    xp = pytest.importorskip("array_api_strict")

    class Float32Only:
        """Turns every request for float64 into float32, as JAX does by default."""

        float64 = xp.float32

        def asarray(self, values, dtype=None):
            return xp.asarray(values, dtype=xp.float32)

    rows = array_api.DeviceRows(xp.asarray(X))
    rows._xp = Float32Only()
    with pytest.raises(TypeError, match="jax_enable_x64"):
        rows.block(0, 2)
