"""Fitting, shared by the estimators: all that happens before and right after a solve.

A subclass says only how to solve for a given rank (:meth:`FairProjection._solve_rank`). Fitting is
three sentences: accumulate the moments, solve, publish. ``partial_fit`` only accumulates; the solve
waits until a result is asked for, so a thousand blocks cost a thousand accumulations and one solve.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from copy import copy
from numbers import Integral
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from fairpca._estimators.projection import Projection
from fairpca._estimators.streaming import StreamingMixin
from fairpca._input.checks import (
    FORGOTTEN_GROUPS,
    check_several_groups,
)
from fairpca._input.device import is_dask
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.implicit import ImplicitMoments, learn, operand_of
from fairpca._moments.small_groups import SettledGroups, SmallGroups, settle_small_groups
from fairpca._problems.fair import APPROXIMATE, Status
from fairpca._sklearn import Interval, RealNotInt
from fairpca._solvers.eigenspaces.operand import (
    DenseOperand,
    Operand,
    rounding_of,
    top_eigenvectors,
)
from fairpca._solvers.two_groups.exact import Solution
from fairpca._solvers.two_groups.ranks import RankSieve
from fairpca._typing import Array
from fairpca.exceptions import DualityGapWarning, ParityInfeasibleWarning

M = TypeVar("M")

_LOST_DIGITS = 1e9  # the ratio of spreads that leaves errors six digits
_TIMES_ROUNDING = 10  # which variances must be at the least
_GAP_WORTH_A_WARNING = 1e-2  # of the overall error; only very many features can leave one

_RESULTS = frozenset(
    {
        "components_",
        "mean_",
        "explained_variance_",
        "explained_variance_ratio_",
        "noise_variance_",
        "n_components_",
        "groups_",
        "group_sizes_",
        "group_errors_",
        "group_explained_variance_ratio_",
        "reconstruction_error_",
        "disparity_",
        "privileged_group_",
        "harmed_group_",
        "pca_group_errors_",
        "pca_reconstruction_error_",
        "alpha_",
        "duality_gap_",
        "status_",
        "n_eigensolves_",
        "small_groups_",
    }
)


class FairProjection(StreamingMixin, Projection):
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
    }

    #: Attributes that a solve sets; a subclass adds those of its solutions' ``extras``.
    _results: ClassVar[frozenset[str]] = _RESULTS

    n_components: int | float | None
    normalize: bool
    # Parameters of the estimators for any number of groups, and what stands for them elsewhere:
    min_group_size: int = 1
    small_groups: SmallGroups = "error"
    tol: float = math.inf

    def fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Find the projection for the rows of X.

        Parameters
        ----------
        X : {array, memory map, sparse matrix, data frame} of shape (n_samples, n_features)
            Training data; neither modified nor copied whole.
        y : None
            Ignored.
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
        moments = self._learn(learn, X, sensitive_features, sample_weight, "fit")
        settled = self._settle_groups(moments)
        self._remember_features(X, moments)
        self._restart(moments)._publish(settled)
        if isinstance(moments, ImplicitMoments):
            del self.moments_  # it holds on to X
        return self

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
        moments: Any = GroupMoments() if first else self.moments_
        self._learn(moments.update, X, sensitive_features, sample_weight, "partial_fit")
        if first:
            self._remember_features(X, moments)
        return self._restart(moments)

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
        return self._fit_settled(moments, self._settle_groups(moments))

    def _fit_settled(self, moments: GroupMoments, settled: SettledGroups) -> Self:
        self._remember_features(None, moments)
        return self._restart(copy(moments))._publish(settled)

    def fit_transform(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Any:
        """Fit to X and return its scores; arguments as for :meth:`fit`."""
        return self.fit(
            X, sensitive_features=sensitive_features, sample_weight=sample_weight
        ).transform(X)

    def _ready(self) -> None:
        """Refuse before a fit; compute what ``partial_fit`` has put off."""
        check_is_fitted(self)
        if "components_" not in vars(self):
            self._check_params()
            self._publish()

    def __copy__(self) -> Self:
        """A copy that ``partial_fit`` changes alone."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(vars(self))
        if "moments_" in vars(self):
            twin.moments_ = copy(self.moments_)
        return twin

    def __sklearn_is_fitted__(self) -> bool:
        """Fitted: there is a projection, or there are moments to compute it from."""
        return "components_" in vars(self) or "moments_" in vars(self)

    def __getattr__(self, name: str) -> Any:
        """Compute the results when one is asked for after ``partial_fit``."""
        if name in self._results and "moments_" in vars(self) and "components_" not in vars(self):
            try:
                self._check_params()
                return getattr(self._publish(), name)
            except ValueError as error:  # hasattr must be able to say no
                raise AttributeError(f"{name} cannot be computed: {error}") from error
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _solve_rank(
        self, operand: Operand, rank: int, moments: GroupMoments | ImplicitMoments
    ) -> tuple[Solution, int]:
        """The solution for one rank and the number of eigensolves it took."""
        raise NotImplementedError

    def _rank_sieve(self, operand: DenseOperand, may_lose: Array) -> RankSieve | None:
        """Where there is a way to see that a rank costs some group too much, without a solve."""
        return None

    def _check_params(self) -> None:
        self._validate_params()

    def _settle_groups(self, moments: GroupMoments | ImplicitMoments) -> SettledGroups:
        """Deal with small groups, and check that what is left can be compared."""
        settled = settle_small_groups(moments, self.min_group_size, self.small_groups)
        labels = settled.moments.groups
        check_several_groups(labels[settled.compared].tolist(), int(moments.counts.sum()))
        self._check_groups(labels.tolist())
        return settled

    def _check_groups(self, labels: list[Any]) -> None:
        """Refuse groups that this estimator, with its parameters, cannot compare."""

    def _learn(
        self,
        make: Callable[[Any, Any, Any], M],
        X: Any,
        sensitive_features: Any,
        sample_weight: Any,
        method: str,
    ) -> M:
        if sensitive_features is None:
            name = type(self).__name__
            raise TypeError(FORGOTTEN_GROUPS.format(name=name, method=method, step=name.lower()))
        return make(X, sensitive_features, sample_weight)

    def _check_features(self, X: Any) -> None:
        """Refuse other columns than before; quick for arrays, of which there may be thousands."""
        if isinstance(X, np.ndarray) and "feature_names_in_" not in vars(self):
            fits = X.ndim == 2 and X.shape[1] == self.n_features_in_
        else:
            fits = is_dask(X)  # whose blocks are compared when they are merged
        if not fits:
            validate_data(self, X, reset=False, skip_check_array=True)

    def _remember_features(self, X: Any, moments: GroupMoments | ImplicitMoments) -> None:
        """Number and names of the columns, as scikit-learn sees X or, X unseen, by the moments."""
        if X is not None and not is_dask(X):
            validate_data(self, X, reset=True, skip_check_array=True)
            return
        self.n_features_in_ = moments.n_features
        self.__dict__.pop("feature_names_in_", None)
        if moments.feature_names is not None:
            self.feature_names_in_ = np.asarray(moments.feature_names, dtype=object)

    def _restart(self, moments: GroupMoments | ImplicitMoments) -> Self:
        """Forget earlier results; these moments are the state from now on."""
        for name in self._results & vars(self).keys():
            delattr(self, name)
        self.moments_ = moments
        return self

    def _publish(self, settled: SettledGroups | None = None) -> Self:
        """Solve, and set the fitted attributes."""
        settled = settled or self._settle_groups(self.moments_)
        moments, compared = settled.moments, settled.compared
        shares = moments.weights / moments.weights.sum()
        operand = operand_of(moments, compared=compared)
        measured = operand.relative() if self.normalize else operand
        solution, n_eigensolves = self._solve(measured, moments)
        # Errors depend on the subspace alone: choose the basis with uncorrelated, ordered scores.
        C_U = np.tensordot(shares, operand.products(solution.basis), axes=1)
        captured = np.linalg.eigh(solution.basis.T @ C_U)
        variances = np.maximum(captured.eigenvalues[::-1], 0.0)
        r, d, n = len(variances), moments.n_features, int(moments.counts.sum())
        total, unbiased = float(shares @ operand.traces), n / max(n - 1, 1)
        left = max(total - float(variances.sum()), 0.0)
        errors = np.maximum(solution.errors, 0.0)
        labels = moments.groups.tolist()
        if np.count_nonzero(compared) == 2:
            D = solution.errors[solution.harmed] - solution.errors[solution.privileged]
        else:
            D = np.ptp(solution.errors[compared])

        self.components_ = _fix_signs(captured.eigenvectors[:, ::-1].T @ solution.basis.T)
        self.mean_ = moments.mean
        self.n_components_ = r
        self.explained_variance_ = variances * unbiased
        self.explained_variance_ratio_ = _ratio(variances, total)
        self.noise_variance_ = left * unbiased / (d - r) if r < d else 0.0
        self.groups_ = moments.groups
        self.group_sizes_ = moments.counts
        self.group_errors_ = errors
        self.group_explained_variance_ratio_ = 1.0 - _ratio(errors, measured.traces)
        self.reconstruction_error_ = float(measured.shares @ errors)
        self.disparity_ = float(D)
        self.privileged_group_ = labels[solution.privileged]
        self.harmed_group_ = labels[solution.harmed]
        self.pca_group_errors_ = np.maximum(solution.pca.errors, 0.0)
        self.pca_reconstruction_error_ = float(measured.shares @ self.pca_group_errors_)
        self.alpha_ = solution.alpha
        self.duality_gap_ = max(solution.gap, 0.0)  # below zero only by rounding
        self.status_ = str(solution.status)
        self.n_eigensolves_ = n_eigensolves
        self.small_groups_ = settled.small
        self.__dict__.update(solution.extras)
        self._warn(solution.status, measured)
        if isinstance(moments, GroupMoments):
            _warn_of_lost_digits(*moments._spreads())
        if isinstance(operand, DenseOperand):
            variances = np.einsum("g,gii->i", shares, operand.C)
            _warn_of_drowned_features(variances, moments.feature_names)
        return self

    def _warn(self, status: Status, measured: Operand) -> None:
        """Say aloud what a user must not overlook."""
        r, R, gap = self.n_components_, self.reconstruction_error_, self.duality_gap_
        largest = float(measured.traces.max())
        if status is Status.INFEASIBLE:
            warnings.warn(
                f"no projection onto {r} components has the disparity asked for; this one has the "
                f"least possible, {self.disparity_:.6g}. Pass more components.",
                ParityInfeasibleWarning,
                stacklevel=4,
            )
        if not isinstance(measured, DenseOperand) and len(measured.shares) == 2:
            if gap > _GAP_WORTH_A_WARNING * R:
                warnings.warn(
                    f"with {measured.n_features} features the search ended before it had "
                    f"converged: the least error may be lower by up to {gap:.3g} than {R:.6g}, "
                    "that of the projection found. All figures about this projection are exact.",
                    ConvergenceWarning,
                    stacklevel=4,
                )
        elif status not in APPROXIMATE and gap > self.tol * largest:
            warnings.warn(
                f"the projection onto {r} components may be up to duality_gap_ = {gap:.3g} worse "
                f"than the best one, which is more than tol = {self.tol:g} times the largest "
                f"group's variance, {largest:.3g}: for more than two groups the bound is not "
                "always attained. Another n_components may close the gap; a larger tol accepts it.",
                DualityGapWarning,
                stacklevel=4,
            )

    def _solve(
        self, operand: Operand, moments: GroupMoments | ImplicitMoments
    ) -> tuple[Solution, int]:
        """Settle the rank and solve."""
        n, d = int(moments.counts.sum()), moments.n_features
        limit, wanted = min(n, d), self.n_components
        if not isinstance(operand, DenseOperand) and not isinstance(wanted, Integral):
            raise ValueError(
                f"n_components={wanted} would need all eigenvalues of matrices with {d} rows; with "
                "so many features pass an integer, for example n_components=20."
            )
        if wanted is None:
            return self._solve_rank(operand, limit, moments)
        if not isinstance(wanted, float):
            if wanted > limit:
                raise ValueError(
                    f"n_components={wanted} is more than the data allow: with n_samples = {n} and "
                    f"n_features = {d} pass an integer from 1 to {limit}, a fraction between 0 and "
                    "1, or None."
                )
            return self._solve_rank(operand, int(wanted), moments)
        rounding = 1e-14 * float(operand.traces.max())
        may_lose = (1 - float(wanted)) * operand.traces + rounding
        least = _least_rank(operand.C, float(wanted))
        solution, n_eigensolves = self._solve_rank(operand, least, moments)
        sieve = self._rank_sieve(operand, may_lose)
        for r in range(least + 1, d + 1):  # all features keep everything
            if (solution.errors <= may_lose).all():
                break
            if r == d or sieve is None or not sieve.excludes(r, solution.alpha):
                solution, solves = self._solve_rank(operand, r, moments)
                n_eigensolves += solves
        return solution, n_eigensolves + (sieve.n_eigensolves if sieve else 0)


