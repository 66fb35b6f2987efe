"""For scikit-learn's common checks, which fit without groups: read them off the rows."""

from __future__ import annotations

import zlib

import numpy as np
import scipy.sparse as sp


def groups_of(X):
    """A group that depends on nothing but the row; anything for input that will be refused."""
    rows = X.toarray() if sp.issparse(X) else np.asarray(X)
    try:
        rows = np.atleast_2d(rows).astype(float, casting="same_kind") + 0.0  # no negative zeros
    except (TypeError, ValueError):
        return np.arange(len(rows)) % 2
    return np.array([zlib.crc32(row.tobytes()) % 2 for row in rows])


class GroupsFromRows:
    """Mixin for an estimator that needs ``sensitive_features``."""

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, sensitive_features=groups_of(X), sample_weight=sample_weight)

    def partial_fit(self, X, y=None, sample_weight=None):
        return super().partial_fit(X, sensitive_features=groups_of(X), sample_weight=sample_weight)

    def fit_transform(self, X, y=None, sample_weight=None):
        return self.fit(X, y, sample_weight=sample_weight).transform(X)
