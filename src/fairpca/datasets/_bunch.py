"""What every loader returns, put together in one place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

BALANCED = " Balanced: the first {n} rows of each group."
_STANDARDIZED = (
    " Columns were standardised over all rows kept (standard deviation with n - 1), groups not "
    "re-centred."
)


def rows_kept(sensitive: NDArray[np.str_], balanced: bool) -> NDArray[np.intp]:
    """Rows to keep, in the order of the file; balanced: the first n_min of each group."""
    if not balanced:
        return np.arange(len(sensitive))
    labels, counts = np.unique(sensitive, return_counts=True)
    firsts = [np.flatnonzero(sensitive == label)[: counts.min()] for label in labels]
    return np.sort(np.concatenate(firsts))


def make_bunch(
    data: NDArray[np.float64],
    sensitive: NDArray[np.str_],
    feature_names: list[str],
    description: str,
    *,
    balanced: bool = False,
    standardize: bool = False,
    **fields: Any,
) -> Bunch:
    """Balance, then standardise what is left, then put the fields together."""
    if balanced:
        rows = rows_kept(sensitive, balanced)
        data, sensitive = data[rows], sensitive[rows]
        fields = {name: values[rows] for name, values in fields.items()}
        description += BALANCED.format(n=len(rows) // 2)
    if standardize:
        data = (data - data.mean(axis=0)) / data.std(axis=0, ddof=1)
        description += _STANDARDIZED
    return Bunch(
        data=data,
        sensitive_features=sensitive,
        feature_names=feature_names,
        groups=np.unique(sensitive),
        description=description,
        DESCR=description,
        **fields,
    )
