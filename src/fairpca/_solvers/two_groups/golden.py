"""Algorithms 1 and 2 of the paper, step by step: for comparison.

Corrected here: the sign of ``C_B - C_A`` and the direction of the loop's test. As printed: on a tie
the search moves towards alpha = 0, and the result is the midpoint of the last interval. As in the
authors' code: errors may exceed the cap by 1e-6. The search proves nothing, so there is no gap.
"""

from __future__ import annotations

from math import nan, sqrt

from fairpca._problems.problems import Constraint
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.two_groups.frontier import Frontier

_TOLERANCE = 1e-6  # length of the last interval, as in the authors' code
_CAP_SLACK = 1e-6  # errors may exceed the cap by this in the code that produced the results


def solve_golden(spaces: Eigenspaces, constraint: Constraint = None) -> Solution:
    """Golden section on ``F = D^2``: u-FPCA, c-FPCA, or only where nobody is levelled down."""
    frontier = Frontier(spaces)
    cap = float(frontier.pca.errors[frontier.harmed])
    alpha_0 = frontier.alpha_B if constraint == "pareto" else 0.0
    alpha_1, g_ratio = 1.0, (sqrt(5) + 1) / 2
    while alpha_1 - alpha_0 > _TOLERANCE:
        alpha_1a = alpha_0 + (alpha_1 - alpha_0) / g_ratio
        alpha_0a = alpha_1 - (alpha_1 - alpha_0) / g_ratio
        errors_1 = frontier.at(alpha_1a).errors
        errors_0 = frontier.at(alpha_0a).errors
        F_1, F_0 = (frontier.error_and_disparity(e)[1] ** 2 for e in (errors_1, errors_0))
        within_cap = constraint != "no_worse" or errors_0.max() <= cap + _CAP_SLACK
        if F_0 <= F_1 and within_cap:
            alpha_1 = alpha_1a
        else:
            alpha_0 = alpha_0a
    alpha = (alpha_1 + alpha_0) / 2
    point = frontier.at(alpha)
    return frontier.solution(point, alpha, Status.SEARCHED, "fairness", nan)
