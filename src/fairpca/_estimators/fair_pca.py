"""FairPCA: efficient fairness, c-FPCA, u-FPCA, budgets for any number of groups; alpha for two."""

from dataclasses import KW_ONLY, dataclass
from math import inf
from numbers import Real
from typing import Any, ClassVar, Literal

from fairpca._estimators.base import AnyGroups, AvailableCases, SeveralAttributes
from fairpca._estimators.fitted import FairPCARecord
from fairpca._estimators.ordered import OrderedProjection
from fairpca._input.checks import check_two_groups
from fairpca._moments.small_groups import SettledGroups
from fairpca._problems.problems import Constraint, FairProblem
from fairpca._sklearn import Interval, StrOptions


@dataclass(eq=False, repr=False)
class FairPCA(AvailableCases, SeveralAttributes, AnyGroups, OrderedProjection, FairPCARecord):
    """Principal component analysis that describes the worst-described group as well as possible.

    Plain PCA may reconstruct one group much worse than another. ``FairPCA`` minimises the largest
    error of a group, and then the overall error: it moves from PCA towards equal errors, and stops
    before all groups would only get worse. It needs one pass over the data. For two groups the
    solution is exact. For more, the disparity is the largest minus the smallest group error, and
    ``duality_gap_`` says how far the projection can be from the best one [1]_.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components; a fraction in (0, 1) means the fewest with which EVERY group keeps at
        least that share of its variance, groups that are ignored apart; None means
        ``min(n_samples, n_features)``.
    constraint : {"efficient", "no_worse", "parity"}, default="efficient"
        Where to stop if parity is not reached before. ``"efficient"``: where the worst-off group is
        as well off as any projection can make it. ``"no_worse"`` is c-FPCA of the paper: go on
        until the harmed group is back at its error under PCA. ``"parity"`` is u-FPCA: the groups
        are made equal at any price. The latter two may make all groups worse, and then issue a
        :class:`~fairpca.exceptions.LevellingDownWarning`.
    alpha : float in [0, 1], optional
        Fix the weighting ``alpha R + (1 - alpha) D`` of overall error and disparity instead of
        finding it. The constraint does not apply. 1 is plain PCA; less is for two groups only.
    max_disparity : float, optional
        Accept a disparity of up to this instead of parity, at the least overall error. The
        constraint applies as well; with ``constraint="parity"`` the budget is met wherever it can
        be.
    max_error_increase : float, optional
        Go towards parity at an overall error of at most ``1 + max_error_increase`` times that of
        PCA; 0.01 allows one percent. The constraint applies as well.
    max_group_increase : float, optional
        Go towards parity while no compared group's error exceeds its error under PCA by more than
        this share; 0.03 allows three percent. The constraint applies as well.
    standardize : bool, default=False
        Divide each column by its standard deviation over all rows first, as ``StandardScaler``
        does. All errors are then in standardised units; ``inverse_transform`` returns raw ones.
    relative_errors : bool, default=False
        Divide each group's error by the group's own total variance, so that parity means the same
        share of variance kept. All reported errors are then shares of variance.
    whiten : bool, default=False
        Divide each score by its standard deviation, as scikit-learn's ``PCA`` does. All errors stay
        as they are, and ``inverse_transform`` undoes it.
    order : {"variance", "fair"}, default="variance"
        The order of the components. The first of them by variance are not fair by themselves.
        ``"fair"`` is an order of the same span in which they nearly are: inside the span of all
        components it solves for one component fewer, inside that span for two fewer, and so on.
        One fit then serves every smaller number of components; see ``prefix_gaps_`` and
        :meth:`truncated`. Scores are then correlated, and ``explained_variance_`` does not fall
        from one to the next. For ``constraint="efficient"`` without budgets and whitening.
    min_group_size : int, default=1
        Groups of fewer rows are not compared; ``small_groups`` says what becomes of them.
    small_groups : {"error", "merge", "ignore"}, default="error"
        Refuse small groups by name; merge them into one group called "rest"; or leave them out of
        the comparison, so that they count in the overall error only.
    crossing : bool, default=True
        What several columns of ``sensitive_features`` mean. By default they are crossed: each
        combination of labels is a group. With False each column, an *attribute*, has groups of its
        own, called "sex = f" or "age = old", and all of these are compared: every row counts in one
        group of each attribute. ``small_groups="merge"`` then merges within an attribute. Not with
        ``missing="available"``.
    missing : {"error", "available"}, default="error"
        What NaN means in X. ``"available"``: a value is missing; each entry of a group's second
        moments is then an average over the rows that have both columns. Nothing is filled in, so
        no group looks easier to describe than it is. This is right on average if values are missing
        at random within each group. ``transform`` puts expected values in place of missing ones.
        Refused for sparse X, for more than 5,000 columns, and if a group has a pair of columns
        together in fewer than ten rows.
    solver : {"exact", "golden"}, default="exact"
        ``"golden"`` is the search printed in the paper: slower, less exact, for two groups only.
    tol : float, default=1e-6
        Largest ``duality_gap_`` that passes without a
        :class:`~fairpca.exceptions.DualityGapWarning`, relative to what is minimised (to the
        overall error if that is a disparity). With more than two groups the search ends at this
        gap. Two groups are solved to rounding; for them ``tol`` is relative to the largest variance
        of a group.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features_in_)
        Orthonormal rows; the largest entry of each is positive. By default scores are uncorrelated
        and ordered by variance. Then the rows are fair together, but the first few of them are not
        the fair projection of a smaller rank, which needs a fit of its own, or ``order="fair"``.
    mean_, scale_ : ndarray of shape (n_features_in_,)
        Overall mean, in the units of X, and what ``transform`` divides each column by: with
        ``standardize`` its standard deviation (1 if it is constant), otherwise 1.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components_,)
        Variance of each score with n - 1, as in scikit-learn, and its share of the total.
    singular_values_ : ndarray of shape (n_components_,)
        Norms of the scores of all rows: the roots of n - 1 times ``explained_variance_``.
    noise_variance_ : float
        Mean variance in the directions orthogonal to the components.
    prefix_gaps_ : ndarray of shape (n_components_,)
        With ``order="fair"``: how much larger the largest error of a group can be under the first
        1, 2, ... components than under the best projection of this rank, as a share of the latter;
        0.02 is two percent. Computed when it is asked for, by a fit of each rank.
    score_covariance_ : ndarray of shape (n_components_, n_components_)
        With ``order="fair"``: the covariance of the scores, with n - 1.
    n_components_, n_features_in_, n_samples_ : int
    feature_names_in_ : ndarray of str
        Only when X was a data frame with string column names.
    groups_, group_sizes_ : ndarray of shape (k,)
        Labels, sorted, and numbers of rows.
    small_groups_ : list
        Labels of the groups that were merged or left out for being small.
    group_errors_, group_explained_variance_ratio_ : ndarray of shape (k,)
        Average squared reconstruction error of each group, in the order of ``groups_``, and the
        share of its variance that each group keeps.
    reconstruction_error_ : float
        Average squared reconstruction error over all rows.
    disparity_ : float
        With two groups, the error of the harmed one minus that of the privileged one; with more,
        the largest error of a group minus the smallest.
    privileged_group_, harmed_group_ : label
        The groups that plain PCA with as many components treats best and worst.
    pca_group_errors_, pca_reconstruction_error_ : ndarray of shape (k,), float
        The same figures for plain PCA.
    alpha_ : float
        The weighting at which the projection is optimal; NaN for more than two groups, unless 1
        was asked for.
    duality_gap_ : float
        How far the projection can be from the best possible one: zero up to rounding for two
        groups. It refers to the overall error where a disparity budget was met or PCA is already
        fair. Elsewhere it refers, with ``constraint="efficient"``, to the largest error of a group
        compared, which is the overall error where all groups are equal; and with the other
        constraints to the overall error where parity was reached, otherwise to the disparity. For
        two groups with an error budget spent or a group limit reached it is always the disparity.
        The best is meant among the projections that keep to the limits; with
        ``constraint="efficient"`` and a disparity budget among those whose largest error is no
        larger. NaN for ``solver="golden"``, which proves nothing. Above 5,000 features no matrices
        are formed, and the gap assumes that the eigenvectors found are the leading ones, which is
        very likely but not proven.
    error_gap_ : float
        With more than two groups: how much smaller the overall error can be among the projections
        that keep the limits and whose largest error is no larger (``constraint="efficient"``), or
        whose disparity is no larger (otherwise).
    status_ : str
        "parity reached", "worst-off group at its best" (by ``constraint="efficient"``), "capped"
        (by ``constraint="no_worse"``), "parity infeasible at this rank", "already fair", "disparity
        budget met", "error budget spent", "group limit reached", "fixed alpha", "golden section
        ended at its tolerance", and for more than two groups "least disparity found, not proven"
        where parity is neither reached nor known to be out of reach.
    n_eigensolves_ : int
        Number of eigendecompositions.
    covariance_ : ndarray of shape (n_features_in_, n_features_in_)
        With ``missing="available"``: the second moments about ``mean_`` by which ``transform``
        predicts missing values from those that a row has.
    clipped_variance_ : ndarray of shape (k,)
        With ``missing="available"``: how much variance was added to each group by setting negative
        eigenvalues to zero, as a share of its variance; zero without missing values.
    moments_ : GroupMoments
        What was learnt from the data; further ``partial_fit`` calls add to it.

    Notes
    -----
    In the paper [1]_, "FairPCA" is the method of Samadi et al. This class is the certified
    successor of the paper's u-FPCA and c-FPCA, and its default is neither of the two:

    ======================  ====================================================================
    in the paper            here
    ======================  ====================================================================
    PCA                     ``FairPCA(r, alpha=1)``
    u-FPCA                  ``FairPCA(r, constraint="parity")``: the least difference of the two
                            errors, then the least overall error
    c-FPCA                  ``FairPCA(r, constraint="no_worse")``: the same, but no error may
                            exceed the largest one under PCA
    "FairPCA"               ``MinMaxPCA(r)``: the least largest loss
    MOFPCA                  ``baselines.SubsetFairPCA(r)``: a choice among PCA's components
    not in it               ``FairPCA(r)``: the least largest error, then the least overall error
    ======================  ====================================================================

    A population mixed from the groups in any proportions q has the overall error
    ``sum_g q_g R_g``, which is largest where only the worst-off group is left. So ``FairPCA(r)``
    minimises the worst overall error over all such populations: exactly for two groups, and up to
    ``duality_gap_`` for more.

    The promise is about the rows that the estimator was fitted to. :class:`FairPCACV` moves away
    from PCA only as far as cross-validation shows a gain for new rows.

    See Also
    --------
    FairPCACV : Chooses the stop by the errors of held-out rows.
    tradeoff_path : The whole frontier between PCA and parity.

    References
    ----------
    .. [1] G. D. Pelegrina and L. T. Duarte, "A novel approach for Fair Principal Component Analysis
       based on eigendecomposition", IEEE Transactions on Artificial Intelligence, 2024.

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
    >>> fair.pca_group_errors_.round(3), fair.group_errors_.round(3)
    (array([2.734, 4.584]), array([4.046, 4.046]))
    """

    _: KW_ONLY
    constraint: Constraint = "efficient"
    alpha: float | None = None
    max_disparity: float | None = None
    max_error_increase: float | None = None
    max_group_increase: float | None = None
    relative_errors: bool = False
    solver: Literal["exact", "golden"] = "exact"
    tol: float = 1e-6

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OrderedProjection._parameter_constraints,
        "constraint": [StrOptions({"efficient", "no_worse", "parity"})],
        "alpha": [Interval(Real, 0, 1, closed="both"), None],
        "max_disparity": [Interval(Real, 0, None, closed="left"), None],
        "max_error_increase": [Interval(Real, 0, None, closed="left"), None],
        "max_group_increase": [Interval(Real, 0, None, closed="left"), None],
        "solver": [StrOptions({"exact", "golden"})],
    }

    def _validate_params(self) -> None:
        super()._validate_params()
        targets = ("alpha", "max_disparity", "max_error_increase", "max_group_increase")
        given = {name: getattr(self, name) for name in targets if getattr(self, name) is not None}
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

    def _wanted_by_fair_order(self) -> dict[str, Any]:
        no_limits = ("alpha", "max_disparity", "max_error_increase", "max_group_increase")
        return {"constraint": "efficient", "solver": "exact", **dict.fromkeys(no_limits)}

    def _check_groups(self, settled: SettledGroups) -> None:
        labels = settled.moments.groups.tolist()
        if self.alpha not in (None, 1):
            check_two_groups(labels, f"FairPCA(alpha={self.alpha})")
        if self.solver == "golden":
            check_two_groups(labels, "FairPCA(solver='golden')")

    def _problem(self) -> FairProblem:
        overall = self.max_error_increase
        by_group = self.max_group_increase
        return FairProblem(
            constraint=self.constraint,
            max_disparity=self.max_disparity,
            max_error_increase=inf if overall is None else float(overall),
            max_group_increase=inf if by_group is None else float(by_group),
            alpha=None if self.alpha is None else float(self.alpha),
            solver=self.solver,
        )
