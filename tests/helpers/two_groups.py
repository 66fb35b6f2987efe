"""Second moments of two groups, and what must hold of every exact solution for them."""

from __future__ import annotations

import numpy as np
from helpers.data import make_groups
from helpers.inside import Eigenspaces, FairProblem, Operand, Status

from fairpca import GroupMoments


def family_of(C, shares, rank):
    return Eigenspaces(Operand(np.asarray(C, dtype=float), np.asarray(shares)), rank)


def random_family(seed, d=6, rank=2, alike=0.0):
    X, groups = make_groups(d=d, seed=seed, alike=alike)
    moments = GroupMoments.from_data(X, groups)
    return family_of(moments.second_moments(), moments.weights / moments.weights.sum(), rank)


def diagonal_family(a, b, shares=(0.5, 0.5), rank=1):
    return family_of([np.diag(a), np.diag(b)], shares, rank)


def grid(family, n=501):
    """Errors along a dense grid of alpha, computed with numpy alone."""
    C_A, C_B = family.matrices[[0, 1]]
    p = family.shares
    C = p[0] * C_A + p[1] * C_B
    U = np.linalg.eigh(C)[1][:, -family.rank :]
    errors = [np.trace(M) - np.trace(U.T @ M @ U) for M in (C_A, C_B)]
    difference = C_A - C_B if errors[0] > errors[1] else C_B - C_A
    alphas = np.linspace(0, 1, n)
    weights = alphas[:, None, None]
    U = np.linalg.eigh(weights * C + (1 - weights) * difference)[1][:, :, -family.rank :]
    kept = [np.trace(np.swapaxes(U, 1, 2) @ G @ U, axis1=1, axis2=2) for G in (C_A, C_B)]
    return alphas, np.column_stack([np.trace(C_A) - kept[0], np.trace(C_B) - kept[1]])


def check(family, solution, problem, gap_scale=1.0):
    """What must hold of every exact solution."""
    scale = family.traces.max()
    U = solution.basis
    np.testing.assert_allclose(U.T @ U, np.eye(family.rank), atol=1e-12)
    by_definition = family.traces - [np.trace(U.T @ C @ U) for C in family.matrices]
    np.testing.assert_allclose(solution.errors, by_definition, atol=1e-12 * scale)
    R, D = values(family, solution, solution.errors)
    R_pca, D_pca = values(family, solution, solution.pca.errors)
    assert solution.pca.errors[solution.harmed] >= solution.pca.errors[solution.privileged]
    assert (
        problem.max_disparity or 0.0
    ) - 1e-12 * scale <= D or solution.status is Status.ALREADY_FAIR
    if problem.constraint == "no_worse":
        assert solution.errors.max() <= solution.pca.errors.max() + 1e-12 * scale
    if problem.constraint == "efficient":
        assert (solution.weights >= -1e-12).all()
        worse_off = solution.errors[solution.harmed] - solution.pca.errors[solution.harmed]
        assert worse_off <= 1e-12 * scale
    if np.isfinite(problem.max_error_increase):
        assert (1 + problem.max_error_increase) * R_pca + 1e-12 * scale >= R
    assert R_pca - 1e-12 * scale <= R
    assert D_pca + 1e-12 * scale >= D
    assert abs(solution.gap) <= 1e-11 * scale * gap_scale


def values(family, solution, errors):
    return family.shares @ errors, errors[solution.harmed] - errors[solution.privileged]


PROBLEMS = [
    FairProblem(),
    FairProblem(constraint="no_worse"),
    FairProblem(constraint="efficient"),
    FairProblem(max_disparity=0.05),
    FairProblem(max_disparity=0.05, constraint="no_worse"),
    FairProblem(max_disparity=0.05, constraint="efficient"),
    FairProblem(max_error_increase=0.01),
    FairProblem(max_error_increase=0.02, constraint="no_worse"),
    FairProblem(max_error_increase=0.02, constraint="efficient"),
    FairProblem(max_error_increase=0.0),
]
