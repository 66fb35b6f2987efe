"""SubsetFairPCA: which of PCA's own components to keep (MOFPCA)."""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, get_args

import numpy as np

from fairpca._estimators.base import FairProjection
from fairpca._estimators.fitted import PLACES, ProjectionRecord, never_saved
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._problems.solution import Solution
from fairpca._sklearn import StrOptions
from fairpca._solvers import in_compact_coordinates
from fairpca._typing import Codes
from fairpca.baselines._subset import Front, Rule, Way, solve_subset


class SubsetRecord(ProjectionRecord):
    """Of :class:`SubsetFairPCA`."""

    subset_: Annotated[Codes, PLACES]
    front_: Annotated[Front, never_saved("a front")]


@dataclass(eq=False, repr=False)
class SubsetFairPCA(FairProjection, SubsetRecord):
    """Principal component analysis that keeps some of PCA's components, not always the largest.

    MOFPCA [1]_: of the d principal components of all rows, keep the r with the best trade-off
    between the overall reconstruction error R and the fairness measure F, the squared disparity. R
    and the disparity add up over the components left out, so the Pareto front is found exactly
    unless there are too many subsets; a rule picks one of its points.

    Often no point of the front helps anybody: every group's error rises, only less unequally. A
    :class:`~fairpca.exceptions.LevellingDownWarning` says so.

    Attributes not listed below are those of :class:`fairpca.FairPCA`.

    Parameters
    ----------
    selection : {"balanced", "weighted", "least_error", "fairest"}, default="balanced"
        Which point of the front: ``"balanced"`` (M2 of its authors) has the least sum of R and F,
        both scaled to [0, 1] over the front; ``"weighted"`` (M1) scales by their ranges over the
        front for one component; ``"least_error"`` (M3) is PCA; ``"fairest"`` (M4) has the least F.
    solver : {"auto", "exact", "spea2"}, default="auto"
        ``"exact"`` looks at every subset, up to a million of them. ``"spea2"`` is the evolutionary
        search of [1]_ and needs pymoo. ``"auto"`` is exact where that is possible.
    random_state : int, RandomState or None, default=None
        Seed of the evolutionary search.
    n_components, standardize, relative_errors, whiten
        As in :class:`fairpca.FairPCA`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features_in_)
        The principal components kept, by descending variance; the first few of them are not the
        subset of a smaller rank.
    subset_ : ndarray of shape (n_components_,)
        Which of PCA's components they are; 0 has the largest variance.
    front_ : Front
        The whole front by ascending error: ``subsets``, ``errors`` (R) and ``fairness`` (F), one
        row per point.
    alpha_, duality_gap_ : float
        NaN, because no weighting belongs to a subset; and zero if every subset was tried, or NaN
        after the evolutionary search.
    status_ : str
        "selected from the front".

    References
    ----------
    .. [1] G. D. Pelegrina, R. D. B. Brotto, L. T. Duarte, R. Attux and J. M. T. Romano, "Analysis
       of trade-offs in fair principal component analysis based on multi-objective optimization",
       2022.

    Examples
    --------
    >>> from fairpca.baselines import SubsetFairPCA
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> fair = SubsetFairPCA(n_components=6, standardize=True)
    >>> fair = fair.fit(people.data, sensitive_features=people.sensitive_features)
    >>> fair.subset_, fair.front_.errors.round(1)
    (array([0, 1, 2, 3, 4, 7]), array([1.2, 1.4, 1.6, 1.9, 2.1, 2.7, 3. , 5.4]))
    """

    _: KW_ONLY
    selection: Rule = "balanced"
    relative_errors: bool = False
    solver: Way = "auto"
    random_state: int | np.random.RandomState | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FairProjection._parameter_constraints,
        "selection": [StrOptions(set(get_args(Rule)))],
        "solver": [StrOptions(set(get_args(Way)))],
    }

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        find = partial(
            solve_subset,
            rank=rank,
            selection=self.selection,
            solver=self.solver,
            random_state=self.random_state,
        )
        return in_compact_coordinates(find, operand)
