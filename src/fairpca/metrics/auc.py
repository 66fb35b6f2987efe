"""AUC of cross-fitted guesses, its standard error and its interval."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from scipy.stats import rankdata

from fairpca._typing import Array, Codes, Mask


def cross_fitted_auc(chances: Array, codes: Codes, fold: NDArray[Any]) -> tuple[float, float]:
    """AUC over pairs within folds, and its standard error.

    For more than two groups, the mean of the AUC of each against the rest. The error is that of
    DeLong et al. (1988), from the *placements* of rows, which are summed over these AUCs row by row
    because the AUCs depend on each other. So do the folds, whose probes were fitted to each other's
    rows: where there is nothing to tell, each pair of rows counts twice, with either one in
    training, and the variance is twice that for given probes. With several folds it is doubled,
    which is too much where the groups are easily told apart.
    """
    k = chances.shape[1]
    each = [1] if k == 2 else range(k)
    areas, shares = [], np.zeros(len(codes))
    for g in each:
        placements = _placements(chances[:, g], codes == g, fold)
        known = ~np.isnan(placements)
        if not known.any():
            raise ValueError(
                "no fold tests rows of several groups, so there is nothing to tell apart; pass "
                "another cv, such as an integer."
            )
        areas.append(float(placements[known & (codes == g)].mean()))
        for part in (known & (codes == g), known & (codes != g)):
            shares[part] += (placements[part] - areas[-1]) / (part.sum() * len(each))
    own = [shares[codes == g] for g in range(k)]
    variance = sum(len(part) * np.var(part, ddof=1) if len(part) > 1 else 0.25 for part in own)
    several = len(np.unique(fold)) > 1
    return float(np.mean(areas)), float(np.sqrt(variance * (2 if several else 1)))


def _placements(values: Array, positive: Mask, fold: NDArray[Any]) -> Array:
    """The share of the other class's rows of its fold that each row is on the right side of."""
    placements = np.full(len(values), np.nan)
    for i in np.unique(fold):
        here = np.flatnonzero(fold == i)
        up, down = here[positive[here]], here[~positive[here]]
        if not (len(up) and len(down)):
            continue
        overall = rankdata(values[np.r_[up, down]])
        placements[up] = (overall[: len(up)] - rankdata(values[up])) / len(down)
        placements[down] = 1 - (overall[len(up) :] - rankdata(values[down])) / len(up)
    return placements


def auc_interval(auc: float, error: float, fewest: int, confidence: float) -> tuple[float, float]:
    """Symmetric on the scale of log odds, so that it stays within 0 and 1.

    If all rows are told apart, what is known is that none of the smallest group was guessed wrong:
    with 95 % confidence that happens to at most about 3 in ``fewest``.
    """
    certain = float((1 - confidence) ** (1 / fewest))
    if auc <= 0 or auc >= 1:
        return (certain, 1.0) if auc >= 1 else (0.0, 1 - certain)
    half = float(ndtri(0.5 + confidence / 2)) * error / (auc * (1 - auc))
    return float(expit(logit(auc) - half)), float(expit(logit(auc) + half))
