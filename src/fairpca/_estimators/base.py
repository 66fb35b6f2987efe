"""Fitting, shared by the estimators: learn the moments, solve the problem, publish the result.

:class:`GroupEstimator` learns the moments and publishes the result. What is solved, and which
fitted attributes follow, is up to its subclasses: :class:`FairProjection` looks for a subspace.
``tradeoff_path`` calls ``settled_groups``, which gives the groups to compare.
"""

import os
import sys
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from math import inf
from numbers import Integral, Real
from typing import Any, ClassVar, Generic, Never, Self, TypeVar, get_args

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from fairpca._estimators.advice import warn_of_data, warn_of_result
from fairpca._estimators.projection import Projection
from fairpca._estimators.transformer import Transformer
from fairpca._input.checks import (
    check_several_groups,
    check_two_groups,
    forgotten_groups,
    refuse_beside_moments,
    refuse_continuous,
    refuse_ids,
    refuse_unknown_arguments,
)
from fairpca._input.device import is_dask
from fairpca._input.labels import classes_in, encode_few_groups, refuse_counts
from fairpca._input.rows import as_rows
from fairpca._input.stream import Input, Stream, as_chosen, in_memory, open_input
from fairpca._linear_map import with_signs
from fairpca._moments.group_differences import Notion
from fairpca._moments.group_moments import GroupMoments, Missing
from fairpca._moments.implicit import Moments, learn
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups, SmallGroups, settle_small_groups
from fairpca._moments.tolerances import TINY, varying_groups
from fairpca._problems.solution import Solution, disparity
from fairpca._sklearn import BaseEstimator, Interval, RealNotInt, StrOptions
from fairpca._solvers import solve
from fairpca._solvers.rank import solve_fewest_components
from fairpca._typing import Array
from fairpca.exceptions import NotEnoughRows

Result = TypeVar("Result")

#: What ``fit`` takes beside X and y, and scikit-learn's routing passes on.
_BY_ROW = {"sensitive_features": True, "sample_weight": True, "units": True}


@dataclass(eq=False, repr=False)
class AnyGroups:
    """The parameters of the estimators that compare any number of groups."""

    _: KW_ONLY
    min_group_size: int = 1
    small_groups: SmallGroups = "error"


@dataclass(eq=False, repr=False)
class AvailableCases:
    """The parameter of the estimators that take rows with missing values."""

    _: KW_ONLY
    missing: Missing = "error"


@dataclass(eq=False, repr=False)
class SeveralAttributes:
    """The parameter of the estimators that can compare the groups of several attributes."""

    _: KW_ONLY
    crossing: bool = True


