"""WelfarePCA: one dial from the average group to the worst-off one."""

from dataclasses import KW_ONLY, dataclass, replace
from math import inf
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from fairpca._estimators.fitted import WelfareRecord
from fairpca._estimators.minmax_pca import CenteredProjection
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._moments.tolerances import varying_groups
from fairpca._problems.problems import WelfareProblem
from fairpca._problems.solution import Solution
from fairpca._sklearn import Interval, StrOptions
from fairpca._solvers import solve

_INFINITE = 1e8  # Larger aversions differ from infinity only by rounding.


@dataclass(eq=False, repr=False)
class WelfarePCA(CenteredProjection, WelfareRecord):
    """Principal component analysis with a dial from the average group to the worst-off one.

    The *welfare* of a projection is the power mean ``(mean_g V_g^(1-a))^(1/(1-a))`` of the
    variances ``V_g`` that the groups keep. Each group counts once, whatever its size. The larger
    the inequality aversion ``a``, the more the groups that keep little count:

    * ``a = 0``: the mean. This is group-balanced PCA: plain PCA with all groups made the same size;
      with ``center="balanced"`` it is the multi-batch PCA of [2]_.
    * ``a = 1``: the geometric mean, Nash's social welfare [1]_. A percent more variance for one
      group is worth a percent less for another, whatever the scale of their data.
    * ``a = inf``: the least variance of a group, as in ``MinMaxPCA(criterion="variance")``.

    What counts is variance *kept*, not error. A group may keep little because it has little, and
    then a large ``a`` favours it at the expense of a group that varies more and has the larger
    error. Look at ``group_errors_`` too. A group whose rows are all alike is left out.

    With ``a`` above 0 no other projection is better for one group and worse for none, up to
    ``duality_gap_``. The gap is rounding for two groups, and on most data for more groups too.

    Attributes not listed below are those of :class:`FairPCA`.

    Parameters
    ----------
    inequality_aversion : float, default=1.0
        ``a``, from 0 to ``math.inf``. From 1e8 on it counts as infinite.
    center : {"overall", "group", "balanced"}, default="overall"
        The mean about which variances are measured: that of all rows, so that differences between
        the groups' means count as variance; each group's own, as in [1]_; or the mean of the
        groups' means, as in [2]_. ``mean_`` and ``group_errors_`` always use the overall mean.
    relative_errors : bool, default=False
        Measure welfare and all errors in shares of each group's own total variance. With ``a = 1``
        this does not change the projection.
    tol : float, default=1e-6
        As in :class:`FairPCA`, in units of the largest total variance of a group.
    n_components, standardize, whiten, min_group_size, small_groups, crossing, missing
        As in :class:`FairPCA`.

    Attributes
    ----------
    group_explained_variance_ : ndarray of shape (k,)
        ``V_g``: the variance that each group keeps, or the share of it with ``relative_errors``,
        about the mean that ``center`` names, in the order of ``groups_``.
    welfare_ : float
        The power mean of the ``V_g``. No projection has more than ``welfare_ + duality_gap_``.
    group_weights_, alpha_
        As in :class:`MinMaxPCA`.
    duality_gap_ : float
        How much more welfare another projection could have: zero up to rounding for two groups.
    status_ : str
        "welfare at its best", or "most welfare found, not proven" if ``duality_gap_`` is above
        ``tol``. With ``a = inf`` as in :class:`MinMaxPCA`.

    References
    ----------
    .. [1] U. Tantipongpipat, S. Samadi, M. Singh, J. Morgenstern and S. Vempala, "Multi-Criteria
       Dimensionality Reduction with Applications to Fairness", NeurIPS 2019.
    .. [2] L. Haghverdi, A. T. L. Lun, M. D. Morgan and J. C. Marioni, "Batch effects in single-cell
       RNA-sequencing data are corrected by matching mutual nearest neighbors", Nature Biotechnology
       36, 2018; ``multiBatchPCA`` of the Bioconductor package batchelor.

    Examples
    --------
    >>> from math import inf
    >>> from fairpca import WelfarePCA
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> for aversion in (0, 1, 5, inf):
    ...     fair = WelfarePCA(5, inequality_aversion=aversion, standardize=True)
    ...     fair = fair.fit(people.data, sensitive_features=people.sensitive_features)
    ...     print(aversion, fair.group_explained_variance_.round(3))
    0 [8.331 7.776]
    1 [8.322 7.784]
    5 [8.287 7.814]
    inf [7.95 7.95]
    """

    _: KW_ONLY
    inequality_aversion: float = 1.0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenteredProjection._parameter_constraints,
        "center": [StrOptions({"overall", "group", "balanced"})],
        "inequality_aversion": [Interval(Real, 0, np.inf, closed="both")],
    }

    def _problem(self) -> WelfareProblem:
        a = float(self.inequality_aversion)
        if a >= _INFINITE:
            a = inf
        return WelfareProblem(a)

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        if self.center == "group":
            varying = varying_groups(settled.moments.operand("group").traces)
            if (settled.compared & varying).any():
                settled = replace(settled, compared=settled.compared & varying)
        return super()._solve_rank(settled, operand, rank)

    def _solve_measured(self, measured: Operand, rank: int) -> Solution:
        problem = self._problem()
        if measured.compared.sum() < 2:  # the group's own PCA is best for any aversion
            problem = WelfareProblem()
        solution = solve(problem, measured, rank, self.tol)
        extras = {
            "group_explained_variance_": np.maximum(measured.traces - solution.errors, 0.0),
            "group_weights_": solution.weights,
            "welfare_": 0.0 - solution.value,
        }
        return replace(solution, extras=extras)
