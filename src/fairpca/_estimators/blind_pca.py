"""BlindPCA: scores that do not tell the groups apart."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.targeted import TargetedProjection
from fairpca._moments.complement import Complement
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.implicit import ImplicitMoments
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups, SmallGroups
from fairpca._moments.strata import (
    MeanGapOperand,
    Notion,
    Stratum,
    mean_differences,
    mean_gap,
    spanned,
    strata_of,
)
from fairpca._problems.fair import PLAIN_PCA
from fairpca._problems.mean_gap import MeanGapProblem
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._sklearn import Interval, RealNotInt, StrOptions
from fairpca._solvers import Problem, solve
from fairpca._typing import Array

#: What of ``fair`` counts.
_SETTINGS_INSIDE = {
    "constraint",
    "alpha",
    "max_disparity",
    "max_error_increase",
    "normalize",
    "solver",
    "tol",
}


class BlindPCA(TargetedProjection):
    """Principal component analysis whose scores do not tell the groups apart.

    Of all projections whose scores have the same mean in every group, this one keeps the most
    variance. So no linear rule that compares mean scores can tell the groups apart. Other
    differences may remain: those of the covariances unless ``covariances`` is given, and those of
    the shape of the distributions. :mod:`fairpca.metrics` measures what is left.

    Attributes not listed below are those of :class:`FairPCA`.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components; a fraction in (0, 1) means the fewest with which EVERY group keeps at
        least that share of its variance; None means as many as hiding, or the budget, leaves.
    notion : {"demographic_parity", "equal_opportunity", "equalized_odds"}, \
            default="demographic_parity"
        Among whom mean scores are to be equal: all rows; the rows of the positive class; the rows
        of each class of y. The latter two need ``y`` at fit.
    covariances : int, float or None, default=None
        Hide differences of covariances too. An integer m also leaves out the m directions in which
        the groups' covariances differ most [2]_. A fraction f keeps the ``int(f * n_features)``
        directions in which they differ least, but at least as many as components [1]_.
    max_mean_gap : float, optional
        Instead of equal means ask for a ``mean_gap_`` of at most this, at the least overall error.
    fair : FairPCA, optional
        How to choose among the directions that are left: by default those of most variance; with
        ``fair=FairPCA()`` so that all groups are reconstructed well. Its ``constraint``, ``alpha``,
        budgets, ``normalize``, ``solver`` and ``tol`` count.
    pos_label : label, optional
        The positive class of equal opportunity; by default the larger of two.
    whiten : bool, default=False
        Divide each score by its standard deviation, as scikit-learn's ``PCA`` does, for what comes
        after it. ``components_``, errors and gaps are those without it, ``inverse_transform``
        undoes it.
    min_group_size : int, default=1
        Groups of fewer rows are not compared; ``small_groups`` says what becomes of them.
    small_groups : {"error", "merge", "ignore"}, default="error"
        Refuse small groups by name; merge them into one group called "rest"; or leave them out of
        the comparison, so that their means are not hidden.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features_in_)
        Orthonormal rows. Scores are uncorrelated and ordered by variance; the largest entry of each
        row is positive.
    hidden_directions_ : ndarray of shape (n_hidden, n_features_in_)
        Orthonormal rows: the directions left out; none with a budget.
    mean_gap_ : float
        Variance of the scores between the groups' means, ``tr U'BU``: the sum of
        ``p_g |mean score of g - mean score of all|^2`` over the groups, with the group's share
        ``p_g`` of the rows compared. For equal opportunity these are the rows of the positive
        class, for equalised odds it is the average of all classes, weighted by their size. Zero up
        to rounding, unless a budget allows more.
    pca_mean_gap_ : float
        The same for plain PCA.
    alpha_ : float
        The projection is optimal for ``alpha C - (1 - alpha) B``: 1 is PCA, 0 hides the means. With
        ``fair``, that of :class:`FairPCA`.
    duality_gap_ : float
        How far the overall error can be from the least possible one: zero up to rounding. With
        ``fair``, that of :class:`FairPCA`.
    status_ : str
        "group means hidden", "mean gap budget met", "already fair" (PCA keeps to the budget), or
        with ``fair`` one of those of :class:`FairPCA`.

    See Also
    --------
    FairPCA : Makes the reconstruction errors of the groups equal instead.
    FairPLS : Components made for a target.
    fairpca.metrics : What the scores reveal, measured.

    References
    ----------
    .. [1] M. Kleindessner, M. Donini, C. Russell and M. B. Zafar, "Efficient fair PCA for fair
       representation learning", AISTATS 2023.
    .. [2] J. Lee, H. Cho, S.-Y. Yun and C. Yun, "Fair streaming principal component analysis",
       NeurIPS 2023.

    Examples
    --------
    >>> from fairpca import BlindPCA
    >>> from fairpca.datasets import load_diabetes_by_sex
    >>> data = load_diabetes_by_sex()
    >>> groups = data.sensitive_features
    >>> blind = BlindPCA(n_components=3).fit(data.data, sensitive_features=groups)
    >>> round(blind.pca_mean_gap_, 3), round(blind.mean_gap_, 3)
    (0.38, 0.0)
    >>> scores = blind.transform(data.data)
    >>> means = [scores[groups == group].mean(axis=0) for group in blind.groups_]
    >>> bool(abs(means[0] - means[1]).max() < 1e-9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TargetedProjection._parameter_constraints,
        "notion": [StrOptions({"demographic_parity", "equal_opportunity", "equalized_odds"})],
        "covariances": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            None,
        ],
        "max_mean_gap": [Interval(Real, 0, None, closed="left"), None],
        "fair": [FairPCA, None],
        "pos_label": [object],
        "min_group_size": [Interval(Integral, 1, None, closed="left")],
        "small_groups": [StrOptions({"error", "merge", "ignore"})],
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        notion: Notion = "demographic_parity",
        covariances: int | float | None = None,
        max_mean_gap: float | None = None,
        fair: FairPCA | None = None,
        pos_label: Any = None,
        whiten: bool = False,
        min_group_size: int = 1,
        small_groups: SmallGroups = "error",
    ) -> None:
        self.n_components = n_components
        self.notion = notion
        self.covariances = covariances
        self.max_mean_gap = max_mean_gap
        self.fair = fair
        self.pos_label = pos_label
        self.whiten = whiten
        self.min_group_size = min_group_size
        self.small_groups = small_groups

    hidden_directions_: Array
    mean_gap_: float
    pca_mean_gap_: float

    @property
    def normalize(self) -> bool:  # type: ignore[override]
        """Whether errors are shares of the groups' own variance; as ``fair`` has it."""
        return self.fair is not None and self.fair.normalize

    @property
    def tol(self) -> float:  # type: ignore[override]
        """The gap that passes without a warning; as ``fair`` has it."""
        return np.inf if self.fair is None else self.fair.tol

    def _check_params(self) -> None:
        super()._check_params()
        if self.max_mean_gap and (self.covariances is not None or self.fair is not None):
            other = "covariances" if self.covariances is not None else "fair"
            raise ValueError(
                f"max_mean_gap={self.max_mean_gap} leaves part of the means to be seen, while "
                f"{other}={getattr(self, other)} goes on from means that are hidden; pass one of "
                "them."
            )
        if self.fair is not None:
            self.fair._check_params()
            _check_inside(self.fair)

    def _hide_less(self) -> str:
        if self.covariances is None:
            return super()._hide_less()
        other = "a larger" if isinstance(self.covariances, float) else "a smaller"
        return f"covariances=None, or {other} one than {self.covariances}"

    def _needs_outcomes(self) -> bool:
        return self.notion != "demographic_parity"

    def _problem(self) -> Problem:
        if self.max_mean_gap:
            return MeanGapProblem(float(self.max_mean_gap))
        return PLAIN_PCA if self.fair is None else self.fair._problem()

    def _walk_from_pca(self) -> Problem:
        return PLAIN_PCA  # hiding has a price of its own, so errors are not those of a walk

    def _check_groups(self, labels: list[Any]) -> None:
        if self.fair is not None:
            self.fair._check_groups(labels)

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        strata = strata_of(settled, self.notion, self.pos_label)
        differences = mean_differences(strata)
        if self.max_mean_gap:
            hidden = np.zeros((operand.n_features, 0))
            solution = self._keep_to_budget(operand, differences, rank)
        else:
            variance = float(settled.operand.shares @ settled.operand.traces)
            hidden = spanned(differences, variance)
            if self.covariances is not None:
                hidden = self._with_covariances(settled, strata, hidden, rank)
            solution = self._hide(settled, operand, hidden, rank)
        pca = solve(PLAIN_PCA, operand, solution.basis.shape[1])
        extras = {
            "hidden_directions_": hidden.T,
            "mean_gap_": mean_gap(differences, solution.basis),
            "pca_mean_gap_": mean_gap(differences, pca.basis),
        }
        solution = solution.beside(pca, operand.errors(solution.basis))
        return replace(solution, extras=extras)

    def _keep_to_budget(self, operand: Operand, differences: Array, rank: int) -> Solution:
        # The least gap of r components is the sum of the r least eigenvalues of B.
        eigenvalues = np.linalg.svd(differences, compute_uv=False)[::-1] ** 2  # others are 0
        least = np.cumsum(eigenvalues)
        most = operand.n_features - int(np.sum(least > float(self.max_mean_gap or 0.0)))
        if self.n_components is None and most:
            rank = min(rank, most)
        solution = solve(self._problem(), MeanGapOperand.of(operand, differences), rank)
        if solution.status is Status.INFEASIBLE:
            fewer = f"pass n_components={most} or less, or" if most else "pass"
            raise ValueError(
                f"every projection onto {rank} component{'s' if rank > 1 else ''} has a mean gap "
                f"of at least {mean_gap(differences, solution.basis):.6g}, more than max_mean_gap="
                f"{self.max_mean_gap}; {fewer} a larger max_mean_gap."
            )
        return solution

    def _hide(self, settled: SettledGroups, operand: Operand, hidden: Array, rank: int) -> Solution:
        """The best projection that is blind to some directions."""
        complement = Complement(hidden)
        rank = self._rank_left(settled, operand, complement, rank)
        inside = solve(self._problem(), complement.inside(operand), rank, self.tol)
        lifted = replace(inside, basis=complement.lift(inside.basis))
        if self.fair is not None:
            return lifted
        return replace(lifted, status=Status.MEANS_HIDDEN, alpha=0.0)

    def _with_covariances(
        self, settled: SettledGroups, strata: list[Stratum], hidden: Array, rank: int
    ) -> Array:
        """The directions of the means, and those in which covariances differ most."""
        try:
            S = _covariances(strata[0].moments)  # all strata are of the same moments
        except MemoryError as error:
            raise ValueError(
                f"covariances={self.covariances} would need matrices with "
                f"{settled.operand.n_features} rows; pass covariances=None, or fewer features."
            ) from error
        complement = Complement(hidden)
        left, d = complement.n_features, settled.operand.n_features
        if isinstance(self.covariances, float):
            least = rank if self.n_components is not None else 1
            take = left - max(least, int(self.covariances * d))
        else:
            take = int(self.covariances or 0)
        S = np.array([complement.square(S_g) for S_g in S])
        K = np.sum([stratum.covariance_differences(S) for stratum in strata], axis=0)
        directions = np.linalg.eigh(K)[1][:, ::-1]
        return np.hstack([hidden, complement.lift(directions[:, : max(take, 0)])])


def _covariances(moments: GroupMoments | ImplicitMoments) -> Array:
    """Of each group, about its own mean."""
    if isinstance(moments, ImplicitMoments):
        raise MemoryError("there were too many features to form any matrix")
    return moments.second_moments("group")


def _check_inside(fair: FairPCA) -> None:
    """Refuse settings that belong to BlindPCA itself."""
    usual = FairPCA().get_params()
    given = fair.get_params()
    misplaced = [k for k in usual if k not in _SETTINGS_INSIDE and given[k] != usual[k]]
    if misplaced:
        name, value = misplaced[0], given[misplaced[0]]
        raise ValueError(
            f"fair={fair} sets {name}={value!r}, which has no effect inside BlindPCA; leave it "
            "out, or pass it to BlindPCA where that has a parameter of the same name."
        )