def _warn_of_lost_digits(within: float, between: float) -> None:
    """Second moments about the overall mean cannot hold a spread far below that of the means."""
    if between > _LOST_DIGITS * within > 0:
        warnings.warn(
            f"the groups' means are so far apart (mean square {between:.3g}) that the spread of "
            f"the rows about them ({within:.3g}) is nearly lost in the rounding of float64: take "
            f"errors and disparity as uncertain by about {1e-15 * between:.1g}. Drop the columns "
            "that tell the groups apart, or subtract each group's mean first.",
            RuntimeWarning,
            stacklevel=4,
        )


def _warn_of_drowned_features(variances: Array, names: list[str] | None) -> None:
    """A feature of far larger numbers leaves nothing of the others."""
    total, largest = float(variances.sum()), int(variances.argmax())
    others = float(np.delete(variances, largest).sum())
    if 0 < others < _TIMES_ROUNDING * rounding_of(len(variances)) * total:
        warnings.warn(
            f"feature {names[largest] if names else largest!r} varies so much more (variance "
            f"{variances[largest]:.3g}) than all others together ({others:.3g}) that these are "
            "lost in the rounding of float64. Standardise the features first, for example with "
            "StandardScaler, or leave this one out.",
            RuntimeWarning,
            stacklevel=4,
        )


def _least_rank(C: Array, fraction: float) -> int:
    """The rank below which some group cannot keep its share even with a projection of its own."""
    least = 1
    for C_g in C:
        kept = np.cumsum(top_eigenvectors(C_g, len(C_g))[0])
        least = max(least, int(np.searchsorted(kept, fraction * kept[-1] * (1 - 1e-12))) + 1)
    return least


def _fix_signs(components: Array) -> Array:
    """Make the entry of largest magnitude of each component positive, the first one on a tie."""
    magnitudes = np.abs(components)
    near_largest = magnitudes >= magnitudes.max(axis=1, keepdims=True) * (1 - 1e-7)
    decisive = near_largest.argmax(axis=1)
    signs = np.sign(components[np.arange(len(components)), decisive])
    return np.asarray(components * signs[:, None])


def _ratio(part: Array, whole: Any) -> Array:
    """``part / whole``, and 0 where the whole is: nothing of nothing is lost."""
    whole = np.broadcast_to(whole, part.shape)
    return np.asarray(np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0))
