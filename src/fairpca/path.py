"""The whole frontier between PCA and parity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._implicit import ImplicitMoments, learn, operand_of
from fairpca._moments import GroupMoments
from fairpca._problems import FairProblem, Status
from fairpca._solvers import Solution, solve_exact
from fairpca._spectral import DenseFamily, EigenSolver
from fairpca._validation import check_two_groups

__all__ = ["TradeoffPath", "tradeoff_path"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TradeoffPath:
    """Points of the frontier, from PCA to the least disparity.

    No projection of this rank has both a smaller overall error and a smaller disparity than a point
    of the frontier.

    Attributes
    ----------
    alpha : ndarray of shape (n_points,)
        Weighting at which each point is optimal, falling from 1.
    reconstruction_error : ndarray of shape (n_points,)
    group_errors : ndarray of shape (n_points, 2)
        In the order of ``groups``.
    disparity : ndarray of shape (n_points,)
        Error of the harmed group minus that of the privileged one, evenly spaced.
    components : ndarray of shape (n_points, n_components, n_features)
        Orthonormal bases of the projections.
    groups : ndarray of shape (2,)
    privileged_group, harmed_group : label
    n_components : int
    parity_reached : bool
        Whether the last point has zero disparity; if not, no projection of this rank has.
    """

    alpha: Array
    reconstruction_error: Array
    group_errors: Array
    disparity: Array
    components: Array
    groups: NDArray[Any]
    privileged_group: Any
    harmed_group: Any
    n_components: int
    parity_reached: bool


def tradeoff_path(
    X_or_moments: Any,
    sensitive_features: Any = None,
    *,
    n_components: int,
    n_points: int = 30,
    sample_weight: Any = None,
) -> TradeoffPath:
    """Compute the frontier of overall error and disparity between PCA and parity.

    Parameters
    ----------
    X_or_moments : data of shape (n_samples, n_features), or GroupMoments
    sensitive_features : array-like of shape (n_samples,)
        The group of each row, when data are given.
    n_components : int
        Rank of the projections.
    n_points : int, default=30
        Number of points, at evenly spaced disparities; at least 2.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    TradeoffPath

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import tradeoff_path
    >>> X = np.array([[0.0, 1.0], [0.0, -1.0], [3.0, 0.0], [-3.0, 0.0], [2.0, 0.0], [-2.0, 0.0]])
    >>> path = tradeoff_path(X, ["a", "a", "b", "b", "b", "b"], n_components=1, n_points=3)
    >>> path.disparity.round(3)
    array([1. , 0.5, 0. ])
    >>> path.reconstruction_error.round(3)
    array([0.333, 0.6  , 0.867])
    """
    if isinstance(X_or_moments, GroupMoments):
        moments: GroupMoments | ImplicitMoments = X_or_moments
    elif sensitive_features is None:
        raise TypeError(
            "sensitive_features is missing: pass tradeoff_path(X, sensitive_features=groups, ...) "
            "with one group label per row, or GroupMoments instead of X."
        )
    else:
        moments = learn(X_or_moments, sensitive_features, sample_weight)
    check_two_groups(moments.groups.tolist(), int(moments.counts.sum()), "tradeoff_path")
    if not 1 <= n_components <= moments.n_features or int(n_components) != n_components:
        raise ValueError(
            f"n_components={n_components} is not a rank: pass an integer from 1 to "
            f"{moments.n_features}, the number of features."
        )
    if n_points < 2 or int(n_points) != n_points:
        raise ValueError(f"n_points={n_points}: pass an integer of at least 2.")
    shares = moments.weights / moments.weights.sum()
    solver = EigenSolver(operand_of(moments), int(n_components))

    def solve(max_disparity: float) -> Solution:
        def problem(family: DenseFamily) -> Solution:
            return solve_exact(family, FairProblem(max_disparity=max_disparity))

        return solver.solve(problem)

    def disparity(errors: Array) -> float:
        return float(errors[fairest.harmed] - errors[fairest.privileged])

    fairest = solve(0.0)
    targets = np.linspace(disparity(fairest.pca.errors), disparity(fairest.errors), int(n_points))
    between = [solve(max(target, 0.0)) for target in targets[1:-1]]
    errors = np.array([fairest.pca.errors, *(s.errors for s in between), fairest.errors])
    bases = [fairest.pca.basis, *(s.basis for s in between), fairest.basis]
    labels = moments.groups.tolist()
    return TradeoffPath(
        alpha=np.array([1.0, *(s.alpha for s in between), fairest.alpha]),
        reconstruction_error=errors @ shares,
        group_errors=errors,
        disparity=errors[:, fairest.harmed] - errors[:, fairest.privileged],
        components=np.array([basis.T for basis in bases]),
        groups=moments.groups,
        privileged_group=labels[fairest.privileged],
        harmed_group=labels[fairest.harmed],
        n_components=int(n_components),
        parity_reached=fairest.status is not Status.INFEASIBLE,
    )
