"""FairPCA: efficient fairness, c-FPCA, u-FPCA, budgets for any number of groups; alpha for two."""

from __future__ import annotations

from math import inf
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils import check_random_state

from fairpca._estimators.advice import warn_of_held_out
from fairpca._estimators.base import FairProjection, Learnt
from fairpca._estimators.stopping import solve_by_folds
from fairpca._input.checks import check_two_groups
from fairpca._input.device import is_dask
from fairpca._moments.dealing import learn_folds
from fairpca._moments.folds import Folds, check_folds_of
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups, SmallGroups
from fairpca._problems.fair import Constraint, FairProblem
from fairpca._problems.solution import Solution
from fairpca._sklearn import Interval, StrOptions
from fairpca._typing import Array


class FairPCA(FairProjection):
    """Principal component analysis that reconstructs all groups equally well.

    Plain PCA minimises the overall reconstruction error, and may reconstruct one group much worse
    than another. ``FairPCA`` goes from PCA towards equal errors, at the least overall error on the
    way, and stops before everybody would only get worse. It has a certificate, and needs one pass
    over the data. For two groups the solution is exact. For more the disparity is the spread,
    largest minus smallest error of a group, and ``duality_gap_`` says how far the projection can be
    from the best one.

    Columns are taken as they are, as by scikit-learn's ``PCA``. :func:`fairpca.audit` and the
    command standardise them by default; here, put a ``StandardScaler`` before.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components; a fraction in (0, 1) means the fewest with which EVERY group keeps at
        least that share of its variance; None means ``min(n_samples, n_features)``.
    constraint : {"pareto", "no_worse"} or None, default="pareto"
        Where to stop if parity is not reached before. ``"pareto"``: where the worst-off group is as
        well off as any projection can make it. No projection has a smaller error for one group
        without a larger one for another. ``"no_worse"`` is c-FPCA of the paper: go on until the
        harmed group is back at its error under PCA. None is u-FPCA: the groups are made equal at
        any price. The latter two may make all groups worse; they give a
        :class:`~fairpca.exceptions.LevellingDownWarning` when somebody is worse off than under PCA
        and nobody better off.
    alpha : float in [0, 1], optional
        Fix the weighting ``alpha R + (1 - alpha) D`` of overall error and disparity instead of
        finding it. The constraint does not apply. 1 is plain PCA; less is for two groups only.
    max_disparity : float, optional
        Instead of parity ask for a disparity of at most this, at the least overall error. The
        constraint applies as well: with ``constraint=None`` the budget is met wherever it can be.
    max_error_increase : float, optional
        Go towards parity at an overall error of at most ``1 + max_error_increase`` times that of
        PCA; 0.01 allows one percent. The constraint applies as well.
    normalize : bool, default=False
        Divide each group's error by the group's own total variance, so that parity means the same
        share of variance kept, whatever the scale of a group's data. All errors reported are then
        such shares, and the overall error is the share of all rows' variance that is lost.
    whiten : bool, default=False
        Divide each score by its standard deviation, as scikit-learn's ``PCA`` does, for what comes
        after it. ``components_`` and all errors stay as they are, ``inverse_transform`` undoes it.
    min_group_size : int, default=1
        Groups of fewer rows are not compared; ``small_groups`` says what becomes of them.
    small_groups : {"error", "merge", "ignore"}, default="error"
        Refuse small groups by name; merge them into one group called "rest"; or leave them out of
        the comparison, so that they count in the overall error only.
    solver : {"exact", "golden"}, default="exact"
        ``"golden"`` is the search printed in the paper, for comparison: slower, less exact, and for
        two groups only.
    tol : float, default=1e-6
        Largest ``duality_gap_`` that passes without a
        :class:`~fairpca.exceptions.DualityGapWarning`, relative to what is minimised, or to the
        overall error if that is a disparity; with more than two groups the search ends there. Two
        groups are solved to rounding, so that theirs is relative to the largest total variance of
        a group. With more than 5000 features they get a ``ConvergenceWarning`` instead, from a
        hundredth of the overall error on.
    cv : int, splitter or iterable of splits, optional
        Choose the stop by cross-validation, with so many folds, or with those of a splitter such
        as ``RepeatedStratifiedKFold(n_splits=5, n_repeats=4)``, which sees numbers of groups as y.
        Constraint and budgets then apply to the errors of rows that were not fitted to. Without a
        disparity asked for, ``constraint="pareto"`` ends where the worst-off group is best off,
        and stays at PCA where its gain is within one standard error. The projection is fitted to
        all rows in the end. Rows that are read as a stream (``fit_files``, ``partial_fit``, dask)
        go to folds by a hash of their position; they need a number of folds.
    random_state : int, RandomState or None, default=None
        Deals the rows to the folds; with an int the result repeats.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features_in_)
        Orthonormal rows. Scores are uncorrelated and ordered by variance; the largest entry of each
        row is positive.
    mean_ : ndarray of shape (n_features_in_,)
        Overall mean.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components_,)
        Variance of each score, and its share of the total. As in scikit-learn with n - 1, where
        n counts the rows of positive weight.
    singular_values_ : ndarray of shape (n_components_,)
        Norms of the scores of all rows: the roots of n - 1 times ``explained_variance_``.
    noise_variance_ : float
        Mean variance across the components.
    n_components_, n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when X was a data frame with string column names.
    groups_, group_sizes_ : ndarray of shape (k,)
        Labels, sorted, and numbers of rows.
    small_groups_ : list
        Labels of the groups that were merged or left out for being small.
    group_errors_ : ndarray of shape (k,)
        Average squared reconstruction error of each group, in the order of ``groups_``.
    group_explained_variance_ratio_ : ndarray of shape (k,)
        Share of its variance that each group keeps.
    reconstruction_error_ : float
        Average squared reconstruction error over all rows.
    disparity_ : float
        Of two groups: error of the harmed one minus that of the privileged one. Of more: largest
        error of a group minus the smallest.
    privileged_group_, harmed_group_ : label
        The groups that plain PCA with as many components treats best and worst.
    pca_group_errors_, pca_reconstruction_error_ : ndarray of shape (k,), float
        The same figures for plain PCA.
    alpha_ : float
        The weighting at which the projection is optimal; NaN for more than two groups, unless 1
        was asked for.
    duality_gap_ : float
        How far the projection can be from the best possible one: zero up to rounding for two
        groups. It is about what ``status_`` claims: the overall error where parity or a disparity
        was reached, the error of the worst-off group where that is at its best, otherwise the
        disparity. NaN for ``solver="golden"``, which proves nothing.
    error_gap_ : float
        Of more than two groups, with ``constraint="pareto"``: how much smaller the overall error
        can be among the projections whose largest error is no larger.
    status_ : str
        "parity reached", "worst-off group at its best" (by ``constraint="pareto"``), "capped" (by
        ``constraint="no_worse"``), "parity infeasible at this rank",
        "already fair", "disparity budget met", "error budget spent", "fixed alpha", "golden section
        ended at its tolerance", and for more than two groups "least disparity found, not proven"
        where parity is neither reached nor known to be out of reach. With ``cv``: "stopped by
        cross-validation" or, where that stays at PCA,
        "no gain on held-out rows: PCA".
    stop_ : float
        With ``cv``: how far the projection is from PCA, 0, to the end of the way, 1.
    held_out_group_errors_, held_out_pca_group_errors_ : ndarray of shape (k,)
        With ``cv``: errors of rows that were not fitted to, and the same for PCA.
    held_out_reconstruction_error_, held_out_disparity_ : float
        With ``cv``: the same for all rows together, and for the disparity.
    held_out_changes_ : ndarray of shape (k,)
        With ``cv``: how much larger each group's held-out error is than under PCA; negative for
        those who gain.
    held_out_disparity_interval_, held_out_changes_interval_ : ndarray of shape (2,), (k, 2)
        With ``cv``: 95 % intervals of these, by the corrected t-test of Nadeau and Bengio. They do
        not account for the choice of the stop among others. Of more than two groups the disparity
        is taken as that between the two that are furthest apart.
    n_eigensolves_ : int
        Number of eigendecompositions.
    moments_ : GroupMoments
        What was learnt from the data; further ``partial_fit`` calls add to it. With ``cv`` the
        moments of folds are kept apart (see :meth:`GroupMoments.without_folds`).

    See Also
    --------
    tradeoff_path : The whole frontier between PCA and parity.
    fairpca.metrics : Group errors on held-out data, and of other projections.

    References
    ----------
    .. [1] G. D. Pelegrina and L. T. Duarte, "A novel approach for Fair Principal Component Analysis
       based on eigendecomposition", 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4)) * [4, 2, 1, 1]
    >>> sex = np.repeat(["f", "m"], [100, 200])
    >>> X[sex == "f"] = 0.8 * X[sex == "f"][:, ::-1]
    >>> fair = FairPCA(n_components=2).fit(X, sensitive_features=sex)
    >>> fair.status_, fair.harmed_group_
    ('parity reached', 'm')
    >>> fair.pca_group_errors_.round(3)
    array([2.734, 4.584])
    >>> fair.group_errors_.round(3)
    array([4.046, 4.046])
    >>> fair.transform(X).shape
    (300, 2)
    """

    error_gap_: float

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FairProjection._parameter_constraints,
        "constraint": [StrOptions({"pareto", "no_worse"}), None],
        "alpha": [Interval(Real, 0, 1, closed="both"), None],
        "max_disparity": [Interval(Real, 0, None, closed="left"), None],
        "max_error_increase": [Interval(Real, 0, None, closed="left"), None],
        "min_group_size": [Interval(Integral, 1, None, closed="left")],
        "small_groups": [StrOptions({"error", "merge", "ignore"})],
        "solver": [StrOptions({"exact", "golden"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "cv": ["cv_object"],
        "random_state": ["random_state"],
    }

    # Results, with cv only:
    stop_: float
    held_out_group_errors_: Array
    held_out_pca_group_errors_: Array
    held_out_reconstruction_error_: float
    held_out_disparity_: float
    held_out_disparity_interval_: Array
    held_out_changes_: Array
    held_out_changes_interval_: Array

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        constraint: Constraint = "pareto",
        alpha: float | None = None,
        max_disparity: float | None = None,
        max_error_increase: float | None = None,
        normalize: bool = False,
        whiten: bool = False,
        min_group_size: int = 1,
        small_groups: SmallGroups = "error",
        solver: Literal["exact", "golden"] = "exact",
        tol: float = 1e-6,
        cv: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.constraint = constraint
        self.alpha = alpha
        self.max_disparity = max_disparity
        self.max_error_increase = max_error_increase
        self.normalize = normalize
        self.whiten = whiten
        self.min_group_size = min_group_size
        self.small_groups = small_groups
        self.solver = solver
        self.tol = tol
        self.cv = cv
        self.random_state = random_state

    def _check_params(self) -> None:
        super()._check_params()
        given = {
            name: value
            for name in ("alpha", "max_disparity", "max_error_increase")
            if (value := getattr(self, name)) is not None
        }
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(f'{name}={value}' for name, value in given.items())} contradict "
                "each other: each says how far to go from PCA towards parity. Pass one of them, "
                f"for example FairPCA({next(reversed(given))}={next(reversed(given.values()))})."
            )
        if given and self.solver == "golden":
            raise ValueError(
                f"solver='golden' searches for parity as the paper does and takes no "
                f"{next(iter(given))}; use solver='exact' with it."
            )

        if self.cv is not None and (self.alpha is not None or self.solver == "golden"):
            fixed = "solver='golden'" if self.alpha is None else f"alpha={self.alpha}"
            raise ValueError(
                f"{fixed} says where to stop, and cv={self.cv} asks for the stop to be chosen; "
                "pass one of them."
            )

    def _check_groups(self, labels: list[Any]) -> None:
        if self.alpha not in (None, 1):
            check_two_groups(labels, f"FairPCA(alpha={self.alpha})")
        if self.solver == "golden":
            check_two_groups(labels, "FairPCA(solver='golden')")

    # -- cross-validation --------------------------------------------------------------------------

    def _learn(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> Learnt:
        if self.cv is None:
            return super()._learn(X, y, groups, sample_weight)
        if is_dask(X):
            self._fold_options()
        rng = check_random_state(self.random_state)
        return learn_folds(X, groups, sample_weight, self.cv, rng)

    def _fold_options(self) -> dict[str, Any]:
        if self.cv is None:
            return {}
        if not isinstance(self.cv, Integral):
            raise ValueError(
                f"cv={self.cv} needs all rows at once, but these are read as a stream; pass a "
                "number of folds, for example cv=10, or call fit with rows in memory."
            )
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return {"folds": int(self.cv), "fold_seed": int(seed)}

    def _settle(self, moments: Learnt) -> SettledGroups:
        settled = super()._settle(moments)
        if self.cv is not None:
            check_folds_of(settled, self.cv)
        return settled

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        if self.cv is None:
            return super()._solve_rank(settled, operand, rank)
        problem, folds = self._problem(), Folds(settled)
        return solve_by_folds(problem, folds, operand, rank, self.normalize, self.tol)

    def _publish(self, moments: Learnt, settled: SettledGroups, solution: Solution) -> Self:
        super()._publish(moments, settled, solution)
        if self.cv is not None:
            changes = self.held_out_changes_[settled.compared]
            pca_errors = self.held_out_pca_group_errors_[settled.compared]
            warn_of_held_out(self._problem(), changes, pca_errors, self.held_out_disparity_)
        return self

    # -- what is minimised -------------------------------------------------------------------------

    def _problem(self) -> FairProblem:
        return FairProblem(
            constraint=self.constraint,
            max_disparity=0.0 if self.max_disparity is None else float(self.max_disparity),
            max_error_increase=(
                inf if self.max_error_increase is None else float(self.max_error_increase)
            ),
            alpha=None if self.alpha is None else float(self.alpha),
            solver=self.solver,
        )
