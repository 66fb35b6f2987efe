"""The first step of every fit: from rows and groups to moments."""

from __future__ import annotations

from typing import Any

from fairpca._input.device import is_dask
from fairpca._input.joint import NumericTarget
from fairpca._input.labels import encode_cells
from fairpca._input.rows import as_rows
from fairpca._moments.group_moments import GroupMoments, moments_of_rows
from fairpca._moments.implicit import ImplicitMoments

_GRAMS_UP_TO = 5000  # features


def learn(
    X: Any, groups: Any, sample_weight: Any = None, target: Any = None
) -> GroupMoments | ImplicitMoments:
    """The moments of each group, or of each pair of a group and an outcome where ``target`` is.

    With very many features, the rows themselves stand in for them.
    """
    if is_dask(X):
        return GroupMoments.from_data(X, groups, sample_weight, target)
    rows = as_rows(X)
    if rows.n_features > _GRAMS_UP_TO:
        if isinstance(target, NumericTarget):
            raise ValueError(
                f"with {rows.n_features} features a target must be classes, but y holds numbers; "
                "pass classes, for example y > threshold, or fewer features."
            )
        cells = groups if target is None else encode_cells(groups, target, rows.n_rows)
        return ImplicitMoments(rows, cells, sample_weight)
    return moments_of_rows(rows, groups, sample_weight, target)


def check_grams(n_features: int) -> None:
    """Refuse folds of more features than Gram matrices are formed for."""
    if n_features > _GRAMS_UP_TO:
        raise ValueError(
            f"cv needs a matrix of {n_features} x {n_features} for every group of every fold, and "
            f"is there for up to {_GRAMS_UP_TO} features; pass fewer columns, or cv=None."
        )
