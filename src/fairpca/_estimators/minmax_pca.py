"""MinMaxPCA: the worst-off group made as well off as possible."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

from fairpca._estimators.centered import CenteredProjection
from fairpca._moments.small_groups import SmallGroups
from fairpca._problems.worst_off import Criterion, WorstOffProblem
from fairpca._sklearn import Interval, StrOptions
from fairpca._typing import Array, Center


class MinMaxPCA(CenteredProjection):
    """Principal component analysis that serves the worst-off group best.

    With ``criterion="loss"`` this is the FairPCA of Samadi et al. [1]_: the loss of a group is its
    reconstruction error less the least error that any projection of this rank could give it, and
    the largest of the losses is minimised. Solved exactly for two groups; for more,
    ``duality_gap_`` says how far the projection can be from the best one.

    Attributes not listed below are those of :class:`FairPCA`.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components; a fraction in (0, 1) means the fewest with which EVERY group keeps at
        least that share of its variance; None means ``min(n_samples, n_features)``.
    criterion : {"loss", "error", "variance"}, default="loss"
        Minimise the largest loss, minimise the largest error, or maximise the least variance that
        a group keeps. With ``normalize`` all are shares of the group's own variance, and the last
        two come to the same.
    center : {"overall", "group"}, default="overall"
        About which mean the criterion is measured: that of all rows, as the other estimators do, or
        each group's own, as in [1]_. Only ``group_losses_``, ``duality_gap_`` and the choice of
        the projection depend on it; ``mean_`` and ``group_errors_`` are about the overall mean
        either way.
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
    solver : {"exact", "multiplicative_weights"}, default="exact"
        ``"multiplicative_weights"`` is the iteration of [1]_, for comparison: its result is as good
        as ``eta`` and ``n_iter`` let it be.
    eta : float, default=1.0
        Step size of the multiplicative weights, in units of one over the criterion.
    n_iter : int, default=10
        Rounds of the multiplicative weights.
    tol : float, default=1e-6
        Largest ``duality_gap_`` that passes without a
        :class:`~fairpca.exceptions.DualityGapWarning`, relative to what is minimised; with more
        than two groups the search ends there. Two groups are solved to rounding, so that theirs is
        relative to the largest total variance of a group. With more than 5000 features they get a
        ``ConvergenceWarning`` instead, from a hundredth of the overall error on.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features_in_)
        Orthonormal rows. Scores are uncorrelated and ordered by variance; the largest entry of each
        row is positive.
    group_losses_ : ndarray of shape (k,)
        Error of each group less that of its own best projection, in the order of ``groups_``.
    group_weights_ : ndarray of shape (k,)
        Weights of the groups' matrices that prove the bound behind ``duality_gap_``; for two groups
        the projection is optimal for them. After multiplicative weights, those of the round that
        gave the best bound.
    alpha_ : float
        The same weights of two groups written as :class:`FairPCA` does: 1 is PCA, and more than 1
        favours the group that PCA favours. NaN for more groups.
    duality_gap_ : float
        How far the criterion can be from the best possible: zero up to rounding when exact.
    status_ : str
        "groups equal", "worst-off groups equal" (others are better off), "one group decides" (it is
        worst off even under a projection of its own), or "multiplicative weights ended".

    See Also
    --------
    FairPCA : Makes the errors of the groups equal instead.

    References
    ----------
    .. [1] S. Samadi, U. Tantipongpipat, J. Morgenstern, M. Singh and S. Vempala, "The Price of Fair
       PCA: One Extra Dimension", NeurIPS 2018.

    Examples
    --------
    >>> from fairpca import MinMaxPCA
    >>> from fairpca.datasets import load_diabetes_by_sex
    >>> data = load_diabetes_by_sex()
    >>> fair = MinMaxPCA(n_components=2).fit(data.data, sensitive_features=data.sensitive_features)
    >>> fair.status_, fair.group_losses_.round(4)
    ('groups equal', array([0.0845, 0.0845]))
    >>> published = MinMaxPCA(n_components=2, solver="multiplicative_weights")
    >>> published.fit_moments(fair.moments_).group_losses_.round(4)
    array([0.0886, 0.0788])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenteredProjection._parameter_constraints,
        "criterion": [StrOptions({"loss", "error", "variance"})],
        "min_group_size": [Interval(Integral, 1, None, closed="left")],
        "small_groups": [StrOptions({"error", "merge", "ignore"})],
        "solver": [StrOptions({"exact", "multiplicative_weights"})],
        "eta": [Interval(Real, 0, None, closed="neither")],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        criterion: Criterion = "loss",
        center: Center = "overall",
        normalize: bool = False,
        whiten: bool = False,
        min_group_size: int = 1,
        small_groups: SmallGroups = "error",
        solver: Literal["exact", "multiplicative_weights"] = "exact",
        eta: float = 1.0,
        n_iter: int = 10,
        tol: float = 1e-6,
    ) -> None:
        self.n_components = n_components
        self.criterion = criterion
        self.center = center
        self.normalize = normalize
        self.whiten = whiten
        self.min_group_size = min_group_size
        self.small_groups = small_groups
        self.solver = solver
        self.eta = eta
        self.n_iter = n_iter
        self.tol = tol

    group_losses_: Array

    def _problem(self) -> WorstOffProblem:
        eta, n_iter = float(self.eta), int(self.n_iter)
        return WorstOffProblem(self.criterion, self.solver, eta, n_iter)
