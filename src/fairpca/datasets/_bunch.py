"""What every loader returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from fairpca._typing import Array

_STANDARDIZED = (
    " Columns were standardised over all rows kept (standard deviation with n - 1), groups not "
    "re-centred."
)


def described(name: str) -> str:
    """Source, licence and columns of a table."""
    path = Path(__file__).parent / "descriptions" / f"{name}.txt"
    return " ".join(path.read_text(encoding="utf-8").split())


def make_bunch(
    data: Array,
    sensitive: NDArray[np.str_],
    feature_names: list[str],
    description: str,
    *,
    balanced: bool = False,
    standardize: bool = False,
    **fields: Any,
) -> Bunch:
    """Balance, then standardise the remaining rows, then put the fields together.

    Balanced data have the first rows of each group, as many as the smaller group has.
    """
    if balanced:
        n = int(np.unique(sensitive, return_counts=True)[1].min())
        firsts = [np.flatnonzero(sensitive == group)[:n] for group in np.unique(sensitive)]
        rows = np.sort(np.concatenate(firsts))
        data, sensitive = data[rows], sensitive[rows]
        fields = {name: values[rows] for name, values in fields.items()}
        description += f" Balanced: the first {n} rows of each group."
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
