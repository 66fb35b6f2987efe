"""Disparity on rows that were not fitted to, and an interval for it.

The question is what a fitted projection will do to new rows of the same population. In the rows it
was fitted to the answer is flattered: fair PCA has a disparity of exactly zero there, whatever it
is elsewhere, and PCA's errors are too small as well, most of all in the smaller group. Fitting
again in every bootstrap resample does not help, since each fit is fair to its own resample.

So every row gets its error from a projection fitted without it (cross-fitting; standardisation and
mean included), and the difference of the group means of these errors estimates the disparity on new
rows. With e_g the held-out errors of group g, the estimate and its standard error are

    D = mean(e_B) - mean(e_A),        se = sqrt(var(e_A) / n_A + var(e_B) / n_B)

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
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fairpca._estimators.base import FairProjection
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.small_groups import SettledGroups
from fairpca._progress import Step
from fairpca._typing import Array
from fairpca.exceptions import DualityGapWarning, ParityInfeasibleWarning
from fairpca.metrics import row_reconstruction_errors

MOST_UNITS = 2000  # rows or blocks of rows of one group that are resampled


def assign_folds(
    codes: NDArray[np.intp],
    n_folds: int | NDArray[np.intp],
    rng: np.random.Generator,
    before: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """A fold for each row, at random, every group spread as evenly as it can be.

    Groups may have different numbers of folds; ``before`` counts their rows in earlier blocks.
    """
    fold = np.empty(len(codes), np.intp)
    for g in np.unique(codes).tolist():
        members = rng.permutation(np.flatnonzero(codes == g))
        first = 0 if before is None else before[g]
        own = n_folds if isinstance(n_folds, int) else n_folds[g]
        fold[members] = (first + np.arange(len(members))) % own
    return fold


def fit_quietly(estimator: FairProjection, moments: GroupMoments) -> FairProjection:
    """Fit without the warnings, for callers that report ``status_`` and ``duality_gap_``."""
    with quietly():
        return estimator.fit_moments(moments)


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warnings of this library."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParityInfeasibleWarning)
        warnings.simplefilter("ignore", DualityGapWarning)
        yield


@dataclass(frozen=True)
class HeldOut:
    """What projections fitted without a row make of it; rows may be summed up in units.

    Attributes
    ----------
    errors : ndarray of shape (n_estimators, n_units)
        Weighted squared reconstruction errors.
    distances : ndarray of shape (n_units,)
        Weighted squared distances from the mean of the rows fitted to: errors of keeping nothing.
    weights : ndarray of shape (n_units,)
    codes : ndarray of shape (n_units,)
        The group of each unit.
    """

    errors: Array
    distances: Array
    weights: Array
    codes: NDArray[np.intp]


@dataclass(frozen=True)
class FoldFit:
    """Projections fitted without one fold, the last one that onto nothing."""

    scale: Array | None
    projections: list[SimpleNamespace]

    def errors(self, X: Any) -> Array:
        """Squared errors of rows of the fold, of shape (n_estimators + 1, n_rows)."""
        X = X if self.scale is None else divide_columns(X, self.scale)
        return np.array([row_reconstruction_errors(fitted, X) for fitted in self.projections])


def fit_folds(
    parts: Sequence[GroupMoments],
    estimators: Sequence[FairProjection],
    standardize: bool,
    compared: NDArray[np.bool_] | None,
) -> Generator[Step, None, list[FoldFit]]:
    """Fit to all moments but those of one fold, for each fold; groups are called by their codes.

    Yields what is being done. The estimators are refitted in place. Which groups are ``compared``
    is said for all folds, in which there are fewer rows than in the whole.
    """
    fits = []
    for k in range(len(parts)):
        yield Step("cross-validation", k, len(parts))
        moments, scale = reduce(GroupMoments.merge, [*parts[:k], *parts[k + 1 :]]), None
        if standardize:
            moments, scale = moments.standardize()
        here = np.ones(len(moments.groups), bool) if compared is None else compared[moments.groups]
        projections = []
        for estimator in estimators:
            with quietly():
                estimator._fit_settled(moments, SettledGroups(moments, here, []))
            projections.append(
                SimpleNamespace(components_=estimator.components_, mean_=estimator.mean_)
            )
        nothing = SimpleNamespace(components_=np.empty((0, moments.n_features)), mean_=moments.mean)
        fits.append(FoldFit(scale, [*projections, nothing]))
    return fits


def cross_fit(
    X: Any,
    codes: NDArray[np.intp],
    fold: NDArray[Any],
    estimators: Sequence[FairProjection],
    standardize: bool,
    *,
    sample_weight: Array | None = None,
    compared: NDArray[np.bool_] | None = None,
) -> Generator[Step, None, HeldOut]:
    """Squared error of each row under projections fitted to the other folds.

    X, an array or CSR matrix, is read once for the moments and once for the errors; the rest is
    said under :func:`fit_folds`.
    """
    n_folds = int(fold.max()) + 1
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    parts = [
        GroupMoments.from_data(X[fold == k], codes[fold == k], weights[fold == k])
        for k in range(n_folds)
    ]
    fits = yield from fit_folds(parts, estimators, standardize, compared)
    errors = np.empty((len(estimators) + 1, len(codes)))
    for k, fit in enumerate(fits):
        errors[:, fold == k] = fit.errors(X[fold == k])
    errors *= weights
    return HeldOut(errors[:-1], errors[-1], weights, codes)


def divide_columns(X: Any, scale: Array) -> Any:
    """An array or sparse matrix with each column divided by its scale."""
    is_sparse: bool = sp.issparse(X)
    return X @ sp.diags_array(1.0 / scale) if is_sparse else X / scale


def group_ratios(errors: Array, totals: Array, codes: NDArray[np.intp]) -> tuple[Array, Array]:
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
    rest = errors - ratios[codes] * totals
    shares = np.divide(rest, mean[codes], out=np.zeros(len(rest)), where=mean[codes] > 0)
    return ratios, ratios[codes] + shares


def disparity_interval(
    favoured: Array, harmed: Array, level: float, n_resamples: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Symmetric bootstrap-t interval of ``mean(harmed) - mean(favoured)``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> low, high = disparity_interval(
    ...     rng.normal(1, 1, 400), rng.normal(3, 1, 100), 0.95, 1000, rng
    ... )
    >>> bool(1.5 < low < 2 < high < 2.5)
    True
    """
    estimate = float(harmed.mean() - favoured.mean())
    square, departures, squares = 0.0, np.zeros(n_resamples), np.zeros(n_resamples)
    for sign, errors in ((-1.0, favoured), (1.0, harmed)):
        own, departure, resampled = _resampled(errors, n_resamples, rng)
        departures += sign * departure
        square += own
        squares += resampled
    # A resample may hold one row many times and have no spread: it says nothing about t.
    kept = squares > 1e-12 * square
    if not kept.any():
        return estimate, estimate
    q = np.quantile(np.abs(departures[kept]) / np.sqrt(squares[kept]), level)
    width = float(q * np.sqrt(square))
    return estimate - width, estimate + width


