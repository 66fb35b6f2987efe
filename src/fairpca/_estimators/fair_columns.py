"""FairColumns: which columns to keep, so that every group can be rebuilt from them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_array

from fairpca._estimators.base import GroupEstimator
from fairpca._moments.small_groups import SettledGroups, SmallGroups
from fairpca._problems.problems import WorstOffProblem
from fairpca._problems.status import Status
from fairpca._sklearn import Interval
from fairpca._solvers import solve
from fairpca._solvers.columns import ColumnChoice, ColumnSearch
from fairpca._typing import Array, Mask

_Choices = tuple[ColumnChoice, ColumnChoice, float]  # the fair one, the usual one, and the bound


@dataclass(eq=False, repr=False)
class FairColumns(SelectorMixin, GroupEstimator[_Choices]):  # type: ignore[misc]
    r"""Keep the r columns from which the worst-described group is rebuilt best.

    All columns are rebuilt from the kept columns S by one linear map for everybody,
    ``x_hat = m + B (x_S - m_S)`` with :math:`B = C_{\cdot S} C_{SS}^{-1}` (least squares over all
    rows). Group g is rebuilt with the error

    .. math:: R_g(S) = \mathrm{tr}\,(I - B E_S') C_g (I - B E_S')',

    and ``FairColumns`` looks for the columns with the least largest group error. Such a map
    has rank r, so the least largest error of :class:`FairPCA` with r components is a lower bound
    for every choice of r columns, and certifies how good the choice is [1]_ [2]_.

    Parameters
    ----------
    n_columns : int
        How many columns to keep.
    max_subsets : int, default=1_000_000
        Up to this number, all subsets are tried, in some ten seconds. If there are more, a search
        from both ends with swaps and restarts finds a good one.
    standardize : bool, default=False
        Measure errors in standard deviations of the columns, as in :class:`FairPCA`.
    normalize : bool, default=False
        Divide each group's error by the group's own total variance.
    min_group_size, small_groups, max_groups
        As in :class:`FairPCA`.

    Attributes
    ----------
    columns_ : ndarray of shape (n_columns,)
        The columns kept, in the order in which they help: of these, the first is the best one
        alone, the second the best one to add to it, and so on.
    rebuild_map_ : ndarray of shape (n_columns, n_features_in_)
        Rebuilt rows are ``mean_ + (kept - mean_[support]) @ rebuild_map_``, with the kept columns
        in increasing order.
    group_errors_ : ndarray of shape (k,)
        Average squared error of the rebuilt rows of each group.
    reconstruction_error_, disparity_ : float
        The error over all rows; the largest error of a group minus the smallest.
    baseline_columns_, baseline_rebuild_map_, baseline_group_errors_ : ndarray
        The usual choice: the columns of least overall error, their map, and the errors they leave.
    harmed_group_, privileged_group_ : label
        The groups that the usual choice treats worst and best.
    lower_bound_ : float
        No choice of r columns, and no projection of rank r, has a smaller largest error.
    duality_gap_ : float
        How far the largest error can be above the least that a choice of columns can have: 0 if
        all subsets were tried, otherwise the distance to ``lower_bound_``.
    status_ : str
        "all subsets tried", or "best subset found, not proven".
    mean_, scale_, groups_, group_sizes_, small_groups_, n_features_in_, feature_names_in_
        As in :class:`FairPCA`.

    See Also
    --------
    FairPCA : Components, which mix all columns, instead of columns.

    References
    ----------
    .. [1] A. Matakos, B. Ordozgoiti and S. Thejaswi, "Fair column subset selection", 2023.
    .. [2] Z. Song, A. Vakilian, D. P. Woodruff and S. Zhou, "On socially fair low-rank
       approximation and column subset selection", NeurIPS 2024.

    Examples
    --------
    >>> from fairpca import FairColumns
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> fair = FairColumns(3, standardize=True)
    >>> fair = fair.fit(people.data, sensitive_features=people.sensitive_features)
    >>> [people.feature_names[j] for j in fair.baseline_columns_]
    ['weight', 'systolic', 'height']
    >>> [people.feature_names[j] for j in fair.columns_]
    ['weight', 'systolic', 'diastolic']
    >>> fair.groups_.tolist(), fair.baseline_group_errors_.round(2), fair.group_errors_.round(2)
    (['75 and older', 'younger'], array([5.81, 4.57]), array([4.86, 4.9 ]))
    """

    n_columns: int
    _: KW_ONLY
    max_subsets: int = 1_000_000
    standardize: bool = False
    normalize: bool = False
    min_group_size: int = 1
    small_groups: SmallGroups = "error"
    max_groups: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEstimator._parameter_constraints,
        "n_columns": [Interval(Integral, 1, None, closed="left")],
        "max_subsets": [Interval(Integral, 0, None, closed="left")],
        "normalize": ["boolean"],
    }
    _saved_shapes: ClassVar[dict[str, str]] = {
        **GroupEstimator._saved_shapes,
        **dict.fromkeys(("columns_", "baseline_columns_"), "r"),
        **dict.fromkeys(("rebuild_map_", "baseline_rebuild_map_"), "rd"),
        **dict.fromkeys(("group_errors_", "baseline_group_errors_"), "k"),
        **dict.fromkeys(("reconstruction_error_", "disparity_", "lower_bound_"), ""),
    }

    def _solve(self, settled: SettledGroups) -> _Choices:
        operand = settled.measured(self.normalize)
        r, d = self.n_columns, operand.n_features
        if r > d:
            raise ValueError(f"n_columns={r} of {d} columns: pass an integer from 1 to {d}.")
        if operand.matrices is None:
            raise ValueError(
                f"FairColumns needs a matrix of {d} x {d} for each group; pass fewer columns."
            )
        bound = max(solve(WorstOffProblem("error"), operand, r).bound, 0.0)
        return *ColumnSearch(operand).best(r, self.max_subsets), bound

    def _set_result(self, settled: SettledGroups, result: _Choices) -> None:
        shares, compared = settled.measured(self.normalize).shares, settled.compared
        labels, (fair, usual, self.lower_bound_) = settled.moments.groups.tolist(), result
        self.columns_, self.group_errors_ = fair.columns, fair.errors
        self.baseline_columns_, self.baseline_group_errors_ = usual.columns, usual.errors
        self.rebuild_map_, self.baseline_rebuild_map_ = (
            own.rebuild * self.scale_ / self.scale_[np.sort(own.columns), None]
            for own in (fair, usual)
        )
        self.reconstruction_error_ = float(shares @ self.group_errors_)
        self.disparity_ = float(np.ptp(self.group_errors_[compared]))
        by_error = np.where(compared, usual.errors, np.nan)
        self.harmed_group_: Any = labels[int(np.nanargmax(by_error))]
        self.privileged_group_: Any = labels[int(np.nanargmin(by_error))]
        largest = float(self.group_errors_[compared].max())
        self.duality_gap_ = 0.0 if fair.proven else max(largest - self.lower_bound_, 0.0)
        self.status_ = str(Status.ALL_TRIED if fair.proven else Status.BEST_FOUND)

    def _get_support_mask(self) -> Mask:
        self._ready()
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.columns_] = True
        return mask

    def inverse_transform(self, X: Any) -> Array:
        """Rebuild all columns from those kept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns)
            As :meth:`transform` gives them, in the order of the fitted columns.

        Returns
        -------
        ndarray of shape (n_samples, n_features_in_)
        """
        support = self._get_support_mask()
        kept = check_array(X, dtype=[np.float64, np.float32])
        named = hasattr(self, "feature_names_in_") and hasattr(X, "columns")
        given, wanted = kept.shape[1], len(self.columns_)
        if given != wanted or (named and list(X.columns) != list(self.get_feature_names_out())):
            raise ValueError(
                f"inverse_transform needs the {wanted} columns that transform keeps, "
                f"{list(self.get_feature_names_out())} in this order, got X with "
                f"{list(X.columns) if named else f'{given} columns'}."
            )
        rebuilt: Array = (kept - self.mean_[support]) @ self.rebuild_map_ + self.mean_
        return rebuilt.astype(kept.dtype, copy=False)
