"""FairColumns: which columns to keep, so that every group can be rebuilt from them."""

from dataclasses import KW_ONLY, dataclass
from math import comb
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_array

from fairpca._estimators.base import AnyGroups, AvailableCases, GroupEstimator
from fairpca._estimators.fitted import ColumnsRecord
from fairpca._input.rows import refuse_no_table, refusing_overflow
from fairpca._input.stream import is_stream, map_stream, without_named
from fairpca._moments.small_groups import SettledGroups
from fairpca._problems.problems import WorstOffProblem
from fairpca._problems.status import Status
from fairpca._sklearn import Interval, SelectorMixin
from fairpca._solvers import solve
from fairpca._solvers.columns import ColumnChoice, ColumnSearch
from fairpca._typing import Array, Mask

_Choices = tuple[ColumnChoice, ColumnChoice, float]  # the fair one, the usual one, and the bound


@dataclass(eq=False, repr=False)
class FairColumns(
    SelectorMixin, AvailableCases, AnyGroups, GroupEstimator[_Choices], ColumnsRecord
):
    r"""Keep the r columns from which the worst-described group is rebuilt best.

    All columns are rebuilt from the kept columns S by one linear map for everybody,
    ``x_hat = m + B (x_S - m_S)`` with :math:`B = C_{\cdot S} C_{SS}^{-1}` (least squares over all
    rows). Group g is rebuilt with the error

    .. math:: R_g(S) = \mathrm{tr}\,(I - B E_S') C_g (I - B E_S')',

    and the largest of these is made as small as possible. Such a map has rank r, so the least
    largest error of :class:`FairPCA` is a lower bound for every choice of r columns [1]_ [2]_.

    Parameters
    ----------
    n_columns : int
        How many columns to keep.
    max_subsets : int, default=1_000_000
        Up to this number, all subsets are tried, in some ten seconds. If there are more, a search
        from both ends with swaps and restarts finds a good one.
    standardize, relative_errors, min_group_size, small_groups, missing
        As in :class:`FairPCA`.

    Attributes
    ----------
    columns_ : ndarray of shape (n_columns,)
        The columns kept, each of them the one that helps most after those before it.
    rebuild_map_ : ndarray of shape (n_columns, n_features_in_)
        Rebuilt rows are ``mean_ + (kept - mean_[get_support()]) @ rebuild_map_``.
    group_errors_, reconstruction_error_, disparity_ : ndarray of shape (k,), float, float
        Mean squared errors of rebuilt rows, by group and over all; the largest minus the smallest.
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
    covariance_, clipped_variance_
        As in :class:`FairPCA`.

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
    relative_errors: bool = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEstimator._parameter_constraints,
        "n_columns": [Interval(Integral, 1, None, closed="left")],
        "max_subsets": [Interval(Integral, 0, None, closed="left")],
    }

    def _solve(self, settled: SettledGroups) -> _Choices:
        operand = settled.measured(self.relative_errors)
        r = self.n_columns
        d = operand.n_features
        if r > d:
            raise ValueError(f"n_columns={r} of {d} columns: pass an integer from 1 to {d}.")
        fair, usual = ColumnSearch(operand).best(r, try_all=comb(d, r) <= self.max_subsets)
        return fair, usual, max(solve(WorstOffProblem("error"), operand, r).bound, 0.0)

    def _set_result(self, settled: SettledGroups, result: _Choices) -> None:
        fair, usual, self.lower_bound_ = result
        self.columns_, self.group_errors_, B = fair
        self.baseline_columns_, self.baseline_group_errors_, usual_B = usual
        scale = self.scale_
        compared = settled.compared
        known = settled.moments
        self.rebuild_map_ = B * scale / scale[np.sort(self.columns_), None]
        self.baseline_rebuild_map_ = usual_B * scale / scale[np.sort(self.baseline_columns_), None]
        shares = settled.measured(self.relative_errors).shares
        errors = self.group_errors_[compared]
        self.reconstruction_error_ = float(shares @ self.group_errors_)
        self.disparity_ = float(np.ptp(errors))
        largest = float(errors.max())
        order = self.baseline_group_errors_[compared].argsort(kind="stable")
        self.privileged_group_, *_, self.harmed_group_ = known.groups[compared][order].tolist()
        proven = comb(len(scale), self.n_columns) <= self.max_subsets
        self.duality_gap_ = 0.0
        self.status_ = str(Status.ALL_TRIED)
        if not proven:
            self.duality_gap_ = max(largest - self.lower_bound_, 0.0)
            self.status_ = str(Status.BEST_FOUND)

    def _get_support_mask(self) -> Mask:
        fitted = self._ready()
        return np.isin(np.arange(fitted.n_features_in_), fitted.columns_)

    def transform(self, X: Any) -> Any:
        """Keep the columns of X that were chosen; of a stream, those that are no features too."""
        fitted = self._ready()
        if is_stream(X):
            return map_stream(fitted, X)
        if self.missing == "available":
            rows = fitted._validate(X, may_miss=True)
            return rows[:, fitted._get_support_mask()]
        return SelectorMixin.transform(fitted, without_named(X, fitted._named))

    def inverse_transform(self, X: Any) -> Array:
        """Rebuild all columns from those kept, which X holds as :meth:`transform` gives them."""
        fitted = self._ready()
        refuse_no_table(X)
        with refusing_overflow("X"):
            kept: Array = check_array(X, dtype=[np.float64, np.float32])
        wanted = fitted.get_feature_names_out().tolist()
        named = hasattr(fitted, "feature_names_in_") and hasattr(X, "columns")
        if kept.shape[1] != len(wanted) or (named and list(X.columns) != wanted):
            got = list(X.columns) if named else f"{kept.shape[1]} columns"
            problem = f"inverse_transform needs the {len(wanted)} columns that transform keeps"
            raise ValueError(f"{problem}, {wanted} in this order, got X with {got}.")
        with refusing_overflow("X"):
            centred = kept - fitted.mean_[fitted.get_support()]
            rebuilt: Array = fitted.mean_ + centred @ fitted.rebuild_map_
            return rebuilt.astype(kept.dtype, copy=False)