def spread_interval(
    groups: Sequence[Array], level: float, n_resamples: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Interval of the largest minus the smallest mean of several groups.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> groups = [rng.normal(mean, 1, 400) for mean in (1, 2, 3)]
    >>> low, high = spread_interval(groups, 0.95, 1000, rng)
    >>> bool(1.7 < low < 2 < high < 2.3)
    True
    """
    means = np.array([errors.mean() for errors in groups])
    parts = [_resampled(errors, n_resamples, rng) for errors in groups]
    own = np.array([square for square, _, _ in parts])
    largest = np.zeros(n_resamples)
    for (square, departure, resampled), (other, away, again) in combinations(parts, 2):
        squares = resampled + again
        kept = squares > 1e-12 * (square + other)
        t = np.abs(departure - away)[kept] / np.sqrt(squares[kept])
        largest[kept] = np.maximum(largest[kept], t)
    widths = np.quantile(largest, level) * np.sqrt(own[:, None] + own)
    np.fill_diagonal(widths, 0.0)
    differences = means[:, None] - means
    return float((differences - widths).max()), float((differences + widths).max())


def _resampled(
    errors: Array, n_resamples: int, rng: np.random.Generator
) -> tuple[float, Array, Array]:
    """Squared standard error of the mean; departure and squared standard error of resamples."""
    units = _blocks(errors, rng)
    n = len(units)
    draws = rng.multinomial(n, np.full(n, 1.0 / n), size=n_resamples) / n
    means = draws @ units
    squares = np.maximum(draws @ units**2 - means**2, 0.0) / n
    return float(units.var()) / n, means - units.mean(), squares


def _blocks(errors: Array, rng: np.random.Generator) -> Array:
    """The errors, or where there are many the means of random blocks of equal size."""
    size = -(-len(errors) // MOST_UNITS)
    if size == 1:
        return errors
    whole = len(errors) // size * size
    return np.asarray(rng.permutation(errors)[:whole].reshape(-1, size).mean(axis=1))
