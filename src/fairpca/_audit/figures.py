"""The figures that an audit is made of, each kind in a frozen dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._typing import Array, Codes


@dataclass(frozen=True)
class Errors:
    """Average squared reconstruction errors under one projection.

    Attributes
    ----------
    group_errors : ndarray of shape (k,)
        ``R_g``, in the order of ``Audit.groups``.
    overall : float
        ``R``, over all rows.
    disparity : float
        Error of the harmed group minus that of the privileged one; with more than two groups, the
        largest error minus the smallest. Groups that are not compared do not count.
    """

    group_errors: Array
    overall: float
    disparity: float


@dataclass(frozen=True)
class RankCurve:
    """Group errors against the number of components.

    Attributes
    ----------
    n_components : ndarray of shape (m,)
    pca, fair : ndarray of shape (m, k)
        Group errors of plain PCA and of the fair projection.
    pca_overall : ndarray of shape (m,)
        Overall error of plain PCA.
    status : list of str
        How the fair fit ended at each rank.
    """

    n_components: NDArray[np.int64]
    pca: Array
    fair: Array
    pca_overall: Array
    status: list[str]


@dataclass(frozen=True)
class Loadings:
    """Weights of the features in each component, of shape (n_components, n_features).

    The sign of a component is arbitrary; PCA's are turned to agree with the fair ones.
    """

    pca: Array
    fair: Array


@dataclass(frozen=True)
class Scores:
    """Scores of a random sample of rows on the first two components (or the only one).

    Attributes
    ----------
    rows : ndarray of shape (m,)
        Which rows; each group is sampled up to the same number, so groups of unequal size can be
        compared by eye.
    group : ndarray of shape (m,)
        Index into ``Audit.groups``.
    pca, fair : ndarray of shape (m, 2) or (m, 1)
    """

    rows: Codes
    group: Codes
    pca: Array
    fair: Array


@dataclass(frozen=True)
class FeatureErrors:
    """What each group loses on each feature: average squared errors of shape (k, n_features).

    They sum over the features to the group errors.
    """

    pca: Array
    fair: Array


@dataclass(frozen=True)
class CrossValidation:
    """Errors on held-out rows: every row under projections fitted without it."""

    n_folds: int
    pca: Errors
    fair: Errors


@dataclass(frozen=True)
class Change:
    """What the fair projection changes on new rows, fair minus PCA, with its interval.

    Attributes
    ----------
    estimate, low, high : float
        Below zero where errors fall.
    """

    estimate: float
    low: float
    high: float

    @property
    def direction(self) -> int:
        """-1 if it falls and 1 if it rises beyond what chance can explain, otherwise 0.

        Examples
        --------
        >>> Change(-0.2, -0.3, -0.1).direction, Change(-0.2, -0.5, 0.1).direction
        (-1, 0)
        """
        return int(self.low > 0) - int(self.high < 0)


@dataclass(frozen=True)
class Changes:
    """What the fair projection changes on new rows of the same population, against PCA.

    Both projections are measured on the same held-out rows. Of *these fitted projections*, not of
    the method in general: the intervals allow for both having been fitted to the same rows.

    Attributes
    ----------
    groups : list of Change
        Of each group's error, in the order of ``Audit.groups``; with more than two groups their
        intervals hold together.
    overall : Change
        Of the overall error.
    disparity : Change
        Of the error of the harmed group minus that of the privileged one.
    """

    groups: list[Change]
    overall: Change
    disparity: Change


@dataclass(frozen=True)
class Bootstrap:
    """Confidence intervals of the disparity on new rows of the same population.

    Of the disparity that *this fitted projection* has on new rows: bootstrap-t intervals from the
    held-out errors; see the user guide, "The report's statistics". With more than two groups they
    hold the disparity at least as often as the level says.

    Attributes
    ----------
    level : float
    n_resamples : int
    pca, fair : (float, float)
        Low and high end for each projection.
    """

    level: float
    n_resamples: int
    pca: tuple[float, float]
    fair: tuple[float, float]


@dataclass(frozen=True)
class Reading:
    """Errors by the other reading: relative ones where the audit has absolute ones, and vice versa.

    Attributes
    ----------
    pca, fair : Errors
        On held-out rows; on the rows fitted to where there is no cross-validation.
    privileged_group, harmed_group : label
        The groups that PCA treats best and worst by this reading, on the rows fitted to.
    """

    pca: Errors
    fair: Errors
    privileged_group: Any
    harmed_group: Any


@dataclass(frozen=True)
class RowInfluence:
    """How far the disparity between the harmed and the privileged group hangs on a few rows.

    On held-out rows, with the projections as they are: rows are left out in the order of their
    shares in the disparity, that is of their squared errors over the size of their group.

    Attributes
    ----------
    n_half : int or None
        The fewest rows, of the group with the larger error, without which the disparity is half as
        large; None if that takes more rows than were kept (1000, or one percent of all).
    rows : ndarray of int
        Their positions in the data, largest errors first; at most 1000.
    n_rows : int
        Rows of both groups.
    left_out, disparity : ndarray of shape (m,)
        Numbers of rows left out, of either group, and the disparity without them.
    """

    n_half: int | None
    rows: Codes
    n_rows: int
    left_out: NDArray[np.int64]
    disparity: Array

    def n_left_out(self, share: float) -> int:
        """How many rows this share is: at least one."""
        return max(round(self.n_rows * share), 1)

    def without(self, share: float) -> float:
        """The disparity without this share of the rows: 0.001 or 0.01."""
        return float(np.interp(self.n_left_out(share), self.left_out, self.disparity))

    @property
    def sign_hangs_on_few(self) -> bool:
        """Whether one row in a thousand (or a single one) decides which group is worse off."""
        return self.without(0.001) * float(self.disparity[0]) < 0


@dataclass(frozen=True)
class Influence:
    """Which rows the disparity hangs on, by projection."""

    pca: RowInfluence
    fair: RowInfluence
