"""Rows with missing numbers, which medians stand in for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer

from fairpca._typing import Array, Codes, Mask


def medians_of(X: Array) -> Array:
    """The median of what is known in each column, as scikit-learn imputes it; NaN for nothing.

    Examples
    --------
    >>> import numpy as np
    >>> medians_of(np.array([[1.0, 5.0, np.nan], [2.0, np.nan, np.nan], [6.0, 7.0, np.nan]]))
    array([ 2.,  6., nan])
    """
    return np.asarray(SimpleImputer(strategy="median").fit(X).statistics_, dtype=np.float64)


class MissingNumbers:
    """Rows of which some numbers are missing, and the medians of the rows ``kept``.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features)
        All rows, filled in.
    """

    def __init__(self, X: Any, kept: Codes, names: Sequence[str]) -> None:
        if issparse(X):
            raise TypeError(
                "impute='median' is for arrays and data frames, and X is sparse; fill in its "
                "missing values first."
            )
        self._rows, self._medians = X[kept], medians_of(X[kept])
        if np.isnan(self._medians).any():
            name = names[int(np.isnan(self._medians).argmax())]
            raise ValueError(f"no value of column {name!r} is known; leave the column out.")
        self.values = np.where(np.isnan(X), self._medians, X)

    def filled_by(self, fitted: Mask) -> Array:
        """The rows kept, filled in with medians of those among them that are ``fitted`` to.

        Where none of these is known, with the median of all.
        """
        medians = medians_of(self._rows[fitted])
        medians = np.where(np.isnan(medians), self._medians, medians)
        return np.where(np.isnan(self._rows), medians, self._rows)
