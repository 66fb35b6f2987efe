"""BlindPCA: scores that do not reveal the group."""

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from fairpca._estimators.base import AnyGroups, FairProjection, Targeted
from fairpca._estimators.fitted import BlindRecord
from fairpca._moments.group_differences import (
    MeanGapOperand,
    Notion,
    Stratum,
    mean_differences,
    mean_gap,
    spanned,
    strata_of,
)
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.operand import Complement, Operand, refuse_large_matrices
from fairpca._moments.small_groups import SettledGroups
from fairpca._problems.problems import PLAIN_PCA, MeanGapProblem
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._sklearn import Interval, RealNotInt
from fairpca._solvers import Problem, solve
from fairpca._solvers.pls import filled, row_space
from fairpca._typing import Array
from fairpca.exceptions import NotEnoughRows


class TargetedProjection(AnyGroups, FairProjection, Targeted[Solution]):
    """Base of BlindPCA and FairPLS: moments are kept by group and outcome."""

    def _rank_left(
        self, operand: Operand, complement: Complement, rank: int, covariances: str = ""
    ) -> int:
        """The rank, or an error if hiding leaves fewer directions; ``covariances`` is advice."""
        d = operand.n_features
        left = complement.n_features
        if self.n_components is None and left:
            return min(rank, left)
        if rank <= left:
            return rank
        taken = f"of n_features = {d} directions, hiding takes {d - left} and leaves {left}"
        fewer = "pass more features"
        if left:
            fewer = f"pass n_components={left} or less"
        less = "fewer groups, another notion, or a gap that is allowed, max_mean_gap=0.1 say"
        raise ValueError(
            f"n_components={self.n_components} cannot be reached: {taken}; {fewer}, or hide less: "
            f"{covariances or less}."
        )

    def _problem(self) -> Problem:
        return PLAIN_PCA  # no warning is about the price of hiding


