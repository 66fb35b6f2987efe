"""Products added in place by BLAS against numpy's."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from fairpca._moments import gram as _gram
from fairpca._moments.gram import add_gram, mirror


@pytest.fixture(params=["BLAS in place", "numpy"])
def _both_ways(request, monkeypatch):
    assert _gram._dsyrk_in_place is not None
    if request.param == "numpy":
        monkeypatch.setattr(_gram, "_dsyrk_in_place", None)


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("d", [1, 2, 33])
def test_sum_over_slices_is_the_product_of_all(order, d):
    Z = np.asarray(np.random.default_rng(d).normal(size=(50, d)), order=order)
    grams = np.zeros((2, d, d))
    for a, b in [(0, 1), (1, 20), (20, 50)]:
        add_gram(grams[1], Z[a:b])
    mirror(grams)
    np.testing.assert_allclose(grams[1], Z.T @ Z, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(grams[1], grams[1].T)
    np.testing.assert_array_equal(grams[0], 0)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_rows", [1, 2, 9])
def test_any_layout(order, n_rows):
    whole = np.asarray(np.random.default_rng(0).normal(size=(n_rows, 8)), order=order)
    for Z in (whole, whole[:, ::2], whole[::-1], np.broadcast_to(whole[:1], (4, 8)), whole[:, :1]):
        grams = np.zeros((1, Z.shape[1], Z.shape[1]))
        add_gram(grams[0], Z)
        mirror(grams)
        np.testing.assert_allclose(grams[0], Z.T @ Z, rtol=1e-13, atol=1e-13)


def test_unknown_integers_are_not_called(monkeypatch):
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule.restype = ctypes.py_object
    other = capsule(1, b"void (char *, char *, int64_t *)", None)
    monkeypatch.setattr(_gram.cython_blas, "__pyx_capi__", {"dsyrk": other})
    assert _gram._dsyrk() is None
