"""WelfarePCA: one dial from the average group to the worst-off one."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from fairpca._estimators.centered import CenteredProjection
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups, SmallGroups
from fairpca._problems.solution import Solution
from fairpca._problems.welfare import WelfareProblem
from fairpca._sklearn import Interval, StrOptions
from fairpca._solvers import solve
from fairpca._typing import Array, Center

_INFINITE = 1e8


class WelfarePCA(CenteredProjection):
    """Principal component analysis with a dial from the average group to the worst-off one.

    The *welfare* of a projection is the power mean ``(mean_g V_g^(1-a))^(1/(1-a))`` of the
    variances ``V_g`` that the groups keep. Each group counts once, whatever its size. The larger
    the inequality aversion ``a``, the more those count who keep little:

    * ``a = 0``: the mean. This is group-balanced PCA, or multi-batch PCA: plain PCA with all groups
      made the same size.
    * ``a = 1``: the geometric mean, Nash's social welfare [1]_. A percent more variance for one
      group is worth a percent less for another, whatever the scale of their data.
    * ``a = inf``: the least variance of a group is as large as possible; the same as
      ``MinMaxPCA(criterion="variance")``.

    What counts is variance *kept*, not error. A group may keep little because it has little, and
    then a large ``a`` favours it at the expense of a group that varies more and has the larger
    error. Look at ``group_errors_`` too. ``normalize=True`` compares shares of variance,
    ``MinMaxPCA(criterion="error")`` compares errors.

    A group whose rows are all alike keeps nothing under any projection and is left out of the
    welfare.

    No projection is better for one group and worse for none, whatever ``a`` above 0 is, up to
    ``duality_gap_``. Solved exactly for two groups. For more, ``duality_gap_`` says how far the
    projection can be from the best one: zero up to rounding on most data.

    Attributes not listed below are those of :class:`FairPCA`.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components; a fraction in (0, 1) means the fewest with which EVERY group keeps at
        least that share of its variance; None means ``min(n_samples, n_features)``.
    inequality_aversion : float, default=1.0
        ``a``, from 0 to ``math.inf``. From 1e8 on it counts as infinite: the difference would be
        rounding.
    center : {"overall", "group"}, default="overall"
        About which mean variances are measured: that of all rows, so that differences between the
        groups' means count as variance, or each group's own, as in [1]_ and as is usual for batches
        of measurements. ``mean_`` and ``group_errors_`` are about the overall mean either way.
    normalize : bool, default=False
        Let the welfare be about shares of each group's own total variance, so that a group does not
        count more because its data are wider. All errors reported are then such shares too. With
        ``a = 1`` it makes no difference to the projection.
    whiten : bool, default=False
        Divide each score by its standard deviation, as scikit-learn's ``PCA`` does, for what comes
        after it. ``components_`` and all errors stay as they are, ``inverse_transform`` undoes it.
    min_group_size : int, default=1
        Groups of fewer rows are not compared; ``small_groups`` says what becomes of them.
    small_groups : {"error", "merge", "ignore"}, default="error"
        Refuse small groups by name; merge them into one group called "rest"; or leave them out of
        the welfare.
    tol : float, default=1e-6
        Largest ``duality_gap_``, in units of the largest total variance of a group, that passes
        without a :class:`~fairpca.exceptions.DualityGapWarning`; with more than two groups the
        search ends there.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features_in_)
        Orthonormal rows. Scores are uncorrelated and ordered by variance; the largest entry of each
        row is positive.
    group_explained_variance_ : ndarray of shape (k,)
        ``V_g``: the variance that each group keeps, or the share of it with ``normalize``, about
        the mean that ``center`` says, in the order of ``groups_``.
    welfare_ : float
        The power mean of these. No projection has more than ``welfare_ + duality_gap_``.
    group_weights_ : ndarray of shape (k,)
        Weights of the groups' matrices that prove this bound; without a gap the projection is
        optimal for them.
    alpha_ : float
        The same weights of two groups written as :class:`FairPCA` does: 1 is PCA, and more than 1
        favours the group that PCA favours. NaN for more groups.
    duality_gap_ : float
        How much more welfare another projection could have: zero up to rounding for two groups.
    status_ : str
        "welfare at its best", or "most welfare found, not proven" if ``duality_gap_`` is above
        ``tol``. With ``a = inf`` one of those of :class:`MinMaxPCA`.

    See Also
    --------
    MinMaxPCA : Serves the worst-off group best, also by its error or its loss.
    FairPCA : Makes the errors of the groups equal instead.

    References
    ----------
    .. [1] U. Tantipongpipat, S. Samadi, M. Singh, J. Morgenstern and S. Vempala, "Multi-Criteria
       Dimensionality Reduction with Applications to Fairness", NeurIPS 2019.

    Examples
    --------
    >>> from math import inf
    >>> from fairpca import WelfarePCA
    >>> from fairpca.datasets import load_diabetes_by_sex
    >>> data = load_diabetes_by_sex()
    >>> for aversion in (0, 1, 5, inf):
    ...     fair = WelfarePCA(2, inequality_aversion=aversion)
    ...     fair = fair.fit(data.data, sensitive_features=data.sensitive_features)
    ...     print(aversion, fair.group_explained_variance_.round(3))
    0 [5.355 5.231]
    1 [5.353 5.233]
    5 [5.347 5.239]
    inf [5.276 5.276]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenteredProjection._parameter_constraints,
        "inequality_aversion": [Interval(Real, 0, np.inf, closed="both")],
        "min_group_size": [Interval(Integral, 1, None, closed="left")],
        "small_groups": [StrOptions({"error", "merge", "ignore"})],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        inequality_aversion: float = 1.0,
        center: Center = "overall",
        normalize: bool = False,
        whiten: bool = False,
        min_group_size: int = 1,
        small_groups: SmallGroups = "error",
        tol: float = 1e-6,
    ) -> None:
        self.n_components = n_components
        self.inequality_aversion = inequality_aversion
        self.center = center
        self.normalize = normalize
        self.whiten = whiten
        self.min_group_size = min_group_size
        self.small_groups = small_groups
        self.tol = tol

    group_explained_variance_: Array
    welfare_: float

    def _problem(self) -> WelfareProblem:
        a = float(self.inequality_aversion)
        return WelfareProblem(a if a < _INFINITE else inf)

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        if self.center == "group":
            varying = settled.moments.operand("group").traces > 0
            if (settled.compared & varying).any():
                settled = replace(settled, compared=settled.compared & varying)
        return super()._solve_rank(settled, operand, rank)

    def _solve_measured(self, measured: Operand, rank: int) -> Solution:
        one_left = measured.compared.sum() < 2  # whose own PCA is best for any aversion
        problem = WelfareProblem() if one_left else self._problem()
        solution = solve(problem, measured, rank, self.tol)
        extras = {
            "group_explained_variance_": np.maximum(measured.traces - solution.errors, 0.0),
            "group_weights_": solution.weights,
            "welfare_": 0.0 - solution.value,
        }
        return replace(solution, extras=extras)
