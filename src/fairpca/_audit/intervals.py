"""Confidence intervals for new rows, from held-out errors: of the disparity, of groups' changes.

With e_g the held-out errors of group g (:mod:`fairpca._audit.held_out`), the estimate of the
disparity between groups A and B and its standard error are

    D = mean(e_B) - mean(e_A),        se = sqrt(var(e_A) / n_A + var(e_B) / n_B + refits)

with what fitting again adds to the variance (:mod:`fairpca._audit.refits`),
and the interval is ``D +- q se``, the symmetric bootstrap-t: rows are drawn again within each
group, and the quantile q of ``|D* - D| / se*`` takes the place of the normal one, because squared
errors are skewed. It needs the errors only, one number per row, so a thousand resamples cost less
than one fit. Above 2000 rows a group's rows are first put at random into 2000 blocks, and the block
means are resampled.

With weights w, or errors relative to the squared distances t from the mean, the estimate of a group
is a ratio, ``rho = sum(w e) / sum(w t)`` (t = 1 where errors are not relative). Its rows enter by
their linear share in it, ``rho + (w e - rho w t) / mean(w t)``, which has the mean rho and the
variance that the ratio has for many rows: everything above applies to these values.

The spread of more than two groups is the largest of all their differences. Those get simultaneous
intervals, q being the quantile of the largest ``|D* - D| / se*`` of all pairs, and the spread lies
between the largest lower and the largest upper end: at least as often as the level says.

What a group gains or loses against PCA is a mean of paired changes, fair minus PCA, of the same
held-out rows. Most of the noise of single errors cancels. With more than two groups the intervals
of their changes are widened so that all of them hold together as often as the level says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from fairpca._typing import Array, Codes

MOST_UNITS = 2000  # rows or blocks of rows of one group that are resampled


@dataclass(frozen=True)
class Resampling:
    """How intervals are made: their level, and the resamples of the bootstrap."""

    level: float
    n_resamples: int
    rng: np.random.Generator

    def for_each_of(self, n: int) -> Resampling:
        """For one of n intervals that are to hold together (Bonferroni)."""
        return replace(self, level=1 - (1 - self.level) / n)


def group_ratios(errors: Array, totals: Array, codes: Codes) -> tuple[Array, Array]:
    """``sum(errors) / sum(totals)`` of each group, and the linear share of each row in it.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.array([0, 0, 1])
    >>> group_ratios(np.array([1.0, 3.0, 5.0]), np.array([2.0, 2.0, 10.0]), codes)
    (array([1. , 0.5]), array([0.5, 1.5, 0.5]))
    """
    sums, mean = np.bincount(codes, totals), np.bincount(codes, totals) / np.bincount(codes)
    ratios = np.divide(np.bincount(codes, errors), sums, out=np.zeros(len(sums)), where=sums > 0)
    residuals = errors - ratios[codes] * totals
    shares = np.divide(residuals, mean[codes], out=np.zeros(len(residuals)), where=mean[codes] > 0)
    return ratios, ratios[codes] + shares


def change_interval(
    changes: Array,
    how: Resampling,
    refit_variance: float = 0.0,
) -> tuple[float, float]:
    """Symmetric bootstrap-t interval of ``mean(changes)``: one group, two projections.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> low, high = change_interval(rng.normal(2, 1, 100), Resampling(0.95, 1000, rng))
    >>> bool(1.5 < low < 2 < high < 2.5)
    True
    """
    return disparity_interval(np.zeros(1), changes, how, refit_variance)


def disparity_interval(
    privileged: Array,
    harmed: Array,
    how: Resampling,
    refit_variance: float = 0.0,
) -> tuple[float, float]:
    """Symmetric bootstrap-t interval of ``mean(harmed) - mean(privileged)``.

    ``refit_variance`` is added to the squared standard error.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> errors = rng.normal(1, 1, 400), rng.normal(3, 1, 100)
    >>> low, high = disparity_interval(*errors, Resampling(0.95, 1000, rng))
    >>> bool(1.5 < low < 2 < high < 2.5)
    True
    """
    means = [_resample(errors, how) for errors in (privileged, harmed)]
    estimate = float(harmed.mean() - privileged.mean())
    variance = means[0].variance + means[1].variance + refit_variance
    width = _quantile(means, how.level) * float(np.sqrt(variance))
    return estimate - width, estimate + width


def spread_interval(
    groups: Sequence[Array],
    how: Resampling,
    refit_variances: Array | float = 0.0,
) -> tuple[float, float]:
    """Interval of the largest minus the smallest mean of several groups.

    ``refit_variances``, of shape (k, k), are added to the squared standard errors of differences.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> groups = [rng.normal(mean, 1, 400) for mean in (1, 2, 3)]
    >>> low, high = spread_interval(groups, Resampling(0.95, 1000, rng))
    >>> bool(1.7 < low < 2 < high < 2.3)
    True
    """
    means = [_resample(errors, how) for errors in groups]
    estimates = np.array([errors.mean() for errors in groups])
    variances = np.array([mean.variance for mean in means])
    quantile = _quantile(means, how.level)
    return ends_of_spread(
        estimates, quantile * np.sqrt(variances[:, None] + variances + refit_variances)
    )


def ends_of_spread(estimates: Array, widths: Array) -> tuple[float, float]:
    """The largest lower end, at least 0, and the largest upper end of all differences.

    ``widths``, of shape (k, k), are half those of the simultaneous intervals of the differences.

    Examples
    --------
    >>> import numpy as np
    >>> ends_of_spread(np.array([1.0, 2.0, 4.0]), np.full((3, 3), 0.5))
    (2.5, 3.5)
    """
    widths = widths * ~np.eye(len(estimates), dtype=bool)
    differences = estimates[:, None] - estimates
    return float((differences - widths).max()), float((differences + widths).max())


@dataclass(frozen=True)
class _ResampledMean:
    """The mean of one group's errors in resamples of its rows.

    Attributes
    ----------
    variance : float
        Squared standard error of the mean.
    departures, variances : ndarray of shape (n_resamples,)
        How far the mean of each resample is from that of the group, and its squared standard error.
    """

    variance: float
    departures: Array
    variances: Array


def _resample(errors: Array, how: Resampling) -> _ResampledMean:
    units = _block_means(errors, how.rng)
    n = len(units)
    drawn = units[how.rng.integers(0, n, (how.n_resamples, n))]
    means, variances = drawn.mean(axis=1), drawn.var(axis=1) / n
    return _ResampledMean(float(units.var()) / n, means - units.mean(), variances)


def _block_means(errors: Array, rng: np.random.Generator) -> Array:
    """The errors, or where there are many the means of random blocks of equal size."""
    size = -(-len(errors) // MOST_UNITS)
    if size == 1:
        return errors
    whole = len(errors) // size * size
    return np.asarray(rng.permutation(errors)[:whole].reshape(-1, size).mean(axis=1))


def _quantile(means: Sequence[_ResampledMean], level: float) -> float:
    """Quantile over the resamples of the largest ``|D* - D| / se*`` of all pairs of groups."""
    largest = np.full(len(means[0].departures), -1.0)
    for first, second in combinations(means, 2):
        variances = first.variances + second.variances
        # A resample may hold one row many times and have no spread: it says nothing about t.
        valid = variances > 1e-12 * (first.variance + second.variance)
        t = np.abs(first.departures - second.departures)[valid] / np.sqrt(variances[valid])
        largest[valid] = np.maximum(largest[valid], t)
    t_values = largest[largest >= 0]
    return float(np.quantile(t_values, level)) if len(t_values) else 0.0
