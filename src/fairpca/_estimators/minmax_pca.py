"""MinMaxPCA: the worst-off group made as well off as possible."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fairpca._estimators.base import AnyGroups, AvailableCases, FairProjection, SeveralAttributes
from fairpca._estimators.fitted import LossesRecord
from fairpca._estimators.ordered import OrderedProjection
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._problems.problems import PLAIN_PCA, Criterion, WorstOffProblem
from fairpca._problems.solution import Solution
from fairpca._sklearn import StrOptions
from fairpca._solvers import solve
from fairpca._typing import Array, Center


@dataclass(eq=False, repr=False)
class CenteredProjection(AvailableCases, SeveralAttributes, AnyGroups, FairProjection):
    """Base of the estimators whose criterion is measured about a mean of the user's choice.

    Errors are about the overall mean in any case.
    """

    _: KW_ONLY
    center: Center = "overall"
    relative_errors: bool = False
    tol: float = 1e-6

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FairProjection._parameter_constraints,
        "center": [StrOptions({"overall", "group"})],
    }

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        solution = self._solve_measured(self._measured(settled), rank)
        if self.center != "overall":
            pca = solve(PLAIN_PCA, operand, rank)
            solution = solution.beside(pca, operand.errors(solution.basis))
        return replace(solution, alpha=solution.alpha_of(operand.shares))

    def _measured(self, settled: SettledGroups) -> Operand:
        if self.center == "overall":
            return settled.measured(self.relative_errors)
        about_center = settled.moments.operand(self.center, settled.compared)
        if self.relative_errors:
            return about_center.relative()
        return about_center

    def _solve_measured(self, measured: Operand, rank: int) -> Solution:
        """Solve with the moments about the mean asked for."""
        return solve(self._problem(), measured, rank, self.tol)


@dataclass(eq=False, repr=False)
class MinMaxPCA(OrderedProjection, CenteredProjection, LossesRecord):
    """Principal component analysis that serves the worst-off group best.

    With its defaults this minimises the criterion of Samadi et al. [1]_, who call their method
    FairPCA: the loss of a group is its reconstruction error less the least error that any
    projection of this rank could give it, and the largest of the losses is minimised. Two groups
    are solved exactly.

    Attributes not listed below are those of :class:`FairPCA`.

    Parameters
    ----------
    criterion : {"loss", "error", "variance"}, default="loss"
        Minimise the largest loss, minimise the largest error, or maximise the least variance that
        a group keeps. With ``relative_errors`` all are shares of the group's own variance, and the
        last two are equivalent.
    center : {"group", "overall"}, default="group"
        The mean about which the criterion, ``group_losses_`` and ``duality_gap_`` are measured:
        each group's own, as in [1]_, or that of all rows. ``mean_`` and ``group_errors_`` use the
        overall mean either way; with ``center="overall"``, ``criterion="error"`` minimises the
        largest of the ``group_errors_``.
    n_components, standardize, relative_errors, whiten
    min_group_size, small_groups, crossing, missing, tol
        As in :class:`FairPCA`.
    order : {"variance", "fair"}, default="variance"
        As in :class:`FairPCA`; each prefix is fair by the criterion.

    Attributes
    ----------
    prefix_gaps_ : ndarray of shape (n_components_,)
        With ``order="fair"``: how far each prefix can be from the best projection of its rank, by
        the criterion, as a share of the largest error of a group there.
    group_losses_ : ndarray of shape (k,)
        Error of each group less that of its own best projection, in the order of ``groups_``.
    group_weights_ : ndarray of shape (k,)
        Weights of the groups' matrices that prove the bound behind ``duality_gap_``.
    alpha_ : float
        The weights of two groups as an alpha of :class:`FairPCA`: 1 is PCA, and more than 1
        favours the group that PCA favours. NaN for more groups.
    duality_gap_ : float
        How far the criterion can be from the best possible: zero up to rounding for two groups
        solved exactly.
    status_ : str
        "groups equal", "worst-off groups equal" (others are better off), or "one group decides" (it
        is worst off even under its own best projection).

    References
    ----------
    .. [1] S. Samadi, U. Tantipongpipat, J. Morgenstern, M. Singh and S. Vempala, "The Price of Fair
       PCA: One Extra Dimension", NeurIPS 2018.

    Examples
    --------
    >>> from fairpca import MinMaxPCA
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> fair = MinMaxPCA(n_components=5, standardize=True)
    >>> fair = fair.fit(people.data, sensitive_features=people.sensitive_features)
    >>> fair.status_, fair.group_losses_.round(4)
    ('groups equal', array([0.0812, 0.0812]))
    """

    _: KW_ONLY
    criterion: Criterion = "loss"
    center: Center = "group"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenteredProjection._parameter_constraints,
        **OrderedProjection._parameter_constraints,
        "criterion": [StrOptions({"loss", "error", "variance"})],
    }

    def _problem(self) -> WorstOffProblem:
        return WorstOffProblem(self.criterion)

    def _offsets(self, measured: Operand, best: Solution) -> Array:
        if self.criterion == "error":
            return np.zeros(len(measured.shares))
        if self.criterion == "variance":
            return measured.traces
        losses: Any = best.extras["group_losses_"]
        return np.asarray(measured.errors(best.basis) - losses)
