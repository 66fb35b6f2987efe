"""The first step of every fit: from rows and groups to moments."""

from typing import Any

from fairpca._input.device import ENTRIES_AT_A_TIME, is_dask
from fairpca._input.folds import FoldRule
from fairpca._input.rows import NumericTarget, as_rows
from fairpca._moments.few_rows import are_few
from fairpca._moments.group_moments import GroupMoments, moments_of_rows
from fairpca._moments.implicit import ImplicitMoments
from fairpca._typing import Codes

_GRAMS_UP_TO = 5000  # features
_FEW_ROWS = 1000  # With more features, a copy of up to this many rows is cheap to decompose.


def learn(
    X: Any,
    groups: Any,
    sample_weight: Any = None,
    target: Any = None,
    folds: FoldRule | Codes | None = None,
) -> GroupMoments | ImplicitMoments:
    """The moments by fold, outcome and group, or the rows instead if moments would be too large."""
    if is_dask(X):
        return GroupMoments().update(X, groups, sample_weight, target, folds=folds)
    rows = as_rows(X)
    n, d = rows.n_rows, rows.n_features
    few = are_few(n, d) and n <= _FEW_ROWS and n * d <= 8 * ENTRIES_AT_A_TIME
    if few or d <= _GRAMS_UP_TO:
        return moments_of_rows(rows, groups, sample_weight, target, folds)
    if folds is not None:
        problem = f"cross-validation works for up to {_GRAMS_UP_TO} features, not {d}"
        remedy = "pass fewer columns, or do without it (FairPCA, or tradeoff_path without cv)"
        raise ValueError(f"{problem}; {remedy}.")
    if isinstance(target, NumericTarget):
        problem = f"with {d} features a target must be classes, not numbers"
        raise ValueError(f"{problem}; pass fewer features, or classes such as y > threshold.")
    return ImplicitMoments(rows, groups, sample_weight, target)
