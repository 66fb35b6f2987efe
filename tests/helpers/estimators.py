"""For scikit-learn's common checks, which fit without groups: read them off the rows."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse


def groups_of_rows(X):
    """Two groups by the content of each row, so that copies of a row stay in one group."""
    block = X.toarray() if issparse(X) else np.asarray(X)
    try:
        block = np.nan_to_num(np.abs(block).astype(float), posinf=0)
    except (TypeError, ValueError):  # no numbers, which is for the estimator to say
        block = np.arange(float(len(block)))
    block = block.reshape(len(block), -1 if block.size else 0)
    digits = np.floor(block.sum(axis=1) * 1e3) % 2
    if len(set(digits.tolist())) == 1 and len(digits) > 1 and block.size:
        digits = (block[:, 0] > np.median(block[:, 0])).astype(float)
    return digits


class GroupsFromRows:
    """Mixin for an estimator that needs ``sensitive_features``."""

    def fit(self, X, y=None, *, sample_weight=None):
        return super().fit(X, y, sensitive_features=groups_of_rows(X), sample_weight=sample_weight)

    def partial_fit(self, X, y=None, *, sample_weight=None):
        groups = groups_of_rows(X)
        return super().partial_fit(X, y, sensitive_features=groups, sample_weight=sample_weight)

    def fit_transform(self, X, y=None, *, sample_weight=None):
        return self.fit(X, y, sample_weight=sample_weight).transform(X)
