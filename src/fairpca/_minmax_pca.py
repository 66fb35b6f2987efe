"""MinMaxPCA: the worse-off of two groups made as well off as possible."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from fairpca._base import FairProjection
from fairpca._implicit import ImplicitMoments, operand_of
from fairpca._minmax import MinMaxSolution, solve_minmax, solve_multiplicative_weights
from fairpca._moments import GroupMoments
from fairpca._problems import Criterion, FixedAlpha
from fairpca._solvers import Solution, solve_fixed
from fairpca._spectral import DenseFamily, EigenSolver, Operand, group_errors


class MinMaxPCA(FairProjection):
    """Principal component analysis that serves the worse-off of two groups best.

    With ``criterion="loss"`` this is the FairPCA of Samadi et al. [1]_: the loss of a group is its
    reconstruction error less the least error that any projection of this rank could give it, and
    the larger of the two losses is minimised. Solved exactly for two groups, with a certificate.

    Attributes not listed below are those of :class:`FairPCA`.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components; a fraction in (0, 1) means the fewest with which EVERY group keeps at
        least that share of its variance; None means ``min(n_samples, n_features)``.
    criterion : {"loss", "error", "variance"}, default="loss"
        Minimise the largest loss, minimise the largest error, or maximise the least variance that
        a group keeps.
    center : {"overall", "group"}, default="overall"
        About which mean the criterion is measured: that of all rows, as the other estimators do, or
        each group's own, as in [1]_. Only ``group_losses_``, ``duality_gap_`` and the choice of
        the projection depend on it; ``mean_`` and ``group_errors_`` are about the overall mean
        either way.
    solver : {"exact", "multiplicative_weights"}, default="exact"
        ``"multiplicative_weights"`` is the iteration of [1]_, for comparison: its result is as good
        as ``eta`` and ``n_iter`` let it be.
    eta : float, default=1.0
        Step size of the multiplicative weights, in units of one over the criterion.
    n_iter : int, default=10
        Rounds of the multiplicative weights.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features_in_)
        Orthonormal rows. Scores are uncorrelated and ordered by variance; the largest entry of each
        row is positive.
    group_losses_ : ndarray of shape (2,)
        Error of each group less that of its own best projection, in the order of ``groups_``.
    group_weights_ : ndarray of shape (2,)
        Weights t and 1 - t of the groups' matrices: the projection is optimal for them. After
        multiplicative weights, those of the round that gave the best bound.
    alpha_ : float
        The same weights written as :class:`FairPCA` does: 1 is PCA, and more than 1 favours the
        group that PCA favours.
    duality_gap_ : float
        How far the criterion can be from the best possible: zero up to rounding when exact.
    status_ : str
        "groups equal", "one group decides" (it is worse off even under a projection of its own), or
        "multiplicative weights ended".

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
        **FairProjection._parameter_constraints,
        "criterion": [StrOptions({"loss", "error", "variance"})],
        "center": [StrOptions({"overall", "group"})],
        "solver": [StrOptions({"exact", "multiplicative_weights"})],
        "eta": [Interval(Real, 0, None, closed="neither")],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
    }

    _results: ClassVar[frozenset[str]] = FairProjection._results | {
        "group_losses_",
        "group_weights_",
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        criterion: Criterion = "loss",
        center: Literal["overall", "group"] = "overall",
        solver: Literal["exact", "multiplicative_weights"] = "exact",
        eta: float = 1.0,
        n_iter: int = 10,
    ) -> None:
        self.n_components = n_components
        self.criterion = criterion
        self.center = center
        self.solver = solver
        self.eta = eta
        self.n_iter = n_iter

    def _solve_rank(
        self, operand: Operand, rank: int, moments: GroupMoments | ImplicitMoments
    ) -> tuple[Solution, int]:
        about_overall = EigenSolver(operand, rank)
        pca = about_overall.solve(lambda family: solve_fixed(family, FixedAlpha(1.0)))
        if self.center == "overall":
            fair, n_eigensolves = about_overall.solve(self._problem), about_overall.n_eigensolves
        else:
            about_own = EigenSolver(operand_of(moments, "group"), rank)
            fair = about_own.solve(self._problem)
            n_eigensolves = about_overall.n_eigensolves + about_own.n_eigensolves
        solution = replace(
            pca,
            basis=fair.basis,
            errors=group_errors(operand.traces, operand.products(fair.basis), fair.basis),
            # M(t) is a multiple of M(alpha) = alpha C + (1 - alpha)(C_B - C_A) for this alpha.
            alpha=float(1 / (1 + (operand.shares - fair.weights)[pca.privileged])),
            status=fair.status,
            gap=fair.gap,
            extras={"group_losses_": np.maximum(fair.losses, 0.0), "group_weights_": fair.weights},
        )
        return solution, n_eigensolves

    def _problem(self, family: DenseFamily) -> MinMaxSolution:
        if self.solver == "exact":
            return solve_minmax(family, self.criterion)
        return solve_multiplicative_weights(
            family, self.criterion, float(self.eta), int(self.n_iter)
        )
