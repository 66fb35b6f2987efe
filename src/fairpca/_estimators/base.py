"""Fitting, shared by the estimators: learn the moments, solve the problem, publish the result.

A subclass says what its problem is (:meth:`FairProjection._problem`). The parts of the package that
fit many times to the same moments (the audit, the plots) call :meth:`FairProjection._settle`, which
gives the groups to compare, and :meth:`FairProjection._fit_settled`.
"""

from __future__ import annotations

import math
import sys
from copy import copy
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from fairpca._estimators.advice import (
    warn_of_data,
    warn_of_few_rows,
    warn_of_group_columns,
    warn_of_result,
)
from fairpca._estimators.streaming import StreamedProjection
from fairpca._input.checks import (
    check_group_labels,
    check_same_order,
    check_several_groups,
    forgotten_groups,
    refuse_keywords,
)
from fairpca._input.device import is_dask
from fairpca._input.labels import encode_few_groups
from fairpca._input.rows import as_rows
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.implicit import ImplicitMoments
from fairpca._moments.learn import learn
from fairpca._moments.operand import TINY, Operand
from fairpca._moments.small_groups import SettledGroups, SmallGroups, settle_small_groups
from fairpca._problems.solution import Solution, disparity
from fairpca._sklearn import Interval, RealNotInt, StrOptions
from fairpca._solvers import Problem, solve
from fairpca._solvers.rank import solve_fewest_components
from fairpca._typing import Array, Labels

Learnt = GroupMoments | ImplicitMoments


