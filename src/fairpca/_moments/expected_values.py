"""The values expected in place of missing ones, given those that a row has.

With mean ``m`` and second moments ``C`` about it, a row with the values ``x_o`` is completed by

    x_m = m_m + C_mo C_oo^-1 (x_o - m_o)

the linear prediction of least squared error. The group of the row is not needed. Rows that lack the
same columns are completed together.
"""

from itertools import pairwise

import numpy as np

from fairpca._typing import Array

_RIDGE = 1e-12  # of the average variance, so that redundant columns do no harm


def completed_rows(X: Array, mean: Array, C: Array) -> Array:
    """A copy of X in which expected values stand for NaN; a row of NaN becomes the mean."""
    missing = np.isnan(X)
    filled = X.copy()
    ridge = _RIDGE * max(float(np.trace(C)) / len(C), np.finfo(float).tiny)
    incomplete = np.flatnonzero(missing.any(axis=1))
    patterns, which = np.unique(missing[incomplete], axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    starts = np.searchsorted(which.ravel()[order], range(len(patterns) + 1))
    for lacking, (first, end) in zip(patterns, pairwise(starts.tolist()), strict=True):
        rows = incomplete[order[first:end]]
        seen = ~lacking
        C_oo = C[np.ix_(seen, seen)] + ridge * np.eye(int(seen.sum()))
        predictors = np.linalg.solve(C_oo, C[np.ix_(seen, lacking)])
        deviations = X[np.ix_(rows, np.flatnonzero(seen))] - mean[seen]
        filled[np.ix_(rows, np.flatnonzero(lacking))] = mean[lacking] + deviations @ predictors
    return filled
