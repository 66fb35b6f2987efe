"""The first step of every fit: from rows and groups to moments."""

from typing import Any

from fairpca._input.device import ENTRIES_AT_A_TIME, is_dask
from fairpca._input.rows import NumericTarget, Rows, as_rows
from fairpca._moments.few_rows import are_few
from fairpca._moments.group_moments import GroupMoments, moments_of_rows
from fairpca._moments.implicit import ImplicitMoments

_GRAMS_UP_TO = 5000  # features
_FEW_ROWS = 1000  # With more features, a copy of up to this many rows is cheap to decompose.


def learn(
    X: Any, groups: Any, sample_weight: Any = None, target: Any = None
) -> GroupMoments | ImplicitMoments:
    """The moments of each group and outcome, or the rows instead if moments would be too large."""
    if is_dask(X):
        return GroupMoments().update(X, groups, sample_weight, target)
    rows = as_rows(X)
    if not forms_grams(rows):
        if isinstance(target, NumericTarget):
            problem = f"with {rows.n_features} features a target must be classes, not numbers"
            raise ValueError(f"{problem}; pass fewer features, or classes such as y > threshold.")
        return ImplicitMoments(rows, groups, sample_weight, target)
    return moments_of_rows(rows, groups, sample_weight, target)


def forms_grams(rows: Rows) -> bool:
    """Whether Gram matrices are formed: for not too many columns, or for few rows."""
    n, d = rows.n_rows, rows.n_features
    few = are_few(n, d) and n <= _FEW_ROWS and n * d <= 8 * ENTRIES_AT_A_TIME
    return d <= _GRAMS_UP_TO or few


def check_grams(rows: Rows) -> None:
    """Refuse cross-validation where Gram matrices are not formed."""
    if not forms_grams(rows):
        problem = f"cross-validation works for up to {_GRAMS_UP_TO} features, not {rows.n_features}"
        remedy = "pass fewer columns, or do without it (FairPCA, or tradeoff_path without cv)"
        raise ValueError(f"{problem}; {remedy}.")
