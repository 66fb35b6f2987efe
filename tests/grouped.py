"""For scikit-learn's common checks, which fit without groups: read them off the rows."""

from __future__ import annotations

from test_sklearn import groups_of_rows


class GroupsFromRows:
    """Mixin for an estimator that needs ``sensitive_features``."""

    def fit(self, X, y=None, *, sample_weight=None):
        return super().fit(X, sensitive_features=groups_of_rows(X), sample_weight=sample_weight)

    def partial_fit(self, X, y=None, *, sample_weight=None):
        groups = groups_of_rows(X)
        return super().partial_fit(X, sensitive_features=groups, sample_weight=sample_weight)

    def fit_transform(self, X, y=None, *, sample_weight=None):
        return self.fit(X, y, sample_weight=sample_weight).transform(X)