class GroupEstimator(Transformer, BaseEstimator, Generic[Result]):
    """Base of all estimators, which fit to the moments of groups.

    A subclass defines how the result is found (``_solve``) and which fitted attributes follow
    (``_set_result``); what they are is declared in :mod:`fairpca._estimators.fitted`.
    """

    __metadata_request__fit: ClassVar = _BY_ROW
    __metadata_request__partial_fit: ClassVar = _BY_ROW

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "standardize": ["boolean"],
        "relative_errors": ["boolean"],
        "min_group_size": [Interval(Integral, 1, None, closed="left")],
        "small_groups": [StrOptions({"error", "merge", "ignore"})],
        "missing": [StrOptions(set(get_args(Missing)))],
        "crossing": ["boolean"],
        "notion": [StrOptions(set(get_args(Notion)))],
        "pos_label": [object],
        "random_state": ["random_state"],
    }

    standardize: bool
    # For estimators of two groups, which do not have these parameters.
    min_group_size: int = 1
    small_groups: SmallGroups = "error"
    missing: Missing = "error"  # for estimators without this parameter
    crossing: bool = True  # likewise

    _lacking: str = ""  # why the rows that ``partial_fit`` has seen do not allow a fit yet
    _otherwise: ClassVar[str] = ""  # what to use for one group instead

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        units: Any = None,
        **unknown: Never,
    ) -> Self:
        """Fit to the rows of X, or to moments accumulated elsewhere.

        Parameters
        ----------
        X : {array, memory map, sparse matrix, data frame} of shape (n_samples, n_features), \
                stream or GroupMoments
            Training data; neither modified nor copied whole. A stream is read once, batch by batch:
            a DuckDB relation, a pyarrow reader or scanner, an Ibis table and whatever else exports
            an Arrow stream, a polars LazyFrame, or an iterator of record batches or data frames.
            :class:`GroupMoments` hold the groups and weights of their rows, so the other arguments
            are left out. Where columns of X have names, the other arguments may be such names; the
            columns that they name are no features.
        y : array-like of shape (n_samples,), optional
            The outcome of each row, for estimators that look at it: :class:`FairPLS`, and
            :class:`BlindPCA` within classes. Others ignore it.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            The group of each row; several columns are crossed, so that each combination of their
            labels is a group, called "female & black" for instance. Needed here only, never for
            ``transform``.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights.
        units : array-like of shape (n_samples,), optional
            The person, or other unit, that each row belongs to. Rows of one unit stay in one fold
            of :class:`FairPCACV`; a row without a label is a unit by itself. Other estimators
            accept it and only count.
        """
        refuse_unknown_arguments(self, "fit", unknown)
        self._validate_params()
        if isinstance(X, GroupMoments):
            given = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
            refuse_beside_moments(self, **given, units=units)
            refuse_continuous(X.groups, X.counts, self._least)
            moments: Moments = self._prepared(X, y)
            settled = self._settle(moments)
            named: tuple[str, ...] = ()
        else:
            opened = self._opened(X, sensitive_features, sample_weight, y, units)
            moments, settled = self._learn(self._rows_of("fit", opened))
            X = opened.X
            named = opened.named
        result = self._solve(settled)
        fitted = self._unfitted()
        fitted._set_columns(X, settled.moments)
        fitted._named = named
        return self._publish(fitted, moments, settled, result)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        units: Any = None,
        **unknown: Never,
    ) -> Self:
        """Add the rows of X to those seen before, and fit to all of them; arguments as for `fit`.

        A block may hold a single group. While the rows seen so far are too few for a fit (one group
        only, fewer rows than components), there is no result, and methods that need one say why.
        Each call solves; for very many blocks use :meth:`GroupMoments.update` and fit to the
        moments.
        """
        refuse_unknown_arguments(self, "partial_fit", unknown)
        self._validate_params()
        if isinstance(X, GroupMoments):
            raise TypeError(
                "partial_fit takes rows, not GroupMoments; merge moments, first.merge(second), and "
                "pass the result to fit."
            )
        first = "moments_" not in vars(self)
        if first and "groups_" in vars(self):
            raise ValueError(
                f"this {type(self).__name__} has no moments (it was loaded, or fitted to very many "
                "features at once) and cannot be updated; call fit, or partial_fit on a new object."
            )
        fitted = self._unfitted()
        opened = self._opened(X, sensitive_features, sample_weight, y, units)
        if not first:
            fitted._copy_columns(self)
            if not (is_dask(opened.X) or isinstance(opened.X, Stream)):  # compared when merged
                validate_data(fitted, opened.X, reset=False, skip_check_array=True)
        given = self._rows_of("partial_fit", opened)
        moments = GroupMoments() if first else copy(self.moments_)
        moments.add(given._replace(y=self._target_of(given, "partial_fit", moments)))
        if first:
            fitted._set_columns(opened.X, moments)
            fitted._named = opened.named
        refuse_continuous(moments.groups, moments.counts, self._least)
        try:
            refuse_ids(moments.groups, moments.counts, self._least)
            settled = self._settle(moments)
            result = self._solve(settled)
        except NotEnoughRows as reason:
            fitted.moments_ = moments
            fitted._lacking = str(reason)
            self.__dict__ = fitted.__dict__
            return self
        return self._publish(fitted, moments, settled, result)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a safetensors file; see :func:`fairpca.load_model`.

        The file keeps the fitted attributes, but not the moments, which ``partial_fit`` needs.
        Saving needs ``pip install safetensors``.
        """
        from fairpca._atomic import replacing
        from fairpca._models.safetensors import write_model

        with replacing(path) as temporary:
            write_model(self, temporary)

    # -- what a subclass defines -------------------------------------------------------------------

    def _solve(self, settled: SettledGroups) -> Result:
        """Solve the problem: the second step of a fit."""
        raise NotImplementedError

    def _set_result(self, settled: SettledGroups, result: Result) -> None:
        """Set the fitted attributes that follow from the result."""
        raise NotImplementedError

    def _warn(self, settled: SettledGroups, result: Result) -> None:
        """Issue the warnings about a result that is published."""

    def _check_groups(self, settled: SettledGroups) -> None:
        """Refuse groups that this estimator, with its parameters, cannot compare."""

    def _needs_outcomes(self) -> bool:
        """Whether ``fit`` needs y."""
        return False

    def _target(self, y: Any, method: str, before: GroupMoments | None = None) -> Any:
        """The y to learn from; ``before`` are the moments that ``partial_fit`` adds to."""
        return None

    def _validate_params(self) -> None:
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, int) and abs(value) > sys.float_info.max:
                most = f"the largest number there is to compute with, {sys.float_info.max:.2g}"
                raise ValueError(f"{name} is beyond {most}; pass a smaller one.")
        super()._validate_params()
        for name, value in self.get_params(deep=False).items():
            kinds = map(type, self._parameter_constraints[name])
            if isinstance(value, bool) and Interval in kinds:  # Python takes True for 1
                raise ValueError(f"{name}={value}: pass a number, for example {int(value)}.")

    # -- learning ----------------------------------------------------------------------------------

    def _opened(self, *given: Any) -> Input:
        """What the arguments of ``fit`` hold."""
        return as_chosen(open_input(*given), self.missing, self.crossing)

    def _rows_of(self, method: str, given: Input) -> Input:
        """Rows and coded groups; streams and dask collections are left as they are."""
        groups = given.sensitive_features
        if groups is None:
            raise forgotten_groups(self, method, given.y, self._needs_outcomes())
        if not in_memory(given.X) or is_dask(groups):
            return given
        rows = as_rows(given.X)
        least = None
        if method == "fit":
            least = self._least
        coded = encode_few_groups(groups, rows, least, self.crossing)
        return given._replace(X=rows, sensitive_features=coded)

    @property
    def _least(self) -> int:
        """Groups of fewer rows are not compared."""
        if self.small_groups == "error":
            return 1
        return self.min_group_size

    def _target_of(self, given: Input, method: str, before: GroupMoments | None = None) -> Any:
        """The target to learn, or for a stream the function that gives that of a batch."""
        if isinstance(given.X, Stream) and given.y is not None:
            return lambda y, before: self._target(y, method, before)
        return self._target(given.y, method, before)

    def _learn(self, given: Input) -> tuple[Moments, SettledGroups]:
        """The moments of the rows, and the groups to compare."""
        moments = learn(given._replace(y=self._target_of(given, "fit")))
        if not in_memory(given.X):
            refuse_continuous(moments.groups, moments.counts, self._least)
            refuse_ids(moments.groups, moments.counts, self._least)
        return moments, self._settle(moments)

    def _settle(self, moments: Moments) -> SettledGroups:
        """The groups to compare: small ones merged or left out, columns standardised if asked."""
        if not self.crossing:
            moments = moments.by_attribute()
        elif moments.attributes and not isinstance(self, SeveralAttributes):
            raise ValueError(
                f"groups of these moments overlap, but {type(self).__name__} wants each row in one "
                "group; make moments with crossing=True."
            )
        settled = settle_small_groups(moments, self.min_group_size, self.small_groups)
        labels = settled.moments.groups
        for members in [settled.compared, *settled.moments.attributes.values()]:
            check_several_groups(labels[members].tolist(), moments.n_rows, self._otherwise)
        self._check_groups(settled)
        if settled.moments.has_missing and self.missing == "error":
            raise ValueError(
                f"these moments are of rows with missing values, which this {type(self).__name__} "
                "does not take; fit to complete rows, or pass missing='available' to FairPCA, "
                "FairPCACV, MinMaxPCA, WelfarePCA or FairColumns."
            )
        settled.moments.refuse_rare_pairs(settled.compared)
        if self.standardize:
            return settled.standardized()
        return settled

    def _prepared(self, moments: GroupMoments, y: Any) -> GroupMoments:
        """The moments that a user passed in place of rows, as this estimator wants them."""
        return copy(moments)

    # -- publishing: a copy gets the whole result, and then takes the place of the old one ---------

    def _unfitted(self) -> Self:
        """A copy with the same parameters, and nothing that a fit has published."""
        unfitted = copy(self)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(unfitted, name)
        unfitted._lacking = ""
        return unfitted

    def _set_columns(self, X: Any, moments: Moments) -> None:
        """Set number and names of the columns, from X as scikit-learn does, or from the moments."""
        if in_memory(X) and not isinstance(X, (GroupMoments, np.ndarray)):
            validate_data(self, X, reset=True, skip_check_array=True)
            return
        self.n_features_in_ = moments.n_features - moments.n_targets
        if moments.feature_names is not None:
            names = moments.feature_names[: self.n_features_in_]
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _copy_columns(self, other: Self) -> None:
        self.n_features_in_ = other.n_features_in_
        if hasattr(other, "feature_names_in_"):
            self.feature_names_in_ = other.feature_names_in_

    def _publish(
        self, fitted: Self, moments: Moments, settled: SettledGroups, result: Result
    ) -> Self:
        """Complete ``fitted``, a copy that knows its columns, become it, and issue warnings."""
        known = settled.moments
        if isinstance(moments, GroupMoments):  # ImplicitMoments would keep X alive
            fitted.moments_ = moments
        fitted.scale_ = np.ones(known.n_features)
        if settled.scale is not None:
            fitted.scale_ = settled.scale
        fitted.mean_ = known.mean * fitted.scale_
        fitted.groups_ = known.groups
        fitted.group_sizes_ = known.counts
        fitted.n_samples_ = known.n_rows
        fitted.small_groups_ = settled.small
        if self.missing == "available":
            fitted.covariance_ = settled.covariance
            fitted.clipped_variance_ = known.clipped_variance
        fitted._set_result(settled, result)
        self.__dict__ = fitted.__dict__
        self._warn(settled, result)
        warn_of_data(known)
        return self

    def _ready(self) -> Self:
        """A copy of this fitted estimator, which stays as it is if another thread fits again.

        An estimator that is not fitted is refused; after ``partial_fit``, the error says what is
        missing.
        """
        fitted = copy(self)
        if fitted._lacking:
            raise NotFittedError(fitted._lacking)
        check_is_fitted(fitted)
        return fitted

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a result; ``partial_fit`` may have seen too few rows for one."""
        return "groups_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "available"
        return tags


