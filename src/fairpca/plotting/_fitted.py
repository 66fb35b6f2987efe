"""What the displays ask a fitted estimator for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairpca._estimators.base import FairProjection
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.small_groups import SettledGroups


def kept_groups(estimator: FairProjection) -> SettledGroups:
    """The moments of a fitted estimator, by its groups."""
    moments = getattr(estimator, "moments_", None)
    if moments is None:
        raise ValueError(
            f"this {type(estimator).__name__} holds no moments (not fitted, or loaded from a "
            "file); fit it, or use from_data with the rows."
        )
    return estimator._settle(moments)


def kept_moments(estimator: FairProjection) -> GroupMoments:
    """The same, without what the estimator compares."""
    moments = kept_groups(estimator).moments
    assert isinstance(moments, GroupMoments)
    return moments


def feature_names_of(projection: Any) -> list[str]:
    """The names of the columns it was fitted to, or x0, x1, ..."""
    names = getattr(projection, "feature_names_in_", None)
    return [f"x{j}" for j in range(projection.n_features_in_)] if names is None else list(names)


def named_features(feature_names: Sequence[str], n_features: int) -> list[str]:
    """The names as a list; refused unless there is one for each feature."""
    if len(feature_names) != n_features:
        raise ValueError(
            f"{len(feature_names)} feature names for {n_features} features; pass one for each."
        )
    return list(feature_names)
