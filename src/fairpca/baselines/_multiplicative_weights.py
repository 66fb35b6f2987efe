"""MultiplicativeWeightsPCA: the FairPCA of Samadi et al., by the iteration that they published."""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from math import nan
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from fairpca._estimators.fitted import LossesRecord
from fairpca._estimators.minmax_pca import CenteredProjection
from fairpca._moments.operand import Operand
from fairpca._problems.problems import Criterion
from fairpca._problems.solution import Point, Solution
from fairpca._problems.status import Status
from fairpca._sklearn import Interval, StrOptions
from fairpca._solvers import search_in_basis
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.eigenspaces.lapack import top_eigenvectors
from fairpca._solvers.worst_off import Balance
from fairpca._typing import Center


@dataclass(eq=False, repr=False)
class MultiplicativeWeightsPCA(CenteredProjection, LossesRecord):
    """The FairPCA of Samadi et al. [1]_, by multiplicative weights as they published it.

    It approaches the least largest loss of a group; :class:`fairpca.MinMaxPCA` finds and proves
    it. How near the iteration comes depends on ``eta`` and ``n_iter``, whose defaults are those of
    the authors' script.

    Attributes not listed below are those of :class:`fairpca.FairPCA`.

    Parameters
    ----------
    criterion : {"loss", "error", "variance"}, default="loss"
        As in :class:`fairpca.MinMaxPCA`.
    center : {"group", "overall"}, default="group"
        The mean about which the criterion is measured: each group's own, as in [1]_, or that of
        all rows.
    eta : float, default=1.0
        Step size, in units of one over the criterion.
    n_iter : int, default=10
        Number of rounds.
    n_components, standardize, relative_errors, whiten
    min_group_size, small_groups, tol
        As in :class:`fairpca.FairPCA`.

    Attributes
    ----------
    group_losses_, group_weights_, alpha_
        As in :class:`fairpca.MinMaxPCA`.
    duality_gap_ : float
        How far the criterion can be from the best possible, by the best bound of all rounds.
    status_ : str
        "multiplicative weights ended".

    References
    ----------
    .. [1] S. Samadi, U. Tantipongpipat, J. Morgenstern, M. Singh and S. Vempala, "The Price of Fair
       PCA: One Extra Dimension", NeurIPS 2018.

    Examples
    --------
    >>> from fairpca import MinMaxPCA
    >>> from fairpca.baselines import MultiplicativeWeightsPCA
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> for method in (MultiplicativeWeightsPCA, MinMaxPCA):
    ...     fair = method(5, center="group", standardize=True)
    ...     fair = fair.fit(people.data, sensitive_features=people.sensitive_features)
    ...     print(fair.group_losses_.round(4))
    [0.0787 0.0835]
    [0.0812 0.0812]
    """

    _: KW_ONLY
    criterion: Criterion = "loss"
    center: Center = "group"
    eta: float = 1.0
    n_iter: int = 10

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenteredProjection._parameter_constraints,
        "criterion": [StrOptions({"loss", "error", "variance"})],
        "eta": [Interval(Real, 0, None, closed="neither")],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def _solve_measured(self, measured: Operand, rank: int) -> Solution:
        search = partial(
            solve_multiplicative_weights,
            criterion=self.criterion,
            eta=float(self.eta),
            n_iter=int(self.n_iter),
        )
        return search_in_basis(search, measured, rank)


def solve_multiplicative_weights(
    spaces: Eigenspaces, criterion: Criterion, eta: float, n_iter: int
) -> Solution:
    """Run the iteration of Samadi et al. (2018) as published.

    Start from equal weights. In each of T rounds take the best projection for the weights, then
    multiply each weight by ``exp(eta * value of its group)`` and normalise. The published code
    compares the average P of the T projection matrices with the last one and keeps the one whose
    largest value is smaller. An average of projections does not have rank r, so the code goes on
    with ``I - sqrt(I - P)``, of full rank. Here the top-r eigenspace of P takes its place, also in
    the comparison. The best ``phi`` of all rounds bounds what is left to gain.
    """
    balance = Balance(spaces, criterion)
    # Logarithms, because a weight that underflowed would never come back.
    logarithms = np.where(balance.compared, 0.0, -np.inf)
    average = np.zeros((spaces.n_features, spaces.n_features))
    rounds: list[Point] = []
    for _ in range(n_iter):
        last = spaces.top(softmax(logarithms))
        rounds.append(last)
        average += last.basis @ last.basis.T / n_iter
        logarithms += eta * (last.errors - balance.offsets)
    basis = top_eigenvectors(average, spaces.rank)[1]
    mean = Point(last.weights, basis, spaces.errors(basis), nan)
    found = min(mean, last, key=lambda point: balance.worst(point.errors))
    best = max(rounds, key=balance.phi)
    status, bound = Status.ITERATED, balance.phi(best)
    return balance.solution(found, status, best.weights, bound, rounds[0], last, best)