class Targeted(GroupEstimator[Result]):
    """Base of the estimators that may look at y: moments are kept by group and outcome."""

    notion: Notion | None

    def _needs_outcomes(self) -> bool:
        return self.notion != "demographic_parity"

    def _target(self, y: Any, method: str, before: GroupMoments | None = None) -> Any:
        if not self._needs_outcomes():
            return None
        if y is None:
            raise ValueError(
                f"{self!r} requires y to be passed, but the target y is None; pass "
                f"{method}(X, y, sensitive_features=groups) with the class of each row."
            )
        self._check_classes(classes_in(y))  # before each class gets a matrix
        return y

    def _check_groups(self, settled: SettledGroups) -> None:
        outcomes = None
        if settled.cells is not None:
            outcomes = settled.cells.outcomes
        if outcomes is not None and self._needs_outcomes():
            self._check_classes(set(outcomes.tolist()))

    def _check_classes(self, classes: set[Any]) -> None:
        """Refuse classes that may be meant as numbers."""
        refuse_counts(classes, "pass fewer classes, for example y > threshold")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_outcomes()
        return tags


@dataclass(eq=False, repr=False)
class FairProjection(Projection, GroupEstimator[Solution]):
    """Base of the estimators that solve a problem for components to project onto.

    Fields are parameters: the common ones are here, the others in the subclasses.
    """

    n_components: int | float | None = None
    _: KW_ONLY
    standardize: bool = False
    whiten: bool = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEstimator._parameter_constraints,
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            None,
        ],
        "whiten": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
    }
    _otherwise: ClassVar[str] = ", or use sklearn.decomposition.PCA"

    def _check_groups(self, settled: SettledGroups) -> None:
        super()._check_groups(settled)
        if not isinstance(self, AnyGroups):
            check_two_groups(settled.moments.groups.tolist(), type(self).__name__)

    def _problem(self) -> Any:
        """What ``_solve_rank`` solves by default; None if an estimator solves in its own way."""
        return None

    def _solve(self, settled: SettledGroups) -> Solution:
        """Decide on the rank, and solve."""
        operand = settled.measured(self.relative_errors)
        n = settled.moments.n_rows
        d = operand.n_features
        limit = min(n, d)
        wanted = self.n_components
        if operand.products_only and not isinstance(wanted, Integral):
            raise ValueError(
                f"n_components={wanted} would need all eigenvalues of matrices with {d} rows; with "
                "so many features pass an integer, for example n_components=20."
            )
        if isinstance(wanted, float):
            solve_rank = partial(self._solve_rank, settled, operand)
            return solve_fewest_components(operand, wanted, solve_rank)
        if wanted is None:
            wanted = limit
        if wanted > limit:
            raise (ValueError if wanted > d else NotEnoughRows)(
                f"n_components={wanted} is more than the data allow: with n_samples = {n} and "
                f"n_features = {d} pass an integer from 1 to {limit}, a fraction between 0 and "
                "1, or None."
            )
        return self._solve_rank(settled, operand, int(wanted))

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        """Solve with this number of components."""
        return solve(self._problem(), operand, rank, self.tol)

    def _set_result(self, settled: SettledGroups, result: Solution) -> None:
        """Set components, variances and the figures of the groups."""
        operand = settled.operand
        measured = settled.measured(self.relative_errors)
        n = settled.moments.n_rows
        labels = settled.moments.groups.tolist()
        total = float(operand.shares @ operand.traces)
        unbiased = n / max(n - 1, 1)
        self.components_, variances = self._components(settled, result)
        r, d = self.components_.shape
        rest = max(total - float(variances.sum()), 0.0)
        self.n_components_ = r
        self.explained_variance_ = variances * unbiased
        self.explained_variance_ratio_ = variances / max(total, TINY)
        self.noise_variance_ = 0.0
        if r < d:
            self.noise_variance_ = rest * unbiased / (d - r)

        sides = settled.compared, result.harmed, result.privileged
        self.group_errors_ = np.maximum(result.errors, 0.0)
        whole = np.where(varying_groups(measured.traces), measured.traces, inf)
        self.group_explained_variance_ratio_ = 1.0 - self.group_errors_ / whole
        self.reconstruction_error_ = float(measured.shares @ self.group_errors_)
        self.disparity_ = float(disparity(result.errors, *sides))
        self.harmed_group_ = labels[result.harmed]
        self.privileged_group_ = labels[result.privileged]
        self.pca_group_errors_ = np.maximum(result.pca.errors, 0.0)
        self.pca_reconstruction_error_ = float(measured.shares @ self.pca_group_errors_)
        self.alpha_ = result.alpha
        self.duality_gap_ = max(result.gap, 0.0)  # rounding can make it negative
        self.status_ = str(result.status)
        self.n_eigensolves_ = result.n_eigensolves
        self.__dict__.update(result.extras)

    def _measured(self, settled: SettledGroups) -> Operand:
        """The moments that the problem is stated in."""
        return settled.measured(self.relative_errors)

    def _components(self, settled: SettledGroups, result: Solution) -> tuple[Array, Array]:
        """The components and the variances of their scores: uncorrelated, ordered by variance.

        Errors depend on the subspace alone, so the rotation costs nothing.
        """
        C_U = np.tensordot(settled.operand.shares, settled.operand.products(result.basis), axes=1)
        values, rotation = np.linalg.eigh(result.basis.T @ C_U)
        return with_signs(rotation[:, ::-1].T @ result.basis.T), np.maximum(values[::-1], 0.0)

    def _warn(self, settled: SettledGroups, result: Solution) -> None:
        measured = settled.measured(self.relative_errors)
        warn_of_result(self._problem(), result, settled, measured, self.tol)


def settled_groups(
    estimator: GroupEstimator[Any],
    X: Any,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    units: Any = None,
) -> SettledGroups:
    """The groups of these rows, or of moments, as a fit of the estimator would compare them."""
    estimator._validate_params()
    if isinstance(X, GroupMoments):
        return estimator._settle(X)
    given = estimator._opened(X, sensitive_features, sample_weight, None, units)
    return estimator._learn(estimator._rows_of("fit", given))[1]


def problem_of(estimator: FairProjection) -> Any:
    """What a projection solves for."""
    return estimator._problem()
