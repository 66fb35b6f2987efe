"""The first step of a fit."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.data import assert_same, make_groups
from helpers.inside import ImplicitMoments, Input, implicit, products_only, rows

from fairpca import FairPCA, GroupMoments


def test_moments_of_few_features_and_products_of_many(monkeypatch):
    X, groups = make_groups(d=4)
    assert_same(implicit.learn(Input(X, groups)), GroupMoments.from_data(X, groups))
    products_only(monkeypatch, above=3)
    assert isinstance(implicit.learn(Input(X, groups)), ImplicitMoments)


@pytest.mark.parametrize("make", [sp.csc_array, np.asarray, pd.DataFrame])
def test_rows_are_wrapped_once(make, monkeypatch):
    """A matrix in another format than CSR is converted once."""
    wrapped = []
    for kind in (rows.ArrayRows, rows.FrameRows, rows.SparseRows):
        wrap = kind.__init__

        def count(self, X, wrap=wrap):
            wrapped.append(X)
            wrap(self, X)

        monkeypatch.setattr(kind, "__init__", count)
    X, groups = make_groups(d=4)
    given = make(X)
    if isinstance(given, pd.DataFrame):
        given.columns = list("abcd")
    FairPCA(2).fit(given, sensitive_features=groups)
    assert len(wrapped) == 1