@dataclass(eq=False, repr=False)
class BlindPCA(TargetedProjection, BlindRecord):
    """Principal component analysis whose scores do not reveal the group.

    Of all projections whose scores have the same mean in every group, this one keeps the most
    variance. Other differences between the groups may remain: in the covariances, unless
    ``hide_covariances`` or ``keep_covariances`` is given, and in the shape of the distributions.
    :mod:`fairpca.metrics` measures what is left.

    Attributes not listed below are those of :class:`FairPCA`.

    Parameters
    ----------
    n_components : int, float or None, default=None
        As in :class:`FairPCA`; None means as many as hiding, or the budget, allows.
    notion : {"demographic_parity", "equal_opportunity", "equalized_odds"}, \
            default="demographic_parity"
        The rows among which mean scores are to be equal: all rows; the rows of the positive class;
        the rows of each class of y. The latter two need ``y`` at fit.
    hide_covariances : int, default=0
        Also leave out this many directions in which the groups' covariances differ most [2]_.
    keep_covariances : float, optional
        In place of ``hide_covariances`` keep only this share of the directions, between 0 and 1:
        those in which the covariances differ least, but at least as many as components [1]_.
    max_mean_gap : float, optional
        Allow a ``mean_gap_`` of up to this instead of equal means, at the least overall error.
    pos_label : label, optional
        The positive class of equal opportunity; by default the larger of two.
    standardize, whiten, min_group_size, small_groups
        As in :class:`FairPCA`; the means of groups that are left out are not hidden.

    Attributes
    ----------
    hidden_directions_ : ndarray of shape (n_hidden, n_features_in_)
        Orthonormal rows: the directions left out; empty with a budget.
    mean_gap_, pca_mean_gap_ : float
        Variance of the groups' mean scores, and the same for plain PCA: the sum of ``p_g |mean
        score of g - mean score of all|^2`` over the groups, with ``p_g`` the group's share of the
        rows compared. Equal opportunity compares rows of the positive class only; for equalised
        odds the gap is the average over all classes, weighted by their size.
    alpha_ : float
        The projection is optimal for ``alpha C - (1 - alpha) B``: 1 is PCA, 0 hides the means.
    duality_gap_ : float
        How far the overall error can be from the least possible one: zero up to rounding.
    status_ : str
        "group means hidden", "mean gap budget met", or "already fair" (PCA keeps to the budget).

    See Also
    --------
    FairPCA : Makes the reconstruction errors of the groups equal instead.
    FairPLS : Components made for a target.

    References
    ----------
    .. [1] M. Kleindessner, M. Donini, C. Russell and M. B. Zafar, "Efficient fair PCA for fair
       representation learning", AISTATS 2023.
    .. [2] J. Lee, H. Cho, S.-Y. Yun and C. Yun, "Fair streaming principal component analysis",
       NeurIPS 2023.

    Examples
    --------
    >>> from fairpca import BlindPCA
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> blind = BlindPCA(n_components=5, standardize=True)
    >>> blind = blind.fit(people.data, sensitive_features=people.sensitive_features)
    >>> round(blind.pca_mean_gap_, 3), round(blind.mean_gap_, 3)
    (0.105, 0.0)
    """

    _: KW_ONLY
    notion: Notion = "demographic_parity"
    hide_covariances: int = 0
    keep_covariances: float | None = None
    max_mean_gap: float | None = None
    pos_label: Any = None
    relative_errors: ClassVar[bool] = False  # type: ignore[misc]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TargetedProjection._parameter_constraints,
        "hide_covariances": [Interval(Integral, 0, None, closed="left")],
        "keep_covariances": [Interval(RealNotInt, 0, 1, closed="neither"), None],
        "max_mean_gap": [Interval(Real, 0, None, closed="left"), None],
    }

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.hide_covariances and self.keep_covariances is not None:
            raise ValueError(
                f"hide_covariances={self.hide_covariances} says how many directions to hide and "
                f"keep_covariances={self.keep_covariances} what share to keep; pass one of them."
            )
        for name in ("hide_covariances", "keep_covariances"):
            if self.max_mean_gap and getattr(self, name):
                raise ValueError(
                    f"max_mean_gap={self.max_mean_gap} leaves a gap between the means, but "
                    f"{name}={getattr(self, name)} needs means that are hidden; pass one of them."
                )

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        strata = strata_of(settled, self.notion, self.pos_label)
        differences = mean_differences(strata)
        if self.max_mean_gap:
            hidden = np.zeros((operand.n_features, 0))
            solution = self._keep_to_budget(operand, differences, rank)
        else:
            variance = float(settled.operand.shares @ settled.operand.traces)
            hidden = spanned(differences, variance)
            if self.hide_covariances or self.keep_covariances is not None:
                hidden = self._with_covariances(strata, hidden, rank)
            solution = self._hide(operand, hidden, rank)
        pca = solve(PLAIN_PCA, operand, solution.basis.shape[1])
        return replace(solution, extras={}).beside(
            pca,
            operand.errors(solution.basis),
            hidden_directions_=hidden.T,
            mean_gap_=mean_gap(differences, solution.basis),
            pca_mean_gap_=mean_gap(differences, pca.basis),
        )

    def _keep_to_budget(self, operand: Operand, differences: Array, rank: int) -> Solution:
        V = row_space(operand)  # outside of it no row varies, and a gap is met by showing nothing
        if V is None:
            return self._within_budget(operand, differences, rank)
        least = min(rank, V.shape[1])
        solution = self._within_budget(operand.within(V), differences @ V, least)
        return replace(solution, basis=filled(V @ solution.basis, V, rank))

    def _within_budget(self, operand: Operand, differences: Array, rank: int) -> Solution:
        budget = float(self.max_mean_gap or 0.0)
        # The least gap of r components is the sum of the r least eigenvalues of B.
        eigenvalues = np.linalg.svd(differences, compute_uv=False)[::-1] ** 2  # others are 0
        most = operand.n_features - int(np.sum(np.cumsum(eigenvalues) > budget))
        if self.n_components is None and most:
            rank = min(rank, most)
        both = MeanGapOperand.of(operand, differences)
        solution = solve(MeanGapProblem(budget), both, rank)
        if solution.status is Status.INFEASIBLE:
            fewer = "pass"
            if most:
                fewer = f"pass n_components={most} or less, or"
            raise ValueError(
                f"every projection onto {rank} component{'s' if rank > 1 else ''} has a mean gap "
                f"of at least {mean_gap(differences, solution.basis):.6g}, more than max_mean_gap="
                f"{self.max_mean_gap}; {fewer} a larger max_mean_gap."
            )
        return solution

    def _hide(self, operand: Operand, hidden: Array, rank: int) -> Solution:
        """The best projection that is blind to some directions."""
        complement = Complement(hidden)
        advice = f"a hide_covariances below {self.hide_covariances}" * bool(self.hide_covariances)
        if self.keep_covariances is not None:
            advice = f"a keep_covariances above {self.keep_covariances}"
        rank = self._rank_left(operand, complement, rank, advice)
        inside = solve(PLAIN_PCA, complement.inside(operand), rank)
        basis = complement.lift(inside.basis)
        return replace(inside, basis=basis, status=Status.MEANS_HIDDEN, alpha=0.0)

    def _with_covariances(self, strata: list[Stratum], hidden: Array, rank: int) -> Array:
        """The directions of the means, and those in which covariances differ most."""
        moments = strata[0].moments  # all strata share the same moments
        alone = moments.groups[moments.counts == 1].tolist()
        less = "keep_covariances=None"
        if self.hide_covariances:
            less = "hide_covariances=0"
        if alone:
            raise NotEnoughRows(
                f"groups {alone[:5]} have a single row, hence no covariance to compare; pass "
                f"min_group_size=2 with small_groups='merge' or 'ignore', or {less}."
            )
        if not isinstance(moments, GroupMoments):
            large = f"matrices with {moments.n_features} rows"
            raise ValueError(f"hiding covariances would need {large}; pass {less}.")
        refuse_large_matrices(len(moments.groups), moments.n_features, otherwise=f"pass {less}")
        complement = Complement(hidden)
        take = self.hide_covariances
        if self.keep_covariances is not None:
            least = 1
            if self.n_components is not None:
                least = rank
            keep = max(least, int(self.keep_covariances * len(hidden)))
            take = max(complement.n_features - keep, 0)
        S = np.array([complement.square(S_g) for S_g in moments.second_moments("group")])
        K = np.zeros(S.shape[1:])
        for stratum in strata:
            own = S[stratum.members]
            shares = stratum.shares
            apart = own - np.average(own, 0, shares)
            K += np.tensordot(shares, apart @ apart, axes=1)
        directions = np.linalg.eigh(K)[1][:, ::-1]
        return np.hstack([hidden, complement.lift(directions[:, :take])])
