"""Fitting, shared by the estimators: learn the moments, solve the problem, publish the result.

A subclass says what its problem is (:meth:`FairProjection._problem`). ``partial_fit`` only learns;
the solve waits until a result is asked for, so a thousand blocks cost a thousand accumulations and
one solve. The results are the annotated attributes that end in an underscore; asking for one after
``partial_fit``, with ``hasattr`` too, runs the solve.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from inspect import get_annotations, signature
from itertools import chain
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from fairpca._estimators.advice import warn_of_data, warn_of_few_rows, warn_of_result
from fairpca._estimators.results import fitted_attributes
from fairpca._estimators.streaming import StreamedProjection
from fairpca._input.checks import check_several_groups, forgotten_groups
from fairpca._input.device import is_dask
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.implicit import ImplicitMoments
from fairpca._moments.learn import learn
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups, SmallGroups, settle_small_groups
from fairpca._problems.solution import Solution
from fairpca._sklearn import Interval, RealNotInt, validate_parameter_constraints
from fairpca._solvers import Problem, solve
from fairpca._solvers.rank import least_rank
from fairpca._threads import single_threaded_blas
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
        "normalize": ["boolean"],
        "whiten": ["boolean"],
    }

    # Parameters; the last three stand in for those that an estimator of two groups lacks:
    n_components: int | float | None
    normalize: bool
    min_group_size: int = 1
    small_groups: SmallGroups = "error"
    tol: float = math.inf

    # Results:
    components_: Array
    mean_: Array
    explained_variance_: Array
    explained_variance_ratio_: Array
    noise_variance_: float
    n_components_: int
    groups_: Labels
    group_sizes_: NDArray[np.int64]
    group_errors_: Array
    group_explained_variance_ratio_: Array
    reconstruction_error_: float
    disparity_: float
    privileged_group_: Any
    harmed_group_: Any
    pca_group_errors_: Array
    pca_reconstruction_error_: float
    alpha_: float
    duality_gap_: float
    status_: str
    n_eigensolves_: int
    small_groups_: list[Any]

    moments_: GroupMoments  # not a result: partial_fit goes on from it
    _results: ClassVar[frozenset[str]]
    _defaults: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, **options: Any) -> None:
        """Collect the defaults, and the names of the results, those of the subclass included."""
        super().__init_subclass__(**options)
        parameters = list(signature(cls.__init__).parameters.values())[1:]
        cls._defaults = {parameter.name: parameter.default for parameter in parameters}
        annotated = chain.from_iterable(map(get_annotations, cls.__mro__))
        results = {name for name in annotated if name.endswith("_") and not name.endswith("_in_")}
        cls._results = frozenset(results - {"moments_"})

    def fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
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

        Returns
        -------
        self
        """
        self._check_params()
        if sensitive_features is None:
            raise forgotten_groups(type(self).__name__, "fit", self._needs_outcomes())
        moments = self._learn(X, y, sensitive_features, sample_weight)
        settled = self._settle(moments)
        solution = self._solve(settled)
        self._remember_features(X, settled.moments)
        return self._publish(moments, settled, solution)

    def partial_fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add the rows of X to those seen before; arguments as for :meth:`fit`.

        The projection is computed when it is first used, so blocks are cheap, and a block may hold
        a single group.
        """
        first = not self.__sklearn_is_fitted__()
        if first:
            self._check_params()
        elif "moments_" not in vars(self):
            raise ValueError(
                f"this {type(self).__name__} has no moments (it was loaded, or fitted to very many "
                "features at once) and cannot be updated; call fit, or partial_fit on a new object."
            )
        else:
            self._check_features(X)
        if sensitive_features is None:
            raise forgotten_groups(type(self).__name__, "partial_fit", self._needs_outcomes())
        moments = GroupMoments() if first else self.moments_
        self._update(moments, X, y, sensitive_features, sample_weight)
        if first:
            self._remember_features(X, self._features_of(moments))
        if first or "components_" in vars(self):
            self._replace_state(moments)
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
        """Find the projection for groups that :meth:`_settle` has dealt with."""
        moments = copy(moments)
        solution = self._solve(settled)
        self._remember_features(None, settled.moments)
        return self._publish(moments, settled, solution)

    def fit_transform(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Any:
        """Fit to X and return its scores; arguments as for :meth:`fit`."""
        return self.fit(
            X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
        ).transform(X)

    def _settle(self, moments: Learnt) -> SettledGroups:
        """Deal with small groups, and check that what is left can be compared."""
        by_group = self._features_of(moments)
        settled = settle_small_groups(by_group, self.min_group_size, self.small_groups)
        labels = settled.moments.groups
        check_several_groups(labels[settled.compared].tolist(), int(moments.counts.sum()))
        self._check_groups(labels.tolist())
        return settled

    # -- what a subclass says ----------------------------------------------------------------------

    def _problem(self) -> Problem:
        """What is minimised."""
        raise NotImplementedError

    def _walk_from_pca(self) -> Problem:
        """The problem whose price the warnings measure against PCA."""
        return self._problem()

    def _learn(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> Learnt:
        """The first step of ``fit``; y is for estimators that have a use for it."""
        return learn(X, groups, sample_weight)

    def _update(
        self, moments: GroupMoments, X: Any, y: Any, groups: Any, sample_weight: Any
    ) -> None:
        """The same for ``partial_fit``: add rows to what was learnt before."""
        moments.update(X, groups, sample_weight, **self._fold_options())

    def _needs_outcomes(self) -> bool:
        """Whether ``fit`` needs y."""
        return False

    def _features_of(self, moments: Learnt) -> Learnt:
        """The moments of the features by group, without what was learnt about outcomes."""
        return moments

    def _check_params(self) -> None:
        """Refuse what is not allowed; defaults are, and looking at them would take longer."""
        values = {name: getattr(self, name) for name in self._defaults}
        given = {name: v for name, v in values.items() if v is not self._defaults[name]}
        allowed = self._parameter_constraints
        validate_parameter_constraints(allowed, given, caller_name=type(self).__name__)
        for name, value in given.items():
            is_number = any(isinstance(constraint, Interval) for constraint in allowed[name])
            if is_number and isinstance(value, bool):  # which Python takes for 0 or 1
                raise ValueError(
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
            return self._solve_fraction(settled, operand, wanted)
        if wanted is not None and wanted > limit:
            raise ValueError(
                f"n_components={wanted} is more than the data allow: with n_samples = {n} and "
                f"n_features = {d} pass an integer from 1 to {limit}, a fraction between 0 and "
                "1, or None."
            )
        return self._solve_rank(settled, operand, limit if wanted is None else int(wanted))

    def _solve_fraction(
        self, settled: SettledGroups, operand: Operand, fraction: float
    ) -> Solution:
        """Solve with the fewest components that leave every group this share of its variance."""
        may_lose = (1 - fraction) * operand.traces + 1e-14 * float(operand.traces.max())
        n_eigensolves = 0
        with single_threaded_blas():
            least = least_rank(operand.compact, may_lose)
        for rank in range(least, operand.n_features + 1):
            solution = self._solve_rank(settled, operand, rank)
            n_eigensolves += solution.n_eigensolves
            if (solution.errors <= may_lose).all():
                break
        return replace(solution, n_eigensolves=n_eigensolves)

    # -- publishing --------------------------------------------------------------------------------

    def _publish(self, moments: Learnt, settled: SettledGroups, solution: Solution) -> Self:
        """Set the fitted attributes, and say what must not be overlooked."""
        measured = settled.measured(self.normalize)
        results = fitted_attributes(settled, measured, solution)
        self._replace_state(moments, **results)
        problem = self._walk_from_pca()
        warn_of_result(problem, solution, measured, results["disparity_"], self.tol)
        warn_of_few_rows(problem, solution, settled, measured)
        warn_of_data(settled.moments)
        return self

    def _replace_state(self, moments: Learnt, **results: Any) -> None:
        """New moments and results for old, in one step that an interrupt cannot divide."""
        old = {"moments_", *self._results}
        state = {name: value for name, value in vars(self).items() if name not in old}
        if isinstance(moments, GroupMoments):  # the other kind would hold on to X
            state["moments_"] = moments
        self.__dict__ = {**state, **results}

    def _ready(self) -> None:
        """Refuse before a fit; compute what ``partial_fit`` has put off."""
        check_is_fitted(self)
        if "components_" not in vars(self):
            self._check_params()
            settled = self._settle(self.moments_)
            self._publish(self.moments_, settled, self._solve(settled))

    def __getattr__(self, name: str) -> Any:
        """Compute the results when one is asked for after ``partial_fit``."""
        pending = "moments_" in vars(self) and "components_" not in vars(self)
        if pending and name in self._results:
            try:
                self._ready()
            except ValueError as error:  # hasattr must be able to say no
                raise AttributeError(f"{name} cannot be computed: {error}") from error
            return getattr(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        """Fitted: there is a projection, or there are moments to compute it from."""
        return "components_" in vars(self) or "moments_" in vars(self)

    def __copy__(self) -> Self:
        """A copy that ``partial_fit`` changes alone."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(vars(self))
        if "moments_" in vars(self):
            copied.moments_ = copy(self.moments_)
        return copied

    # -- what the user passed ----------------------------------------------------------------------

    def _check_features(self, X: Any) -> None:
        """Refuse columns other than before; quick for arrays, of which there may be thousands."""
        if isinstance(X, np.ndarray) and "feature_names_in_" not in vars(self):
            fits = X.ndim == 2 and X.shape[1] == self.n_features_in_
        else:
            fits = is_dask(X)  # whose blocks are compared when they are merged
        if not fits:
            validate_data(self, X, reset=False, skip_check_array=True)

    def _remember_features(self, X: Any, moments: Learnt) -> None:
        """Set number and names of the columns: as scikit-learn sees X, or without X by moments."""
        if not (X is None or isinstance(X, np.ndarray) or is_dask(X)):
            validate_data(self, X, reset=True, skip_check_array=True)
            return
        self.n_features_in_ = moments.n_features
        self.__dict__.pop("feature_names_in_", None)
        if moments.feature_names is not None:
            self.feature_names_in_ = np.asarray(moments.feature_names, dtype=object)
