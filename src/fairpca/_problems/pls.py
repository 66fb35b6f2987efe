"""Components made for a target, one after the other (partial least squares)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from fairpca._moments.complement import Complement
from fairpca._moments.targets import Target
from fairpca._typing import Array


@dataclass(frozen=True, eq=False)
class PLSProblem:
    """Directions of the largest covariance with the targets, each uncorrelated with those before.

    Parameters
    ----------
    target : Target
        With the covariance ``S_xy`` of features and targets.
    differences : ndarray of shape (q, d)
        ``D`` with ``D'D = B``, whose variance among the scores, ``tr U'BU``, is limited.
    complement : Complement
        Of the rows of D.
    max_mean_gap : float
        The limit; with 0 all directions lie in the complement.
    """

    target: Target
    differences: Array
    complement: Complement
    max_mean_gap: float = inf
