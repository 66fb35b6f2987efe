"""Groups too small for an interval: whether chance alone describes so few units so badly.

========  ==================================================================
symbol    meaning
========  ==================================================================
m, m'     mean error of the units of the group, and of those it is compared with
s, s'     standard errors of these means
t         ``(m - m') / sqrt(s^2 + s'^2)``
========  ==================================================================

The errors are dealt to the units anew, many times; p is the share of these deals whose t is as
large. Dividing by the standard errors matters: without it the test errs in 13 to 18 % of groups of
25 units beside 2,000, where 2.5 % are wanted; with it in 2 to 4 %.
"""

from __future__ import annotations

import numpy as np

from fairpca._audit.crossed import Crossed
from fairpca._audit.setup import LEAST, Setup
from fairpca._typing import Array, Codes

_DEALS = 1999


def p_values(setup: Setup, crossed: Crossed) -> dict[int, float]:
    """For each group that is too small to be judged, how often chance alone is as bad."""
    people = setup.people
    if people is None or not setup.too_small.any():
        return {}
    figures = np.stack([crossed.errors[0], crossed.distances])
    codes, weights, (errors, distances) = people.by_unit(crossed.rows, figures)
    if setup.by_share:
        k = len(setup.judged)
        variation = np.bincount(codes, weights * distances, k) / np.bincount(codes, weights, k)
        errors = errors / np.maximum(variation, LEAST)[codes]
    found = {}
    for g in np.flatnonzero(setup.too_small).tolist():
        seen = np.flatnonzero((codes == g) | setup.others[g][codes])
        own = np.flatnonzero(codes[seen] == g)
        rng = np.random.default_rng(setup.seed)
        found[g] = permutation_p(errors[seen], weights[seen], own, rng)
    return found


def permutation_p(errors: Array, weights: Array, own: Codes, rng: np.random.Generator) -> float:
    """The share of deals in which the units at ``own`` are as much worse off."""
    n = len(errors)
    errors = errors / max(float(np.average(errors, weights=weights)), LEAST)
    sums = np.stack([weights, weights * errors, weights**2])
    sums = np.concatenate([sums, sums[2] * errors * np.stack([np.ones(n), errors])])
    deals = np.array([rng.choice(n, len(own), replace=False) for _ in range(_DEALS)])
    deals = np.concatenate([own[np.newaxis], deals])
    inside = np.array([figure[deals].sum(axis=1) for figure in sums])
    mean, variance = _mean_and_variance(inside)
    other_mean, other_variance = _mean_and_variance(sums.sum(axis=1)[:, np.newaxis] - inside)
    t = (mean - other_mean) / np.sqrt(np.maximum(variance + other_variance, LEAST))
    return float(np.count_nonzero(t >= t[0] - 1e-12) / len(t))


def _mean_and_variance(sums: Array) -> tuple[Array, Array]:
    """The weighted mean and its variance, from sums of w, we, w^2, w^2 e and w^2 e^2."""
    total, first, squares, crossed, second = sums
    mean = first / total
    return mean, (second - 2 * mean * crossed + mean**2 * squares) / total**2