class FairProjection(StreamedProjection):
    """Base of the estimators: a linear projection fitted to the moments of groups."""

    __metadata_request__fit: ClassVar = {"sensitive_features": True, "sample_weight": True}
    __metadata_request__partial_fit: ClassVar = {"sensitive_features": True, "sample_weight": True}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            None,
        ],
        "standardize": ["boolean"],
        "normalize": ["boolean"],
        "whiten": ["boolean"],
        "min_group_size": [Interval(Integral, 1, None, closed="left")],
        "small_groups": [StrOptions({"error", "merge", "ignore"})],
        "max_groups": [Interval(Integral, 2, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    moments_: GroupMoments
    feature_names_in_: Labels
    # Parameters; the last four stand in for those that an estimator of two groups lacks.
    n_components: int | float | None
    standardize: bool
    normalize: bool
    min_group_size: int = 1
    small_groups: SmallGroups = "error"
    max_groups: int | None = None
    tol: float = math.inf

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        **unknown: Any,
    ) -> Self:
        """Find the projection for the rows of X.

        Parameters
        ----------
        X : {array, memory map, sparse matrix, data frame} of shape (n_samples, n_features)
            Training data; neither modified nor copied whole.
        y : array-like of shape (n_samples,), optional
            The outcome of each row, for estimators that look at it: :class:`FairPLS`, and
            :class:`BlindPCA` within classes. Others ignore it.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            The group of each row; several columns are crossed, so that each combination of their
            labels is a group, called "female & black" for instance. Needed here only, never for
            ``transform``.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights.
        **unknown
            Refused, with the name that was meant.

        Returns
        -------
        self
        """
        self._check_params()
        rows, groups = self._rows_of("fit", X, y, sensitive_features, sample_weight, unknown)
        moments, settled = self._learn_and_settle(rows, y, groups, sample_weight)
        solution = self._solve(settled)
        self._remember_features(X, settled.moments)
        return self._publish(moments, settled, solution)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        **unknown: Any,
    ) -> Self:
        """Add the rows of X to those seen before, and fit to all of them; arguments as for `fit`.

        A block may hold a single group. As long as the rows seen so far allow no fit (one group
        only, fewer rows than components) there is no projection, and using it says why. Each call
        solves; to add very many blocks, use :meth:`GroupMoments.update` and then
        :meth:`fit_moments`.
        """
        self._check_params()
        first = "moments_" not in vars(self)
        if first and "components_" in vars(self):
            raise ValueError(
                f"this {type(self).__name__} has no moments (it was loaded, or fitted to very many "
                "features at once) and cannot be updated; call fit, or partial_fit on a new object."
            )
        if not first and not is_dask(X):  # whose blocks are compared when they are merged
            validate_data(self, X, reset=False, skip_check_array=True)
        rows, groups = self._rows_of(
            "partial_fit", X, y, sensitive_features, sample_weight, unknown
        )
        moments = GroupMoments() if first else copy(self.moments_)
        self._update(moments, rows, y, groups, sample_weight)
        try:
            settled = self._settle(moments)
            solution = self._solve(settled)
        except ValueError:  # more rows may help; _ready raises it again if they do not come
            self._forget()
            self.moments_ = moments
        else:
            self._publish(moments, settled, solution)
        if first:
            self._remember_features(X, moments)
        return self

    def fit_moments(self, moments: GroupMoments) -> Self:
        """Find the projection from moments accumulated elsewhere.

        Parameters
        ----------
        moments : GroupMoments
            For instance merged from many files or machines.

        Returns
        -------
        self
        """
        self._check_params()
        if not isinstance(moments, GroupMoments):
            raise TypeError(
                f"fit_moments needs GroupMoments, got {type(moments).__name__}; "
                "make them with GroupMoments.from_data(X, groups)."
            )
        return self._fit_settled(moments, self._settle(moments))

    def _fit_settled(self, moments: GroupMoments, settled: SettledGroups) -> Self:
        """Find the projection for groups that :meth:`_settle` has prepared."""
        solution = self._solve(settled)
        self._remember_features(None, settled.moments)
        return self._publish(copy(moments), settled, solution)

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        **unknown: Any,
    ) -> Any:
        """Fit to X and return its scores; arguments as for :meth:`fit`."""
        return self.fit(
            X, y, sensitive_features=sensitive_features, sample_weight=sample_weight, **unknown
        ).transform(X)

    def _settle(self, moments: Learnt) -> SettledGroups:
        """The groups to compare, standardised if that was asked for."""
        settled = self._settle_groups(moments)
        return settled.standardized() if self.standardize else settled

    def _settle_groups(self, moments: Learnt) -> SettledGroups:
        """Apply ``small_groups``, and check that the groups that remain can be compared."""
        settled = settle_small_groups(moments, self.min_group_size, self.small_groups)
        labels, compared = settled.moments.groups, settled.compared
        check_group_labels(labels[compared], settled.moments.counts[compared], self.max_groups)
        check_several_groups(labels[compared].tolist(), int(moments.counts.sum()))
        self._check_groups(labels.tolist())
        return settled

    # -- what a subclass says ----------------------------------------------------------------------

    def _problem(self) -> Problem:
        """What is minimised."""
        raise NotImplementedError

    def _walk_from_pca(self) -> Problem:
        """The problem whose price the warnings measure against PCA."""
        return self._problem()

    def _learn_and_settle(
        self, X: Any, y: Any, groups: Any, sample_weight: Any
    ) -> tuple[Learnt, SettledGroups]:
        """The moments of the rows, and the groups to compare."""
        moments = self._learn(X, y, groups, sample_weight)
        return moments, self._settle(moments)

    def _learn(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> Learnt:
        """The first step of ``fit``; y is for estimators that use it."""
        return learn(X, groups, sample_weight)

    def _update(
        self, moments: GroupMoments, X: Any, y: Any, groups: Any, sample_weight: Any
    ) -> None:
        """The first step of ``partial_fit``: add rows to the moments."""
        moments.update(X, groups, sample_weight)

    def _needs_outcomes(self) -> bool:
        """Whether ``fit`` needs y."""
        return False

    def _check_params(self) -> None:
        """Validate the parameters."""
        self._validate_params()
        for name, value in self.get_params(deep=False).items():
            allowed = self._parameter_constraints[name]
            if isinstance(value, bool) and any(isinstance(kind, Interval) for kind in allowed):
                raise ValueError(  # Python takes True for 1
                    f"{name}={value}: pass a number, not a bool, for example "
                    f"{type(self).__name__}({name}={int(value)})."
                )

    def _check_groups(self, labels: list[Any]) -> None:
        """Refuse groups that this estimator, with its parameters, cannot compare."""

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        return solve(self._problem(), operand, rank, self.tol)

    # -- solving -----------------------------------------------------------------------------------

    def _solve(self, settled: SettledGroups) -> Solution:
        """Decide on the rank, and solve."""
        operand = settled.measured(self.normalize)
        n, d = int(settled.moments.counts.sum()), operand.n_features
        limit, wanted = min(n, d), self.n_components
        if operand.compact.matrices is None and not isinstance(wanted, Integral):
            raise ValueError(
                f"n_components={wanted} would need all eigenvalues of matrices with {d} rows; with "
                "so many features pass an integer, for example n_components=20."
            )
        if isinstance(wanted, float):
            return solve_fewest_components(
                operand, wanted, partial(self._solve_rank, settled, operand)
            )
        if wanted is not None and wanted > limit:
            raise ValueError(
                f"n_components={wanted} is more than the data allow: with n_samples = {n} and "
                f"n_features = {d} pass an integer from 1 to {limit}, a fraction between 0 and "
                "1, or None."
            )
        return self._solve_rank(settled, operand, limit if wanted is None else int(wanted))

    # -- publishing --------------------------------------------------------------------------------

    def _publish(self, moments: Learnt, settled: SettledGroups, solution: Solution) -> Self:
        """Set the fitted attributes, and warn of what must not be overlooked."""
        measured, before = settled.measured(self.normalize), vars(self).copy()
        try:
            self._forget()
            if isinstance(moments, GroupMoments):  # the other kind would keep X alive
                self.moments_ = moments
            self._set_projection(settled, solution)
            self._set_errors(settled, measured, solution)
            for name, value in solution.extras.items():
                setattr(self, name, value)
        except BaseException:  # an interrupt leaves the estimator as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        problem = self._walk_from_pca()
        labels = self.groups_.tolist()
        warn_of_result(problem, solution, measured, self.disparity_, self.tol, labels)
        warn_of_few_rows(problem, solution, settled, measured)
        warn_of_data(settled.moments)
        return self

    def _forget(self) -> None:
        """Remove the results of an earlier fit."""
        kept = ("n_features_in_", "feature_names_in_")
        for name in [n for n in vars(self) if n.endswith("_") and n not in kept]:
            delattr(self, name)

    def _set_projection(self, settled: SettledGroups, solution: Solution) -> None:
        """Set components, mean, scale and variances."""
        operand = settled.operand
        components, variances = _principal_basis(operand, solution.basis)
        r, d = components.shape
        n = int(settled.moments.counts.sum())
        total, unbiased = float(operand.shares @ operand.traces), n / max(n - 1, 1)
        rest = max(total - float(variances.sum()), 0.0)
        self.components_ = components
        self.scale_ = np.ones(d) if settled.scale is None else settled.scale
        self.mean_ = settled.moments.mean * self.scale_
        self.n_components_ = r
        self.explained_variance_ = variances * unbiased
        self.explained_variance_ratio_ = _share_of(variances, total)
        self.noise_variance_ = rest * unbiased / (d - r) if r < d else 0.0

    def _set_errors(self, settled: SettledGroups, measured: Operand, solution: Solution) -> None:
        """Set the figures of the groups; ``measured`` is what was solved for."""
        errors = np.maximum(solution.errors, 0.0)
        pca_errors = np.maximum(solution.pca.errors, 0.0)
        labels = settled.moments.groups.tolist()
        self.groups_ = settled.moments.groups
        self.group_sizes_ = settled.moments.counts
        self.small_groups_ = settled.small
        self.group_errors_ = errors
        self.group_explained_variance_ratio_ = 1.0 - _share_of(errors, measured.traces)
        self.reconstruction_error_ = float(measured.shares @ errors)
        self.disparity_ = float(
            disparity(solution.errors, settled.compared, solution.harmed, solution.privileged)
        )
        self.privileged_group_: Any = labels[solution.privileged]
        self.harmed_group_: Any = labels[solution.harmed]
        self.pca_group_errors_ = pca_errors
        self.pca_reconstruction_error_ = float(measured.shares @ pca_errors)
        self.alpha_ = solution.alpha
        self.duality_gap_ = max(solution.gap, 0.0)  # rounding can make it negative
        self.status_ = str(solution.status)
        self.n_eigensolves_ = solution.n_eigensolves

    def _ready(self) -> None:
        """Refuse an estimator that is not fitted; after ``partial_fit``, say what is missing."""
        if "moments_" in vars(self) and "components_" not in vars(self):
            self._check_params()
            self._fit_settled(self.moments_, self._settle(self.moments_))
        check_is_fitted(self)

    def __sklearn_is_fitted__(self) -> bool:
        """Fitted: there is a projection, or ``partial_fit`` has begun to learn one."""
        return "components_" in vars(self) or "moments_" in vars(self)

    # -- what the user passed ----------------------------------------------------------------------

    def _rows_of(
        self, method: str, X: Any, y: Any, groups: Any, sample_weight: Any, unknown: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Rows and groups, once they are known to fit each other; dask collections as they are."""
        if unknown:
            refuse_keywords(self, method, list(unknown))
        if groups is None:
            raise forgotten_groups(self, method, y, self._needs_outcomes())
        check_same_order(X, sensitive_features=groups, sample_weight=sample_weight, y=y)
        if is_dask(X) or is_dask(groups):
            return X, groups
        rows = as_rows(X)
        if method == "fit":
            least = 1 if self.small_groups == "error" else self.min_group_size
            coded = encode_few_groups(groups, rows.n_rows, self.max_groups, least)
        else:  # a block says little about the labels of all rows
            coded = encode_few_groups(groups, rows.n_rows, max_groups=sys.maxsize)
        warn_of_group_columns(rows, coded.codes, len(coded.labels))
        return rows, coded

    def _remember_features(self, X: Any, moments: Learnt) -> None:
        """Set number and names of the columns: as scikit-learn sees X, or without X by moments."""
        if not (X is None or isinstance(X, np.ndarray) or is_dask(X)):
            validate_data(self, X, reset=True, skip_check_array=True)
            return
        self.n_features_in_ = moments.n_features - moments.n_targets
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if moments.feature_names is not None:
            names = moments.feature_names[: self.n_features_in_]
            self.feature_names_in_ = np.asarray(names, dtype=object)


def alpha_of(shares: Array, weights: Array, privileged: int) -> float:
    """The alpha for which ``M(w)`` is a multiple of ``alpha C + (1 - alpha)(C_B - C_A)``."""
    if len(shares) != 2:
        return math.nan
    in_all = max(float(weights.sum()), TINY)
    return float(1 / (1 + (shares - weights / in_all)[privileged]))


def _principal_basis(operand: Operand, basis: Array) -> tuple[Array, Array]:
    """Components with uncorrelated scores ordered by variance, and these variances.

    Errors depend on the subspace alone, so the rotation costs nothing. The entry of largest
    magnitude of each component is positive, the first one on a tie.
    """
    C_U = np.tensordot(operand.shares, operand.products(basis), axes=1)
    values, rotation = np.linalg.eigh(basis.T @ C_U)
    components = rotation[:, ::-1].T @ basis.T
    magnitudes = np.abs(components)
    near_largest = magnitudes >= magnitudes.max(axis=1, keepdims=True) * (1 - 1e-7)
    decisive = components[np.arange(len(components)), near_largest.argmax(axis=1)]
    return components * np.sign(decisive)[:, None], np.maximum(values[::-1], 0.0)


def _share_of(part: Array, whole: Array | float) -> Array:
    """``part / whole``, or 0 where the whole is 0."""
    whole = np.asarray(whole)
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)
