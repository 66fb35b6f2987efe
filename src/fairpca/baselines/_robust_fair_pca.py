"""RobustFairPCA: fair to two groups even if their samples are only nearly right."""

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

from fairpca._estimators.base import FairProjection
from fairpca._estimators.fitted import ByGroup, Number, ProjectionRecord
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._problems.solution import Solution
from fairpca._sklearn import Interval
from fairpca._solvers import search_in_basis
from fairpca.baselines._robust import RobustProblem, solve_robust


class RobustRecord(ProjectionRecord):
    """Of :class:`RobustFairPCA`."""

    robust_error_: Number
    group_robust_errors_: ByGroup


@dataclass(eq=False, repr=False)
class RobustFairPCA(FairProjection, RobustRecord):
    """Distributionally robust fair principal component analysis for two groups.

    A sample is not the population. Vu et al. [1]_ let the true distribution of each group differ
    from its sample by up to a radius ``eps_g``. A group of error ``R_g`` can then have an error of
    up to ``S_g = (sqrt(R_g) + sqrt(eps_g))^2``, its *robust error*. The projection minimises
    ``sum_g p_g S_g + lambda |S_A - S_B|``: the overall error and a price on the disparity, both at
    their worst. Radii shrink as groups grow, so a small group is given the benefit of the doubt.

    The published algorithm finds local optima. Here the optimum is found and proven by branch and
    bound over one weight.

    Attributes not listed below are those of :class:`fairpca.FairPCA`.

    Parameters
    ----------
    radius : float, default=0.15
        ``eps_g = radius / sqrt(n_g)`` for a group of ``n_g`` rows (or that total weight), in
        squared units of the data; [1]_ uses standardised data.
    penalty : float, default=0.5
        ``lambda`` as a fraction of the smaller group's share of all rows, from 0 to 1. Above 1, a
        larger error of one group would be rewarded.
    n_components, standardize, whiten
        As in :class:`fairpca.FairPCA`.

    Attributes
    ----------
    robust_error_ : float
        The objective.
    group_robust_errors_ : ndarray of shape (k,)
        ``S_g``, in the order of ``groups_``.
    duality_gap_ : float
        How far the objective can be from the least possible one: zero up to rounding.
    alpha_ : float
        As in :class:`fairpca.MinMaxPCA`.
    status_ : str
        "robust error at its least".

    References
    ----------
    .. [1] H. Vu, T. Tran, M.-C. Yue and V. A. Nguyen, "Distributionally Robust Fair Principal
       Components via Geodesic Descents", ICLR 2022.

    Examples
    --------
    >>> from fairpca.baselines import RobustFairPCA
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> fair = RobustFairPCA(5, standardize=True)
    >>> fair = fair.fit(people.data, sensitive_features=people.sensitive_features)
    >>> fair.group_errors_.round(3), fair.group_robust_errors_.round(3)
    (array([2.489, 1.995]), array([2.757, 2.135]))
    """

    _: KW_ONLY
    radius: float = 0.15
    penalty: float = 0.5

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FairProjection._parameter_constraints,
        "radius": [Interval(Real, 0, None, closed="left")],
        "penalty": [Interval(Real, 0, 1, closed="both")],
    }
    relative_errors = False  # radii are in the units of the data

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        first, second = settled.moments.weights.tolist()  # weight 2 counts as two rows
        problem = RobustProblem(float(self.radius), float(self.penalty), sizes=(first, second))
        solution = search_in_basis(partial(solve_robust, problem=problem), operand, rank)
        extras = {**solution.extras, "robust_error_": solution.value}
        return replace(solution, alpha=solution.alpha_of(operand.shares), extras=extras)
